"""What counters in PostgreSQL are asked on the spot, in a thread whose event loop stands still meanwhile."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from dragoman.ledger.interfaces import CountersAway
from dragoman.ledger.stores.postgresql_asking import Answer
from ledger.counting_engines import REMOTE, CountingEngines

pytestmark = pytest.mark.parametrize("kind", [kind for kind in REMOTE if kind == "postgresql"])
_PROCESS = "SELECT pg_backend_pid()"
_TEXT = "SELECT pg_backend_pid()::text"


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
def test_one_text_is_that_of_the_driver(
    database: Any, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:  # fmt: skip
    def ask() -> None:
        for statement, values, expected in (
            ("SELECT $1::text", ("",), ""), ("SELECT $1::text", ("a ä\n\U0001f600",), "a ä\n\U0001f600"),
            ("SELECT concat_ws('|', $1::bigint, $2::float8, $3::boolean::int, $4::text)",
             (-(2**63), math.inf, True, None), f"{-(2**63)}|Infinity|1"),
            ("SELECT concat_ws('|', $1::float8, $2::boolean::int)", (1.5e-7, False), "1.5e-07|0"),
            ("SELECT repeat($1::text, $2::int)", ("ZI", 1_500_000), "ZI" * 1_500_000),
        ):  # fmt: skip
            for _ in "123":
                assert database.ask(statement, *values) == expected
            assert database.do(lambda one: one.ask(statement, *values)) == expected  # noqa: B023
        for statement, values in (
            ("SELECT (1 / $1::int)::text", (0,)), ("SELECT $1::bigint::text", (2**70,)), ("SELECT nothing", ()),
            ("SELECT $1::text", ("\x00",)), ("SELECT $1::int::text", ("x",)),
        ):  # fmt: skip
            for _ in "12":
                with pytest.raises(CountersAway):
                    database.ask(statement, *values)
        assert database.ask("SELECT (1 / $1::int)::text", 1) == "1"
        database.do(lambda one: one.execute(f"DEALLOCATE {one._prepared['SELECT $1::text'].name}"))
        assert database.ask("SELECT $1::text", "again") == "again"
        assert database.ask(_TEXT) == process  # none of them ended the connection

    process = database.ask(_TEXT)
    in_a_loop(ask, new_loop)


_EVENTS = st.sets(st.sampled_from(("an error", "a setting", "two columns", "no value", "two rows")), max_size=2)


@given(st.lists(st.integers(1, 200), max_size=6), st.text(max_size=60), _EVENTS)
def test_an_answer_is_the_same_however_it_is_cut(kind: str, cuts: list[int], text: str, events: set[str]) -> None:
    row = text.encode()
    value = (2**32 - 1).to_bytes(4, "big") if "no value" in events else len(row).to_bytes(4, "big") + row
    columns = 2 if "two columns" in events else 1
    rows = [(b"D", columns.to_bytes(2, "big") + value * columns)] * (2 if "two rows" in events else 1)
    said = [(b"2", b""), *([(b"S", b"a\x00b\x00")] if "a setting" in events else []), *rows]
    said += [(b"E", b"no")] if "an error" in events else [(b"C", b"SELECT 1\x00")]
    data = b"".join(name + (len(body) + 4).to_bytes(4, "big") + body for name, body in [*said, (b"Z", b"I")])
    answer, at = Answer(), 0
    for size in [*cuts, len(data)]:
        piece = data[at : at + size]
        at += len(piece)
        if not piece:
            break
        assert answer.take(piece) is (at == len(data))
    assert answer.is_plain is events.issubset({"a setting"})
    assert answer.text == (None if events & {"two columns", "no value"} else text)


@pytest.mark.parametrize("how", ["fetch", "ask"])
def test_what_is_late_goes_on_in_the_thread(database: Any, how: str) -> None:
    def ask() -> None:
        database.set_patience(0.2)
        begun = time.monotonic()
        with pytest.raises(CountersAway, match="in time"):
            getattr(database, how)(late)
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
    late = "SELECT pg_sleep(current_setting('dragoman.test')::float8)::text"
    database.do(lambda one: one.execute("SET dragoman.test = 0"))
    database.ask(late)  # it is prepared
    database.do(lambda one: one.execute("SET dragoman.test = 1"))
    in_a_loop(ask, uvloop.new_event_loop)


def test_a_connection_that_ended_is_begun_anew(database: Any, counting: CountingEngines) -> None:
    def ask() -> None:
        for _ in range(3):
            process = database.ask(_TEXT)
            assert database.fetch(_PROCESS) == [(int(process),)]
            other.fetch("SELECT pg_terminate_backend($1)", int(process))
            begun = time.monotonic()
            while True:
                with suppress(CountersAway):
                    assert database.ask(_TEXT) != process
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
            if chance.random() < 0.4:
                text = database.ask("SELECT $1::int || repeat('z', $2::int)", wanted, size)
                assert text == f"{wanted}{'z' * size}"
            if chance.random() < 0.3:
                found = database.do(lambda one: one.fetch(statement, wanted, size))  # noqa: B023
            else:
                found = database.fetch(statement, wanted, size)
            assert [(number, len(text)) for number, text in found] == [(wanted, size)]
        return True

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(ask, range(6)))
