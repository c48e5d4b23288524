"""The column values that every store writes for a row and a correction."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from msgspec.structs import astuple

from dragoman import _json
from dragoman.ledger.interfaces import Refused
from dragoman.ledger.journal.records import Intent, Row, Settlement
from dragoman.money import render_usd

#: What somebody did: when (microseconds), who, what, to whom, and the change in JSON.
Noted: TypeAlias = tuple[int, str, str, str, str]
#: An entry that corrects an attempt, as it stands in a store: its id, the attempt's, nano-dollars, whether it prices
#: what was unpriced, why, who, when.
Correction: TypeAlias = tuple[bytes, bytes, int, int, str, str, int]


def audit_digest(previous: bytes, entry: tuple[int, int, str, str, str, str]) -> bytes:
    """Return the digest of an audit entry: SHA-256 over the previous digest and the entry's fields."""
    return hashlib.sha256(previous + _json.encode(list(entry))).digest()


def chained(last: tuple[int, bytes], entries: Iterable[Noted]) -> list[tuple[object, ...]]:
    """Return the audit rows that follow the last one, `(id, digest)`."""
    rows: list[tuple[object, ...]] = []
    number, previous = last
    for at, actor, action, subject, text in entries:
        number += 1
        digest = audit_digest(previous, (number, at, actor, action, subject, text))
        rows.append((number, at, actor, action, subject, text, previous, digest))
        previous = digest
    return rows


def derived_id(attempt: bytes, what: str) -> bytes:
    """Return an id derived from the attempt's id and a text, so that repeating the same gives the same id."""
    return hashlib.sha256(attempt + what.encode("utf-8", "replace")).digest()[:16]


def adjustment_id(attempt: bytes, nano: int, *, reason: str, actor: str, token: str) -> bytes:
    """Return a correction's id. A repeated correction has the same id: by its token or, without one, by all its
    fields.
    """
    return derived_id(attempt, f"token {actor} {token}" if token else f"{nano} {actor} {reason}")


def check_repeated(stored: tuple[int, str], nano: int, reason: str) -> None:
    """Check that a correction is the same as the stored one, `(nano, reason)`.

    Raises:
        Refused: it is another one with the same token.
    """
    if stored != (nano, reason):
        raise Refused("expected an idempotency key of its own: another correction of this attempt has it")


def check_credit(cost: int, nano: int) -> None:
    """Check that a correction does not make an attempt's cost negative: that would be budget that no one granted.

    Raises:
        Refused: it does.
    """
    if nano < 0 and cost + nano < 0:
        raise Refused(f"the attempt cost {render_usd(cost)} US dollars: expected a credit of no more")


@lru_cache(maxsize=1_024)
def joined(accounts: tuple[int, ...]) -> str:
    """Return accounts as a column's text. Cached, because most attempts have the same accounts."""
    return ",".join(map(str, accounts))


def row_values(row: Row) -> tuple[object, ...]:
    """Return an attempt's values in the order of `schema.COLUMNS`."""
    intent = row.intent
    accounts = joined(intent.accounts)
    head = (
        intent.id, intent.request, intent.ordinal, row.holder, intent.started, intent.key, intent.owner, intent.team,
        intent.route, intent.target, intent.size, accounts, intent.reserved, intent.expected, intent.client_request,
        intent.reserved_tokens,
    )  # fmt: skip
    return head + (OPEN_VALUES if row.settlement is None else ending_values(row.settlement))


def read_row(values: Sequence[Any]) -> Row:
    """Return the attempt that `row_values` wrote."""
    id, request, ordinal, holder, started, key, owner, team, route, target, size, accounts = values[:12]
    reserved, expected, client_request, reserved_tokens = values[12:16]
    charged = tuple([int(account) for account in accounts.split(",")]) if accounts else ()
    intent = Intent(
        id, request, ordinal, started, key, owner, team, route, target, size, reserved, expected, charged,
        client_request, reserved_tokens,
    )  # fmt: skip
    ended, state, *tokens, reported, reason, status, provider_request, charged_tokens = values[16:]
    if state == "reserved":
        return Row(holder, intent)
    given = (*tokens, bool(reported), reason, status, provider_request, charged_tokens)
    return Row(holder, intent, Settlement(id, ended, state, *given))


#: In place of `ending_values` while it goes on.
OPEN_VALUES: Final = (None, "reserved", None, None, None, None, None, None, None, False, "", None, "", None)


def ending_values(end: Settlement) -> tuple[Any, ...]:
    """Return what a settlement sets, in the order of `schema.SETTLED`: its fields behind the id."""
    return astuple(end)[1:]
