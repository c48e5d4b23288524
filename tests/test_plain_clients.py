"""What we read without a word is what clients read that know the specification alone.

A gateway passes the bytes of a target that keeps to its protocol. So whatever our readers take that the specification
does not have is a deviation: else its client, which gets the same bytes, would run another call, or none.
"""

from __future__ import annotations

import copy
import json

import pytest

from bare_calls import BARE
from damage import BASES, bodies, inserted
from dragoman.client.passthrough.frames import Frames
from dragoman.deviations import HARMLESS_TO_CALLS
from dragoman.events import Deviation
from dragoman.protocols import PROTOCOLS
from for_each import for_each
from plain_clients import run_by
from profiles import MORE_IN_SOAK
from two_calls import CALLS, made, read, wire_body
from wires import Frame

#: Forms that are deviations from the first call on.
NEVER_PLAIN = {
    "openai-responses, deltas", "openai-chat, all at index 0", "openai-chat, without an index",
    "openai-chat, whole ones at index 0", "openai-chat, flat", "ollama-chat, as texts",
}  # fmt: skip
#: One body of so many is tried; by `make soak` all are.
EVERY = [4, *(pytest.param(1, marks=mark) for mark in MORE_IN_SOAK)]


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("wire", BASES)
def test_what_is_read_without_a_deviation_is_what_clients_read(wire: str, every: int) -> None:
    plain = 0
    for number, (how, body) in enumerate([("undamaged", undamaged(wire)), *bodies(wire, BASES[wire])]):
        if number % every:
            continue
        told = read(wire, [body])
        if told.error is None and all(deviation.severity == "note" for deviation in told.deviations):
            assert run_by(wire, body) == made(told), how
            plain += 1
    assert bool(plain) is (wire not in NEVER_PLAIN)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("wire", [wire for wire in BASES if not wire.endswith("whole")])
def test_calls_are_read_alike_beside_harmless_deviations(wire: str, every: int) -> None:
    """As a gateway passes them: what comes behind the end of an answer does not reach a client."""
    tried = 0
    for number, (how, body) in enumerate([*inserted(wire, BASES[wire]), *bodies(wire, BASES[wire])]):
        if number % every:
            continue
        told = read(wire, [body])
        codes = {deviation.code for deviation in told.deviations if deviation.severity != "note"}
        if told.error is None and codes <= HARMLESS_TO_CALLS:
            ran = run_by(wire, up_to_end(wire, body) if "after-end" in codes else body)
            assert isinstance(ran, str) or ran == made(told), (how, ran)
            tried += 1
    assert tried > 2 or wire in NEVER_PLAIN


def up_to_end(wire: str, body: bytes) -> bytes:
    protocol = PROTOCOLS[wire.partition(",")[0]]  # type: ignore[index]
    frames = Frames(by_lines=protocol.stream_type.endswith("ndjson"))
    return frames.up_to_end(body, protocol.decoder(new_id=str))


@for_each("wire", BASES)
def test_clients_read_what_keeps_to_the_specification(wire: str) -> None:
    """Else the other test would say nothing."""
    assert (run_by(wire, undamaged(wire)) == CALLS) is (wire not in NEVER_PLAIN)


def without_arguments_in_items() -> list[Frame]:
    """A stream of Responses whose items end without what their deltas told."""
    frames = copy.deepcopy(BASES["openai-responses"])
    for frame in frames:
        for item in (frame.get("item", {}), *frame.get("response", {}).get("output", ())):
            if "arguments" in item:
                item["arguments"] = ""
    return frames


def undamaged(wire: str) -> bytes:
    return wire_body(wire, [json.dumps(frame) for frame in BASES[wire]])


@for_each("half", [r"\ud800", r"\uDC00", r"\ud83d\ud83d"])
@for_each("more", ["", "x" * 300])
@for_each("wire", BASES)
def test_half_a_character_in_arguments_is_told(wire: str, more: str, half: str) -> None:
    """Clients hold it, refuse it or put U+FFFD in its place."""
    lines = []
    for frame in BASES[wire]:
        line = json.dumps(frame)
        lines.append(
            line.replace('"a"', f'"{half}{more}"').replace(r"\"a\"", rf"\"{half}{more}\"".replace(r"\u", r"\\u"))
        )
    body = wire_body(wire, lines)
    protocol = PROTOCOLS[wire.partition(",")[0]]  # type: ignore[index]
    decoder = protocol.decoder(new_id=str)  # as a gateway reads what passes
    events = [*decoder.feed(body), *decoder.close()]
    codes = {event.code for event in events if type(event) is Deviation}
    assert codes & {"lone-surrogate", "control-character"}
    assert not wire.endswith("whole") or protocol.check_whole(body) is None
    told = [arguments["bell"].strip("x") for name, arguments in made(read(wire, [body])) if name == "ring"]
    assert told in ([], ["\ufffd" * len(half[::6])])


CHOICES = [
    {"index": 0, "message": {"role": "assistant", "content": "One moment."}, "finish_reason": "tool_calls"},
    *({**choice} for choice in BASES["openai-chat, whole"][0]["choices"]),
]
CANDIDATES = [
    {"content": {"parts": [{"text": "One moment."}]}, "index": 0},
    {
        "content": {"parts": [{"functionCall": {"name": name, "args": told}} for name, told in CALLS]},
        "index": 0,
        "finishReason": "STOP",
    },
]


@for_each(
    ("wire", "frames", "code"),
    [
        ("openai-chat, whole", [{"choices": CHOICES}], "extra-choice"),
        ("gemini-generate, whole", [{"candidates": CANDIDATES}], "extra-choice"),
        ("openai-responses", without_arguments_in_items(), "placeholder-arguments"),
    ],
)
def test_what_clients_pass_over_is_told(wire: str, frames: list[Frame], code: str) -> None:
    """They read the first choice, and the items that are whole."""
    body = wire_body(wire, [json.dumps(frame) for frame in frames])
    told = read(wire, [body])
    assert (made(told), told.error) == (CALLS, None)
    assert code in [deviation.code for deviation in told.deviations]
    assert run_by(wire, body) != CALLS


@for_each("protocol", ["openai-chat", "openai-responses"])
def test_empty_arguments_are_read_alike(protocol: str) -> None:
    """`missing-arguments` is harmless: who reads the specification alone takes them for `{}` too."""
    frames = BARE[protocol]()
    body = wire_body(protocol, [json.dumps(frame).replace('"{}"', '""') for frame in frames])
    told = read(protocol, [body])
    codes = {one.code for one in told.deviations if one.severity != "note"}
    assert "missing-arguments" in codes and codes <= HARMLESS_TO_CALLS
    assert told.error is None and run_by(protocol, body) == made(told) == [("ring", {})]


@for_each("text", ["stop", "ring", "0"])
def test_text_in_place_of_a_function_is_no_call(text: str) -> None:
    piece = {"index": 0, "id": "a", "type": "function", "function": text}
    for kind in ("delta", "message"):
        choice = {"index": 0, kind: {"tool_calls": [piece]}, "finish_reason": "tool_calls"}
        wire = "openai-chat" if kind == "delta" else "openai-chat, whole"
        told = read(wire, [wire_body(wire, [json.dumps({"choices": [choice]})])])
        assert told.tool_calls == [] and told.error is not None
