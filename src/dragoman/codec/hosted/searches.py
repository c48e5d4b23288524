"""Web searches of a provider as parts of its answer report them: queries and pages.

Shapes: Messages' `server_tool_use` and `web_search_tool_result`
(https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool), Responses' `web_search_call`
(https://platform.openai.com/docs/guides/tools-web-search), both read 2026-11-22.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

import msgspec

from dragoman._json import Json, Raw
from dragoman.codec.hosted.citations import Citation
from dragoman.codec.json_fields import Fields, read, read_fields, read_text

_ASKED: Final = "server_tool_use"
_FOUND: Final = "web_search_tool_result"
_CALL: Final = "web_search_call"
_KINDS: Final = frozenset({_ASKED, _FOUND, _CALL})


@final
class Search(msgspec.Struct, frozen=True):
    """A search: the query or "", the pages, and the paths in its part of what else it says."""

    query: str = ""
    pages: tuple[Citation, ...] = ()
    besides: tuple[str, ...] = ()


@final
class Searches:
    """The searches of one answer."""

    __slots__ = ("_asked",)

    def __init__(self) -> None:
        self._asked: dict[str, str] = {}  # the query of a search that has not ended, by its id

    def take(self, part: Raw) -> Search | None:
        """Return the search that a part reports, without query and pages if its result is still to come.

        None: it is no part of a search that has a result.
        """
        fields = read_fields(part) or {}
        kind = read_text(fields.get("type"))
        if kind not in _KINDS:
            return None
        if kind == _CALL:
            return _read_call(fields)
        if kind == _FOUND:
            return self._read_found(fields)
        given = read_fields(fields.get("input")) or {}
        query = read_text(given.get("query"))
        if read_text(fields.get("name")) != "web_search" or not query:
            return None
        self._asked[read_text(fields.get("id"))] = query
        rest = [f"input.{name}" for name in given if name != "query"]
        return Search(besides=(*_others(fields, "type", "id", "name", "input"), *rest))

    def _read_found(self, fields: Fields) -> Search | None:
        content = read(fields.get("content"))
        if not isinstance(content, list):
            return None
        pages, rest = _pages(content, "content")
        query = self._asked.pop(read_text(fields.get("tool_use_id")), "")
        return Search(query, pages, (*_others(fields, "type", "tool_use_id", "content"), *rest))


def _read_call(fields: Fields) -> Search | None:
    action = read_fields(fields.get("action")) or {}
    queries = read(action.get("queries"))
    texts = [text for text in queries if isinstance(text, str)] if isinstance(queries, list) else []
    query = read_text(action.get("query")) or next(iter(texts), "")
    if read_text(action.get("type")) != "search" or not query:
        return None
    pages, rest = _pages(read(action.get("sources")), "action.sources")
    rest += [f"action.{name}" for name in action if name not in ("type", "query", "queries", "sources")]
    if any(text != query for text in texts):
        rest.append("action.queries")
    return Search(query, pages, (*_others(fields, "type", "id", "action"), *rest))


def _pages(entries: Json, where: str) -> tuple[tuple[Citation, ...], list[str]]:
    """Return the pages of a list, and the paths of what else it says."""
    found: dict[str, Citation] = {}
    rest: dict[str, None] = {}
    for entry in entries if isinstance(entries, list) else ():
        url = entry.get("url") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(url, str) or not url:
            rest[where] = None
            continue
        title = entry.get("title")
        found.setdefault(url, Citation(url, title if isinstance(title, str) and title else None))
        known = ("type", "url", "title")
        rest |= {f"{where}[].{name}": None for name, value in entry.items() if value is not None and name not in known}
    return tuple(found.values()), list(rest)


def _others(fields: Fields, *known: str) -> Iterator[str]:
    return (name for name, value in fields.items() if name not in known and bytes(value) != b"null")


def each_once(pages: list[Citation]) -> list[Citation]:
    """Return pages without repetitions. A title that any of them has is kept."""
    found: dict[str, Citation] = {}
    for page in pages:
        known = found.get(page.url)
        if known is None or known.title is None:
            found[page.url] = page
    return list(found.values())
