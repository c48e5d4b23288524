"""Arguments under a key that their place does not have: such a call is not run without any; its answer is an error.

Every protocol, every place in its entry of a call, every way to write a key, and every form of arguments in it. What
vendors write beside calls, and what is no arguments, leaves a call without arguments as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import wires
from dragoman.codec.parts.unread_arguments import unread_arguments
from dragoman.decoding import decode
from dragoman.protocols import PROTOCOLS
from for_each import for_each
from wires import Frame

TOOLS = [{"name": "ring", "parameters": {"type": "object", "properties": {"bell": {}}}}]
ARGUMENTS = {"bell": "a"}
#: Keys that no protocol has in any of these places.
KEYS = ("params", "Arguments", "kwargs", "tool_input", "arguments_json", "payload", "neverHeardOf")
TEXTS = (json.dumps(ARGUMENTS), '{"bell": "a')
HARMLESS: tuple[Frame, ...] = (
    {}, {"params": None}, {"params": {}}, {"params": "{}"}, {"neverHeardOf": "x"}, {"neverHeardOf": 3},
    {"caller": {"type": "direct"}}, {"cache_control": {"type": "ephemeral"}}, {"metadata": {"a": 1}},
    {"provider_specific_fields": {"thought_signature": "x"}}, {"extra_content": {"google": {"thought": True}}},
)  # fmt: skip


def chat(entry: Frame, function: Frame, *, is_whole: bool = False, is_older: bool = False) -> bytes:
    call = wires.chat_call("ring") | {"function": {"name": "ring", **function}, **entry}
    told: Frame = {"function_call": call["function"]} if is_older else {"tool_calls": [call]}
    frames = [wires.chat_answer(**told)] if is_whole else [wires.chat_chunk(told), wires.chat_chunk({}, "tool_calls")]
    return wires.body_of("openai-chat", [frame | {"id": "x", "model": "m"} for frame in frames], is_whole=is_whole)


def ollama(entry: Frame, function: Frame) -> bytes:
    call = {"function": {"name": "ring", **function}, **entry}
    return wires.body_of("ollama-chat", [wires.ollama_line(call, reason="stop")])


def messages(block: Frame, delta: Frame, *, is_whole: bool = False) -> bytes:
    call = wires.tool_use("ring") | block
    if is_whole:
        return json.dumps({**wires.messages_answer(call), "usage": {"input_tokens": 1}}).encode()
    deltas = [{"type": "input_json_delta", **delta}] if delta else []
    return wires.body_of("anthropic-messages", wires.messages_stream(*wires.block_of(call, *deltas)))


def responses(start: Frame, end: Frame, delta: Frame | None = None, *, is_whole: bool = False) -> bytes:
    item = wires.function_call("ring", status="completed")
    ended = {**item, **end}
    if is_whole:
        return json.dumps(wires.responses_answer(ended, model="m")).encode()
    grown = {key: value for key, value in wires.arguments_delta("").items() if key != "delta"} | (delta or {})
    frames = [wires.item_added({**item, **start}), *([grown] if delta else []), wires.item_done(ended)]
    return wires.body_of("openai-responses", wires.responses_stream(*frames, output=[ended]))


def gemini(call: Frame) -> bytes:
    return wires.body_of("gemini-generate", wires.gemini_stream({"name": "ring", "id": "c", **call}))


#: place → (protocol, the body of a call that has these fields there)
PLACES: dict[str, tuple[str, Callable[[Frame], bytes]]] = {
    "chat entry": ("openai-chat", lambda more: chat(more, {"arguments": ""})),
    "chat function": ("openai-chat", lambda more: chat({}, more)),
    "chat function with {}": ("openai-chat", lambda more: chat({}, {"arguments": "{}", **more})),
    "chat whole entry": ("openai-chat", lambda more: chat(more, {}, is_whole=True)),
    "chat whole function": ("openai-chat", lambda more: chat({}, {"arguments": "{}", **more}, is_whole=True)),
    "chat older form": ("openai-chat", lambda more: chat({}, more, is_older=True)),
    "chat whole older form": ("openai-chat", lambda more: chat({}, more, is_older=True, is_whole=True)),
    "ollama entry": ("ollama-chat", lambda more: ollama(more, {"arguments": {}})),
    "ollama function": ("ollama-chat", lambda more: ollama({}, more)),
    "messages start": ("anthropic-messages", lambda more: messages(more, {})),
    "messages delta": ("anthropic-messages", lambda more: messages({}, more)),
    "messages delta of nothing": ("anthropic-messages", lambda more: messages({}, {"partial_json": "", **more})),
    "messages whole": ("anthropic-messages", lambda more: messages(more, {}, is_whole=True)),
    "responses start": ("openai-responses", lambda more: responses(more, {})),
    "responses end": ("openai-responses", lambda more: responses({}, more)),
    "responses delta": ("openai-responses", lambda more: responses({}, {}, more)),
    "responses whole": ("openai-responses", lambda more: responses({}, more, is_whole=True)),
    "gemini call": ("gemini-generate", gemini),
    "gemini call with {}": ("gemini-generate", lambda more: gemini({"args": {}, **more})),
    "gemini sibling": (
        "gemini-generate", lambda more: gemini(more).replace(b'"functionCall"', b'"function_call"'),
    ),
}  # fmt: skip


@for_each("place", PLACES)
def test_no_call_runs_without_arguments_that_nobody_read(place: str):
    protocol, body = PLACES[place]
    for key in KEYS:
        for value in (ARGUMENTS, *TEXTS):
            reply = decode(body({key: value}), protocol, tools=TOOLS)  # type: ignore[arg-type]
            assert reply.tool_calls == [] and reply.error is not None, (key, value)
            assert reply.stop_reason == "error"
            assert PROTOCOLS[protocol].check_whole(body({key: value})) is None  # a gateway does not pass it on unread


@for_each("place", PLACES)
@for_each("more", HARMLESS)
def test_what_stands_beside_a_call_without_arguments_is_none(place: str, more: Frame):
    protocol, body = PLACES[place]
    reply = decode(body(more), protocol, tools=TOOLS)  # type: ignore[arg-type]
    assert [(call.name, call.values()) for call in reply.tool_calls] == [("ring", {})] and reply.error is None


def test_each_protocol_has_places():
    assert {protocol for protocol, _ in PLACES.values()} == set(PROTOCOLS)


#: What stands in place of an entry, or of all of them, and is none.
BROKEN: tuple[Any, ...] = (
    '[{"id": "a", "function": {"name": "ring", "arguments": "{}"}}', "ring", [["ring"]], ["ring"], 5,
    [[{"id": "a", "function": {"name": "ring", "arguments": json.dumps(ARGUMENTS)}}]],
)  # fmt: skip


@for_each("value", BROKEN)
@for_each("is_whole", [True, False])
@for_each("key", ["tool_calls", "function_call"])
def test_what_is_no_call_in_place_of_calls_is_told(value: Any, is_whole: bool, key: str):
    told = {"role": "assistant", key: value}
    frame = wires.chat_answer(**told) if is_whole else wires.chat_chunk(told, "tool_calls")
    reply = decode(wires.body_of("openai-chat", [frame], is_whole=is_whole), "openai-chat", tools=TOOLS)
    assert reply.tool_calls == [] and reply.error is not None and reply.failed_calls


@for_each("value", BROKEN)
def test_what_is_no_call_in_place_of_ollama_calls_is_told(value: Any):
    body = wires.body_of("ollama-chat", [wires.ollama_line(tool_calls=value, reason="stop")])
    reply = decode(body, "ollama-chat", tools=TOOLS)
    assert reply.tool_calls == [] and reply.error is not None and reply.failed_calls


@for_each("protocol", ["openai-chat", "ollama-chat"])
def test_a_function_that_is_the_text_of_one_is_refused(protocol: str):
    inner = json.dumps({"name": "ring", "arguments": ARGUMENTS})
    entry = {"function": inner}
    body = chat(entry, {}) if protocol == "openai-chat" else ollama(entry, {})
    reply = decode(body, protocol, tools=TOOLS)  # type: ignore[arg-type]
    assert reply.tool_calls == [] and reply.error is not None


@for_each("pieces", [{"jsonPath": "$.bell", "stringValue": "a"}, "$.bell=a", ["$.bell=a"], [["a"]]])
def test_pieces_of_arguments_that_are_none_are_told(pieces: Any):
    reply = decode(gemini({"partialArgs": pieces}), "gemini-generate", tools=TOOLS)
    assert reply.tool_calls == [] and reply.error is not None


def test_text_for_the_block_of_a_call_may_be_its_arguments():
    body = messages({}, {"type": "text_delta", "text": json.dumps(ARGUMENTS)})
    reply = decode(body, "anthropic-messages", tools=TOOLS)
    assert reply.tool_calls == [] and reply.error is not None


@for_each("key", ["call_id", "id", "item_id", "name", "object", "output_index", "status", "type"])
def test_what_stands_under_a_label_may_be_arguments(key: str):
    for value in (ARGUMENTS, *TEXTS, f" {TEXTS[0]}"):
        assert unread_arguments({key: value}) == key
    for plain in ("", "-", "a", "{}", 3, None, True, []):
        assert unread_arguments({key: plain}) == ""


#: Keys that are named like arguments; those of KEYS that are not may say anything.
NAMED = ("args", "Arguments", "partialJson", "raw_arguments", "toolParameters", "input_json")
PIECES = ('{"bell": "', "a", '"}')


def chat_pieces(told: list[Frame], *, place: str) -> bytes:
    def said(number: int, fields: Frame) -> Frame:
        head: Frame = {} if number else {"id": "c", "type": "function"}
        name: Frame = {} if number else {"name": "ring"}
        if place == "older":
            return {"function_call": {**name, **fields}}
        if place == "entry" and "arguments" not in fields:
            return {"tool_calls": [{"index": 0, **head, "function": name, **fields}]}
        return {"tool_calls": [{"index": 0, **head, "function": {**name, **fields}}]}

    chunks = [wires.chat_chunk(said(number, fields)) for number, fields in enumerate(told)]
    return wires.body_of("openai-chat", [*chunks, wires.chat_chunk({}, "tool_calls")])


def messages_pieces(told: list[Frame]) -> bytes:
    deltas = [{"type": "input_json_delta", **fields} for fields in told]
    frames = wires.messages_stream(*wires.block_of(wires.tool_use("ring"), *deltas))
    return wires.body_of("anthropic-messages", frames)


def responses_pieces(told: list[Frame]) -> bytes:
    at = {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "i0"}
    item = wires.function_call("ring")
    frames = [wires.item_added(item), *({**at, **fields} for fields in told), wires.item_done(item)]
    return wires.body_of("openai-responses", wires.responses_stream(*frames))


#: place → (protocol, the body of a call in these pieces, the key of a piece)
IN_PIECES: dict[str, tuple[str, Callable[[list[Frame]], bytes], str]] = {
    **{
        f"chat {place}": ("openai-chat", lambda told, place=place: chat_pieces(told, place=place), "arguments")
        for place in ("function", "entry", "older")
    },
    "messages": ("anthropic-messages", messages_pieces, "partial_json"),
    "responses": ("openai-responses", responses_pieces, "delta"),
}


@for_each("place", IN_PIECES)
@for_each("lost", range(len(PIECES)))
@for_each("key", NAMED)
def test_a_call_that_lacks_a_piece_is_not_run(place: str, lost: int, key: str):
    protocol, body, known = IN_PIECES[place]
    told = [{key if number == lost else known: text} for number, text in enumerate(PIECES)]
    reply = decode(body(told), protocol=protocol, tools=TOOLS)
    assert not reply.tool_calls
    assert reply.failed_calls


# A piece of the older form that says neither a name nor arguments may be of any call.
@for_each("place", [place for place in IN_PIECES if place != "chat older"])
@for_each("beside", [{"status": "done"}, {"extra": {"a": 1}}, {"trace": "{x}"}, {"args": None}], ids=str)
def test_what_is_no_piece_of_arguments_changes_nothing(place: str, beside: Frame):
    protocol, body, known = IN_PIECES[place]
    reply = decode(body([{known: PIECES[0]}, beside, *({known: text} for text in PIECES[1:])]), protocol, tools=TOOLS)
    assert [call.arguments for call in reply.tool_calls] == ["".join(PIECES)]
