"""`dragoman.decode`: a whole response body → a `Reply`, without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dragoman.contract import PLAIN, Dialect
from dragoman.errors import UsageError
from dragoman.events import Reply, fold
from dragoman.identifiers import new_id
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.stages import Policy, stages_for
from dragoman.types import ProtocolName, Tool


def decode(
    body: bytes,
    protocol: ProtocolName,
    *,
    tools: Iterable[Tool | Callable[..., Any] | Mapping[str, Any]] = (),
    status: int = 200,
    dialect: Dialect = PLAIN,
    strict: bool = False,
) -> Reply:
    """Decode the body of a response, streamed or whole (told from its bytes).

    Args:
        body: the raw bytes.
        protocol: one of the five names.
        tools: those that the request had offered.
        status: the HTTP status; from 400 on the body is read as an error.
        strict: the first deviation is a `Failure`.

    Raises:
        UsageError: no such protocol, or a tool cannot be read. What the body holds never raises: see `Reply.error`.
    """
    if protocol not in PROTOCOLS:
        raise UsageError(f"expected one of the protocols {', '.join(PROTOCOLS)}, got {protocol!r}")
    chosen = PROTOCOLS[protocol]
    if status >= 400:
        return fold([chosen.parse_error(status, body)])
    from dragoman.inputs import read_tools

    offered, _ = read_tools(tools)
    names = frozenset(tool.name for tool in offered)
    stages = stages_for(offered, Policy(strict=strict), new_id=new_id, dialect=dialect)
    reader = Reader(chosen.decoder(new_id=new_id, offered_names=names, dialect=dialect), stages)
    return fold([*reader.feed(body), *reader.close()])
