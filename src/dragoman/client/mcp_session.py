"""A session with an MCP server: started or reached, asked for its tools, its results read. Needs the extra `mcp`."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from dragoman import _json
from dragoman.config import McpServer
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
    """Raise MissingExtra when the package is not installed."""
    try:
        import mcp  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtra('MCP servers need the extra "mcp": pip install "dragoman[mcp]"') from None


async def open_session(
    stack: contextlib.AsyncExitStack,
    server: McpServer,
    secrets: Mapping[str, str],
    *,
    path: str,
    errors: TextIO,
    folder: Path | None = None,
) -> ClientSession:
    """Connect and greet. `secrets`: what a command finds in its environment beside `path`, or headers of a URL.

    `errors`: where a command writes what it has to say. `folder`: where it runs; None: where this process does.
    """
    from mcp import ClientSession

    if server.url is not None:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        timeout = httpx2.Timeout(OPEN_SECONDS, read=CALL_SECONDS)
        client = httpx2.AsyncClient(headers=secrets, trust_env=False, follow_redirects=False, timeout=timeout)
        await stack.enter_async_context(client)
        streams = await stack.enter_async_context(streamable_http_client(server.url, http_client=client))
    else:
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        command, *arguments = server.command
        parameters = StdioServerParameters(command=command, args=arguments, env={"PATH": path, **secrets}, cwd=folder)
        streams = await stack.enter_async_context(stdio_client(parameters, errors))
    session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
    await session.initialize()
    return session


async def list_tools(session: ClientSession, server: McpServer) -> tuple[list[Any], list[str]]:
    """The tools of all pages that the user wants, at most `MOST_TOOLS`, and a line for each lack."""
    from mcp.types import PaginatedRequestParams

    taken: list[Any] = []
    names: set[str] = set()
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await session.list_tools(params=None if cursor is None else PaginatedRequestParams(cursor=cursor))
        for tool in page.tools:
            names.add(str(tool.name))
            if server.only is None or tool.name in server.only:
                taken.append(tool)
        cursor = page.next_cursor
        if not cursor or len(taken) > MOST_TOOLS:
            break
    problems = [
        f"it has no tool {_json.to_text(name)}" for name in server.only or () if not cursor and name not in names
    ]
    if cursor or len(taken) > MOST_TOOLS:
        problems.append(f"only the first {min(len(taken), MOST_TOOLS)} tools are taken; name those you want in only")
    return taken[:MOST_TOOLS], problems


def read_result(result: Any) -> tuple[Text | Media, ...]:
    """What a tool gave back. A part that no model can be sent is told by a text in its place."""
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
        return Media(media_kind(block.mime_type), block.mime_type, block.data)
    if inner is not None and isinstance(getattr(inner, "text", None), str):
        return Text(inner.text)
    if inner is not None and isinstance(getattr(inner, "blob", None), str):
        return Media(media_kind(inner.mime_type), inner.mime_type, inner.blob)
    if kind == "resource_link":
        return Text(f"(see {block.uri})")
    return Text(left_out(getattr(block, "mime_type", None) or kind))


def left_out(kind: str | None) -> str:
    """What is said in the place of a part that cannot be given on. `kind`: its media type."""
    return f"({kind or 'something'} left out)"


def first_words(problem: BaseException) -> str:
    """What an exception says, with its kind; of a group, its first."""
    while isinstance(problem, BaseExceptionGroup) and problem.exceptions:
        problem = problem.exceptions[0]
    said = str(problem)
    return f"{type(problem).__name__}: {said}" if said else type(problem).__name__
