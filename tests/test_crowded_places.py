"""Two calls told in one place of a wire: what two stories write alike is delivered only where both tell it.

A story is which calls the model made, and in which order the wire tells their starts, arguments and ends. All events
have the labels of one place (an index, or an id). The reference knows no decoder: it groups stories by their bytes.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from dragoman.decoding import decode
from dragoman.events import Failure
from test_contradictions import frames

TOOLS = [{"name": name, "parameters": {"type": "object", "properties": {"bell": {}}}} for name in ("ring", "toll")]
NOTHING, ONE, OTHER = "{}", '{"bell": "a"}', '{"bell": "b"}'


class Made(NamedTuple):
    """A call of the model; `id` as the wire has it, `told` where its arguments stand, `is_ended` whether the
    wire tells its end."""

    id: str
    name: str
    text: str
    told: str
    is_ended: bool


Row = dict[str, Any]
#: Of two calls, in the order in which they are told: each call's number for its start, its arguments and its end.
ORDERS = [order for order in sorted({*itertools.permutations((0, 0, 0, 1, 1, 1))}) if order[0] == 0]


def rows_in_order(order: tuple[int, ...], told: list[list[list[Row]]]) -> list[Row]:
    """The rows of both calls; `told`: of each call its start, its arguments and its end."""
    waiting = [iter(steps) for steps in told]
    return [row for number in order for row in next(waiting[number])]


def messages(made: list[Made], order: tuple[int, ...]) -> bytes:
    told = []
    for call in made:
        start = json.loads(NOTHING if call.told == "later" else call.text)
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": start}
        delta = {"type": "input_json_delta", "partial_json": call.text}
        deltas = (
            [] if call.told == "start" or call.text == NOTHING else [{"type": "content_block_delta", "delta": delta}]
        )
        told.append([
            [{"type": "content_block_start", "content_block": block}],
            deltas,
            [{"type": "content_block_stop"}] if call.is_ended else [],
        ])  # fmt: skip
    rows = [{**row, "index": 0} for row in rows_in_order(order, told)]
    return frames(
        {"type": "message_start", "message": {"id": "m", "model": "m", "content": []}},
        *rows,
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )


def responses(made: list[Made], order: tuple[int, ...], index: int | None = 0) -> bytes:
    """Starts may tell the arguments, and ends do not."""
    told = []
    for call in made:
        item = {"type": "function_call", "id": f"i{call.id}", "call_id": call.id}
        item["name"] = call.name
        delta = {"type": "response.function_call_arguments.delta", "item_id": item["id"], "delta": call.text}
        start = {**item, "arguments": "" if call.told == "later" else call.text}
        deltas = [] if call.told == "start" or call.text == NOTHING else [delta]
        end = {**item, "arguments": "", "status": "completed"}
        told.append([
            [{"type": "response.output_item.added", "item": start}],
            deltas,
            [{"type": "response.output_item.done", "item": end}] if call.is_ended else [],
        ])  # fmt: skip
    rows = rows_in_order(order, told)
    return frames(
        {"type": "response.created", "response": {"id": "r", "model": "m", "output": []}},
        *(row if index is None else {**row, "output_index": index} for row in rows),
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}},
    )


def responses_without_index(made: list[Made], order: tuple[int, ...]) -> bytes:
    return responses(made, order, None)


def gemini(made: list[Made], order: tuple[int, ...]) -> bytes:
    """Pieces of arguments, or whole ones in the middle when `told` is "start"; every part has the call's id."""
    told = []
    for call in made:
        goes_on = {"id": call.id, "willContinue": True}
        pieces = [{"jsonPath": f"$.{key}", "stringValue": text} for key, text in json.loads(call.text).items()]
        middle = {"args": json.loads(call.text)} if call.told == "start" else {"partialArgs": pieces}
        told.append([
            [{"name": call.name, **goes_on}],
            [{**middle, **goes_on}] if pieces else [],
            [{"id": call.id}] if call.is_ended else [],
        ])  # fmt: skip
    candidates: list[Row] = [{"content": {"parts": [{"functionCall": row}]}} for row in rows_in_order(order, told)]
    candidates[-1]["finishReason"] = "STOP"
    return frames(*({"candidates": [candidate]} for candidate in candidates), named=False)


PROTOCOLS: dict[str, tuple[str, Callable[[list[Made], tuple[int, ...]], bytes]]] = {
    "messages": ("anthropic-messages", messages),
    "responses": ("openai-responses", responses),
    "responses without index": ("openai-responses", responses_without_index),
    "gemini": ("gemini-generate", gemini),
}


def stories() -> Iterator[tuple[list[Made], tuple[int, ...]]]:
    texts = (NOTHING, ONE, OTHER)
    for (first, second), told, ids, name, is_ended in itertools.product(
        itertools.product(texts, texts),
        itertools.product(("later", "start", "both"), repeat=2),
        ("aa", "ab"),
        ("ring", "toll"),
        (True, False),
    ):
        made = [Made(ids[0], "ring", first, told[0], is_ended), Made(ids[1], name, second, told[1], is_ended)]
        for order in ORDERS:
            yield made, order


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_crowded_place_delivers_only_what_every_story_tells(name: str):
    protocol, render = PROTOCOLS[name]
    told: dict[bytes, list[list[tuple[str, Any]]]] = {}
    for made, order in stories():
        told.setdefault(render(made, order), []).append([(call.name, json.loads(call.text)) for call in made])
    wrong, delivered = [], 0
    for body, possible in told.items():
        reply = decode(body, protocol, tools=TOOLS)  # type: ignore[arg-type]
        calls = [(call.name, call.values()) for call in reply.tool_calls]
        if isinstance(reply.error, Failure) and reply.error is not None:
            continue
        delivered += len(calls)
        if any(call not in story for story in possible for call in calls):
            wrong.append((body.decode(), calls))
    assert wrong == [], f"{len(wrong)} of {len(told)}"
    assert delivered > 0 and len(told) > 300
