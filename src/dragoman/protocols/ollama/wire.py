"""The JSON of Ollama's `/api/chat` that we read: minimal Structs for well-formed lines, and how odd ones fit in.

Spec: https://docs.ollama.com/api/chat (read 2026-11-21) and ollama's api/types.go. A line of `/api/generate` has its
text in `response` instead of `message`. Calls are whole; their arguments are kept as JSON text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.containers import Place, as_items, oddity_of
from dragoman.codec.delta_batch import narrowed, one
from dragoman.codec.parts.unread_arguments import is_blank, unread_arguments, unread_name
from dragoman.protocol.native_tools import ANY_NAME, SchemaRules
from dragoman.types import StopReason

#: Takes a deviation's code, its place and what was seen.
Deviate: TypeAlias = Callable[[str, str, object], None]

NAME: Final = "ollama-chat"
#: The server reads schemas into typed fields: no reference, and no schema that is true or false.
FORMS: Final = msgspec.structs.replace(ANY_NAME, schema=SchemaRules(references="none", is_objects=True))
NOTHING: Final = Raw(b"")
#: What a tool without declared arguments has.
EMPTY_SCHEMA: Final[dict[str, Json]] = {"type": "object", "properties": {}}

#: `done_reason` of the protocol ("load" and "unload": no generation was asked for).
REASONS: Final[dict[str, StopReason]] = {"stop": "stop", "length": "length", "load": "stop", "unload": "stop"}
#: Words of other servers that answer in this protocol.
FOREIGN_REASONS: Final[dict[str, StopReason]] = {
    "tool_calls": "tool_use", "tool_call": "tool_use", "tool_use": "tool_use", "function_call": "tool_use",
    "max_tokens": "length", "limit": "length", "content_filter": "content_filter", "eos": "stop", "end_turn": "stop",
}  # fmt: skip
#: Names of objects that a line is wrapped in.
ENVELOPES: Final = ("data", "result", "response", "body")
#: Keys of which one stands in each line of an answer.
HEADS: Final = frozenset({"model", "created_at", "done"})
_THINKING_FIELDS: Final = ("thinking", "reasoning", "reasoning_content")
_MESSAGE: Final = Place(marks=frozenset({"role", "content", "tool_calls", "images", *_THINKING_FIELDS}))
#: What belongs where in a line.
PLACES: Final = {"message": _MESSAGE, "delta": _MESSAGE}
_CALLED: Final = Place({"tool_calls": Place(is_list=True)})
#: Where nothing but an object belongs.
OBJECTS: Final = {"message": _CALLED, "delta": _CALLED}


class Function(msgspec.Struct, gc=False, omit_defaults=True):
    """`function` of a call. `parameters` is another spelling of `arguments`. Servers put the index 0 on all calls."""

    name: str | None = None
    arguments: Raw = NOTHING
    parameters: Raw = NOTHING
    index: int | None = None


class Call(msgspec.Struct, gc=False, omit_defaults=True):
    """An entry of `tool_calls`. `name`, `arguments` and `parameters` beside `function` are a flat form of it.

    `unread`: the unread key that may have arguments, `unread_name`: a name under another key. No wire can fill these.
    """

    id: str | None = None
    type: str | None = None
    function: Function | None = None
    name: str | None = None
    arguments: Raw = NOTHING
    parameters: Raw = NOTHING
    index: int | None = None
    unread: None = None
    unread_name: None = None


#: Fields of a call that are read.
_CALL_FIELDS: Final = frozenset(Call.__struct_fields__) - {"unread", "unread_name"}


class Answer(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """`message` of a line, its usual fields in the order of the wire."""

    role: Any = None
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[Call] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    images: list[str] | None = None


class Line(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """One line of a stream, or a whole response. `response` and `thinking` are those of `/api/generate`, `delta` is
    another name of `message`."""

    model: Any = None
    created_at: Any = None
    message: Answer | None = None
    done: bool | None = None
    error: Raw = NOTHING
    response: Raw = NOTHING
    thinking: str | None = None
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    delta: Answer | None = None
    logprobs: Raw = NOTHING
    total_duration: Raw = NOTHING
    load_duration: Raw = NOTHING
    prompt_eval_duration: Raw = NOTHING
    eval_duration: Raw = NOTHING


#: Fields of a line that are known and not modelled: they are kept as they are, and so is what no Struct knows.
NOT_MODELLED: Final = ("logprobs", "total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
MODELLED: Final = frozenset(Line.__struct_fields__).difference(NOT_MODELLED)
MODELLED_IN_MESSAGE: Final = frozenset(Answer.__struct_fields__)


class _Sender(msgspec.Struct, gc=False):
    role: Raw = NOTHING


class Head(msgspec.Struct, gc=False):
    """The first line's fields beside its answer, unchanged."""

    model: Raw = NOTHING
    created_at: Raw = NOTHING
    message: _Sender | None = None


def holds_more(line: Line) -> bool:
    """Return whether a line has known, unmodelled fields."""
    return (
        line.logprobs is not NOTHING
        or line.total_duration is not NOTHING
        or line.load_duration is not NOTHING
        or line.prompt_eval_duration is not NOTHING
        or line.eval_duration is not NOTHING
    )


def says_message_alone(line: Line) -> bool:
    """Return whether a line is not the last one, and has nothing beside its message."""
    return not line.done and line == Line(line.model, line.created_at, line.message, line.done)


decode_head: Final = _json.typed_decoder(Head)
decode_line: Final = _json.typed_decoder(Line)


def _line_of(fields: Mapping[str, Any]) -> Any:
    """Return a line whose message has these fields, and which says nothing else."""
    message = narrowed(Answer, {**fields, "role": ...}, is_bare=True)
    return narrowed(Line, {"model": ..., "created_at": ..., "done": bool, "message": message}, is_bare=True)


#: A line that lets text or thinking grow.
PlainLine: Final = _line_of({"content": str, "thinking": ...})
_FUNCTION: Final = narrowed(Function, {"name": str, "arguments": Raw, "index": ...}, is_bare=True)
_CALL: Final = narrowed(Call, {"id": ..., "type": ..., "function": _FUNCTION}, is_bare=True)
#: A line with a whole call.
CallLine: Final = _line_of({"content": Literal[""], "tool_calls": one(_CALL)})
decode_plain_line: Final[Callable[[bytes], Any]] = _json.typed_decoder(PlainLine)
decode_call_line: Final[Callable[[bytes], Any]] = _json.typed_decoder(CallLine)
#: A line's fields by name, each as its JSON text.
decode_fields: Final = _json.typed_decoder(dict[str, Raw])


class _OpenLine(msgspec.Struct, gc=False):
    message: dict[str, Raw] | None = None


_decode_open: Final = _json.typed_decoder(_OpenLine)


def decode_known(data: bytes) -> Line | Malformed:
    """Decode a line without the fields that no Struct has."""
    if isinstance(fields := decode_fields(data), Malformed) or isinstance(inner := _decode_open(data), Malformed):
        return Malformed("it is no line")
    known: dict[str, Json] = {key: value for key, value in fields.items() if key in Line.__struct_fields__}
    if inner.message is not None:
        known["message"] = {key: value for key, value in inner.message.items() if key in Answer.__struct_fields__}
    return decode_line(_json.encode(known))


# ---------------------------------------------------------------- what does not fit


def read_line_leniently(value: dict[str, Json], deviate: Deviate) -> Line:
    """Read a line field by field; a field of another type is a deviation."""
    line = Line(
        done=_read_flag_leniently(value.get("done"), deviate),
        error=_raw(value, "error"),
        response=_raw(value, "response"),
        thinking=_read_text_leniently(value.get("thinking"), "thinking", deviate),
        done_reason=_read_text_leniently(value.get("done_reason"), "done_reason", deviate),
        prompt_eval_count=_read_count_leniently(value.get("prompt_eval_count"), "prompt_eval_count", deviate),
        eval_count=_read_count_leniently(value.get("eval_count"), "eval_count", deviate),
    )
    message, delta = value.get("message"), value.get("delta")
    if isinstance(message, str):
        deviate("wrong-type", "message", "a string")
        message = {"content": message}
    if isinstance(message, dict):
        line.message = _read_answer_leniently(message, deviate)
    if isinstance(delta, dict):
        line.delta = _read_answer_leniently(delta, deviate)
    return line


def _read_answer_leniently(message: dict[str, Json], deviate: Deviate) -> Answer:
    answer = Answer(content=_read_text_leniently(message.get("content"), "message.content", deviate))
    for name in _THINKING_FIELDS:
        setattr(answer, name, _read_text_leniently(message.get(name), f"message.{name}", deviate))
    calls = message.get("tool_calls")
    if isinstance(calls, dict):
        deviate("wrong-type", "message.tool_calls", "an object")
        calls = as_items(calls)
    if calls and not isinstance(calls, list):
        deviate("wrong-type", "message.tool_calls", type(calls).__name__)
        calls = [calls]
    if isinstance(calls, list):
        answer.tool_calls = [
            _read_call_leniently(call, f"message.tool_calls[{number}]", deviate)
            if isinstance(call, dict)
            else with_unread(Call(), "tool_calls")
            for number, call in enumerate(calls)
            if isinstance(call, dict) or call
        ]
    images = message.get("images")
    if isinstance(images, list):
        answer.images = [image for image in images if isinstance(image, str)]
    return answer


def _read_call_leniently(call: dict[str, Json], where: str, deviate: Deviate) -> Call:
    function = call.get("function")
    if isinstance(function, str):
        deviate("wrong-type", f"{where}.function", "a string")
        if function.lstrip()[:1] == "{" or call.get("arguments") is None:  # text alone may be anything's
            return with_unread(Call(), "function")
        call = {"name": function} | call
    read = Call(
        id=_read_text_leniently(call.get("id"), f"{where}.id", deviate),
        type=_read_text_leniently(call.get("type"), f"{where}.type", deviate),
        function=Function(
            _read_name_leniently(function.get("name"), f"{where}.function.name", deviate),
            _raw(function, "arguments"),
            _raw(function, "parameters"),
            _read_count_leniently(function.get("index"), f"{where}.function.index", deviate, "odd-index"),
        )
        if isinstance(function, dict)
        else None,
        name=_read_name_leniently(call.get("name"), f"{where}.name", deviate),
        arguments=_raw(call, "arguments"),
        parameters=_raw(call, "parameters"),
        index=_read_count_leniently(call.get("index"), f"{where}.index", deviate, "odd-index"),
    )
    is_odd = function is not None and not isinstance(function, dict | str)
    return with_unread(read, "function" if is_odd else unread_in(call), call)


def with_unread(call: Call, key: str, entry: Json = None) -> Call:
    """Return the call with the unread keys that may have its arguments and its name."""
    told: Json = key
    named: Json = unread_name(entry, entry.get("function")) if isinstance(entry, dict) else ""
    call.unread, call.unread_name = told, named
    return call


def is_nameless(call: Call) -> bool:
    """Return whether an entry has no name in its place."""
    return not (call.name or (call.function is not None and call.function.name))


def says_nothing(call: Call) -> bool:
    """Return whether an entry has no arguments, or blank ones, in their place."""
    function = call.function
    return is_blank(NOTHING if function is None else function.arguments)


def unread_in(call: dict[str, Json]) -> str:
    """Return the unread key of an entry that may have its arguments, or ""."""
    function = call.get("function")
    inner = unread_arguments(function, *Function.__struct_fields__) if isinstance(function, dict) else ""
    return inner or unread_arguments(call, *_CALL_FIELDS)


def _read_text_leniently(value: Json, where: str, deviate: Deviate) -> str | None:
    """Return text; a list of text parts is joined, a number is its digits."""
    if value is None or isinstance(value, str):
        return value
    deviate(oddity_of(value), where, type(value).__name__)
    if isinstance(value, dict | list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in as_items(value)]
        texts = [part for part in parts if isinstance(part, str)]
        return "".join(texts) if texts or isinstance(value, list) else None
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _read_name_leniently(value: Json, where: str, deviate: Deviate) -> str | None:
    """Return the name of a tool, which is a string."""
    if value is not None and not isinstance(value, str):
        deviate("wrong-type", where, type(value).__name__)
    return value if isinstance(value, str) else None


def _read_flag_leniently(value: Json, deviate: Deviate) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    deviate("wrong-type", "done", type(value).__name__)
    return value == 1 or (isinstance(value, str) and value.strip().lower() == "true")


def _read_count_leniently(value: Json, where: str, deviate: Deviate, code: str = "usage-place") -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    deviate(code, where, type(value).__name__)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 19 else None


def _raw(fields: dict[str, Json], name: str) -> Raw:
    return Raw(_json.to_lenient_text(fields[name]).encode()) if name in fields else NOTHING
