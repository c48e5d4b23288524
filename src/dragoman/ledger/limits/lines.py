"""One worker's state of one account, beside its lease. No I/O, no clock."""

from __future__ import annotations

from typing import Final, final

import msgspec

from dragoman.ledger.limits.accounts import Charge
from dragoman.ledger.limits.leases import LEASE_SECONDS, Balance

#: Seconds after the last call until what was set apart since is told, where nothing else is to tell: who seems silent
#: (`leases.SILENT_SECONDS`) has what it told.
TOLD_AFTER: Final = LEASE_SECONDS / 2


@final
class Line(msgspec.Struct):
    """The state.

    Attributes:
        asked, used: the time of the last call of the counters, and what was used then.
        others, told: at the last answer, what all other holders had and what this worker had reported.
        part: this worker's part of the overdraft at the last answer; None: the counters never answered.
        leased: what was used within leases before an overdraft began; None: there was none since that answer.
        alert_at: the amount at which the next alert is logged.
        refused, refused_until: the amount that did not fit, and how long this refusal is reused.
        is_unheard: no answer came to the last call, so what the counters know is not `told`.
    """

    charge: Charge
    balance: Balance
    alert_at: float
    asked: float = 0.0
    used: int = 0
    others: int = 0
    told: int = 0
    part: int | None = None
    leased: int | None = None
    refused: int = 0
    refused_until: float = 0.0
    is_unheard: bool = False

    def raise_ceiling(self) -> None:
        """Let the lease be used without a further look, until it ends, an alert is near, or the limit is."""
        balance = self.balance
        is_looked_at = balance.is_tight or not balance.until
        balance.ceiling = -1 if is_looked_at else min(balance.held, self.alert_at - self.others - 1)

    def is_due(self, now: float, *, is_shared: bool) -> bool:
        """Return whether the counters may know less than the worker uses, for too long.

        No row tells of a concurrent request. On shared counters a silent worker loses its place when its machine does
        not reach the store.
        """
        if not self.balance.is_idle or now < self.asked + TOLD_AFTER:
            return False
        holds_place = is_shared and self.charge.quota.unit == "concurrent" and self.balance.reserved > 0
        return holds_place or self.is_unheard or self.balance.used != self.told
