"""Filter messages of an MCP server for the package, which refuses a whole result for one unknown part."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, final

from dragoman._json import Json
from dragoman.deviations import clip

if TYPE_CHECKING:
    from types import TracebackType

    from pydantic import TypeAdapter

_CONTENT: Final = "content"
_INTERNAL: Final = -32603
#: Tools that are read of one page; 128 are offered.
_MOST_LISTED: Final = 4_096
#: Messages that nobody asked for: so many at once, and so many a second; each costs the loop some 0.2 ms.
_MOST_UNASKED: Final = 5_000
_UNASKED_A_SECOND: Final = 200


@final
class Sifted:
    """The messages of a stream. In results of tools a text replaces each part of an unknown kind.

    A server that goes on sending unsolicited messages (pings, notifications) is disconnected.
    """

    __slots__ = ("_broken", "_last", "_stream", "_unasked")

    def __init__(self, stream: Any, broken: Callable[[str], None]) -> None:
        """Create it. `broken`: called with the reason if this side ends the stream."""
        self._stream = stream
        self._broken = broken
        self._unasked = 0.0
        self._last = time.monotonic()

    @property
    def last_context(self) -> Any:
        """The package's context of the last message; None if its stream has no such thing."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        """Return the next message."""
        from anyio import EndOfStream

        item = await self._stream.receive()
        if self._is_too_much(item):
            raise EndOfStream
        return _sifted(item)

    async def aclose(self) -> None:
        """Stop receiving."""
        await self._stream.aclose()

    def __aiter__(self) -> Sifted:
        return self

    async def __anext__(self) -> Any:
        item = await self._stream.__anext__()
        if self._is_too_much(item):
            raise StopAsyncIteration
        return _sifted(item)

    def _is_too_much(self, item: Any) -> bool:
        """Return whether an unsolicited message is one too many."""
        message = getattr(item, "message", None)
        if hasattr(message, "result") or hasattr(message, "error"):
            return False
        now = time.monotonic()
        self._unasked = max(self._unasked - (now - self._last) * _UNASKED_A_SECOND, 0) + 1
        self._last = now
        if self._unasked > _MOST_UNASKED:
            self._broken(f"the server sent more than {_MOST_UNASKED:,} messages that nobody asked for")
        return self._unasked > _MOST_UNASKED

    async def __aenter__(self) -> Sifted:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stream.__aexit__(kind, problem, trace)


def _sifted(item: Any) -> Any:
    """Return a message unchanged, unless it is a result that the package would refuse, or a list of very many tools.

    The package would create an object for each of the tools.
    """
    result = getattr(getattr(item, "message", None), "result", None)
    tools = result.get("tools") if isinstance(result, dict) else None
    if isinstance(tools, list) and len(tools) > _MOST_LISTED:
        return _refused(item, f"it lists {len(tools):,} tools at once, more than {_MOST_LISTED:,}")
    if isinstance(result, dict) and _CONTENT in result:
        result[_CONTENT] = _known(result[_CONTENT])
    return item


def _refused(item: Any, words: str) -> Any:
    """Return an error in place of a result."""
    from mcp.shared.message import SessionMessage
    from mcp.types import ErrorData, JSONRPCError

    error = ErrorData(code=_INTERNAL, message=words)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=item.message.id, error=error))


def _known(content: Json) -> Json:
    if isinstance(content, str | dict):  # one part without its list
        content = [content]
    return [_part(entry) for entry in content] if isinstance(content, list) else content


def _part(entry: Json) -> Json:
    if isinstance(entry, str):
        return {"type": "text", "text": entry}
    kind = entry.get("type") if isinstance(entry, dict) else None
    if not isinstance(kind, str) or not kind:
        return {"type": "text", "text": "(something left out)"}
    return entry if _is_known(entry) else {"type": "text", "text": f"({clip(kind)} left out)"}


@cache
def _content_block() -> TypeAdapter[Any]:
    from mcp.types import ContentBlock
    from pydantic import TypeAdapter

    return TypeAdapter(ContentBlock)


def _is_known(entry: Json) -> bool:
    from pydantic import ValidationError

    try:
        _content_block().validate_python(entry, by_name=False)
    except ValidationError:
        return False
    return True
