"""An answer says the same in one large read as frame by frame, however odd its frames are: what deltas say together is
what they say one by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wires
from dragoman.events import Event
from dragoman.protocols import PROTOCOLS
from wires import Frame

#: A few short events are never read together: so many bytes come before them.
PADDING = "p" * 5000
#: What the model says, in pieces: objects that open, close and open again, and what stands behind one.
TEXTS = (
    '{"a":1}', '{"a":1}{"a":2}', '{"a":1}{"a":1}', '{"a":"}{"}', '{"a":{"b":[1,2]}}{"c":3}', '{"a":1}x{"a":2}', "{}",
    '{}{"a":1}', '{"a":1} ', '{"a":"bcdefghij"}{"a":"klmnopqrs"}',
    ' {"a":1}\n{"b":2}{"c":', '{"a":"é\\"}"}', "[1]", '{"a":1}{"b":2}{"c":3}', "}{",
)  # fmt: skip
#: What a frame may have besides, or in place of what it had; None: not the member.
MEMBERS: tuple[tuple[str, Any], ...] = (
    ("error", {"message": "boom"}), ("error", [1]), ("error", ""), ("error", None), ("item_id", "fc_9"),
    ("item_id", None), ("output_index", 3), ("output_index", None), ("call_id", "call_0"), ("call_id", "call_9"),
    ("index", 1), ("index", None), ("name", "other"), ("arguments", "{}"), ("arguments", '{"q":1}'),
    ("input", {"q": 1}), ("response", {"error": {"message": "x"}}), ("type", "ping"), ("id", "call_7"), ("delta", ""),
)  # fmt: skip


def chat(pieces: list[str]) -> list[Frame]:
    frames = wires.chat_stream(wires.chat_call("note", id="call_0"), *map(wires.chat_piece, pieces))
    return [{"id": "c", "model": "m", **frame} for frame in frames]


def responses(pieces: list[str]) -> list[Frame]:
    start, whole = (wires.function_call("note", text, call_id="call_0") for text in ("", "".join(pieces)))
    frames = [*map(wires.arguments_delta, pieces), wires.arguments_done("".join(pieces))]
    return wires.responses_stream(wires.item_added(start), *frames, wires.item_done(whole), output=[whole])


def messages(pieces: list[str]) -> list[Frame]:
    block = wires.tool_use("note", id="call_0")
    return wires.messages_stream(*wires.block_of(block, *map(wires.json_delta, pieces)))


def gemini(pieces: list[str]) -> list[Frame]:
    grown = [{"partialArgs": [{"jsonPath": "$.a", "stringValue": piece, "willContinue": True}]} for piece in pieces]
    calls = [{**call, "willContinue": True} for call in ({"name": "note"}, *grown)]
    return [*(wires.gemini_chunk({"functionCall": call}) for call in (*calls, {})), wires.GEMINI_END]


def ollama(pieces: list[str]) -> list[Frame]:
    return wires.ollama_stream(*(wires.ollama_call("" if at else "note", text) for at, text in enumerate(pieces)))


WRITERS: dict[str, Callable[[list[str]], list[Frame]]] = {
    "openai-chat": chat, "openai-responses": responses, "anthropic-messages": messages, "gemini-generate": gemini,
    "ollama-chat": ollama,
}  # fmt: skip


def written(protocol: str, frames: list[Frame]) -> list[bytes]:
    """The frames as the wire has them, the first one with its padding."""
    if protocol == "ollama-chat":
        return [f" {'' if at else ' ' * len(PADDING)}{json.dumps(frame)}\n".encode() for at, frame in enumerate(frames)]
    sent = [wires.body_of(protocol, [frame]).removesuffix(b"data: [DONE]\n\n") for frame in frames]
    return [f": {PADDING}\n\n".encode(), *sent]


def decoded(protocol: str, reads: list[bytes]) -> list[Event]:
    numbers = iter(range(1000))
    found = PROTOCOLS[protocol]  # type: ignore[index]
    decoder = found.decoder(new_id=lambda: f"{next(numbers):024}", offered_names=frozenset({"note"}))
    return [event for read in reads for event in decoder.feed(read)] + decoder.close()


def odd(frame: Frame, key: str, value: Any) -> Frame:
    """A frame with a member, without it, or with another one in its place."""
    return {name: inner for name, inner in frame.items() if name != key} | ({} if value is None else {key: value})


@st.composite
def answers(draw: st.DrawFn, protocol: str) -> list[Frame]:
    """The frames of an answer with one call, some of which are odd, and others of the same kind that stray."""
    text = draw(st.sampled_from(TEXTS))
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=30)))
    ends = [*cuts, len(text)]
    pieces = [text[start:stop] for start, stop in zip([0, *cuts], ends, strict=True)]
    frames = WRITERS[protocol](pieces)
    for place in draw(st.lists(st.integers(0, len(frames) - 1), max_size=2)):
        frames[place] = odd(frames[place], *draw(st.sampled_from(MEMBERS)))
    for place, source in draw(st.lists(st.tuples(*[st.integers(0, len(frames) - 1)] * 2), max_size=2)):
        stray = frames[source]
        for _ in range(draw(st.integers(0, 2))):
            stray = odd(stray, *draw(st.sampled_from(MEMBERS)))
        frames.insert(place, stray)
    return frames


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_large_read_says_what_its_frames_say(protocol: str) -> None:
    @given(answers(protocol))
    def tried(frames: list[Frame]) -> None:
        reads = written(protocol, frames)
        together, alone = decoded(protocol, [b"".join(reads)]), decoded(protocol, reads)
        assert together == alone

    tried()


#: Where one read said otherwise: an error beside a delta behind the end of an object; a stray delta before its item.
_STRAY = odd(responses(["x"])[2], "output_index", None) | {"delta": '{"a":'}
_REOPENED = responses(['{"a":', "1}{", '"', 'a"', ":2}"])


@pytest.mark.parametrize(
    "frames",
    [
        [*_REOPENED[:4], odd(_REOPENED[4], "error", {"message": "boom"}), *_REOPENED[5:]],
        [_REOPENED[0], _STRAY, *_REOPENED[1:]],
        [_STRAY, *_REOPENED],
    ],
)
def test_a_call_that_closes_in_a_read_is_looked_at_frame_by_frame(frames: list[Frame]) -> None:
    reads = written("openai-responses", frames)
    assert decoded("openai-responses", [b"".join(reads)]) == decoded("openai-responses", reads)
