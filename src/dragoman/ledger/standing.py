"""The standing of quotas: what is spent and reserved of each account now, by the ledger and the counters."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, final

import msgspec

from dragoman.config.quotas import EACH, Quota, quota_fields, read_scope, render_amount
from dragoman.errors import ConfigError
from dragoman.ledger.counting import read_totals, read_used
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import CountersAway, StoreAway
from dragoman.ledger.limits.accounts import Accounts, Charge, Scopes
from dragoman.money import render_usd


@final
class Standing(msgspec.Struct, frozen=True):
    """The standing of one account.

    Attributes:
        used: spent and reserved, in nano-dollars, tokens or requests; None if it cannot be told now. For accounts that
            stand in no row it includes what workers have leased ahead.
    """

    charge: Charge
    used: int | None

    @property
    def left(self) -> int | None:
        """What may still be used, never less than 0."""
        return None if self.used is None else max(0, self.charge.limit - self.used)


def read_standings(folder: LedgerFolder, quotas: Iterable[Quota], scopes: Scopes, *, now: float) -> list[Standing]:
    """Return the standings of all quotas that apply to these scopes."""
    charges = Accounts(quotas).charges(scopes, now)
    counted = [charge.account for charge in charges if not charge.quota.is_recorded]
    try:
        totals: dict[int, int] | None = read_totals(folder, counted)
    except CountersAway:
        totals = None
    recorded = [charge.account for charge in charges if charge.quota.is_recorded]
    try:
        used = read_used(folder, recorded) if recorded else {}
    except CountersAway as problem:
        raise StoreAway(str(problem)) from None
    return [
        Standing(charge, used[charge.account] if charge.account in used else _counted(charge, totals))
        for charge in charges
    ]


def read_scope_standings(folder: LedgerFolder, quotas: Iterable[Quota], scope: str, *, now: float) -> list[Standing]:
    """Return the standings of the quotas of one scope, written as `team:research` or `all`.

    Raises:
        ConfigError: it is no scope, or not of one value.
        StoreAway, OSError: the ledger cannot be read.
    """
    kind, value = read_scope(scope, "scope")
    if value.endswith(EACH):
        raise ConfigError(f"scope: expected one of them, as key:ci, got {scope[:80]!r}")
    name, _, label = value.partition("=")
    scopes = Scopes(labels={name: label}) if kind == "label" else Scopes()
    if kind not in ("label", "all"):
        scopes = msgspec.convert({kind: value}, Scopes)
    return read_standings(folder, [quota for quota in quotas if quota.scope == kind], scopes, now=now)


def standing_fields(standing: Standing) -> dict[str, Any]:
    """Return an account's standing in JSON."""
    charge, unit = standing.charge, standing.charge.quota.unit

    def shown(amount: int | None) -> str | None:
        if amount is None:
            return None
        return render_usd(amount) if unit == "usd" else render_amount(unit, amount)

    until = None
    if charge.until != float("inf"):
        until = datetime.fromtimestamp(charge.until, UTC).strftime("%Y-%m-%d %H:%M UTC")
    fields = {**quota_fields(charge.quota), "value": charge.value}
    return {**fields, "used": shown(standing.used), "left": shown(standing.left), "until": until}


def _counted(charge: Charge, totals: dict[int, int] | None) -> int | None:
    return None if totals is None else totals.get(charge.account, 0)
