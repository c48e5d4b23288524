"""Nothing that lives as long as the gateway keeps what a client made long: names, ids, headers, texts."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Params, Request, Text, Tool, ToolCall, ToolResult
from gateway.running import Running, gateway
from gateway.test_made_up_names import _NOT_OURS
from scripted import chunk, head

_MARK = "long-word-"
_PREFIX = {"openai-chat": "/v1", "openai-responses": "/v1", "gemini-generate": "/v1beta"}
_LINES = b'{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true,"done_reason":"stop"}\nnonsense\n'
#: Characters of all that is kept of 20 rounds: names of 400 in some tables and the last lines of the log.
_KEPT = 400_000


def long(number: int, characters: int = 20_000) -> str:
    return f"{_MARK}{number}-" + "x" * characters


def kept(root: object) -> int:
    """Characters of the texts of clients that can be reached from here."""
    count, waiting, seen = 0, [root], {id(root)}
    while waiting:
        here: Any = waiting.pop()
        if isinstance(here, str | bytes | bytearray):
            mark: Any = _MARK if isinstance(here, str) else _MARK.encode()
            count += len(here) if mark in here else 0
            continue
        for inner in gc.get_referents(here):
            if id(inner) not in seen and not isinstance(inner, _NOT_OURS):
                seen.add(id(inner))
                waiting.append(inner)
    return count


def body_of(protocol: str, model: str, number: int) -> tuple[str, dict[str, Any]]:
    """Path and body of a request in which every word that a client chooses is long."""
    word = long(number)
    tool = Tool(f"f{number}", word, b'{"type":"object","properties":{"%s":{"type":"string"}}}' % word.encode())
    call = ToolCall(f"call-{number}-" + "y" * 40, f"f{number}", json.dumps({"a": word}))
    said = (Message("user", (Text(word),)), Message("assistant", (Text(word), call)),
            Message("tool", (ToolResult(call.id, call.name, (Text(word),)),)))  # fmt: skip
    request = Request(model, said, (tool,), params=Params(max_tokens=10, stop=(word[:60],)))
    sent = PROTOCOLS[protocol].render_request(request).http
    path = sent.path if sent.path.startswith("/v1/") else _PREFIX.get(protocol, "") + sent.path
    return path, json.loads(sent.body) | {"metadata": {word[:50]: word}, "user": word, "prompt_cache_key": word}


def ask(running: Running, path: str, body: dict[str, Any], number: int) -> int:
    running.answer([head(200, content_type="application/x-ndjson"), chunk(_LINES), b"0\r\n\r\n"])
    names = ("x-client-request-id", "user-agent", "traceparent", "x-session-id", "openai-organization")
    headers = dict.fromkeys(names, long(number, 4_000))
    return running.request("POST", path, json.dumps(body).encode(), headers)[0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_long_word_of_a_client_is_kept(tmp_path: Path, protocol: str) -> None:
    with gateway(tmp_path) as running:
        statuses = set()
        for number in range(20):
            statuses.add(ask(running, *body_of(protocol, "via-ollama-chat", number), number))
            path, body = body_of(protocol, f"ollama-chat/{long(number)}", number)
            statuses.add(ask(running, path, body, number))
            statuses.add(ask(running, *body_of(protocol, long(number, 300) + "/m", number), number))
            statuses.add(ask(running, *body_of(protocol, f"ollama-chat/{long(number, 400)}", number), number))
            running.request("GET", f"/v1/responses/{long(number)}")
            running.request("GET", f"/{long(number)}")
            running.request("GET", f"/v1/models/{long(number)}")
        assert 200 in statuses and 404 in statuses, statuses
        assert kept(running.gateway) < _KEPT


def test_a_walk_finds_what_is_kept() -> None:
    assert kept({"a": [long(1)]}) > 20_000


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_long_name_is_refused_in_the_clients_form(tmp_path: Path, protocol: str) -> None:
    with gateway(tmp_path) as running:
        for name in (f"ollama-chat/{long(1, 600)}", long(1, 600)):
            path, body = body_of(protocol, name, 1)
            running.answer([head(200, content_type="application/x-ndjson"), chunk(_LINES), b"0\r\n\r\n"])
            code, _, said = running.request("POST", path, json.dumps(body).encode())
            assert code == 404
            failure = PROTOCOLS[protocol].parse_error(code, said)
            assert f"at most 512 characters, got {len(name)}" in failure.message
            assert not running.provider.requests
