"""Translate the protocol-specific parts of an answer: citations and log probabilities, and name all else as lost.

Every encoder and every whole response goes through here, so that nothing is lost silently.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Final, NamedTuple, final

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.counterparts import OF_ANSWER, kind_of, kinds_of, take, takes_media
from dragoman.codec.hosted.citations import (
    Citation,
    CitationForm,
    render_grounding,
    take_citations,
    take_grounding,
    take_queries,
)
from dragoman.codec.hosted.found_files import FoundFile, take_retrieved
from dragoman.codec.hosted.found_files import each_once as each_file_once
from dragoman.codec.hosted.searches import each_once
from dragoman.codec.hosted.told_parts import ToldParts
from dragoman.codec.json_fields import Fields, read_fields, read_items
from dragoman.codec.logprobs import OddsForm, take_odds
from dragoman.codec.lost_places import lose
from dragoman.deviations import clip
from dragoman.events import (
    Deviation,
    Event,
    Failure,
    Finish,
    NativeEvent,
    PartEvent,
    Reply,
    Start,
    TextEnd,
    TextStart,
    ThinkingEnd,
    ThinkingStart,
    ToolCallEnd,
    fold,
    unfold,
)
from dragoman.types import Media, Native, Opaque, ProtocolName, StopReason, Text, Thinking, ToolCall, ToolResult

#: Native fields that only hold the path of others: lists of one object, and objects.
_LISTS: Final = frozenset({"choices", "candidates"})
_OBJECTS: Final = frozenset({"message", "usage", "usageMetadata", "groundingMetadata"})
_NOTHING: Final = frozenset({b"null", b"[]", b"{}", b'""'})
#: Bytes of one of these beyond which it is told as a whole: it is read in the event loop.
_LONG: Final = 256 * 1024
#: Words for a stop reason that say more than the reason that all protocols share, and those of a filter that do not.
_TELLING: Final = frozenset({"stop_sequence", "model_context_window_exceeded", "load", "unload"})
_FILTERED: Final = frozenset({"content_filter", "refusal", "SAFETY", "safety", "stop", "completed"})


#: Events that may hold what one protocol alone knows.
_TAKEN: Final = frozenset[type]({
    Start, TextStart, TextEnd, ThinkingStart, ThinkingEnd, ToolCallEnd, PartEvent, NativeEvent, Finish, Failure,
})  # fmt: skip


@final
class CrossProtocol:
    """One answer translated into `protocol`; None: into a form without native fields.

    `form`: how the protocol cites pages, or None. `reasons`: its stop reasons. `odds`: its form of log probabilities,
    or None.

    Attributes:
        lost: a note for each field that could not be expressed, with its path in the answer.
        blocks: parts to write before the end, known when the end is taken.
        further: parts to write behind the one that was taken last.
    """

    __slots__ = (
        "_cited", "_entries", "_files", "_form", "_is_end_told", "_odds", "_protocol", "_reasons", "_texts", "_told",
        "_told_parts", "blocks", "further", "lost",
    )  # fmt: skip

    def __init__(
        self,
        protocol: ProtocolName | None,
        form: CitationForm | None = None,
        reasons: Container[str] = (),
        odds: OddsForm | None = None,
    ) -> None:
        self._protocol = protocol
        self._form = form
        self._odds = odds
        self._entries: list[dict[str, Json]] = []  # of tokens: of the text that is open, or of the whole answer
        self._is_end_told = False  # a text told those of the end
        self._reasons = reasons
        self._files: list[FoundFile] = []  # cited by the text that is open
        self._cited: list[Citation] = []  # by the text that is open; by the whole answer, where that tells them
        self._texts = 0  # that are over
        self._told: Native | None = None  # of the end: its pages were told with the last text
        self.lost: list[Deviation] = []
        self.blocks: list[Opaque] = []
        self.further: list[Opaque] = []
        self._told_parts: ToldParts | None = None  # made when there are such parts, as in few answers

    def take(self, event: Event, events: Iterable[Event] = ()) -> Event:
        """Return an event of a part, or the answer's start or end, in the protocol's form. `events`: those with it."""
        if type(event) not in _TAKEN:
            return event
        if type(event) is Finish:
            if self._told_parts is not None:
                self._told_parts.end()
            return self._end(event)
        if type(event) is Start or type(event) is Failure:
            if type(event) is Failure and self._told_parts is not None:
                self._told_parts.end()
            if event.native is not None and event.native.protocol != self._protocol:
                said, rest = self._take_words(self._take_odds(event.native, ""))
                self._native(rest, "")
                return msgspec.structs.replace(event, native=said) if said is not None else event
        elif type(event) is TextStart or type(event) is TextEnd:
            return self._text(event, events)
        elif type(event) is ThinkingStart or type(event) is ThinkingEnd:
            if event.native is not None:
                self._native(event.native, f"parts[{event.index}].")
        elif type(event) is ToolCallEnd:
            self._part(event.call, event.index)
        elif type(event) is PartEvent:
            parts = self._parts()
            taken = parts.take(event)
            self.further = parts.further
            if taken is not None:
                return taken
            self._part(event.part, event.index)
        elif type(event) is NativeEvent and event.protocol != self._protocol and not event.of_part:
            self._lose(f"events.{kind_of(event.raw)}", f"{event.protocol}'s own")
        return event

    def take_reply(self, reply: Reply) -> Reply:
        """Return a whole answer in the protocol's form."""
        if self._form is None and self._odds is None:
            self._reason(reply.stop_reason, reply.native_reason)
            self._native(reply.native, "")
            for index, part in enumerate(reply.parts):
                self._part(part, index)
            return reply
        events = unfold(msgspec.structs.replace(reply, native=None))
        if type(events[-1]) is Finish:
            events[-1] = msgspec.structs.replace(events[-1], native=reply.native)
        elif reply.native is not None:
            self._native(reply.native, "")
        written: list[Event] = []
        for event in events:
            written.append(self.take(event, events))
            written += [PartEvent(len(events) + len(written), part) for part in self.further]
            self.further = []
        taken = fold(written)
        parts = (*taken.parts, *self.blocks)
        return msgspec.structs.replace(reply, parts=parts, native=taken.native or reply.native)

    def _text(self, event: TextStart | TextEnd, events: Iterable[Event]) -> TextStart | TextEnd:
        native, is_end = event.native, type(event) is TextEnd
        if native is not None and native.protocol != self._protocol:
            fields = native.fields
            if self._form is not None:
                cited, files, fields, besides = take_citations(fields, self._form)
                if cited and self._form.render is not None:
                    self._cited = cited
                else:
                    self._cited += cited
                if files and self._form.render_file is not None:
                    self._files = files
                elif files:
                    self._parts().files += files
                for path in besides:
                    self._lose(f"parts[{event.index}].{path}", f"{native.protocol}'s own")
            fields = self._take_odds(Native(native.protocol, fields), f"parts[{event.index}].").fields
            self._native(Native(native.protocol, fields), f"parts[{event.index}].")
        if not is_end or self._protocol is None:
            return event
        end = self._end_among(events)
        if end is None and not self._cited and not self._entries and not self._files:  # as most
            self._texts += 1
            return event
        said = self._odds_of_text(end) | self._pages_of_text(end)
        return msgspec.structs.replace(event, native=Native(self._protocol, said)) if said else event

    def _pages_of_text(self, end: Native | None) -> dict[str, Raw]:
        """Return the citations of a text that ends, if texts carry them."""
        if self._form is None or self._form.render is None:
            return {}
        form = self._form
        self._cited += self._pages_of_end(end)
        cited, self._cited = self._cited, []
        is_first, self._texts = not self._texts, self._texts + 1
        if form.of_message and not is_first:
            cited = [msgspec.structs.replace(each, start=None, end=None) for each in cited]
        said = [self._form.render(each) for each in cited]
        files, self._files = self._files, []
        if form.render_file is not None:
            said += [form.render_file(each) for each in each_file_once(files)]
        return {"annotations": _json.raw(said)} if said else {}

    def _odds_of_text(self, end: Native | None) -> dict[str, Raw]:
        """Return the log probabilities of a text that ends, if texts carry them: its own or those of an end with it."""
        if self._odds is None or not self._odds.of_text:
            return {}
        if end is not None and not self._entries and not self._is_end_told:
            self._take_odds(end, "")
            self._is_end_told = bool(self._entries)
        entries, self._entries = self._entries, []
        return {key: _json.raw(value) for key, value in self._odds.render(entries).items()} if entries else {}

    def _take_odds(self, native: Native, where: str) -> Native:
        """Return native fields without the log probabilities, which are kept."""
        if self._odds is None:
            return native
        taken = take_odds(native.fields, self._odds)
        self._entries += taken.entries
        for path in taken.besides:
            self._lose(f"{where}{path}", f"{native.protocol}'s own")
        return Native(native.protocol, taken.rest)

    def _take_words(self, native: Native) -> tuple[Native | None, Native]:
        """Return the fields of the whole answer that the protocol has too, and the rest."""
        if self._protocol is None:
            return None, native
        said, rest = take(native.fields, native.protocol, self._protocol, OF_ANSWER)
        return Native(self._protocol, said) if said else None, Native(native.protocol, rest)

    def _end_among(self, events: Iterable[Event]) -> Native | None:
        """Return the native fields of an end of the answer that came together with the end of a text."""
        last = events[-1] if isinstance(events, list) and events else None
        if type(last) is not Finish or last.native is None or last.native.protocol == self._protocol:
            return None
        return last.native

    def _pages_of_end(self, end: Native | None) -> list[Citation]:
        """Return the pages that an end of the answer cites, if it came together with the end of a text."""
        if end is None or self._told is not None:
            return []
        pages = _take_pages(end)
        found, rest = self._take_files(end if pages is None else pages.rest)
        if pages is None and rest is end:
            return []
        self._told = rest
        self._files += found
        return pages.cited if pages is not None else []

    def _take_files(self, native: Native) -> tuple[list[FoundFile], Native]:
        """Return the files of an end, which are kept for the end too, and the end's other fields."""
        candidate = _grounded(native)
        if self._form is None or self._form.render_files is None or candidate is None:
            return [], native
        found, rest = take_retrieved(candidate["groundingMetadata"])
        if not found.files:
            return [], native
        self._parts().files += found.files
        self._parts().file_queries += found.queries
        return found.files, _with_metadata(native, candidate, rest)

    def _end(self, event: Finish) -> Finish:
        native, form = event.native, self._form
        words: Native | None = None
        self._reason(event.reason, event.native_reason)
        if native is not None and native.protocol != self._protocol:
            told = self._told or self._take_files(native)[1]
            if form is not None and form.render_blocks is not None:
                told = self._take_end(told)
            if self._odds is not None and self._is_end_told:
                told = Native(told.protocol, take_odds(told.fields, self._odds).rest)
            elif self._odds is not None and not self._odds.of_text:
                told = self._take_odds(told, "")
            words, told = self._take_words(told)
            self._native(told, "")
        if self._protocol is None:
            return event
        said = self._odds_of_answer()
        if self._told_parts is not None or self._cited:
            self._say_found(said)
        within = self._odds.within if self._odds is not None and said else ""
        fields = {within: _json.raw([said])} if within else {key: _json.raw(value) for key, value in said.items()}
        fields |= words.fields if words is not None else {}
        if not fields:
            return event
        return msgspec.structs.replace(event, native=Native(self._protocol, fields))

    def _parts(self) -> ToldParts:
        if self._told_parts is None:
            self._told_parts = ToldParts(self._protocol, self._form, self.lost)
        return self._told_parts

    def _say_found(self, said: dict[str, Json]) -> None:
        """Add search results where the end of the answer carries them: among its fields, or as parts before it."""
        form, told = self._form, self._parts()
        if form is None or self._protocol is None:
            return
        pages = each_once([*told.pages, *self._cited])
        files = told.files if form.has_files or form.render_files is not None else []
        blocks: list[Raw] = []
        if form.render_files is not None and (files or told.file_queries):
            blocks.append(form.render_files(told.file_queries, files))
        if form.render is None and form.render_blocks is not None and (pages or told.queries):
            blocks += form.render_blocks(", ".join(dict.fromkeys(told.queries)), pages)
        elif (
            form.render is None and form.render_blocks is None and (pages or told.queries or files or told.file_queries)
        ):
            said["groundingMetadata"] = render_grounding(pages, told.queries, files, told.file_queries)
        self.blocks = [Opaque(self._protocol, raw) for raw in blocks]

    def _odds_of_answer(self) -> dict[str, Json]:
        """Return the log probabilities of all tokens, if the end carries them."""
        if self._odds is None or not self._entries:
            return {}
        if self._odds.of_text:
            self._lose("logprobs", "no text came that they belong to")
            return {}
        return self._odds.render(self._entries)

    def _take_end(self, native: Native) -> Native:
        """Return the end of the answer without its pages and queries, which are kept."""
        pages = _take_pages(native)
        if pages is None:
            return native
        self._cited += pages.cited
        [candidate] = [read_fields(item) or {} for item in (read_items(pages.rest.fields.get("candidates")) or ())[:1]]
        query, candidate["groundingMetadata"] = take_queries(candidate["groundingMetadata"])
        self._parts().queries += [query] if query else []
        return Native(native.protocol, {**pages.rest.fields, "candidates": _json.raw([candidate])})

    def _part(self, part: Text | Thinking | Media | ToolCall | ToolResult | Opaque, index: int) -> None:
        if type(part) is Media and not takes_media(self._protocol, part):
            self._lose(f"parts[{index}]", part.kind)
        if type(part) is not Opaque:
            if part.native is not None:
                self._native(part.native, f"parts[{index}].")
        elif part.protocol != self._protocol:
            for kind in kinds_of(part.raw):
                self._lose(f"parts[{index}]", kind)

    def _reason(self, reason: StopReason | str, word: str | None) -> None:
        if says_more(reason, word, self._reasons):
            self._lose("stop_reason", clip(word or reason))

    def _native(self, native: Native | None, where: str) -> None:
        if native is not None and native.protocol != self._protocol:
            for path in _paths(native.fields, where):
                if not self._lose(path, f"{native.protocol}'s own"):
                    return

    def _lose(self, where: str, seen: str) -> bool:
        return lose(self.lost, where, seen)


def pass_over(encoder: object, event: NativeEvent, out: list[bytes]) -> None:
    """Write nothing for an event that only other protocols have."""


def says_more(reason: StopReason | str, word: str | None, reasons: Container[str]) -> bool:
    """Return whether a protocol with these stop reasons cannot express why an answer stopped."""
    if word is not None and word in reasons:
        return False
    if reason == "content_filter":
        return not _knows_filters(reasons) or (word is not None and word not in _FILTERED)
    return reason == "other" or word in _TELLING


def _knows_filters(reasons: Container[str]) -> bool:
    return "content_filter" in reasons or "refusal" in reasons or "SAFETY" in reasons


def crossed(
    reply: Reply,
    protocol: ProtocolName | None,
    form: CitationForm | None,
    reasons: Container[str],
    lost: list[Deviation] | None,
    odds: OddsForm | None = None,
) -> Reply:
    """Return a whole answer in a protocol's form. What could not be expressed is added to `lost`."""
    if not (_is_foreign_anywhere(reply, protocol) or says_more(reply.stop_reason, reply.native_reason, reasons)):
        return reply
    crossing = CrossProtocol(protocol, form, reasons, odds)
    taken = crossing.take_reply(reply)
    if lost is not None:
        lost += crossing.lost
    return taken


class _Pages(NamedTuple):
    """Pages that an end cites, and the end's other fields."""

    cited: list[Citation]
    rest: Native


def _grounded(native: Native) -> Fields | None:
    """Return `candidates[0]` if it has `groundingMetadata`, else None."""
    candidates = read_items(native.fields.get("candidates"))
    candidate = read_fields(candidates[0]) if candidates else None
    return candidate if candidate is not None and "groundingMetadata" in candidate else None


def _with_metadata(native: Native, candidate: Fields, metadata: Raw) -> Native:
    entry = _json.raw([{**candidate, "groundingMetadata": metadata}])
    return Native(native.protocol, {**native.fields, "candidates": entry})


def _take_pages(native: Native) -> _Pages | None:
    """Return the pages of `candidates[0].groundingMetadata`, or None."""
    candidate = _grounded(native)
    if candidate is None:
        return None
    cited, rest = take_grounding(candidate["groundingMetadata"])
    return _Pages(cited, _with_metadata(native, candidate, rest)) if cited else None


def _is_foreign_anywhere(reply: Reply, protocol: ProtocolName | None) -> bool:
    if reply.native is not None and reply.native.protocol != protocol:
        return True
    for part in reply.parts:
        source = part if type(part) is Opaque else part.native
        if source is not None and source.protocol != protocol:
            return True
        if type(part) is Media and not takes_media(protocol, part):
            return True
    return False


def _paths(fields: Fields, where: str) -> Iterator[str]:
    """Yield the path of each field that says something."""
    for key, value in fields.items():
        path, inner = f"{where}{key}", None
        if memoryview(value).nbytes > _LONG:
            pass
        elif key in _LISTS:
            entries = read_items(value)
            path, inner = f"{path}[0]", read_fields(entries[0]) if entries else None
        elif key in _OBJECTS:
            inner = read_fields(value)
        if inner:
            yield from _paths(inner, f"{path}.")
        elif len(value) > 4 or bytes(value) not in _NOTHING:
            yield path
