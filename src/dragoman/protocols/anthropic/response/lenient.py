"""Read frames that break the specification field by field into the Struct of the fast reader."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.containers import Place, straighten
from dragoman.codec.errors.error_body import is_problem
from dragoman.codec.nan import tells_nan
from dragoman.codec.parts import torn_frames
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.open_parts import OpenCall
from dragoman.codec.parts.unread_arguments import (
    mark_unread,
    note_missing,
    note_unread_piece,
    tell_unread,
    tell_unread_event,
    unread_arguments,
)
from dragoman.protocols.anthropic.wire import (
    CONTENT,
    DELTA,
    EVENTS,
    UNSET,
    Delta,
    StreamEvent,
    decode_fields,
    delta_fields,
    read_fields,
    read_fields_leniently,
    read_items,
    read_text,
)

if TYPE_CHECKING:
    from dragoman.protocols.anthropic.response.block import Block

_DEPTH: Final = 64
#: Where nothing but an object belongs; and so in events that are known to have no block.
_OBJECTS: Final = {"delta": Place(), "content_block": Place()}
_DELTA_ALONE: Final = {"delta": Place()}
#: What each event has of what only some have.
_OWN: Final = {
    "content_block_start": "content_block",
    "content_block_delta": "delta",
    "message_delta": "delta",
    "message_start": "message",
}
#: Fields of a message, of a text and of a delta in which no call stands that nobody reads.
OF_MESSAGE: Final = frozenset({"id", "type", "role", "model", "content", "usage", "stop_reason", "stop_sequence"})
_OF_TEXT: Final = frozenset({"type", "text", "thinking", "signature", "data", "citations", "citation"})
_OF_DELTA: Final = _OF_TEXT | {"stop_reason", "stop_sequence", "stop_details", "container", "usage"}
#: Types of events that are news, and no errors.
_NEWS: Final = frozenset({"info", "status", "notice", "log", "progress", "heartbeat", "keepalive", "debug", "warning"})
#: Fields of an event about a block.
_EVENT: Final = frozenset({"type", "index", "delta", "usage", "content_block", "message", "error"})


def read_event_leniently(value: dict[str, Json], frame: bytes, assembly: Assembly) -> tuple[StreamEvent, bytes]:
    """Return the frame as the fast reader would have read it, and as clean JSON.

    Raises:
        RecursionError: it is nested too deeply.
    """
    value = straighten(value, {"delta": DELTA}, assembly.deviate)
    kind = value.get("type")
    has_block = not isinstance(kind, str) or _OWN.get(kind, "content_block") == "content_block"
    torn_frames.check_places(assembly, value, _OBJECTS if has_block else _DELTA_ALONE)
    if is_nan := tells_nan(frame):
        value = _refuse_infinite(value)
    if isinstance(_json.decode(frame), Malformed):
        odd = "wrong-type" if is_nan else "control-character" if min(frame.strip()) < 0x20 else "lone-surrogate"
        assembly.deviate(odd if _is_utf8(frame) else "invalid-utf8", "stream", "NaN" if is_nan else "")
    fields = read_fields_leniently(value)
    event = StreamEvent(
        type=loose_text(value.get("type"), "type", assembly),
        index=_loose_index(value.get("index"), assembly),
        delta=None if value.get("delta") is None else _loose_delta(value["delta"], assembly),
        content_block=fields.get("content_block", UNSET),
        message=fields.get("message", UNSET),
        usage=fields.get("usage", UNSET),
        error=fields.get("error", UNSET),
    )
    return event, _json.encode(fields)


def _loose_delta(value: Json, assembly: Assembly) -> Delta:
    if not isinstance(value, dict):
        assembly.deviate("wrong-type", "delta")
        return Delta(text=assembly.lenient_text(loose_text(value, "delta", assembly)))
    partial = value.get("partial_json")
    if isinstance(partial, dict):
        assembly.deviate("arguments-type", "delta.partial_json", "an object")
        partial = "NaN" if _is_infinite(partial) else _json.to_text(partial)
    return Delta(
        loose_text(value.get("type"), "delta.type", assembly),
        assembly.lenient_text(loose_text(value.get("text"), "delta.text", assembly)),
        assembly.lenient_text(loose_text(partial, "delta.partial_json", assembly)),
        assembly.lenient_text(loose_text(value.get("thinking"), "delta.thinking", assembly)),
        loose_text(value.get("signature"), "delta.signature", assembly),
        loose_text(value.get("stop_reason"), "delta.stop_reason", assembly) or None,
    )


def loose_text(value: Json, where: str, assembly: Assembly) -> str:
    """Return a text from any type that contains one."""
    if isinstance(value, str):
        return value
    if value is not None:
        assembly.deviate("wrong-type", where)
    if isinstance(value, list):  # content parts where a string belongs
        return "".join(loose_text(item, where, assembly) for item in value if not isinstance(item, list))
    if isinstance(value, dict):
        if isinstance(text := value.get("text"), str):
            return text
        tell_unread_event(assembly, value, where)
        return ""
    return "" if value is None else _json.to_text(value)


def _loose_index(value: Json, assembly: Assembly) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if value is not None:
        assembly.deviate("odd-index", "index", type(value).__name__)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 10 else -1


def joined_seal(so_far: str | None, signature: str, *, at_start: str) -> str | None:
    """Return a signature that comes once, in pieces, or repeats its block's start."""
    # quirk: signature-in-start-and-delta
    said = so_far or ""
    if not signature or signature == said:
        return so_far
    return signature if said == at_start or signature.startswith(said) else said + signature


def _refuse_infinite(value: Json, depth: int = 0) -> Json:
    """Return a value of the lenient reader with null for NaN and Infinity.

    Each `input` with one in it becomes a word that is no JSON object.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_refuse_infinite(item, depth + 1) for item in value] if depth < _DEPTH else value
    if not isinstance(value, dict) or depth >= _DEPTH:
        return value
    return {
        key: "NaN" if key == "input" and _is_infinite(inner) else _refuse_infinite(inner, depth + 1)
        for key, inner in value.items()
    }


def _is_infinite(value: Json, depth: int = 0) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if depth > _DEPTH:
        return True
    if isinstance(value, dict):
        return any(_is_infinite(inner, depth + 1) for inner in value.values())
    return isinstance(value, list) and any(_is_infinite(inner, depth + 1) for inner in value)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def read_blocks(content: Raw | None, assembly: Assembly) -> list[Raw] | None:
    """Return the blocks of a message's content, each an object or a text; None if it is a text, or nothing."""
    items = read_items(content)
    if items is not None and all(_is_block(bytes(memoryview(item)[:2])) for item in items):
        return items
    if content is None or bytes(memoryview(content)[:1]) not in (b"{", b"["):
        return None
    straight = straighten({"content": _json.decode_lenient(bytes(content))}, {"content": CONTENT}, assembly.deviate)
    blocks = straight["content"] if isinstance(straight["content"], list) else [straight["content"]]
    for number, block in enumerate(blocks):
        if isinstance(block, list | dict) and block:
            tell_unread(assembly, {} if isinstance(block, list) else block, f"content[{number}]")
    return [_json.raw(block) for block in blocks]


def _is_block(start: bytes) -> bool:
    """Return whether an item of a content is an object, null, or a text that is no encoded one. `start`: two bytes."""
    return start[:1] in (b"{", b"n") or (start[:1] == b'"' and start[1:] not in (b"{", b"["))


def delta_kind(delta: Delta, takes: str, assembly: Assembly) -> str:
    """Return the type of a delta: the declared one, unless only another type has its fields.

    A text may stand under the key of another type if its block `takes` the declared one.
    """
    told = {
        "input_json_delta": delta.partial_json,
        "thinking_delta": delta.thinking,
        "signature_delta": delta.signature,
        "text_delta": delta.text,
    }
    kinds = [kind for kind, text in told.items() if text]
    if not delta.type:
        assembly.deviate("missing-type", "content_block_delta.delta")
        return kinds[0] if kinds and not delta.text else "text_delta"
    if len(kinds) == 1 and not told.get(delta.type, " "):
        assembly.deviate("wrong-type", "content_block_delta.delta", delta.type)
        # quirk: thinking-under-the-key-of-text
        return delta.type if delta.type == takes and kinds[0] in ("text_delta", "thinking_delta") else kinds[0]
    return delta.type


def tell_missing(key: str, frame: bytes, assembly: Assembly) -> None:
    """Report a text delta without text: something else may stand in its place."""
    fields = delta_fields(frame)
    if key not in fields and (len(fields) > 1 or unread_beside(frame)):
        assembly.deviate("missing-field", f"content_block_delta.{key}")
        note_missing(assembly, f"content_block_delta.{key}")


def note_piece(call: OpenCall, delta: Delta, frame: bytes) -> None:
    """Record what a call's delta has beside its piece of the arguments, or in place of it."""
    note_unread_piece(call, _unread_of_piece(frame), arguments=delta.partial_json)
    if not (delta.type or delta.partial_json):
        mark_unread(call, "delta", is_missing=True)


def _unread_of_piece(frame: bytes) -> dict[str, Raw]:
    """Return the fields of a call's delta that are not read, and those beside it."""
    fields = delta_fields(frame)
    told = bytes(memoryview(fields.get("partial_json", UNSET))[:1])
    known = ("type", "partial_json") if told in (b"", b'"', b"n", b"{") else ("type",)
    return unread_beside(frame) | {key: value for key, value in fields.items() if key not in known}


def unread_beside(frame: bytes) -> dict[str, Raw]:
    """Return the fields of an event about a block that are not read."""
    fields = decode_fields(frame)
    return {} if isinstance(fields, Malformed) else {key: fields[key] for key in fields.keys() - _EVENT}


def look_around(kind: str, frame: bytes, assembly: Assembly) -> None:
    """Record unread fields of an event while a call has no arguments: they may be its own.

    In the end of an empty answer they may be all of it.
    """
    is_all = kind == "message_delta" and assembly.is_empty
    if assembly.phase == "open" and (is_all or assembly.calls.may_lack()):
        tell_unread(assembly, unread_beside(frame), kind)
        told = delta_fields(frame) if kind.endswith("_delta") else {}
        if told and bytes(told.get("type", UNSET)) != b'"input_json_delta"':  # which its call knows
            is_piece = not (read_text(told.get("type")) or read_text(told.get("text")))
            known = _OF_DELTA | {"partial_json"} if is_piece else _OF_DELTA
            tell_unread(assembly, {key: told[key] for key in told.keys() - known}, f"{kind}.delta")


def look_in_end(event: Mapping[str, Raw], delta: Mapping[str, Raw], assembly: Assembly) -> None:
    """Name the unread fields of the event with the stop reason, and of its delta: they may be the answer, or calls."""
    for told, known, where in ((event, _EVENT, "message_delta"), (delta, _OF_DELTA, "message_delta.delta")):
        if not told.keys() <= known:
            tell_unread(assembly, {key: told[key] for key in told if key not in known}, where)


def look_in_message(fields: dict[str, Raw], assembly: Assembly) -> None:
    """As `look_around`, for a whole message."""
    if assembly.phase == "open" and assembly.calls.may_lack():
        tell_unread(assembly, {key: fields[key] for key in fields.keys() - OF_MESSAGE}, "message")


def calls_in_start(content: Raw, assembly: Assembly) -> frozenset[str]:
    """Return the ids of calls with arguments in the content of a `message_start` whose blocks come too.

    Each block must repeat its own. Arguments that name no call may be those of any.
    """
    ids: set[str] = set()
    for item in read_items(content) or ():
        fields = decode_fields(item)
        if not isinstance(fields, Malformed) and unread_arguments(fields):
            id = read_text(fields.get("id"))
            ids.add(id)
            assembly.calls.has_astray = assembly.calls.has_astray or not id
    return frozenset(ids)


def note_start(
    block: Block | None, event: StreamEvent, frame: bytes, told: frozenset[str], *, assembly: Assembly
) -> None:
    """Record what the start of a call has beside its block, and whether the message's start had its arguments.

    While a call has none, each delta of a text is checked too.

    Args:
        told: the ids of the calls whose arguments it had.
    """
    if block is None:
        tell_unread_event(assembly, _json.decode_lenient(frame), "content_block_start")
    elif (call := block.call) is not None:
        tell_foreign("content_block_start", event, frame, assembly)
        if call.id in told:
            mark_unread(call, "content", is_missing=False)
    elif block.part is not None and assembly.calls.may_lack():
        block.takes = ""
        fields = read_fields(event.content_block) or {}
        tell_unread(assembly, {key: fields[key] for key in fields.keys() - _OF_TEXT}, "content_block")


def tell_foreign(kind: str, event: StreamEvent, frame: bytes, assembly: Assembly) -> None:
    """Name fields of an event that only other events have, such as a piece of a call in the end of its block."""
    if kind == "message":
        return  # whole, with other fields
    look_around(kind, frame, assembly)
    own = _OWN.get(kind, "")
    if (
        (event.content_block is UNSET or own == "content_block")
        and (event.message is UNSET or own == "message")
        and (event.delta is None or kind == "content_block_delta")
    ):
        return  # as most do
    told: dict[str, Json] = {}
    for name, value in (("content_block", event.content_block), ("message", event.message)):
        if name != own and bytes(memoryview(value)[:1]) in (b"{", b"["):
            told[name] = value
    if (delta := event.delta) is not None and (own != "delta" or (kind == "message_delta" and delta.partial_json)):
        said = {"text": delta.text, "partial_json": delta.partial_json, "thinking": delta.thinking}
        told["delta"] = {key: text for key, text in said.items() if text}
    if told:
        tell_unread(assembly, told, kind)


def event_kind(event: StreamEvent, frame: bytes, name: bytes, assembly: Assembly) -> str:
    """Return the event's type: by its data, else its line, else its fields."""
    kind = event.type
    if kind in EVENTS and name != b"error":
        return kind
    named = name.decode("ascii", "replace")
    if named in EVENTS:
        if not kind:
            assembly.deviate("missing-type", named)
        return named
    if kind:
        # an error without its wrapper, where it is no type of news, whose message is none
        return "error" if is_string(event.message) and kind.lower() not in _NEWS else kind
    told = ""
    if event.content_block:
        told = "content_block_start"
    elif event.delta is not None:
        told = "message_delta" if event.delta.stop_reason or event.index < 0 else "content_block_delta"
    elif event.message:
        told = "message_start"
        if is_string(event.message):
            value = _json.decode_lenient(frame)
            told = "error" if isinstance(value, dict) and is_problem(value) else ""
    elif is_message(decode_fields(frame)):
        told = "message"
    if told and told != "error":
        assembly.deviate("missing-type", told)
    return told


def is_string(value: Raw) -> bool:
    """Return whether a field is a text."""
    return bytes(value)[:1] == b'"'


def is_message(fields: dict[str, Raw] | Malformed) -> bool:
    """Return whether an object is a whole message."""
    return not isinstance(fields, Malformed) and "content" in fields and ("role" in fields or "stop_reason" in fields)
