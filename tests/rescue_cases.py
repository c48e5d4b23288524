"""Calls written as text: one file a family in tests/rescue/cases, and how a case is played.

A case: `text` as the model writes it; `calls` that must come out of it, each as `name {arguments}`; names of calls
that must fail (`failed`); `left`, the text that stays ("" when absent; outer white space apart). `cut_at`: the text
is also played up to the end of these words, where its last call must fail.
"""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman import _json
from dragoman.events import Event, Reply, fold
from dragoman.protocol import Stage
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Tool
from grammar import check

FOLDER = Path(__file__).parent / "rescue" / "cases"


def _tool(name: str, required: tuple[str, ...] = (), **properties: dict[str, object]) -> Tool:
    return Tool(name, "", _json.raw({"type": "object", "properties": properties, "required": list(required)}))


TEXT, INTEGER, NUMBER, BOOLEAN = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
#: What every case offers.
TOOLS = (
    _tool("get_weather", ("city",), city=TEXT, unit={"type": "string", "enum": ["celsius", "fahrenheit"]}),
    _tool("get_time", timezone=TEXT),
    _tool("set_alarm", ("hour",), hour=INTEGER, repeat=BOOLEAN, days={"type": "array", "items": TEXT}, note=TEXT),
    _tool("write_file", ("path", "content"), path=TEXT, content=TEXT),
    _tool("search", ("query",), query=TEXT, limit=INTEGER, score=NUMBER, filters={"type": "object"}),
)


class RescueCase(NamedTuple):
    """One case of one family."""

    family: str
    name: str
    text: str
    calls: list[tuple[str, object]]
    failed: list[str]
    left: str
    cut_at: str


def load_rescue_cases() -> list[RescueCase]:
    """All cases, by family."""
    found = []
    for file in sorted(FOLDER.glob("*.toml")):
        for fields in tomllib.loads(file.read_text(encoding="utf-8"))["cases"]:
            unknown = set(fields) - {"name", "text", "calls", "failed", "left", "cut_at"}
            assert not unknown, f"{file.name}: unknown fields {unknown}"
            calls = [call.partition(" ") for call in fields.get("calls", [])]
            found.append(
                RescueCase(
                    family=file.stem,
                    name=fields["name"],
                    text=fields["text"],
                    calls=[(name, json.loads(arguments)) for name, _, arguments in calls],
                    failed=fields.get("failed", []),
                    left=fields.get("left", ""),
                    cut_at=fields.get("cut_at", ""),
                )
            )
    return found


def new_stages() -> list[Stage]:
    """The stages of one response that offers `TOOLS`."""
    numbers = itertools.count()
    return stages_for(TOOLS, Policy(), new_id=lambda: f"{next(numbers):024d}")


def play_text(pieces: Sequence[str], *, field: str = "content", answer: str = "") -> list[Event]:
    """The events of a chat stream whose deltas are these; `answer`: text that follows thinking."""
    numbers = itertools.count()
    decoder = PROTOCOLS["openai-chat"].decoder(
        new_id=lambda: f"{next(numbers):024d}", offered_names=frozenset(tool.name for tool in TOOLS)
    )
    deltas = [{field: piece} for piece in pieces] + ([{"content": answer}] if answer else [])
    frames = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    frames.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    bodies = [f"data: {json.dumps(frame)}\n\n".encode() for frame in frames] + [b"data: [DONE]\n\n"]
    stages = new_stages()
    events: list[Event] = []
    for fed in [*(decoder.feed(body) for body in bodies), decoder.close()]:
        for stage in stages:
            fed = stage.feed(fed)
        events += fed
    return check(events)


def outcome(events: Sequence[Event]) -> tuple[list[tuple[str, object]], list[str], str]:
    """Calls, names of failed calls, and the text that stays."""
    reply: Reply = fold(events)
    calls: list[tuple[str, object]] = [(call.name, json.loads(call.arguments)) for call in reply.tool_calls]
    return calls, [failed.name for failed in reply.failed_calls], reply.text.strip()
