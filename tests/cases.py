"""Our corpus: one folder a case, `wire` (the exact body) and `case.json` (what it must come to). See CONTRIBUTING."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple

from dragoman import _json
from dragoman.events import Event, Reply, fold
from dragoman.pipe import Reader
from dragoman.protocol import PLAIN, Dialect, Stage
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, nothing_fits, stages_for
from dragoman.types import Tool
from grammar import check

FOLDER = Path(__file__).parent / "corpus"


class Case(NamedTuple):
    """One case; `expect` has the shape that `dragoman decode --result` prints. `stages`: those of a response are
    between."""

    name: str
    protocol: str
    wire: bytes
    kind: str
    status: int
    tools: list[dict[str, Any]]
    expect: dict[str, Any]
    deviations: list[str]
    dialect: Dialect
    stages: bool = False


def load_cases() -> list[Case]:
    """All cases, by protocol and name."""
    cases = []
    for file in sorted(FOLDER.glob("*/*/case.json")):
        fields = _json.decode(file.read_bytes())
        assert isinstance(fields, dict), f"{file}: {fields}"
        cases.append(
            Case(
                name=file.parent.name,
                protocol=file.parent.parent.name,
                wire=(file.parent / "wire").read_bytes(),
                kind=fields["kind"],
                status=fields.get("status", 200),
                tools=fields.get("tools", []),
                expect=fields["expect"],
                deviations=fields.get("deviations", []),
                dialect=Dialect(**fields["dialect"]) if "dialect" in fields else PLAIN,
                stages=fields.get("stages", False),
            )
        )
    return cases


def counter() -> Any:
    """Ids that are the same in every run."""
    numbers = itertools.count()
    return lambda: f"{next(numbers):024d}"


def play(case: Case, pieces: list[bytes]) -> list[Event]:
    """Decode a case that arrives in these pieces; the grammar is checked."""
    protocol = PROTOCOLS[case.protocol]
    if case.status >= 400:
        return [protocol.parse_error(case.status, b"".join(pieces))]
    names = frozenset(tool["name"] for tool in case.tools)
    tools = tuple(Tool(tool["name"], schema=_json.raw(tool["parameters"])) for tool in case.tools)
    new_id = counter()
    decoder = protocol.decoder(
        new_id=new_id, offered_names=names, takes_nothing=nothing_fits(tools), dialect=case.dialect
    )
    stages: list[Stage] = []
    if case.stages:
        stages = stages_for(tools, Policy(), new_id=new_id, dialect=case.dialect)
    reader = Reader(decoder, stages)
    events: list[Event] = []
    for piece in pieces:
        events += reader.feed(piece)
    return check([*events, *reader.close()])


def differences(case: Case, events: list[Event]) -> list[str]:
    """What of the result is not as the case expects."""
    reply = fold(events)
    found = []
    for key, value in case.expect.items():
        seen = result(reply, key)
        if key == "tool_calls":
            value = [
                call if call.get("id") else {**call, "id": got["id"]} for call, got in zip(value, seen, strict=False)
            ] + value[len(seen) :]
        if key in ("text", "thinking"):
            seen, value = seen.strip(), value.strip()
        if repr(seen) != repr(value):
            found.append(f"{key}: {seen!r:.300} instead of {value!r:.300}")
    codes = [deviation.code for deviation in reply.deviations]
    found += [f"no deviation {code} among {codes}" for code in case.deviations if code not in codes]
    return found


def result(reply: Reply, key: str) -> Any:
    """One field of a reply, in the shape of `decode --result`."""
    match key:
        case "tool_calls":
            return [
                {
                    "id": call.id,
                    "name": call.name,
                    "arguments": call.values(),
                }
                for call in reply.tool_calls
            ]
        case "error":
            if reply.error is None:
                return None
            return "tool_call" if reply.error in reply.failed_calls else reply.error.kind
        case "usage":
            return {
                name: getattr(reply.usage, name)
                for name in ("input", "output", "cache_read", "cache_write", "reasoning")
            }
        case "cost":
            return None if reply.cost is None else {"usd": str(reply.cost.usd), "source": reply.cost.source}
        case "text" | "thinking" | "stop_reason" | "model":
            return getattr(reply, key)
    raise AssertionError(f"a case expects the unknown field {key!r}")
