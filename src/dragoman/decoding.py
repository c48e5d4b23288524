"""`dragoman.decode`: a whole response body → a `Reply`, without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dragoman import _json
from dragoman.codec.json_fields import read_body
from dragoman.errors import UsageError, WireError
from dragoman.events import Reply, fold
from dragoman.ids import new_id
from dragoman.pipe import Reader
from dragoman.protocol import NOTHING_EXPECTED, PLAIN, Dialect, Expectation, Protocol, Strictness
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, nothing_fits, stages_for
from dragoman.types import ProtocolName, Tool


def decode(
    body: bytes,
    protocol: ProtocolName,
    *,
    tools: Iterable[Tool | Callable[..., Any] | Mapping[str, Any]] = (),
    request: bytes | Mapping[str, Any] | None = None,
    status: int = 200,
    dialect: Dialect = PLAIN,
    strict: Strictness = False,
) -> Reply:
    """Decode the body of a response, streamed or whole (told from its bytes).

    Args:
        body: the raw bytes.
        protocol: one of the five names.
        tools: those that the request had offered.
        request: the body of the request, in the same protocol: its tools count as offered, and what it asked for is no
            deviation.
        status: the HTTP status; from 400 on the body is read as an error.
        strict: the first deviation is a `Failure`; with "notes" a note is one too.

    Raises:
        UsageError: no such protocol, or a tool or the request cannot be read. What the body holds never raises: see
            `Reply.error`.
    """
    if protocol not in PROTOCOLS:
        raise UsageError(f"expected one of the protocols {', '.join(PROTOCOLS)}, got {protocol!r}")
    chosen = PROTOCOLS[protocol]
    if status >= 400:
        return fold([chosen.parse_error(status, body)])
    from dragoman.inputs.conversation import read_tools

    offered, _ = read_tools(tools)
    expectation = NOTHING_EXPECTED
    if request is not None:
        asked, expectation = read_request(request if isinstance(request, bytes) else _json.encode(request), chosen)
        offered = (*offered, *asked)
    names = frozenset(tool.name for tool in offered) | expectation.tools
    stages = stages_for(offered, Policy(strict=strict), new_id=new_id, dialect=dialect, expectation=expectation)
    decoder = chosen.decoder(new_id=new_id, offered_names=names, takes_nothing=nothing_fits(offered), dialect=dialect)
    reader = Reader(decoder, stages)
    return fold([*reader.feed(body), *reader.close()])


def read_request(body: bytes, protocol: Protocol) -> tuple[tuple[Tool, ...], Expectation]:
    """What the request of a recorded response offered, and what else it asked for.

    A body whose path names the model may be without one.

    Raises:
        UsageError: it is no request of the protocol.
    """
    path = protocol.routes[0][1].replace("{model}", "unnamed")
    try:
        fields = {"model": _json.raw("unnamed"), **read_body(body)}
        parsed = protocol.parse_request(_json.encode(fields), path=path)
    except WireError as problem:
        raise UsageError(f"the request: {problem}") from problem
    return parsed.request.tools, protocol.expect(fields)
