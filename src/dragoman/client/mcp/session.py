"""A session with an MCP server: connect, list tools, read results. Needs the extra `mcp`."""

from __future__ import annotations

import binascii
import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, final

from dragoman import _json
from dragoman.client.mcp.http import bounded_client
from dragoman.client.mcp.messages import Sifted
from dragoman.client.mcp.stdio import MOST_MESSAGE, started
from dragoman.config import McpServer
from dragoman.config.references import read_secret
from dragoman.deviations import clip
from dragoman.errors import MissingExtra
from dragoman.types import Media, Text, media_kind

if TYPE_CHECKING:
    from mcp import ClientSession

#: Seconds until a server must be open, and until a call of a tool must have ended.
OPEN_SECONDS: Final = 30.0
CALL_SECONDS: Final = 300.0
#: Of one server, so many tools are taken.
MOST_TOOLS: Final = 128
_MOST_PAGES: Final = 256


def require_package() -> None:
    """Raise MissingExtra if the package is not installed."""
    try:
        import mcp  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra('MCP servers need the extra "mcp": pip install "dragoman[mcp]"') from None


def read_secrets(server: McpServer, where: str, folder: Path) -> dict[str, str]:
    """Return the values of a server's variables and headers. `folder`: where named files stand.

    Raises:
        ConfigError: one is no reference, or there is nothing at its end.
    """
    return {
        key: read_secret(named, f"{where}.{key}", environ=os.environ, home=Path.home(), folder=folder).reveal()
        for key, named in {**server.environ, **server.headers}.items()
    }


@final
class McpSession:
    """An initialised session. `broken`: why this side ended the connection; "" if it did not."""

    __slots__ = ("_client", "broken")

    def __init__(self) -> None:
        self._client: ClientSession | None = None
        self.broken = ""

    async def open(
        self,
        stack: contextlib.AsyncExitStack,
        server: McpServer,
        secrets: Mapping[str, str],
        *,
        path: str,
        errors: TextIO,
        folder: Path | None = None,
    ) -> None:
        """Connect and initialise.

        Args:
            secrets: the variables of a command beside `path`, or the headers of a URL.
            errors: the standard error of a command.
            folder: where it runs; None: where this process does.

        Raises:
            Exception: what the package and its transports raise, of many kinds; `words_of` describes it.
        """
        from mcp import ClientSession

        if server.url is not None:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            timeout = httpx2.Timeout(OPEN_SECONDS, read=CALL_SECONDS)
            client = await stack.enter_async_context(bounded_client(secrets, timeout, self.note_broken))
            connected = streamable_http_client(server.url, http_client=client, max_sse_event_size=MOST_MESSAGE)
            streams: Any = await stack.enter_async_context(connected)
        else:
            streams = await stack.enter_async_context(_started(server, {"PATH": path, **secrets}, folder, errors, self))
        self._client = await stack.enter_async_context(ClientSession(Sifted(streams[0], self.note_broken), streams[1]))
        await self._client.initialize()

    def note_broken(self, words: str) -> None:
        """Record why this side ended the connection."""
        self.broken = words

    def words_of(self, problem: BaseException) -> str:
        """Describe an exception of this session with its kind, or why the connection was ended."""
        return self.broken or _first_words(problem)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool. Return the package's result. Raises as `open`."""
        assert self._client is not None
        return await self._client.call_tool(tool, dict(arguments))

    async def list_tools(self, server: McpServer) -> tuple[list[Any], list[str]]:
        """Return the wanted tools of all pages, at most `MOST_TOOLS`, and a line for each missing one."""
        from mcp.types import PaginatedRequestParams

        assert self._client is not None
        taken: list[Any] = []
        names: set[str] = set()
        cursor: str | None = None
        asked: dict[str | None, None] = {}
        while cursor not in asked and len(asked) < _MOST_PAGES and len(taken) <= MOST_TOOLS:
            asked[cursor] = None
            params = None if cursor is None else PaginatedRequestParams(cursor=cursor)
            page = await self._client.list_tools(params=params)
            for tool in page.tools:
                names.add(str(tool.name))
                if server.only is None or tool.name in server.only:
                    taken.append(tool)
            cursor = page.next_cursor or None
            if cursor is None:
                break
        problems: list[str] = []
        if len(taken) > MOST_TOOLS:
            problems.append(f"only the first {MOST_TOOLS} tools are taken; name those you want in only")
        elif cursor is None:
            wanted = server.only or ()
            problems += [f"it has no tool {_json.to_text(name)}" for name in wanted if name not in names]
        elif cursor in asked:
            problems.append(f"its list of tools goes in a circle: after {len(asked)} pages it named one of them again")
        else:
            problems.append(f"its list of tools did not end after {len(asked)} pages, which had {len(names)} tools")
        return taken[:MOST_TOOLS], problems


def _started(
    server: McpServer, environ: Mapping[str, str], folder: Path | None, errors: TextIO, session: McpSession
) -> contextlib.AbstractAsyncContextManager[Any]:
    """Open a command's streams. The package knows how Windows finds commands."""
    from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client

    if sys.platform == "win32":
        command, *arguments = server.command
        parameters = StdioServerParameters(command=command, args=arguments, env=dict(environ), cwd=folder)
        return stdio_client(parameters, errors)
    return started(server.command, {**get_default_environment(), **environ}, folder, errors, session.note_broken)


def read_result(result: Any) -> tuple[Text | Media, ...]:
    """Return the result of a tool. A text replaces each part that cannot be sent to a model."""
    parts = tuple([_read_block(block) for block in getattr(result, "content", None) or ()])
    if not parts and getattr(result, "structured_content", None) is not None:
        return (Text(_json.to_text(result.structured_content)),)
    return parts


def _read_block(block: Any) -> Text | Media:
    kind = getattr(block, "type", "")
    inner = getattr(block, "resource", None)
    if kind == "text":
        return Text(block.text)
    if kind in ("image", "audio"):
        return _media(block.mime_type, block.data)
    if inner is not None and isinstance(getattr(inner, "text", None), str):
        return Text(inner.text)
    if inner is not None and isinstance(getattr(inner, "blob", None), str):
        return _media(inner.mime_type, inner.blob)
    if kind == "resource_link":
        return Text(f"(see {block.uri})")
    return Text(left_out(getattr(block, "mime_type", None) or kind))


def _media(mime: str | None, data: str) -> Text | Media:
    """Return an image, a sound or a document. Invalid base64 becomes a text, because no provider accepts it."""
    whole = "".join(data.split())
    try:
        is_data = len(whole) % 4 == 0 and bool(binascii.a2b_base64(whole, strict_mode=True))
    except (binascii.Error, ValueError):
        is_data = False
    return Media(media_kind(mime), mime, whole) if is_data else Text(left_out(mime, "its data is not base64"))


def left_out(kind: str | None, why: str = "") -> str:
    """Return the text that replaces a part that cannot be passed on. `kind`: its media type."""
    return f"({clip(kind or 'something')} left out{f': {why}' if why else ''})"


def _first_words(problem: BaseException) -> str:
    """Describe an exception with its kind; of a group, its first."""
    while isinstance(problem, BaseExceptionGroup) and problem.exceptions:
        problem = problem.exceptions[0]
    if isinstance(problem, OSError) and problem.strerror and problem.filename:
        return f"{problem.filename}: {problem.strerror}"
    said = str(problem)
    return f"{type(problem).__name__}: {said}" if said else type(problem).__name__
