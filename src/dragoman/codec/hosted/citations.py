"""Citations of pages in the form of each protocol, and the fields that only one form has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, final

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.hosted.found_files import FoundFile, read_citation, render_retrieved
from dragoman.codec.hosted.remote_calls import RenderRemote
from dragoman.codec.json_fields import Fields, read, read_fields

#: Native fields of a text that list what it cites.
_LISTS: Final = ("annotations", "citations")
#: Types of entries that cite a page; others cite files and documents.
_TYPES: Final = frozenset({"url_citation", "web_search_result_location"})
#: A result of a search that the client made; it may be a page.
_RESULT: Final = "search_result_location"
_WEB: Final = ("https://", "http://")


@final
class Citation(msgspec.Struct, frozen=True):
    """A page that a text cites. `start`, `end`: characters, None for all or unknown; `quote`: the page's words."""

    url: str
    title: str | None = None
    start: int | None = None
    end: int | None = None
    quote: str | None = None


@final
class CitationForm(msgspec.Struct, frozen=True):
    """How a protocol cites a page: as an entry of the `annotations` of a text. None: as a page of the whole answer.

    Attributes:
        has_places: it gives the characters of the text that a page supports.
        of_message: they are counted over all texts.
        has_quotes: it gives words of the page.
        render_search: renders a search that found pages as a part of its own.
        render_blocks: renders queries and pages as parts that end the answer.
        render_remote: renders calls of MCP servers.
        render_file: renders a file as an entry of the `annotations`.
        render_files: renders a file search as a part that ends the answer.
        has_files: files are given as pages of the whole answer are.
    """

    render: Callable[[Citation], Json] | None
    has_places: bool = False
    has_quotes: bool = False
    of_message: bool = False
    render_search: Callable[[str, Sequence[Citation]], Raw] | None = None
    render_blocks: Callable[[str, Sequence[Citation]], list[Raw]] | None = None
    render_remote: RenderRemote | None = None
    render_file: Callable[[FoundFile], Json] | None = None
    render_files: Callable[[Sequence[str], Sequence[FoundFile]], Raw] | None = None
    has_files: bool = False


class Cited(NamedTuple):
    """The citations of a text's native fields, the fields' rest, and the paths of what a citation says besides."""

    pages: list[Citation]
    files: list[FoundFile]
    rest: Fields
    besides: list[str]


def take_citations(fields: Fields, form: CitationForm) -> Cited:
    """Return the pages and files that the native fields of a text cite, as far as a form has a place for them."""
    found: list[Citation] = []
    files: list[FoundFile] = []
    besides: dict[str, None] = {}
    rest = dict(fields)
    for key in _LISTS:
        entries = read(rest.get(key)) if key in rest else None
        if not isinstance(entries, list):
            continue
        others = []
        for entry in entries:
            citation = _read_entry(entry, form, f"{key}[].", besides)
            if isinstance(citation, FoundFile):
                files.append(citation)
            elif citation is not None:
                found.append(citation)
            else:
                others.append(entry)
        if len(others) < len(entries):
            del rest[key]
            if others:
                rest[key] = _json.raw(others)
    return Cited(found, files, rest, list(besides))


def _read_entry(entry: Json, form: CitationForm, where: str, besides: dict[str, None]) -> Citation | FoundFile | None:
    kind = entry.get("type") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(kind, str):
        return None
    if kind not in _TYPES:
        if form.has_files or form.render_file is not None:
            file = read_citation(entry, needs_id=form.render_file is not None)
            if file is not None:
                besides.update({f"{where}{key}": None for key in file[1]})
                return file[0]
        if kind != _RESULT or not str(entry.get("source")).startswith(_WEB):
            return None
        entry = {("url" if key == "source" else key): value for key, value in entry.items()}
    said = {key: value for key, value in entry.items() if key != "type"}
    outer: dict[str, Json] = {}
    if isinstance(said.get("url_citation"), dict):
        inner = said.pop("url_citation")
        outer, said = said, dict(inner)
    url = said.pop("url", None)
    if not isinstance(url, str) or not url:
        return None
    title = _text(said, "title")
    quote = _text(said, "cited_text") or _text(said, "content") if form.has_quotes else None
    start, end = (_count(said, "start_index"), _count(said, "end_index")) if form.has_places else (None, None)
    besides.update(
        {f"{where}{key}": None for key, value in (*said.items(), *outer.items()) if value not in (None, "", [], {})}
    )
    return Citation(url, title, start, end, quote)


def _text(said: dict[str, Json], key: str) -> str | None:
    """Remove the text of a field and return it. A value that is no text stays."""
    value = said.get(key)
    return said.pop(key) if isinstance(value, str) and value else None


def _count(said: dict[str, Json], key: str) -> int | None:
    value = said.get(key)
    return said.pop(key) if isinstance(value, int) and not isinstance(value, bool) else None


def take_grounding(metadata: Raw) -> tuple[list[Citation], Raw]:
    """Return the pages of an answer's `groundingMetadata`, without places in the text, and its rest."""
    fields = read_fields(metadata) or {}
    chunks = read(fields.get("groundingChunks"))
    found: list[Citation] = []
    others: list[Json] = []
    for chunk in chunks if isinstance(chunks, list) else ():
        page = dict(chunk["web"]) if isinstance(chunk, dict) and isinstance(chunk.get("web"), dict) else {}
        url, title = page.pop("uri", None), _text(page, "title")
        if isinstance(url, str) and url:
            found.append(Citation(url, title))
            rest = {key: value for key, value in {**chunk, "web": page}.items() if value}
        else:
            rest = chunk
        if rest:
            others.append(rest)
    if found:
        del fields["groundingChunks"]
        if others:
            fields["groundingChunks"] = _json.raw(others)
    return found, _json.raw(fields)


def take_queries(metadata: Raw) -> tuple[str, Raw]:
    """Return the queries of an answer's `groundingMetadata`, and its rest."""
    fields = read_fields(metadata) or {}
    queries = read(fields.get("webSearchQueries"))
    if not isinstance(queries, list) or not queries or not all(isinstance(query, str) for query in queries):
        return "", metadata
    del fields["webSearchQueries"]
    return ", ".join(queries), _json.raw(fields)


def render_grounding(
    citations: Iterable[Citation],
    queries: Sequence[str] = (),
    files: Sequence[FoundFile] = (),
    file_queries: Sequence[str] = (),
) -> Json:
    """Render pages and files as `groundingMetadata`, each once."""
    pages = dict.fromkeys((each.url, each.title) for each in citations)
    chunks: list[Json] = [{"web": {"uri": url} | ({"title": title} if title else {})} for url, title in pages]
    said: dict[str, Json] = {"groundingChunks": [*chunks, *render_retrieved(files)]}
    asked = {"webSearchQueries": list(queries), "retrievalQueries": list(file_queries)}
    return said | {key: value for key, value in asked.items() if value}
