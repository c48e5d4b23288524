"""Responses of a real server, byte for byte as they came over the socket, and what each comes to."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from cases import Case, differences, play
from dragoman.events import Failure, Finish, fold
from dragoman.protocol import PLAIN
from for_each import for_each

FOLDER = Path(__file__).parent / "captures"
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "expected.toml").read_text(encoding="utf-8"))
NAMES = sorted(EXPECTED)


class Response(NamedTuple):
    """A captured response; `pieces` are the chunks in which its body came."""

    status: int
    pieces: list[bytes]


def load_response(name: str) -> Response:
    head, _, rest = (FOLDER / f"{name}.raw").read_bytes().partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    if b"transfer-encoding: chunked" not in head.lower():
        return Response(status, [rest])
    pieces = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        pieces.append(rest[:length])
        rest = rest[length + 2 :]
    assert pieces.pop() == b"", f"{name} has no last chunk"
    return Response(status, pieces)


def load_case(name: str, response: Response) -> Case:
    expected = EXPECTED[name]
    calls = [
        {"id": None, "name": called, "arguments": json.loads(arguments)}
        for called, arguments in expected.get("calls", [])
    ]
    tokens = dict.fromkeys(("input", "output", "cache_read", "cache_write", "reasoning")) | expected.get("usage", {})
    return Case(
        name=name,
        protocol=expected["protocol"],
        wire=b"".join(response.pieces),
        kind="capture",
        status=response.status,
        tools=[{"name": tool, "parameters": {"type": "object"}} for tool in expected.get("tools", [])],
        expect={
            "tool_calls": calls,
            "text": expected.get("text", ""),
            "thinking": expected.get("thinking", ""),
            "stop_reason": expected["stop_reason"],
            "error": expected.get("error"),
            "usage": tokens,
        },
        deviations=[],
        dialect=PLAIN,
    )


def test_every_capture_has_its_expectation():
    assert sorted(file.stem for file in FOLDER.glob("*.raw")) == NAMES


@for_each("name", NAMES)
def test_capture_comes_to_what_the_server_meant(name: str):
    response = load_response(name)
    case = load_case(name, response)
    events = play(case, response.pieces)
    assert [type(event) for event in events if isinstance(event, Finish | Failure)] == [type(events[-1])]
    assert differences(case, events) == []
    if case.expect["error"] == "tool_call":
        failed = [[call.name, call.arguments] for call in fold(events).failed_calls]
        assert failed == EXPECTED[name]["failed"]


@for_each("name", NAMES)
def test_capture_is_the_same_however_it_is_cut(name: str):
    response = load_response(name)
    case = load_case(name, response)
    as_it_came = play(case, response.pieces)
    assert play(case, [case.wire]) == as_it_came
    assert play(case, [bytes([byte]) for byte in case.wire]) == as_it_came
