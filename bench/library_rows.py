"""The library's rows that are compared with an older commit: decoding, looks, repair, rendered requests."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import memory
import streams

from dragoman.protocols import PROTOCOLS

COUNT = 2000
CALLS = 200
FEW = 500
BROKEN = """{"city":"Paris",'days':3,"units":metric,}"""
Row = tuple[str, Callable[[], object]]

_ARGUMENTS = json.loads(streams.WEATHER)
#: A usual whole answer of each protocol: one call.
WHOLE: dict[str, Any] = {
    "openai-chat": {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1700000000, "model": "m",
        "choices": [{
            "index": 0, "logprobs": None, "finish_reason": "tool_calls",
            "message": {"role": "assistant", "content": None, "tool_calls": [{
                "id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": streams.WEATHER},
            }]},
        }],
        "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
    },
    "openai-responses": {
        "id": "resp_1", "object": "response", "created_at": 1700000000, "status": "completed", "error": None,
        "incomplete_details": None, "model": "m", "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
        "output": [{
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather",
            "arguments": streams.WEATHER, "status": "completed",
        }],
        "usage": {
            "input_tokens": 5, "output_tokens": 7, "total_tokens": 12, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    },
    "anthropic-messages": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 7},
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": _ARGUMENTS}],
    },
    "gemini-generate": {
        "candidates": [{
            "content": {"parts": [{"functionCall": {"name": "get_weather", "args": _ARGUMENTS}}], "role": "model"},
            "finishReason": "STOP", "index": 0,
        }],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12},
        "modelVersion": "m", "responseId": "r1",
    },
    "ollama-chat": {
        "model": "m", "created_at": "2026-01-01T00:00:00.000000Z", "done": True, "done_reason": "stop",
        "message": {"role": "assistant", "content": "", "tool_calls": [
            {"function": {"name": "get_weather", "arguments": _ARGUMENTS}},
        ]},
        "total_duration": 1, "load_duration": 1, "prompt_eval_count": 5, "prompt_eval_duration": 1, "eval_count": 7,
        "eval_duration": 1,
    },
}  # fmt: skip
#: The same request of each protocol: a call and its result, and a tool.
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_TOOL = {"name": "get_weather", "description": "Weather of a city"}
ASKED: dict[str, Any] = {
    "openai-chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather in Paris?"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": streams.WEATHER}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees"},
            {"role": "user", "content": "And tomorrow?"},
        ],
        "tools": [{"type": "function", "function": {**_TOOL, "parameters": _SCHEMA}}],
        "temperature": 0.5, "max_tokens": 100, "stream": True,
    },
    "openai-responses": {
        "model": "m", "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Weather in Paris?"}]},
            {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": streams.WEATHER},
            {"type": "function_call_output", "call_id": "call_1", "output": "21 degrees"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And tomorrow?"}]},
        ],
        "tools": [{"type": "function", **_TOOL, "parameters": _SCHEMA, "strict": False}],
        "temperature": 0.5, "max_output_tokens": 100, "store": False, "stream": True,
    },
    "anthropic-messages": {
        "model": "m", "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "Weather in Paris?"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": _ARGUMENTS},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "21 degrees"},
                {"type": "text", "text": "And tomorrow?"},
            ]},
        ],
        "tools": [{**_TOOL, "input_schema": _SCHEMA}],
        "temperature": 0.5, "max_tokens": 100, "stream": True,
    },
    "gemini-generate": {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Weather in Paris?"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "get_weather", "args": _ARGUMENTS}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "get_weather", "response": {"result": "21 degrees"}}},
                {"text": "And tomorrow?"},
            ]},
        ],
        "tools": [{"functionDeclarations": [{**_TOOL, "parameters": _SCHEMA}]}],
        "generationConfig": {"temperature": 0.5, "maxOutputTokens": 100},
    },
    "ollama-chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather in Paris?"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"function": {"name": "get_weather", "arguments": _ARGUMENTS}},
            ]},
            {"role": "tool", "tool_name": "get_weather", "content": "21 degrees"},
            {"role": "user", "content": "And tomorrow?"},
        ],
        "tools": [{"type": "function", "function": {**_TOOL, "parameters": _SCHEMA}}],
        "options": {"temperature": 0.5, "num_predict": 100}, "stream": True,
    },
}  # fmt: skip
#: Where Gemini's requests name their model.
PATHS = {"gemini-generate": "/v1beta/models/m:streamGenerateContent"}
#: Under which key a protocol has the turns of a conversation, and how many of the first are not told again.
TURNS = {
    "openai-chat": ("messages", 1), "openai-responses": ("input", 0), "anthropic-messages": ("messages", 0),
    "gemini-generate": ("contents", 0), "ollama-chat": ("messages", 1),
}  # fmt: skip
ROUNDS = 20


def library_rows() -> Iterator[Row]:
    """All rows."""
    for protocol in streams.PROTOCOLS:
        yield from decoding(protocol)
    for protocol in streams.PROTOCOLS:
        yield from whole_answers(protocol)
    for protocol in streams.GROWING:
        yield from growing_arguments(protocol)
    yield from requests()


def decoding(protocol: str) -> Iterator[Row]:
    """Streams, with and without stages, in large reads and in one read an event."""
    for kind in ("text", "arguments", "string", "parallel"):
        written = streams.frames(protocol, kind, CALLS if kind == "parallel" else COUNT)
        for cut, pieces in (("large reads", streams.blocks(written)), ("one event a read", written)):
            for way, run in (("decode", memory.decode), ("all stages", memory.decode_staged)):
                yield f"{protocol} {kind}, {cut}, {way}", partial(run, protocol, pieces)


def whole_answers(protocol: str) -> Iterator[Row]:
    """An answer that is not streamed, as the client reads it: where the protocol has a quick way, by that."""
    body = streams.compact(WHOLE[protocol])
    for way, is_staged in (("decode", False), ("all stages", True)):
        yield f"{protocol} whole answer, {way}", partial(read_whole, protocol, body, is_staged=is_staged)


def read_whole(protocol: str, body: bytes, *, is_staged: bool) -> None:
    """Read such an answer. An older checkout has no quick way."""
    at_once = getattr(PROTOCOLS[protocol], "read_whole", None)
    if at_once is None:
        (memory.decode_staged if is_staged else memory.decode)(protocol, [body])
        return
    memory.read_whole(protocol, at_once, body, is_staged=is_staged)


def growing_arguments(protocol: str) -> Iterator[Row]:
    """Arguments that are looked at on each delta, and some that are repaired."""
    for kind, growing in memory.GROWING.items():
        written = streams.frames(protocol, kind, FEW)
        yield f"{protocol} {kind}, looked at", partial(memory.decode_looking, protocol, written, growing)
    broken = streams.WRITERS[protocol]([], [("get_weather", streams.cut(BROKEN, 5))] * 50)
    yield f"{protocol} repaired arguments, all stages", partial(memory.decode_staged, protocol, broken)


def requests() -> Iterator[Row]:
    """A request that is parsed, and rendered for each protocol; the same where its turns are told twenty times."""
    for kind, rounds in (("request", 1), (f"request of {ROUNDS} calls", ROUNDS)):
        for protocol in streams.PROTOCOLS:
            body, path = streams.compact(repeated(protocol, rounds)), PATHS.get(protocol, "")
            yield f"{protocol} {kind}, parsed", partial(PROTOCOLS[protocol].parse_request, body, path=path)
        request = PROTOCOLS["openai-chat"].parse_request(streams.compact(repeated("openai-chat", rounds))).request
        for protocol in streams.PROTOCOLS:
            yield f"{protocol} {kind}, rendered", partial(PROTOCOLS[protocol].render_request, request)


def repeated(protocol: str, rounds: int) -> dict[str, Any]:
    """The request with its turns told again, each with ids of its own."""
    asked = ASKED[protocol]
    key, first = TURNS[protocol]
    text = json.dumps(asked[key][first:])
    more = [turn for number in range(rounds) for turn in json.loads(text.replace('_1"', f'_{number + 1}"'))]
    return {**asked, key: [*asked[key][:first], *more]}
