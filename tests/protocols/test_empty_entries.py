"""A list of content, items or calls has at most as many entries as an answer may have parts, whatever they are: one
that is nothing takes hundreds of bytes while it is looked at, and a frame may hold millions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cases import counter
from dragoman.bounds import AnswerBounds
from dragoman.events import Event, Failure, Finish
from dragoman.protocols import PROTOCOLS
from growth import steps_of

MOST = 20
BOUNDS = AnswerBounds(parts=MOST, calls=MOST)
#: Protocol → an answer with these entries.
LISTS: dict[str, Any] = {
    "openai-responses": lambda entries: {"id": "r", "object": "response", "status": "completed", "output": entries},
    "openai-responses content": lambda entries: {
        "id": "r", "object": "response", "status": "completed",
        "output": [{"type": "message", "id": "m", "content": entries}],
    },
    "anthropic-messages": lambda entries: {
        "id": "m", "type": "message", "role": "assistant", "content": entries, "stop_reason": "end_turn",
    },
    "ollama-chat": lambda entries: {
        "model": "m", "message": {"role": "assistant", "content": "", "tool_calls": entries}, "done": True,
        "done_reason": "stop",
    },
}  # fmt: skip


def answer(name: str, entries: list[Any]) -> list[Event]:
    decoder = PROTOCOLS[name.split()[0]].decoder(new_id=counter(), offered_names=frozenset({"f"}), bounds=BOUNDS)
    return [*decoder.feed(json.dumps(LISTS[name](entries)).encode()), *decoder.close()]


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("entry", [{}, {"x": 1}, {"type": "text", "text": "a"}])
def test_too_many_entries_end_at_the_bound(name: str, entry: object) -> None:
    events = answer(name, [entry] * (MOST + 1))
    failures = [event for event in events if isinstance(event, Failure)]
    assert [failure.kind for failure in failures] == ["answer_too_large"]
    assert "server.limits.parts" in failures[0].message


@pytest.mark.parametrize("name", LISTS)
def test_as_many_as_parts_are_looked_at(name: str) -> None:
    last = answer(name, [{}] * MOST)[-1]
    assert isinstance(last, Finish) or (isinstance(last, Failure) and last.kind != "answer_too_large")


@pytest.mark.parametrize("name", LISTS)
def test_little_is_done_for_those_past_the_bound(name: str) -> None:
    few, many = (steps_of(lambda count=count: answer(name, [{}] * count)) for count in (1_000, 6_000))  # type: ignore[misc]
    assert many - few < 25 * 5_000
