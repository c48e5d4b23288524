"""A request read at once is the request that is read field by field: an unknown field anywhere brings the latter."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec
import pytest

from dragoman._json import Malformed
from dragoman.errors import DragomanError
from dragoman.events import Deviation
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Opaque, Part, Text, Tool, ToolResult
from wire_shapes import FOLDERS, VALUES, changes

ID = "call_000000000000000000000001"
ARGUMENTS = {"path": "a.py", "lines": [1, 1.50]}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
READ = {"name": "read", "description": "Reads."}
ASKED = {"role": "user", "content": "Look, Zoë."}


def chat() -> dict[str, Any]:
    call = {"id": ID, "type": "function", "function": {"name": "read", "arguments": json.dumps(ARGUMENTS)}}
    bad = {"id": "call_2", "type": "function", "function": {"name": "read", "arguments": " [1]"}}
    return {
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": ""}]},
            ASKED,
            {"role": "assistant", "content": None, "tool_calls": [call, bad], "refusal": None},
            {"role": "tool", "tool_call_id": ID, "content": "x = 1"},
            {"role": "assistant", "content": ""},
        ],
        "tools": [{"type": "function", "function": {**READ, "parameters": SCHEMA}}],
    }


def messages() -> dict[str, Any]:
    called = {"type": "tool_use", "id": ID, "name": "read", "input": ARGUMENTS}
    result = {"type": "tool_result", "tool_use_id": ID, "content": [{"type": "text", "text": "x"}], "is_error": True}
    return {
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            ASKED,
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, called]},
            {"role": "user", "content": [result, {"type": "text", "text": "Go on."}]},
        ],
        "tools": [{**READ, "input_schema": SCHEMA}, {"name": "ping", "input_schema": {"type": "object"}}],
    }


def gemini() -> dict[str, Any]:
    called = {"functionCall": {"name": "read", "args": ARGUMENTS}, "thoughtSignature": "s"}
    result = {"functionResponse": {"name": "read", "response": {"result": "x"}}}
    odd = {"functionResponse": {"name": "other", "response": {"a": 1, "b": 2}}}
    return {
        "model": "m",
        "systemInstruction": {"parts": [{"text": "Be brief."}, {"text": ""}], "role": "user"},
        "contents": [
            {"role": "user", "parts": [{"text": "Look."}]},
            {"role": "model", "parts": [{"text": "Yes."}, called]},
            {"role": "user", "parts": [result, odd, {"text": "Go on."}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {**READ, "parametersJsonSchema": SCHEMA},
                    {"name": "ping"},
                    {"name": "own", "parameters": SCHEMA},
                ]
            }
        ],
    }


def ollama() -> dict[str, Any]:
    return {
        "messages": [
            {"role": "system", "content": "Be brief."},
            ASKED,
            {
                "role": "assistant",
                "content": "",
                "thinking": "Hm.",
                "tool_calls": [{"function": {"name": "read", "arguments": ARGUMENTS}}],
            },
            {"role": "tool", "tool_name": "read", "content": "x = 1"},
        ],
        "tools": [{"type": "function", "function": {**READ, "parameters": SCHEMA}}],
    }


def responses() -> dict[str, Any]:
    call = {"type": "function_call", "call_id": ID, "name": "read", "arguments": json.dumps(ARGUMENTS)}
    return {
        "input": [
            {"role": "developer", "content": "Be brief."},
            {"type": "message", **ASKED, "content": [{"type": "input_text", "text": "Look, Zoë."}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            call,
            {**call, "call_id": "call_2"},
            {"type": "function_call_output", "call_id": ID, "output": "x = 1"},
            {"role": "assistant", "content": ""},
        ]
    }


BODIES = {
    "openai-chat": (chat, ("messages", "tools")),
    "anthropic-messages": (messages, ("system", "messages", "tools")),
    "gemini-generate": (gemini, ("contents", "tools")),
    "ollama-chat": (ollama, ("messages", "tools")),
    "openai-responses": (responses, ("input",)),
}


def with_odd_field(value: Any) -> Any:
    """The value with a field that nobody knows in each of its messages and tools, and in what Gemini's tools hold."""
    if isinstance(value, list):
        return [with_odd_field(item) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {"content", "parts", "functionDeclarations"}
    found = {
        key: with_odd_field(item) if key in inner and isinstance(item, list) else item for key, item in value.items()
    }
    return {**found, "xOdd": 1}


def without_odd_field(value: Any) -> Any:
    if isinstance(value, list):
        return [without_odd_field(item) for item in value]
    return (
        {key: without_odd_field(item) for key, item in value.items() if key != "xOdd"}
        if isinstance(value, dict)
        else value
    )


def bare(value: Message | Tool | Part) -> Any:
    """Without what only its own protocol knows."""
    if isinstance(value, Opaque):
        return without_odd_field(json.loads(bytes(value.raw)))
    if isinstance(value, Message | ToolResult):
        parts = [bare(part) for part in value.parts]
        value = msgspec.structs.replace(value, parts=tuple(part for part in parts if part != Text("")))
    return msgspec.structs.replace(value, native=None)


def named(deviations: tuple[Deviation, ...]) -> tuple[Deviation, ...]:
    """Without those that name the odd field."""
    return tuple(found for found in deviations if not found.where.endswith(".xOdd"))


@pytest.mark.parametrize("name", BODIES)
def test_what_is_read_at_once_is_what_is_read_field_by_field(name: str):
    make, lists = BODIES[name]
    body = {"model": "m"} | make()
    odd = {key: with_odd_field(value) if key in lists else value for key, value in body.items()}
    parse = PROTOCOLS[name].parse_request
    plain, slow = parse(json.dumps(body).encode()), parse(json.dumps(odd).encode())
    assert [bare(message) for message in plain.request.messages] == [bare(found) for found in slow.request.messages]
    assert [bare(tool) for tool in plain.request.tools] == [bare(tool) for tool in slow.request.tools]
    assert plain.deviations == named(slow.deviations)
    assert any(message.native for message in slow.request.messages)
    assert all(tool.native for tool in slow.request.tools)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_body_that_a_glance_has_taken_apart_is_read_as_any_other(name: str):
    body = json.dumps({"model": "m", "input": [ASKED], "store": False, "stop": None} | BODIES.get(name, (dict,))[0]())
    path = "/v1beta/models/m:generateContent"
    protocol = PROTOCOLS[name]
    seen = protocol.peek(body.encode(), path=path)
    assert seen is not None
    assert protocol.parse_request(body.encode(), path=path, fields=seen.fields) == protocol.parse_request(
        body.encode(), path=path
    )


def outcome(name: str, body: dict[str, Any]) -> Any:
    """What is read of a request, without what only its own protocol knows; the error's words when it is refused."""
    try:
        parsed = PROTOCOLS[name].parse_request(json.dumps(body).encode())
    except DragomanError as problem:
        return str(problem)
    request = parsed.request
    return [bare(found) for found in request.messages], [bare(tool) for tool in request.tools], named(parsed.deviations)


def says_nothing(content: dict[str, Any]) -> bool:
    """Whether a part of a Gemini content is empty."""
    parts = content["parts"] if isinstance(content["parts"], list) else []
    said = ("text", "functionCall", "functionResponse")
    return any(isinstance(part, dict) and not any(part.get(key) for key in said) for part in parts)


SAID = {
    "temperature": 0.5, "top_p": 1, "top_k": 5, "max_tokens": 100, "stream": True, "tool_choice": "auto",
    "parallel_tool_calls": False, "stream_options": {"include_usage": True}, "stop_sequences": ["x"],
    "max_output_tokens": 100, "store": False, "instructions": "Be brief.",
    "options": {"temperature": 0.5, "top_p": 1, "top_k": 5, "num_ctx": 4096, "num_predict": 100},
    "generationConfig": {"temperature": 0.5, "topP": 1, "topK": 5, "maxOutputTokens": 100},
}  # fmt: skip
NUMBERS = (-1, 0, 1, 5.0, 0.1, 2**53 + 1, 10**30, 10**400, -(10**400), "7", "x", True, [], ["x", 1], {"x": 1}, None)


def whole(name: str, body: dict[str, Any]) -> Any:
    """All that is read of a request but what only its own protocol knows of it."""
    try:
        parsed = PROTOCOLS[name].parse_request(json.dumps(body).encode())
    except DragomanError as problem:
        return str(problem)
    request = msgspec.structs.replace(parsed.request, native=None)
    return request, repr(request.params), parsed.style, named(parsed.deviations)


def parser_of(name: str) -> Any:
    return importlib.import_module(f"dragoman.protocols.{FOLDERS[name]}.request.parse")


#: The protocols that read a whole body at once.
WITH_PARAMETERS = tuple(name for name in BODIES if name != "openai-responses")


@pytest.mark.parametrize("name", WITH_PARAMETERS)
def test_a_parameter_says_the_same_read_at_once_and_field_by_field(name: str):
    assert check_parameters(name) > 300


def check_parameters(name: str) -> int:
    """How many changes were read alike: each field that a request read at once may have, and each inner one, with
    values of every type."""
    module = parser_of(name)
    body = {"model": "m"} | BODIES[name][0]() | {key: SAID[key] for key in SAID if key in module._PLAIN}
    assert not isinstance(module._decode_plain(json.dumps(body).encode()), Malformed)
    checked = 0
    for place in [(), *((key,) for key, value in body.items() if isinstance(value, dict))]:
        inside = body[place[0]] if place else body
        for key in {*inside, *SAID} - {"messages", "contents", "input"}:
            for value in (*NUMBERS, *VALUES):
                odd = {**inside, key: value}
                odd = {**body, place[0]: odd} if place else odd
                assert whole(name, odd) == whole(name, {**odd, "xOdd": 1}), (place, key, value)
                checked += 1
    return checked


@pytest.mark.parametrize("step", [pytest.param(11, id="some"), pytest.param(1, marks=pytest.mark.soak, id="all")])
@pytest.mark.parametrize("name", BODIES)
def test_a_field_that_says_something_says_it_either_way(name: str, step: int):
    """Each name that the protocol's Structs know, in each object of messages and tools, with values of every type."""
    assert check_requests(name, step=step) > 1000 // step


def check_requests(name: str, names: Sequence[str] = (), *, step: int = 1) -> int:
    """How many changes were read alike; `names`: some of those that the Structs know. Of each `step` changes one."""
    make, lists = BODIES[name]
    body = {"model": "m"} | make()
    checked = 0
    for key in lists:
        for value in islice(changes(name, body[key], VALUES, names), 0, None, step):
            if key == "contents" and any(map(says_nothing, value)):
                continue  # there the odd field is all that is said, and so it is kept
            checked += 1
            odd = {**body, key: value}
            assert outcome(name, odd) == outcome(name, {**odd, key: with_odd_field(value)}), value
    return checked
