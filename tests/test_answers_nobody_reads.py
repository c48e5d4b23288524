"""Words of an answer at a place, or of a type, that nobody reads: they are read all the same, kept as an opaque part,
or the answer fails. It never counts as an empty answer that ended well."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from dragoman import decode
from dragoman.types import Opaque
from for_each import for_each
from slipped_wires import FORMS, LS, Form
from wire_bases import value_at
from wires import body_of

WORDS = "The fourth shelf."
#: A whole answer of each protocol.
ANSWERS: dict[str, Any] = {
    "openai-chat": {
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": WORDS}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    },
    "anthropic-messages": {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": WORDS}],
        "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 3},
    },
    "openai-responses": {
        "id": "r", "object": "response", "created_at": 1, "status": "completed", "model": "m", "error": None,
        "output": [{"type": "message", "id": "m1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": WORDS, "annotations": []}]}],
        "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
    },
    "gemini-generate": {
        "candidates": [
            {"content": {"parts": [{"text": WORDS}], "role": "model"}, "finishReason": "STOP", "index": 0}
        ],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12},
    },
    "ollama-chat": {
        "model": "m", "created_at": "2026-03-01T10:00:00Z", "message": {"role": "assistant", "content": WORDS},
        "done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 3,
    },
}  # fmt: skip
NAMES = (
    "answer", "completion", "content", "data", "delta", "message", "output", "output_text", "parts", "response",
    "result", "text", "value",
)  # fmt: skip
TYPES: dict[str, Callable[[Any], Any]] = {
    "list": lambda words: [words],
    "text": lambda words: {"text": words},
    "value": lambda words: {"value": words},
    "content": lambda words: {"content": words},
    "parts": lambda words: [{"type": "text", "text": words}],
}
AROUND: dict[str, Callable[[Any], Any]] = {
    "list": lambda value: [value],
    "json": lambda value: json.dumps(value),
    "first": lambda value: value[0] if isinstance(value, list) else value,
    "words": lambda value: WORDS,
}
#: Settings of a response have these names.
SETTINGS = {("openai-responses", "up 4"), ("anthropic-messages", "up 2 text")}


def path_of(value: Any, path: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
    """The path of the words."""
    if value == WORDS:
        return path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for key, item in inner if (found := path_of(item, (*path, key))) is not None), None)


def damaged(answer: Any) -> Iterator[tuple[str, Any]]:
    """The answer with its words, or what is around them, under another key, of another type or at another place."""
    path = path_of(answer)
    assert path is not None
    *outer, name = path
    for other in NAMES:
        body = copy.deepcopy(answer)
        value_at(body, tuple(outer))[other] = value_at(body, tuple(outer)).pop(name)
        yield f"name {other}", body
    for kind, retype in TYPES.items():
        body = copy.deepcopy(answer)
        value_at(body, tuple(outer))[name] = retype(WORDS)
        yield f"type {kind}", body
    for up in range(1, len(path)):
        for other in ("content", "text"):
            body = copy.deepcopy(answer)
            value_at(body, tuple(outer)).pop(name)
            place = value_at(body, path[: len(path) - 1 - up])
            if isinstance(place, dict) and other not in place:
                place[other] = WORDS
                yield f"up {up} {other}", body
    for deep in range(1, len(path)):
        for kind, retype in AROUND.items():
            body = copy.deepcopy(answer)
            value_at(body, path[: deep - 1])[path[deep - 1]] = retype(value_at(body, path[:deep]))
            yield f"around {deep} {kind}", body
    for other in NAMES:
        yield f"in {other}", {other: answer}


CASES = [(protocol, how, body) for protocol, answer in ANSWERS.items() for how, body in damaged(answer)]


@for_each(("protocol", "how", "body"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES])
def test_words_are_read_or_the_answer_fails(protocol: Any, how: str, body: Any):
    if any(protocol == name and how.startswith(setting) for name, setting in SETTINGS):
        return
    reply = decode(json.dumps(body).encode(), protocol)
    is_kept = any(isinstance(part, Opaque) and WORDS.encode() in bytes(part.raw) for part in reply.parts)
    assert WORDS in reply.text or is_kept or reply.error is not None


@for_each("protocol", ANSWERS)
@for_each("nothing", ["", None])
def test_an_answer_without_words_is_empty_and_ends_well(protocol: Any, nothing: Any):
    answer = json.loads(json.dumps(ANSWERS[protocol]).replace(json.dumps(WORDS), json.dumps(nothing)))
    reply = decode(json.dumps(answer).encode(), protocol)
    assert (reply.text, reply.stop_reason, reply.error) == ("", "stop", None)


@for_each("key", ["padding", "encrypted_content", "provider_note"])
def test_padding_and_seals_are_no_words(key: str):
    answer = copy.deepcopy(ANSWERS["openai-chat"])
    answer["choices"][0]["message"] |= {"content": "", key: "aGVsbG8gd29ybGQ="}
    reply = decode(json.dumps(answer).encode(), "openai-chat")
    assert (reply.text, reply.stop_reason, reply.error) == ("", "stop", None)


#: Values of another type in place of words, parts or items that say nothing.
SILENT: dict[str, tuple[Any, ...]] = {
    "openai-chat": ([], {}, [""], [{"type": "text", "text": ""}], {"type": "text", "text": None}),
    "anthropic-messages": ("", None, {}, [""], {"type": "text", "text": ""}),
    "openai-responses": ("", None, {}, [{"type": "message", "content": {"type": "output_text", "text": ""}}]),
    "gemini-generate": ("", None, {}, {"text": ""}, {"text": None}),
    "ollama-chat": ([], {}, [""], [{"type": "text", "text": ""}], {"text": ""}),
}
#: Where those stand.
SILENT_PLACES: dict[str, tuple[Any, ...]] = {
    "openai-chat": ("choices", 0, "message", "content"),
    "anthropic-messages": ("content",),
    "openai-responses": ("output",),
    "gemini-generate": ("candidates", 0, "content", "parts"),
    "ollama-chat": ("message", "content"),
}


@for_each(("protocol", "value"), [(protocol, value) for protocol, values in SILENT.items() for value in values])
def test_what_says_nothing_is_an_empty_answer_in_any_form(protocol: Any, value: Any):
    answer = copy.deepcopy(ANSWERS[protocol])
    *outer, name = SILENT_PLACES[protocol]
    value_at(answer, tuple(outer))[name] = value
    reply = decode(json.dumps(answer).encode(), protocol)
    assert (reply.text, reply.stop_reason, reply.error) == ("", "stop", None)


OWN_WORDS: tuple[dict[str, Any], ...] = (
    {"moderation": {"results": [{"text": "what was asked", "flagged": False}]}},
    {"timings": {"value": "12 ms"}},
    {"notices": [{"text": "This model retires in May."}]},
)


@for_each("own", OWN_WORDS, ids=[next(iter(own)) for own in OWN_WORDS])
@for_each("protocol", ANSWERS)
def test_words_of_the_server_beside_an_empty_answer_are_none_of_it(protocol: Any, own: dict[str, Any]):
    answer = json.loads(json.dumps(ANSWERS[protocol]).replace(json.dumps(WORDS), '""'))
    reply = decode(json.dumps(answer | own).encode(), protocol)
    assert (reply.text, reply.stop_reason, reply.error) == ("", "stop", None)


@for_each(("protocol", "key"), [("openai-chat", "choices"), ("gemini-generate", "candidates")])
def test_words_of_another_choice_are_none_of_an_empty_first_one(protocol: Any, key: str):
    answer = json.loads(json.dumps(ANSWERS[protocol]).replace(json.dumps(WORDS), '""'))
    answer[key].append(copy.deepcopy(ANSWERS[protocol][key][0]) | {"index": 1})
    reply = decode(json.dumps(answer).encode(), protocol)
    assert (reply.text, reply.stop_reason, reply.error) == ("", "stop", None)
    assert "extra-choice" in [deviation.code for deviation in reply.deviations]


#: Lists of an answer with a text and a call: what stands around them, and their items.
LISTS: dict[str, tuple[tuple[Any, ...], list[Any]]] = {
    "anthropic-messages": (
        ("content",),
        [{"type": "text", "text": WORDS}, {"type": "tool_use", "id": "t1", "name": "look", "input": {"shelf": 4}}],
    ),
    "openai-responses": (
        ("output",),
        [
            *ANSWERS["openai-responses"]["output"],
            {"type": "function_call", "id": "f1", "call_id": "t1", "name": "look", "arguments": '{"shelf": 4}'},
        ],
    ),
    "gemini-generate": (
        ("candidates", 0, "content", "parts"),
        [{"text": WORDS}, {"functionCall": {"name": "look", "args": {"shelf": 4}}}],
    ),
}


@for_each("protocol", LISTS)
def test_a_list_written_as_an_object_with_numbers_is_that_list(protocol: Any):
    answer = copy.deepcopy(ANSWERS[protocol])
    (*outer, name), items = LISTS[protocol]
    value_at(answer, tuple(outer))[name] = {str(number): item for number, item in enumerate(items)}
    reply = decode(json.dumps(answer).encode(), protocol)
    assert (reply.text, [(call.name, call.values()) for call in reply.tool_calls]) == (WORDS, [("look", {"shelf": 4})])
    value_at(answer, tuple(outer))[name]["3"] = value_at(answer, tuple(outer))[name].pop("1")  # no list has a gap
    assert decode(json.dumps(answer).encode(), protocol).error is not None


#: A call as each protocol writes it, and the keys under which gateways put one beside an answer.
CALLS: tuple[dict[str, Any], ...] = (
    {"id": "t9", "type": "function", "function": {"name": "look", "arguments": '{"shelf": 4}'}},
    {"type": "tool_use", "id": "t9", "name": "look", "input": {"shelf": 4}},
    {"type": "function_call", "call_id": "t9", "name": "look", "arguments": '{"shelf": 4}'},
    {"functionCall": {"name": "look", "args": {"shelf": 4}}},
)
BESIDE: tuple[Callable[[Any], dict[str, Any]], ...] = (
    lambda call: {"tool_calls": [call]},
    lambda call: {"toolCalls": [call]},
    lambda call: {"function_call": call},
    lambda call: {"items": [call]},
    lambda call: {"data": [call]},
)


def fails(protocol: str, frames: list[Any], *, is_whole: bool) -> bool:
    reply = decode(body_of(protocol, frames, is_whole=is_whole), protocol)  # type: ignore[arg-type]
    return reply.error is not None and len(reply.failed_calls) == 1 and "look" not in [c.name for c in reply.tool_calls]


@for_each("form", FORMS, ids=lambda form: form.make.__name__)
def test_a_call_beside_an_answer_or_in_its_last_frame_fails(form: Form):
    for calls, call, beside in itertools.product(([], [LS]), CALLS, BESIDE):
        frames = form.make(calls)
        at = -2 if form.protocol == "anthropic-messages" and not form.is_whole else -1  # message_delta
        frames[at] = frames[at] | beside(call)
        assert fails(form.protocol, frames, is_whole=form.is_whole), (calls, frames[at])
