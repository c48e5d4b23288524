"""`dragoman.decode`: decode a whole response body into a `Reply`, without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dragoman import _json
from dragoman.codec.json_fields import read_body
from dragoman.errors import UsageError, WireError
from dragoman.events import Reply, fold
from dragoman.ids import new_id
from dragoman.misuse import kind_of
from dragoman.pipe import Reader
from dragoman.protocol import NOTHING_EXPECTED, PLAIN, Dialect, Expectation, Protocol, Strictness
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, nothing_fits, stages_for
from dragoman.types import ProtocolName, Tool


def decode(
    body: bytes,
    protocol: ProtocolName | None = None,
    *,
    tools: Iterable[Tool | Callable[..., Any] | Mapping[str, Any]] = (),
    request: bytes | Mapping[str, Any] | None = None,
    status: int = 200,
    dialect: Dialect = PLAIN,
    strict: Strictness = False,
) -> Reply:
    """Decode the body of a response, streamed or whole (its bytes tell which).

    Args:
        body: the raw bytes.
        protocol: one of the five names; None: detected from the body's first frames.
        tools: those that the request offered.
        request: the body of the request, in the same protocol: its tools count as offered, and what it asked for is no
            deviation.
        status: the HTTP status; from 400 on the body is read as an error.
        strict: the first deviation is a `Failure`; with "notes" a note is one too.

    Raises:
        UsageError: no such protocol, none is named and the body does not tell it, or a tool or the request cannot be
            read. Nothing else in the body ever raises: see `Reply.error`.
    """
    _check(body, protocol, status=status, dialect=dialect, strict=strict)
    body = bytes(body)  # of what else holds bytes
    chosen = PROTOCOLS[protocol or _told_by(body)]
    if status >= 400:
        return fold([chosen.parse_error(status, body)])
    from dragoman.inputs.conversation import read_tools

    offered, _ = read_tools(tools)
    expectation = NOTHING_EXPECTED
    if request is not None:
        asked, expectation = read_request(_request_body(request), chosen)
        offered = (*offered, *asked)
    names = frozenset(tool.name for tool in offered) | expectation.tools
    stages = stages_for(offered, Policy(strict=strict), new_id=new_id, dialect=dialect, expectation=expectation)
    decoder = chosen.decoder(new_id=new_id, offered_names=names, takes_nothing=nothing_fits(offered), dialect=dialect)
    reader = Reader(decoder, stages)
    return fold([*reader.feed(body), *reader.close()])


def _check(body: object, protocol: object, *, status: object, dialect: object, strict: object) -> None:
    """Refuse arguments of the wrong kind. Raises UsageError."""
    if not isinstance(body, bytes | bytearray | memoryview):
        raise UsageError(f"body: expected bytes, got {kind_of(body)}")
    if not isinstance(protocol, str | None):
        raise UsageError(f"protocol: expected one of {', '.join(PROTOCOLS)}, got {kind_of(protocol)}")
    if protocol is not None and protocol not in PROTOCOLS:
        from dragoman.providers.catalog import nearest

        raise UsageError(
            f"protocol: expected one of {', '.join(PROTOCOLS)}, got {protocol[:60]!r}{nearest(protocol, PROTOCOLS)}"
        )
    if not isinstance(status, int) or isinstance(status, bool) or not 100 <= status <= 999:
        raise UsageError(f"status: expected an HTTP status, got {kind_of(status)} that is none")
    if not isinstance(dialect, Dialect):
        raise UsageError(f"dialect: expected a Dialect, got {kind_of(dialect)}")
    if strict != "notes" and not isinstance(strict, bool):
        raise UsageError(f"strict: expected True, False or 'notes', got {kind_of(strict)}")


def _told_by(body: bytes) -> ProtocolName:
    """Detect a body's protocol. Raises UsageError if the body does not tell it."""
    from dragoman.protocols.recognize import recognize

    found = recognize(bytes(body))
    if found is None:
        raise UsageError(f"protocol: the body does not tell it; expected one of {', '.join(PROTOCOLS)}")
    return found


def _request_body(request: object) -> bytes:
    if isinstance(request, bytes):
        return request
    if not isinstance(request, Mapping):
        raise UsageError(f"request: expected bytes or a dict, got {kind_of(request)}")
    try:
        return _json.encode(request)
    except (TypeError, ValueError, RecursionError):
        raise UsageError("request: expected plain JSON values") from None


def read_request(body: bytes, protocol: Protocol) -> tuple[tuple[Tool, ...], Expectation]:
    """Return the tools that the request of a recorded response let be called, and what else it asked for.

    A body whose path names the model may lack it.

    Raises:
        UsageError: it is no request of the protocol.
    """
    path = protocol.routes[0][1].replace("{model}", "unnamed")
    try:
        fields = {"model": _json.raw("unnamed"), **read_body(body)}
        parsed = protocol.parse_request(_json.encode(fields), path=path)
    except WireError as problem:
        raise UsageError(f"the request: {problem}") from problem
    asked = parsed.request
    return protocol.tools.callable(asked), protocol.expect(fields)
