"""What only one protocol knows of an answer, written in another: it is in the bytes, or it is named."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import _json, decode
from dragoman._json import Json, Raw
from dragoman.events import (
    Deviation,
    Event,
    Finish,
    PartEvent,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    fold,
    unfold,
)
from dragoman.protocol import Protocol
from dragoman.protocols import PROTOCOLS, legacy
from dragoman.types import Media, Native, Opaque, ProtocolName, ToolCall
from for_each import for_each
from profiles import examples

NAMES: list[ProtocolName] = list(PROTOCOLS)  # type: ignore[arg-type]
PAIRS = [pair for pair in product(NAMES, NAMES) if pair[0] != pair[1]]
KEYS = st.sampled_from(
    ["annotations", "citations", "logprobs", "container", "safetyRatings", "groundingMetadata", "usage", "message",
     "choices", "candidates", "usageMetadata", "id", "neverHeardOf", "refusal", "type", "stop_details"]
)  # fmt: skip


def ids() -> str:
    return "0" * 24


def marks(value: Json) -> set[str]:
    """The values that a reader must find again."""
    return set(re.findall(r"mark\d+", json.dumps(value)))


def written(protocol: Protocol, events: list[Event]) -> Iterator[tuple[bytes, list[Deviation], list[Event]]]:
    """The answer as a stream, and whole, each with what was lost and what was said."""
    encoder = protocol.encoder(new_id=ids, model="m", created=1)
    body = b"".join(encoder.encode([event]) for event in events)
    yield body, list(encoder.lost), events
    lost: list[Deviation] = []
    reply: Reply = fold(events)
    yield protocol.render_response(reply, new_id=ids, model="m", created=1, lost=lost), lost, unfold(reply)


@st.composite
def natives(draw: st.DrawFn, name: ProtocolName, numbers: Callable[[], int]) -> Native | None:
    """Fields of any shape with a mark in each."""

    def value(depth: int) -> Json:
        mark = f"mark{numbers()}"
        shapes = [mark, {"a": mark}, [mark], [{"url": mark, "type": "url_citation"}]]
        if depth:
            inner = {key: value(depth - 1) for key in draw(st.lists(KEYS, min_size=1, max_size=2, unique=True))}
            shapes += [inner, [inner]]
        return draw(st.sampled_from(shapes))

    keys = draw(st.lists(KEYS, max_size=3, unique=True))
    return Native(name, {key: _json.raw(value(2)) for key in keys}) if keys else None


@st.composite
def answers(draw: st.DrawFn, name: ProtocolName) -> list[Event]:
    """An answer of every kind of part, with native fields anywhere."""
    count = iter(range(10_000))
    native = natives(name, lambda: next(count))
    call = ToolCall("call_1", "f", '{"a":1}', native=draw(native))
    return [
        Start("x", "m", 1, draw(native)),
        ThinkingStart(0, draw(native)),
        ThinkingDelta(0, "hm"),
        ThinkingEnd(0, "c2VhbA==", None, draw(native)),
        TextStart(1, draw(native)),
        TextDelta(1, "Hello"),
        TextEnd(1, native=draw(native)),
        PartEvent(2, Opaque(name, Raw(b'{"type":"server_thing","mark":"mark99999"}'))),
        PartEvent(3, Media("image", "image/png", "aGk=", native=draw(native))),
        ToolCallStart(4, "call_1", "f", native=call.native),
        ToolCallDelta(4, '{"a":1}'),
        ToolCallEnd(4, call),
        Finish("tool_use", native=draw(native)),
    ]


def all_fields(events: list[Event]) -> dict[str, set[str]]:
    """The marks under each name of a field, from every native record."""
    found: dict[str, set[str]] = {}

    def walk(value: Json) -> None:
        for key, inner in value.items() if isinstance(value, dict) else ():
            found.setdefault(key, set()).update(marks(inner))
            walk(inner)
        for item in value if isinstance(value, list) else ():
            walk(item)

    for event in events:
        native = event.call.native if isinstance(event, ToolCallEnd) else getattr(event, "native", None)
        native = event.part.native if isinstance(event, PartEvent) and isinstance(event.part, Media) else native
        if native is not None:
            walk({key: json.loads(bytes(value)) for key, value in native.fields.items()})
    return found


def last_name(path: str) -> str:
    return re.sub(r"\[\d*\]", "", path).rpartition(".")[2]


@pytest.mark.parametrize(("source", "target"), PAIRS)
@settings(max_examples=examples(20))
@given(st.data())
def test_what_another_protocol_cannot_say_is_named(
    source: ProtocolName, target: ProtocolName, data: st.DataObject
) -> None:
    events = data.draw(answers(source))
    for body, lost, said in written(PROTOCOLS[target], events):
        fields = all_fields(said)
        named = {last_name(deviation.where) for deviation in lost}
        accounted = marks(body.decode()).union(*(fields.get(name, set()) for name in named))
        assert set().union(*fields.values()) <= accounted
        assert {deviation.severity for deviation in lost} == {"note"}
        assert any((each.where, each.seen) == ("parts[2]", "server_thing") for each in lost)


@for_each("name", NAMES)
def test_nothing_of_its_own_is_named_as_lost(name: ProtocolName) -> None:
    native = Native(name, {"neverHeardOf": Raw(b'"mark1"')})
    events: list[Event] = [Start("x", native=native), TextStart(0, native), TextDelta(0, "Hi"), TextEnd(0)]
    for _, lost, _ in written(PROTOCOLS[name], [*events, Finish("stop", native=native)]):
        assert lost == []


PAGE, TITLE = "https://example.org/a", "A"
ENTRIES: dict[str, Json] = {
    "openai-chat": {
        "type": "url_citation", "url_citation": {"url": PAGE, "title": TITLE, "start_index": 1, "end_index": 4},
    },
    "openai-responses": {"type": "url_citation", "url": PAGE, "title": TITLE, "start_index": 1, "end_index": 4},
    "anthropic-messages": {
        "type": "web_search_result_location", "url": PAGE, "title": TITLE, "cited_text": "said", "encrypted_index": "x",
    },
}  # fmt: skip


def citing(name: ProtocolName) -> list[Event]:
    """An answer that cites one page, as its protocol does."""
    chunks = {"groundingChunks": [{"web": {"uri": PAGE, "title": TITLE}}], "webSearchQueries": ["q"]}
    grounding = Native(name, {"candidates": _json.raw([{"groundingMetadata": chunks}])})
    key = "citations" if name == "anthropic-messages" else "annotations"
    native = Native(name, {key: _json.raw([ENTRIES[name]])}) if name in ENTRIES else None
    end = Finish("stop", native=None if native else grounding)
    return [Start("x"), TextStart(0), TextDelta(0, "Hello"), TextEnd(0, native=native), end]


@for_each("form", ["stream", "whole"])
@for_each("target", ["openai-chat", "openai-responses", "gemini-generate"])
@for_each("source", [*ENTRIES, "gemini-generate"])
def test_a_cited_page_is_cited_in_the_other_protocols_words(
    source: ProtocolName, target: ProtocolName, form: str
) -> None:
    protocol, lost = PROTOCOLS[target], []
    events = citing(source)
    if form == "stream":
        encoder = protocol.encoder(new_id=ids, model="m", created=1)
        body, lost = encoder.encode(events), encoder.lost
    else:
        body = protocol.render_response(fold(events), new_id=ids, model="m", created=1, lost=lost)
    reply = decode(body, target)
    assert (reply.text, reply.deviations) == ("Hello", ())
    if target == "gemini-generate":
        assert reply.native is not None
        found = json.loads(bytes(reply.native.fields["candidates"]))[0]["groundingMetadata"]["groundingChunks"]
        assert found == [{"web": {"uri": PAGE, "title": TITLE}}]
    else:
        native = reply.parts[0].native  # type: ignore[union-attr]
        assert native is not None
        (entry,) = json.loads(bytes(native.fields["annotations"]))
        page = entry.get("url_citation", entry)
        assert (page["url"], page["title"]) == (PAGE, TITLE)
        if page["start_index"] is not None:
            is_placed = source in ("openai-chat", "openai-responses")
            assert (page["start_index"], page["end_index"]) == ((1, 4) if is_placed else (0, 5))
        assert page["start_index"] is not None or (target, form) == ("openai-chat", "stream")
    paths = {re.sub(r"^.*[.]", "", each.where) for each in lost}
    if source != target:
        assert ("encrypted_index" in paths) == (source == "anthropic-messages")
        assert ("webSearchQueries" in paths) == (source == "gemini-generate")


def test_fields_are_named_by_their_path() -> None:
    fields = {"choices": [{"logprobs": {"content": []}, "message": {"executed_tools": [1]}}], "usage": {"queue": 2}}
    native = Native("openai-chat", {key: _json.raw(value) for key, value in fields.items()})
    empty = Native("openai-chat", {"annotations": Raw(b"[]"), "audio": Raw(b"null")})
    text: list[Event] = [TextStart(0, empty), TextDelta(0, "Hi"), TextEnd(0, native=native)]
    for _, lost, _ in written(PROTOCOLS["ollama-chat"], [Start(), *text, Finish("stop", native=native)]):
        paths = ["choices[0].logprobs", "choices[0].message.executed_tools", "usage.queue"]
        assert sorted(each.where for each in lost) == sorted([*paths, *(f"parts[0].{path}" for path in paths)])


@for_each("name", ["openai-chat", "ollama-chat"])
def test_the_older_forms_have_no_native_fields(name: ProtocolName) -> None:
    native = Native(name, {"logprobs": Raw(b'{"a":1}')})
    events: list[Event] = [Start(native=native), TextStart(0), TextDelta(0, "Hi"), TextEnd(0), Finish("stop")]
    for _, lost, _ in written(legacy(name).protocol, events):
        assert [each.where for each in lost] == ["logprobs"]
