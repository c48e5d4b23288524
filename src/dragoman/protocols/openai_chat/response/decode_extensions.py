"""Rare fields of a delta or a message: signed thinking, content in parts, refusals, images, sound, notes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.counterparts import with_data
from dragoman.codec.framing.entries import check_entries
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.call_matching import CallSlots
from dragoman.codec.parts.open_parts import OpenPart
from dragoman.codec.parts.settled_arguments import is_placeholder
from dragoman.codec.parts.unread_arguments import note_words, refuse_unread, unread_arguments
from dragoman.events import TextStart, ThinkingStart
from dragoman.gathered import GatheredText
from dragoman.protocols.openai_chat.response.unmodelled import Kept
from dragoman.protocols.openai_chat.response.usage import read_cost, read_usage
from dragoman.protocols.openai_chat.wire import NAME, Choice, Delta, google_fields, texts_in
from dragoman.types import Media, Native, Opaque

_NO_CHANCE: Final = 16  # characters that nobody says twice in a row as all there is
_PIECES_OF_AUDIO: Final = ("data", "transcript", "id", "format")


class Extensions:
    """Reads them into one response."""

    __slots__ = (
        "_annotations",
        "_assembly",
        "_audio",
        "_detailed",
        "_details",
        "_kept",
        "_noted",
        "_refusal",
        "_rest_of_audio",
        "_places",
        "_slots",
    )

    def __init__(self, assembly: Assembly, slots: CallSlots, kept: Kept) -> None:
        self._kept = kept
        self._annotations: list[Json] = []  # of the text whose index is `_noted`
        self._noted = -1
        self._rest_of_audio: dict[str, Json] = {}
        self._assembly = assembly
        self._slots = slots
        self._audio: dict[str, GatheredText] = {}
        self._refusal: OpenPart | None = None
        self._details = GatheredText()  # what details of the thinking have said
        self._detailed = 0  # its length
        self._places: set[object] = set()  # indexes of these details

    @property
    def refused(self) -> bool:
        """Whether the model declined to answer."""
        return self._refusal is not None

    # ------------------------------------------------------------ thinking

    def thinking_in(self, delta: Delta) -> str:
        """Return thinking under any of its names; none if its details repeat all of theirs."""
        told = delta.reasoning_details if isinstance(delta.reasoning_details, list) else []
        details = "".join(texts_in(told))
        words = delta.reasoning_content or delta.reasoning or ""
        if details and words in ("", details) and self._is_said(details, told):
            self._assembly.deviate("duplicate-final", "choices[0].delta.reasoning_details")
            return ""
        self._details.add(details)
        self._detailed += len(details)
        if len(self._places) <= self._assembly.bounds.members:  # beyond, a repetition is told as more
            self._places.update(map(_place_of, told))
        rare = "" if words else "".join(texts_in(delta.thinking)) or delta.reasoning_text
        if rare:
            self._assembly.deviate("sibling-key", "choices[0].delta", "thinking")
        return words or rare or details

    def _is_said(self, details: str, told: Sequence[Json]) -> bool:
        """Return whether details of the thinking repeat all that came, under their indices, and not by chance."""
        if not self._places.issuperset(map(_place_of, told)):
            return False
        is_chance = len(details) < _NO_CHANCE and self._assembly.running(ThinkingStart) is not None
        return not is_chance and len(details) == self._detailed and details == self._details.text()

    def sealed_thinking(self, delta: Delta) -> None:
        """Take signatures and encrypted data, and what else must be sent back with the thinking."""
        if delta.reasoning_opaque:
            self._sign(delta.reasoning_opaque)
        details = delta.reasoning_details
        for detail in details if isinstance(details, list) else ():
            if not isinstance(detail, dict):
                continue
            rest = {key: value for key, value in detail.items() if key not in ("text", "summary", "signature", "data")}
            data, signature = detail.get("data"), detail.get("signature")
            if isinstance(data, str) and data:
                self._assembly.end_run()
                part = self._assembly.open_part(ThinkingStart)
                part.redacted = data
                part.native = _native("reasoning_detail", rest)
                self._assembly.end_part(part)
            elif isinstance(signature, str) and signature:
                self._sign(signature, native=_native("reasoning_detail", rest))

    def _sign(self, signature: str, *, native: Native | None = None) -> None:
        """Sign the running thinking; a signature that comes alone is a separate part."""
        running = self._assembly.running(ThinkingStart)
        part = running or self._assembly.open_part(ThinkingStart)
        part.signature = signature
        part.native = native
        if running is None:
            self._assembly.end_part(part)

    # ------------------------------------------------------------ the rest

    def read(self, delta: Delta) -> None:
        """Take everything that is neither thinking, nor a plain text, nor a call."""
        parts: Json = delta.content_parts
        for part in parts if isinstance(parts, list) else ():
            self._part(part)
        if delta.refusal:
            self._refuse(delta.refusal)
        self._notes(delta)
        images = delta.images
        for image in images if isinstance(images, list) else ():
            self._part(image)
        audio = delta.audio
        for key in _PIECES_OF_AUDIO if isinstance(audio, dict) else ():
            if isinstance(audio.get(key), str):
                self._audio.setdefault(key, GatheredText()).add(audio[key])
        if isinstance(audio, dict):
            self._rest_of_audio |= {key: value for key, value in audio.items() if key not in _PIECES_OF_AUDIO}
            check_entries(self._rest_of_audio, self._assembly.bounds)

    def _notes(self, delta: Delta) -> None:
        """Take what belongs to a text: its signature and its annotations. Without a text the message keeps them."""
        running = self._assembly.running(TextStart)
        notes = delta.annotations if isinstance(delta.annotations, list) else []
        seal = google_fields(delta.extra_content).get("thought_signature")
        if running is not None and notes:
            if self._noted != running.index:
                self._noted, self._annotations = running.index, []
                running.gathered = partial(_native, "annotations", self._annotations)
            self._annotations += notes
            check_entries(self._annotations, self._assembly.bounds)
        elif notes:
            check_entries(self._kept.annotate(notes), self._assembly.bounds)
        if running is not None and isinstance(seal, str):
            running.signature = seal
        elif delta.extra_content and google_fields(delta.extra_content).keys() != {"thought"}:
            self._kept.message({"extra_content": delta.extra_content})

    def _refuse(self, words: str) -> None:
        """Take a refusal. Its words are text; `native` marks them as a refusal."""
        if self._refusal is None:
            self._assembly.end_run()
            self._refusal = self._assembly.open_part(TextStart, native=_native("refusal", True))
        self._assembly.add(self._refusal, words)

    def end_audio(self) -> None:
        """End sound, which comes in pieces and is a whole part."""
        if not self._audio:
            return
        pieces = {key: texts.text() for key, texts in self._audio.items()}
        self._audio = {}
        if not any(pieces.values()):
            return  # quirk: audio-of-nothing
        said = {key: _json.raw(value) for key, value in self._rest_of_audio.items() if value is not None}
        said |= {key: _json.raw(pieces[key]) for key in ("id", "transcript") if pieces.get(key)}
        mime = f"audio/{pieces['format']}" if pieces.get("format") else None
        native = Native(NAME, said) if said else None
        self._assembly.whole_part(Media("audio", mime=mime, data=pieces.get("data") or None, native=native))

    def _part(self, part: Json) -> None:
        """Take an entry of a `content` that is a list, or of `images`."""
        if isinstance(part, str):
            part = {"type": "text", "text": part}
        if not isinstance(part, dict):
            return
        kind = part.get("type")
        url = part.get("image_url")
        url = url.get("url") if isinstance(url, dict) else url
        if kind in ("text", "output_text", "thinking", "reasoning", None):
            self._words(part, is_thinking=kind in ("thinking", "reasoning"))
        elif kind == "refusal" and isinstance(part.get("refusal"), str):
            self._refuse(part["refusal"])
        elif isinstance(url, str):
            self._assembly.whole_part(with_data(Media("image", url=url)))
        elif kind in ("tool_use", "tool_call", "function_call") and isinstance(part.get("name"), str):
            self._assembly.deviate("sibling-key", "choices[0].content", kind)
            arguments = part.get("input", part.get("arguments"))
            text = arguments if isinstance(arguments, str) else _json.to_text(arguments)
            if is_placeholder(text) and (unread := unread_arguments(part, "input", "arguments")):
                return refuse_unread(self._assembly, str(part.get("id") or ""), part["name"], unread)
            self._slots.whole(str(part.get("id") or ""), part["name"], text)
        else:
            self._assembly.deviate("unknown-part", "choices[0].content", kind)
            self._assembly.whole_part(Opaque(NAME, _json.raw(part)))

    def _words(self, part: dict[str, Json], *, is_thinking: bool) -> None:
        words = "".join(texts_in(part))
        if words and is_thinking:
            self._assembly.thinking(words)
        elif words:
            self._assembly.text(words)
        if is_thinking and isinstance(part.get("signature"), str):
            self._sign(part["signature"])


def _place_of(detail: Json) -> object:
    """Return the index of a detail of the thinking, as it is written."""
    return str(detail.get("index")) if isinstance(detail, dict) else None


def _native(key: str, value: Json) -> Native:
    return Native(NAME, {key: _json.raw(value)})


def read_odd_places(choice: Choice, assembly: Assembly) -> None:
    """Read text and usage that stand in a choice."""
    if choice.text and choice.delta is None and choice.message is None:
        assembly.deviate("sibling-key", "choices[0].text")
        assembly.text(choice.text)
    elif choice.text:
        note_words(assembly, {"text": choice.text}, "choices[0]")
        said = choice.delta or choice.message
        if said is not None and said.content != choice.text:
            assembly.deviate("sibling-key", "choices[0].text", "beside another text")
    if isinstance(choice.usage, dict):
        assembly.deviate("usage-place", "choices[0].usage")
        assembly.usage(read_usage(choice.usage), read_cost(choice.usage))
