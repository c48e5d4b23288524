"""One exchange in the form of the corpus: a folder with `wire`, `request.json` and `case.json`.

`case.json` contains under `expect` what dragoman makes of the answer. The reporter corrects that by hand.
"""

from __future__ import annotations

import contextlib
import os
import re
from functools import cache
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Final, final

import msgspec

from dragoman import _json
from dragoman.decoding import decode, read_request
from dragoman.errors import ConfigError, UsageError
from dragoman.events import Reply, ToolCallFailed
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.recognize import recognize
from dragoman.types import ProtocolName

#: What of an answer a case speaks of.
_OTHER: Final = "other"
_FILES: Final = ("wire", "request.json", "case.json")
_NUMBER: Final = re.compile(r"\d{3,}")
_VERSION: Final = re.compile(r"/v\d+(?:beta)?(?=/)")


@final
class Exchange(msgspec.Struct, frozen=True):
    """A request and its answer, without secrets. `path` begins with "/" and has its query.

    Attributes:
        is_cut: the connection broke after `body`.
        withheld: why the body is missing, or "".
    """

    method: str
    path: str
    headers: dict[str, str]
    request: bytes
    status: int
    response_headers: dict[str, str]
    body: bytes
    is_cut: bool = False
    source: str = ""
    withheld: str = ""

    @property
    def protocol(self) -> ProtocolName | None:
        """The protocol of both, or None for other pages, such as a list of models."""
        plain = self.path.partition("?")[0]
        named = next((protocol for ending, protocol in _endings() if plain.endswith(ending)), None)
        return named if named is not None or self.method != "POST" or self.status >= 400 else recognize(self.body)

    def __repr__(self) -> str:
        return f"Exchange({self.method} {self.path.partition('?')[0]}, {self.status}, {len(self.body)} bytes)"


@cache
def _endings() -> tuple[tuple[str, ProtocolName], ...]:
    """Return how the request paths of each protocol end, whatever prefix a server has."""
    return tuple(
        (route.partition("{model}")[2] or _VERSION.sub("", route, count=1), protocol.name)
        for protocol in PROTOCOLS.values()
        for _, route in protocol.routes
    )


def next_number(folder: Path) -> int:
    """Return the number of the next exchange in a folder, from 1."""
    return max((int(path.name) for path in folder.glob("*/*") if _NUMBER.fullmatch(path.name)), default=0) + 1


def write_case(exchange: Exchange, folder: Path, number: int) -> tuple[Path, Reply | None]:
    """Write an exchange to a folder of its own. Return that folder and what dragoman makes of the answer.

    Raises:
        ConfigError: it cannot be written.
    """
    protocol = exchange.protocol
    place = folder / (protocol or _OTHER) / f"{number:03d}"
    reply = None if protocol is None or exchange.withheld else _read(exchange, protocol)
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        if exchange.request:
            (place / "request.json").write_bytes(exchange.request)
        if not exchange.withheld:
            (place / "wire").write_bytes(exchange.body)
        text = _json.indented(_case(exchange, protocol, reply), is_sorted=False)
        (place / "case.json").write_text(text + "\n", encoding="utf-8")
    except OSError as problem:
        raise ConfigError(f"{place}: {problem.strerror or type(problem).__name__}") from None
    return place, reply


def _read(exchange: Exchange, protocol: ProtocolName) -> Reply | None:
    try:
        return decode(exchange.body, protocol, request=exchange.request, status=exchange.status)
    except UsageError:  # the request is none of the protocol's
        return decode(exchange.body, protocol, status=exchange.status)


def _case(exchange: Exchange, protocol: ProtocolName | None, reply: Reply | None) -> dict[str, Any]:
    case: dict[str, Any] = {
        "kind": "recorded",
        "broke": "",
        "source": exchange.source,
        "status": exchange.status,
        "content_type": exchange.response_headers.get("content-type", ""),
        "headers": exchange.response_headers,
        "request": {"method": exchange.method, "path": exchange.path, "headers": exchange.headers},
        "is_cut": exchange.is_cut,
        "tools": [],
    }
    if exchange.withheld:
        case["withheld"] = exchange.withheld
    if protocol is not None:
        case["tools"] = _tools(exchange, protocol)
    if reply is not None:
        case["stages"] = True
        case["expect"] = _expect(reply, exchange.body)
        case["deviations"] = [one.code for one in reply.deviations]
    return case


def _tools(exchange: Exchange, protocol: ProtocolName) -> list[dict[str, Any]]:
    try:
        tools, _ = read_request(exchange.request, PROTOCOLS[protocol])
    except UsageError:
        return []
    return [
        {"name": tool.name, "parameters": {} if tool.schema is None else _json.decode(tool.schema)} for tool in tools
    ]


def _expect(reply: Reply, wire: bytes) -> dict[str, Any]:
    error = reply.error
    return {
        # An id that the wire does not have is ours, and another one the next time.
        "tool_calls": [
            {"id": call.id if call.id.encode() in wire else None, "name": call.name, "arguments": call.values()}
            for call in reply.tool_calls
        ],
        "text": reply.text,
        "thinking": reply.thinking,
        "stop_reason": reply.stop_reason,
        "error": None if error is None else "tool_call" if isinstance(error, ToolCallFailed) else error.kind,
    }


def check_folder(folder: Path) -> None:
    """Check before anything is asked and paid for that exchanges can be written there.

    Raises:
        UsageError: they cannot.
    """
    for place in (folder.absolute(), *folder.absolute().parents):
        try:
            if S_ISDIR(place.stat().st_mode) and os.access(place, os.W_OK):
                return
            why = "it, or what it would stand in, is no folder that you may write to"
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as problem:  # ValueError: no file can have such a name
            why = str(problem)
        raise UsageError(f"folder: expected one for a recording, got {str(folder)[:80]!r}: {why}")


def load_cases(folder: Path) -> list[Exchange]:
    """Return the exchanges of a folder in the order in which they were recorded.

    Raises:
        UsageError: one of them cannot be read.
    """
    return [_load(place) for place in _places(folder)]


def remove_cases(folder: Path) -> None:
    """Remove the exchanges of a folder, and nothing else in it."""
    for place in _places(folder):
        for name in _FILES:
            (place / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody put a file of his own there
            place.rmdir()


def _places(folder: Path) -> list[Path]:
    found = (path.parent for path in folder.glob("*/*/case.json") if _NUMBER.fullmatch(path.parent.name))
    return sorted(found, key=lambda place: int(place.name))


def _load(place: Path) -> Exchange:
    try:
        case = _json.decode((place / "case.json").read_bytes())
        assert isinstance(case, dict)
        asked, request, wire = case["request"], place / "request.json", place / "wire"
        exchange = {
            "method": asked["method"],
            "path": asked["path"],
            "headers": asked["headers"],
            "status": case["status"],
            "response_headers": case["headers"],
            "is_cut": case["is_cut"],
            "source": case["source"],
            "withheld": case.get("withheld", ""),
            "request": b"",
            "body": b"",
        }
        found = msgspec.convert(exchange, Exchange)
        return msgspec.structs.replace(
            found,
            request=request.read_bytes() if request.exists() else b"",
            body=wire.read_bytes() if not found.withheld else b"",
        )
    except (OSError, AssertionError, KeyError, TypeError, msgspec.ValidationError) as problem:
        raise UsageError(f"{place}: expected a recorded exchange: {str(problem)[:120]}") from None
