"""Messages of an MCP server on their way to the package, which refuses a whole result for one part that it does not
know."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, final

from dragoman._json import Json
from dragoman.deviations import clip

if TYPE_CHECKING:
    from types import TracebackType

    from pydantic import TypeAdapter

_CONTENT: Final = "content"


@final
class Sifted:
    """The messages of a stream; in results of tools a text stands for each part that is of no known kind."""

    __slots__ = ("_stream",)

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    @property
    def last_context(self) -> Any:
        """What the package keeps beside the message that it took last; None where its stream has no such thing."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        """The next message."""
        return _sifted(await self._stream.receive())

    async def aclose(self) -> None:
        """Take no more."""
        await self._stream.aclose()

    def __aiter__(self) -> Sifted:
        return self

    async def __anext__(self) -> Any:
        return _sifted(await self._stream.__anext__())

    async def __aenter__(self) -> Sifted:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stream.__aexit__(kind, problem, trace)


def _sifted(item: Any) -> Any:
    """A message as it is, but for a result whose content the package would refuse."""
    result = getattr(getattr(item, "message", None), "result", None)
    if isinstance(result, dict) and _CONTENT in result:
        result[_CONTENT] = _known(result[_CONTENT])
    return item


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
