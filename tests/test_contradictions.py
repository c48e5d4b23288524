"""A call's arguments told several times on one wire: told alike they are one call, told otherwise none is delivered.

Each protocol has places that tell a call's arguments whole (a start, deltas, a final event, a final list, sibling
keys). Every place says nothing, a placeholder, one text, the same value written otherwise, or another value. The
reference asks only which values were told.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import wires
from dragoman.decoding import decode
from dragoman.events import Failure, Reply
from for_each import for_each
from wires import Frame

Told = dict[str, str]
TOOLS = [{"name": "ring", "parameters": {"type": "object", "properties": {"bell": {}, "loud": {}}}}]
ONE, AGAIN, OTHER = '{"bell": "a", "loud": 1}', '{"loud":1,"bell":"a"}', '{"bell": "b", "loud": 1}'
SHORTER = '{"bell": "a"}'
TEXTS = ("", "{}", ONE, AGAIN, OTHER, SHORTER)


def halves(text: str) -> list[str]:
    return [piece for piece in (text[:7], text[7:]) if piece]


# ---------------------------------------------------------------- bodies, by the places that tell arguments


def responses(told: Told) -> bytes:
    """`start`, `deltas`, `final`, `item`, `again`, `output`."""

    def item(place: str) -> Frame:
        return wires.function_call("ring", told[place], status="completed")

    frames = [wires.item_added(item("start")), *map(wires.arguments_delta, halves(told["deltas"]))]
    frames += [wires.arguments_done(told["final"])] if told["final"] else []
    frames += [wires.item_done(item("item")), *([wires.item_done(item("again"))] if told["again"] else [])]
    output = [item("output")] if told["output"] else []
    return wires.body_of("openai-responses", wires.responses_stream(*frames, output=output))


def messages(told: Told) -> bytes:
    """`start`, `restart`, `deltas`; `key` is a sibling of the start's `input`."""
    beside = {"arguments": json.loads(told["key"])} if told["key"] else {}
    start, *rest = wires.block_of(
        wires.tool_use("ring", json.loads(told["start"] or "{}"), **beside),
        *map(wires.json_delta, halves(told["deltas"])),
    )
    again = [wires.block_start(wires.tool_use("ring", json.loads(told["restart"])))] if told["restart"] else []
    return wires.body_of("anthropic-messages", wires.messages_stream(start, *again, *rest))


def messages_again(told: Told) -> bytes:
    """`start`, `deltas`, and a `message` that tells the whole answer before its end. A block without arguments is a
    call without any, so one of both has some."""
    started = told["start"] if told["deltas"] or told["start"] not in ("", "{}") else told["message"]
    block = wires.tool_use("ring", json.loads(started or "{}"))
    frames = wires.messages_stream(*wires.block_of(block, *map(wires.json_delta, halves(told["deltas"]))))
    if told["message"]:
        frames.insert(-1, wires.messages_answer(wires.tool_use("ring", json.loads(told["message"]))))
    return wires.body_of("anthropic-messages", frames)


def chat(told: Told) -> bytes:
    """`deltas`, `message`; `key` is a sibling of the last delta's arguments, `finished` a message behind the reason."""
    calls = [wires.chat_call("ring"), *map(wires.chat_piece, halves(told["deltas"]))]
    if told["key"]:
        calls = [wires.chat_call("ring", told["deltas"])]
        calls[0]["function"]["parameters"] = json.loads(told["key"])
    *frames, end = wires.chat_stream(*calls)
    frames += [wires.chat_chunk({}), end, wires.chat_chunk({})]
    for place, at in (("message", -3), ("finished", -1)):
        if told[place]:
            frames[at]["choices"][0]["message"] = {"tool_calls": [wires.chat_call("ring", told[place])]}
    return wires.body_of("openai-chat", frames)


def ollama(told: Told) -> bytes:
    """`arguments` and `parameters` of one entry, `beside` it."""
    entry: Frame = {"function": {"name": "ring", **parsed(told, "arguments", "parameters")}}
    if told["beside"]:
        entry["arguments"] = json.loads(told["beside"])
    return wires.body_of("ollama-chat", wires.ollama_stream(entry))


def parsed(told: Told, *places: str) -> Frame:
    """The values of the places that say something."""
    return {place: json.loads(told[place]) for place in places if told[place]}


def gemini_whole(told: Told) -> bytes:
    """`args` and its siblings."""
    return gemini_body({"name": "ring", "id": "c", **parsed(told, "args", "arguments", "parameters")})


def gemini_pieces(told: Told) -> bytes:
    """`args` of the start, `pieces` by path, `repeated` pieces, `last` whole arguments at the end."""
    calls: list[Frame] = [{"name": "ring", "id": "c", "willContinue": True, **parsed(told, "args")}]
    for place in ("pieces", "repeated"):
        calls += wires.partial_args(json.loads(told[place] or "{}"))
    calls.append({"args": json.loads(told["last"])} if told["last"] else {})
    return gemini_body(*calls)


def gemini_body(*calls: Frame) -> bytes:
    return wires.body_of("gemini-generate", wires.gemini_stream(*calls))


def chat_whole(told: Told) -> bytes:
    """`arguments`, `parameters` and, beside the function, `flat`."""
    call = wires.chat_call("ring", told["arguments"], **({"arguments": told["flat"]} if told["flat"] else {}))
    call["function"] |= parsed(told, "parameters")
    return json.dumps(wires.chat_answer(call)).encode()


def messages_whole(told: Told) -> bytes:
    """`input` and its siblings."""
    block = {"type": "tool_use", "id": "c", "name": "ring", **parsed(told, "input", "arguments", "parameters")}
    return json.dumps(wires.messages_answer(block)).encode()


def chat_renamed(told: Told) -> bytes:
    """`deltas`, and a message that has another id for the call."""
    wire = chat({"deltas": told["deltas"], "key": "", "message": told["renamed"], "finished": ""})
    start, message, rest = wire.partition(b'"message": {"tool_calls": [')
    return start + message + rest.replace(b'"id": "c0"', b'"id": "d"')


def responses_renamed(told: Told) -> bytes:
    """`deltas`, and a final list that has other ids for the call."""
    wire = responses(dict.fromkeys(("start", "final", "item", "again"), "") | told | {"output": told["renamed"]})
    start, completed, rest = wire.partition(b"event: response.completed")
    return start + completed + rest.replace(b'"call_id": "c0"', b'"call_id": "d"').replace(b'"id": "i0"', b'"id": "id"')


#: name → (protocol, body, places)
BODIES: dict[str, tuple[str, Callable[[Told], bytes], tuple[str, ...]]] = {
    "responses": ("openai-responses", responses, ("start", "deltas", "final", "item", "again", "output")),
    "messages": ("anthropic-messages", messages, ("start", "key", "restart", "deltas")),
    "messages-again": ("anthropic-messages", messages_again, ("start", "deltas", "message")),
    "chat": ("openai-chat", chat, ("deltas", "key", "message", "finished")),
    "chat-whole": ("openai-chat", chat_whole, ("arguments", "parameters", "flat")),
    "chat-renamed": ("openai-chat", chat_renamed, ("deltas", "renamed")),
    "messages-whole": ("anthropic-messages", messages_whole, ("input", "arguments", "parameters")),
    "responses-renamed": ("openai-responses", responses_renamed, ("deltas", "renamed")),
    "ollama": ("ollama-chat", ollama, ("arguments", "parameters", "beside")),
    "gemini-whole": ("gemini-generate", gemini_whole, ("args", "arguments", "parameters")),
    "gemini-pieces": ("gemini-generate", gemini_pieces, ("args", "pieces", "repeated", "last")),
}


def combinations(places: tuple[str, ...]) -> Iterator[Told]:
    """Every way to fill the places; of six places three speak at most. A second message under a used id is a call of
    its own, so there is one; and so may be `{}` under another id."""
    for texts in itertools.product(TEXTS, repeat=len(places)):
        told = dict(zip(places, texts, strict=True))
        if sum(map(bool, texts)) > 3 and len(places) > 4:
            continue
        if not (told.get("message") and told.get("finished")) and told.get("renamed") != "{}":
            yield told


def values_of(told: Told) -> list[Any]:
    """The different values that were told, placeholders aside. Pieces of one object come to one value."""
    told = dict(told)
    if "pieces" in told:
        pieces, repeated = (json.loads(told[place] or "{}") for place in ("pieces", "repeated"))
        if pieces | repeated == repeated | pieces:
            told |= {"pieces": json.dumps(pieces | repeated), "repeated": ""}
    values: list[Any] = []
    for text in told.values():
        value = json.loads(text or "{}")
        if value and value not in values:
            values.append(value)
    return values


def is_said_first(told: Told) -> bool:
    """Whether the first place that says anything says all."""
    return json.loads(next(filter(None, told.values()), "{}")) == (values_of(told) or [{}])[0]


def delivered(reply: Reply) -> list[Any]:
    """The arguments of the calls that a program may run."""
    return [] if isinstance(reply.error, Failure) else [call.values() for call in reply.tool_calls]


@for_each("name", BODIES)
def test_two_readings_of_a_call_never_deliver(name: str):
    protocol, body, places = BODIES[name]
    wrong, count = [], 0
    for told in combinations(places):
        count += 1
        values = values_of(told)
        reply = decode(body(told), protocol, tools=TOOLS)  # type: ignore[arg-type]
        calls = delivered(reply)
        if len(values) > 1 or (reply.error is not None and not is_said_first(told)):  # `{}` may have left
            is_right = not calls and reply.error is not None
        else:
            is_right = calls == (values or [{}]) and reply.error is None
        if not is_right:
            wrong.append((told, calls, reply.error))
    assert wrong == [], f"{len(wrong)} of {count}"
    assert count >= 30


@for_each("text", ["{}", '{"bell": "a"}', '{"bell":'])
@for_each("place", ["item", "again", "output", "whole"])
@for_each("status", ["incomplete", "failed", "cancelled"])
def test_what_a_provider_calls_unfinished_is_not_run(text: str, place: str, status: str):
    told = dict.fromkeys(("start", "deltas", "final", "item", "again", "output"), "")
    if place == "whole":
        item = {"type": "function_call", "id": "fc", "call_id": "c", "name": "ring", "arguments": text}
        details = {"reason": "max_output_tokens"}
        output = [item | {"status": status}]
        body = json.dumps(
            {"object": "response", "status": "incomplete", "incomplete_details": details, "output": output}
        )
        assert decode(body.encode(), "openai-responses", tools=TOOLS).tool_calls == []
        return
    wire = responses(told | {"item": text, place: text})
    head, mark, rest = wire.rpartition(b'"status": "completed"}')
    assert mark
    reply = decode(head + mark.replace(b"completed", status.encode()) + rest, "openai-responses", tools=TOOLS)
    assert delivered(reply) == [] and reply.error is not None


def chat_rows(*deltas: Frame) -> bytes:
    """Chunks of a stream, without its end."""
    return wires.body_of("openai-chat", map(wires.chat_chunk, deltas)).removesuffix(DONE)


DONE = b"data: [DONE]\n\n"
FINISHED = wires.body_of("openai-chat", [wires.chat_chunk({}, "tool_calls")]).removesuffix(DONE)


@for_each("more", [", 1", "x", '{"bell": "b"', "}"])
@for_each("places", [{}, {"id": "c"}])
def test_a_call_that_goes_on_behind_its_end(more: str, places: dict[str, Any]):
    start = wires.chat_call("ring", '{"bell": "a"}', id="c")
    rest = {"index": 0, **places, "function": {"arguments": more}}
    body = chat_rows({"tool_calls": [start]}) + FINISHED + chat_rows({"tool_calls": [rest]}) + DONE
    reply = decode(body, "openai-chat", tools=TOOLS)
    assert reply.error is not None and (places or delivered(reply) == [])


@for_each("size", [1, 9])
def test_a_call_of_one_kind_that_goes_on_as_another(size: int):
    custom = {"index": 0, "id": "c", "type": "custom", "custom": {"name": "ring", "input": "a"}}
    function = wires.chat_call("ring", id="c")
    more = [wires.chat_piece("b")] * size
    body = chat_rows({"tool_calls": [custom]}, *({"tool_calls": [one]} for one in more)) + FINISHED
    assert delivered(decode(body, "openai-chat", tools=TOOLS)) == []
    rest = {"index": 0, "custom": {"input": '{"bell": "a"}'}}
    body = chat_rows({"tool_calls": [function]}, {"tool_calls": [rest]}) + FINISHED
    assert delivered(decode(body, "openai-chat", tools=TOOLS)) == []


@for_each("key", ["parameters", "arguments"])
@for_each("is_same", [True, False])
def test_a_later_piece_under_another_key(key: str, is_same: bool):
    """`parameters` in the function, or `arguments` beside it, of a delta that lets a call grow."""
    piece = '"a"}'
    other = piece if is_same else '"b"}'
    function: dict[str, Any] = {"arguments": piece}
    entry: dict[str, Any] = {"index": 0, "function": function}
    (function if key == "parameters" else entry)[key] = other
    start = wires.chat_call("ring", '{"bell": ')
    wire = wires.body_of("openai-chat", wires.chat_stream(start, entry))
    calls = delivered(decode(wire, "openai-chat", tools=TOOLS))
    assert calls == ([{"bell": "a"}] if is_same else [])


def test_arguments_behind_another_call_are_not_those_of_one_that_waited():
    """Ollama: `ring` waits for its arguments until `toll` comes; what names no call behind that is nobody's."""
    rows = [{"name": "ring", "arguments": {}}, {"name": "toll", "arguments": {"bell": "b"}}, {"arguments": {"loud": 1}}]
    body = wires.body_of("ollama-chat", wires.ollama_stream(*({"function": function} for function in rows)))
    reply = decode(body, "ollama-chat", tools=[*TOOLS, {**TOOLS[0], "name": "toll"}])
    assert [(call.name, call.values()) for call in reply.tool_calls] == [("toll", {"bell": "b"})]
    assert [call.name for call in reply.failed_calls][:1] == ["ring"] and reply.error is not None


# ---------------------------------------------------------------- the two forms of chat's calls, beside and behind


def piece_of(form: str, name: str, text: str, index: int | None = 0) -> dict[str, Any]:
    function = {"name": name, "arguments": text} if name else {"arguments": text}
    if form == "older":
        return {"function_call": function}
    entry = {"function": function} | ({"id": "c", "type": "function"} if name else {})
    return {"tool_calls": [entry if index is None else entry | {"index": index}]}


def pieces_of(form: str, way: str, name: str, text: str, index: int | None = 0) -> list[dict[str, Any]]:
    """The frames in which a call is told: at once, in pieces, or in a whole message at the end."""
    if way == "message":
        return [{"message": {"role": "assistant", "content": None} | piece_of(form, name, text, index)}]
    if way == "pieces":
        deltas = [piece_of(form, name, "", index), *(piece_of(form, "", piece, index) for piece in halves(text))]
        return [{"delta": delta} for delta in deltas]
    return [{"delta": piece_of(form, name, text, index)}]


def beside(some: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The frames of both forms, each with its counterpart of the other form."""
    pairs = itertools.zip_longest(some, others, fillvalue={"delta": {}})
    return [{"delta": one["delta"] | other["delta"]} for one, other in pairs]


def made_of(told: list[dict[str, Any]]) -> tuple[list[tuple[str, Any]], Reply]:
    choices = [{"index": 0, "finish_reason": None} | each for each in told]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    body = wires.body_of("openai-chat", [{"choices": [choice]} for choice in choices])
    reply = decode(body, "openai-chat", tools=TOOLS)
    return [(call.name, call.values()) for call in reply.tool_calls], reply


@for_each("ways", [*itertools.product(("at once", "pieces"), ("at once", "pieces", "message"))])
@for_each("first", ["newer", "older"])
@for_each("name", ["ring", "toll"])
@for_each("text", [ONE, AGAIN, OTHER])
@for_each("index", [0, None])
def test_a_call_in_both_forms_is_run_once_or_not_at_all(
    text: str, name: str, first: str, ways: tuple[str, str], index: int | None
):
    second = "older" if first == "newer" else "newer"
    told = [*pieces_of(first, ways[0], "ring", ONE, index), *pieces_of(second, ways[1], name, text, index)]
    made, reply = made_of(told)
    assert made in ([], [("ring", json.loads(ONE))])
    is_same = name == "ring" and text != OTHER
    assert is_same or reply.error is not None
    assert made or reply.error is not None
    assert first == "older" or not is_same or (made and reply.error is None)


@for_each("texts", [*itertools.product(TEXTS, TEXTS)])
@for_each("way", ["at once", "pieces", "behind", "message"])
@for_each("index", [0, None])
def test_arguments_of_the_older_form_are_never_left_out(texts: tuple[str, str], way: str, index: int | None):
    """A newer call without arguments, and a `function_call` that tells some: which of the two is meant?"""
    newer, older = texts
    pieces = "pieces" if way == "pieces" else "at once"
    new = pieces_of("newer", pieces, "ring", newer, index)
    old = pieces_of("older", "message" if way == "message" else pieces, "ring", older)
    made, reply = made_of(beside(new, old) if way in ("at once", "pieces") else new + old)
    says_the_same = same(newer, older) and (way != "pieces" or newer == older)  # a frame is compared with its own half
    if newer not in ("", "{}") and (older in ("", "{}") or says_the_same):
        assert made == [("ring", json.loads(newer))] and reply.error is None
    elif older not in ("", "{}") and not same(newer, older):
        assert made in ([], [("ring", json.loads(newer or "0"))]) and ("ring", {}) not in made
        assert reply.error is not None
    assert len(made) <= 1


@for_each("legacy", [*itertools.product(("ring", "toll", ""), TEXTS)])
@for_each("way", ["beside", "behind", "before", "message"])
def test_the_older_form_beside_two_calls_never_leaves_arguments_out(legacy: tuple[str, str], way: str):
    """Two calls with a `function_call`: a call runs empty only where the older form tells nothing that may be its."""
    entries = [wires.chat_call(name, text, at) for at, (name, text) in enumerate((("toll", ""), ("ring", ONE)))]
    new, old = {"tool_calls": entries}, {"function_call": {"name": legacy[0], "arguments": legacy[1]}}
    ways = {"beside": [new | old], "behind": [new, old], "before": [old, new], "message": [new | old]}
    made, reply = made_of([{"message" if way == "message" else "delta": told} for told in ways[way]])
    told = [("toll", {}), ("ring", json.loads(ONE))]
    assert all(call in [*told, (legacy[0], json.loads(legacy[1] or "{}"))] for call in made)
    if json.loads(legacy[1] or "{}") and (legacy[0] != "ring" or not same(legacy[1], ONE)):
        assert reply.error is not None and ("toll", {}) not in made


@for_each("text", ["", "{}", ONE])
@for_each("labels", [{}, {"index": 0}, {"index": 0, "id": "c"}])
@for_each("way", ["at once", "pieces"])
def test_newer_pieces_without_a_name_behind_the_older_form(text: str, labels: dict[str, Any], way: str):
    old = pieces_of("older", way, "ring", text)
    new = [{"delta": {"tool_calls": [{**labels, "function": {"arguments": piece}}]}} for piece in halves(OTHER)]
    made, reply = made_of(old + new)
    assert reply.error is not None and made in ([], [("ring", json.loads(text or "0"))]) and ("ring", {}) not in made


def same(one: str, other: str) -> bool:
    return bool(one) and bool(other) and json.loads(one) == json.loads(other)


@for_each("told, is_same", [
    ({"bell": "low"}, True), ({"bell": "high"}, False), ({}, False),
])  # fmt: skip
@for_each("more", [{}, {"id": ""}, {"name": "toll"}, {"id": "other"}])
@for_each("is_in_pieces", [True, False])
def test_a_block_s_end_may_tell_its_call_once_more(
    told: dict[str, Any], is_same: bool, more: dict[str, str], is_in_pieces: bool
):
    """As the events of Anthropic's SDK do, which proxies write out as they are."""
    block: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "ring", "input": {}}
    pieces = ('{"bell": ', '"low"}') if is_in_pieces else ()
    start = block if pieces else {**block, "input": {"bell": "low"}}
    *begun, stop = wires.block_of(start, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))
    stop = {**stop, "content_block": {**block, "input": told, **more}}
    body = wires.body_of("anthropic-messages", wires.messages_stream(*begun, stop))
    reply = decode(body, "anthropic-messages", tools=TOOLS)
    assert (reply.error is None) == (is_same and "name" not in more and more.get("id") != "other")
    if reply.error is None:
        assert delivered(reply) == [{"bell": "low"}] and "unread-field" not in {one.code for one in reply.deviations}


@for_each("pieces", [[], [""], ["{}"]])
@for_each("then, is_good", [
    ({}, True), ({"caller": {"type": "direct"}}, True), ({"type": "server_tool_use"}, False),
    ({"tool_calls": [{"id": "u", "name": "toll", "input": {"bell": "low"}}]}, False),
    ({"partial_json": '{"bell": "low"}'}, False), ({"arguments": {"bell": "low"}}, False),
])  # fmt: skip
def test_a_block_s_end_tells_a_call_without_arguments_once_more(pieces: list[str], then: dict[str, Any], is_good: bool):
    """It has no piece, or an empty one. What looks like a call, or more of it, beside it is not lost silently."""
    block: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "ring", "input": {}}
    *begun, stop = wires.block_of(block, *({"type": "input_json_delta", "partial_json": piece} for piece in pieces))
    stop = {**stop, "content_block": {**block, **then}}
    reply = decode(
        wires.body_of("anthropic-messages", wires.messages_stream(*begun, stop)),
        "anthropic-messages",
        tools=[{"name": "ring", "parameters": {"type": "object", "properties": {"bell": {}}}}],
    )
    assert (reply.error is None) == is_good and (delivered(reply) == [{}] or not is_good)


@for_each("values", [{}, {"bell": "low"}])
@for_each("told, is_good", [([0], True), ([1], False), ([0, 2], False), (["words"], False), ([], True)])
def test_the_last_event_may_tell_the_message_once_more(values: dict[str, str], told: list[int | str], is_good: bool):
    """As that of Anthropic's SDK does: a message with other calls contradicts the blocks."""
    block: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "ring", "input": {}}
    calls = [{**block, "input": values}, {**block, "input": {"bell": "high"}}, {**block, "id": "u"}]
    content = [calls[one] if isinstance(one, int) else {"type": "text", "text": one} for one in told]
    deltas = [{"type": "input_json_delta", "partial_json": json.dumps(values)}] if values else []
    *frames, stop = wires.messages_stream(*wires.block_of(block, *deltas))
    frames.append({**stop, "message": {"id": "m", "type": "message", "role": "assistant", "content": content}})
    parameters = {"type": "object", "properties": {"bell": {}}}
    reply = decode(
        wires.body_of("anthropic-messages", frames),
        "anthropic-messages",
        tools=[{"name": "ring", "parameters": parameters}],
    )
    assert (reply.error is None) == is_good and (delivered(reply) == [values] or not is_good)
