"""How quotas stand: what is used and set apart of each account now, by the ledger and the counters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

import msgspec

from dragoman.config.quotas import Quota
from dragoman.ledger.accounts import Accounts, Charge, Scopes
from dragoman.ledger.counters.sqlite import COUNTERS_FILE
from dragoman.ledger.counting import open_counters
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import CountersAway
from dragoman.ledger.seeding import read_seed


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
    totals: dict[int, int] | None = {}
    if counted and (folder.root / COUNTERS_FILE).exists():
        counters = open_counters(folder)
        try:
            totals = counters.totals(counted)
        except CountersAway:
            totals = None
        finally:
            counters.close()
    return [Standing(charge, _used(folder, charge, totals)) for charge in charges]


def _used(folder: LedgerFolder, charge: Charge, totals: dict[int, int] | None) -> int | None:
    if not charge.quota.is_recorded:
        return None if totals is None else totals.get(charge.account, 0)
    return read_seed(folder, charge.account).total
