"""The unmodelled parts of an answer: gathered while it is decoded, and written again in the same protocol.

The fields stand in native records under their path in a whole response: `{"choices": [{"logprobs": …, "message": {…}}],
"usage": {…}}`, those of the response itself by name.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Final, NamedTuple

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.bounds import USUAL_BOUNDS, AnswerBounds, exceeded
from dragoman.codec.framing.event_stream import TooLarge
from dragoman.codec.hosted.citations import Citation, CitationForm
from dragoman.codec.json_fields import Fields
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.call_shapes import has_run
from dragoman.codec.parts.unread_arguments import note_words, other_name, tell_unread, unread_arguments, unread_name
from dragoman.protocols.openai_chat.wire import (
    CALL_FIELDS,
    CHOICE_FIELDS,
    DELTA_FIELDS,
    FUNCTION_FIELDS,
    NAME,
    NOTHING,
    Chunk,
    decode_fields,
    rest_of_response,
)
from dragoman.types import Native


def _render_citation(cited: Citation) -> Json:
    page: Json = {"url": cited.url, "title": cited.title or "", "start_index": cited.start, "end_index": cited.end}
    return {"type": "url_citation", "url_citation": page | ({"content": cited.quote} if cited.quote else {})}


def placed(annotations: Raw, start: int, end: int) -> Json:
    """Return annotations of a text; pages without a place stand behind all of it, because clients need one."""
    entries = _json.decode(bytes(annotations))
    for entry in entries if isinstance(entries, list) else ():
        page = entry.get("url_citation") if isinstance(entry, dict) else None
        if isinstance(page, dict) and page.get("start_index", 0) is None:
            page |= {"start_index": start, "end_index": end}
    return None if isinstance(entries, Malformed) else entries


CITED: Final = CitationForm(_render_citation, has_places=True, has_quotes=True, of_message=True)
#: Fields of a chunk in which no call stands.
_USUAL: Final = frozenset({
    "id", "object", "created", "model", "choices", "usage", "service_tier", "system_fingerprint", "obfuscation",
})  # fmt: skip
_DEEPEST: Final = 32  # objects in each other whose fields are joined


class Kept:
    """Gathers the fields of one answer. Of fields in pieces lists grow, objects are joined, others replaced.

    Lists stay JSON, so that they take no more than came; the members of all objects have one bound.

    Attributes:
        filters: the result of Azure's filter for the latest text.
    """

    __slots__ = ("_choice", "_head", "_members", "_message", "_most", "_response", "_usage", "filters")

    def __init__(self, bounds: AnswerBounds = USUAL_BOUNDS) -> None:
        self.filters = NOTHING
        self._most = bounds.members
        self._members = 0  # of all objects
        self._head: Fields = {}
        self._choice: dict[str, Json] = {}
        self._message: dict[str, Json] = {}
        self._usage: dict[str, Json] = {}
        self._response: Fields = {}

    def choice(self, fields: dict[str, Json]) -> None:
        """Take fields of a choice."""
        self._join(self._choice, fields)
        self._check(self._members)

    def message(self, fields: dict[str, Json]) -> None:
        """Take fields of a message or a delta."""
        self._join(self._message, fields)
        self._check(self._members)

    def annotate(self, notes: list[Json]) -> Sized:
        """Take annotations of a message without a text. Return those so far."""
        self.message({"annotations": notes})
        told: Sized = self._message["annotations"]
        return told

    def usage(self, rest: dict[str, Json]) -> None:
        """Take the fields that `Usage` does not have; the last report counts."""
        self._usage = rest

    def unknown(self, chunk: Chunk, taken: list[Unknown], ours: int | None) -> None:
        """Take what was removed from the choice that is read, and from its calls.

        Args:
            ours: its index; None: the first one's.
        """
        _attach_to_calls(chunk, taken)
        for choice, unknown in zip(chunk.choices or (), taken, strict=False):
            if ours is None or choice.index in (ours, None):
                self.choice(unknown.choice)
                self.message(unknown.message)
                break

    def begin(self, fields: Fields) -> Native | None:
        """Return the response's fields at its start, as a native record."""
        self._head = fields
        return Native(NAME, fields) if fields else None

    def late(self, data: bytes) -> None:
        """Take the response's fields that only its end has, or that differ there."""
        fields = decode_fields(data)
        if not isinstance(fields, Malformed) and (late := rest_of_response(fields)):
            self.tell_late(late)
            self._check(len(self._response))

    def tell_late(self, late: Fields) -> None:
        """Take fields of the response's end; those that its start did not have, or otherwise, are kept."""
        self._response |= {key: value for key, value in late.items() if self._head.get(key) != value}

    def native(self) -> Native | None:
        """Return everything that the start did not have, or None."""
        if not (self.filters or self._response or self._choice or self._message or self._usage):
            return None
        filters = _json.decode(self.filters) if self.filters else None
        fields = dict(self._response)
        choice: dict[str, Json] = _written(self._choice)
        if isinstance(filters, dict) and filters:
            choice["content_filter_results"] = filters
        if self._message:
            choice["message"] = _written(self._message)
        if choice:
            fields["choices"] = _json.raw([choice])
        if self._usage:
            fields["usage"] = _json.raw(self._usage)
        return Native(NAME, fields) if fields else None

    def _join(self, whole: dict[str, Json], piece: dict[str, Json], depth: int = 0, *, is_new: bool = False) -> None:
        """Add a piece's fields; one that says nothing changes nothing. `is_new`: the whole object is the piece's."""
        for key, value in piece.items():
            if not is_new and (value is None or value == "" or value == [] or value == {}):
                continue
            earlier = whole.get(key)
            self._members += key not in whole
            if isinstance(value, dict) and depth < _DEEPEST:
                if is_first := not isinstance(earlier, dict):
                    whole[key] = earlier = {}
                self._join(earlier, value, depth + 1, is_new=is_first)
            elif isinstance(value, list) and value:
                if is_first := not isinstance(earlier, _List):
                    whole[key] = earlier = _List()
                self._members += earlier.extend(value, is_new=is_first)
            else:
                whole[key] = _json.raw(value) if isinstance(value, dict) else value

    def _check(self, count: int) -> None:
        if count > self._most:
            wanted = f"an answer with at most {self._most} fields beside the usual ones"
            raise TooLarge(exceeded(wanted, "members", str(count)))


class _List:
    """A list that grows, as JSON. Of the last item the fields are apart if it has an index: more of it may come."""

    __slots__ = ("_count", "_json", "_last")

    def __init__(self) -> None:
        self._json = bytearray()
        self._last: Fields = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def extend(self, items: list[Json], *, is_new: bool) -> int:
        """Add a piece's items; one with an earlier item's index replaces it. Return how many more fields are apart.

        Args:
            is_new: it is the first piece, whose items stay as they are.
        """
        before = len(self._last)
        for item in items:
            is_indexed = isinstance(item, dict) and item.get("index") is not None
            fields = {key: _json.raw(value) for key, value in item.items()} if is_indexed else {}
            if fields and not is_new and self._last and self._last["index"] == fields["index"]:
                self._last |= fields
                continue
            self._settle()
            self._count += 1
            self._last = fields
            if not fields:
                self._add(item)
        return len(self._last) - before

    def written(self) -> Raw:
        """Return all of it."""
        self._settle()
        return Raw(b"[" + self._json + b"]")

    def _settle(self) -> None:
        if self._last:
            self._add(self._last)
            self._last = {}

    def _add(self, item: Json) -> None:
        if self._json:
            self._json += b","
        self._json += _json.encode(item)


def _written(value: Json) -> Json:
    """Return gathered fields with their lists as JSON."""
    if isinstance(value, dict):
        return {key: _written(one) for key, one in value.items()}
    return value.written() if isinstance(value, _List) else value


class Unknown(NamedTuple):
    """The unknown fields of one choice, of its delta or message, and of each of their calls.

    `unread`: of each call the unread key that may have its arguments, and its name if that stands elsewhere, or "";
    `unread_of_older`: the key of a `function_call`, if there is one.
    """

    choice: dict[str, Json]
    message: dict[str, Json]
    calls: list[dict[str, Json]]
    unread: list[tuple[str, str]]
    unread_of_older: list[str]


def tell_unread_of(taken: list[Unknown], assembly: Assembly) -> None:
    """Name the unknown fields that may be calls, or another spelling of what is read."""
    for number, unknown in enumerate(taken):
        if unknown.choice:
            tell_unread(assembly, unknown.choice, f"choices[{number}]")
        if unknown.message:
            tell_unread(assembly, unknown.message, f"choices[{number}].delta")
            note_words(assembly, unknown.message, f"choices[{number}].delta")


def fields_beside(frame: bytes) -> dict[str, Json]:
    """Return a chunk's fields beside the usual ones."""
    fields = decode_fields(frame)
    return {} if isinstance(fields, Malformed) else without_usual(fields)


def without_usual(fields: Fields) -> dict[str, Json]:
    """Return those of a chunk's fields that stand beside the usual ones."""
    return {key: fields[key] for key in fields if key not in _USUAL}


def without_unknown(value: dict[str, Json]) -> tuple[dict[str, Json], list[Unknown]]:
    """Return a chunk or a response without the fields that no Struct knows, and these, choice by choice."""
    choices = value.get("choices")
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        return value, []
    taken = [Unknown({}, {}, [], [], []) for _ in choices]
    known = [_known_choice(choice, unknown) for choice, unknown in zip(choices, taken, strict=True)]
    return {**value, "choices": known}, taken


def _attach_to_calls(chunk: Chunk, taken: list[Unknown]) -> None:
    """Attach what was removed from calls to them."""
    for choice, unknown in zip(chunk.choices or (), taken, strict=False):
        deltas = [delta for delta in (choice.delta, choice.message) if delta is not None]
        calls = [call for delta in deltas for call in delta.tool_calls or ()]
        if len(calls) == len(unknown.calls):
            for call, rest, (unread, name) in zip(calls, unknown.calls, unknown.unread, strict=True):
                beside: Json = rest or None
                told: Json = unread or call.unread
                misnamed: Json = name
                call.rest, call.unread, call.unread_name = beside, told, misnamed
        older = [delta.function_call for delta in deltas if delta.function_call is not None]
        for function, unread in zip(older, unknown.unread_of_older, strict=False):
            told = unread or function.unread
            function.unread = told


def _known_choice(choice: dict[str, Json], unknown: Unknown) -> dict[str, Json]:
    known = _split(choice, CHOICE_FIELDS, unknown.choice)
    for key in ("delta", "message"):
        message = known.get(key)
        if isinstance(message, dict):
            known[key] = message = _split(message, DELTA_FIELDS, unknown.message)
            if "error" in unknown.message and known.get("error") is None:  # quirk: error-in-a-delta
                known["error"] = unknown.message.pop("error")
            calls = message.get("tool_calls")
            if isinstance(calls, list) and all(isinstance(call, dict) for call in calls):
                if ran := [call for call in calls if has_run(call)]:  # quirk: calls-that-the-provider-ran
                    unknown.message["executed_tools"] = ran  # as other servers write them
                    calls = [call for call in calls if not has_run(call)]
                taken: list[dict[str, Json]] = [{} for _ in calls]
                pairs = zip(calls, taken, strict=True)
                message["tool_calls"] = [_known_call(call, rest, unknown.unread) for call, rest in pairs]
                unknown.calls.extend(taken)
            older = message.get("function_call")
            if isinstance(older, dict):
                rest: dict[str, Json] = {}
                message["function_call"] = _split(older, FUNCTION_FIELDS, rest)
                unknown.unread_of_older.append(unread_arguments(rest))
    return known


def _known_call(call: dict[str, Json], rest: dict[str, Json], unread: list[tuple[str, str]]) -> dict[str, Json]:
    """Return the known fields of a call and of its function."""
    known = _split(call, CALL_FIELDS, rest)
    inner: dict[str, Json] = {}
    if isinstance(known.get("function"), dict):
        known["function"] = _split(known["function"], FUNCTION_FIELDS, inner)
    name = unread_name(call, call.get("function")) or other_name(call, call.get("function"))
    if name and not rest:
        rest["tool_name"] = name  # a piece with more than the usual is looked at
    unread.append((unread_arguments(inner) or unread_arguments(rest), name))
    return known


def _split(fields: dict[str, Json], names: frozenset[str], rest: dict[str, Json]) -> dict[str, Json]:
    """Return the fields of these names; the others are put into `rest`, unless they are null."""
    rest.update({key: value for key, value in fields.items() if key not in names and value is not None})
    return {key: value for key, value in fields.items() if key in names}
