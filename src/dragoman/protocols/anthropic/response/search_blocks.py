"""Pages that another provider found or cited, as Messages' blocks of a web search.

Its clients look for links there. The blocks have no signature, so they are never sent to a provider: they are
recognised by their id.

Spec: https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool (read 2026-11-22).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.hosted.citations import Citation, CitationForm
from dragoman.protocol import ReplyStyle
from dragoman.protocols.anthropic.remote_blocks import render_remote
from dragoman.protocols.anthropic.wire import MADE_SEARCH

_DIGITS: Final = 16


def _render_blocks(query: str, pages: Sequence[Citation]) -> list[Raw]:
    """Render a search and its result, connected by an id that depends on them alone."""
    seen = hashlib.sha256("\0".join([query, *(page.url for page in pages)]).encode("utf-8", "replace"))
    id = MADE_SEARCH + seen.hexdigest()[:_DIGITS]
    found: list[Json] = [
        {
            "type": "web_search_result",
            "url": page.url,
            "title": page.title or page.url,
            "encrypted_content": "",
            "page_age": None,
        }
        for page in pages
    ]
    asked = {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": query}}
    return [_json.raw(asked), _json.raw({"type": "web_search_tool_result", "tool_use_id": id, "content": found})]


_CITED: Final = CitationForm(None, render_blocks=_render_blocks)
_CITED_WITH_SERVERS: Final = CitationForm(None, render_blocks=_render_blocks, render_remote=render_remote)


def cited(style: ReplyStyle) -> CitationForm:
    """Return how this protocol reports searches and, to a client that knows them, calls of MCP servers."""
    return _CITED_WITH_SERVERS if style.knows_servers else _CITED
