"""What counters of several machines are told and answer over the wire, in words of our own."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reliability.engine_valkey import MISSING as NO_VALKEY
from reliability.engines import MISSING as NO_POSTGRESQL

from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Seed
from dragoman.ledger.stores.schema import ADJUSTED
from ledger.counting_engines import CountingEngines, render_filling
from profiles import examples

_holders = st.sampled_from([*(f"{number:016x}" for number in range(6)), ADJUSTED])
_spend = st.dictionaries(st.tuples(st.sampled_from([4, 5, 8]), _holders, st.sampled_from(["2026-10", "2026-11"])),
                         st.tuples(st.integers(0, 2**50), st.integers(0, 2**50)), max_size=12)  # fmt: skip


def _words(filling: str) -> Seed:
    closed, adjusted, count, *rest = filling.split(" ")
    live, ended = rest[: 2 * int(count)], rest[2 * int(count) :]
    by_holder = dict(zip(live[::2], map(int, live[1::2]), strict=True))
    return Seed(int(closed), by_holder, frozenset(ended), int(adjusted))


def _write(spend: Any, holders: dict[str, bool], connection: Any) -> None:
    connection.execute("DELETE FROM spend")
    connection.execute("DELETE FROM holder")
    for (account, holder, month), (nano, tokens) in spend.items():
        connection.execute("INSERT INTO spend VALUES($1, $2, $3, $4, $5)", account, holder, month, nano, tokens)
    for holder, has_ended in holders.items():
        ended = "clock_timestamp()" if has_ended else "NULL"
        connection.execute(f"INSERT INTO holder(id, machine, ended) VALUES($1, 'one', {ended})", holder)


@pytest.mark.skipif(bool(NO_POSTGRESQL), reason=NO_POSTGRESQL)
@settings(max_examples=examples(40))
@given(_spend, st.dictionaries(_holders.filter(lambda name: name != ADJUSTED), st.booleans()))
def test_an_account_is_filled_with_what_the_rows_say(
    counting: CountingEngines, tmp_path_factory: pytest.TempPathFactory, spend: Any, holders: dict[str, bool]
) -> None:
    """In one text for the counters, as in a seed for everybody else."""
    from dragoman.ledger.counters.roster import SharedRoster

    database = counting.database()
    database.do(partial(_write, spend, holders))
    roster = SharedRoster(LedgerFolder(tmp_path_factory.getbasetemp()), database)
    for account, seed in roster.seeds([4, 5, 8]).items():
        for _ in "12":  # by the driver, and by ourselves
            found = roster.filling(account)
            assert _words(found) == seed == _words(render_filling(seed))
    database.do(partial(_write, {}, {}))
    database.close()


class _Connection:
    """Of the driver's, what an answer needs."""

    def __init__(self, line: socket.socket) -> None:
        from valkey._parsers.base import BaseParser

        self._sock: socket.socket | None = line
        self._parser = BaseParser

    def disconnect(self) -> None:
        self._sock = None


@pytest.mark.skipif(bool(NO_VALKEY), reason=NO_VALKEY)
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"$18\r\ngranted|1000|0|0|1\r\n", "granted|1000|0|0|1"), (b"$4\r\n\r\n\r\n\r\n", "\r\n\r\n"), (b":1\r\n", "1"),
        (b"$0\r\n\r\n", ""), (b"+OK\r\n", "OK"), (b"-NOSCRIPT No matching script.\r\n", "NoScriptError"),
        (b"-ERR 5 of 7\r\n", "ResponseError"), (b"$70000\r\n" + b"z" * 70_000 + b"\r\n", "z" * 70_000),
        (b"", "ConnectionError"), (b"$5\r\nab", "ConnectionError"),
        (b"$-1\r\n", "ConnectionError"), (b"*1\r\n:1\r\n", "ConnectionError"), (b"$x\r\n", "ConnectionError"),
    ],
)  # fmt: skip
def test_an_answer_is_read_however_it_is_cut(answer: bytes, expected: str) -> None:
    """What is none, or not whole when the connection ends, ends the connection."""
    from dragoman.ledger.counters import valkey as place

    for size in (1, 2, 3, 5, len(answer) + 1):
        if len(answer) // size > 500:
            continue
        near, far = socket.socketpair()
        with near, far:
            far.sendall(answer[:size])
            connection = _Connection(_Cut(near, far, answer, size))  # type: ignore[arg-type]
            try:
                found = place._asked(connection, "*1\r\n", "key", "words")
            except Exception as problem:
                found = type(problem).__name__
            assert found == expected
            assert (connection._sock is None) == (expected == "ConnectionError")


class _Cut:
    """A line on which an answer comes in pieces, each when it is awaited; then the other side is gone."""

    def __init__(self, near: socket.socket, far: socket.socket, answer: bytes, size: int) -> None:
        self._near, self._far, self._rest, self._size = near, far, answer[size:], size
        self.sendall: Callable[[bytes], None] = near.sendall
        self._end()

    def recv(self, most: int) -> bytes:
        found = self._near.recv(most)
        if self._rest:
            self._far.sendall(self._rest[: self._size])
            self._rest = self._rest[self._size :]
            self._end()
        return found

    def _end(self) -> None:
        if not self._rest:
            self._far.shutdown(socket.SHUT_WR)
