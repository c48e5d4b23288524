"""What stands beside calls and around them, and is nobody's: it never raises, vendors' own fields cost no call, and
what a request, a schema or a provider's own call says is no call of the answer."""

from __future__ import annotations

import contextlib
import inspect
import json
import typing
from collections.abc import Iterator
from typing import Any

import anthropic.types
import anthropic.types.beta
import google.genai.types
import ollama
import openai.types.beta
import openai.types.chat
import openai.types.chat.chat_completion_chunk
import openai.types.responses
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bare_calls import BARE, Frame
from damage import objects_in
from dragoman import decode
from dragoman.errors import DragomanError
from dragoman.events import Reply
from dragoman.protocols import PROTOCOLS
from for_each import for_each
from slipped_wires import FORMS, LS, READ, Form, chat
from test_slipped_wires import calls_of
from test_slipped_wires import read as play
from two_calls import made, read, value_at, wire_body
from wires import body_of

# ---------------------------------------------------------------- whatever stands there, nothing raises

WORDS = (
    "type", "input", "arguments", "args", "name", "id", "function", "tool_calls", "function_call", "parameters",
    "partial_json", "tools", "output", "metadata", "delta", "message", "content", "properties", "messages", "role",
    "index", "call_id", "item", "partialArgs", "functionCall", "params", "tool", "usage", "error",
)  # fmt: skip
SCALARS = st.sampled_from([None, True, 0, 1, -1, 2.5, "", "{}", "x", '{"a":1}', "{", "function", "tool_use", "object"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("wire", BARE)
def test_no_json_under_any_key_raises(wire: str) -> None:
    @given(st.data(), st.sampled_from([*WORDS, "q"]), VALUES)
    def tried(data: st.DataObject, key: str, value: Any) -> None:
        frames: list[Frame] = json.loads(json.dumps(BARE[wire]()))
        places = [(number, path) for number, frame in enumerate(frames) for path in objects_in(frame)]
        number, path = data.draw(st.sampled_from(places))
        target: Any = value_at(frames[number], path)
        target[key] = value
        body = wire_body(wire, [json.dumps(frame) for frame in frames])
        read(wire, [body])
        with contextlib.suppress(DragomanError):
            decode(body, wire.split(",")[0])  # type: ignore[arg-type]
        found = PROTOCOLS[wire.split(",")[0]]  # type: ignore[index]
        found.check_whole(body)

    tried()


# ---------------------------------------------------------------- vendors' own fields

#: Of a part of Gemini at most one of these stands there.
_ONE_OF = frozenset({
    "codeExecutionResult", "executableCode", "fileData", "functionCall", "functionResponse", "inlineData", "toolCall",
    "toolResponse", "audioTranscription",
})  # fmt: skip
#: What is read as arguments, or is the call itself.
_READ = frozenset({"arguments", "input", "args", "function", "custom", "partialArgs", "parsed_arguments"})
TYPES: dict[str, tuple[Any, ...]] = {
    "openai-chat": (
        openai.types.chat.ChatCompletionMessageFunctionToolCall,
        openai.types.chat.chat_completion_chunk.ChoiceDeltaToolCall,
    ),
    "openai-responses": (
        openai.types.responses.ResponseFunctionToolCall, openai.types.responses.ResponseFunctionToolCallItem,
        openai.types.beta.BetaResponseFunctionToolCall, openai.types.beta.BetaResponseFunctionToolCallItem,
        openai.types.beta.BetaResponseCustomToolCall,
    ),
    "anthropic-messages": (anthropic.types.ToolUseBlock, anthropic.types.beta.BetaToolUseBlock),
    "gemini-generate": (google.genai.types.FunctionCall, google.genai.types.Part),
    "ollama-chat": (ollama.Message.ToolCall,),
}  # fmt: skip


def objects_of(kind: Any) -> Iterator[type[pydantic.BaseModel] | type[dict[str, Any]]]:
    """The types of objects that an annotation has in it."""
    if typing.get_origin(kind) is dict or kind is dict:
        yield dict
    elif inspect.isclass(kind) and issubclass(kind, pydantic.BaseModel):
        yield kind
    elif typing.get_origin(kind) is not list:
        for inner in typing.get_args(kind):
            yield from objects_of(inner)


def filled(kind: Any, depth: int = 0) -> Any:
    """A value of a type, with all its fields."""
    if typing.get_origin(kind) is typing.Literal:
        return typing.get_args(kind)[0]
    for inner in objects_of(kind):
        if inner is dict:
            return {"a": 1, "note": "x"}
        if depth > 2:
            return {}
        fields = inner.model_fields.items()  # type: ignore[union-attr]
        return {field.alias or name: filled(field.annotation, depth + 1) for name, field in fields}
    return ["x"] if typing.get_origin(kind) is list else "x"


def fields_beside(protocol: str) -> Iterator[tuple[bool, str, Any]]:
    """Each field of an object beside a call: whether it stands on its part, its name, and an object of its type."""
    for kind in TYPES[protocol]:
        for name, field in kind.model_fields.items():
            key = field.alias or name
            if key in _READ | _ONE_OF or not list(objects_of(field.annotation)):
                continue
            yield kind is google.genai.types.Part, key, filled(field.annotation)


#: Objects that gateways write on a call.
OF_GATEWAYS: tuple[tuple[str, Any], ...] = (
    ("provider_metadata", {"google": {"thoughtSignature": "A"}}), ("providerMetadata", {"gateway": {"cost": "1"}}),
    ("usage", {"input": 1, "input_tokens": 2}), ("logprobs", {"content": [{"token": "{", "logprob": 0}]}),
    ("content_filter_results", {"hate": {"filtered": False, "severity": "safe"}}),
    ("timings", {"prompt_n": 1, "predicted_ms": 1.5}), ("extra_content", {"google": {"thought_signature": "A"}}),
    ("internal_chat_message_metadata_passthrough", {"turn_id": "x"}), ("agent", {"agent_name": "/root"}),
    ("provider_specific_fields", {"thought_signature": "A"}), ("metadata", {"arguments": "x", "turn": "1"}),
)  # fmt: skip


def call_places(frames: list[Frame], *, is_part: bool) -> Iterator[tuple[int, Any]]:
    for number, frame in enumerate(frames):
        for path in objects_in(frame):
            told: Any = value_at(frame, path)
            names = ("functionCall",) if is_part else ("name", "call_id", "function")
            if any(name in told for name in names) and "type" not in path:
                yield number, path


@for_each("wire", BARE)
def test_an_object_of_the_vendors_beside_a_call_is_no_arguments(wire: str) -> None:
    tried = 0
    fields = [*fields_beside(wire.split(",")[0]), *((False, *each) for each in OF_GATEWAYS)]
    for is_part, key, value in fields:
        for number, path in call_places(BARE[wire](), is_part=is_part):
            frames = BARE[wire]()
            target: Any = value_at(frames[number], path)
            target[key] = value
            reply = read(wire, [wire_body(wire, [json.dumps(frame) for frame in frames])])
            assert (made(reply), reply.error) == ([("ring", {})], None), (key, path)
            tried += 1
    assert tried >= len(OF_GATEWAYS)


# ---------------------------------------------------------------- what only looks like calls

_SCHEMA = {"type": "object", "properties": {"arguments": {"type": "object"}, "type": {"type": "string"}, "name": {}}}
_TOOL = {"type": "function", "function": {"name": "ring", "parameters": _SCHEMA}}
_CALLED = {"id": "c9", "type": "function", "function": {"name": "ring", "arguments": '{"bell":"all"}'}}
_HISTORIES: tuple[Any, ...] = (
    {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [_CALLED]}]},
    {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ring",
                                                     "input": {"bell": "all"}}]}]},
    {"contents": [{"role": "model", "parts": [{"functionCall": {"name": "ring", "args": {"bell": "all"}}}]}]},
    {"input": [{"role": "user", "content": "x"},
               {"type": "function_call", "call_id": "c", "name": "ring", "arguments": '{"bell":"all"}'}]},
    {"input": "x", "instructions": "y", "tools": [_TOOL]},
)  # fmt: skip
#: Members of an answer, or of an object in it, that tell of no call.
CLEAN: tuple[tuple[str, Any], ...] = (
    *(("debug", {"echo_upstream_body": body}) for body in _HISTORIES),
    *(("request", body) for body in _HISTORIES),
    ("input", {"messages": [{"role": "user", "content": "x"}]}), ("input", "hello"),
    ("input", [{"role": "user"}, {"type": "function_call", "name": "ring", "arguments": '{"bell":"b"}'}]),
    ("metadata", {"arguments": "x", "input": "y", "args": "z"}), ("metadata", {"arguments": '{"a":1}'}),
    ("metadata", {"name": "x", "input": "y", "params": "z"}),
    ("tools", [_TOOL]), ("mcp_list_tools", [{"name": "ring", "input_schema": _SCHEMA}]),
    ("catalog", [{"name": "ring", "input_schema": _SCHEMA}]), ("q", _SCHEMA), ("usage_breakdown", {"input": 1}),
    ("timings", {"prompt_n": 1}), ("logprobs", {"content": [{"token": '{"input":', "logprob": 0}]}),
    ("input_messages", [{"role": "assistant", "tool_calls": [_CALLED]}, {"role": "tool", "content": "x"}]),
    ("vendor_usage", {"server_tool_use": {"web_search_requests": 2, "calls": None}}),
    ("usage_metadata", {"toolUsePromptTokensDetails": [{"modality": "TEXT", "tokenCount": 3}]}),
    ("arguments", None), ("args", ""), ("input", {}), ("arguments", "{}"),
    ("toolConfig", {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["ring"]}}),
)  # fmt: skip


def tops(frames: list[Frame]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Where an answer tells of itself and of its request: in its chunks and lines, in the object of the answer, or
    beside it.
    """
    for number, frame in enumerate(frames):
        kind = frame.get("type", "")
        if isinstance(frame.get("response"), dict) or kind == "message_start":
            yield from ((number, ("response" if "response" in frame else "message",)), (number, ()))
        elif kind in ("", "message", "message_stop"):
            yield number, ()


@for_each("number", range(len(CLEAN)))
@for_each("wire", BARE)
def test_what_an_answer_tells_of_its_request_is_no_call(wire: str, number: int) -> None:
    key, value = CLEAN[number]
    for at, path in tops(BARE[wire]()):
        frames = BARE[wire]()
        target: Any = value_at(frames[at], path)
        if key not in target:
            target[key] = value
            reply = read(wire, [wire_body(wire, [json.dumps(frame) for frame in frames])])
            assert (made(reply), reply.error) == ([("ring", {})], None), frames[at]


@for_each("wire", [wire for wire in BARE if wire.startswith("openai-responses")])
def test_variables_of_a_stored_prompt_are_no_arguments(wire: str) -> None:
    frames = BARE[wire]()
    for frame in frames:
        told = frame.get("response", frame)
        if "output" in told:
            told["prompt"] = {"id": "p", "variables": {"input": "x", "arguments": "y"}, "version": "1"}
    reply = read(wire, [wire_body(wire, [json.dumps(frame) for frame in frames])])
    assert (made(reply), reply.error) == ([("ring", {})], None)


# ---------------------------------------------------------------- the answer, told again in it


def echoes(calls: list[tuple[str, dict[str, Any]]], **id: str) -> tuple[Any, ...]:
    """The calls of an answer as proxies tell them again: in the words of any protocol, under a key of their own."""
    spelled = [{**id, "function": {"name": name, "arguments": json.dumps(given)}} for name, given in calls]
    return (
        {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": spelled}}]},
        {"content": [{"type": "tool_use", **id, "name": name, "input": given} for name, given in calls]},
        {
            "candidates": [
                {"content": {"parts": [{"functionCall": {"name": name, "args": given}} for name, given in calls]}}
            ]
        },
        {"output": [{"type": "function_call", "name": name, "arguments": json.dumps(given)} for name, given in calls]},
        {"toolUse": [{"toolUseId": "e", "name": name, "input": given} for name, given in calls]},
    )


@for_each("form", FORMS, ids=lambda form: f"{form.protocol} {form.make.__name__}")
def test_an_echo_of_all_calls_of_an_answer_costs_none_and_any_other_costs_the_answer(form: Form) -> None:
    more = ("bash", {"command": "ls docs"})
    rows = [([LS, READ], [LS, READ]), ([LS, LS], [LS, LS])]
    rows += [([LS], [LS, more]), ([LS, READ], [LS]), ([LS, READ], [READ, LS]), ([LS], [LS, LS])]

    def read_with(calls: list[Any], at: int, path: tuple[str, ...], echo: Any) -> Reply:
        frames = form.make(calls)
        target: Any = value_at(frames[at], path)
        target["raw_response"] = echo
        return play(form.protocol, body_of(form.protocol, frames), 10**6)

    tried = 0
    for calls, told in rows:
        frames = form.make(calls)
        for at, path in tops(frames):
            is_amid = form.make is chat and 0 < at < len(frames) - 1  # what stands there may be more of a call
            for echo, other in zip(echoes(told), echoes([more]), strict=True):
                is_looked_at = read_with(calls, at, path, other).error is not None
                assert is_looked_at or "_call" not in json.dumps(other)  # for which every chunk is looked through
                if calls != told and not is_looked_at:
                    continue
                if calls == told and is_looked_at and "choices" in echo:
                    renamed = read_with(calls, at, path, echoes(told, id="another")[0])
                    assert (renamed.error is None) is (form.protocol == "gemini-generate")  # whose calls have no ids
                reply = read_with(calls, at, path, echo)
                assert is_amid or (reply.error is None) is (calls == told), (frames[at], reply)
                assert reply.error or calls_of(reply) == calls == told, (frames[at], reply)
                tried += 1
    assert tried >= 30
