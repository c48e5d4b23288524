"""Wires that say a call in a way that has no reading, or two: the call fails, and is never delivered as something else.

`GOOD` are the same wires where they have one reading, so that what fails is what was altered.
"""

from __future__ import annotations

import json
from typing import Any

import dragoman
from dragoman.decoding import decode
from dragoman.types import Tool
from for_each import for_each

TOOLS = [Tool("ring", ""), Tool("toll", "")]
A, B = '{"bell": "a"}', '{"bell": "b"}'


def events(*frames: str, end: str = "") -> bytes:
    return "".join(f"data: {frame}\n\n" for frame in (*frames, *([end] if end else []))).encode()


def chat(*deltas: str) -> bytes:
    frames = [f'{{"choices": [{{"index": 0, "delta": {delta}}}]}}' for delta in deltas]
    return events(*frames, '{"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}', end="[DONE]")


def piece(function: str = f'"name": "ring", "arguments": {json.dumps(A)}', beside: str = '"id": "c"') -> str:
    return f'{{"tool_calls": [{{"index": 0, "type": "function", {beside}, "function": {{{function}}}}}]}}'


def messages(*frames: str) -> bytes:
    first = '{"type": "message_start", "message": {"id": "m", "model": "m", "content": []}}'
    stop = '{"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}}'
    return events(first, *frames, stop, '{"type": "message_stop"}')


def block(at: int = 0, name: str = "ring", id: str = "c") -> str:
    call = f'{{"type": "tool_use", "id": "{id}", "name": "{name}", "input": {{}}}}'
    return f'{{"type": "content_block_start", "index": {at}, "content_block": {call}}}'


def partial(text: str, at: object = 0) -> str:
    delta = {"type": "input_json_delta", "partial_json": text}
    return json.dumps({"type": "content_block_delta", "index": at, "delta": delta})


def stop(at: int = 0) -> str:
    return json.dumps({"type": "content_block_stop", "index": at})


def responses(*frames: str) -> bytes:
    first = '{"type": "response.created", "response": {"id": "r", "model": "m", "output": []}}'
    return events(first, *frames, '{"type": "response.completed", "response": {"id": "r", "output": []}}')


def item(arguments: str = '""', step: str = "done", status: str = "completed") -> str:
    names = '"type": "function_call", "id": "i", "call_id": "c", "name": "ring"'
    inner = f'{{{names}, "arguments": {arguments}, "status": "{status}"}}'
    return f'{{"type": "response.output_item.{step}", "output_index": 0, "item": {inner}}}'


def arguments(text: str, step: str = "delta") -> str:
    key = "delta" if step == "delta" else "arguments"
    return f'{{"type": "response.function_call_arguments.{step}", "output_index": 0, "item_id": "i", "{key}": {text}}}'


def gemini(*calls: str) -> bytes:
    frames = [f'{{"candidates": [{{"content": {{"parts": [{{"functionCall": {{{call}}}}}]}}}}]}}' for call in calls]
    return events(*frames, '{"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}')


def pieces(*said: str) -> bytes:
    going = '"willContinue": true'
    return gemini(f'"name": "ring", {going}', *(f'"partialArgs": [{{{each}}}], {going}' for each in said), "")


def ollama(call: str) -> bytes:
    message = f'{{"role": "assistant", "content": "", "tool_calls": [{call}]}}'
    return f'{{"model": "m", "message": {message}, "done": true, "done_reason": "stop"}}\n'.encode()


GOOD: dict[str, tuple[str, bytes, list[dict[str, Any]]]] = {
    "chat: an object": ("openai-chat", chat(piece('"name": "ring", "arguments": {"bell": 1.50}')), [{"bell": 1.5}]),
    "chat: both forms": (
        "openai-chat",
        chat(piece()[:-1] + f', "function_call": {{"name": "ring", "arguments": {json.dumps(A)}}}}}'),
        [{"bell": "a"}],
    ),
    "chat: a name in two places": ("openai-chat", chat(piece(beside='"id": "c", "name": "ring"')), [{"bell": "a"}]),
    "messages: again behind the end": (
        "anthropic-messages", messages(block(), partial(A), stop(), partial(A)), [{"bell": "a"}],
    ),
    "messages: one call, no index": (
        "anthropic-messages", messages(block(), partial(A, None), stop()), [{"bell": "a"}],
    ),
    "responses: an object": ("openai-responses", responses(item(A)), [{"bell": "a"}]),
    "responses: a delta that is an object": (
        "openai-responses", responses(item(step="added"), arguments(A)), [{"bell": "a"}],
    ),
    "responses: a final object": (
        "openai-responses", responses(item(step="added"), arguments(A, "done")), [{"bell": "a"}],
    ),
    "responses: a start alone": ("openai-responses", responses(item(json.dumps(A), "added")), [{"bell": "a"}]),
    "responses: a start and deltas": (
        "openai-responses", responses(item(json.dumps(A), "added"), arguments(json.dumps(A))), [{"bell": "a"}],
    ),
    "gemini: pieces": (
        "gemini-generate",
        pieces('"jsonPath": "$.bell", "stringValue": "a", "willContinue": true',
               '"jsonPath": "$.bell", "stringValue": "b"',
               '"jsonPath": "$.n", "numberValue": "5"', '"jsonPath": "$.o", "nullValue": null'),
        [{"bell": "ab", "n": "5", "o": None}],
    ),
    "gemini: escapes": (
        "gemini-generate",
        pieces(r'''"jsonPath": "$['\\u0062e\\nl\\'\\ud83d\\ude00']", "stringValue": "a"'''),
        [{"be\nl'\U0001f600": "a"}],
    ),
}  # fmt: skip
BAD: dict[str, tuple[str, bytes]] = {
    "chat: NaN in an object": ("openai-chat", chat(piece('"name": "ring", "arguments": {"bell": NaN}'))),
    "chat: a number out of range": ("openai-chat", chat(piece('"name": "ring", "arguments": {"bell": 1e999}'))),
    "chat: NaN in parameters": ("openai-chat", chat(piece('"name": "ring", "parameters": {"bell": Infinity}'))),
    "chat: a name beside": ("openai-chat", chat(piece(beside='"id": "c", "name": "toll"'))),
    "chat: a custom call beside": (
        "openai-chat", chat(piece(beside='"id": "c", "custom": {"name": "toll", "input": "x"}')),
    ),
    "chat: another name later": (
        "openai-chat",
        chat(piece('"name": "ring", "arguments": "{"'), piece('"name": "toll", "arguments": "\\"bell\\": 1}"')),
    ),
    "messages: another name in a second start": (
        "anthropic-messages", messages(block(), block(name="toll"), partial(A), stop()),
    ),
    "messages: other arguments behind the end": (
        "anthropic-messages", messages(block(), partial(A), stop(), partial(B), stop()),
    ),
    "messages: two calls, no index": (
        "anthropic-messages", messages(block(), block(1, id="d"), partial(A, None), stop(), stop(1)),
    ),
    "responses: NaN in an object": ("openai-responses", responses(item('{"bell": NaN}'))),
    "responses: NaN in a delta": (
        "openai-responses", responses(item(step="added"), arguments('{"bell": NaN}')),
    ),
    "responses: a start and other deltas": (
        "openai-responses", responses(item(json.dumps(B), "added"), arguments(json.dumps(A))),
    ),
    "responses: a failed item": ("openai-responses", responses(item(json.dumps(A), status="failed"))),
    "responses: a cancelled item": ("openai-responses", responses(item(json.dumps(A), status="cancelled"))),
    "gemini: two values": ("gemini-generate", pieces('"jsonPath": "$.bell", "stringValue": "a", "numberValue": 1')),
    "gemini: no value": ("gemini-generate", pieces('"jsonPath": "$.bell"')),
    "gemini: a value of no kind": ("gemini-generate", pieces('"jsonPath": "$.bell", "structValue": {"a": 1}')),
    "gemini: an object for a string": ("gemini-generate", pieces('"jsonPath": "$.bell", "stringValue": {"a": 1}')),
    "gemini: a number in a text": (
        "gemini-generate",
        pieces('"jsonPath": "$.bell", "stringValue": "a", "willContinue": true',
               '"jsonPath": "$.bell", "numberValue": 1'),
    ),
    "gemini: all members": ("gemini-generate", pieces('"jsonPath": "$.*", "stringValue": "a"')),
    "gemini: an odd escape": ("gemini-generate", pieces(r'''"jsonPath": "$['\\q']", "stringValue": "a"''')),
    "gemini: half a pair": ("gemini-generate", pieces(r'''"jsonPath": "$['\\ud83d']", "stringValue": "a"''')),
    "gemini: two spellings": (
        "gemini-generate", gemini('"name": "ring", "args": {}}, "function_call": {"name": "toll", "args": {"a": 1}'),
    ),
    "gemini: another call's id": (
        "gemini-generate",
        gemini('"name": "ring", "id": "1", "willContinue": true',
               '"id": "2", "partialArgs": [{"jsonPath": "$.bell", "stringValue": "a"}]'),
    ),
    "gemini: two calls in turns": (
        "gemini-generate",
        gemini('"name": "ring", "id": "1", "willContinue": true', '"name": "toll", "id": "2", "willContinue": true',
               '"id": "1", "partialArgs": [{"jsonPath": "$.bell", "stringValue": "a"}]',
               '"id": "2", "partialArgs": [{"jsonPath": "$.bell", "stringValue": "b"}]'),
    ),
    "ollama: a name beside": ("ollama-chat", ollama('{"name": "toll", "function": {"name": "ring", "arguments": {}}}')),
}  # fmt: skip


@for_each("name", GOOD)
def test_what_has_one_reading_is_delivered(name: str):
    protocol, body, expected = GOOD[name]
    reply = decode(body, protocol, tools=TOOLS)  # type: ignore[arg-type]
    assert [json.loads(call.arguments) for call in reply.tool_calls] == expected
    assert reply.error is None


@for_each("name", BAD)
def test_what_has_none_or_two_fails(name: str):
    protocol, body = BAD[name]
    reply = decode(body, protocol, tools=TOOLS)  # type: ignore[arg-type]
    assert reply.error is not None
    assert reply.tool_calls == [] or name == "messages: other arguments behind the end"  # it had left


def test_an_older_call_beside_another_fails_with_it():
    body = chat(piece()[:-1] + f', "function_call": {{"name": "toll", "arguments": {json.dumps(B)}}}}}')
    reply = decode(body, "openai-chat", tools=TOOLS)
    assert reply.tool_calls == [] and reply.error is not None
    assert {failed.name for failed in reply.failed_calls} == {"ring", "toll"}


@for_each("empty", ['"custom": {"input": "", "name": ""}', '"custom": {}', '"custom": null'])
def test_an_empty_frame_of_the_other_kind_is_no_second_call(empty: str) -> None:
    """Some servers write every member that a call of any kind may have."""
    entry = f'{{"id": "c", "type": "function", {empty}, "function": {{"name": "ring", "arguments": "{{}}"}}}}'
    message = f'{{"role": "assistant", "tool_calls": [{entry}], "function_call": {{"name": "", "arguments": ""}}}}'
    body = f'{{"choices": [{{"index": 0, "message": {message}, "finish_reason": "tool_calls"}}]}}'
    found = dragoman.decode(body.encode(), "openai-chat")
    assert [(call.name, call.values()) for call in found.tool_calls] == [("ring", {})]
    assert found.error is None


def whole_chat(message: str, *, before: str = "") -> str:
    return f'{{{before}"choices": [{{"message": {{{message}}}, "index": 0, "finish_reason": "tool_calls"}}]}}'


def whole_ollama(message: str) -> str:
    return f'{{"model": "m", "message": {{{message}}}, "done": true, "done_reason": "stop"}}'


def whole_messages(id: str) -> str:
    block = '{"type": "tool_use", "id": "c", "name": "ring", "input": %s}'
    return f'{{"type": "message", "id": {id}, "role": "assistant", "content": [{block}], "stop_reason": "tool_use"}}'


def whole_gemini(id: str) -> str:
    part = '{"functionCall": {"name": "ring", "args": %s}}'
    return f'{{"responseId": {id}, "candidates": [{{"content": {{"parts": [{part}]}}, "finishReason": "STOP"}}]}}'


CALL = '"tool_calls": [{"id": "c", "type": "function", "function": {"name": "ring", "arguments": %s}}]'
MARK = '"content": "\x01", '
#: Frames that the typed readers refuse, each for a reason of its own, with `%s` in place of a call's arguments.
ODD_FRAMES = {
    "chat: the older form": ("openai-chat", whole_chat('"function_call": {"name": "ring", "arguments": %s}')),
    "chat: an envelope": ("openai-chat", f'{{"data": {whole_chat(CALL)}}}'),
    "chat: a control character": ("openai-chat", whole_chat(MARK + CALL)),
    "chat: a field of another type": ("openai-chat", whole_chat(CALL, before='"id": [], ')),
    "chat: parameters": ("openai-chat", whole_chat(CALL.replace("arguments", "parameters"))),
    "ollama: an envelope": ("ollama-chat", f'{{"data": {whole_ollama(CALL)}}}'),
    "ollama: a control character": ("ollama-chat", whole_ollama(MARK + CALL)),
    "messages: a number as an id": ("anthropic-messages", whole_messages("7")),
    "messages: a control character": ("anthropic-messages", whole_messages('"\x01"')),
    "gemini: a number as an id": ("gemini-generate", whole_gemini("7")),
    "gemini: a control character": ("gemini-generate", whole_gemini('"\x01"')),
}


@for_each("number", ["1.50", "12345678901234567890.5", "1e-400", "-0.0", "1E5", "7", "1" * 40])
@for_each("place", ODD_FRAMES)
def test_a_number_is_delivered_as_it_is_written(place: str, number: str):
    protocol, frame = ODD_FRAMES[place]
    body = (frame % f'{{"bell": {number}, "at": [{number}]}}').encode() + b"\n"
    reply = decode(body, protocol, tools=TOOLS)  # type: ignore[arg-type]
    told = [call.arguments.replace(" ", "") for call in reply.tool_calls]
    assert told == [f'{{"bell":{number},"at":[{number}]}}']


@for_each("word", ["NaN", "Infinity", "-Infinity"])
@for_each("place", ODD_FRAMES)
def test_what_is_no_number_is_no_null(place: str, word: str):
    protocol, frame = ODD_FRAMES[place]
    body = (frame % f'{{"bell": {word}}}').encode() + b"\n"
    reply = decode(body, protocol, tools=TOOLS)  # type: ignore[arg-type]
    assert reply.tool_calls == [] and reply.error is not None


HALF = r'"{\"bell\": \"\ud83d!\"}"'  # an escape of the frame, not of the arguments in it
REPLACED = {
    "chat: whole": ("openai-chat", chat(piece(f'"name": "ring", "arguments": {HALF}'))),
    "chat: a piece": ("openai-chat", chat(piece('"name": "ring", "arguments": ""'), piece(f'"arguments": {HALF}'))),
    "chat: an object": ("openai-chat", chat(piece(r'"name": "ring", "arguments": {"bell": "\ud83d!"}'))),
    "messages: a piece": ("anthropic-messages", messages(block(), partial("@").replace('"@"', HALF), stop())),
    "responses: an end": ("openai-responses", responses(item(HALF))),
    "responses: a piece": ("openai-responses", responses(item(step="added"), arguments(HALF), item(HALF))),
    "ollama: an object": ("ollama-chat", ollama(r'{"function": {"name": "ring", "arguments": {"bell": "\ud83d!"}}}')),
}


@for_each("name", REPLACED)
def test_half_a_character_is_never_replaced_in_silence(name: str):
    protocol, body = REPLACED[name]
    reply = decode(body, protocol, tools=TOOLS)  # type: ignore[arg-type]
    assert [json.loads(call.arguments) for call in reply.tool_calls] == [{"bell": "\ufffd!"}]
    assert "lone-surrogate" in {deviation.code for deviation in reply.deviations}
