"""Proofs of several machines: the newest of each key on all of them, and none of another machine's own server."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from dragoman.gateway.storage.shared_proofs import ProofKeeper
from dragoman.proofs import Proof, ProofStore
from dragoman.secret import Secret
from gateway.shared.machines import Fleet
from test_proofs import DAY, PASSED, Clock, changed

T = TypeVar("T")
FAR = "https://llm.example.org/v1"
NOW = 1_000_000


class Here:
    """A machine's proofs and who keeps them."""

    def __init__(self, file: Path, address: str) -> None:
        self.store = ProofStore(file, clock=Clock(NOW))
        self.keeper = ProofKeeper(Secret(address), file, clock=Clock(NOW))
        self._thread = ThreadPoolExecutor(1)

    def round(self) -> None:
        self._do(self.keeper.round)

    def close(self) -> None:
        self._do(self.keeper.close)
        self._thread.shutdown()

    def _do(self, work: Callable[[], T]) -> T:
        return self._thread.submit(work).result()


@pytest.fixture
def machines(fleet: Fleet) -> Iterator[list[Here]]:
    found = [Here(fleet.folder / f"proofs-{number}.db", fleet.server.address) for number in range(3)]
    yield found
    for each in found:
        each.close()


def far(at: int = NOW, **fields: object) -> Proof:
    return changed(endpoint=FAR, at=at, **fields)


def test_the_newest_of_each_key_is_everywhere(fleet: Fleet, machines: list[Here]) -> None:
    one, two, three = machines
    one.store.put(far(10, digest="one"), far(50, target="a/b"), far(30, suite="full"))
    two.store.put(far(20, digest="two"), far(40, target="a/b"))
    for _ in range(2):
        for each in (one, two, three):
            each.round()
    expected = [far(20, digest="two"), far(30, suite="full"), far(50, target="a/b")]
    for each in (one, two, three):
        assert list(each.store.all()) == expected
    one.store.put(far(25, digest="again"))
    stamp = (fleet.folder / "proofs-2.db").stat().st_mtime_ns
    three.round()
    assert (fleet.folder / "proofs-2.db").stat().st_mtime_ns == stamp  # nothing new: nothing is written
    one.round()
    three.round()
    assert far(25, digest="again") in three.store.all()


def test_proofs_of_a_machines_own_servers_stay_there(fleet: Fleet, machines: list[Here]) -> None:
    """Two machines have an Ollama each, at one address: what is shown of one says nothing of the other."""
    one, two, _ = machines
    own = [
        changed(endpoint=endpoint, at=NOW)
        for endpoint in ("http://127.0.0.1:11434", "http://localhost:1/v1", "http://[::1]:8000", "", "http://[broken")
    ]
    one.store.put(*own, far())
    one.round()
    fleet.execute(
        "INSERT INTO proof SELECT target, protocol, 'http://127.0.0.1:11434', suite, at, proof FROM proof"
    )  # an older dragoman's, say
    two.round()
    assert two.store.all() == (far(),)
    assert len(one.store.all()) == len(own) + 1


def test_what_cannot_be_a_proof_is_left_alone(fleet: Fleet, machines: list[Here]) -> None:
    one, two, _ = machines
    one.store.put(
        far(NOW + 2 * DAY, target="from/tomorrow"),
        far(target="nul\0/model"),
        far(target=random.Random(1).randbytes(9_000).hex()),
        far(),
    )
    for _ in range(2):
        one.round()  # what the database refuses stays here, and stops nothing
    assert fleet.fetch("SELECT target FROM proof") == [(far().target,)]
    statement = "INSERT INTO proof VALUES($1, 'openai-chat', $2, 'quick', $3, $4)"
    for target, at, text in (
        ("no/proof", NOW, "{"), ("another/target", NOW, '{"target":"a/b"}'), ("too/long", NOW, '"' + "x" * 2_000_000),
        ("too/late", NOW + 3 * DAY, "{}"),
    ):  # fmt: skip
        fleet.execute(statement, target, FAR, at, text)
    two.round()
    assert two.store.all() == (far(),)
    assert two.store.get(far().target, protocol="ollama-chat", endpoint=FAR) is not None
    assert PASSED in far().probes.values()
