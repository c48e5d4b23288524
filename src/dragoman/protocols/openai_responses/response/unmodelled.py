"""The head of a response object, and its unmodelled fields, which come back in the same protocol."""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.containers import Place, straighten
from dragoman.codec.parts import torn_frames
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.open_parts import OpenCall
from dragoman.codec.parts.unread_arguments import note_astray, note_unread, tell_unread, unread_arguments
from dragoman.protocols.openai_responses.response.usage import rest_of_usage
from dragoman.protocols.openai_responses.wire import PLACES, RESPONSE, START_EVENTS, STATUS_OF_EVENT

#: Fields of a response object that are ours, or repeat the request.
_MODELLED: Final = frozenset(
    {"id", "object", "created_at", "status", "error", "incomplete_details", "model", "output", "usage",
     "instructions", "tools", "output_text"}
)  # fmt: skip

#: Fields of an event that are read, whatever it is, and those of some. Of an event about arguments the call knows what
#: is not read.
_READ: Final = frozenset({"type", "response", "logprobs", "part", "annotation", "text", "sequence_number"})
_READ_OF: Final = {
    kind: _READ | more
    for kind, more in (
        ("response.output_item.added", {"item"}),
        ("response.output_item.done", {"item"}),
        ("response.function_call_arguments.done", {"arguments"}),
        ("response.custom_tool_call_input.done", {"input", "arguments"}),
        ("response.mcp_call_arguments.done", {"arguments"}),
    )
}
_READ_OF_DELTA: Final = _READ | {"delta"}
#: Fields that name what an event belongs to. A number or a text in one is no call.
_LABELS: Final = frozenset({"output_index", "item_id", "call_id", "content_index", "summary_index"})
#: The first events of a stream, and the last.
_EDGES: Final = frozenset({*START_EVENTS, *STATUS_OF_EVENT})
_ALL_PLACES: Final = PLACES | RESPONSE
_LISTED: Final = {"output": Place(is_list=True)}
#: Where nothing but an object belongs.
_OBJECTS: Final = {"item": Place(), "response": Place(_LISTED), **_LISTED}
#: Keys under which objects and lists stand.
_PLACED: Final = frozenset({*_ALL_PLACES, "item", "response", "output"})
_OTHERS: Final = _PLACED - {"item"}

#: What the response repeats of the request, when the request did not say it.
DEFAULTS: Final[dict[str, Json]] = {
    "instructions": None, "max_output_tokens": None, "metadata": {}, "parallel_tool_calls": True,
    "previous_response_id": None, "reasoning": {"effort": None, "summary": None}, "store": False,
    "temperature": None, "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": None,
    "truncation": "disabled", "user": None,
}  # fmt: skip
#: Fields of a response in which no call stands that nobody reads.
OF_RESPONSE: Final = _MODELLED.union(
    DEFAULTS,
    ("prompt", "conversation", "moderation", "content_filters", "billing", "background", "completed_at",
     "frequency_penalty", "max_tool_calls", "presence_penalty", "prompt_cache_key", "prompt_cache_retention",
     "safety_identifier", "service_tier", "top_logprobs"),
)  # fmt: skip


def kept_fields(response: dict[str, Json]) -> dict[str, Raw]:
    """Return a response's unmodelled fields, with those of its usage that `Usage` does not have."""
    fields = {key: _json.raw(value) for key, value in response.items() if key not in _MODELLED and value is not None}
    usage = response.get("usage")
    rest = rest_of_usage(usage) if isinstance(usage, dict) else None
    if rest:
        fields["usage"] = _json.raw(rest)
    return fields


def created_at(response: dict[str, Json]) -> int | None:
    """Return when a response was created, in Unix seconds, or None."""
    created = response.get("created_at")
    is_time = isinstance(created, int | float) and not isinstance(created, bool) and 0 <= created < 1e11
    return int(created) if created is not None and is_time else None


def straightened(value: dict[str, Json], data: bytes, assembly: Assembly) -> tuple[dict[str, Json], bytes]:
    """Return an event with its objects and lists normalised, and its text.

    What cannot be read may have been part of any open call.
    """
    item = value.get("item")
    if _PLACED.isdisjoint(value) or (type(item) is dict and "content" not in item and _OTHERS.isdisjoint(value)):
        return value, data  # as most are
    has_item = str(value.get("type")).startswith("response.output_item.")  # which may stand under `output`
    straight = straighten(value, PLACES if has_item else _ALL_PLACES, assembly.deviate)
    torn_frames.check_places(assembly, straight, _OBJECTS)
    return straight, data if straight is value else _json.encode(straight)


def response_of(event: dict[str, Json], kind: str, assembly: Assembly) -> dict[str, Json]:
    """Return the response object of an event; the event itself if it has none."""
    response = event.get("response")
    if isinstance(response, dict):
        note_astray(assembly, event)
        return response
    assembly.deviate("missing-field", "response", kind)
    return event


def tell_foreign(kind: str, event: dict[str, Json], assembly: Assembly) -> None:
    """Name an item in an event that has none, and possible arguments of a call that has none."""
    look_around(event, kind, assembly)
    if isinstance(event.get("item"), dict) and not kind.startswith("response.output_item."):
        tell_unread(assembly, {"item": event["item"]}, kind)


def note_whole(
    call: OpenCall, fields: dict[str, Json], where: str, assembly: Assembly, *, known: tuple[str, ...]
) -> None:
    """Name what a whole item lacks of its call: clients read no other event of it. Record its possible arguments and
    name.

    Args:
        known: the keys of its arguments that are read.
    """
    if call.is_open():
        note_unread(call, fields, *known)
    elif call.arguments == "{}" and unread_arguments(fields, *known):
        assembly.contradict(call, where)
    if call.name and not isinstance(fields.get("name", ""), str | None):
        assembly.contradict(call, f"{where}.name")
    for name in ("type", "call_id", "name", known[-1]):
        if (value := fields.get(name)) is None:
            assembly.deviate("missing-field", f"{where}.{name}")
        elif not isinstance(value, str):
            assembly.deviate("wrong-type", f"{where}.{name}", type(value).__name__)


def look_around(event: dict[str, Json], kind: str, assembly: Assembly) -> None:
    """Record unread fields of an event while a call has no arguments: they may be its own. In the first and the last
    event they may be all of a call.
    """
    is_edge = kind in _EDGES and isinstance(event.get("response"), dict)
    if assembly.phase == "open" and (is_edge or assembly.calls.may_lack()):
        read = _READ_OF_DELTA if kind.endswith(".delta") else _READ_OF.get(kind, _READ)
        if kind.startswith("response.output_item.") and "item" not in event:
            read |= {"output"}
        rest = {
            key: value
            for key, value in event.items()
            if key not in read and not (key in _LABELS and type(value) in (int, str))
        }
        if rest:
            tell_unread(assembly, rest, kind)
        item = event.get("item")
        if isinstance(item, dict) and item.get("type") == "message":
            own = item if kind.endswith(".added") else {key: item[key] for key in item.keys() - {"content"}}
            tell_unread(assembly, own, f"{kind}.item")


def look_in_response(response: dict[str, Json], assembly: Assembly) -> None:
    """Name the unread fields of a response that may be the answer, or calls."""
    if not response.keys() <= OF_RESPONSE:
        tell_unread(assembly, {key: value for key, value in response.items() if key not in OF_RESPONSE}, "response")


def note_beside(call: OpenCall, event: dict[str, Json], kind: str, assembly: Assembly) -> None:
    """Record what stands beside a call's item in its event: it is its arguments if the item has none."""
    note_unread(call, {key: event[key] for key in ("arguments", "input", "parameters") if key in event})
    look_around(event, kind, assembly)
