"""How quotas stand: what is used and set apart of each account now, by the ledger and the counters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import msgspec

from dragoman.config.quotas import Quota
from dragoman.ledger.accounts import Accounts, Charge, Scopes
from dragoman.ledger.counting import read_totals, read_used
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import CountersAway, StoreAway


@final
class Standing(msgspec.Struct, frozen=True):
    """One account. `used`: spent and set apart, in nano-dollars, tokens or requests; what stands in no row counts with
    what workers hold ahead of it. None: it cannot be told now."""

    charge: Charge
    used: int | None

    @property
    def left(self) -> int | None:
        """What may still be used, never less than 0."""
        return None if self.used is None else max(0, self.charge.limit - self.used)


def read_standings(folder: LedgerFolder, quotas: Iterable[Quota], scopes: Scopes, *, now: float) -> list[Standing]:
    """Of all quotas that hold for these scopes.

    Raises:
        StoreAway, OSError: the ledger cannot be read.
    """
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


def _counted(charge: Charge, totals: dict[int, int] | None) -> int | None:
    return None if totals is None else totals.get(charge.account, 0)
