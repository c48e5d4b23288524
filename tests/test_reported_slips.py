"""Calls as users of servers and clients saw them written, whole and token by token (`tests/rescue/slips.toml`).

A slip: `family`; `name`; `text`; `calls` that come out of it, each as `name {arguments}`; names of calls that fail
(`failed`); `left`, the text that stays ("" when absent).
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from dragoman import _json
from dragoman.events import ToolCallDelta, ToolCallFailed
from for_each import for_each
from rescue_cases import outcome, play_text

FILE = Path(__file__).parent / "rescue" / "slips.toml"
SLIPS: list[dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))["slips"]


@for_each("slip", SLIPS, ids=lambda slip: f"{slip['family']}/{slip['name']}")
def test_a_slip(slip: dict[str, Any]):
    text = slip["text"]
    for size in (len(text), 7, 1):
        calls, failed, left = outcome(play_text([text[start : start + size] for start in range(0, len(text), size)]))
        assert [f"{name} {json.dumps(arguments, ensure_ascii=False)}" for name, arguments in calls] == slip.get(
            "calls", []
        )
        assert (failed, left) == (slip.get("failed", []), slip.get("left", ""))


#: Calls that are refused for what they hold, behind their end.
DOUBTED = [
    '<tool_call>{"name": "get_time", "arguments": {"arguments": "UTC"}}</tool_call>',
    '<tool_call>{"name": "get_time", "arguments": {"input": {"timezone": "UTC"}}}</tool_call>',
    "<tool_call>get_time<arg_key>arguments</arg_key><arg_value>UTC</arg_value></tool_call>",
    '<|tool_call_start|>[get_time(arguments="UTC")]<|tool_call_end|>',
    *(slip["text"] for slip in SLIPS if "failed" in slip),
]


@for_each("text", DOUBTED)
def test_a_call_that_fails_is_never_told_up_to_its_end(text: str) -> None:
    told: dict[int, str] = {}
    events = play_text(list(text))
    for event in events:
        if isinstance(event, ToolCallDelta):
            told[event.index] = told.get(event.index, "") + event.text
    failed = [event.index for event in events if isinstance(event, ToolCallFailed)]
    assert failed
    for index in failed:
        assert isinstance(_json.decode_exact(told.get(index, "")), _json.Malformed)
