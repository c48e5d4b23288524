"""Map quotas to accounts. One quota of one scope in one period is one account, and no account is ever reset. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final, final

import msgspec

from dragoman.config.quotas import EACH, Quota, period_of
from dragoman.ledger.interfaces import Account
from dragoman.ledger.limits.leases import Balance

#: The lowest two bits of an account's number say where its truth is: US dollars and tokens in the ledger's rows, the
#: others in the counters alone.
_KIND_BITS: Final = 2
_NANO_PER_MICRO: Final = 1_000
_USD, TOKENS, _COUNTED, _CONCURRENT = range(4)
_ONCE: Final = ("requests", "concurrent")
#: Accounts that are remembered.
_MOST_KEPT: Final = 20_000


@final
class Charge(msgspec.Struct, frozen=True):
    """A quota that applies to a request, with its current account.

    Attributes:
        since, until: the period in Unix seconds.
        limit, overdraft: in nano-dollars, tokens or requests.
        alerts: the amounts at which a line is logged, the smallest first.
        is_usd: the quota counts US dollars.
    """

    quota: Quota
    value: str
    account: Account
    until: float
    limit: int
    alerts: tuple[int, ...]
    since: float = 0.0
    overdraft: int = 0
    is_usd: bool = False


@final
class Need(msgspec.Struct, frozen=True, gc=False):
    """An amount that a request needs of an account. `is_used`: it is spent as soon as it is admitted, whatever
    follows.
    """

    charge: Charge
    amount: int
    is_used: bool = False


#: What an attempt sets apart of an account: the most that it may cost, what it will likely cost; the same of tokens.
#: Behind them, what the client's request takes of what counts it once.
MOST_COST, LIKELY_COST, MOST_TOKENS, LIKELY_TOKENS, ONE = range(5)


@final
class Row(msgspec.Struct, eq=False):
    """The accounts of a request, as a row: those that count once for the client's request, then those of each attempt.

    Attributes:
        charges: one for each account.
        used, costly: the places of what is spent at once (requests), and of what an attempt reserves.
        balances, turn: their balances as they were found last, and when (`Budgets`).
        until: when the first of their leases ended then. None ends before, unless it has no ceiling.
    """

    charges: tuple[Charge, ...]
    used: tuple[int, ...]
    costly: tuple[int, ...]
    balances: tuple[Balance, ...] = ()
    turn: int = -1
    until: float = 0.0

    def needs(self, amounts: Sequence[int]) -> list[Need]:
        """Return the same with these amounts, one by one."""
        return [
            Need(charge, amount, place in self.used)
            for place, (charge, amount) in enumerate(zip(self.charges, amounts, strict=True))
        ]


@final
class Charges(msgspec.Struct, frozen=True):
    """All quotas that apply to a request until the first of their periods ends.

    Attributes:
        once: charges for the client's request.
        costly: charges for each attempt, and what it reserves.
        row: the accounts of both.
        pick: returns what is taken of each account of `row`, from the four kinds of amounts and a 1 behind them.
        parts: which of the four kinds there are.
        has_usd, has_tokens: the request's bound of cost or tokens is needed.
        expects: its likely cost is needed.
        recorded: the accounts that the ledger's rows carry.
        since, until: Unix seconds.
    """

    once: tuple[Need, ...]
    costly: tuple[tuple[Charge, int], ...]
    row: Row
    pick: Callable[[Sequence[int]], tuple[int, ...]]
    parts: frozenset[int]
    has_usd: bool
    has_tokens: bool
    expects: bool
    recorded: tuple[Account, ...]
    since: float
    until: float


@final
class Scopes(msgspec.Struct, frozen=True):
    """The scopes of a request. `key`, `team`, `owner` and `route` are "" if there is none."""

    key: str = ""
    owner: str = ""
    team: str = ""
    labels: Mapping[str, str] = {}
    route: str = ""
    target: str = ""

    def values(self, quota: Quota) -> tuple[str, ...]:
        """Return the request's values of a quota's scope: none or one. A label is one whole `NAME=VALUE`."""
        match quota.scope:
            case "all":
                return ("",)
            case "label":
                name, _, wanted = quota.value.partition("=")
                has = self.labels.get(name)
                return (f"{name}={has}",) if has is not None and wanted in (has, EACH) else ()
            case "key":
                found = self.key
            case "team":
                found = self.team
            case "owner":
                found = self.owner
            case "route":
                found = self.route
            case _:
                found = self.target
        return (found,) if found and quota.value in (found, EACH) else ()


class Accounts:
    """Finds the accounts of requests. Caches them until their periods end."""

    __slots__ = ("_has_labels", "_known", "_named", "_of_requests", "quotas")

    def __init__(self, quotas: Iterable[Quota]) -> None:
        """Create it. A quota for one value replaces the quota for each value of its scope."""
        self.quotas = tuple(quotas)
        self._named = {(quota.scope, quota.value, quota.unit, quota.per) for quota in self.quotas}
        self._known: dict[tuple[int, str], Charge] = {}
        self._has_labels = any(quota.scope == "label" for quota in self.quotas)
        self._of_requests: dict[tuple[object, ...], Charges] = {}

    def of_request(self, scopes: Scopes, route: str, target: str, now: float) -> Charges:
        """Return the charges of a request for a target, sorted by kind."""
        labels = tuple(scopes.labels.items()) if self._has_labels else ()
        known = (scopes.key, target, route, scopes.owner, scopes.team, labels)
        found = self._of_requests.get(known)
        if found is None or not found.since <= now < found.until:
            if len(self._of_requests) >= _MOST_KEPT:
                self._of_requests.clear()
            asked = Scopes(scopes.key, scopes.owner, scopes.team, scopes.labels, route, target)
            found = self._of_requests[known] = _sorted_out(self.charges(asked, now))
        return found

    def charges(self, scopes: Scopes, now: float) -> list[Charge]:
        """Return the charges of a request, in one order for all. `now` is Unix seconds."""
        found = []
        for number, quota in enumerate(self.quotas):
            for value in scopes.values(quota):
                if value != quota.value and (quota.scope, value, quota.unit, quota.per) in self._named:
                    continue
                charge = self._known.get((number, value))
                if charge is None or not charge.since <= now < charge.until:
                    if len(self._known) >= _MOST_KEPT:
                        self._known.clear()
                        self._of_requests.clear()
                    charge = self._known[number, value] = charge_of(quota, value, now)
                found.append(charge)
        return found


def _sorted_out(charges: list[Charge]) -> Charges:
    costly = tuple([(charge, _part(charge.quota)) for charge in charges if charge.quota.unit in ("usd", "tokens")])
    once = tuple([Need(each, 1, each.quota.unit == "requests") for each in charges if each.quota.unit in _ONCE])
    row = Row(
        tuple([need.charge for need in once] + [charge for charge, _ in costly]),
        tuple([place for place, need in enumerate(once) if need.is_used]),
        tuple(range(len(once), len(once) + len(costly))),
    )
    parts = frozenset([part for _, part in costly])
    return Charges(
        once,
        costly,
        row,
        _picker([*(ONE for _ in once), *(part for _, part in costly)]),
        parts,
        MOST_COST in parts,
        MOST_TOKENS in parts,
        not parts.isdisjoint((LIKELY_COST, LIKELY_TOKENS)),
        tuple([charge.account for charge, _ in costly if charge.quota.is_recorded]),
        max((charge.since for charge in charges), default=float("-inf")),
        min((charge.until for charge in charges), default=float("inf")),
    )


def _picker(parts: Sequence[int]) -> Callable[[Sequence[int]], tuple[int, ...]]:
    return itemgetter(*parts) if len(parts) > 1 else lambda amounts: tuple([amounts[part] for part in parts])


def _part(quota: Quota) -> int:
    if quota.unit == "usd":
        return MOST_COST if quota.reserve == "bound" else LIKELY_COST
    return MOST_TOKENS if quota.reserve == "bound" else LIKELY_TOKENS


def charge_of(quota: Quota, value: str, now: float) -> Charge:
    """Return the charge of a quota for one value and the current period."""
    start, until = period_of(quota.per, quota.zone, now)
    words = f"{quota.scope}\n{value}\n{quota.unit}\n{quota.per}\n{quota.zone}\n{int(start)}"
    number = int.from_bytes(hashlib.sha256(words.encode("utf-8", "replace")).digest()[:8], "big") >> 1
    factor = _NANO_PER_MICRO if quota.unit == "usd" else 1
    limit, overdraft = quota.amount * factor, quota.overdraft * factor
    alerts = tuple(int(share * limit) for share in quota.alerts) if limit else ()
    account = number >> _KIND_BITS << _KIND_BITS | _kind(quota)
    return Charge(quota, value, account, until, limit, alerts, start, overdraft, quota.unit == "usd")


def _kind(quota: Quota) -> int:
    if quota.is_recorded:
        return _USD if quota.unit == "usd" else TOKENS
    return _CONCURRENT if quota.unit == "concurrent" else _COUNTED


def is_recorded(account: Account) -> bool:
    """Return whether the ledger's rows say what was used of an account."""
    return account & 3 in (_USD, TOKENS)


def is_of_tokens(account: Account) -> bool:
    """Return whether an account counts tokens that rows carry."""
    return account & 3 == TOKENS


def is_concurrent(account: Account) -> bool:
    """Return whether an account counts concurrent requests. A holder that has ended uses none of it."""
    return account & 3 == _CONCURRENT
