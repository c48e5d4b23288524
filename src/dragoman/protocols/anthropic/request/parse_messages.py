"""Parse the messages of a request. Results stand in messages of their own."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Malformed, Raw
from dragoman.codec.counterparts import of_client
from dragoman.codec.json_fields import decode_short
from dragoman.codec.parts.history_call_ids import CallIds, parse_paired
from dragoman.codec.unread import name_unread, refuse_other_kinds, wanted_text
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.protocols.anthropic.wire import (
    MADE_SEARCH,
    NAME,
    UNSET,
    keep,
    read,
    read_fields,
    read_items,
    read_text,
    rest_of,
)
from dragoman.types import Media, Message, Native, Opaque, Part, Text, Thinking, ToolCall, ToolResult

_Word: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]

# Blocks with nothing unusual in them, which are read at once; a message with any other is read field by field.


class _PlainText(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str
    cache_control: Raw = UNSET
    citations: None = None


class _PlainThinking(msgspec.Struct, tag_field="type", tag="thinking", forbid_unknown_fields=True, gc=False):
    thinking: str
    signature: str = ""


class _PlainCall(msgspec.Struct, tag_field="type", tag="tool_use", forbid_unknown_fields=True, gc=False):
    id: _Word
    name: _Word
    input: Raw
    cache_control: Raw = UNSET


class _PlainResultText(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["text"]
    text: str
    cache_control: Raw = UNSET
    citations: None = None


class _PlainResult(msgspec.Struct, tag_field="type", tag="tool_result", forbid_unknown_fields=True, gc=False):
    tool_use_id: _Word
    content: str | list[_PlainResultText] = ""
    is_error: bool = False
    cache_control: Raw = UNSET


_PlainBlock: TypeAlias = _PlainText | _PlainThinking | _PlainCall | _PlainResult
PlainContent: TypeAlias = str | list[_PlainBlock]


class PlainMessage(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A message with such blocks alone."""

    role: Literal["user", "assistant"]
    content: PlainContent


_decode_plain_messages: Final = _json.typed_decoder(list[PlainMessage])
_decode_plain_content: Final[Callable[[Raw], PlainContent | Malformed]] = _json.typed_decoder(PlainContent)  # type: ignore[arg-type]


class Conversation:
    """Parses the messages of a request in order. It keeps the place of the current one, and its number of calls."""

    __slots__ = ("_calls", "_deviations", "_pairing", "_turn")

    def __init__(self, deviations: list[Deviation]) -> None:
        self._deviations = deviations
        self._pairing = CallIds(deviations)
        self._turn = 0
        self._calls = 0

    def messages(self, system: Raw | None, value: Raw | None) -> list[Message]:
        """Return all messages, the system prompt first.

        Raises:
            WireError: there is no list of them, or one cannot be read.
        """
        plain = decode_short(_decode_plain_messages, value or UNSET)
        items: Sequence[Raw | PlainMessage] | None = read_items(value) if isinstance(plain, Malformed) else plain
        if items is None:
            raise WireError("expected a list of messages", path="messages")
        if not items:
            raise WireError("expected at least one message", path="messages")
        return self._behind(self._parts(system, "system"), items)

    def plain_messages(self, system: PlainContent, items: Sequence[PlainMessage]) -> list[Message]:
        """Return all messages, where each is decoded."""
        return self._behind(self._plain(system, "system"), items)

    def _behind(self, instructions: tuple[Part, ...], items: Sequence[Raw | PlainMessage]) -> list[Message]:
        messages = parse_paired(partial(self._messages, items), self._deviations)
        return [Message("system", instructions), *messages] if instructions else messages

    def _messages(self, items: Sequence[Raw | PlainMessage], pairing: CallIds) -> list[Message]:
        self._pairing = pairing
        messages: list[Message] = []
        for self._turn, item in enumerate(items):
            self._calls = 0
            if not isinstance(item, PlainMessage):
                messages += self._message(item, f"messages[{self._turn}]")
                continue
            role, content = item.role, item.content
            if isinstance(content, str):
                messages.append(Message(role, (Text(content),) if content else ()))
                continue
            parts = self._plain(content, f"messages[{self._turn}].content")
            if role == "user":
                messages += _split(parts, None)
            else:
                messages.append(Message(role, parts))
        return messages

    def _deviate(self, code: str, where: str, seen: str = "") -> None:
        self._deviations.append(Deviation(code, where, seen))

    def _plain(self, content: PlainContent, where: str) -> tuple[Part, ...]:
        if isinstance(content, str):
            return (Text(content),) if content else ()
        parts: list[Part] = []
        for index, block in enumerate(content):
            if isinstance(block, _PlainThinking):
                parts.append(Thinking(block.thinking, block.signature or None))
                continue
            native = _marked(block.cache_control) if block.cache_control else None
            if isinstance(block, _PlainText):
                parts.append(Text(block.text, native=native))
            elif isinstance(block, _PlainCall):
                id = self._pairing.add_call(block.id, block.name, turn=self._turn, number=self._calls)
                self._calls += 1
                arguments = self._arguments(block.input, f"{where}[{index}]")
                parts.append(ToolCall(id, block.name, arguments, native=native))
            else:
                id, name = self._pairing.add_result(block.tool_use_id, "")
                parts.append(ToolResult(id, name, _result_texts(block.content), block.is_error, native))
        return tuple(parts)

    def _message(self, item: Raw, where: str) -> list[Message]:
        """Parse one message; results in a user message become messages of their own."""
        fields = read_fields(item)
        if fields is None:
            raise WireError("expected a message object", path=where)
        role = read_text(fields.get("role"))
        if role == "developer":
            role = "system"
        parts = self._parts(fields.get("content"), f"{where}.content")
        native = rest_of(fields, "role", "content")
        if role == "assistant":
            return [Message("assistant", parts, native)]
        if role == "system":
            return [Message("system", parts, native)]
        if role != "user":
            raise WireError(f"expected the role user, assistant or system, got {role[:40]!r}", path=f"{where}.role")
        messages = _split(parts, native)
        if messages[-1].role == "tool":
            name_unread(fields, where, self._deviations, "role", "content")
        return messages

    def _parts(self, value: Raw | None, where: str) -> tuple[Part, ...]:
        if value is None:
            return ()
        plain = _decode_plain_content(value)
        if not isinstance(plain, Malformed):
            return self._plain(plain, where)
        items = read_items(value)
        if items is None:
            text = read(value)
            if text is not None and not isinstance(text, str):
                raise WireError("expected a string or a list of blocks", path=where)
            return (Text(text),) if text else ()
        parts = (self._part(item, f"{where}[{index}]") for index, item in enumerate(items))
        return tuple([part for part in parts if part is not None])

    def _part(self, item: Raw, where: str) -> Part | None:
        """Return a block's part; None for a block that was generated for this client, which no provider reads."""
        fields = read_fields(item)
        if fields is None:
            text = read(item)
            if not isinstance(text, str):
                raise WireError("expected a block", path=where)
            self._deviate("wrong-type", where, "a string")
            return Text(text)
        kind = read_text(fields.get("type"))
        if not kind and "text" in fields:
            self._deviate("missing-type", where)
            kind = "text"
        if not kind:
            raise WireError("expected a block with a type", path=where)
        if kind == "text":
            return Text(wanted_text(fields, "text", where), native=rest_of(fields, "type", "text"))
        if kind == "tool_use":
            return self._call(fields, where)
        if kind == "tool_result":
            return self._result(fields, where)
        if kind == "thinking":
            native = rest_of(fields, "type", "thinking", "signature")
            return Thinking(
                read_text(fields.get("thinking")), read_text(fields.get("signature")) or None, native=native
            )
        if kind == "redacted_thinking":
            return Thinking("", redacted=read_text(fields.get("data")), native=rest_of(fields, "type", "data"))
        media = _media(kind, fields)
        if media is not None:
            source = read_fields(fields.get("source")) or {}
            refuse_other_kinds(source, {"media_type": "a text"}, f"{where}.source.")
            name_unread(source, f"{where}.source", self._deviations, "type", "media_type", "data", "url", "file_id")
        if read_text(fields.get("tool_use_id") or fields.get("id")).startswith(MADE_SEARCH):
            self._deviations.append(Deviation("dropped", where, "pages that another provider found", "note"))
            return None
        return media if media is not None else Opaque(NAME, keep(item))

    def _call(self, fields: dict[str, Raw], where: str) -> ToolCall:
        id, name = read_text(fields.get("id")), read_text(fields.get("name"))
        if not name:
            raise WireError("expected the name of a tool", path=f"{where}.name")
        if not id:
            self._deviate("missing-id", where)
        id = self._pairing.add_call(id, name, turn=self._turn, number=self._calls)
        self._calls += 1
        arguments = self._arguments(fields.get("input"), where)
        return ToolCall(id, name, arguments, native=rest_of(fields, "type", "id", "name", "input"))

    def _arguments(self, value: Raw | None, where: str) -> str:
        text = _json.raw_text(value) if value is not None else "null"
        if text[:1] == '"':
            self._deviate("arguments-type", f"{where}.input", "a string")
            text = read_text(value)
        if text[:1] != "{" and text.strip() in ("", "null"):
            self._deviate("missing-arguments", f"{where}.input")
            text = "{}"
        return text

    def _result(self, fields: dict[str, Raw], where: str) -> ToolResult:
        refuse_other_kinds(fields, {"is_error": "true or false"}, f"{where}.")
        id = read_text(fields.get("tool_use_id"))
        if not id:
            self._deviate("missing-id", where)
        id, name = self._pairing.add_result(id, "")
        parts = self._parts(fields.get("content"), f"{where}.content")
        said = tuple([part for part in parts if isinstance(part, Text | Media | Opaque)])
        if len(said) < len(parts):
            raise WireError("expected texts and media, got a call, a result or thinking", path=f"{where}.content")
        return ToolResult(
            id,
            name,
            said,
            read(fields.get("is_error")) is True,
            rest_of(fields, "type", "tool_use_id", "content", "is_error"),
        )


def _result_texts(content: str | Sequence[_PlainResultText]) -> tuple[Text, ...]:
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple([Text(text.text, native=_marked(text.cache_control)) for text in content])


def _marked(cache_control: Raw) -> Native | None:
    return rest_of({"cache_control": cache_control}) if cache_control else None


def _split(parts: tuple[Part, ...], native: Native | None) -> list[Message]:
    """Split a user message: each result becomes a message, in the order of the wire."""
    messages: list[Message] = []
    run: list[Part] = []
    for part in parts:
        if type(part) is not ToolResult:
            run.append(part)
            continue
        if run:
            messages.append(Message("user", tuple(run)))
            run = []
        messages.append(Message("tool", (part,)))
    if run or not messages:
        messages.append(Message("user", tuple(run), native))
    return messages


def _media(kind: str, fields: dict[str, Raw]) -> Media | None:
    """Return an image or document block; None for other blocks and for sources that only this protocol knows."""
    source = read(fields.get("source"))
    if kind not in ("image", "document") or not isinstance(source, dict):
        return None
    native = rest_of(fields, "type", "source")
    told = source.get("media_type")
    mime = told if isinstance(told, str) else None
    media: Final = "image" if kind == "image" else "document"
    data = source.get("data")
    if source.get("type") == "base64" and isinstance(data, str):
        return Media(media, mime, data, native=native)
    if source.get("type") == "text" and isinstance(data, str):
        return Media(media, "text/plain", base64.b64encode(data.encode("utf-8", "replace")).decode(), native=native)
    url = source.get("url") if source.get("type") == "url" else source.get("file_id")
    return of_client(Media(media, mime, url=url, native=native), NAME) if isinstance(url, str) else None
