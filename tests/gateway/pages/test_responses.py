"""Stored responses: conversations that go on by an id, over workers and restarts, and never into another key's."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import openai
import pytest

from conversations import reply
from dragoman.gateway.storage.responses import Kept, NotKept, Responses
from dragoman.gateway.storage.sqlite import Bounds
from dragoman.protocols import PROTOCOLS
from dragoman.types import Request, ToolCall, ToolResult
from gateway.process.test_gateway import serve
from gateway.running import Running, gateway, stream_of, whole_of, wire
from profiles import IS_SOAK
from scripted import Scripted, serving, streamed

TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}


def post(running: Running, body: dict[str, Any], key: str = "one", path: str = "/v1/responses") -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    status, _, answer = running.request("POST", path, json.dumps(body).encode(), headers)
    return status, json.loads(answer)


def ask(running: Running, method: str, path: str, key: str = "one") -> tuple[int, Any]:
    status, _, answer = running.request(method, path, b"", {"authorization": f"Bearer {key}"})
    return status, json.loads(answer)


def asked(running: Running, protocol: str) -> Request:
    """What the provider was asked last."""
    seen = running.provider.requests[-1]
    return PROTOCOLS[protocol].parse_request(seen.body, path=seen.path if ":" in seen.path else "").request


def said(request: Request) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in request.messages if message.text]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("provider", PROTOCOLS)
def test_a_conversation_goes_on_by_its_id(running: Running, provider: str, streamed: bool) -> None:
    """A tool round trip that sends each thing once, with the SDK."""
    with openai.OpenAI(base_url=f"{running.url}/v1", api_key="one", max_retries=0) as client:
        running.answer((stream_of if streamed else whole_of)(provider, reply("parallel")))

        def create(**fields: Any) -> Any:
            if not streamed:
                return client.responses.create(model=f"via-{provider}", tools=[TOOL], **fields)
            with client.responses.stream(model=f"via-{provider}", tools=[TOOL], **fields) as stream:
                return stream.get_final_response()

        first = create(input="Weather?", instructions="Be brief.")
        calls = [item for item in first.output if item.type == "function_call"]
        assert [call.name for call in calls] == [call.name for call in reply("parallel").tool_calls]
        running.answer((stream_of if streamed else whole_of)(provider, reply("text")))
        results = [
            {"type": "function_call_output", "call_id": call.call_id, "output": f"rain {number}"}
            for number, call in enumerate(calls)
        ]
        second = create(input=results, previous_response_id=first.id)
        assert second.output_text == reply("text").text
        assert (second.previous_response_id, second.store) == (first.id, True)
    request = asked(running, provider)
    parts = [part for message in request.messages for part in message.parts]
    assert ("user", "Weather?") in said(request)
    assert "Be brief." not in [text for _, text in said(request)]  # instructions hold for one response
    assert [part.values() for part in parts if isinstance(part, ToolCall)] == [
        call.values() for call in reply("parallel").tool_calls
    ]
    assert [part.text for part in parts if isinstance(part, ToolResult)] == [f"rain {n}" for n in range(len(calls))]


def test_a_provider_that_stores_is_told_not_to(running: Running) -> None:
    """What it kept, every client of the gateway could go on from."""
    running.answer(whole_of("openai-responses", reply("text")))
    for store in (True, None):
        status, answer = post(running, {"model": "via-openai-responses", "input": "Hi", "store": store})
        assert (status, answer["store"]) == (200, True)
        sent = running.provider.requests[-1].json
        assert sent.get("store", False) is False
        assert "previous_response_id" not in sent


def test_responses_can_be_read_and_deleted(running: Running) -> None:
    running.answer(whole_of("openai-chat", reply("text")))
    _, first = post(running, {"model": "via-openai-chat", "input": "One"})
    _, second = post(running, {"model": "via-openai-chat", "input": "Two", "previous_response_id": first["id"]})
    assert ask(running, "GET", f"/v1/responses/{second['id']}") == (200, second)
    _, listed = ask(running, "GET", f"/v1/responses/{second['id']}/input_items?order=asc")
    assert [item["content"][0]["text"] for item in listed["data"]] == ["One", reply("text").text, "Two"]
    assert (listed["object"], listed["has_more"]) == ("list", False)
    assert (listed["first_id"], listed["last_id"]) == (listed["data"][0]["id"], listed["data"][-1]["id"])
    _, page = ask(running, "GET", f"/v1/responses/{second['id']}/input_items?limit=1&after={listed['last_id']}")
    assert [item["id"] for item in page["data"]] == [listed["data"][1]["id"]]
    assert page["has_more"] is True
    assert ask(running, "GET", f"/v1/responses/{second['id']}/input_items?limit=101")[0] == 400
    assert ask(running, "POST", f"/v1/responses/{second['id']}/cancel")[0] == 400
    status, gone = ask(running, "DELETE", f"/v1/responses/{first['id']}")
    assert (status, gone) == (200, {"id": first["id"], "object": "response", "deleted": True})
    assert ask(running, "GET", f"/v1/responses/{first['id']}")[0] == 404
    assert ask(running, "DELETE", f"/v1/responses/{first['id']}")[0] == 404
    # What went on from it has lost its beginning: no model is asked half a conversation.
    status, refused = post(running, {"model": "via-openai-chat", "input": "3", "previous_response_id": second["id"]})
    assert (status, refused["error"]["type"]) == (404, "invalid_request_error")
    assert refused["error"]["code"] == "previous_response_not_found"


def test_an_unknown_id_and_another_keys_id_look_the_same(running: Running) -> None:
    running.answer(whole_of("openai-chat", reply("text")))
    _, mine = post(running, {"model": "via-openai-chat", "input": "secret"})
    running.provider.requests.clear()
    unknown = "resp_000000000000000000000000"
    for method, end in (("GET", ""), ("DELETE", ""), ("GET", "/input_items"), ("POST", "/cancel")):
        foreign = ask(running, method, f"/v1/responses/{mine['id']}{end}", key="two")
        missing = ask(running, method, f"/v1/responses/{unknown}{end}", key="two")
        assert foreign[0] == missing[0] == 404
        assert json.dumps(foreign).replace(mine["id"], "ID") == json.dumps(missing).replace(unknown, "ID")
    follow = {"model": "via-openai-chat", "input": "And?"}
    for body in (
        follow | {"previous_response_id": mine["id"]},
        follow | {"input": [{"type": "item_reference", "id": mine["output"][0]["id"]}]},
        follow | {"model": "via-openai-responses", "previous_response_id": mine["id"]},
    ):
        assert post(running, body, key="two")[0] == 404
    assert running.provider.requests == []
    assert post(running, follow | {"previous_response_id": mine["id"]})[0] == 200


def test_items_can_be_named_instead_of_sent(running: Running) -> None:
    """As the AI SDK does where responses are stored."""
    running.answer(whole_of("openai-responses", reply("single")))
    _, first = post(running, {"model": "via-openai-responses", "input": "Weather?", "tools": [TOOL]})
    call = next(item for item in first["output"] if item["type"] == "function_call")
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}
    items = [{"role": "user", "content": "Weather?"}, {"type": "item_reference", "id": call["id"]}, result]
    running.answer(whole_of("openai-chat", reply("text")))
    status, _ = post(running, {"model": "via-openai-chat", "input": items, "tools": [TOOL], "store": False})
    assert status == 200
    calls = [part for message in asked(running, "openai-chat").messages for part in message.tool_calls]
    assert [part.values() for part in calls] == [json.loads(call["arguments"])]


def test_what_is_not_to_be_stored_is_not(running: Running) -> None:
    running.answer(whole_of("openai-chat", reply("text")))
    _, answer = post(running, {"model": "via-openai-chat", "input": "Hi", "store": False})
    assert answer["store"] is False
    assert ask(running, "GET", f"/v1/responses/{answer['id']}")[0] == 404
    status, refused = post(running, {"model": "via-openai-chat", "input": "Hi", "conversation": "conv_1"})
    assert (status, "conversation" in refused["error"]["message"]) == (400, True)


@pytest.mark.parametrize("provider", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("store", [True, False])
def test_a_response_in_the_background_is_refused_and_never_claimed(
    running: Running, provider: str, store: bool
) -> None:
    running.answer(whole_of(provider, reply("text")))
    asked = {"model": f"via-{provider}", "input": "Hi", "store": store}
    status, refused = post(running, {**asked, "background": True})
    assert (status, "background" in refused["error"]["message"]) == (400, True)
    assert post(running, {**asked, "background": False})[0] == 200


def test_a_failed_answer_is_not_stored(running: Running) -> None:
    data = wire("openai-chat", reply("text"))
    running.answer([*streamed(data[: data.index(b'finish_reason":"stop')])[:-1], "close"])
    headers = {"authorization": "Bearer one"}
    body = json.dumps({"model": "via-openai-chat", "input": "Hi", "stream": True}).encode()
    _, _, answer = running.request("POST", "/v1/responses", body, headers)
    created = json.loads(answer.partition(b"data: ")[2].partition(b"\n")[0])["response"]["id"]
    assert b"response.completed" not in answer
    assert ask(running, "GET", f"/v1/responses/{created}")[0] == 404


def test_tokens_of_a_request_are_counted(running: Running) -> None:
    status, counted = post(
        running, {"model": "via-openai-chat", "input": "word " * 400}, path="/v1/responses/input_tokens"
    )
    assert status == 200
    assert 400 <= counted["input_tokens"] <= 700


def test_nothing_is_kept_where_the_configuration_says_so(tmp_path: Path) -> None:
    with gateway(tmp_path, "[server]\nstore_responses = false\n") as running:
        running.answer(whole_of("openai-responses", reply("text")))
        _, answer = post(running, {"model": "via-openai-responses", "input": "Hi", "store": True})
        assert running.provider.requests[-1].json.get("store", False) is False
        assert ask(running, "GET", f"/v1/responses/{answer['id']}")[0] == 404
        for field in ("previous_response_id", "conversation"):
            assert post(running, {"model": "via-openai-responses", "input": "Hi", field: answer["id"]})[0] == 400
    assert list(tmp_path.rglob("responses.sqlite*")) == []


# ---------------------------------------------------------------- workers and restarts


class FollowUps:
    """Conversations of two keys that go on by their ids; what went wrong is counted."""

    def __init__(self, provider: Scripted) -> None:
        self.provider = provider
        self.turns = self.misses = self.foreign = 0
        self._dice = random.Random(7)
        self._last = {"one": ("", 0), "two": ("", 0)}

    def go_on(self, turns: int, ports: tuple[int, ...]) -> None:
        """So many turns, each at one of the ports."""
        for _ in range(turns):
            key, other = self._dice.sample(["one", "two"], 2)
            before, depth = self._last[key]
            if depth >= 40:  # a long conversation costs this test time, not the store
                before, depth = "", 0
            body = {"model": "coder", "input": f"{key} {self.turns}"}
            if before:
                body["previous_response_id"] = before
            status, answer = self._ask(ports, "POST", "/v1/responses", key, body)
            self.misses += status != 200
            request = PROTOCOLS["openai-chat"].parse_request(self.provider.requests[-1].body).request
            words = [text for role, text in said(request) if role == "user"]
            self.misses += len(words) != depth + 1
            self.foreign += any(not text.startswith(f"{key} ") for text in words)
            self.foreign += self._ask(ports, "GET", f"/v1/responses/{answer['id']}", other)[0] != 404
            self._last[key] = (answer["id"], depth + 1)
            self.turns += 1

    def _ask(
        self, ports: tuple[int, ...], method: str, path: str, key: str, body: dict[str, Any] | None = None
    ) -> tuple[int, Any]:
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        with closing(http.client.HTTPConnection("127.0.0.1", self._dice.choice(ports), timeout=20)) as connection:
            connection.request(method, path, json.dumps(body) if body else None, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())


def worker_config(folder: Path, url: str) -> Path:
    file = folder / "gateway.toml"
    keys = ", ".join(f'"sha256:{hashlib.sha256(key.encode()).hexdigest()}"' for key in ("one", "two"))
    lines = [
        f'[server]\nstate = "state"\nkeys = [{keys}]',
        f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{url}/v1"',
        '[routes.coder]\ntargets = ["lab/model-1"]',
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


#: Turns before a restart, and after it.
EACH = 500 if IS_SOAK else 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are workers only where there is fork")
def test_follow_ups_over_two_workers_and_a_restart(tmp_path: Path) -> None:
    """No miss and no cross-key read. The kernel spreads the connections, one a request, over both workers."""
    with serving(whole_of("openai-chat", reply("text"))) as provider:
        follow_ups = FollowUps(provider)
        words = ("--config", str(worker_config(tmp_path, provider.url)), "--workers", "2")
        for _ in range(2):
            with serve(tmp_path, *words) as (program, port):
                follow_ups.go_on(EACH, (port,))
                program.terminate()
                assert program.wait(20) == 0
    assert (follow_ups.turns, follow_ups.misses, follow_ups.foreign) == (2 * EACH, 0, 0)


def test_follow_ups_at_the_other_worker(tmp_path: Path) -> None:
    """The same where it is sure which of two processes is asked, and where they are killed in the middle."""
    with serving(whole_of("openai-chat", reply("text"))) as provider:
        follow_ups = FollowUps(provider)
        words = ("--config", str(worker_config(tmp_path, provider.url)))
        for _ in range(2):
            with serve(tmp_path, *words) as (_, first), serve(tmp_path, *words) as (_, second):
                follow_ups.go_on(40, (first, second))
    assert (follow_ups.turns, follow_ups.misses, follow_ups.foreign) == (80, 0, 0)


def test_a_damaged_file_is_put_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "responses.sqlite").write_bytes(b"this is no database, and long enough to be taken for one" * 40)
    (state / "seals.sqlite").write_bytes(b"nor is this" * 400)
    with gateway(tmp_path, '[server]\nstate = "state"\n') as running:
        running.answer(whole_of("openai-chat", reply("text")))
        _, first = post(running, {"model": "via-openai-chat", "input": "Hi"})
        follow = {"model": "via-openai-chat", "input": "And?", "previous_response_id": first["id"]}
        assert post(running, follow)[0] == 200
    assert [file.read_bytes()[:7] for file in state.glob("responses.sqlite.damaged-*")] == [b"this is"]
    assert "responses.sqlite is damaged; it was kept as" in caplog.text
    assert (state / "responses.sqlite").stat().st_mode & 0o777 == 0o600


def test_a_file_that_breaks_while_it_is_open_is_put_aside_too(tmp_path: Path) -> None:
    with gateway(tmp_path, '[server]\nstate = "state"\n') as running:
        running.answer(whole_of("openai-chat", reply("text")))
        post(running, {"model": "via-openai-chat", "input": "Hi" * 5_000})
        file = tmp_path / "state" / "responses.sqlite"
        with sqlite3.connect(file) as other:  # all of it into the file, then noise over it
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        other.close()
        with file.open("r+b") as stream:
            stream.seek(100)
            stream.write(b"\xff" * 20_000)
        _, first = post(running, {"model": "via-openai-chat", "input": "Hi" * 5_000})
        follow = {"model": "via-openai-chat", "input": "And?", "previous_response_id": first["id"]}
        assert post(running, follow)[0] == 200


def test_a_file_that_is_removed_is_begun_anew_by_all_workers(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    state = f'[server]\nstate = "{tmp_path / "state"}"\n'
    with gateway(tmp_path / "a", state) as first, gateway(tmp_path / "b", state) as second:
        for worker in (first, second):
            worker.answer(whole_of("openai-chat", reply("text")))
            post(worker, {"model": "via-openai-chat", "input": "Hi"})
        for file in (tmp_path / "state").iterdir():
            file.unlink()
        _, answer = post(first, {"model": "via-openai-chat", "input": "Hi"})
        follow = {"model": "via-openai-chat", "input": "And?", "previous_response_id": answer["id"]}
        assert post(second, follow)[0] == 200


def test_workers_may_begin_a_file_at_once(tmp_path: Path) -> None:
    async def begin() -> list[str]:
        workers = [Responses(tmp_path / "responses.sqlite") for _ in range(8)]
        await asyncio.gather(*(worker.keep("a", kept(f"r{number}")) for number, worker in enumerate(workers)))
        found = [(await workers[-1 - number].find("a", f"r{number}")).id for number in range(8)]
        for worker in workers:
            worker.close()
        return found

    for _ in range(5):
        for file in tmp_path.iterdir():
            file.unlink()
        assert asyncio.run(begin()) == [f"r{number}" for number in range(8)]


def test_a_file_of_a_newer_dragoman_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "state" / "responses.sqlite"
    file.parent.mkdir()
    with sqlite3.connect(file) as newer:
        newer.execute("CREATE TABLE response (number INTEGER PRIMARY KEY)")
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    with gateway(tmp_path, '[server]\nstate = "state"\n') as running:
        running.answer(whole_of("openai-chat", reply("text")))
        _, first = post(running, {"model": "via-openai-chat", "input": "Hi"})
        follow = {"model": "via-openai-chat", "input": "And?", "previous_response_id": first["id"]}
        assert post(running, follow)[0] == 200
    assert "a newer dragoman has written it" in caplog.text
    with sqlite3.connect(file) as newer:
        assert newer.execute("SELECT * FROM response").description[0][0] == "number"
    newer.close()


def test_a_folder_that_cannot_be_written_keeps_them_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with gateway(tmp_path, '[server]\nstate = "file/state"\n') as running:
        running.answer(whole_of("openai-chat", reply("text")))
        _, first = post(running, {"model": "via-openai-chat", "input": "Hi"})
        follow = {"model": "via-openai-chat", "input": "And?", "previous_response_id": first["id"]}
        assert post(running, follow)[0] == 200


# ---------------------------------------------------------------- bounds


def test_a_conversation_may_grow_so_long_and_no_longer(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.storage.responses.LONGEST", 4_000)
    running.answer(whole_of("openai-chat", reply("text")))
    body: dict[str, Any] = {"model": "via-openai-chat", "input": "w" * 900}
    for _ in range(3):
        status, answer = post(running, body)
        assert status == 200
        body["previous_response_id"] = answer["id"]
    _, last = post(running, body)
    body["previous_response_id"] = last["id"]
    running.provider.requests.clear()
    assert post(running, body)[0] == 413
    assert ask(running, "GET", f"/v1/responses/{last['id']}/input_items")[0] == 413
    assert ask(running, "GET", f"/v1/responses/{last['id']}")[0] == 200
    assert running.provider.requests == []


def kept(id: str, size: int = 10) -> Kept:
    return Kept(id, None, (), json.dumps({"id": id, "text": "x" * size}).encode())


def ids(responses: Responses, owner: str, names: list[str]) -> list[str]:
    async def look() -> list[str]:
        found = []
        for name in names:
            try:
                found.append((await responses.find(owner, name)).id)
            except NotKept:
                continue
        return found

    return asyncio.run(look())


def filled(bounds: Bounds, rows: list[tuple[str, Kept]]) -> Responses:
    responses = Responses(None, bounds=bounds)

    async def fill() -> None:
        for owner, row in rows:
            await responses.keep(owner, row)

    asyncio.run(fill())
    return responses


def test_one_key_cannot_push_out_anothers() -> None:
    rows = [("a", kept("first")), *(("b", kept(f"b{number}")) for number in range(200))]
    responses = filled(Bounds(own_rows=50, own_size=10**9, rows=1000, size=10**9, age=10**9), rows)
    left = ids(responses, "b", [f"b{number}" for number in range(200)])
    assert 50 <= len(left) <= 50 + 64
    assert left[-1] == "b199"
    assert ids(responses, "a", ["first"]) == ["first"]
    responses.close()


def test_bytes_and_age_are_bounded() -> None:
    rows = [("a", kept(f"a{number}", 9 * 1024 * 1024)) for number in range(4)]
    responses = filled(Bounds(own_rows=1000, own_size=20 * 1024 * 1024, rows=1000, size=10**9, age=10**9), rows)
    assert ids(responses, "a", [f"a{number}" for number in range(4)]) == ["a2", "a3"]
    responses.close()
    responses = filled(Bounds(own_rows=9, own_size=10**9, rows=9, size=10**9, age=-1), [("a", kept("a0"))])
    assert ids(responses, "a", ["a0"]) == []
    responses.close()
