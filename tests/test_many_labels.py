"""Streams of very many calls cost time in proportion, whatever the labels of their pieces are.

Each stream has one kind of piece many times and then another one as often, or both in turn. A kind says which labels a
piece has (of none, the same one each time, another one each time) and what it tells.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import wires
from dragoman.decoding import decode
from growth import MOST_EXPONENT, exponent
from profiles import IS_SOAK
from wires import Frame

TOOLS = [{"name": f"f{number}", "parameters": {"type": "object"}} for number in range(3)]
Piece = Callable[[int], Frame]
#: What a piece has under a label: nothing, always the same, or its own.
LABELS: list[Callable[[int], Any]] = [lambda number: None, lambda number: 0, lambda number: number]
TEXTS = ["", "{}", '{"a": 1}', '{"a', "1}", None]


def said(**fields: Any) -> Frame:
    return {key: value for key, value in fields.items() if value is not None}


def chat_pieces() -> list[Piece]:
    def kind(index: Any, id: Any, name: Any, text: Any, form: str) -> Piece:
        def piece(number: int) -> Frame:
            function = said(name=_text("f", name(number)), arguments=text)
            call = said(index=index(number), id=_text("i", id(number)), type="function", function=function)
            delta = {"new": {"tool_calls": [call]}, "old": {"function_call": function}}
            delta["both"] = delta["new"] | delta["old"]
            return {"choices": [{"index": 0, "delta": delta[form]}]}

        return piece

    return [kind(*choice) for choice in itertools.product(LABELS, LABELS, LABELS, TEXTS, ("new", "old", "both"))]


def responses_pieces() -> list[Piece]:
    def kind(index: Any, id: Any, call_id: Any, text: Any, event: str) -> Piece:
        def piece(number: int) -> Frame:
            labels = said(
                output_index=index(number), item_id=_text("i", id(number)), call_id=_text("c", call_id(number))
            )
            item = said(type="function_call", id=_text("i", id(number)), call_id=_text("c", call_id(number)), name="f0")
            place = said(output_index=index(number))
            return {
                "start": place | {"type": "response.output_item.added", "item": item | {"arguments": text or ""}},
                "delta": labels | {"type": "response.function_call_arguments.delta", "delta": text or ""},
                "whole": labels | {"type": "response.function_call_arguments.done", "arguments": text or ""},
                "end": place | {"type": "response.output_item.done", "item": item | {"arguments": text or ""}},
            }[event]

        return piece

    events = ("start", "delta", "whole", "end")
    return [kind(*choice) for choice in itertools.product(LABELS, LABELS, LABELS, TEXTS, events)]


def messages_pieces() -> list[Piece]:
    def kind(index: Any, id: Any, name: Any, text: Any, event: str) -> Piece:
        def piece(number: int) -> Frame:
            place = said(index=index(number))
            block = said(type="tool_use", id=_text("i", id(number)), name=_text("f", name(number)), input={})
            return {
                "start": place | {"type": "content_block_start", "content_block": block},
                "delta": place
                | {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": text or ""}},
                "end": place | {"type": "content_block_stop"},
            }[event]

        return piece

    return [kind(*choice) for choice in itertools.product(LABELS, LABELS, LABELS, TEXTS, ("start", "delta", "end"))]


def gemini_pieces() -> list[Piece]:
    def kind(id: Any, name: Any, goes_on: Any, text: Any) -> Piece:
        def piece(number: int) -> Frame:
            call = said(id=_text("i", id(number)), name=_text("f", name(number)), willContinue=goes_on)
            if text is not None:
                call["partialArgs" if goes_on is not None else "args"] = (
                    [{"jsonPath": "$.a", "stringValue": text}] if goes_on is not None else {"a": text}
                )
            return {"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"functionCall": call}]}}]}

        return piece

    return [kind(*choice) for choice in itertools.product(LABELS, LABELS, (None, True, False), TEXTS)]


def ollama_pieces() -> list[Piece]:
    def kind(index: Any, id: Any, name: Any, text: Any) -> Piece:
        def piece(number: int) -> Frame:
            function = said(index=index(number), name=_text("f", name(number)), arguments=text)
            call = said(id=_text("i", id(number)), function=function)
            return {"message": {"role": "assistant", "content": "", "tool_calls": [call]}, "done": False}

        return piece

    return [kind(*choice) for choice in itertools.product(LABELS, LABELS, LABELS, [*TEXTS, {}, {"a": 1}])]


def _text(letter: str, label: Any) -> str | None:
    return None if label is None else f"{letter}{label}"


PIECES = {
    "openai-chat": chat_pieces(),
    "openai-responses": responses_pieces(),
    "anthropic-messages": messages_pieces(),
    "gemini-generate": gemini_pieces(),
    "ollama-chat": ollama_pieces(),
}


def stream(protocol: str, seed: int, count: int) -> bytes:
    """A stream of two kinds of pieces, each `count` times."""
    chance = random.Random(f"{protocol} {seed}")
    first, second = chance.choices(PIECES[protocol], k=2)
    in_turn = chance.random() < 0.5
    return wires.body_of(protocol, _frames(first, second, count, in_turn)).removesuffix(b"data: [DONE]\n\n")


def _frames(first: Piece, second: Callable[[int], Frame], count: int, in_turn: bool) -> Iterator[Frame]:
    for number in range(2 * count):
        kind, other = (number % 2, number // 2) if in_turn else (number // count, number % count)
        yield (second if kind else first)(other)


@pytest.mark.parametrize("seed", range(12 if IS_SOAK else 3))
@pytest.mark.parametrize("protocol", PIECES)
def test_many_pieces_are_read_in_linear_time(protocol: str, seed: int):
    bodies: dict[int, bytes] = {}

    def run(count: int) -> object:
        body = bodies.get(count) or bodies.setdefault(count, stream(protocol, seed, count))
        return decode(body, protocol=protocol, tools=TOOLS)

    assert exponent(run, 200) <= MOST_EXPONENT
