"""What counters in PostgreSQL are asked on the spot, in a thread whose event loop stands still meanwhile."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
import uvloop

from dragoman.ledger.interfaces import CountersAway
from ledger.counting_engines import REMOTE, CountingEngines

pytestmark = pytest.mark.parametrize("kind", [kind for kind in REMOTE if kind == "postgresql"])
_PROCESS = "SELECT pg_backend_pid()"


@pytest.fixture
def database(counting: CountingEngines, kind: str) -> Iterator[Any]:
    database = counting.database()
    database.fetch("SELECT 1")  # its connection has begun
    yield database
    database.close()


def in_a_loop(work: Callable[[], object], new_loop: Callable[[], asyncio.AbstractEventLoop]) -> object:
    async def call() -> object:
        return work()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(call())


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_answers_and_failures_are_those_of_the_thread(
    database: Any, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    def ask() -> None:
        for statement, values in (
            ("SELECT $1::int, $2::text[]", (7, ["a", "ä"])), ("SELECT generate_series(1, 100000), repeat('x', 50)", ()),
            ("SELECT 1 WHERE false", ()), ("SELECT NULL::bigint", ()), ("SELECT repeat('y', 3000000)", ()),
        ):  # fmt: skip
            assert database.fetch(statement, *values) == database.do(lambda one: one.fetch(statement, *values))  # noqa: B023
        for statement in ("SELECT 1 / 0", "SELECT nothing", "SELECT $1::bigint"):
            with pytest.raises(CountersAway):
                database.fetch(statement, *([2**70] if "$" in statement else []))
        assert database.fetch(_PROCESS) == process  # none of them ended the connection

    process = database.fetch(_PROCESS)
    in_a_loop(ask, new_loop)


def test_what_is_late_goes_on_in_the_thread(database: Any) -> None:
    def ask() -> None:
        database.set_patience(0.2)
        begun = time.monotonic()
        with pytest.raises(CountersAway, match="in time"):
            database.fetch("SELECT pg_sleep(1)")
        for _ in range(3):
            with pytest.raises(CountersAway, match="no answer yet"):
                database.fetch("SELECT 1")
        assert time.monotonic() - begun < 0.9
        while True:
            with suppress(CountersAway):
                assert database.fetch(_PROCESS) == process  # which was not dropped
                return
            assert time.monotonic() - begun < 30
            time.sleep(0.05)

    process = database.fetch(_PROCESS)
    in_a_loop(ask, uvloop.new_event_loop)


def test_a_connection_that_ended_is_begun_anew(database: Any, counting: CountingEngines) -> None:
    def ask() -> None:
        for _ in range(3):
            [(process,)] = database.fetch(_PROCESS)
            other.fetch("SELECT pg_terminate_backend($1)", process)
            begun = time.monotonic()
            while True:
                with suppress(CountersAway):
                    assert database.fetch(_PROCESS) != [(process,)]
                    break
                assert time.monotonic() - begun < 30

    other = counting.database()
    in_a_loop(ask, uvloop.new_event_loop)
    other.close()


def test_each_of_many_threads_hears_its_own_answer(database: Any) -> None:
    def ask(number: int) -> bool:
        chance = random.Random(number)
        for turn in range(60):
            wanted, size = number * 1_000 + turn, chance.choice((1, 100, 100_000))
            statement = "SELECT $1::int, repeat('z', $2::int)"
            if chance.random() < 0.3:
                found = database.do(lambda one: one.fetch(statement, wanted, size))  # noqa: B023
            else:
                found = database.fetch(statement, wanted, size)
            assert [(number, len(text)) for number, text in found] == [(wanted, size)]
        return True

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(ask, range(6)))
