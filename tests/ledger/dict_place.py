"""Counters of several machines in dictionaries: a `Place`, as plainly as it can be said, so that the real
`RemoteCounters` can be played fast."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from typing import Literal

from dragoman.ledger.counters.remote import Listing, Share
from dragoman.ledger.interfaces import Claim, Lease, Seed
from dragoman.ledger.limits.accounts import is_recorded
from dragoman.ledger.limits.leases import LEASE_SECONDS, SILENT_SECONDS, share

_REMEMBERED = 2 * 86_400.0


class Part:
    """What a holder has; `amount` None: it has ended."""

    def __init__(self, amount: int | None, number: int, seen: float, told: int) -> None:
        self.amount, self.number, self.seen, self.told = amount, number, seen, told


class Account:
    """One account of one life."""

    def __init__(self, claim: Claim) -> None:
        self.life, self.until = claim.epoch, claim.until
        self.is_seeded = not is_recorded(claim.account)
        self.closed = self.adjusted = 0
        self.limit, self.generation = claim.limit, claim.generation
        self.parts: dict[str, Part] = {}


class DictPlace:
    """See `Place`."""

    def __init__(self, seed: Callable[[int], Seed], now: Callable[[], float]) -> None:
        self._seed, self._now = seed, now
        self._server = 0
        self._life: tuple[str, int, float] = ("", -1, 0.0)  # its epoch, its server, when it began
        self._awaited: set[str] = set()
        self.accounts: dict[int, Account] = {}
        self._kept: dict[int, Account] = {}

    def restart(self, *, is_empty: bool) -> None:
        """Another life of the server, with nothing, or with what it wrote down some time ago."""
        self._server += 1
        self.accounts = {} if is_empty else self._kept
        self._kept = {}

    def write_down(self) -> None:
        """What the next life may have."""
        self._kept = copy.deepcopy(self.accounts)

    def epoch(self) -> str:
        return self._life[0] if self._life[1] == self._server else ""

    def begin(self, epoch: str, awaited: Collection[str]) -> str:
        if not self.epoch():
            self._life = (epoch, self._server, self._now())
            self._awaited = set(awaited)
        return self.epoch()

    def awaited(self) -> set[str]:
        return set(self._awaited)

    def heard(self, *holders: str) -> None:
        self._awaited.difference_update(holders)

    def take(self, claim: Claim, *, announces: bool, filling: str | None = None) -> Lease | None:
        if claim.epoch != self.epoch():
            return Lease("lost", epoch=self.epoch())
        if self._awaited and self._now() >= self._life[2] + LEASE_SECONDS:
            self._awaited.clear()
        settles = bool(self._awaited)
        account = self.accounts.get(claim.account)
        if account is None or (account.life != claim.epoch and is_recorded(claim.account)):
            account = self.accounts[claim.account] = Account(claim)
        account.life = claim.epoch
        if not (account.is_seeded or settles or announces):
            self._fill(account, claim.account)
        told = claim.facts.spent + claim.facts.reserved
        mine = account.parts.get(claim.holder)
        if mine is not None and (mine.amount is None or claim.number <= mine.number):
            return Lease("stale", epoch=claim.epoch)
        if settles or (announces and not account.is_seeded):
            account.parts[claim.holder] = Part(told, claim.number, self._now(), told)
            return Lease("settling", told, True, claim.epoch)
        if claim.generation > account.generation:
            account.limit, account.generation = claim.limit, claim.generation
        rest = [each.amount for name, each in account.parts.items() if name != claim.holder and each.amount is not None]
        others = account.closed + account.adjusted + sum(rest)
        given = share(
            others, claim.facts, want=claim.want, least=claim.least, limit=account.limit, neighbours=len(rest)
        )  # fmt: skip
        account.parts[claim.holder] = Part(given.amount, claim.number, self._now(), told)
        outcome: Literal["refused", "granted"] = "refused" if given.is_refused else "granted"
        return Lease(outcome, given.amount, given.is_tight, claim.epoch, others)

    def _fill(self, account: Account, name: int) -> None:
        seed = self._seed(name)
        account.is_seeded, account.closed, account.adjusted = True, seed.closed, seed.adjusted
        for holder, used in seed.by_holder.items():
            mine = account.parts.get(holder)
            if mine is None:
                account.parts[holder] = Part(used, 0, self._now(), used)
            elif mine.amount is None:
                account.closed += max(used, mine.told)
            else:
                mine.amount = max(mine.amount, used)
        for holder in seed.ended:
            mine = account.parts.setdefault(holder, Part(None, 0, self._now(), 0))
            mine.amount, mine.seen = None, self._now()

    def fold(self, account: int, holder: str, spent: int) -> None:
        found = self._of_now(account)
        if found is None:
            return
        mine = found.parts.get(holder)
        if mine is None and found.is_seeded:
            mine = found.parts[holder] = Part(0, 0, self._now(), 0)
        if mine is None or mine.amount is None:
            return
        mine.amount, mine.told, mine.seen = None, spent, self._now()
        if found.is_seeded:
            found.closed += spent

    def expire(self, account: int, holder: str, used: int, since: float | None = None) -> None:
        found = self._of_now(account)
        if found is None:
            return
        mine = found.parts.get(holder)
        if mine is None and found.is_seeded and used:
            found.parts[holder] = Part(used, 0, self._now(), used)
        silent_since = self._now() - SILENT_SECONDS if since is None else since
        if mine is not None and mine.amount is not None and mine.seen <= silent_since:
            mine.amount = used

    def correct(self, account: int, adjusted: int) -> None:
        found = self._of_now(account)
        if found is not None and found.is_seeded:
            found.adjusted = adjusted

    def close_at(self, account: int, least: int) -> None:
        found = self._of_now(account)
        if found is not None and found.is_seeded:
            found.closed = max(found.closed, least)

    def _of_now(self, account: int) -> Account | None:
        found = self.accounts.get(account)
        return found if found is not None and found.life == self.epoch() else None

    def listing(self) -> Listing:
        filled = {name: each for name, each in self.accounts.items() if each.is_seeded and each.life == self.epoch()}
        shares = [
            Share(name, holder, part.amount, part.seen, part.told)
            for name, each in filled.items() for holder, part in each.parts.items() if part.amount is not None
        ]  # fmt: skip
        ended = [
            (name, holder)
            for name, each in self.accounts.items() for holder, part in each.parts.items() if part.amount is None
        ]  # fmt: skip
        adjusted = {name: each.adjusted for name, each in filled.items()}
        return Listing(shares, adjusted, self._now(), ended, {name: each.closed for name, each in filled.items()})

    def totals(self, accounts: Collection[int]) -> dict[int, int]:
        found = {}
        for name in accounts:
            each = self._of_now(name)
            if each is not None and each.is_seeded:
                amounts = [part.amount or 0 for part in each.parts.values()]
                found[name] = each.closed + each.adjusted + sum(amounts)
        return found

    def tidy(self) -> None:
        for account in self.accounts.values():
            account.parts = {
                holder: part for holder, part in account.parts.items()
                if part.amount is not None or part.seen > self._now() - _REMEMBERED
            }  # fmt: skip

    def forget(self, before: float) -> None:
        """Accounts whose period ended before."""
        for name in [name for name, each in self.accounts.items() if each.until <= before]:
            del self.accounts[name]

    def set_patience(self, seconds: float) -> None: ...

    def close(self) -> None: ...
