"""File searches of a provider as answers report them: queries, results, citations.

Shapes: Responses' `file_search_call` and `file_citation` (https://platform.openai.com/docs/guides/tools-file-search),
Gemini's `retrievedContext` (https://ai.google.dev/gemini-api/docs/file-search), and Messages' citations of documents
and search results that the client sent (https://platform.claude.com/docs/en/build-with-claude/citations), all read
2026-11-25.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, final

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.json_fields import as_object, read, read_fields, read_text

_CALL: Final = "file_search_call"
#: Messages' citations of what the client sent → their fields that say which file, under its name, its id.
_CITED: Final = {
    "search_result_location": ("title", "source"), "char_location": ("document_title", "file_id"),
    "page_location": ("document_title", "file_id"), "content_block_location": ("document_title", "file_id"),
}  # fmt: skip


@final
class FoundFile(msgspec.Struct, frozen=True):
    """A file, or a piece of one.

    Attributes:
        id: the provider's; `name`: for people.
        text: of the piece.
        attributes: texts and numbers.
        page: its number.
    """

    id: str
    name: str
    text: str = ""
    attributes: dict[str, Json] = {}
    page: int | None = None

    @property
    def shown(self) -> str:
        """A name, which is never empty."""
        return self.name or self.id


class Found(NamedTuple):
    """The search that a part reports. `besides`: paths in it of what else it says."""

    queries: list[str]
    files: list[FoundFile]
    besides: list[str]


def read_call(part: Raw) -> Found | None:
    """Return a file search of Responses, or None if the item is no search, or has not ended."""
    fields = read_fields(part) or {}
    if read_text(fields.get("type")) != _CALL or read_text(fields.get("status")) != "completed":
        return None
    queries, results = read(fields.get("queries")), read(fields.get("results"))
    known = ("type", "id", "status", "queries", "results")
    besides = {name: None for name, value in fields.items() if name not in known and bytes(value) != b"null"}
    files: list[FoundFile] = []
    for entry in results if isinstance(results, list) else ():
        said = dict(entry) if isinstance(entry, dict) else {"": entry}
        id, name, text = (_taken(said, key) for key in ("file_id", "filename", "text"))
        attributes = said.pop("attributes", None)
        kept = {key: value for key, value in as_object(attributes).items() if _is_plain(value)}
        if len(kept) < len(as_object(attributes)):
            besides["results[].attributes"] = None
        besides |= {f"results[].{key}": None for key, value in said.items() if value is not None}
        files.append(FoundFile(id, name, text, kept))
    return Found(_texts(queries), files, list(besides))


def read_citation(entry: dict[str, Json], *, needs_id: bool) -> tuple[FoundFile, list[str]] | None:
    """Return a file that a text cites, and the names of the citation's other fields.

    None: it cites none, or one without an id if `needs_id`.
    """
    said = {key: value for key, value in entry.items() if value is not None}
    kind = said.pop("type", None)
    if kind == "file_citation":
        id, name = _taken(said, "file_id"), _taken(said, "filename")
        return (FoundFile(id, name), list(said)) if id or name else None
    if not isinstance(kind, str) or kind not in _CITED:
        return None
    of_name, of_id = _CITED[kind]
    name, id = _taken(said, of_name), _taken(said, of_id)
    if needs_id and (not id or of_id == "source"):  # what only the client knows is no file of a store
        return None
    page, end = said.get("start_page_number"), said.get("end_page_number")
    is_one = isinstance(page, int) and isinstance(end, int) and end == page + 1
    if needs_id:
        return FoundFile(id, name), list(said)
    text = _taken(said, "cited_text")
    if not is_one or not isinstance(page, int):
        return FoundFile(id, name, text), list(said)
    del said["start_page_number"], said["end_page_number"]
    return FoundFile(id, name, text, page=page), list(said)


def take_retrieved(metadata: Raw) -> tuple[Found, Raw]:
    """Return the files of an answer's `groundingMetadata`, and its rest."""
    fields = read_fields(metadata) or {}
    chunks = read(fields.get("groundingChunks"))
    files: list[FoundFile] = []
    others: list[Json] = []
    for chunk in chunks if isinstance(chunks, list) else ():
        said = dict(chunk["retrievedContext"]) if _is_retrieved(chunk) else {}
        file = _retrieved(said)
        if file is not None:
            files.append(file)
        rest = {**chunk, "retrievedContext": said} if file is not None else chunk
        if file is None or said or len(chunk) > 1:
            others.append(rest)
    if not files:
        return Found([], [], []), metadata
    del fields["groundingChunks"]
    if others:
        fields["groundingChunks"] = _json.raw(others)
    queries = _texts(read(fields.get("retrievalQueries")))
    fields.pop("retrievalQueries", None)
    return Found(queries, files, []), _json.raw(fields)


def _is_retrieved(chunk: Json) -> bool:
    return isinstance(chunk, dict) and isinstance(chunk.get("retrievedContext"), dict)


def _retrieved(said: dict[str, Json]) -> FoundFile | None:
    """Remove a file from a chunk and return it. Without a name of its own it is known by its title."""
    title = said.get("title")
    id = next((said[key] for key in ("documentName", "uri") if isinstance(said.get(key), str) and said[key]), title)
    if not isinstance(id, str) or not id:
        return None
    for key in ("documentName", "uri"):
        if said.get(key) == id:
            del said[key]
    text, name = _taken(said, "text"), _taken(said, "title")
    attributes: dict[str, Json] = {}
    others: list[Json] = []
    entries = said.pop("customMetadata", None)
    for entry in entries if isinstance(entries, list) else ():
        given = as_object(entry)
        value = given.get("stringValue", given.get("numericValue"))
        if isinstance(given.get("key"), str) and len(given) == 2 and _is_plain(value):
            attributes[given["key"]] = value
        else:
            others.append(entry)
    if others:
        said["customMetadata"] = others
    return FoundFile(id, name, text, attributes)


def render_retrieved(found: Iterable[FoundFile]) -> list[Json]:
    """Render files as `groundingChunks`. A cited file is merged with the found one."""
    files = list(dict.fromkeys(_key(file) for file in found))
    told = {(id, name) for id, name, text, *_ in files if text}
    ids = {id for id, _, text, *_ in files if text and id}
    chunks: list[Json] = []
    for id, name, text, attributes, page in files:
        if not text and ((id, name) in told or id in ids):
            continue
        said: dict[str, Json] = {"title": name} if name else {}
        said |= ({"uri": id} if id and id != name else {}) | ({"text": text} if text else {})
        metadata = [
            {"key": key, "stringValue" if isinstance(value, str) else "numericValue": value}
            for key, value in attributes
        ]
        said |= ({"customMetadata": metadata} if metadata else {}) | ({"pageNumber": page} if page is not None else {})
        chunks.append({"retrievedContext": said})
    return chunks


def _key(file: FoundFile) -> tuple[str, str, str, tuple[tuple[str, Json], ...], int | None]:
    return file.id, file.name, file.text, tuple(file.attributes.items()), file.page


def each_once(files: Sequence[FoundFile]) -> list[FoundFile]:
    """Return files without those whose id came before."""
    return list({file.id: file for file in reversed(files)}.values())[::-1]


def _taken(said: dict[str, Json], key: str) -> str:
    """Remove the text of a field and return it. A value that is no text stays."""
    return said.pop(key) if isinstance(said.get(key), str) else ""


def _texts(value: Json) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _is_plain(value: Json) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
