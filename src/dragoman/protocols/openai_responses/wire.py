"""The parts of OpenAI Responses that are read, and the tables of its words.

Specification: https://platform.openai.com/docs/api-reference/responses and …/responses-streaming (read 2026-11-21).
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.containers import Place as Container
from dragoman.codec.framing.body import Deviate
from dragoman.codec.nan import kept, tells_nan
from dragoman.types import Native, ProtocolName, StopReason

NAME: Final[ProtocolName] = "openai-responses"
#: The native type of thinking that stood in `content`, not in a summary.
CONTENT_TYPE: Final = Raw(b'"reasoning_text"')
#: The type of an item in which one of Codex' agents tells another what to do, or what it found.
AGENT: Final = "agent_message"


class PlainDelta(msgspec.Struct, gc=False):
    """The fields of a plain delta event, in the order of the wire. The index is -1 if absent; of other events only
    `type` is used.

    It does not fit an event with an `error`, arguments or a call beside.
    """

    type: str = ""
    item_id: str = ""
    output_index: int = -1
    content_index: int = 0
    delta: str = ""
    call_id: str = ""
    logprobs: tuple[()] | None = None
    error: None = None
    arguments: None = None
    args: None = None
    input: None = None
    function_call: None = None
    tool_calls: None = None
    item: None = None


class EventPlace(msgspec.Struct, gc=False):
    """The place of an event, and its delta; the index is -1 if absent."""

    output_index: int = -1
    content_index: int = 0
    summary_index: int = 0
    item_id: str = ""
    call_id: str = ""
    delta: str = ""


decode_delta = _json.typed_decoder(PlainDelta)
_decode_fields = _json.typed_decoder(dict[str, Raw])
_decode_items = _json.typed_decoder(list[Raw])

TEXT_DELTA: Final = "response.output_text.delta"
ARGUMENTS_DELTA: Final = "response.function_call_arguments.delta"
#: Events that tell of calls.
CALL_EVENTS: Final = (
    b"response.output_item.added", b"response.output_item.done", b"response.function_call_arguments.delta",
    b"response.function_call_arguments.done", b"response.custom_tool_call_input.delta",
    b"response.custom_tool_call_input.done",
)  # fmt: skip

ItemKind: TypeAlias = Literal["message", "function_call", "custom_tool_call", "reasoning", "opaque"]
#: Item fields that dragoman models; all others are kept as native fields.
MODELLED: Final = frozenset(
    {"type", "role", "status", "content", "summary", "encrypted_content", "call_id", "name", "arguments", "input",
     "parsed_arguments"}
)  # fmt: skip

#: incomplete_details.reason → ours.
INCOMPLETE_REASONS: Final[dict[str, StopReason]] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "length": "length",
    "content_filter": "content_filter",
}

#: Further reasons of a response that is incomplete, which other protocols do not have.
CUT_SHORT: Final = ("max_messages", "steered")
#: The status of a response that goes on in the background.
RUNNING: Final = ("queued", "in_progress")
#: All that tells why a response stopped.
REASONS: Final = frozenset({"completed", *INCOMPLETE_REASONS, *CUT_SHORT, *RUNNING})

#: Events of the specification whose items say the same when they are done; those of hosted items are written live.
SILENT_EVENTS: Final = (
    "response.queued", "response.audio.", "response.code_interpreter_call", "response.file_search_call.",
    "response.web_search_call.", "response.image_generation_call.", "response.mcp_call", "response.mcp_list_tools.",
    "response.shell_call", "response.local_shell_call", "response.apply_patch_call", "response.computer_call",
    "response.tool_search_call", "response.compaction", "response.steer", "response.reasoning_part.added",
    "response.reasoning_summary_part.added", "keepalive", "ping", "response.keepalive",
)  # fmt: skip


#: Events that begin a response, and those that end it with the status that they tell.
STATUS_OF_EVENT: Final[dict[str, str]] = {
    "response.completed": "completed", "response.done": "completed", "response.incomplete": "incomplete",
    "response.failed": "failed", "response.cancelled": "cancelled", "response.canceled": "cancelled",
}  # fmt: skip
START_EVENTS: Final = ("response.created", "response.in_progress", "response.queued")
#: What belongs where in an event, and in a response.
_ITEM: Final = Container(
    {"content": Container(is_list=True, marks=frozenset({"type", "text"}))},
    marks=frozenset({"type", "id", "call_id", "name", "arguments", "content", "summary"}),
)
_OUTPUT: Final = Container(_ITEM.inner, is_list=True, marks=_ITEM.marks)
RESPONSE: Final = {"output": _OUTPUT}
PLACES: Final = {
    "item": _ITEM,
    "output": _ITEM,
    "response": Container(RESPONSE, marks=frozenset({"output", "id", "status"})),
}


def ignore(code: str, where: str, seen: str) -> None:
    """Ignore a deviation."""


#: Tools that xAI runs itself and tells of as custom calls (https://docs.x.ai/docs/guides/tools/overview).
_RUN_BY_XAI: Final = frozenset({
    "browse_page", "view_image", "view_x_video", "web_search", "web_search_with_snippets", "x_keyword_search",
    "x_semantic_search", "x_thread_fetch", "x_user_search",
})  # fmt: skip


def item_kind(item: dict[str, Json], deviate: Deviate, where: str, *, offered: frozenset[str]) -> ItemKind:
    """Return the kind of an output item, by its fields if it has no `type`. `offered`: names of the client's tools."""
    kind, name = item.get("type"), item.get("name")
    if kind == "custom_tool_call" and isinstance(name, str) and name in _RUN_BY_XAI and name not in offered:
        return "opaque"
    if kind in ("message", "function_call", "custom_tool_call", "reasoning"):
        return kind  # type: ignore[no-any-return]
    if isinstance(kind, str) and kind and kind not in ("function", "tool_call", "tool_use"):
        return "opaque"
    deviate("missing-type", where, str(kind or ""))
    if "arguments" in item or "call_id" in item:
        return "function_call"
    if "input" in item:
        return "custom_tool_call"
    return "reasoning" if "summary" in item or "encrypted_content" in item else "message"


def native_fields(item: dict[str, Json], id: str | None = None) -> dict[str, Raw]:
    """Return the unmodelled fields of an item."""
    return {
        key: kept(value)
        for key, value in item.items()
        if key not in MODELLED and value is not None and not (key == "id" and value == id)
    }


def make_native(fields: dict[str, Raw]) -> Native | None:
    """Return native fields of this protocol, or None."""
    return Native(NAME, fields) if fields else None


@final
class Place:
    """The place of a value in a frame, whose text is copied unchanged: number forms and key order survive.

    Its surroundings are read once, however many of its members are requested.

    Attributes:
        frame: the whole of it.
    """

    __slots__ = ("_around", "_members", "_step", "_text", "frame")

    def __init__(self, frame: bytes, around: Place | None = None, step: str | int = "") -> None:
        """Create it. `around`: the place of what contains the value under `step`; None: the frame."""
        self.frame = frame
        self._around, self._step = around, step
        self._text: Raw | None = Raw(frame) if around is None else None
        self._members: Any = None

    def inner(self, *steps: str | int) -> Place:
        """Return the place of what stands under keys and indices in the value."""
        place = self
        for step in steps:
            place = Place(self.frame, place, step)
        return place

    def text(self, fallback: Json) -> Raw:
        """Return the value's JSON text, copied out of its frame; that of a fallback if it cannot be found."""
        found = self._found()
        return _json.raw(fallback) if found is None else Raw(bytes(found))

    def _found(self) -> Raw | None:
        if self._around is not None:
            self._text, self._around = self._around._member(self._step), None
        return self._text

    def _member(self, step: str | int) -> Raw | None:
        if self._members is None:
            text = self._found() or Raw(b"")
            self._members = _decode_fields(text) if isinstance(step, str) else _decode_items(text)
        try:
            member: Raw = self._members[step]
        except (KeyError, IndexError, TypeError):  # it is no JSON, or not what the reader of broken JSON made of it
            return None
        return member


def name_of(event: dict[str, Json]) -> str:
    """Return the name of an event's call, or ""."""
    item = event.get("item", event)
    name = item.get("name") if isinstance(item, dict) else None
    return name if isinstance(name, str) else ""


def argument_text(fields: dict[str, Json], name: str, place: Place, deviate: Deviate) -> str:
    """Return the argument text under a key of fields at a place of a frame; of an object its own text."""
    value = fields.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    deviate("arguments-type", name, type(value).__name__)
    text = _json.to_lenient_text(value)
    is_json = _json.is_json(text)  # NaN stays a word, and is refused where the call is settled
    return _json.raw_text(place.inner(name).text(value)) if is_json else text


#: Levels of a text that stands in lists and objects.
_MOST_LEVELS: Final = 100


def text_of(value: Json, levels: int = _MOST_LEVELS) -> str:
    """Return text from a string or from an object or list that contains some, within so many levels, or ""."""
    if isinstance(value, str):
        return value
    if not levels:
        return ""
    if isinstance(value, dict):
        return next((text_of(value[key], levels - 1) for key in ("text", "content", "refusal") if value.get(key)), "")
    return "".join(text_of(item, levels - 1) for item in value) if isinstance(value, list) else ""


def as_list(value: Json) -> list[Json]:
    """Return a list; another value alone in one, nothing as none."""
    if isinstance(value, list):
        return value
    return [] if value is None or value == "" else [value]


#: Fields of the delta of a text.
PLACED_FIELDS: Final = frozenset({
    "content_index", "delta", "item_id", "logprobs", "obfuscation", "output_index", "response_id", "sequence_number",
    "summary_index", "type",
})  # fmt: skip


def read_place(fields: dict[str, Json], deviate: Deviate) -> EventPlace:
    """Return the place of an event; fields of another type are read if possible."""
    get = fields.get
    index, id, delta = get("output_index", -1), get("item_id", ""), get("delta", "")
    place = EventPlace()
    place.output_index = (
        index if type(index) is int else _read_index_leniently(index, -1, "output_index", deviate=deviate)
    )
    for name in ("content_index", "summary_index"):
        value = get(name, 0)
        if value != 0:
            setattr(
                place, name, value if type(value) is int else _read_index_leniently(value, 0, name, deviate=deviate)
            )
    place.item_id = id if isinstance(id, str) else ""
    call_id = get("call_id")
    place.call_id = call_id if isinstance(call_id, str) else ""
    if isinstance(delta, str):
        place.delta = delta
    elif delta is not None:
        deviate("wrong-type", "delta", type(delta).__name__)
        place.delta = text_of(delta)
    if "delta" not in fields and isinstance(text := get("text"), str) and str(get("type")).endswith("_text.delta"):
        deviate("sibling-key", "delta", "text")
        place.delta = text
    return place


def _read_index_leniently(value: Json, default: int, name: str, *, deviate: Deviate) -> int:
    if value is None:
        return default
    deviate("wrong-type", name, type(value).__name__)
    if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 12:
        return int(value)
    return default


def place_of_text(name: str, event: EventPlace) -> tuple[tuple[str, int], ItemKind]:
    """Return the group of a text event, from its name: reasoning has many."""
    if name in ("output_text", "text"):
        return ("text", event.content_index), "message"
    if name == "refusal":
        return ("refusal", event.content_index), "message"
    if name.startswith("reasoning_summary"):
        return ("summary", event.summary_index), "reasoning"
    if name.startswith(("reasoning", "thinking")):
        return ("reasoning", event.content_index), "reasoning"
    return ("", 0), "message"


def status_of(value: dict[str, Json]) -> str:
    """Return the status of a response or an item; without one it is complete."""
    status = value.get("status")
    return status if isinstance(status, str) and status else "completed"


def unproven(item: Json, offered: frozenset[str]) -> Json:
    """Return an output item of a running response: a call that does not say that it is complete is not known to be."""
    if not isinstance(item, dict) or item.get("status") == "completed":
        return item
    is_call = item_kind(item, ignore, "", offered=offered) in ("function_call", "custom_tool_call")
    return item | {"status": "incomplete"} if is_call else item


def is_response(value: dict[str, Json]) -> bool:
    """Return whether an object is a response, not an event about one."""
    if value.get("object") == "response":
        return True
    is_event = "output_index" in value or "item_id" in value
    return not is_event and isinstance(value.get("output"), list) and not isinstance(value.get("type"), str)


def holds_refusal(output: list[Json]) -> bool:
    """Return whether a message among these items refuses."""
    contents = [item.get("content") for item in output if isinstance(item, dict) and item.get("type") == "message"]
    return any(
        isinstance(part, dict) and part.get("type") == "refusal"
        for content in contents
        if isinstance(content, list)
        for part in content
    )


def read_leniently(data: bytes) -> Json | Malformed:
    """Read a frame that is not strictly JSON. Only a delta may end in a lone surrogate: the next one goes on."""
    value = _json.decode_lenient(data)
    try:
        if isinstance(value, dict):
            return {key: inner if key == "delta" else _json.mended(inner) for key, inner in value.items()}
        return value
    except RecursionError:
        return Malformed("it is nested too deep")


def oddity(data: bytes) -> tuple[str, str]:
    """Return why a frame took the lenient reader."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return "invalid-utf8", "body"
    if rb"\ud" in data.lower():
        return "lone-surrogate", "body"
    return ("wrong-type" if tells_nan(data) else "control-character"), "body"
