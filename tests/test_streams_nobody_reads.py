"""A stream whose pieces of text all stand under a key, or at a place, that nobody reads: it never counts as an empty
answer that ended well. Each piece is one word, so that only all of them show that they are the answer."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from dragoman import decode
from dragoman.types import Opaque
from for_each import for_each

WORDS = ("Alpha", "Bravo", "Charlie")


def sse(*frames: Any) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(frame).encode() for frame in frames)


def chat(word: str) -> Any:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]}


def gemini(word: str) -> Any:
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": word}]}, "index": 0}]}


def ollama(word: str) -> Any:
    return {"model": "m", "created_at": "2026-03-01T10:00:00Z", "message": {"content": word}, "done": False}


def messages(word: str) -> Any:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}


def responses(word: str) -> Any:
    delta = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0}
    return delta | {"delta": word}


#: Of each protocol: a piece, and the stream around the pieces.
STREAMS: dict[str, tuple[Callable[[str], Any], Callable[[list[Any]], bytes]]] = {
    "openai-chat": (
        chat,
        lambda pieces: sse(*pieces, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        + b"data: [DONE]\n\n",
    ),
    "gemini-generate": (
        gemini,
        lambda pieces: sse(*pieces, {"candidates": [{"content": {"parts": []}, "finishReason": "STOP", "index": 0}]}),
    ),
    "ollama-chat": (
        ollama,
        lambda pieces: b"".join(
            json.dumps(line).encode() + b"\n"
            for line in (*pieces, ollama("") | {"done": True, "done_reason": "stop"})
        ),
    ),
    "anthropic-messages": (
        messages,
        lambda pieces: sse(
            {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *pieces,
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
            {"type": "message_stop"},
        ),
    ),
    "openai-responses": (
        responses,
        lambda pieces: sse(
            {"type": "response.created", "response": {"id": "r", "object": "response", "status": "in_progress"}},
            *pieces,
            {"type": "response.completed", "response": {"object": "response", "status": "completed", "output": []}},
        ),
    ),
}  # fmt: skip
NAMES = ("answer", "completion", "content", "contents", "delta", "deltas", "generated_text", "message", "output",
         "output_text", "parts", "response", "result", "text")  # fmt: skip


def path_of(value: Any, path: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """The path of the word."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for key, one in inner if (found := path_of(one, (*path, key)))), path if value in WORDS else ())


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def damages(piece: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Another name for each key around the word, and another place for the word."""
    path = path_of(piece)
    for deep in range(len(path)):
        for name in (*NAMES, path[deep].upper() if isinstance(path[deep], str) else ""):
            place = at(piece, path[:deep])
            is_vague = name == "message" and deep == len(path) - 1  # servers say "success" there
            if name and isinstance(place, dict) and name not in place and not is_vague:

                def rename(one: Any, outer: Any = path[:deep], key: Any = path[deep], name: str = name) -> Any:
                    at(one, outer)[name] = at(one, outer).pop(key)
                    return one

                yield f"{path[deep]} as {name}", rename
    for deep in range(len(path) - 1):
        for name in ("content", "text"):
            place = at(piece, path[:deep])
            if isinstance(place, dict) and name not in place:

                def move(one: Any, outer: Any = path[:deep], name: str = name) -> Any:
                    at(one, outer)[name] = at(one, path[:-1]).pop(path[-1])
                    return one

                yield f"up to {deep} as {name}", move


CASES = [
    (protocol, how, damage) for protocol, (piece, _) in STREAMS.items() for how, damage in damages(piece(WORDS[0]))
]


@for_each("protocol", STREAMS)
def test_the_streams_say_their_words(protocol: Any) -> None:
    piece, around = STREAMS[protocol]
    assert decode(around([piece(word) for word in WORDS]), protocol).text == "".join(WORDS)


@for_each(("protocol", "how", "damage"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES])
def test_words_of_a_stream_are_read_or_it_fails(protocol: Any, how: str, damage: Callable[[Any], Any]) -> None:
    piece, around = STREAMS[protocol]
    reply = decode(around([damage(copy.deepcopy(piece(word))) for word in WORDS]), protocol)
    kept = b"".join(bytes(part.raw) for part in reply.parts if isinstance(part, Opaque)).decode()
    said = reply.text + reply.thinking + kept
    assert reply.error is not None or all(word in said for word in WORDS)


@for_each("protocol", STREAMS)
def test_news_before_an_empty_answer_is_none(protocol: Any) -> None:
    piece, around = STREAMS[protocol]
    news: dict[str, Any] = {"type": "ping"} if protocol in ("anthropic-messages", "openai-responses") else piece("")
    reply = decode(around([news, news | {"queue": {"position": 3}}, piece("")]), protocol)
    assert (reply.text, reply.stop_reason, reply.error) == ("", "stop", None)


def test_calls_beside_the_choice_of_a_text_fail() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"shelf": 4}'}}
    choice = {"index": 0, "message": {"role": "assistant", "content": "Let me look."}, "finish_reason": "tool_calls"}
    reply = decode(json.dumps({"choices": [choice], "tool_calls": [call]}).encode(), "openai-chat")
    assert (reply.text, len(reply.failed_calls), reply.stop_reason) == ("Let me look.", 1, "error")


def test_an_item_of_an_odd_type_is_told_once() -> None:
    item = {"id": "m", "role": "assistant", "content": []}
    whole = item | {"type": "message", "content": [{"type": "output_text", "text": "".join(WORDS)}]}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item | {"type": 7}}
    end = {"type": "response.completed", "response": {"object": "response", "status": "completed", "output": [whole]}}
    reply = decode(sse(added, *map(responses, WORDS), end), "openai-responses")
    assert (reply.text, reply.error) == ("".join(WORDS), None)


def test_words_in_an_object_are_read() -> None:
    line = ollama("") | {"done": True, "done_reason": "stop"}
    line["message"] = {"role": "assistant", "content": {"type": "text", "text": "Good morning."}}
    assert decode(json.dumps(line).encode(), "ollama-chat").text == "Good morning."


def entry(**told: Any) -> Any:
    return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **told}]}, "finish_reason": None}]}


@for_each(
    "odd",
    [
        {"custom": [{"input": "in the middle "}]},
        {"custom": {"input": {"text": "in the middle "}}},
        {"custom": {"text": "in the middle "}},
        {"custom": "in the middle "},
        {"customs": {"input": "in the middle "}},
    ],
)
def test_free_text_with_a_piece_that_nobody_reads_is_no_call(odd: dict[str, Any]) -> None:
    first = entry(id="c1", type="custom", custom={"name": "patch", "input": "from the start "})
    last = entry(custom={"input": "to the end"})
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    usual = decode(sse(first, entry(custom={"input": "in the middle "}), last, end), "openai-chat")
    assert [call.name for call in usual.tool_calls] == ["patch"]
    reply = decode(sse(first, entry(**odd), last, end), "openai-chat")
    assert (len(reply.tool_calls), len(reply.failed_calls), reply.stop_reason) == (0, 1, "error")


CALLS = [
    {"type": "function_call", "id": f"f{number}", "call_id": f"c{number}", "name": name, "arguments": ""}
    for number, name in enumerate(("open", "look"))
]
CREATED = {"type": "response.created", "response": {"id": "r", "object": "response", "status": "in_progress"}}
COMPLETED = {"type": "response.completed", "response": {"object": "response", "status": "completed", "output": []}}


def added(number: int, item: Any) -> Any:
    return {"type": "response.output_item.added", "output_index": number, "item": item}


def done(number: int, arguments: str) -> Any:
    item = CALLS[number] | {"arguments": arguments, "status": "completed"}
    return {"type": "response.output_item.done", "output_index": number, "item": item}


@for_each("odd", ["", None, 7, [], "item"])
def test_arguments_without_a_place_are_no_other_call_s_than_that_of_an_odd_item(odd: Any) -> None:
    delta = {"type": "response.function_call_arguments.delta", "delta": '{"valve": "north"}'}
    body = sse(CREATED, added(0, odd), added(1, CALLS[1]), delta, done(0, delta["delta"]), done(1, ""), COMPLETED)
    reply = decode(body, "openai-responses")
    assert ("look", {"valve": "north"}) not in [(call.name, call.values()) for call in reply.tool_calls]


def test_an_item_without_a_type_of_its_event_ends_no_answer() -> None:
    delta = {"type": "response.function_call_arguments.delta", "item_id": "f0", "output_index": 0}
    untyped = {"output_index": 0, "output": CALLS[0]}
    reply = decode(
        sse(CREATED, untyped, delta | {"delta": '{"valve": "east"}'}, done(0, '{"valve": "east"}'), COMPLETED),
        "openai-responses",
    )
    assert [call.values() for call in reply.tool_calls] == [{"valve": "east"}]


def test_a_call_beside_an_envelope_fails() -> None:
    line = ollama("Good morning.") | {"done": True, "done_reason": "stop"}
    call = {"function": {"name": "look", "arguments": {"shelf": 4}}}
    reply = decode(json.dumps({"data": line, "tool_calls": [call]}).encode(), "ollama-chat")
    assert (reply.text, len(reply.tool_calls), len(reply.failed_calls)) == ("Good morning.", 0, 1)
