"""Convert the content parts of input messages and tool outputs between the wire and our values.

Specification: https://platform.openai.com/docs/api-reference/responses/create (read 2026-11-21).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.counterparts import data_url, is_refusal, of_client, sound_form
from dragoman.codec.hosted.citations import Citation, CitationForm
from dragoman.codec.hosted.found_files import FoundFile
from dragoman.codec.unread import holds_parts, refuse_no_text
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.protocols.openai_responses.remote_items import render_remote
from dragoman.protocols.openai_responses.wire import NAME, make_native, text_of
from dragoman.types import Media, Native, Opaque, Text

_REFUSAL: Final = Raw(b'"refusal"')
_PART_PREFIXES: Final = ("input_", "output_", "computer_screenshot")
#: What an agent tells another. Only OpenAI seals it; elsewhere it is the words that the model wrote.
ENCRYPTED: Final = "encrypted_content"
_SEALED: Final = re.compile(r"[A-Za-z0-9+/=_-]{60,}")
_UNNAMED: Final = "document"  # data needs a file name here
_MIME_OF_SUFFIX: Final = {
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "json": "application/json",
}


def _render_citation(cited: Citation) -> Json:
    places = {"start_index": cited.start, "end_index": cited.end}
    return {"type": "url_citation", "url": cited.url, "title": cited.title or "", **places}


def _render_search(query: str, pages: Sequence[Citation]) -> Raw:
    seen = hashlib.sha256("\0".join([query, *(page.url for page in pages)]).encode("utf-8", "replace"))
    sources = [{"type": "url", "url": page.url} for page in pages]
    action = {"type": "search", "query": query, "queries": [query], "sources": sources}
    item = {"id": f"ws_{seen.hexdigest()[:24]}", "type": "web_search_call", "status": "completed", "action": action}
    return _json.raw(item)


def _render_file(file: FoundFile) -> Json:
    return {"type": "file_citation", "file_id": file.id, "filename": file.shown, "index": None}


def _render_files(queries: Sequence[str], files: Sequence[FoundFile]) -> Raw:
    seen = hashlib.sha256("\0".join([*queries, *(file.id + file.text for file in files)]).encode("utf-8", "replace"))
    results = [
        {"file_id": file.id, "filename": file.shown, "text": file.text}
        | ({"attributes": file.attributes} if file.attributes else {})
        for file in files
    ]
    item = {"id": f"fs_{seen.hexdigest()[:24]}", "type": "file_search_call", "status": "completed"}
    return _json.raw({**item, "queries": list(queries), "results": results})


CITED: Final = CitationForm(
    _render_citation, has_places=True, render_search=_render_search, render_remote=render_remote,
    render_file=_render_file, render_files=_render_files,
)  # fmt: skip


def parse_content(
    value: Json, deviations: list[Deviation], where: str, *, is_result: bool = False
) -> tuple[Text | Media | Opaque, ...]:
    """Return the parts of a message's or a result's content: text, a list of parts, or nothing.

    A value that a program forgot to write as text is its JSON in a result.

    Raises:
        WireError: a message has such a value.
    """
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (Text(value),)
    if is_result and not holds_parts(value):
        deviations.append(Deviation("wrong-type", where, type(value).__name__))
        return (Text(_json.to_text(value)),)
    if not isinstance(value, list):
        refuse_no_text(value, where)
        return ()
    return tuple([_parse_part(part, deviations, f"{where}[{index}]") for index, part in enumerate(value)])


def _parse_part(part: Json, deviations: list[Deviation], where: str) -> Text | Media | Opaque:
    if isinstance(part, str):
        deviations.append(Deviation("wrong-type", where, "str"))
        return Text(part)
    if not isinstance(part, dict):
        deviations.append(Deviation("unknown-part", where, type(part).__name__))
        return Opaque(NAME, _json.raw(part))
    kind = part.get("type")
    if kind in ("input_text", "output_text", "text", "summary_text") or (kind is None and "text" in part):
        text = text_of(part.get("text"))
        if not text:
            refuse_no_text(part.get("text"), f"{where}.text")
        return Text(text, native=_rest(part, ("type", "text")))
    if kind == "refusal":
        return Text(text_of(part.get("refusal")), native=Native(NAME, {"type": _REFUSAL}))
    if kind in ("input_image", "image_url"):
        return _parse_image(part, where)
    if kind == "input_file":
        return _parse_file(part, where)
    if kind == "input_audio" and isinstance(part.get("input_audio"), dict):
        audio = part["input_audio"]
        native = _rest(part, ("type", kind))
        return Media("audio", f"audio/{audio.get('format') or 'wav'}", data=text_of(audio.get("data")), native=native)
    words = part.get(ENCRYPTED)
    if kind == ENCRYPTED and isinstance(words, str) and not _SEALED.fullmatch(words):
        return Text(words, native=Native(NAME, {ENCRYPTED: Raw(b"{}")}))
    if kind != ENCRYPTED:
        deviations.append(Deviation("unknown-part", where, str(kind)[:60]))
    return Opaque(NAME, _json.raw(part))


def _rest(part: dict[str, Json], known: tuple[str, ...]) -> Native | None:
    """Return the other fields of a part; empty lists (annotations, logprobs) say nothing."""
    return make_native({name: _json.raw(inner) for name, inner in part.items() if name not in known and inner})


def _parse_image(part: dict[str, Json], where: str) -> Media:
    url = part.get("image_url")
    if isinstance(url, dict):  # Chat's form
        url = url.get("url")
    source = url or part.get("file_id")
    if not isinstance(source, str) and part.get("image_url") is not None:
        raise WireError("expected an address, base64 data or a file's id", path=f"{where}.image_url")
    native = _rest(part, ("type", "image_url", "file_id"))
    return _media("image", source if isinstance(source, str) else "", native=native)


def _parse_file(part: dict[str, Json], where: str) -> Media:
    data, name = part.get("file_data"), part.get("filename")
    known = ("type", "file_data", "file_url", "file_id")
    native = _rest(part, (*known, "filename") if name == _UNNAMED else known)
    refuse_no_text(data, f"{where}.file_data")
    if not isinstance(data, str):
        return _media("document", text_of(part.get("file_url") or part.get("file_id")), native=native)
    if data[:5].lower() != "data:":
        suffix = name.rpartition(".")[2].lower() if isinstance(name, str) else ""
        return Media("document", _MIME_OF_SUFFIX.get(suffix), data=data, native=native)
    return _media("document", data, native=native)


def _media(kind: str, url: str, *, native: Native | None) -> Media:
    return of_client(Media("image" if kind == "image" else "document", url=url, native=native), NAME)


# ---------------------------------------------------------------- rendering


def is_content_part(part: Opaque) -> bool:
    """Return whether an opaque value belongs inside a message, not beside it."""
    value = _json.decode(bytes(part.raw))
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and kind.startswith(_PART_PREFIXES) and not kind.endswith(("_call", "_call_output"))


def is_agents(native: Native | None, kind: str) -> bool:
    """Return whether a message, or a part of it, is marked as this kind of what one agent tells another."""
    return native is not None and native.protocol == NAME and kind in native.fields


def render_text(part: Text, *, output: bool, item_fields: tuple[str, ...] = ()) -> dict[str, Json]:
    """Render a text part of the model (`output`) or of the client. `item_fields` of its native belong to its item."""
    value: dict[str, Json] = {"type": "output_text" if output else "input_text", "text": part.text}
    if part.native is None and not output:
        return value
    if is_refusal(part.native):
        return {"type": "refusal", "refusal": part.text}
    if is_agents(part.native, ENCRYPTED):
        return {"type": ENCRYPTED, ENCRYPTED: part.text}
    if part.native is not None and part.native.protocol == NAME:
        value |= {name: inner for name, inner in part.native.fields.items() if name not in item_fields}
    if output:
        value.setdefault("annotations", [])
    return value


def render_media(part: Media) -> dict[str, Json] | None:
    """Render an image, document or sound; None if the protocol cannot express it."""
    url = data_url(part)
    rest = part.native.fields if part.native is not None and part.native.protocol == NAME else {}
    if part.kind == "image" and url is not None:
        return {"type": "input_image", ("image_url" if _is_address(url) else "file_id"): url, **rest}
    if part.kind == "document" and url is not None:
        if part.data is not None:
            return {"type": "input_file", "filename": _UNNAMED, "file_data": url, **rest}
        return {"type": "input_file", ("file_url" if _is_address(url) else "file_id"): url, **rest}
    if part.kind == "audio" and part.data is not None:
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": sound_form(part)}, **rest}
    return None


def _is_address(url: str) -> bool:
    """Return whether it has a scheme, of whatever kind: an id has none."""
    return ":" in url
