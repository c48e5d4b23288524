"""Parse the messages of a request. Each wire message is one message; a result answers its call by id, else by name in
order, else by place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Final, Literal, TypeAlias, TypeVar

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.counterparts import of_client
from dragoman.codec.json_fields import (
    Fields,
    decode_short,
    make_native,
    read,
    read_fields,
    read_items,
    read_string,
    read_text,
)
from dragoman.codec.parts.history_call_ids import CallIds, parse_paired
from dragoman.codec.unread import (
    Kind,
    holds_parts,
    name_passed_over,
    name_unread,
    name_unreadable,
    refuse_no_text,
    refuse_other_kinds,
    wanted_text,
)
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.protocols.openai_chat.wire import NAME, google_fields, texts_in
from dragoman.types import Media, Message, Native, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult

_ROLES: Final[dict[str, Role]] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool",
    "function": "tool",
}  # fmt: skip
_MODELLED: Final = (
    "role", "content", "refusal", "tool_calls", "function_call", "tool_call_id", "reasoning_content", "reasoning",
    "reasoning_details", "reasoning_opaque", "thinking", "extra_content", "audio",
)  # fmt: skip
#: Of these, what is read in messages of other roles only.
_UNLIKE: Final[dict[Role, frozenset[str]]] = {
    "assistant": frozenset({"tool_call_id"}), "tool": frozenset(_MODELLED) - {"role", "content", "tool_call_id"},
    "user": frozenset(_MODELLED) - {"role", "content"}, "system": frozenset(_MODELLED) - {"role", "content"},
}  # fmt: skip
#: Names of an answer's thinking, the first one first.
_THOUGHTS: Final[tuple[str, ...]] = ("reasoning_content", "reasoning", "thinking")
_EMPTY: Final = (b"null", b"[]", b'""')
_MEDIA: Final[dict[str, Literal["image", "audio", "video"]]] = {
    "image_url": "image", "audio_url": "audio", "video_url": "video",
}  # fmt: skip
_T = TypeVar("_T")
_Word: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class _PlainText(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str


class _PlainFunction(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: _Word
    arguments: str = ""


class _PlainCall(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    id: _Word
    function: _PlainFunction
    type: Literal["function"] = "function"
    index: int | None = None


_SAID_KINDS: Final[dict[str, Kind]] = {"reasoning_content": "a text", "refusal": "a text"}


class PlainMessage(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A message with nothing unusual in it, which is decoded at once; any other is read field by field."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_PlainText] | None = None
    tool_calls: list[_PlainCall] | None = None
    tool_call_id: str | None = None
    refusal: None = None
    function_call: None = None


_decode_plain: Final = _json.typed_decoder(PlainMessage)
_decode_all_plain: Final = _json.typed_decoder(list[PlainMessage])


class Conversation:
    """Parses the messages of one request in order."""

    __slots__ = ("_deviations", "_pairing")

    _pairing: CallIds

    def __init__(self, deviations: list[Deviation]) -> None:
        self._deviations = deviations

    def _deviate(self, code: str, where: str, seen: str = "") -> None:
        self._deviations.append(Deviation(code, where, seen))

    def messages(self, value: Raw) -> tuple[Message, ...]:
        """Return all messages. Raises `WireError`: there are none, or one cannot be read."""
        plain = decode_short(_decode_all_plain, value)
        if not isinstance(plain, Malformed) and plain:
            return self.plain_messages(plain)
        items = read_items(value) if isinstance(plain, Malformed) else []
        if not items:
            expected = "at least one message" if items == [] else "a list of messages"
            raise WireError(f"expected {expected}", path="messages")
        return parse_paired(partial(self._each, self._message, items), self._deviations)

    def plain_messages(self, plain: list[PlainMessage]) -> tuple[Message, ...]:
        """Return all messages, where each is decoded."""
        return parse_paired(partial(self._each, self._plain, plain), self._deviations)

    def _each(self, parse: Callable[[_T, int], Message], items: list[_T], pairing: CallIds) -> tuple[Message, ...]:
        self._pairing = pairing
        return tuple([parse(item, turn) for turn, item in enumerate(items)])

    def _message(self, item: Raw, turn: int) -> Message:
        """Parse one message; `turn` is its place."""
        plain = _decode_plain(item)
        if not isinstance(plain, Malformed):
            return self._plain(plain, turn)
        where = f"messages[{turn}]"
        fields = read_fields(item)
        if fields is None:
            raise WireError("expected a message object", path=where)
        said = read_text(fields.get("role"))
        role = _ROLES.get(said.strip().lower())
        if role is None:
            raise WireError(f"expected a role, got {said[:40]!r}", path=f"{where}.role")
        for key in fields:
            if key in _UNLIKE[role] and bytes(fields[key]) not in _EMPTY:
                self._pass_over(key, role, turn)
        if role == "tool":
            return self._result(fields, where)
        parts = self._content(fields.get("content"), f"{where}.content")
        if role == "assistant":
            refuse_other_kinds(fields, _SAID_KINDS, f"{where}.")
            thinking = parse_thinking(fields)
            if "reasoning" in fields or "thinking" in fields or "reasoning_details" in fields:
                self._name_unsaid_thoughts(fields, where, thinking)
            parts = [*thinking, *_sealed(parts, fields)]
            refusal = read_text(fields.get("refusal"))
            if refusal:
                parts.append(Text(refusal, native=Native(NAME, {"refusal": Raw(b"true")})))
            if (spoken := read_fields(fields.get("audio"))) is not None:
                parts.append(_spoken(spoken, f"{where}.audio"))
            parts += self._calls(fields, where, turn)
        return Message(role, tuple(parts), make_native(NAME, fields, *_MODELLED))

    def _pass_over(self, key: str, role: Role, turn: int) -> None:
        self._deviate("dropped", f"messages[{turn}].{key}", f"not in a message of the role {role}")

    def _name_unsaid_thoughts(self, fields: Fields, where: str, thinking: list[Part]) -> None:
        """Name thinking that is no text, and a second one that differs. `thinking`: what was read."""
        told = {key: fields[key] for key in _THOUGHTS if key in fields and bytes(fields[key]) not in _EMPTY}
        texts = {key: raw for key, raw in told.items() if bytes(raw)[:1] == b'"'}
        name_unreadable(told, {key: texts.get(key) for key in told}, f"{where}.", self._deviations)
        name_passed_over(texts, f"{where}.", self._deviations, *_THOUGHTS)
        said = "".join([part.text for part in thinking if isinstance(part, Thinking)]).split()
        key = next((key for key in _THOUGHTS if key in texts), "")
        if key and "".join(read_text(texts[key]).split()) not in "".join(said):
            self._deviations.append(Deviation("dropped", f"{where}.{key}", "reasoning_details say it", "note"))

    def _plain(self, plain: PlainMessage, turn: int) -> Message:
        content, role = plain.content, _ROLES[plain.role]
        texts: tuple[Text, ...] = ()
        if content:
            texts = (Text(content),) if isinstance(content, str) else tuple([Text(part.text) for part in content])
        if plain.tool_call_id and role != "tool":
            self._pass_over("tool_call_id", role, turn)
        if role == "tool":
            if plain.tool_calls:
                self._pass_over("tool_calls", role, turn)
            id, name = self._pairing.add_result(plain.tool_call_id or "", "")
            return Message("tool", (ToolResult(id, name, texts),))
        if not plain.tool_calls:
            return Message(role, texts)
        if role != "assistant":
            self._pass_over("tool_calls", role, turn)
            return Message(role, texts)
        calls: list[Part] = [*texts]
        for number, call in enumerate(plain.tool_calls):
            function = call.function
            name, arguments = function.name, function.arguments.strip() or "{}"
            id = self._pairing.add_call(call.id, name, turn=turn, number=number)
            if not _json.is_object(arguments):
                arguments = self._wrapped(arguments, f"messages[{turn}].tool_calls[{number}].function.arguments")
            calls.append(ToolCall(id, name, arguments))
        return Message(role, tuple(calls))

    def _result(self, fields: Fields, where: str) -> Message:
        refuse_other_kinds(fields, {"tool_call_id": "a text", "name": "a text"}, f"{where}.")
        parts = self._result_content(fields.get("content"), f"{where}.content")
        id, name = self._pairing.add_result(read_text(fields.get("tool_call_id")), read_text(fields.get("name")))
        kept = tuple(part for part in parts if isinstance(part, Text | Media | Opaque))
        native = make_native(NAME, fields, *_MODELLED, "name")
        return Message("tool", (ToolResult(id, name, kept, native=native),))

    # ------------------------------------------------------------ content

    def _content(self, value: Raw | None, where: str) -> list[Part]:
        items = read_items(value)
        if items is None:
            content = read(value)
            if isinstance(content, dict) and holds_parts([content]):
                items = [_json.raw(content)]
            else:
                refuse_no_text(content, where)
                return [Text(content)] if content else []
        return [self._part(item, f"{where}[{number}]") for number, item in enumerate(items)]

    def _result_content(self, value: Raw | None, where: str) -> list[Part]:
        """Return what a result says. A value that a program forgot to write as text is its JSON."""
        content = None if read_string(value) is not None else read(value)
        if isinstance(content, dict) and content.keys() <= {"type", "text"}:
            content = [content]
        if value is None or content is None or holds_parts(content):
            return self._content(value, where)
        self._deviate("wrong-type", where, type(content).__name__)
        return [Text(_json.raw_text(value))]

    def _part(self, item: Raw, where: str) -> Part:
        text = read_string(item)
        if text is not None:
            self._deviate("wrong-type", where, "a string")
            return Text(text)
        fields = read_fields(item)
        if fields is None:
            raise WireError("expected a part of a message", path=where)
        kind = read_text(fields.get("type"))
        inner = read_fields(fields.get(kind)) or {}
        if kind in ("text", "input_text", "output_text", "") and "text" in fields:
            return Text(wanted_text(fields, "text", where), native=make_native(NAME, fields, "type", "text"))
        if kind == "refusal":
            name_unread(fields, where, self._deviations, "type", kind)
            return Text(read_text(fields.get("refusal")), native=Native(NAME, {"refusal": Raw(b"true")}))
        if kind in _MEDIA:
            url = read_text(inner.get("url")) or read_text(fields.get(kind))
            rest = {key: value for key, value in fields.items() if key not in ("type", kind)}
            if not url:
                raise WireError("expected an address or base64 data", path=f"{where}.{kind}.url")
            unsaid = make_native(NAME, inner, "url")
            if unsaid is not None:
                rest[kind] = _json.raw(unsaid.fields)
            return of_client(Media(_MEDIA[kind], url=url, native=make_native(NAME, rest)), NAME)
        if kind == "input_audio" and read_text(inner.get("data")):
            refuse_other_kinds(inner, {"format": "a text"}, f"{where}.{kind}.")
            form = read_text(inner.get("format")) or "wav"
            native = make_native(NAME, fields, "type", kind)
            name_unread(inner, f"{where}.{kind}", self._deviations, "data", "format")
            return Media("audio", f"audio/{form}", read_text(inner.get("data")), native=native)
        if kind == "file" and (media := _file(inner)) is not None:
            name_unread(fields, where, self._deviations, "type", "file")
            return media
        self._deviate("unknown-part", where, kind)
        return Opaque(NAME, Raw(bytes(item)))

    # ------------------------------------------------------------ calls

    def _calls(self, fields: Fields, where: str, turn: int) -> list[ToolCall]:
        calls = [
            self._call(read_fields(item) or {}, f"{where}.tool_calls[{number}]", (turn, number))
            for number, item in enumerate(read_items(fields.get("tool_calls")) or ())
        ]
        legacy = fields.get("function_call")
        if legacy is not None:
            self._deviate("legacy-function-call", f"{where}.function_call")
            calls.append(self._call({"function": legacy}, f"{where}.function_call", (turn, len(calls))))
        return calls

    def _call(self, fields: Fields, where: str, place: tuple[int, int]) -> ToolCall:
        custom = read_fields(fields.get("custom"))
        inner = custom or read_fields(fields.get("function")) or {}
        name = read_text(inner.get("name"))
        if not name:
            raise WireError("expected the name of a tool", path=f"{where}.function.name")
        refuse_other_kinds(fields, {"id": "a text"}, f"{where}.")
        id = self._pairing.add_call(read_text(fields.get("id")), name, turn=place[0], number=place[1])
        signature = google_fields(read(fields.get("extra_content"))).get("thought_signature")
        rest = make_native(NAME, fields, "id", "type", "index", "function", "custom", "extra_content")
        sealed = signature if isinstance(signature, str) else None
        name_unread(
            inner,
            f"{where}.{'function' if custom is None else 'custom'}",
            self._deviations,
            "name",
            *(("input",) if custom is not None else ("arguments",)),
        )
        if custom is not None:
            return ToolCall(id, name, read_text(custom.get("input")), "custom", sealed, rest)
        arguments = self._arguments(inner.get("arguments"), f"{where}.function.arguments")
        return ToolCall(id, name, arguments, "function", sealed, rest)

    def _arguments(self, value: Raw | None, where: str) -> str:
        """Return argument text; an object is used as it is, and anything else becomes the text of one argument."""
        if value is None:
            return "{}"
        text = _json.raw_text(value)
        if text[:1] == '"':
            text = read_text(value).strip() or "{}"
        else:
            self._deviate("arguments-type", where, "no string")
        return text if _json.is_object(text) else self._wrapped(text, where)

    def _wrapped(self, text: str, where: str) -> str:
        """Return text that is no JSON object as the text of one argument."""
        self._deviate("arguments-type", where, "no JSON object")
        return _json.to_text({"input": text})


# ---------------------------------------------------------------- thinking and media


def parse_thinking(fields: Fields) -> list[Part]:
    """Return the thinking of an earlier answer, under each of its names."""
    texts = (read_text(fields.get(key)) for key in _THOUGHTS)
    text = next((text for text in texts if text), "")
    details = read(fields.get("reasoning_details"))
    parts: list[Part] = []
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict):
            parts.append(_parse_detail(detail, text if not parts else ""))
    if parts:
        return parts
    signature = read_text(fields.get("reasoning_opaque"))
    return [Thinking(text, signature or None)] if text or signature else []


def _parse_detail(detail: dict[str, Json], text: str) -> Thinking:
    rest = {key: value for key, value in detail.items() if key not in ("text", "summary", "signature", "data")}
    native = Native(NAME, {"reasoning_detail": _json.raw(rest)}) if rest else None
    data, signature = detail.get("data"), detail.get("signature")
    if isinstance(data, str) and data:
        return Thinking("", None, data, native)
    words = "".join(texts_in(detail.get("text") or detail.get("summary"))) or text
    return Thinking(words, signature if isinstance(signature, str) else None, None, native)


def _sealed(parts: list[Part], fields: Fields) -> list[Part]:
    """Add the signature of a text, which stands on its message (Gemini's OpenAI endpoint)."""
    signature = google_fields(read(fields.get("extra_content"))).get("thought_signature")
    last = parts[-1] if parts else None
    if isinstance(signature, str) and isinstance(last, Text):
        return [*parts[:-1], Text(last.text, signature, last.native)]
    return parts


def _spoken(fields: Fields, where: str) -> Media:
    """Return the sound of an earlier answer, which this protocol says again by its id."""
    refuse_other_kinds(fields, {"id": "a text", "data": "a text"}, f"{where}.")
    return Media("audio", data=read_text(fields.get("data")) or None, native=make_native(NAME, fields, "data"))


def _file(fields: Fields) -> Media | None:
    native = make_native(NAME, fields, "file_data", "file_id")
    data, id = read_text(fields.get("file_data")), read_text(fields.get("file_id"))
    if id or data[:5].lower() == "data:" or "://" in data[:12]:
        return of_client(Media("document", url=id or data, native=native), NAME)
    return Media("document", data=data, native=native) if data else None
