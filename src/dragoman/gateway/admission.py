"""Apply quotas to one request: which ones apply, what is reserved before each attempt, and how a refusal is
reported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, final

import msgspec

from dragoman.config import Quota
from dragoman.config.quotas import render_amount
from dragoman.events import Failure
from dragoman.gateway.attempt_bounds import bound_of, expected_of, has_text
from dragoman.gateway.telemetry.pricing import Pricing
from dragoman.http.response import NotAsked
from dragoman.ledger.limits.accounts import (
    LIKELY_COST,
    LIKELY_TOKENS,
    MOST_COST,
    Accounts,
    Charge,
    Charges,
    Need,
    Row,
    Scopes,
)
from dragoman.ledger.limits.budgets import Budgets, Refusal
from dragoman.providers.endpoint import Outgoing
from dragoman.routing.target import Target
from dragoman.types import Usage

#: Seconds after which one of several at a time may have ended.
_SOON: Final = 1.0
#: Of an attempt that no quota charges.
_NO_COSTS: Final = (0, 0, 0, 0, 1)


class Admission:
    """The quotas of a gateway's worker. `budgets`: what this worker may admit. `accounts`: the quotas."""

    __slots__ = ("_alerted", "_pricing", "_tell", "accounts", "budgets")

    def __init__(self, budgets: Budgets, pricing: Pricing, *, tell: Callable[[str], None]) -> None:
        """Create it. `tell` is called with a line for each alert."""
        self.budgets = budgets
        self.accounts = Accounts(())
        self._pricing = pricing
        self._tell = tell
        self._alerted: dict[int, float] = {}  # by account, the highest share that was told

    def take(self, quotas: Iterable[Quota]) -> None:
        """Apply these quotas from now on. What was used stays used."""
        self.accounts = Accounts(quotas)
        if any(quota.unit == "usd" for quota in self.accounts.quotas):
            self._pricing.load()  # it takes half a second, once, which the first request should not wait for

    def bound(self, target: Target, bound: Usage) -> int | None:
        """Return the most that a usage may cost in nano-dollars, or None if no price is known."""
        return 0 if target.provider.local else self._pricing.most(target.name, bound)

    def lacking(self, target: Target, usage: Usage) -> str:
        """Return which prices are missing where `bound` knows none."""
        return self._pricing.lacking(target.name, usage)

    def alert(self, charge: Charge, total: int) -> None:
        """Log, once for each alert of a quota, that an account has reached it."""
        quota = charge.quota
        reached = max(share for share, amount in zip(quota.alerts, charge.alerts, strict=True) if total >= amount)
        if reached > self._alerted.get(charge.account, 0.0):
            if len(self._alerted) > 10_000:
                self._alerted.clear()
            self._alerted[charge.account] = reached
            place = f"{quota.scope}:{charge.value}" if charge.value else quota.scope
            self._tell(f"{reached:.0%} of the quota of {place} ({quota.shown} {quota.unit}) is used or set apart")


@final
class Apart(msgspec.Struct, frozen=True, gc=False):
    """The reservation for an attempt. None: nothing of it counts.

    Attributes:
        reserved: nano-dollars.
        expected: what it costs if its end is never known.
        reserved_tokens: the same in tokens.
        accounts: the accounts that it is charged to.
        most, most_tokens: its bound of cost and tokens; None if unknown, or if no such quota applies.
        bounds_usd, bounds_tokens: a quota that applies reserves the bound.
        tier: the service tier that the request names; None if nothing looked for it.
    """

    reserved: int | None = None
    expected: int | None = None
    reserved_tokens: int | None = None
    accounts: tuple[int, ...] = ()
    most: int | None = None
    most_tokens: int | None = None
    bounds_usd: bool = False
    bounds_tokens: bool = False
    tier: str | None = None


NOTHING_APART: Final = Apart()


@final
class RequestLimits:
    """The quotas of one client request.

    Attributes:
        apart: the reservation of the current attempt.
        amounts: the same by account, behind what counts once for the request; None between attempts.
    """

    __slots__ = ("_admission", "_begun", "_row", "_scopes", "amounts", "apart")

    def __init__(self, admission: Admission, scopes: Scopes) -> None:
        """Create it. `scopes` lack a route and a target."""
        self._admission = admission
        self._scopes = scopes
        self._begun: tuple[Need, ...] = ()  # what counts once for the client's request
        self._row: Row | None = None  # of the current attempt
        self.amounts: tuple[int, ...] | None = None
        self.apart = NOTHING_APART

    def admit(self, target: Target, route: str, outgoing: Outgoing) -> None:
        """Reserve what an attempt may cost. Raises `NotAsked`: a quota refuses it."""
        admission = self._admission
        charges = admission.accounts.of_request(self._scopes, route, target.name, time.time())
        costly = charges.costly
        self.apart, costs = self._costs(charges, target, outgoing) if costly else (NOTHING_APART, _NO_COSTS)
        budgets, row, amounts = admission.budgets, charges.row, charges.pick(costs)
        if self._begun:
            begun = {_counting(need) for need in self._begun}
            once = tuple([need for need in charges.once if _counting(need) not in begun])
            refusal = budgets.admit([*once, *row.needs(amounts)[len(charges.once) :]])
        else:
            once = charges.once
            refusal = budgets.admit_row(row, amounts)
        if refusal is not None:
            raise NotAsked(told(refusal))
        self._begun += once
        self._row, self.amounts = row, amounts
        while budgets.reached:
            charge = budgets.reached.pop()
            admission.alert(charge, budgets.total(charge))

    def _costs(self, charges: Charges, target: Target, outgoing: Outgoing) -> tuple[Apart, tuple[int, ...]]:
        """Return the reservation, and what `Charges.pick` picks from."""
        body, known = outgoing.body, target.limits
        answers, limits = has_text(outgoing.url), target.protocol.output_limits
        bound = bound_of(
            body,
            limits,
            max_output=known.max_output,
            context=known.context,
            answers=answers,
            fields=outgoing.fields,
            marks_cache=target.protocol.marks_cache or target.dialect.supports_cache_control,
        )
        most, tokens = self._admission.bound(target, bound), (bound.input or 0) + (bound.output or 0)
        if charges.expects:
            return self._expected(charges, target, expected_of(body, bound), most, tokens)
        if most is None:
            self._check_priced(charges, target, bound, most, most)
        cost = most or 0
        has_usd, has_tokens = charges.has_usd, charges.has_tokens
        reserved, expected, reserved_tokens = cost if has_usd else None, most if has_usd else None, None
        if has_tokens:
            reserved_tokens = tokens
        tier = "" if bound.apart is None else bound.apart.tier
        apart = Apart(reserved, expected, reserved_tokens, charges.recorded, most, tokens, has_usd, has_tokens, tier)
        return apart, (cost, 0, tokens, 0, 1)

    def _expected(
        self, charges: Charges, target: Target, usual: Usage, most: int | None, tokens: int
    ) -> tuple[Apart, tuple[int, ...]]:
        """Return the reservation for quotas that reserve the likely cost.

        The request will likely use `usual`, costs `most` at most and uses at most `tokens`.
        """
        likely, usual_tokens = self._admission.bound(target, usual), (usual.input or 0) + (usual.output or 0)
        if most is None or likely is None:
            self._check_priced(charges, target, usual, most, likely)
        amounts = (most or 0, likely or 0, tokens, usual_tokens, 1)
        reserved = expected = reserved_tokens = None
        if charges.has_usd:
            reserved, expected = max(amounts[MOST_COST], amounts[LIKELY_COST]), most
        elif LIKELY_COST in charges.parts:
            reserved, expected = amounts[LIKELY_COST], likely
        if charges.has_tokens:
            reserved_tokens = max(tokens, usual_tokens)
        elif LIKELY_TOKENS in charges.parts:
            reserved_tokens = usual_tokens
        has_usd, has_tokens = charges.has_usd, charges.has_tokens
        tier = "" if usual.apart is None else usual.apart.tier
        apart = Apart(reserved, expected, reserved_tokens, charges.recorded, most, tokens, has_usd, has_tokens, tier)
        return apart, amounts

    def _check_priced(
        self, charges: Charges, target: Target, usage: Usage, most: int | None, likely: int | None
    ) -> None:
        """Raise NotAsked if what a quota counts is unknown, and the quota refuses that."""
        for charge, part in charges.costly:
            is_unpriced = (part == MOST_COST and most is None) or (part == LIKELY_COST and likely is None)
            if is_unpriced and charge.quota.unpriced == "refuse":
                raise NotAsked(_unpriced(charge, target, self._admission.lacking(target, usage)))

    def charged(self, target: Target, usage: Usage, nano: int | None, *, may_go_on: bool) -> tuple[int | None, int]:
        """Return what an answered attempt is charged in nano-dollars and tokens.

        That is the known usage. If a quota bounds it, it is the bound if its provider may continue to its limit,
        reports nothing, or impossible figures. If its cost is not known, it is the most that its usage may cost, or
        the reservation.
        """
        apart, tokens = self.apart, (usage.input or 0) + (usage.output or 0)
        if nano is None and apart.reserved:
            nano = self._admission.bound(target, usage)
            nano = apart.reserved if nano is None else nano
        if may_go_on and apart.bounds_usd and apart.reserved:
            nano = max(nano or 0, apart.reserved)
        if may_go_on and apart.bounds_tokens:
            tokens = max(tokens, apart.reserved_tokens or 0)
        return nano, tokens

    def settle(self, nano: int | None, tokens: int) -> None:
        """Settle the current attempt, if there is one."""
        amounts, self.amounts = self.amounts, None
        if amounts and self._row is not None:
            self._admission.budgets.settle_row(self._row, amounts, nano or 0, tokens)

    def close(self) -> None:
        """End the client's request."""
        if self.amounts is not None:
            self.settle(0, 0)
        begun, self._begun = self._begun, ()
        for need in begun:
            if not need.is_used:  # one of several at a time
                self._admission.budgets.settle(need, 0)


def _counting(need: Need) -> tuple[str, ...]:
    """Return what counts a client's request, whatever the period: a later attempt takes nothing of the next one."""
    quota = need.charge.quota
    return quota.scope, need.charge.value, quota.unit, quota.per


def told(refusal: Refusal) -> Failure:
    """Return a refusal as a failure: 402 for spent money, which no try brings back; 429 for requests or tokens."""
    charge, quota = refusal.charge, refusal.charge.quota
    place = f"{quota.scope} {charge.value}" if charge.value else "this gateway"
    if refusal.cause != "spent":
        words = "cannot be asked now" if refusal.cause == "away" else "are being counted again"
        return Failure("overloaded", f"the quotas of this gateway {words}", 503, _SOON, code=f"quota_{refusal.cause}")
    amount = render_amount(quota.unit, quota.amount)
    if quota.unit == "concurrent":
        words = f"the limit of {place} is reached: {amount} requests at a time"
        return Failure("rate", words, 429, _SOON, code="limit_reached")
    per = "in all" if quota.per == "total" else f"a {quota.per}"
    if quota.unit == "usd" or quota.per == "total":
        unit = "US dollars" if quota.unit == "usd" else quota.unit
        words = (
            f"the budget of {place} is spent, or what is left is less than this request may cost: {amount} {unit} {per}"
        )
        return Failure("quota", words)  # the status and the code are those of the client's protocol
    low = ", or what is left is less than this request may use" if quota.unit == "tokens" else ""
    words = f"the limit of {place} is reached{low}: {amount} {quota.unit} {per}"
    return Failure("rate", words, 429, max(_SOON, charge.until - time.time()), code="limit_reached")


def _unpriced(charge: Charge, target: Target, lacking: str) -> Failure:
    words = (
        f"no price of {target.name} is known for what this may cost, and a quota counts US dollars "
        f'({charge.quota.place}): set {lacking}, or unpriced = "allow" in the quota'
    )
    return Failure("quota", words, 402, code="unpriced")
