"""Seals in a file: for all workers, after a restart, and for the key whose conversation it is alone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conversations import reply
from dragoman.gateway.storage.signatures import SignatureStore
from dragoman.gateway.storage.sqlite import Bounds
from dragoman.history.signature_vault import Place, seals_of
from dragoman.types import Message, Origin, Request, Text, ToolCall
from gateway.running import Running, gateway, stream_of

CALL = ToolCall("call_0123456789abcdefghijklmn", "look", '{"at":"sky"}', signature="c2VhbA==")
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
GEMINI = Origin("gemini-generate", "gemini-generate/model-1")
WIDE = Bounds(own_rows=10**6, own_size=10**9, rows=10**6, size=10**9, age=10**9)


def chat(running: Running, messages: list[dict[str, Any]], key: str) -> dict[str, Any]:
    body = {"model": "via-gemini-generate", "messages": messages, "tools": [TOOL]}
    headers = {"authorization": f"Bearer {key}"}
    status, _, answer = running.request("POST", "/v1/chat/completions", json.dumps(body).encode(), headers)
    assert status == 200, answer
    return json.loads(answer)["choices"][0]["message"]


def second_turn(running: Running, first: dict[str, Any], key: str) -> bytes:
    """What the provider is asked when a client goes on that cannot send seals."""
    call = {name: value for name, value in first["tool_calls"][0].items() if name != "extra_content"}
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "blue"},
    ]
    running.answer(stream_of("gemini-generate", reply("text")))
    chat(running, messages, key)
    return running.provider.requests[-1].body


def test_seals_are_there_for_every_worker_and_for_one_key(tmp_path: Path) -> None:
    state = f'[server]\nstate = "{tmp_path / "state"}"\n'
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir()
    with gateway(folders[0], state) as first, gateway(folders[1], state) as second:
        first.answer(stream_of("gemini-generate", msgspec.structs.replace(reply("single"), parts=(CALL,))))
        answer = chat(first, [{"role": "user", "content": "Look."}], "one")
        assert b"c2VhbA==" in second_turn(second, answer, "one")
        assert b"c2VhbA==" not in second_turn(second, answer, "two")
        assert b"c2VhbA==" not in second_turn(first, answer, "two")
    with gateway(folders[2], state) as again:
        assert b"c2VhbA==" in second_turn(again, answer, "one")
        assert b"c2VhbA==" not in second_turn(again, answer, "two")
    assert (tmp_path / "state" / "seals.sqlite").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def question(number: int) -> Request:
    call = ToolCall(f"call_{number:024d}", "look", "{}")
    return Request("m", (Message("user", (Text(f"Look {number}."),)), Message("assistant", (call,))))


def answered(number: int) -> dict[str, Any]:
    request = question(number)
    call = ToolCall(f"call_{number:024d}", "look", "{}", signature=f"seal {number}")
    asked = msgspec.structs.replace(request, messages=request.messages[:1])
    return seals_of(Place(asked.messages), Message("assistant", (call,), origin=GEMINI))


def signature(request: Request) -> str | None:
    return request.messages[1].tool_calls[0].signature


@pytest.mark.parametrize("file", [None, "seals.sqlite"])
def test_one_key_cannot_push_out_anothers(tmp_path: Path, file: str | None) -> None:
    async def run() -> tuple[list[str | None], str | None, str | None]:
        store = SignatureStore(tmp_path / file if file else None, bounds=msgspec.structs.replace(WIDE, own_rows=30))
        await store.keep("a", answered(0))
        for number in range(1, 200):
            await store.keep("b", answered(number))
        left = [signature(await store.restored(question(number), "b")) for number in range(1, 200)]
        mine = signature(await store.restored(question(0), "a"))
        foreign = signature(await store.restored(question(0), "b"))
        store.close()
        return left, mine, foreign

    left, mine, foreign = asyncio.run(run())
    found = [seal for seal in left if seal is not None]
    assert left[-1] == "seal 199"
    assert 5 <= len(found) <= 150
    assert (mine, foreign) == ("seal 0", None)


def test_providers_without_seals_cost_no_look_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> tuple[int, str | None]:
        looked = 0
        store, other = SignatureStore(tmp_path / "seals.sqlite"), SignatureStore(tmp_path / "seals.sqlite")
        await store.restored(question(1), "a")
        await store.restored(question(1), "a")  # now it knows
        run_before = store._database.run

        async def counted(work: Any) -> Any:
            nonlocal looked
            looked += 1
            return await run_before(work)

        monkeypatch.setattr(type(store._database), "run", lambda self, work: counted(work))
        for _ in range(50):
            await store.restored(question(1), "a")
        before = looked
        monkeypatch.undo()
        await other.keep("a", answered(1))  # another worker
        seal = signature(await store.restored(question(1), "a"))
        store.close()
        other.close()
        return before, seal

    assert asyncio.run(run()) == (0, "seal 1")
