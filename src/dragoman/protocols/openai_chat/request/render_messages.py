"""Render the messages of a request. A result is text only: its images follow in a message of the user."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dragoman._json import Json, Raw
from dragoman.codec.counterparts import is_video_page, sound_form
from dragoman.codec.cross_protocol_request import is_left_empty, said_whole
from dragoman.codec.json_fields import Fields, native_fields, read_fields
from dragoman.codec.parts.history_call_ids import hashed, shape_id
from dragoman.deviations import clip, part_path
from dragoman.events import Deviation
from dragoman.protocol import Dialect
from dragoman.protocols.openai_chat.response.encode import render_call, render_detail
from dragoman.protocols.openai_chat.wire import NAME, image_url
from dragoman.types import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult

_NINE: Final = re.compile(r"[A-Za-z0-9]{9}")
#: Characters of an id that OpenAI takes.
_LONGEST_ID: Final = 40
_MOVED: Final = "Media of the tool result above:"
_ANSWER: Final = "Done."
#: Thinking that is not known any more: hosts that want it back refuse a turn without any, and an empty one.
_NO_THINKING: Final = " "


class Turns:
    """Renders the messages of one request and collects what could not be expressed."""

    __slots__ = ("_deviations", "_dialect", "_keeps_marks", "_wants_thinking")

    def __init__(
        self, dialect: Dialect, deviations: list[Deviation], *, keeps_marks: bool, is_thinking: bool = True
    ) -> None:
        """Create it. `keeps_marks`: `cache_control` of parts is sent. `is_thinking`: thinking is not turned off."""
        self._wants_thinking = is_thinking and dialect.replay_reasoning and dialect.reasoning_style == "thinking-type"
        self._dialect = dialect
        self._deviations = deviations
        self._keeps_marks = keeps_marks

    def _deviate(self, code: str, at: tuple[int, ...], why: str, *, field: str = "") -> None:
        """Note a deviation. `at`: the part, by the numbers of its message, of itself, of what is in it."""
        self._deviations.append(Deviation(code, part_path(at) + field, why))

    def messages(self, messages: tuple[Message, ...]) -> list[dict[str, Json]]:
        """Return all messages in order."""
        rendered: list[dict[str, Json]] = []
        held: list[Json] = []  # media of the results just written
        adds = self._dialect.answer_after_results
        for place, message in enumerate(messages):
            if ToolResult not in map(type, message.parts):
                turn = self._message(message, message.parts, place)
                if held:
                    if self._dialect.strict_turns and turn["role"] == "user":
                        turn["content"] = held + _as_list(turn["content"])
                    else:
                        self._add(rendered, {"role": "user", "content": held}, place)
                    held = []
                if message.role == "assistant" and is_left_empty(message, turn):
                    continue
                if adds:
                    self._add(rendered, turn, place)
                else:
                    rendered.append(turn)
                continue
            others: list[Part] = []
            for number, part in enumerate(message.parts):
                if isinstance(part, ToolResult):
                    rendered.append(self._result(part, (place, number), held))
                else:
                    others.append(part)
            if others:
                self._add(rendered, self._message(message, others, place), place)
        if held:
            self._add(rendered, {"role": "user", "content": held}, len(messages) - 1)
        return rendered

    def _add(self, rendered: list[dict[str, Json]], turn: dict[str, Json], place: int) -> None:
        """Add a turn. Some hosts require a turn of the model between results and another speaker's words."""
        is_wanted = self._dialect.answer_after_results and turn["role"] != "assistant"
        if is_wanted and rendered and rendered[-1]["role"] == "tool":
            self._deviate("changed", (place,), "the host wants an answer before it: one was made up")
            rendered.append({"role": "assistant", "content": _ANSWER})
        rendered.append(turn)

    def _result(self, result: ToolResult, at: tuple[int, ...], held: list[Json]) -> dict[str, Json]:
        texts: list[Text] = []
        for number, part in enumerate(result.parts):
            if isinstance(part, Text):
                texts.append(part)
                continue
            moved = self._part(part, (*at, number))
            if moved is not None:
                self._deviate("moved", (*at, number), "results hold text only; it follows in a message of the user")
                held += [moved] if held else [{"type": "text", "text": _MOVED}, moved]
        content: Json = self._content(texts, at)
        if result.is_error:
            self._deviate("changed", at, "said as text", field=".is_error")
            content = f"Error: {said_whole(texts)}"
        rendered: dict[str, Json] = {
            "role": "tool",
            "tool_call_id": self._id(result.call_id, at),
            "content": content,
        }
        if result.name and self._dialect.tool_name_in_result:
            rendered["name"] = result.name
        if result.native is None:
            return rendered
        native = self._marks(native_fields(result.native, NAME), at)
        if "cache_control" in native:  # it marks a content
            native = dict(native)
            if not mark_content(rendered, native.pop("cache_control")):
                self._deviate("dropped", at, "an empty result is not marked", field=".cache_control")
        return rendered | native

    def _message(self, message: Message, parts: Sequence[Part], place: int) -> dict[str, Json]:
        """Return a message without its results."""
        if message.role == "assistant":
            return self._assistant(message, place)
        role = self._dialect.system_role if message.role == "system" else "user"
        turn = {"role": role, "content": self._content(parts, (place,))}
        return turn if message.native is None else turn | native_fields(message.native, NAME)

    # ------------------------------------------------------------ earlier answers

    def _assistant(self, message: Message, place: int) -> dict[str, Json]:
        said: list[Part] = []
        thinking: list[tuple[int, Thinking]] = []
        calls: list[Json] = []
        refusals: list[Text] = []
        rendered: dict[str, Json] = {"role": "assistant", "content": None}
        for number, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                calls.append(self._call(part, (place, number)))
            elif isinstance(part, Thinking):
                thinking.append((number, part))
            elif isinstance(part, Text) and "refusal" in native_fields(part.native, NAME):
                refusals.append(part)
            elif isinstance(part, Media):
                self._answer_media(part, (place, number), rendered)
            else:
                if calls:
                    self._deviate("moved", (place, number), "text stands before calls")
                said.append(part)
        if thinking:
            self._thinking(thinking, place, rendered)
        if self._wants_thinking and calls and not rendered.get(self._dialect.reasoning_field):
            rendered[self._dialect.reasoning_field] = _NO_THINKING
            where, why = f"{part_path((place,))}.{self._dialect.reasoning_field}", "thinking that is not known: a blank"
            self._deviations.append(Deviation("changed", where, why, "note"))
        if refusals:
            rendered["refusal"] = said_whole(refusals)
        if said or not (calls or refusals or "audio" in rendered):
            rendered["content"] = self._content(said, (place,), has_seal=True)
        for part in said:
            if isinstance(part, Text) and part.signature:
                rendered["extra_content"] = {"google": {"thought_signature": part.signature}}
        if calls:
            rendered["tool_calls"] = calls
        return rendered if message.native is None else rendered | native_fields(message.native, NAME)

    def _thinking(self, thinking: list[tuple[int, Thinking]], place: int, rendered: dict[str, Json]) -> None:
        """Return earlier thinking if the server wants it; most refuse it."""
        text = "".join(part.text for _, part in thinking)
        if self._dialect.reasoning_style == "openrouter":
            rendered["reasoning_details"] = [
                render_detail(part.text, part.signature, part.redacted, part.native) for _, part in thinking
            ]
        elif self._dialect.replay_reasoning and text:
            rendered[self._dialect.reasoning_field] = text
            for number, part in thinking:
                if part.signature or part.redacted:
                    self._deviate("dropped", (place, number), "the dialect has no seals", field=".signature")
        else:
            for number, _ in thinking:
                self._deviate("dropped", (place, number), "earlier thinking is not sent back")

    def _call(self, call: ToolCall, at: tuple[int, ...]) -> Json:
        entry = render_call(call)
        entry["id"] = self._id(call.id, at)
        return entry

    def _answer_media(self, media: Media, at: tuple[int, ...], rendered: dict[str, Json]) -> None:
        """Render an answer's media: sound by its id; other media cannot be sent back."""
        fields = native_fields(media.native, NAME)
        if media.kind == "audio" and "id" in fields:
            rendered["audio"] = {"id": fields["id"]}
            for key in sorted(fields.keys() - {"id"}):
                self._deviate("dropped", at, "sound is said by its id", field=f".{clip(key)}")
        else:
            self._deviate("dropped", at, "media of an answer cannot be sent back")

    def _id(self, id: str, at: tuple[int, ...]) -> str:
        """Return an id of the form that the server accepts; the same for a call and its result."""
        if self._dialect.id_form == "any":
            shaped = shape_id(id, _LONGEST_ID, plain=False)
        else:
            shaped = id if _NINE.fullmatch(id) else hashed(id, 9)
        if shaped != id:
            is_any = self._dialect.id_form == "any"
            form = f"at most {_LONGEST_ID} characters" if is_any else "nine letters or digits"
            self._deviate("changed", at, form, field=".id")
        return shaped

    # ------------------------------------------------------------ content

    def _content(self, parts: Sequence[Part], at: tuple[int, ...], *, has_seal: bool = False) -> Json:
        """Return one plain text as a string, all else as a list of parts. `has_seal`: the message has its signature."""
        only = parts[0] if len(parts) == 1 else None
        if isinstance(only, Text) and only.native is None and only.signature is None:
            return only.text
        rendered: list[dict[str, Json] | Raw] = []
        for number, part in enumerate(parts):
            entry = self._part(part, (*at, number), has_seal=has_seal)
            if entry is not None:
                rendered.append(entry)
        if not rendered:
            return ""
        first = rendered[0]
        if len(rendered) == 1 and isinstance(first, dict) and first.keys() == {"type", "text"}:
            return first["text"]
        return rendered

    def _part(self, part: Part, at: tuple[int, ...], *, has_seal: bool = False) -> dict[str, Json] | Raw | None:
        match part:
            case Text(text, signature, native):
                if signature is not None and not has_seal:
                    self._deviate("dropped", at, "the protocol seals answers only", field=".signature")
                return {"type": "text", "text": text, **self._marks(native_fields(native, NAME), at)}
            case Media():
                return self._media(part, at)
            case Opaque("openai-chat", raw):
                return raw
            case Opaque():
                return None  # of another protocol: `crossing` names it
            case _:
                self._deviate("dropped", at, "no place for it in this message")
                return None

    def _marks(self, fields: Fields, at: tuple[int, ...]) -> Fields:
        """Return the part's own fields, without cache markers if the server does not know them."""
        if "cache_control" not in fields or self._keeps_marks:
            return fields
        self._deviate("dropped", at, "the dialect has no cache markers", field=".cache_control")
        return {key: value for key, value in fields.items() if key != "cache_control"}

    def _media(self, media: Media, at: tuple[int, ...]) -> dict[str, Json] | None:
        native = dict(self._marks(native_fields(media.native, NAME), at))
        if media.data is None and not self._dialect.supports_image_url:
            self._deviate("dropped", at, "only data can be sent, not a URL")
            return None
        if media.kind == "video" and not self._takes_video(media):
            self._deviate("dropped", at, "the host takes no such video")
            return None
        if media.kind == "image" or media.kind == "video":
            key = f"{media.kind}_url"
            inner = read_fields(native.pop(key, None)) or {}
            return {"type": key, key: {"url": image_url(media), **inner}, **native}
        if media.kind == "document":
            if media.data is None and media.url is not None and "://" not in media.url:
                return {"type": "file", "file": {"file_id": media.url, **native}}
            return {"type": "file", "file": {"file_data": image_url(media), **native}}
        if media.data is None:
            self._deviate("dropped", at, "sound can be sent as data only")
            return None
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": sound_form(media)}, **native}

    def _takes_video(self, media: Media) -> bool:
        videos = self._dialect.videos
        return videos == "pages" or (videos == "files" and not is_video_page(media.url))


def _as_list(content: Json) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def mark_cache(messages: list[dict[str, Json]], mark: Json) -> None:
    """Put a cache marker on the end of the system messages and on the last message, if the client set none."""
    system = [message for message in messages if message["role"] in ("system", "developer")][-1:]
    if not any(_has_mark(message["content"]) for message in messages):
        for message in [*system, *messages[-1:]]:
            mark_content(message, mark)


def mark_content(message: dict[str, Json], mark: Json) -> bool:
    """Put a cache marker on the end of a message's content. Return False if it has none."""
    content = message["content"]
    if isinstance(content, str) and content:
        content = message["content"] = [{"type": "text", "text": content}]
    if not isinstance(content, list) or not isinstance(content[-1], dict):
        return False
    content[-1]["cache_control"] = mark
    return True


def add_to_prompt(messages: list[dict[str, Json]], words: str, role: str) -> None:
    """Put words behind the system prompt, or in its place if there is none."""
    if not messages or messages[0]["role"] != role:
        messages.insert(0, {"role": role, "content": words})
        return
    said = messages[0]["content"]
    more: Json = f"{said}\n\n{words}" if isinstance(said, str) else [*(said or ()), {"type": "text", "text": words}]
    messages[0] = messages[0] | {"content": more}


def _has_mark(content: Json) -> bool:
    return isinstance(content, list) and any(isinstance(part, dict) and "cache_control" in part for part in content)
