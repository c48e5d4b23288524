"""The world of the model, played with real counters: nothing is overspent and nothing is stuck in any of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from dragoman.ledger.interfaces import Claim, Lease, Seed
from ledger.counting_engines import KINDS, CountingEngines
from ledger.leases_model import World, Wrong
from ledger.limits.test_leases import made_up
from profiles import IS_SOAK

HISTORIES = 1_000 if IS_SOAK else 60


class _Total:
    """An account, as far as the world looks at it."""

    def __init__(self, total: int, told: int) -> None:
        self.total = total
        self.told = told

    @property
    def shares(self) -> dict[str, int]:
        return _Always(self.told)


class _Always(dict[str, int]):
    def __init__(self, amount: int) -> None:
        super().__init__()
        self._amount = amount

    def get(self, key: str, default: object = None) -> int:  # type: ignore[override]
        return self._amount


class _Played:
    """Real counters in the place of the model's: epochs by their number, accounts by hours."""

    def __init__(self, counters: object, engines: CountingEngines, kind: str, root: Path, world: World) -> None:
        self.real, self._engines, self._kind, self._root, self._world = counters, engines, kind, root, world
        self._epochs: list[str] = [self.real.greet("nobody")]
        self._awaited: set[str] = set()
        self._last = 0
        self.old_seeds: dict[int, Seed] = {}

    @property
    def epoch(self) -> str:
        return f"life {len(self._epochs) - 1}"

    @property
    def accounts(self) -> dict[int, _Total]:
        names = {_real(hour): hour for hour in range(-1, 40)}
        return {names[name]: _Total(total, self._last) for name, total in self.real.totals(list(names)).items()}

    def restart(self, *, is_empty: bool) -> None:
        self._engines.another_life(self._kind, self._root, is_empty=is_empty)
        self._awaited = self._world.live()
        self._name(self.real.greet("nobody"))

    def take(self, claim: Claim) -> Lease:
        number = int(claim.epoch.split()[1])
        if claim.epoch == self.epoch and claim.holder in self._awaited:
            self.real.greet(claim.holder)
            self._awaited.discard(claim.holder)
        lease = self.real.take(msgspec.structs.replace(claim, epoch=self._epochs[number], account=_real(claim.account)))
        self._last = lease.amount
        return msgspec.structs.replace(lease, epoch=self._name(lease.epoch))

    def fold(self, account: int, holder: str, spent: int) -> None:
        self.real.fold(_real(account), holder, spent)

    def expire(self, account: int, holder: str, used: int) -> None:
        self.real.expire(_real(account), holder, used)

    def _name(self, epoch: str) -> str:
        if epoch not in self._epochs:
            self._epochs.append(epoch)
        return f"life {self._epochs.index(epoch)}"


class _RealWorld(World):
    """One history in real counters."""

    def __init__(self, engines: CountingEngines, kind: str, root: Path) -> None:
        super().__init__()
        self.open = engines.open(kind, root, lambda name: self.seed(name // 4 - 1), self.live, lambda: self.now)
        self.counters = _Played(self.open.__enter__(), engines, kind, root, self)  # type: ignore[assignment]

    def renew(self, second: int) -> None:
        if second % 6 == 2:
            self.counters.restart(is_empty=second // 6 % 2 == 0)  # type: ignore[call-arg]
        elif second % 6 < 2:
            super().renew(second)


def _real(account: int) -> int:
    """One that the ledger's rows tell of."""
    return (account + 1) * 4


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_overspent_and_nothing_is_stuck(
    tmp_path_factory: pytest.TempPathFactory, counting: CountingEngines, kind: str
) -> None:
    for number in range(HISTORIES):
        world = _RealWorld(counting, kind, tmp_path_factory.mktemp("world"))
        try:
            world.play(made_up(number))
        except Wrong as problem:
            raise AssertionError(f"history {number}: {problem}") from None
        finally:
            world.open.__exit__(None, None, None)
