"""Openings of circuit breakers reach other workers, in PostgreSQL and in Valkey; and nothing needs that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from reliability.engine_valkey import MISSING as NO_VALKEY

from dragoman.config import Config, load_config
from dragoman.events import Failure
from dragoman.gateway.process import breaker_gossip
from dragoman.gateway.process.breaker_gossip import BreakerGossip
from dragoman.gateway.storage.breaker_board import Board
from dragoman.gateway.storage.sqlite import StoreUnreachable
from dragoman.routing.circuit_breaker import IN_A_ROW
from dragoman.routing.target_health import HealthTable
from dragoman.secret import Secret
from gateway.running import gateway
from gateway.shared.machines import Fleet
from scripted import serving, whole

TARGET = "far/model"
CONFIG = """
[providers.far]
protocol = "openai-chat"
base_url = "{far}"
[providers.here]
protocol = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
[routes.all]
targets = ["far/model", "here/model"]
"""


def config(folder: Path, far: str = "https://far.example.org/v1") -> Config:
    file = folder / "gossip.toml"
    file.write_text(CONFIG.format(far=far), encoding="utf-8")
    return load_config(file, environ={}, home=folder)


class Worker:
    """What it knows of its targets, by a clock that is set by hand."""

    def __init__(self, board: Board, config: Config) -> None:
        self.now = 100.0
        self.table = HealthTable()
        self.gossip = BreakerGossip(board, lambda: config, self.table)

    def fails(self, target: str) -> None:
        breaker = self.table.of(target).breaker
        for _ in range(IN_A_ROW):
            breaker.begin(self.now)
            breaker.failed(Failure("overloaded", "busy", 503), self.now, begun=self.now)

    def heals(self, target: str) -> None:
        self.now += 5.0
        breaker = self.table.of(target).breaker
        breaker.begin(self.now)
        breaker.succeeded(self.now, begun=self.now)

    async def talk(self) -> None:
        await self.gossip.exchange(lambda: self.now)


@pytest.fixture(scope="module")
def valkey() -> Iterator[Any]:
    from reliability.engine_valkey import Valkey

    with Valkey() as server:
        yield server


@pytest.fixture(params=["postgresql", *([] if NO_VALKEY else ["valkey"])])
def board(request: pytest.FixtureRequest, fleet: Fleet) -> Iterator[Board]:
    if request.param == "postgresql":
        fleet.execute("TRUNCATE breaker")
        found = fleet.machine().stores.breakers
        assert found is not None
        yield found
        return
    from dragoman.gateway.storage.valkey_board import ValkeyBoard
    from dragoman.ledger.counters.valkey import ValkeyPlace

    place = ValkeyPlace(Secret(request.getfixturevalue("valkey").address), patience=5.0)
    place.do(lambda client: client.flushall())
    found = ValkeyBoard(place)
    yield found
    found.close()


def test_an_opening_is_heard_once_and_each_tries_for_itself(board: Board, tmp_path: Path) -> None:
    one, two = (Worker(board, config(tmp_path)) for _ in range(2))

    async def use() -> None:
        await two.talk()
        assert not two.table.is_open(TARGET)
        one.fails(TARGET)
        await one.talk()
        await two.talk()
        assert two.table.is_open(TARGET) and not two.table.of(TARGET).breaker.admits(two.now)
        one.heals(TARGET)
        await one.talk()
        await two.talk()
        assert two.table.is_open(TARGET)  # no word closes it
        two.heals(TARGET)
        for _ in range(3):
            await one.talk()
            await two.talk()
        assert not two.table.is_open(TARGET) and not one.table.is_open(TARGET)  # and nothing is heard twice
        two.fails(TARGET)
        late = Worker(board, config(tmp_path))
        await two.talk()
        one.now += 60
        await one.talk()
        await late.talk()
        assert one.table.is_open(TARGET) and late.table.is_open(TARGET)
        await late.talk()  # what it was told it does not tell
        third = Worker(board, config(tmp_path))
        assert third.gossip._health_table.openings(TARGET) == late.table.openings(TARGET) == 0

    asyncio.run(use())


def test_only_the_same_target_of_others_is_heard(board: Board, tmp_path: Path) -> None:
    one, same = (Worker(board, config(tmp_path)) for _ in range(2))
    other = Worker(board, config(tmp_path, "https://other.example.org/v1"))

    async def use() -> None:
        for target in (TARGET, "here/model", "far/made-up"):
            one.fails(target)
        for worker in (one, other, same):
            await worker.talk()
        assert same.table.is_open(TARGET) and not other.table.is_open(TARGET)
        assert not same.table.is_open("here/model") and not same.table.is_open("far/made-up")

    asyncio.run(use())


def test_old_and_strange_entries_are_no_news(board: Board, tmp_path: Path, fleet: Fleet) -> None:
    one = Worker(board, config(tmp_path))
    [key] = one.gossip._targets()

    async def use() -> None:
        if hasattr(board, "_place"):
            names = (
                f"{key} old 1",
                f"{key}",
                f"{key} who",
                f"{key} who x",
                f"{key} who {'9' * 40}",
                " ",
                "\u0663 a \u0663",
            )
            board._place.do(
                lambda client: client.zadd("dragoman:breakers", dict.fromkeys(names, 5e9) | {names[0]: 1.0})
            )
        else:
            fleet.execute("INSERT INTO breaker VALUES($1, 'old', 1, clock_timestamp() - interval '1 minute')", key)
            fleet.execute("INSERT INTO breaker VALUES($1, 'none', -5, clock_timestamp())", key)
        await one.talk()
        assert not one.table.is_open(TARGET)

    asyncio.run(use())


def test_who_cannot_be_asked_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker_gossip, "_EVERY", 0.001)
    calls = 0

    class Away:
        async def exchange(self, *_: object) -> list[Any]:
            nonlocal calls
            calls += 1
            raise StoreUnreachable("away")

        def close(self) -> None:
            pass

    async def use() -> None:
        worker = Worker(Away(), config(tmp_path))  # type: ignore[arg-type]
        task = asyncio.create_task(worker.gossip.run())
        await asyncio.sleep(0.05)
        assert not calls  # nobody asks for anything
        worker.table.of(TARGET)
        while calls < 5:
            await asyncio.sleep(0.001)
        assert not task.done()
        task.cancel()

    asyncio.run(use())


def test_gateways_tell_each_other(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(breaker_gossip, "is_loopback", lambda host: False)
    fleet.execute("TRUNCATE breaker")
    with ExitStack() as stack:
        provider = stack.enter_context(serving([]))
        provider.replies[:] = [whole(b'{"error":{"message":"busy"}}', status=503)]
        one, two = [
            stack.enter_context(gateway(fleet.folder, **fleet.gateway(f"gateway-{number}", provider.url)))
            for number in range(2)
        ]
        body = b'{"model":"via-openai-chat","messages":[{"role":"user","content":"Hi"}]}'
        tables = [each.gateway._client.target_states.health_table for each in (one, two)]
        for _ in range(IN_A_ROW):
            assert one.request("POST", "/v1/chat/completions", body)[0] == 503
        assert tables[0].is_open("openai-chat/model-1")

        async def told() -> None:
            while not tables[1].is_open("openai-chat/model-1"):
                tables[1].of("openai-chat/model-1")  # somebody asks for it
                await asyncio.sleep(0.05)

        two.run(told())
        assert tables[1].openings("openai-chat/model-1") == 0
