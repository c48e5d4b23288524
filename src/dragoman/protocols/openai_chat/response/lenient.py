"""Read chunks that do not fit the Structs of `wire.py` field by field into them; each oddity is a deviation."""

from __future__ import annotations

from typing import Final, TypeVar

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.containers import Place, numbered_items, says_nothing, straighten
from dragoman.codec.errors.error_body import holds_error
from dragoman.codec.framing.body import TooLarge
from dragoman.codec.framing.event_stream import before_marker
from dragoman.codec.framing.large_frames import look_for_few
from dragoman.codec.nan import tells_nan, without_nan
from dragoman.codec.parts import torn_frames
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.unread_arguments import tell_unread_event
from dragoman.protocols.openai_chat.wire import (
    ENVELOPES,
    NOTHING,
    CallPiece,
    Choice,
    Chunk,
    Delta,
    Deviate,
    FunctionPiece,
    texts_in,
)

#: The largest `n` of a request (https://platform.openai.com/docs/api-reference/chat/create).
_MOST_CHOICES: Final = 128
#: At a large chunk, before all its choices are read.
few_choices: Final = look_for_few(_MOST_CHOICES, "choices")
_DEEPEST_ENVELOPE: Final = 3
_MESSAGE: Final = Place(
    marks=frozenset({"role", "content", "refusal", "tool_calls", "function_call", "reasoning_content", "reasoning"})
)
#: What belongs where in a chunk or a response.
PLACES: Final = {"choices": Place({"delta": _MESSAGE, "message": _MESSAGE}, is_list=True)}
_CALLED: Final = Place({"tool_calls": Place(is_list=True)})
#: Where nothing but an object belongs.
_OBJECTS: Final = {"choices": Place({"delta": _CALLED, "message": _CALLED}, is_list=True)}


def straighten_chunk(value: dict[str, Json], assembly: Assembly) -> dict[str, Json]:
    """Return a chunk with its objects and lists normalised. What cannot be read may have been part of any open call."""
    value = straighten(value, PLACES, assembly.deviate)
    torn_frames.check_places(assembly, value, _OBJECTS)
    choices = value.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and isinstance(choice.get("text"), dict):
            torn_frames.lose_open_calls(assembly, "choices", "expected a text")
            tell_unread_event(assembly, choice["text"], "choices.text")
    return value


def numbered(choices: list[Choice], assembly: Assembly) -> list[Choice]:
    """Return choices of one chunk with their indices, without a message that is its delta again.

    Those without an index are one answer in parts; but if several have calls, each is another answer.

    Raises:
        TooLarge: there are more than a request can ask for. Each is judged by all of the chunk.
    """
    if len(choices) > _MOST_CHOICES:
        raise TooLarge(f"expected at most {_MOST_CHOICES} choices at once, got {len(choices)}")
    if len(choices) > 1:
        said = [choice.delta or choice.message or Delta() for choice in choices]
        if sum(bool(one.tool_calls or one.function_call) for one in said) > 1:
            for place, choice in enumerate(choices):
                choice.index = place if choice.index is None else choice.index
    for choice in choices:
        if choice.message is not None and choice.message == choice.delta:  # quirk: delta-also-as-message
            assembly.deviate("duplicate-final", "choices[0].message")
            choice.message = None
    return choices


def error_in(value: Json, assembly: Assembly) -> Json:
    """Return the error in a field, or None."""
    if value is None or holds_error(value):
        return value
    assembly.deviate("empty-error", "error")
    return None


def unwrap(value: dict[str, Json], deviate: Deviate) -> dict[str, Json]:
    """Return the response inside of `{"data": {"choices": …}}` and similar objects."""
    for _ in range(_DEEPEST_ENVELOPE):
        if "choices" in value or value.keys().isdisjoint(ENVELOPES):
            break
        key = next((key for key in ENVELOPES if _holds_response(value.get(key))), None)
        if key is None:
            break
        deviate("envelope", key, "")
        value = value[key]
    return value


def _holds_response(value: Json) -> bool:
    return isinstance(value, dict) and not value.keys().isdisjoint({"choices", *ENVELOPES})


def read_chunk_leniently(value: dict[str, Json], deviate: Deviate) -> Chunk:
    """Read a chunk field by field."""
    choices = value.get("choices")
    if isinstance(choices, dict):
        deviate("wrong-type", "choices", "an object")
        choices = [choices]
    usage, error, groq = [_clean(value.get(key)) for key in ("usage", "error", "x_groq")]
    chunk = Chunk(usage=usage, error=error, x_groq=groq)
    if isinstance(choices, list):
        chunk.choices = [
            _read_choice_leniently(choice, deviate, f"choices[{number}]")
            for number, choice in enumerate(choices)
            if isinstance(choice, dict)
        ]
    elif choices is not None:
        deviate("wrong-type", "choices", type(choices).__name__)
    return chunk


def join_surrogates(chunk: Chunk, assembly: Assembly) -> None:
    """Join the surrogate halves in the texts of a leniently read chunk."""
    clean = assembly.lenient_text
    for choice in chunk.choices or ():
        for delta in (choice.delta, choice.message):
            if delta is not None:
                delta.reasoning_content = delta.reasoning_content and clean(delta.reasoning_content)
                delta.reasoning = delta.reasoning and clean(delta.reasoning)
                delta.content = delta.content and clean(delta.content)
                delta.refusal = delta.refusal and clean(delta.refusal)


def several_in(frame: bytes, problem: str, assembly: Assembly) -> list[bytes]:
    """Return the values of a frame that has several, or one and the end marker; nothing if it is neither.

    `problem`: why the frame is no JSON.
    """
    if last := before_marker(frame, assembly.deviate):  # an event that came alone
        return [last, b"[DONE]"]
    values = _json.split_values(frame.decode("utf-8", "replace"), problem)
    if isinstance(values, _json.Malformed):
        return []
    assembly.deviate("bare-json-line", "chunk", "several in one frame")
    return [inner.encode("utf-8", "replace") for inner in values]


def say_why_lenient(text: bytes, assembly: Assembly) -> None:
    """Report what the strict reader refused."""
    if "\ufffd" in text.decode("utf-8", "replace"):
        assembly.deviate("invalid-utf8", "chunk")
    elif min(text) < 0x20:
        assembly.deviate("control-character", "chunk")
    elif tells_nan(text):
        assembly.deviate("wrong-type", "chunk", "NaN")


def _read_choice_leniently(value: dict[str, Json], deviate: Deviate, where: str) -> Choice:
    filters = value.get("content_filter_results")
    return Choice(
        index=_index(value.get("index"), deviate, f"{where}.index"),
        delta=_read_delta_leniently(value.get("delta"), deviate, f"{where}.delta"),
        finish_reason=_reason(value.get("finish_reason"), deviate, f"{where}.finish_reason"),
        message=_read_delta_leniently(value.get("message"), deviate, f"{where}.message"),
        text=_text(value.get("text"), deviate, f"{where}.text"),
        usage=_clean(value.get("usage")),
        error=_clean(value.get("error")),
        content_filter_results=NOTHING if filters is None else _json.raw(filters),
    )


def _read_delta_leniently(value: Json, deviate: Deviate, where: str) -> Delta | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        deviate("wrong-type", where, type(value).__name__)
        return Delta(content=value) if isinstance(value, str) else None
    delta = Delta(
        tool_calls=_read_calls_leniently(value.get("tool_calls"), deviate, f"{where}.tool_calls"),
        reasoning_content=_words(value.get("reasoning_content"), deviate, f"{where}.reasoning_content"),
        reasoning=_words(value.get("reasoning"), deviate, f"{where}.reasoning"),
        reasoning_text=_words(value.get("reasoning_text"), deviate, f"{where}.reasoning_text"),
        reasoning_opaque=_text(value.get("reasoning_opaque"), deviate, f"{where}.reasoning_opaque"),
        refusal=_words(value.get("refusal"), deviate, f"{where}.refusal"),
        thinking=_clean(value.get("thinking")),
        reasoning_details=_clean(value.get("reasoning_details")),
        audio=_clean(value.get("audio")),
        images=_clean(value.get("images")),
        extra_content=_clean(value.get("extra_content")),
        annotations=_clean(value.get("annotations")),
    )
    content = value.get("content")
    if isinstance(content, dict):
        content = numbered_items(content) or content
    if isinstance(content, list | dict):
        is_empty = says_nothing(content)
        deviate("wrong-type", where if is_empty else f"{where}.content", "no content" if is_empty else "parts")
        if isinstance(content, dict) and content and "type" not in content and not texts_in(content):
            delta.content = _json.to_text(content)  # quirk: content-as-any-object
        else:
            delta.content_parts = _clean(content if isinstance(content, list) else [content])
    else:
        delta.content = _text(content, deviate, f"{where}.content")
    legacy = value.get("function_call")
    if isinstance(legacy, dict):
        delta.function_call = _read_function_leniently(legacy, deviate, f"{where}.function_call")
    elif _is_said(legacy):
        deviate("wrong-type", f"{where}.function_call", type(legacy).__name__)
        delta.function_call = _unread(FunctionPiece(), "function_call")
    return delta


_Piece = TypeVar("_Piece", CallPiece, FunctionPiece)


def _unread(piece: _Piece, key: str) -> _Piece:
    """Return a piece of a call with content that is not read."""
    told: Json = key
    piece.unread = told
    return piece


def _is_said(value: Json) -> bool:
    """Return whether a value in place of a call says anything."""
    return value not in (None, "", "null", "[]", "{}") and value not in ([], {}) and value is not False


def _read_calls_leniently(value: Json, deviate: Deviate, where: str) -> list[CallPiece] | None:
    if isinstance(value, str):
        inner = _json.decode(value)
        deviate("wrong-type", where, "a string")
        if not isinstance(inner, list | dict) and _is_said(value.strip()):
            return [_unread(CallPiece(), "tool_calls")]
        value = inner if isinstance(inner, list | dict) else None
    if isinstance(value, dict):
        deviate("wrong-type", where, "an object")
        value = [value] if {"function", "id", "name"} & value.keys() else list(value.values())
    if not isinstance(value, list):
        return [_unread(CallPiece(), "tool_calls")] if _is_said(value) else None
    return [
        _read_call_leniently(call, deviate, f"{where}[{number}]")
        if isinstance(call, dict)
        else _unread(CallPiece(), "tool_calls")
        for number, call in enumerate(value)
        if isinstance(call, dict) or _is_said(call)
    ]


def _read_call_leniently(value: dict[str, Json], deviate: Deviate, where: str) -> CallPiece:
    function = value.get("function")
    if isinstance(function, str):
        deviate("wrong-type", f"{where}.function", "a string")
        # Text alone may be anything's; beside arguments it is the name that they are for.
        is_name = function.lstrip()[:1] != "{" and value.get("arguments") is not None
        function = {"name": function, "arguments": value["arguments"]} if is_name else {}
    piece = CallPiece(
        index=_index(value.get("index"), deviate, f"{where}.index"),
        function=_read_function_leniently(function, deviate, f"{where}.function")
        if isinstance(function, dict)
        else None,
        id=_text(value.get("id"), deviate, f"{where}.id"),
        type=_text(value.get("type"), deviate, f"{where}.type"),
        name=_name(value.get("name"), deviate, f"{where}.name"),
        arguments=_arguments(value.get("arguments"), deviate, f"{where}.arguments"),
        custom=_clean(value.get("custom")),
        extra_content=_clean(value.get("extra_content")),
    )
    is_odd = value.get("function") not in (None, {}) and not (isinstance(function, dict) and function)
    return _unread(piece, "function") if is_odd else piece


def _read_function_leniently(value: dict[str, Json], deviate: Deviate, where: str) -> FunctionPiece:
    parameters, arguments = value.get("parameters"), value.get("arguments")
    return FunctionPiece(
        _arguments(arguments, deviate, f"{where}.arguments"),
        _name(value.get("name"), deviate, f"{where}.name"),
        NOTHING if parameters is None else Raw(_json.to_lenient_text(parameters).encode()),
    )


def _arguments(value: Json, deviate: Deviate, where: str) -> str | None:
    """Return arguments as text; a value becomes its JSON text."""
    if value is None or isinstance(value, str):
        return value
    deviate("arguments-type", where, type(value).__name__)
    return _json.to_lenient_text(value)


def _text(value: Json, deviate: Deviate, where: str) -> str | None:
    """Return a string; numbers count as their digits, all else as absent."""
    if value is None or isinstance(value, str):
        return value
    deviate("wrong-type", where, type(value).__name__)
    return None if isinstance(value, bool | list | dict) else _json.to_text(value)


def _reason(value: Json, deviate: Deviate, where: str) -> str | None:
    """Return a stop reason; an object names it under `type`."""
    # quirk: finish-reason-as-object
    kind = value.get("type") if isinstance(value, dict) else None
    if isinstance(kind, str):
        deviate("wrong-type", where, "an object")
        return kind
    return _text(value, deviate, where)


def _name(value: Json, deviate: Deviate, where: str) -> str | None:
    """Return the name of a tool, which is a string."""
    if value is not None and not isinstance(value, str):
        deviate("wrong-type", where, type(value).__name__)
    return value if isinstance(value, str) else None


def _words(value: Json, deviate: Deviate, where: str) -> str | None:
    """Return a text; a list of parts or an object counts as the texts in it."""
    return "".join(texts_in(value)) if isinstance(value, list | dict) else _text(value, deviate, where)


def _index(value: Json, deviate: Deviate, where: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        deviate("odd-index", where, value)
        return int(value) if value.strip().isdecimal() and len(value) < 10 else None
    deviate("wrong-type", where, type(value).__name__)
    return None


def _clean(value: Json) -> Json:
    """Return a value in the form of the strict reader."""
    return None if value is None else without_nan(value)
