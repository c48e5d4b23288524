"""Quotas of the gateway: how much all, a team, a key, an owner, a label, a route or a target may use.

set SCOPE AMOUNT   US dollars in a period: `budget set key:ci 50/month`; --unit tokens, requests, or concurrent (without
                   a period); it holds within a second; what was used while it held, at any amount, counts
remove SCOPE       remove it; with --unit, --per and --zone where the scope has several
list               those of the configuration's file and those of the ledger
show SCOPE         how it stands: what is used and set apart, what is left, until when
"""

from __future__ import annotations

import argparse
import contextlib
import re
import time
from decimal import Decimal
from typing import Any, Final, get_args

import msgspec

from dragoman.cli.body_input import write_json
from dragoman.cli.ledger_input import actor, folder_of, ledger_errors
from dragoman.cli.main import DONE
from dragoman.cli.settings import add_config, load_settings
from dragoman.cli.terminal import hint, say
from dragoman.config import Config, Quota, QuotaConfig
from dragoman.config.ledger import check_amounts
from dragoman.config.quotas import UTC_NAME, Period, Unit, quota_fields, read_quota
from dragoman.errors import ConfigError, UsageError
from dragoman.ledger.interfaces import Missing
from dragoman.ledger.keys import KeyBook
from dragoman.ledger.limits.quotas import QuotaBook, merged
from dragoman.ledger.standing import read_scope_standings, standing_fields

EXAMPLE = "  dragoman budget set team:research 500/month --zone Europe/Berlin"

_ACTIONS: Final = ("set", "remove", "list", "show")
_UNITS: Final[tuple[Unit, ...]] = get_args(Unit)
_PERIODS: Final[tuple[Period, ...]] = get_args(Period)
_NUMBER: Final = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")
_NEGATIVE: Final = re.compile(r"-[0-9.]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser._negative_number_matcher = _NEGATIVE  # `-1/month` is a wrong amount, and no unknown option
    add_config(parser)
    parser.add_argument("action", choices=_ACTIONS, metavar="|".join(_ACTIONS), help="what to do")
    parser.add_argument(
        "scope",
        nargs="?",
        metavar="SCOPE",
        help="set, remove, show: all, team:NAME, key:NAME, key:*, owner:, label:, …",
    )
    parser.add_argument("amount", nargs="?", metavar="AMOUNT", help="set: 500/month, 20/day, 1000000/hour; 8")
    parser.add_argument("--unit", choices=_UNITS, help="set, remove: what is counted (default: usd)")
    parser.add_argument("--per", choices=_PERIODS, help="remove: of this period")
    parser.add_argument("--zone", metavar="ZONE", help="set: whose midnight it is (default: UTC); remove: of this zone")
    aside = "set: what each attempt sets aside, the most it may use or what is expected of it (default: bound)"
    parser.add_argument("--reserve", choices=["bound", "expected"], default="bound", help=aside)
    unpriced = "set: what becomes of requests to targets without a price (default: refuse)"
    parser.add_argument("--unpriced", choices=["refuse", "allow"], default="refuse", help=unpriced)
    outage = "set: what becomes of requests while nothing can count them (default: refuse)"
    parser.add_argument("--on-outage", choices=["refuse", "serve"], default="refuse", help=outage)
    parser.add_argument("--overdraft", metavar="N", help="set: beside --on-outage serve: how much all may use then")
    parser.add_argument("--json", action="store_true", help="list, show: print a JSON object a line")


def run(options: argparse.Namespace) -> int:
    """Run the action."""
    config = load_settings(options)
    if config.server.state is None or not config.ledger.enabled:
        raise ConfigError("expected a ledger to count by: server.state, and ledger.enabled")
    if options.action != "list" and options.scope is None:
        raise UsageError(f"{options.action}: expected a scope, like team:research or all")
    with ledger_errors("budget"), contextlib.closing(QuotaBook(folder_of(config), actor=actor())) as book:
        match options.action:
            case "set":
                _set(book, config, options)
            case "remove":
                _remove(book, config, options)
            case "list":
                _list(book, config, as_json=options.json)
            case _:
                _show(book, config, options)
    return DONE


def _set(book: QuotaBook, config: Config, options: argparse.Namespace) -> None:
    unit: Unit = options.unit or "usd"
    number, _, per = (options.amount or "").partition("/")
    if (unit == "concurrent") == bool(per) or (per and per not in _PERIODS):
        form = "a number alone" if unit == "concurrent" else "an amount and a period, like 500/month"
        raise UsageError(f"set: expected {form}, got {(options.amount or 'nothing')[:40]!r}")
    fields: dict[str, Any] = {unit: _number(number, unit)}
    if options.overdraft is not None:
        fields["overdraft"] = _number(options.overdraft, unit)
    period = next((name for name in _PERIODS if name == per), None)
    table = QuotaConfig(
        options.scope, per=period, zone=options.zone or UTC_NAME, reserve=options.reserve, unpriced=options.unpriced,
        on_outage=options.on_outage,
    )  # fmt: skip
    quota = _checked(msgspec.structs.replace(table, **fields))
    if quota.name in {each.name for each in config.quotas}:
        raise UsageError(f"set: the configuration's file has a quota for {quota.name}, which stands over this one")
    if config.ledger.counters is not None:
        check_amounts((quota,))
    before = book.set(quota)
    hint(f"{quota.name}: {'' if before is None else f'{before.shown}, now '}{quota.shown}\n")
    _warn_of_scope(quota, config)


def _warn_of_scope(quota: Quota, config: Config) -> None:
    """Warn if no key has the name in a quota's scope: it may be misspelt."""
    kind, _, name = quota.place.partition(":")
    if kind != "key" or name == "*" or name in config.virtual_keys:
        return
    with contextlib.closing(KeyBook(folder_of(config), actor=actor())) as book:
        if name not in {key.name for key in (*book.list(), *book.of_machine())}:
            hint(f"there is no key {name} yet; the quota waits for it\n")


def _number(text: str, unit: Unit) -> Decimal | int:
    if not _NUMBER.fullmatch(text) or (unit != "usd" and not text.isdecimal()):
        form = "digits, like 500 or 0.25" if unit == "usd" else "digits"
        raise UsageError(f"set: expected a number of {unit} in {form}, got {text[:40]!r}")
    return Decimal(text) if unit == "usd" else int(text)


def _checked(table: QuotaConfig) -> Quota:
    try:
        return read_quota(table, "set")
    except ConfigError as problem:
        raise UsageError(str(problem)) from None


def _remove(book: QuotaBook, config: Config, options: argparse.Namespace) -> None:
    found = [
        quota
        for quota in (*book.list(), *book.of_machine())
        if quota.place == options.scope
        and options.unit in (None, quota.unit)
        and (options.per in (None, quota.per) or quota.unit == "concurrent")
        and options.zone in (None, quota.zone)
    ]
    if len(found) != 1:
        names = ", ".join(quota.name for quota in found)
        none = f"there is none for {options.scope}; dragoman budget list shows all"
        if any(quota.place == options.scope for quota in config.quotas):
            none = f"there is none for {options.scope} but the one in {config.path}: change it there"
        raise Missing(f"{options.scope} has several, say --unit, --per, --zone: {names}" if found else none)
    book.remove(found[0])


def _list(book: QuotaBook, config: Config, *, as_json: bool) -> None:
    stored = merged(config.quotas, book.list())
    quotas = merged(stored, book.of_machine())
    for number, quota in enumerate(quotas):
        place = "file" if number < len(config.quotas) else "ledger" if number < len(stored) else "machine"
        if as_json:
            write_json({**quota_fields(quota), "from": place})
        else:
            zone = "" if quota.zone == "UTC" else f"  {quota.zone}"
            say(f"{quota.place}  {quota.shown} {quota.unit}{zone}  {quota.reserve}  ({place})\n")
    if not quotas:
        hint("there are no budgets: dragoman budget set SCOPE AMOUNT/month sets one\n")


def _show(book: QuotaBook, config: Config, options: argparse.Namespace) -> None:
    quotas = merged(config.quotas, book.list(), book.of_machine())
    try:
        found = read_scope_standings(folder_of(config), quotas, options.scope, now=time.time())
    except ConfigError as problem:
        raise UsageError(f"show: {problem}") from None
    for standing in found:
        if options.json:
            write_json(standing_fields(standing))
            continue
        fields = standing_fields(standing)
        until = f", until {fields['until']}" if fields["until"] else ""
        say(f"{standing.charge.quota.shown} {fields['unit']}: {fields['used']} used, {fields['left']} left{until}\n")
    if not found:
        hint(f"there is no quota for {options.scope}; one of a wider scope may hold: dragoman budget list\n")
