"""Messages as JSON, and back. Parts are named by their kind; wire fields keep their text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Malformed, Raw
from dragoman.errors import UsageError
from dragoman.events.event_lines import present_fields
from dragoman.inputs.conversation import Messages, read_messages
from dragoman.misuse import kind_of
from dragoman.types import Media, Message, Native, Opaque, Origin, Part, Role, Text, Thinking, ToolCall, ToolResult

_Kind: TypeAlias = Literal["text", "thinking", "media", "call", "result", "opaque"]


class _Part(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part. The kind's own Struct reads `value`."""

    kind: _Kind
    value: Raw


class _Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """A `ToolResult` with named parts."""

    call_id: str
    name: str
    parts: tuple[_Part, ...]
    is_error: bool = False
    native: Native | None = None


class MessageRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A `Message` with named parts."""

    role: Role
    parts: tuple[_Part, ...]
    native: Native | None = None
    origin: Origin | None = None
    is_cut: bool = False


_KIND_OF: Final[dict[type, _Kind]] = {
    Text: "text",
    Thinking: "thinking",
    Media: "media",
    ToolCall: "call",
    ToolResult: "result",
    Opaque: "opaque",
}
_READERS: Final[dict[_Kind, Callable[[bytes | str], Any]]] = {
    "text": _json.typed_decoder(Text),
    "thinking": _json.typed_decoder(Thinking),
    "media": _json.typed_decoder(Media),
    "call": _json.typed_decoder(ToolCall),
    "result": _json.typed_decoder(_Result),
    "opaque": _json.typed_decoder(Opaque),
}


_read_records: Final = _json.typed_decoder(tuple[MessageRecord, ...])


def dump_messages(messages: Messages) -> str:
    """Return a conversation as JSON text, to keep it: calls, results, pictures and signatures of thinking too.

    Args:
        messages: what each request takes, `answer.messages` for example; also an empty list.

    Raises:
        UsageError: it is no conversation.
    """
    kept = () if isinstance(messages, list | tuple) and not messages else read_messages(messages)
    try:
        return _json.to_text([record_of(message) for message in kept])
    except UnicodeDecodeError:
        raise UsageError("messages: expected JSON text as Raw, got bytes that are not UTF-8") from None


def load_messages(text: str | bytes) -> tuple[Message, ...]:
    """Return the conversation that `dump_messages` wrote, to go on with it.

    Args:
        text: what it returned; bytes are UTF-8.

    Raises:
        UsageError: it is something else.
    """
    if not isinstance(text, str | bytes):
        raise UsageError(f"load_messages: expected the text of dump_messages, got {kind_of(text)}")
    records = _read_records(str.__str__(text) if isinstance(text, str) else text)
    if isinstance(records, Malformed):
        raise UsageError(f"load_messages: expected the text of dump_messages: {records.problem}")
    try:
        messages = [message_of(record) for record in records]
        return read_messages(messages) if messages else ()
    except (ValueError, UsageError) as problem:
        raise UsageError(f"load_messages: expected the text of dump_messages: {problem}") from None


def record_of(message: Message) -> MessageRecord:
    """Return the record of a message."""
    return MessageRecord(message.role, _written(message.parts), message.native, message.origin, message.is_cut)


def message_of(record: MessageRecord) -> Message:
    """Return the message of a record. Raises `ValueError`: a part does not match its kind."""
    parts = tuple(_read(part) for part in record.parts)
    return Message(record.role, parts, record.native, record.origin, record.is_cut)


def _written(parts: Iterable[Part]) -> tuple[_Part, ...]:
    return tuple(_Part(_KIND_OF[type(part)], _json.raw(_plain(part))) for part in parts)


def _plain(part: Part) -> Any:
    if isinstance(part, ToolResult):
        return _Result(part.call_id, part.name, _written(part.parts), part.is_error, part.native)
    return present_fields(part)


def _read(part: _Part) -> Part:
    value = _READERS[part.kind](bytes(part.value))
    if isinstance(value, Malformed):
        raise ValueError(f"a part of kind {part.kind}: {value.problem}")
    if isinstance(value, _Result):
        inner = tuple(_read(each) for each in value.parts)
        kept = tuple(each for each in inner if isinstance(each, Text | Media | Opaque))
        if len(kept) < len(inner):
            raise ValueError("a part of kind result: expected texts and media, got another part")
        return ToolResult(value.call_id, value.name, kept, value.is_error, value.native)
    found: Part = value
    return found
