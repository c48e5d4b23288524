"""A field beside nothing (an empty text, a message without parts), in an object of which only the text is kept, or in a
message that is joined to another, is sent or named like any other."""

from __future__ import annotations

import json
from typing import Any

from dragoman.protocols import PROTOCOLS
from for_each import for_each

MARK = "Zk1q"
ODD = {"xOdd": MARK}
ASKED = {"role": "user", "content": "Hi."}


def chat(*messages: Any, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "openai-chat", {"model": "m", "messages": [ASKED, *messages], **fields}


def anthropic(*blocks: Any, role: str = "user") -> tuple[str, dict[str, Any]]:
    said = {"role": role, "content": [*blocks, {"type": "text", "text": "a"}]}
    return "anthropic-messages", {"model": "m", "max_tokens": 9, "messages": [ASKED, said]}


def gemini(part: Any, *contents: Any, role: str = "user") -> tuple[str, dict[str, Any]]:
    return "gemini-generate", {"model": "m", "contents": [{"role": role, "parts": [{"text": "a"}, part]}, *contents]}


def responses(*items: Any, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "openai-responses", {"model": "m", "input": [ASKED, *items], **fields}


NEIGHBOUR = {"role": "model", "parts": [{"text": "d"}], **ODD}
SCHEMA = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}
THOUGHT = {"type": "reasoning", "id": "rs_1", "encrypted_content": "e"}
CASES = [
    chat({"role": "assistant", "content": "", **ODD}),
    chat({"role": "user", "content": [{"type": "text", "text": "", **ODD}]}),
    chat(stream_options=ODD),
    chat(stream=True, stream_options=ODD),
    anthropic({"type": "text", "text": "", **ODD}),
    anthropic({"type": "text", "text": "", "cache_control": {"type": MARK}}),
    anthropic({"type": "text", "text": "", **ODD}, role="assistant"),
    gemini({"text": "", **ODD}),
    gemini({"text": "", "thought": True, **ODD}, role="model"),
    gemini({"text": "b"}, {"role": "model", "parts": [{"text": "c"}], "x": 1}, NEIGHBOUR, role="model"),
    gemini({"text": "b"}, {"role": "model", "parts": [{"text": "c"}], "xOdd": 1}, NEIGHBOUR, role="model"),
    responses({"type": "message", "role": "assistant", "content": "", **ODD}),
    responses({"type": "message", "role": "assistant", "content": [], "id": MARK, "phase": "commentary"}),
    responses({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "", **ODD}]}),
    responses({"role": "user", "content": "", **ODD}),
    responses({"role": "tool", "tool_call_id": "c", "content": "x", **ODD}),
    responses({**THOUGHT, "summary": [{"type": "summary_text", "text": "t", **ODD}]}),
    responses({**THOUGHT, "summary": [], "content": [{"type": "reasoning_text", "text": "t", **ODD}]}),
    responses(text={"format": {**SCHEMA, **ODD}}),
    responses(text={"format": {"type": "text", **ODD}}),
    responses(text={"format": {"type": "json_object", **ODD}}),
]
#: Words of which one stands at the end of a path that names the field, or what it is in and is left out with.
NAMES = ("xOdd", "id", "cache_control", "cache_control.type", "stream_options", "parts[0]", "parts[1]")


@for_each("client, body", CASES)
def test_a_field_beside_nothing_is_sent_or_named(client: str, body: dict[str, Any]) -> None:
    path = "/v1beta/models/m:generateContent" if client == "gemini-generate" else ""
    parsed = PROTOCOLS[client].parse_request(json.dumps(body).encode(), path=path)
    for target in PROTOCOLS:
        rendered = PROTOCOLS[target].render_request(parsed.request)
        said = [note.where for note in (*parsed.deviations, *rendered.deviations)]
        assert MARK in rendered.http.body.decode() or any(where.endswith(NAMES) for where in said), (target, said)


def test_null_there_is_nothing() -> None:
    item = {**THOUGHT, "summary": [{"type": "summary_text", "text": "t", "xOdd": None}]}
    client, body = responses(item, text={"format": {**SCHEMA, "xOdd": None}})
    assert PROTOCOLS[client].parse_request(json.dumps(body).encode()).deviations == ()
