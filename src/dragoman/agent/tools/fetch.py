"""`fetch`: get a page of the public web. The address that was checked is the one that is dialled.

A host's name is resolved once, every answer must be a public address, the connection goes to one of these, and the
certificate is that of the name. No redirect is followed (the model is told where it leads, and has to ask again), no
proxy is used, no cookie and no key is sent.
"""

from __future__ import annotations

import asyncio
import html
import http.client
import re
import socket
import ssl
import time
from collections.abc import Callable
from typing import Final, TypeAlias
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from dragoman.agent.approval import address_words
from dragoman.agent.safe_text import hidden_character, plain_text
from dragoman.agent.tool_plan import Outcome, Plan, ToolFailed, identity_of
from dragoman.agent.tools.toolbox import Planner, planner_of
from dragoman.http.public_addresses import is_public

#: (host, port) → addresses.
Resolve: TypeAlias = Callable[[str, int], list[str]]
#: (address, port, seconds) → a connection.
Connect: TypeAlias = Callable[[str, int, float], socket.socket]

_SECONDS: Final = 20.0
_BYTES: Final = 1024 * 1024
_CHARACTERS: Final = 30_000
_URL_LIMIT: Final = 2_000
_ASCII: Final = bytes(range(128))  # what an address may have as it is
#: A component of a path that is no name, or is none for who cuts it at a sign: `..;a`, `..?`, `..` before a zero byte.
_DOTS: Final = re.compile(r"(?:^|[/\\])\.\.?(?![\w.~-])")
_PORTS: Final = {"http": 80, "https": 443}
_HIDDEN: Final = frozenset({"script", "style", "noscript", "template", "svg"})
_BLOCKS: Final = frozenset(
    {"p", "div", "br", "li", "tr", "pre", "section", "article", "table", "ul", "ol"} | {f"h{n}" for n in range(1, 7)}
)
_TAG: Final = re.compile(r"<[a-z/!?]")
_NAME: Final = re.compile(r"/?([a-z][a-z0-9]{0,15})(?![a-z0-9])")
#: A reference to a character by a number that no character has; `html` would read its digits as one integer.
_HUGE: Final = re.compile(r"&#(?:[0-9]{10,}+|[xX][0-9a-fA-F]{9,}+);?")
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def fetch_tool(*, resolve: Resolve | None = None, connect: Connect | None = None) -> Planner:
    """Return the tool. `resolve` and `connect` replace the network in tests."""

    def fetch(url: str) -> Plan:
        """Get a page of the public web by GET: its text.

        Args:
            url: https://… or http://…
        """
        checked = check_url(url)

        async def do() -> Outcome:
            return await asyncio.to_thread(_get, checked, resolve or _resolved, connect or _connected)

        return Plan(
            tool="fetch",
            kind="network",
            subject=address_words(checked),
            shown=f"GET {checked}",
            identity=identity_of("fetch", {"url": checked}),
            do=do,
            is_idempotent=True,
        )

    return planner_of(fetch)


def check_url(url: str) -> str:
    """Return the address as it will be asked.

    Raises:
        ToolFailed: not a plain http(s) address on its usual port.
    """
    if len(url) > _URL_LIMIT:
        raise ToolFailed(f"expected an address of at most {_URL_LIMIT:,} characters")
    if hidden_character(url) is not None or any(character.isspace() for character in url) or "\\" in url:
        raise ToolFailed("expected an address of visible characters without spaces")
    try:
        found = urlsplit(url)
        port = found.port
        host = (found.hostname or "").encode("idna").decode("ascii")
    except (ValueError, UnicodeError):
        raise ToolFailed("expected an address, got something else") from None
    if found.scheme not in _PORTS:
        raise ToolFailed(f"expected http:// or https://, got {found.scheme[:20] or 'nothing'}://")
    if not host or found.username is not None or found.password is not None:
        raise ToolFailed("expected an address with a host and without a user")
    if port not in (None, _PORTS[found.scheme]):
        raise ToolFailed(f"expected the usual port {_PORTS[found.scheme]}, got {port}")
    decoded = unquote(unquote(found.path))  # as what stands before a server may read it, and once more
    if _DOTS.search(decoded):
        raise ToolFailed("expected a path without . and .. in it: a rule for its folder would allow others")
    name = f"[{host}]" if ":" in host else host
    path, query = (quote(part, safe=_ASCII) for part in (found.path, found.query))
    return urlunsplit(SplitResult(found.scheme, name, path or "/", query, ""))


def _resolved(host: str, port: int) -> list[str]:
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def _connected(address: str, port: int, seconds: float) -> socket.socket:
    return socket.create_connection((address, port), timeout=seconds)


def _get(url: str, resolve: Resolve, connect: Connect) -> Outcome:
    parts = urlsplit(url)
    host, port, deadline = parts.hostname or "", _PORTS[parts.scheme], time.monotonic() + _SECONDS
    try:
        addresses = resolve(host, port)
        if not addresses or not all(map(is_public, addresses)):
            raise ToolFailed(f"{host} is not an address of the public Internet; it is not asked")
        plain = connect(addresses[0], port, _SECONDS)
        secured = plain
        if parts.scheme == "https":
            secured = ssl.create_default_context().wrap_socket(plain, server_hostname=host)
        connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
        connection.sock = secured
        try:
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            headers = {"Accept-Encoding": "identity", "User-Agent": "dragoman-chat", "Connection": "close"}
            connection.request("GET", target, headers=headers)
            return _answer(connection.getresponse(), url, deadline)
        finally:
            connection.close()
            secured.close()
    except (OSError, http.client.HTTPException) as problem:
        reason = getattr(problem, "strerror", None) or type(problem).__name__
        raise ToolFailed(f"{host} did not answer: {plain_text(str(reason))}") from None


def _answer(response: http.client.HTTPResponse, url: str, deadline: float) -> Outcome:
    if 300 <= response.status < 400:
        place = plain_text(response.headers.get("location", "nowhere"))[:_URL_LIMIT]
        return Outcome(
            f"(status {response.status}: {url} says to ask {place})",
            is_error=True,
            is_foreign=True,
            is_from_outside=True,
        )
    pieces, size = [], 0
    while size < _BYTES and time.monotonic() < deadline and (piece := response.read1(65536)):
        pieces.append(piece)
        size += len(piece)
    kind = response.headers.get_content_type()
    text = b"".join(pieces).decode(response.headers.get_content_charset("utf-8"), "replace")
    if kind in ("text/html", "application/xhtml+xml"):
        text = text_of_page(text)
    elif not kind.startswith("text/") and "json" not in kind and "xml" not in kind:
        raise ToolFailed(f"{url} is {kind}, not text")
    text = plain_text(text)
    if len(text) > _CHARACTERS:
        text = f"{text[:_CHARACTERS]}\n(the first {_CHARACTERS:,} of {len(text):,} characters)"
    shown = f"status {response.status}, {size:,} bytes"
    return Outcome(
        f"{text}\n({shown})", is_error=response.status >= 400, shown=shown, is_foreign=True, is_from_outside=True
    )


def text_of_page(page: str) -> str:
    """Return the words of an HTML page, one line per block. An open comment or tag hides the rest, as in a browser."""
    lower = page.translate(_LOWER)  # of the same length, which `lower()` is not
    words: list[str] = []
    place = 0
    while (found := _TAG.search(lower, place)) is not None:
        words.append(page[place : found.start()])
        place, between = _after_tag(lower, found.start())
        words.append(between)
    words.append(page[place:])
    text = html.unescape(_HUGE.sub("\N{REPLACEMENT CHARACTER}", "".join(words)))
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def _after_tag(lower: str, opened: int) -> tuple[int, str]:
    """Return where the page continues after the tag at that place, and what replaces the part left out."""
    end = len(lower)
    if lower.startswith("<!--", opened):
        found = lower.find("-->", opened + 4)
        return (found + 3 if found >= 0 else end), ""
    named = _NAME.match(lower, opened + 1)
    name = named[1] if named is not None else ""
    if name in _HIDDEN and lower[opened + 1] != "/":
        found = lower.find(f"</{name}", opened)
        if found < 0:
            return end, ""
        opened = found
    found = lower.find(">", opened)
    return (found + 1 if found >= 0 else end), "\n" if name in _BLOCKS else " " if name in _HIDDEN else ""
