"""Seals of several machines: there for all of them when an answer ends, and free of cost for who has none."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import ExitStack

import msgspec
import pytest

from conversations import reply
from dragoman.gateway.storage import pruning, shared_signatures, signatures
from dragoman.gateway.storage.sqlite import Bounds
from dragoman.ledger.stores.postgresql_connection import Connection
from dragoman.types import Message, Request, Text
from gateway.running import gateway, stream_of
from gateway.shared.machines import Fleet
from gateway.shared.test_shared_responses import cut
from gateway.storage.test_signatures import CALL, answered, chat, question, second_turn, signature
from scripted import serving


def test_a_seal_is_there_for_every_machine_and_for_one_key(fleet: Fleet) -> None:
    with ExitStack() as stack:
        provider = stack.enter_context(serving([]))
        first, second = [
            stack.enter_context(gateway(fleet.folder, **fleet.gateway(f"gateway-{number}", provider.url)))._replace(
                provider=provider
            )
            for number in range(2)
        ]
        # The second one knows that there are no seals, for a second.
        assert b"c2VhbA==" not in second_turn(second, {"tool_calls": [{"id": "call_0", "type": "function",
            "function": {"name": "look", "arguments": "{}"}}]}, "one")  # fmt: skip
        first.answer(stream_of("gemini-generate", msgspec.structs.replace(reply("single"), parts=(CALL,))))
        answer = chat(first, [{"role": "user", "content": "Look."}], "one")
        assert b"c2VhbA==" in second_turn(second, answer, "one")
        assert b"c2VhbA==" not in second_turn(second, answer, "two")


def test_who_has_no_seals_asks_for_none(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = fleet.machine()
    asked: list[str] = []
    fetch = Connection.fetch

    def noted(self: Connection, statement: str, *values: object) -> object:
        asked.append(statement)
        return fetch(self, statement, *values)

    monkeypatch.setattr(Connection, "fetch", noted)
    plain = Request("m", (Message("user", (Text("Hi"),)), Message("assistant", (Text("Hello"),))))

    async def use() -> None:
        for _ in range(5):
            assert await machine.seals.restored(plain, "me") is plain
        assert not asked
        for number in range(20):
            assert signature(await machine.seals.restored(question(number), "me")) is None
        assert asked.count(shared_signatures._BEGUN) == 1 and shared_signatures._FIND not in asked
        await machine.seals.keep("me", answered(1))
        assert signature(await machine.seals.restored(question(1), "me")) == "seal 1"

    asyncio.run(use())


def test_nobody_who_believes_that_there_are_none_misses_the_first(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_signatures, "_BELIEVED", 0.2)
    one, two, three = (fleet.machine() for _ in range(3))

    async def use() -> None:
        assert signature(await two.seals.restored(question(1), "me")) is None
        kept = one.seals.keep("me", answered(1))
        other = three.seals.keep("me", answered(2))  # it finds a beginning that is just made
        await kept
        assert signature(await two.seals.restored(question(1), "me")) == "seal 1"
        await other
        assert signature(await two.seals.restored(question(2), "me")) == "seal 2"
        assert signature(await two.seals.restored(question(2), "you")) is None

    asyncio.run(use())


def test_seals_wait_while_the_database_is_away(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    one, two = fleet.machine(), fleet.machine()
    line = cut(one)

    async def use() -> None:
        await one.seals.keep("me", answered(1))
        line.is_cut = True
        for number in (2, 3):
            await one.seals.keep("me", answered(number))
            assert signature(await one.seals.restored(question(number), "me")) == f"seal {number}"
        assert signature(await one.seals.restored(question(1), "me")) is None  # the request goes on
        line.is_cut = False
        assert signature(await one.seals.restored(question(1), "me")) == "seal 1"
        one.move()
        for number in (1, 2, 3):
            assert signature(await two.seals.restored(question(number), "me")) == f"seal {number}"

    asyncio.run(use())
    with sqlite3.connect(one.state / signatures.FILE) as file:
        assert file.execute("SELECT count(*) FROM seal").fetchone() == (0,)
    file.close()
    assert caplog.text.count("seals cannot be read") == 1 and caplog.text.count("read and kept again") == 1


def test_seals_of_before_are_moved(fleet: Fleet) -> None:
    """A laptop becomes a machine of a fleet."""
    one, two = fleet.machine(), fleet.machine()
    store = signatures.SignatureStore(one.state / signatures.FILE)

    async def keep() -> None:
        for number in range(1_200):
            await store.keep("me", answered(number))

    asyncio.run(keep())
    store.close()
    one.move()
    assert fleet.fetch("SELECT count(*) FROM seal") == [(3_600,)]

    async def use() -> None:
        assert signature(await two.seals.restored(question(1_199), "me")) == "seal 1199"

    asyncio.run(use())


def test_an_owner_has_bounds(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_signatures, "_PRUNED_ROWS", 1)
    monkeypatch.setattr(shared_signatures, "BOUNDS", Bounds(9, 10**6, 10**6, 10**6, 100))
    machine = fleet.machine()

    async def use() -> None:
        fleet.execute("INSERT INTO seal_begun VALUES(true, clock_timestamp() - interval '1 hour')")
        await machine.seals.keep("other", answered(0))
        for number in range(5):
            await machine.seals.keep("me", answered(number))
        assert [signature(await machine.seals.restored(question(n), "me")) for n in range(5)] == [
            None, None, "seal 2", "seal 3", "seal 4"
        ]  # fmt: skip
        assert signature(await machine.seals.restored(question(0), "other")) == "seal 0"
        fleet.execute("UPDATE seal SET used = used - 40 * 86400 WHERE owner = 'other'")
        fleet.do(pruning.prune_all)
        assert signature(await machine.seals.restored(question(0), "other")) is None

    asyncio.run(use())
