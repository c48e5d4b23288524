"""Read answers of an MCP server that is reached by URL, within bounds that the package's own reader lacks.

Protocol: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http (read 2026-11-26).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, final

from dragoman import _json
from dragoman.client.mcp import stdio
from dragoman.gathered import Gathered

if TYPE_CHECKING:
    from types import TracebackType

    import httpx2

_MIB: Final = 1024 * 1024
#: JSON-RPC's number for what went wrong inside; and a status whose body the package reads as such an error.
_INTERNAL: Final = -32603
_BAD_GATEWAY: Final = 502


def bounded_client(headers: Mapping[str, str], timeout: httpx2.Timeout, broken: Callable[[str], None]) -> Any:
    """Return an HTTP client for one server.

    A message of more than `MOST_MESSAGE` bytes, or one that is compressed without request, ends the connection:
    `broken` is called, and every later request gets an error.
    """
    import httpx2

    transport: Any = _Bounded(httpx2.AsyncHTTPTransport(trust_env=False), broken)
    sent = {"accept-encoding": "identity", **headers}
    return httpx2.AsyncClient(
        headers=sent, trust_env=False, follow_redirects=False, timeout=timeout, transport=transport
    )


@final
class _Bounded:
    """A transport whose bodies are read whole and bounded, except streams of events, whose reader bounds each event."""

    __slots__ = ("_broken", "_inner", "_words")

    def __init__(self, inner: httpx2.AsyncHTTPTransport, broken: Callable[[str], None]) -> None:
        self._inner = inner
        self._broken = broken
        self._words = ""  # why nothing is asked any more

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Return a whole answer, or a stream of events."""
        import httpx2

        if self._words:
            return self._refused(self._words)
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            await response.aclose()
            return self._refused("the server compressed an answer, which was not asked for")
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            return response
        body = Gathered()
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        try:
            async for piece in response.stream:
                body.add(piece)
                if body.size > stdio.MOST_MESSAGE:
                    return self._refused(f"the server sent a message of more than {stdio.MOST_MESSAGE // _MIB} MiB")
        finally:
            await response.aclose()
        return httpx2.Response(response.status_code, headers=response.headers, content=body.take())

    def _refused(self, words: str) -> httpx2.Response:
        import httpx2

        self._words = words
        self._broken(words)
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": _INTERNAL, "message": words}}
        kind = {"content-type": "application/json"}
        return httpx2.Response(_BAD_GATEWAY, headers=kind, content=_json.to_text(error).encode())

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()

    async def __aenter__(self) -> _Bounded:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._inner.__aexit__(kind, problem, trace)
