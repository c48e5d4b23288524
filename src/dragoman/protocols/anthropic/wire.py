"""The JSON of Anthropic's Messages API, as far as it is read, and its words.

Specification: https://docs.anthropic.com/en/api/messages and …/en/api/messages-streaming (read 2026-11-21). Hot fields
have their usual type; a frame in which one has another goes to the lenient reader.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.containers import Deviate, Place, straighten_object
from dragoman.codec.json_fields import Fields
from dragoman.codec.parts.history_call_ids import shape_id
from dragoman.types import Native, ProtocolName, Reasoning, StopReason

NAME: Final[ProtocolName] = "anthropic-messages"
#: The oldest version that every server knows; what came later is told by the fields themselves.
API_VERSION: Final = "2023-06-01"
#: Events that tell of calls.
CALL_EVENTS: Final = (b"content_block_start", b"content_block_delta", b"content_block_stop")
UNSET: Final = Raw(b"")
#: Characters of a call's id.
_LONGEST_ID: Final = 64
#: What a tool without declared arguments is sent with: the API requires a schema.
EMPTY_SCHEMA: Final[dict[str, Json]] = {"type": "object", "properties": {}}
#: Switches on MCP servers that the provider asks (`anthropic-beta`).
REMOTE_SERVERS: Final = "mcp-client-2025-11-20"
#: How the ids of searches begin that stand for those of another provider.
MADE_SEARCH: Final = "srvtoolu_dragoman"


class Delta(msgspec.Struct, gc=False):
    """The `delta` of `content_block_delta` and of `message_delta`. It does not fit if arguments stand elsewhere."""

    type: str = ""
    text: str = ""
    partial_json: str = ""
    thinking: str = ""
    signature: str = ""
    stop_reason: str | None = None
    arguments: None = None
    args: None = None
    input: None = None


class StreamEvent(msgspec.Struct, gc=False):
    """An event of a stream, a whole message or an error. `index` -1: none. Arguments or calls beside do not fit."""

    type: str = ""
    index: int = -1
    delta: Delta | None = None
    content_block: Raw = UNSET
    message: Raw = UNSET
    usage: Raw = UNSET
    error: Raw = UNSET
    arguments: None = None
    args: None = None
    input: None = None
    function_call: None = None
    tool_calls: None = None


class _NoInput(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The empty input, `{}`."""


class _ToolUse(msgspec.Struct, gc=False, forbid_unknown_fields=True, tag="tool_use"):
    """A call that begins without arguments."""

    id: str
    name: str
    input: _NoInput


class _CallStart(msgspec.Struct, gc=False, forbid_unknown_fields=True, tag="content_block_start"):
    """The start of a call, and nothing else."""

    index: Annotated[int, msgspec.Meta(ge=0)]
    content_block: _ToolUse


class FrameDelta(msgspec.Struct):
    """A frame for a second look at fields of its delta that the hot path does not read."""

    delta: dict[str, Raw] = {}


decode_event: Final = _json.typed_decoder(StreamEvent)
decode_delta: Final = _json.typed_decoder(FrameDelta)
decode_fields: Final = _json.typed_decoder(dict[str, Raw])
_decode_start: Final = _json.typed_decoder(_CallStart)
decode_items: Final = _json.typed_decoder(list[Raw])

EVENTS: Final[frozenset[str]] = frozenset(
    {
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
        "message_stop", "ping", "error", "message", "system.message",
    }
)  # fmt: skip

STOP_REASONS: Final[dict[str, StopReason]] = {
    "end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_use", "max_tokens": "length",
    "model_context_window_exceeded": "length", "refusal": "content_filter", "pause_turn": "other",
    "compaction": "other",
}  # fmt: skip
#: Words of the sibling protocols that gateways let through.
SIBLING_REASONS: Final[dict[str, StopReason]] = {
    "stop": "stop", "eos": "stop", "length": "length", "tool_calls": "tool_use", "tool_call": "tool_use",
    "function_call": "tool_use", "content_filter": "content_filter", "safety": "content_filter",
}  # fmt: skip
#: Blocks of an answer that the specification has and that only this protocol knows; others with these endings too.
OWN_BLOCKS: Final[tuple[str, ...]] = (
    "_tool_use",
    "_tool_result",
    "container_upload",
    "compaction",
    "fallback",
    "mcp_tool_listing",
)

#: A content block, and the delta of one or of the message.
BLOCK: Final = Place(marks=frozenset({"type", "text", "thinking", "name", "input", "id"}))
DELTA: Final = Place(marks=frozenset({"type", "text", "partial_json", "thinking", "stop_reason"}))
CONTENT: Final = Place(is_list=True, marks=BLOCK.marks)
MESSAGE: Final = Place({"content": CONTENT}, marks=frozenset({"content", "role", "usage"}))
#: Fields of a message that only this protocol has.
OWN_FIELDS: Final = frozenset({"container", "context_management", "stop_details", "stop_sequence", "usage"})
#: Where the other protocols have what stands under `input` here.
SIBLING_INPUTS: Final[tuple[str, ...]] = ("arguments", "args", "parameters")

#: HTTP status → `error.type` (https://docs.anthropic.com/en/api/errors, read 2026-11-21).
ERROR_TYPES: Final[dict[int, str]] = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 409: "conflict_error", 413: "request_too_large", 429: "rate_limit_error",
    500: "api_error", 504: "timeout_error", 529: "overloaded_error",
}  # fmt: skip


def is_usual_start(frame: bytes) -> bool:
    """Return whether a frame begins a call and contains nothing else, so that nothing beside it need be looked for.

    It may be False by mistake.
    """
    start = _decode_start(frame)
    return type(start) is _CallStart and _json.holds_all(start, frame)


def read(value: Raw | None) -> Json:
    """Return the value of a raw field, or None if it is absent or cannot be read."""
    if value is None or not value:
        return None
    found = _json.decode(value)
    if isinstance(found, Malformed):
        found = _json.decode_lenient(bytes(value))
    return None if isinstance(found, Malformed) else found


def read_name(block: Fields) -> str:
    """Return the name of a block's tool, which is a string; "" if it has none."""
    name = read(block["name"]) if "name" in block else ""
    return name if isinstance(name, str) else ""


def read_text(value: Raw | None) -> str:
    """Return a field that should be a string: numbers and booleans as their text, else ""."""
    if value is None:
        return ""
    found = read(value)
    if isinstance(found, str):
        return found
    return "" if found is None or isinstance(found, dict | list) else _json.raw_text(value)


def read_fields(value: Raw | None) -> dict[str, Raw] | None:
    """Return the fields of an object, each as its JSON text, or None if it is no object."""
    if value is None or not value:
        return None
    fields = decode_fields(value)
    if not isinstance(fields, Malformed):
        return fields
    found = read(value)
    return read_fields_leniently(found) if isinstance(found, dict) else None


def read_fields_leniently(value: dict[str, Json]) -> dict[str, Raw]:
    """Return the fields of an object from the lenient reader, in the form of the strict one."""
    return {key.encode("utf-8", "replace").decode(): _json.raw(inner) for key, inner in value.items()}


def read_object(value: Raw, place: Place, where: str, deviate: Deviate) -> dict[str, Raw] | None:
    """Return the fields of an object, which may stand alone in a list or as JSON text, or None."""
    fields = read_fields(value)
    if fields is None and bytes(value)[:1] in (b"[", b'"'):
        found = straighten_object(read(value), place, where, deviate)
        fields = read_fields_leniently(found) if found is not None else None
    return fields


def read_items(value: Raw | None) -> list[Raw] | None:
    """Return the items of a list, or None if it is no list."""
    if value is None or not value:
        return None
    if bytes(memoryview(value)[:1]) == b'"':  # a long text would be read to its end before it is found to be none
        return None
    items = decode_items(value)
    if not isinstance(items, Malformed):
        return items
    found = read(value)
    return [_json.raw(item) for item in found] if isinstance(found, list) else None


def delta_fields(frame: bytes) -> dict[str, Raw]:
    """Return the fields of a frame's delta, each as its JSON text."""
    found = decode_delta(frame)
    return {} if isinstance(found, Malformed) else found.delta


def keep(value: Raw) -> Raw:
    """Copy a field that outlives its frame, on one line, in clean UTF-8."""
    data = bytes(value)
    if data.isascii() and b"\n" not in data and b"\r" not in data:
        return Raw(data)
    return _json.embed(_json.raw_text(value))


def rest_of(fields: dict[str, Raw], *known: str) -> Native | None:
    """Return the unmodelled fields without nulls."""
    rest = {key: keep(value) for key, value in fields.items() if key not in known and bytes(value) != b"null"}
    return Native(NAME, rest) if rest else None


def own_fields(native: Native | None) -> dict[str, Raw]:
    """Return the fields that this protocol left in a native record."""
    return native.fields if native is not None and native.protocol == NAME else {}


def sent_id(id: str) -> str:
    """Return a call's id in the form that the API accepts (`^[a-zA-Z0-9_-]+$`)."""
    return shape_id(id, _LONGEST_ID, plain=True)


def thinking_of(reasoning: Reasoning | None) -> dict[str, Json] | None:
    """Return the plain `thinking` of a reasoning, or None if it has none."""
    if reasoning is None:
        return None
    if reasoning.effort == "none" or reasoning.budget == 0:
        return {"type": "disabled"}
    if reasoning.budget is not None and reasoning.budget > 0:
        return {"type": "enabled", "budget_tokens": reasoning.budget}
    return {"type": "adaptive"}
