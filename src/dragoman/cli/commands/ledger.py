"""The gateway's ledger: whether it is sound, how it stands, its rows, and corrections.

check       compare rows, sums, costs and the audit; exit status 1 when they differ
status      journals, what waits in them, months
export      FILE.csv (or -): an attempt a line; FILE.parquet: the same, with the extra "export"
adjust      correct what an attempt cost: --usd 0.12 (or -0.12) --reason "invoice 7"; a further entry, no row changes
copy        bring attempts, corrections, keys, quotas and the audit into another store: --to env:NAME, --to sqlite;
            again, also while gateways write to both: what came since
migrate     bring the store's tables up to this dragoman; gateways do it by themselves at their first record
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

import msgspec

from dragoman.cli.body_input import check_folder, write_json
from dragoman.cli.ledger_input import actor, ledger_errors, ledger_folder, other_ledger, read_since
from dragoman.cli.main import DONE, FAILED
from dragoman.cli.settings import add_config
from dragoman.cli.terminal import hint, say
from dragoman.errors import UsageError
from dragoman.ledger.copying import copy_ledger
from dragoman.ledger.counting import correct_counters
from dragoman.ledger.folder import LedgerFolder, place_of
from dragoman.ledger.interfaces import CountersAway
from dragoman.ledger.replica.age import age_words
from dragoman.ledger.replica.file import read_age
from dragoman.ledger.reports.checking import check, list_journals
from dragoman.ledger.reports.exporting import export_csv
from dragoman.ledger.stores.migrating import migrate
from dragoman.ledger.stores.opening import open_reading, open_store
from dragoman.money import correction_from_usd, render_usd

EXAMPLE = "  dragoman ledger check"

#: Characters of a reason.
_REASON: Final = 200
#: What a restored store lost, as its shippers found.
_MISSING: Final = "SELECT reason FROM set_aside WHERE name LIKE 'restored.%' ORDER BY name"
_ACTIONS: Final = ("check", "status", "export", "adjust", "copy", "migrate")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_config(parser)
    parser.add_argument("action", choices=_ACTIONS, metavar="|".join(_ACTIONS), help="what to do")
    parser.add_argument("subject", nargs="?", metavar="FILE|ID", help="export: the file; adjust: the attempt's id")
    parser.add_argument("--since", metavar="7d|DATE", help="export: only from then on")
    parser.add_argument("--usd", metavar="N", help="adjust: US dollars to add, or with a minus to take off")
    parser.add_argument("--reason", default="", metavar="TEXT", help="adjust: why; it stands in the ledger")
    parser.add_argument(
        "--store", metavar="STORE",
        help="another store than the configuration's: sqlite (files), env:NAME, file:PATH, an address",
    )  # fmt: skip
    parser.add_argument("--to", metavar="STORE", help="copy: the store to copy to, as --store")
    parser.add_argument("--json", action="store_true", help="check, status: print JSON")


def run(options: argparse.Namespace) -> int:
    """Run the action."""
    folder = ledger_folder(options)
    if options.store is not None:
        folder = other_ledger(folder, options.store, "--store")
    with ledger_errors("the ledger"):
        match options.action:
            case "check":
                return _check(folder, as_json=options.json)
            case "status":
                return _status(folder, as_json=options.json)
            case "export":
                return _export(folder, options.subject, read_since(options.since))
            case "copy":
                return _copy(folder, options.to)
            case "migrate":
                return _migrate(folder)
            case _:
                return _adjust(folder, options)


def _check(folder: LedgerFolder, *, as_json: bool) -> int:
    found = check(folder)
    if as_json:
        write_json({**msgspec.structs.asdict(found), "is_sound": found.is_sound})
        return DONE if found.is_sound else FAILED
    unpriced = f", {found.unpriced} unpriced" if found.unpriced else ""
    say(f"{found.attempts} attempts cost {render_usd(found.nano)} US dollars{unpriced}\n")
    say(f"{found.going_on} running, {found.waiting} waiting in journals, {found.adjustments} adjustments\n")
    for words, lines in (
        ("contradicts itself", found.differences),
        ("was set aside", found.set_aside),
        ("was damaged", found.damaged),
    ):
        for line in lines:
            say(f"{words}: {line}\n")
    say("sound\n" if found.is_sound else "not sound\n")
    return DONE if found.is_sound else FAILED


def _status(folder: LedgerFolder, *, as_json: bool) -> int:
    journals = list_journals(folder)
    with open_reading(folder) as reading:
        months = reading.sizes()
        missing = [reason for (reason,) in reading.select(None, _MISSING)]
    place = _place(folder)
    age = None if folder.store is None else read_age(folder)
    if as_json:
        listed = list(map(msgspec.structs.asdict, journals))
        fields = {"folder": str(folder.root), "store": place, "journals": listed, "months": months, "missing": missing}
        known = None if age is None or age == float("inf") else age
        write_json({**fields, "replica_age_seconds": known})
        return DONE
    say(f"{folder.root}\n")
    if folder.store is not None:
        say(f"{place}\n")
    if age is not None:
        say(f"its keys and quotas here: {age_words(age)}\n")
    for each in journals:
        life = "live" if each.is_live else "its writer has ended"
        say(f"journal {each.holder}: {life}, {each.waiting} waiting, {each.going_on} going on, {each.size} bytes\n")
    for month, size in months.items():
        say(f"{month}: {size} bytes\n")
    for reason in missing:
        say(f"{reason}\n")
    if not journals and not months:
        hint("nothing was recorded yet: dragoman serve records the requests that it answers\n")
    return DONE


def _export(folder: LedgerFolder, name: str | None, since: float) -> int:
    if name is None:
        raise UsageError("export: expected a file to write, or -")
    check_folder(name, "export")
    if name == "-":
        sys.stdout.writelines(export_csv(folder, since=since))
        return DONE
    if name.endswith(".parquet"):
        from dragoman.ledger.reports.parquet import export_parquet

        hint(f"{export_parquet(folder, Path(name), since=since)} attempts\n")
        return DONE
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        file.writelines(export_csv(folder, since=since))
    return DONE


def _adjust(folder: LedgerFolder, options: argparse.Namespace) -> int:
    try:
        id = bytes.fromhex((options.subject or "").replace("-", ""))
        usd = Decimal(options.usd or "")
    except (ValueError, InvalidOperation):
        raise UsageError(
            "adjust: expected an attempt's id (32 hexadecimal digits, as `export` writes them),"
            " and --usd with an amount"
        ) from None
    nano, reason = correction_from_usd(usd), options.reason.strip()
    if nano is None:
        raise UsageError(f"--usd: expected an amount with nine decimal places at most, got {options.usd[:40]!r}")
    if len(id) != 16:
        raise UsageError("adjust: expected an id of 32 hexadecimal digits")
    if not reason or len(reason) > _REASON or not reason.isprintable():
        raise UsageError(f"--reason: expected 1 to {_REASON} printable characters")
    store = open_store(folder)
    try:
        is_new = store.adjust(id, nano, reason=reason, actor=actor())
        with contextlib.suppress(CountersAway):  # then the shipper does it within a minute
            correct_counters(folder, store.accounts_of(id))
    finally:
        store.close()
    hint("it is corrected\n" if is_new else "the same correction stands there already\n")
    return DONE


def _copy(folder: LedgerFolder, to: str | None) -> int:
    if to is None:
        raise UsageError("copy: expected --to and a store")
    target = other_ledger(folder, to, "--to")
    if _place(folder) == _place(target):
        raise UsageError(f"copy: expected another store than {_place(folder)} (--store says from which)")
    found = copy_ledger(folder, target)
    say(f"{_place(folder)} to {_place(target)}\n")
    say(f"{found.attempts} attempts and {found.corrections} corrections stand there now\n")
    say(f"taken over: {found.keys} keys, {found.quotas} quotas, {found.changes} entries of the audit\n")
    for problem in found.problems:
        say(f"not taken over: {problem}\n")
    hint("compare: dragoman ledger check, once with --store sqlite and once with the other one\n")
    return FAILED if found.problems else DONE


def _migrate(folder: LedgerFolder) -> int:
    for step in migrate(folder):
        before = f"version {step.before}" if step.before else "no tables"
        words = "is up to date" if step.before == step.now else f"brought up from {before}"
        say(f"{step.name}: version {step.now}, {words}\n")
    return DONE


def _place(folder: LedgerFolder) -> str:
    return "sqlite" if folder.store is None else place_of(folder.store)
