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

import wires
from dragoman.decoding import decode
from dragoman.events import Failure

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
        grows = call.told != "start" and call.text != NOTHING
        told.append([
            [wires.block_start(wires.tool_use(call.name, start, id=call.id))],
            [wires.block_delta(wires.json_delta(call.text))] if grows else [],
            [wires.block_stop()] if call.is_ended else [],
        ])  # fmt: skip
    return wires.body_of("anthropic-messages", wires.messages_stream(*rows_in_order(order, told)))


def responses(made: list[Made], order: tuple[int, ...], index: int | None = 0) -> bytes:
    """Starts may tell the arguments, and ends do not."""
    told = []
    for call in made:
        labels = {"id": f"i{call.id}", "call_id": call.id}
        start = wires.function_call(call.name, "" if call.told == "later" else call.text, **labels)
        delta = wires.arguments_delta(call.text) | {"item_id": labels["id"]}
        end = wires.function_call(call.name, **labels, status="completed")
        grows = call.told != "start" and call.text != NOTHING
        told.append([
            [wires.item_added(start)], [delta] if grows else [], [wires.item_done(end)] if call.is_ended else [],
        ])  # fmt: skip
    rows = rows_in_order(order, told)
    if index is None:
        rows = [{key: value for key, value in row.items() if key != "output_index"} for row in rows]
    return wires.body_of("openai-responses", wires.responses_stream(*rows))


def responses_without_index(made: list[Made], order: tuple[int, ...]) -> bytes:
    return responses(made, order, None)


def gemini(made: list[Made], order: tuple[int, ...]) -> bytes:
    """Pieces of arguments, or whole ones in the middle when `told` is "start"; every part has the call's id."""
    told = []
    for call in made:
        values = json.loads(call.text)
        goes_on = {"id": call.id, "willContinue": True}
        middle = [{"args": values}] if call.told == "start" and values else wires.partial_args(values)
        told.append([
            [{"name": call.name, **goes_on}],
            [{**row, **goes_on} for row in middle],
            [{"id": call.id}] if call.is_ended else [],
        ])  # fmt: skip
    return wires.body_of("gemini-generate", wires.gemini_stream(*rows_in_order(order, told)))


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
