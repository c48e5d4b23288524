"""`/admin/v1/usage`, `attempts`, `adjustments`, `audit` and `ledger`: spend and changes."""

from __future__ import annotations

import contextlib
import time
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, final

import msgspec

from dragoman import _json
from dragoman.gateway.administration.ledger_access import PATIENCE, Desk, actor, no_such, told
from dragoman.gateway.administration.requests import AdminRefusal, Asked, NoFields, answer
from dragoman.gateway.messages import Answer
from dragoman.ledger.counting import correct_counters
from dragoman.ledger.folder import place_of
from dragoman.ledger.interfaces import CountersAway
from dragoman.ledger.reports.checking import list_journals
from dragoman.ledger.reports.exporting import csv_line
from dragoman.ledger.reports.listing import PICKED_BY, list_attempts, list_audit, team_of
from dragoman.ledger.reports.usage import GROUPINGS, read_usage
from dragoman.ledger.stores.opening import open_reading, open_store
from dragoman.ledger.stores.schema import SUMS
from dragoman.ledger.times import read_moment
from dragoman.money import correction_from_usd

_MOST: Final = 1_000
_TOKEN: Final = 200
_ID: Final = 16
_CSV: Final = "text/csv; charset=utf-8"
_NO_STORE: Final = {"cache-control": "no-store"}


@final
class UsageQuery(msgspec.Struct, forbid_unknown_fields=True, rename={"since": "from", "until": "to"}):
    """A query for spend. `group`: comma-separated names of `GROUPINGS`; `from`, `to`: a span before now or a day."""

    group: str = "target"
    since: str = ""
    until: str = ""
    format: Literal["json", "csv"] = "json"


Limit = Annotated[int, msgspec.Meta(ge=1, le=_MOST)]


@final
class AttemptsQuery(msgspec.Struct, forbid_unknown_fields=True, rename={"since": "from", "until": "to"}):
    """A query for attempts. `cursor`: that of the previous page."""

    since: str = ""
    until: str = ""
    key: str = ""
    owner: str = ""
    team: str = ""
    route: str = ""
    target: str = ""
    state: str = ""
    limit: Limit = 100
    cursor: str = ""


@final
class AuditQuery(msgspec.Struct, forbid_unknown_fields=True):
    """A query for the audit. `cursor`: that of the previous page."""

    limit: Limit = 100
    cursor: Annotated[int, msgspec.Meta(ge=1, le=1 << 62)] | None = None


@final
class Adjustment(msgspec.Struct, forbid_unknown_fields=True):
    """A correction. `usd`: US dollars by which the cost grows, or shrinks if negative; at most 9 decimal places."""

    attempt: str
    usd: Decimal
    reason: str


def show_usage(desk: Desk, asked: Asked, query: UsageQuery) -> Answer:
    """Sum up what was spent."""
    by = [name.strip() for name in query.group.split(",") if name.strip()]
    wrong = [name for name in by if name not in GROUPINGS]
    if wrong or len(set(by)) < len(by):
        expected = f"some of {', '.join(GROUPINGS)}, each once"
        raise AdminRefusal(400, "bad_query", f"query.group: expected {expected}, got {query.group[:80]!r}")
    since, until = _bounds(query.since, query.until)
    with told():
        found = read_usage(desk.folder, by, since=since, until=until, team=asked.granter.team or None)
    if query.format == "csv":
        lines = [csv_line((*by, *SUMS)), *(csv_line((*each.group, *_sums(each).values())) for each in found)]
        return Answer(200, "".join(lines).encode(), _CSV, _NO_STORE)
    return answer({"usage": [{**dict(zip(by, each.group, strict=True)), **_sums(each)} for each in found]})


def show_attempts(desk: Desk, asked: Asked, query: AttemptsQuery) -> Answer:
    """List attempts, the newest first. `cursor` in the answer leads to the next page."""
    since, until = _bounds(query.since, query.until)
    picked = {name: value for name in PICKED_BY if (value := getattr(query, name))}
    if asked.granter.team and picked.setdefault("team", asked.granter.team) != asked.granter.team:
        return answer({"attempts": [], "cursor": None})
    before = {"before": _id(query.cursor, "query.cursor")} if query.cursor else {}
    with told():
        found = list_attempts(
            desk.folder, picked, since=since, until=until, limit=query.limit, patience=PATIENCE, **before
        )
    return answer({"attempts": found, "cursor": found[-1]["id"] if len(found) == query.limit else None})


def adjust(desk: Desk, asked: Asked, given: Adjustment) -> Answer:
    """Correct what an attempt cost. Once for each `Idempotency-Key`."""
    token = asked.head.headers.get("idempotency-key", "")
    if not token or len(token) > _TOKEN or not token.isascii() or not token.isprintable():
        raise AdminRefusal(400, "bad_idempotency_key", f"idempotency-key: expected 1 to {_TOKEN} printable characters")
    attempt, reason = _id(given.attempt, "attempt"), given.reason.strip()
    nano = correction_from_usd(given.usd)
    if nano is None or not nano:
        words = f"usd: expected US dollars other than 0, with nine decimal places at most, got {str(given.usd)[:40]}"
        raise AdminRefusal(422, "bad_amount", words)
    if not reason or len(reason) > _TOKEN or not reason.isprintable():
        raise AdminRefusal(422, "bad_reason", f"reason: expected 1 to {_TOKEN} printable characters")
    with told():
        team = team_of(desk.folder, attempt, patience=PATIENCE)
        if team is None or (asked.granter.team and team != asked.granter.team):
            raise no_such("attempt", given.attempt)
        store = open_store(desk.folder)
        try:
            is_new = store.adjust(attempt, nano, reason=reason, actor=actor(asked), token=token)
            with contextlib.suppress(CountersAway):  # then the shipper does it within a minute
                correct_counters(desk.folder, store.accounts_of(attempt))
        finally:
            store.close()
    return answer({"attempt": given.attempt, "is_new": is_new}, status=201 if is_new else 200)


def show_audit(desk: Desk, asked: Asked, query: AuditQuery) -> Answer:
    """List who changed what, the newest first."""
    _refuse_team(asked, "the audit")
    with told():
        found = list_audit(desk.folder, before=query.cursor, limit=query.limit, patience=PATIENCE)
    entries = [
        {"id": id, "at": at, "actor": actor, "action": action, "subject": subject, "change": _json.decode(change)}
        for id, at, actor, action, subject, change in found
    ]
    return answer({"entries": entries, "cursor": found[-1][0] if len(found) == query.limit else None})


def show_ledger(desk: Desk, asked: Asked, _: NoFields) -> Answer:
    """Show where the ledger stands, and what waits for it in the journals of this machine."""
    _refuse_team(asked, "the ledger's state")
    journals = list_journals(desk.folder)
    months: dict[str, int] | None = None
    with contextlib.suppress(AdminRefusal), told(), open_reading(desk.folder, patience=PATIENCE) as reading:
        months = reading.sizes()
    return answer(
        {
            "store": "sqlite" if desk.folder.store is None else place_of(desk.folder.store),
            "is_away": months is None,
            "waiting": sum(journal.waiting for journal in journals),
            "going_on": sum(journal.going_on for journal in journals),
            "journal_bytes": sum(journal.size for journal in journals),
            "journals": [msgspec.structs.asdict(journal) for journal in journals],
            "months": months,
        }
    )


# ---------------------------------------------------------------- inside


def _sums(used: Any) -> dict[str, int]:
    return {name: getattr(used, name) for name in SUMS}


def _bounds(since: str, until: str) -> tuple[float, float | None]:
    now = time.time()
    found: list[float | None] = []
    for name, word in (("from", since), ("to", until)):
        try:
            found.append(read_moment(word, now) if word else None)
        except (ValueError, OverflowError) as problem:
            raise AdminRefusal(400, "bad_query", f"query.{name}: {problem}") from None
    return max(found[0] or 0.0, 0.0), found[1]


def _id(text: str, where: str) -> bytes:
    try:
        id = bytes.fromhex(text.replace("-", "")) if text.isascii() and len(text) <= 36 else b""
    except ValueError:
        id = b""
    if len(id) != _ID:
        raise AdminRefusal(400, "bad_id", f"{where}: expected 32 hexadecimal digits, got {text[:40]!r}")
    return id


def _refuse_team(asked: Asked, what: str) -> None:
    if asked.granter.team:
        raise AdminRefusal(403, "beyond_bounds", f"{what} tells of all teams, and this admin key has one")
