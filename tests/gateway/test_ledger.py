"""Every physical request that a provider may bill has one row, whatever became of it, and nothing but figures in it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reliability.caller import rendered, spoken

from conversations import reply
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.reports.checking import check
from dragoman.ledger.reports.exporting import export_csv
from dragoman.protocols import PROTOCOLS
from gateway.recording import Recording, recording, rows
from gateway.running import Running, stream_of, whole_of, wire
from scripted import chunk, head, whole

TOKENS = (120, 34)
PRICES = "".join(
    f'[prices."{name}/model-1"]\ninput = 2.5\noutput = 10\ncache_read = 1\n' for name in PROTOCOLS
)  # fmt: skip
NANO = 120 * 2_500 + 34 * 10_000
CHAT = "openai-chat"


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recording]:
    with recording(tmp_path, PRICES) as found:
        yield found


def ask(running: Running, client: str, model: str, *, stream: bool, prompt: str = "") -> tuple[int, bytes]:
    """One request in a client's protocol."""
    path, body = spoken(client, model, stream=stream)
    status, _, data = running.request("POST", path, body, {"content-type": "application/json"})
    return status, data


def settled(folder: LedgerFolder, count: int) -> list[dict[str, Any]]:
    """The rows, when so many have ended."""
    until = time.monotonic() + 10
    while len(found := rows(folder)) < count or any(row["state"] == "reserved" for row in found):
        assert time.monotonic() < until, f"expected {count} rows, found {len(found)}"
        time.sleep(0.02)
    assert check(folder).differences == []
    return found


@pytest.mark.parametrize("provider", PROTOCOLS)
def test_each_of_the_pairs_makes_one_row(recorded: Recording, provider: str) -> None:
    running, folder, _ = recorded
    asked = 0
    for client in PROTOCOLS:
        for stream in (True, False):
            answer = stream_of(provider, reply("text")) if stream else whole_of(provider, reply("text"))
            running.answer(answer)
            status, data = ask(running, client, f"{provider}/model-1", stream=stream)
            assert (status, len(running.provider.requests)) == (200, 1), data
            asked += 1
    found = settled(folder, asked)
    assert len(found) == asked
    for row in found:
        assert (row["state"], row["reason"], row["status"], row["reported"]) == ("settled", "", 200, 1)
        assert (row["input"], row["output"], row["nano"]) == (*TOKENS, NANO)
        assert (row["target"], row["ordinal"], row["key"]) == (f"{provider}/model-1", 0, "")
        assert row["size"] > 20


def test_a_fallback_and_what_failed_before_it_are_rows_of_one_request(tmp_path: Path) -> None:
    route = f'[routes.both]\ntargets = ["{CHAT}/first", "anthropic-messages/second"]\n'
    with recording(tmp_path, route) as (running, folder, _):
        refused = whole(b'{"error":{"message":"secret words of the provider"}}', 503)
        running.answer(refused, stream_of("anthropic-messages", reply("text")))
        status, _ = ask(running, CHAT, "both", stream=True)
        assert status == 200
        first, second = settled(folder, 2)
    assert first["request"] == second["request"]
    assert [row["ordinal"] for row in (first, second)] == [0, 1]
    assert (first["target"], first["route"], first["state"], first["reason"], first["status"]) == (
        f"{CHAT}/first", "both", "estimated", "overloaded", 503,
    )  # fmt: skip
    assert (first["nano"], first["input"]) == (None, None)  # whether it is billed nobody says
    assert (second["target"], second["state"]) == ("anthropic-messages/second", "settled")
    assert second["nano"] is None  # no price is known


def test_the_same_target_once_more_is_a_row_of_its_own(tmp_path: Path) -> None:
    with recording(tmp_path, "[http]\nretries = 1\n" + PRICES) as (running, folder, _):
        running.answer(whole(b"{}", 503, "application/json", "retry-after: 0"), stream_of(CHAT, reply("text")))
        assert ask(running, CHAT, f"{CHAT}/model-1", stream=True)[0] == 200
        found = settled(folder, 2)
    assert [(row["state"], row["ordinal"]) for row in found] == [("estimated", 0), ("settled", 1)]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 429])
def test_a_refusal_that_nobody_bills_is_void(recorded: Recording, status: int) -> None:
    running, folder, _ = recorded
    running.answer(whole(b'{"error":{"message":"no"}}', status))
    ask(running, CHAT, f"{CHAT}/model-1", stream=False)
    [row] = settled(folder, 1)
    assert (row["state"], row["nano"], row["status"], row["input"]) == ("void", 0, status, None)


def test_tools_asked_for_in_another_form_are_two_rows(tmp_path: Path) -> None:
    more = f'[models."{CHAT}/model-1"]\ntools = "auto"\n' + PRICES
    with recording(tmp_path, more) as (running, folder, _):
        refusal = whole(b'{"error":{"message":"this model does not support tools"}}', 400)
        running.answer(refusal, stream_of(CHAT, reply("text")))
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
        body = {"model": f"{CHAT}/model-1", "messages": [{"role": "user", "content": "Hi"}], "tools": [tool]}
        status, _, data = running.request("POST", "/v1/chat/completions", json.dumps({**body, "stream": True}).encode())
        assert status == 200, data
        found = settled(folder, len(running.provider.requests))
    assert [row["state"] for row in found] == ["void", "settled"]


def test_a_kept_connection_that_dies_is_two_physical_requests(recorded: Recording) -> None:
    running, folder, _ = recorded
    running.answer(whole_of(CHAT, reply("text")), ["close"], whole_of(CHAT, reply("text")))
    for _ in range(2):
        assert ask(running, CHAT, f"{CHAT}/model-1", stream=False)[0] == 200
    assert len(running.provider.requests) == 3
    found = settled(folder, 3)
    assert [(row["state"], row["reason"]) for row in found] == [
        ("settled", ""),
        ("estimated", "resent"),
        ("settled", ""),
    ]
    assert [row["ordinal"] for row in found] == [0, 0, 1]
    assert found[1]["nano"] is None


def test_a_provider_that_cannot_be_reached_was_not_asked(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    more = f'[providers.gone]\nprotocol = "{CHAT}"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
    with recording(tmp_path, more) as (running, folder, _):
        assert ask(running, CHAT, "gone/model", stream=False)[0] == 502
    assert rows(folder) == []


def said_at_first(provider: str) -> int:
    """The least input that a stream's row has: where its first event says 0 tokens, that stands."""
    return 0 if b'"input_tokens":0' in wire(provider, reply("text")).partition(b"Hello")[0] else 1


@pytest.mark.parametrize("provider", PROTOCOLS)
def test_a_cut_stream_is_estimated_from_what_was_seen(recorded: Recording, provider: str) -> None:
    running, folder, _ = recorded
    data = wire(provider, reply("text"))
    begun = data[: data.index(b"\n", data.index(b"Hello")) + 1] + b"\n"
    running.answer([head(200, PROTOCOLS[provider].stream_type), chunk(begun), "close"])
    ask(running, CHAT, f"{provider}/model-1", stream=True)
    [row] = settled(folder, 1)
    assert (row["state"], row["reported"]) == ("estimated", 0)
    assert row["output"] >= 1
    assert row["input"] >= said_at_first(provider)
    assert row["reason"] in ("connection", "wire")
    assert row["nano"] is not None and row["nano"] > 0


def test_an_answer_without_usage_is_estimated_and_an_explicit_zero_stands_unless_text_was_seen(
    recorded: Recording,
) -> None:
    running, folder, _ = recorded
    zeros = {"usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}}
    for text, usage in (("Hello you there", {}), ("Hello you there", zeros), ("", zeros)):
        message = {"role": "assistant", "content": text}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [
            {"index": 0, "message": message, "finish_reason": "stop"}]}  # fmt: skip
        running.answer(whole(json.dumps({**answer, **usage}).encode()))
        assert ask(running, CHAT, f"{CHAT}/model-1", stream=False)[0] == 200
    *beside_text, zero = settled(folder, 3)
    for row in beside_text:
        assert (row["state"], row["reason"], row["reported"]) == ("estimated", "no_usage", 0)
        assert row["output"] >= 4 and row["input"] > 0 and row["nano"] > 0
    assert (zero["state"], zero["input"], zero["output"], zero["nano"]) == ("settled", 0, 0, 0)


def leave(running: Running, path: str, body: bytes, *, resets: bool, after: bytes = b"") -> None:
    """Ask, wait until the provider has the request and these bytes of its answer are here, and go."""
    before = len(running.provider.requests)
    connection = socket.create_connection(("127.0.0.1", running.gateway.port), timeout=30)
    connection.sendall(rendered(path, body))
    until = time.monotonic() + 30
    while len(running.provider.requests) == before and time.monotonic() < until:
        time.sleep(0.005)
    seen = b""
    while after not in seen:
        data = connection.recv(65_536)
        assert data, seen
        seen += data
    time.sleep(0.05)
    if resets:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()


@pytest.mark.parametrize("phase", ["waiting", "mid-stream", "whole"])
@pytest.mark.parametrize("client", PROTOCOLS)
def test_a_client_that_goes_leaves_one_row(recorded: Recording, client: str, phase: str) -> None:
    running, folder, _ = recorded
    data = wire(client, reply("text"))
    begun = data[: data.index(b"\n", data.index(b"Hello")) + 1] + b"\n"
    script = {"waiting": ["hold"], "whole": ["hold"], "mid-stream": [
        head(200, PROTOCOLS[client].stream_type), chunk(begun), "hold"]}[phase]  # fmt: skip
    for number, resets in enumerate((False, True), 1):
        running.answer(script)  # type: ignore[arg-type]
        path, body = spoken(client, f"{client}/model-1", stream=phase != "whole")
        leave(running, path, body, resets=resets, after=b"Hello" if phase == "mid-stream" else b"")
        row = settled(folder, number)[-1]
        assert (row["state"], row["reason"], row["reported"]) == ("estimated", "cancelled", 0)
        assert row["input"] >= (said_at_first(client) if phase == "mid-stream" else 1)
        assert row["output"] >= (1 if phase == "mid-stream" else 0)


def test_vectors_and_forwarded_requests_have_rows(recorded: Recording) -> None:
    running, folder, _ = recorded
    vectors = {"object": "list", "model": "m", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}]}
    running.answer(whole(json.dumps({**vectors, "usage": {"prompt_tokens": 7, "total_tokens": 7}}).encode()))
    body = json.dumps({"model": f"{CHAT}/model-1", "input": "words"}).encode()
    assert running.request("POST", "/v1/embeddings", body)[0] == 200
    running.answer(whole(b'{"choices":[]}'))
    body = json.dumps({"model": f"{CHAT}/model-1", "prompt": "words", "n": 2, "echo": True, "logprobs": 3}).encode()
    assert running.request("POST", "/v1/completions", body)[0] == 200
    embedded, forwarded = settled(folder, 2)
    assert (embedded["state"], embedded["input"], embedded["output"], embedded["nano"]) == ("settled", 7, 0, 7 * 2_500)
    assert (forwarded["state"], forwarded["reason"]) == ("estimated", "no_usage")


def test_a_forwarded_answer_costs_what_its_provider_says(recorded: Recording) -> None:
    """Of twenty texts that are made the best one is sent: what was seen is a twentieth."""
    running, folder, _ = recorded
    usage = {"prompt_tokens": 5, "completion_tokens": 2_000, "total_tokens": 2_005}
    told = {"id": "c", "object": "text_completion", "created": 1, "model": "m"}
    end = {**told, "choices": [{"text": "hi", "index": 0, "finish_reason": "stop"}], "usage": usage}
    begin = {**told, "choices": [{"text": "a", "index": 0}]}
    streamed = "".join(f"data: {json.dumps(each)}\n\n" for each in (begin, end)) + "data: [DONE]\n\n"
    asked = {"model": f"{CHAT}/model-1", "prompt": "words", "best_of": 20}
    answers = (whole(json.dumps(end).encode()), whole(streamed.encode(), 200, "text/event-stream"))
    for number, answer in enumerate(answers, 1):
        running.answer(answer)
        assert running.request("POST", "/v1/completions", json.dumps(asked).encode())[0] == 200
        row = settled(folder, number)[-1]
        assert (row["state"], row["input"], row["output"]) == ("settled", 5, 2_000)
        assert row["nano"] == 5 * 2_500 + 2_000 * 10_000


def test_an_answer_with_other_than_the_vectors_asked_for_is_counted(recorded: Recording) -> None:
    """Its provider bills it like any other, whichever target is asked next."""
    running, folder, _ = recorded
    vectors = [{"object": "embedding", "index": index, "embedding": [0.5]} for index in range(2)]
    told: dict[str, Any] = {"object": "list", "data": vectors, "usage": {"prompt_tokens": 7}}
    answers = (json.dumps(told), {7}), (json.dumps({"data": vectors}), range(8, 20)), ("<html>", range(8, 20))
    for number, (unfit, seen) in enumerate(answers, 1):
        running.answer(whole(unfit.encode()))
        body = json.dumps({"model": f"{CHAT}/model-1", "input": "words"}).encode()
        assert running.request("POST", "/v1/embeddings", body)[0] == 502
        row = settled(folder, number)[-1]
        assert (row["state"], row["reason"], row["nano"]) == ("estimated", "wire", (row["input"] or 0) * 2_500)
        assert row["input"] in seen, row


def test_pages_of_the_gateway_make_no_rows(recorded: Recording) -> None:
    running, folder, _ = recorded
    for path in ("/v1/models", "/api/tags", "/api/version", "/readyz"):
        assert running.request("GET", path)[0] == 200
    assert not folder.journals.exists()


def test_the_intent_stands_in_the_journal_before_the_provider_reads_anything(recorded: Recording) -> None:
    running, folder, _ = recorded
    running.answer(["hold"])
    path, body = spoken(CHAT, f"{CHAT}/model-1", stream=True)
    thread = threading.Thread(target=leave, args=(running, path, body), kwargs={"resets": False})
    seen: list[bytes] = []
    next_reply = running.provider.next_reply

    def look() -> Any:
        seen.extend(file.read_bytes() for file in folder.journals.glob("*.journal"))
        return next_reply()

    running.provider.next_reply = look  # type: ignore[method-assign]
    thread.start()
    thread.join(10)
    assert len(seen) == 1
    assert f"{CHAT}/model-1".encode() in seen[0]


CANARY = "canary7f3a"


def kept(folder: LedgerFolder, words: str = "") -> list[str]:
    """The names of files that hold these words. SQLite's log goes with the last connection that is closed."""
    found = []
    for path in folder.root.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and words.encode() in path.read_bytes():
                found.append(path.name)
    return found


def test_nothing_but_figures_and_names_is_kept(tmp_path: Path) -> None:
    digest = hashlib.sha256(f"key-{CANARY}".encode()).hexdigest()
    more = f'[server]\nkeys = ["sha256:{digest}"]\n' + PRICES
    with recording(tmp_path, more) as (running, folder, _):
        body = json.dumps({"model": f"{CHAT}/model-1", "messages": [{"role": "user", "content": CANARY}]}).encode()
        headers = {"authorization": f"Bearer key-{CANARY}", "x-request-id": "client-1"}
        answered = {"id": CANARY, "object": "chat.completion", "created": 1, "model": CANARY, "choices": [
            {"index": 0, "message": {"role": "assistant", "content": CANARY, "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": CANARY, "arguments": '{"a":"%s"}' % CANARY}}]},
             "finish_reason": "stop"}], "usage": {"prompt_tokens": 5, "completion_tokens": 7}}  # fmt: skip
        for status, answer in ((200, answered), (500, {"error": {"message": CANARY, "code": CANARY, "type": CANARY}}),
                               (429, {"error": {"message": f"you said {CANARY}"}})):  # fmt: skip
            running.answer(whole(json.dumps(answer).encode(), status, "application/json", f"x-other: {CANARY}"))
            assert running.request("POST", "/v1/chat/completions", body, headers)[0] == status
        found = settled(folder, 3)
        assert [row["key"] for row in found] == [f"#{digest[:8]}"] * 3
        assert {row["client_request"] for row in found} == {"client-1"}
        assert len(kept(folder)) > 4
        assert kept(folder, CANARY) == []
        exported = "".join(export_csv(folder))
        assert exported.count(f"{CHAT}/model-1") == 3 and CANARY not in exported
    assert kept(folder, CANARY) == []


# ---------------------------------------------------------------- a ledger that cannot be written


def broken(folder: LedgerFolder) -> None:
    """Nothing can be made where journals stand."""
    folder.root.mkdir(parents=True, exist_ok=True)
    if folder.journals.is_dir():
        os.rename(folder.journals, folder.root / "away")
    folder.journals.write_text("in the way")


def test_a_full_disk_is_said_and_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    key = "a-key-of-some-length-and-chance-0123456789"
    digest = hashlib.sha256(key.encode()).hexdigest()
    for needs, more in ((False, ""), (True, f'[server]\nkeys = ["sha256:{digest}"]\n')):
        (tmp_path / str(needs)).mkdir()
        with recording(tmp_path / str(needs), more) as (running, folder, observer):
            running.answer(stream_of(CHAT, reply("text")))
            path, body = spoken(CHAT, f"{CHAT}/model-1", stream=True)
            headers = {"authorization": f"Bearer {key}"} if needs else {}
            for function in ("posix_fallocate", "write"):  # no room for a segment; where none is set apart, none for it
                with monkeypatch.context() as patched:
                    patched.setattr(f"dragoman.ledger.journal.writing.os.{function}", full)
                    status, _, data = running.request("POST", path, body, headers)
                if needs:
                    assert status == 503 and b"ledger" in data and running.provider.requests == []
                else:
                    assert status == 200
                    assert b"No space left" in running.request("GET", "/readyz")[2]
                monkeypatch.setattr(running.gateway._ledger._journal, "_next_try", 0.0)  # type: ignore[union-attr]
            assert running.request("POST", path, body, headers)[0] == 200
            assert len(settled(folder, 1)) == 1
            assert running.request("GET", "/readyz")[:1] == (200,)
            assert (b"dragoman_ledger_unrecorded_total 2" in observer.metrics.render()) is not needs


def mended(folder: LedgerFolder) -> None:
    folder.journals.unlink()


def test_without_keys_requests_go_on_and_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.ledger.journal.writing._PAUSE", 0.1)
    with recording(tmp_path, PRICES) as (running, folder, observer):
        broken(folder)
        running.answer(stream_of(CHAT, reply("text")))
        for _ in range(3):
            assert ask(running, CHAT, f"{CHAT}/model-1", stream=True)[0] == 200
        status, _, page = running.request("GET", "/readyz")
        assert status == 200 and b"ledger: requests are not recorded" in page
        assert b"dragoman_ledger_unrecorded_total 3" in observer.metrics.render()
        mended(folder)
        time.sleep(0.2)
        assert ask(running, CHAT, f"{CHAT}/model-1", stream=True)[0] == 200
        assert len(settled(folder, 1)) == 1
        assert running.request("GET", "/readyz")[2] == b"ok\n"


@pytest.mark.parametrize("client", PROTOCOLS)
def test_with_keys_what_cannot_be_recorded_is_refused(
    tmp_path: Path, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.ledger.journal.writing._PAUSE", 0.1)
    key = "a-key-of-some-length-and-chance-0123456789"
    digest = hashlib.sha256(key.encode()).hexdigest()
    headers = {"authorization": f"Bearer {key}"}
    with recording(tmp_path, f'[server]\nkeys = ["sha256:{digest}"]\n') as (running, folder, _):
        broken(folder)
        running.answer(stream_of(CHAT, reply("text")))
        path, body = spoken(client, f"{CHAT}/model-1", stream=True)
        status, found, data = running.request("POST", path, body, headers)
        assert status in (503, 529) and "retry-after" in found and b"ledger" in data
        assert running.provider.requests == []
        assert running.request("GET", "/readyz")[0] == 503
        mended(folder)
        time.sleep(0.2)
        assert running.request("POST", path, body, headers)[0] == 200
        assert running.request("GET", "/readyz")[0] == 200
        assert len(settled(folder, 1)) == 1


def test_an_attempt_that_cannot_be_recorded_is_not_sent_where_it_must_be(recorded: Recording) -> None:
    running, folder, _ = recorded
    running.gateway._ledger.is_needed = True  # type: ignore[union-attr]
    broken(folder)
    running.answer(stream_of(CHAT, reply("text")))
    ask(running, CHAT, f"{CHAT}/model-1", stream=True)
    assert running.provider.requests == []


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("needs", [True, False])
def test_an_intent_that_is_not_on_the_disk_is_not_sent_where_it_must_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool, needs: bool
) -> None:
    """`durability = "power"`: the loop goes on while the disk works, and nothing is sent before it has."""
    with recording(tmp_path, PRICES, syncs=True) as (running, folder, _):
        ledger = running.gateway._ledger
        assert ledger is not None
        ledger.is_needed = needs
        running.answer(stream_of(CHAT, reply("text")) if stream else whole_of(CHAT, reply("text")))
        assert ask(running, CHAT, f"{CHAT}/model-1", stream=stream)[0] == 200
        asked, threads = len(running.provider.requests), set()

        def broken_disk(descriptor: int) -> None:
            threads.add(threading.get_ident())
            assert len(running.provider.requests) == asked
            raise OSError(errno.EIO, "the disk is broken")

        with monkeypatch.context() as patch:
            patch.setattr("dragoman.ledger.journal.writing.os.fdatasync", broken_disk)
            ask(running, CHAT, f"{CHAT}/model-1", stream=stream)
        assert len(threads) == 1 and running.run(_thread()) not in threads
        assert len(running.provider.requests) == asked + (not needs)
        found = settled(folder, 2)
        assert [row["state"] for row in found] == ["settled", "void" if needs else "settled"]
        assert found[1]["reason"] == ("overloaded" if needs else "")  # our own refusal, which no breaker counts
        ledger.is_needed = False
        assert ask(running, CHAT, f"{CHAT}/model-1", stream=stream)[0] == 200


async def _thread() -> int:
    return threading.get_ident()
