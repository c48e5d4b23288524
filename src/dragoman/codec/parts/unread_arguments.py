"""Arguments and names under unknown keys: a call with such arguments is not run without any, and one with such a name
is not continued by another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.json_fields import Fields
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.call_shapes import (
    ASTRAY,
    is_astray,
    is_beside,
    is_call,
    is_spelling,
    may_name_calls,
    names_arguments,
    plain,
    told_calls,
)
from dragoman.codec.parts.open_parts import OpenCall
from dragoman.codec.parts.settled_arguments import is_placeholder
from dragoman.deviations import clip

#: Keys that most events about a call have; a number or a plain text under one is no arguments.
_LABELS: Final = frozenset({
    "call_id", "id", "index", "item_id", "name", "object", "output_index", "sequence_number", "status", "type",
})  # fmt: skip
#: Keys under which the arguments of a piece stand, deeper.
_AROUND: Final = frozenset({"custom", "function", "tool_calls", "function_call"})
#: So many bytes of arguments may be `{}`, `null` or a text of these, with white space.
_MOST_FRAMES: Final = 32  # that are kept of an answer that has said nothing
_LONGEST_FRAME: Final = 16 * 1024
_BLANK: Final = 16
#: How a call's name is called here and there, in small letters without `_` and `-`.
_NAMES: Final = frozenset({"fn", "func", "functionname", "name", "tool", "toolname"})
#: Keys of what an answer says, in small letters without `_` and `-`.
_ANSWERS: Final = frozenset({
    "content", "contentblock", "contents", "delta", "deltas", "message", "parts", "reasoningcontent", "text",
    "thinking",
})  # fmt: skip
#: Fields of one object that are told of again, at each call of its frame.
_MOST_TOLD: Final = 64
_Label: TypeAlias = str | int | float | bool | None
#: What the JSON text of a call has one of in it, in small letters. To look for each searches memory; a pattern for all
#: holds the interpreter for 60 times as long.
_TOLD: Final = (b"arg", b"function", b"input", b"param", b"partial", b"tool")


def tell_unread(assembly: Assembly, fields: Mapping[str, Json], where: str) -> None:
    """Report unread fields that look like the answer, or like a call. Each open, incomplete call may be theirs, and
    fails.

    Args:
        fields: by name; a `Raw` is the field's JSON text.
    """
    if not fields:
        return  # as most often
    note_astray(assembly, fields)
    for key, name, said in _unread_in(fields):
        if name in _ANSWERS or name.isdecimal():
            assembly.deviate("unread-field", f"{where}.{clip(key)}")
            if name != "message" or not isinstance(said, str):  # which may be a status in words
                ending = assembly.ending
                ending.unreadable = ending.unreadable or f"what looks like the answer at {where}.{clip(key)}"
        if is_call(name, said):
            lose_unread(assembly, f"{where}.{clip(key)}", told_calls(name, said))


def note_words(assembly: Assembly, fields: Mapping[str, Json], where: str) -> None:
    """Record words in a part of the answer under unknown keys. If nothing else comes, the answer is not empty."""
    if assembly.is_empty and not assembly.ending.unreadable and (key := unread_words(fields)):
        assembly.ending.unreadable = f"what may be the answer at {where}.{key}"


def note_frame(assembly: Assembly, frame: bytes) -> None:
    """Keep a frame with unknown content while nothing was said: if nothing is, the answer may be there."""
    kept = assembly.ending.odd_frames
    if not assembly.has_said and len(kept) < _MOST_FRAMES and len(frame) <= _LONGEST_FRAME:
        kept.append(frame)


def note_missing(assembly: Assembly, where: str) -> None:
    """Record that a piece came without text, and with something else: that may be the answer if no other text comes."""
    if not assembly.has_said:
        assembly.ending.unreadable = assembly.ending.unreadable or f"something else in place of {where}"


def unread_words(fields: Mapping[str, Json], *known: str) -> str:
    """Return the first key that has words and is neither known nor a label; "" if there is none."""
    said = (key for key, value in fields.items() if key not in known and key not in _LABELS and _is_words(value))
    return clip(next(said, ""))


def _is_words(value: Json) -> bool:
    """Return whether a value is a text of several words: padding, signatures and ids have no white space."""
    said = _decoded(value)
    return isinstance(said, str) and len(said.split(None, 1)) > 1


def note_astray(assembly: Assembly, fields: Mapping[str, Json]) -> None:
    """Record arguments in an object around calls, before the calls are read.

    They may be those of any call that comes without, so each of these fails; if one has left, the answer does.
    """
    for key in fields.keys() & ASTRAY if fields else ():
        if is_astray(key, _decoded(fields[key])):
            assembly.calls.has_astray = True
            if assembly.calls.has_bare:
                lose_unread(assembly, clip(key))


def note_late(assembly: Assembly, arguments: str) -> None:
    """Record arguments without a name behind the end of the response: a call that came without any lacks them."""
    ending = assembly.ending
    if assembly.phase == "ended" and assembly.calls.has_bare and not is_placeholder(arguments):
        ending.contradiction = ending.contradiction or "arguments came behind the end, and a tool call has none"


def telling(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields that `tell_unread` would report, decoded, for repeated use. Of very many, some."""
    found = {key: said for key, name, said in _unread_in(fields) if name in _ANSWERS or name.isdecimal()}
    calls = {key: said for key, name, said in _unread_in(fields) if is_call(name, said)}
    astray = {key: fields[key] for key in fields.keys() & ASTRAY}
    return astray | dict(islice(calls.items(), _MOST_TOLD)) | dict(islice(found.items(), _MOST_TOLD))


def is_unread(fields: Mapping[str, Json]) -> bool:
    """Return whether `tell_unread` would name any of these."""
    return any(name in _ANSWERS or is_call(name, said) for _, name, said in _unread_in(fields))


def whole_decoder(answer: Any, *known: str, labels: Iterable[str] = ()) -> Callable[[bytes], Any]:
    """Return a decoder of whole answers that are passed on unread. It refuses those with a field that `tell_unread`
    would name.

    Args:
        answer: the Struct.
        known: further fields that are no answer. Only if there are others, each is looked at.
        labels: such fields with one text or number each.
    """
    rest = [*((key, Raw, Raw()) for key in known), *((key, _Label, None) for key in labels)]
    usual = msgspec.defstruct("Usual", rest, bases=(answer,), forbid_unknown_fields=True, gc=False, kw_only=True)
    decode_usual, decode, read = map(_json.typed_decoder, (usual, answer, Fields))
    names = frozenset(usual.__struct_fields__).difference(labels)

    def decode_whole(body: bytes) -> Any:
        said = decode_usual(body)
        if not isinstance(said, Malformed) or isinstance(said := decode(body), Malformed):
            return said
        fields = read(body)
        if isinstance(fields, Malformed) or is_unread({key: fields[key] for key in fields.keys() - names}):
            return Malformed("an unread field")
        return said

    return decode_whole


def _unread_in(fields: Mapping[str, Json]) -> Iterator[tuple[str, str, Json]]:
    """Yield the fields that may be the answer or a call: key, plain key, value."""
    for key, value in fields.items():
        name = plain(key)
        if (name in _ANSWERS or name.isdecimal() or _may_call(name, value)) and (said := _decoded(value)):
            yield key, name, said


def tell_unknown(assembly: Assembly, event: Json, code: str, where: str, seen: str) -> None:
    """Report an event with nothing at its place, as `tell_unread` does, with its deviation."""
    assembly.deviate(code, where, seen)
    tell_unread_event(assembly, event, where)


def tell_unread_event(assembly: Assembly, event: Json, where: str) -> None:
    """Report an event of an unknown type, as `tell_unread` does."""
    if is_call(plain(where), event):
        lose_unread(assembly, where)


def lose_unread(assembly: Assembly, where: str, told: list[tuple[str, str, str]] | None = None) -> None:
    """Fail each open call, and one more, because something like a call, or a piece of one, is where none is read.

    Args:
        told: the calls there, if they are whole. If they are those of the answer, it is told again there, as a proxy
            does that sends the answer of its provider too.
    """
    if assembly.phase != "open":
        return
    assembly.deviate("unread-field", where)
    ending, calls = assembly.ending, assembly.calls
    ending.unreadable = ending.unreadable or f"what looks like a call at {where}"
    ending.is_torn = ending.is_torn or ending.reason is None
    for call in [call for call in calls.by_index.values() if not call.text.is_closed()]:
        message = f"tool call {call.name or '(no name)'}: what may be more of it stands at {where}"
        calls.fail(call, assembly, "lost", message)
    ending.echo = (told or []) if not ending.lost or told == ending.echo else []
    ending.lost = ending.lost or f"tool call (no name): what looks like one stands at {where}"


def _may_call(name: str, value: Json) -> bool:
    """Return whether a field is worth a look."""
    if not isinstance(value, Raw):
        return isinstance(value, dict | list | str)
    if may_name_calls(name):
        return True
    told = bytes(value).lower()
    return any(word in told for word in _TOLD)


def _decoded(value: Json) -> Json:
    if not isinstance(value, Raw):
        return value
    decoded = _json.decode_lenient(bytes(value))
    return None if isinstance(decoded, Malformed) else decoded


def unread_arguments(fields: Mapping[str, Json], *known: str) -> str:
    """Return the first of a call's fields that may contain its arguments, one named like them first; "" if there is
    none.

    Args:
        fields: by name; a `Raw` is the field's JSON text.
        known: those that the place knows.
    """
    found = ""
    for key, value in fields.items():
        if key in _LABELS and (type(value) is int or (type(value) is str and value[:1].isalnum())):
            continue  # none, for less than the look at any field takes
        if key not in known and _may_be(key, value):
            if names_arguments(key):
                return clip(key)
            found = found or clip(key) or "(no key)"
    return found


def unread_name(*objects: Json) -> str:
    """Return the key under which a call's name may stand if no object has it in its place; "" otherwise."""
    found = ""
    for fields in objects:
        for key, value in fields.items() if isinstance(fields, dict) else ():
            if key == "name" and isinstance(value, str) and value:
                return ""
            name = plain(key.strip())
            is_told = value not in (None, "") and (isinstance(value, str) or name == "name")
            if is_told and name in _NAMES:
                found = found or (value if isinstance(value, str) else _json.to_text(value))
    return found


def other_name(*objects: Json) -> str:
    """Return a name under another key than that of the name; "" if there is none."""
    told = (item for fields in objects if isinstance(fields, dict) for item in fields.items())
    return next((value for key, value in told if key != "name" and isinstance(value, str) and plain(key) in _NAMES), "")


def noted(told: Json) -> str:
    """Return what was noted in a field of a call that no wire can fill, or ""."""
    return told or ""


def note_unread(call: OpenCall, fields: Mapping[str, Json], *known: str) -> None:
    """Record what stands beside the arguments of a call that may have none."""
    if call.text.phase == "held" and not call.unread:
        call.unread = unread_arguments(fields, *known)


def note_unread_piece(call: OpenCall, fields: Mapping[str, Json], *known: str, arguments: str) -> None:
    """As `note_unread`, for an event with only a piece of the arguments. `arguments`: that piece, if it is read."""
    if arguments:
        note_unread(call, fields, *known)
    else:
        mark_unread(call, unread_arguments(fields, *known), is_missing=True)


def mark_unread(call: OpenCall, key: str, *, is_missing: bool) -> None:
    """Record that a piece of a call may have arguments where none are read.

    Args:
        key: the field's, from `unread_arguments`; "" if there is none.
        is_missing: the piece has none where they are read. If the field is named like arguments, the call lacks these,
            whatever else it has.
    """
    if key:
        call.unread = call.unread or key
        call.is_torn = call.is_torn or (is_missing and (names_arguments(key) or key in _AROUND))


def is_blank(arguments: Raw) -> bool:
    """Return whether the JSON text of a call's arguments has none: nothing, `{}`, `null` or a text of these."""
    return len(arguments) <= _BLANK and is_placeholder(_json.raw_text(arguments).strip('"'))


def fields_at(frame: bytes, *path: str | int) -> dict[str, Json]:
    """Return the fields of the object at a path of a frame; {} if there is none."""
    value: Json = _json.decode_lenient(frame)
    for step in path:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return {}
    return value if isinstance(value, dict) else {}


def _may_be(key: str, value: Json) -> bool:
    if isinstance(value, Raw):
        decoded = _json.decode_lenient(bytes(value))
        value = None if isinstance(decoded, Malformed) else decoded
    if not value or (isinstance(value, str) and is_placeholder(value)):
        return False
    name = plain(key)
    if is_spelling(name) or (not isinstance(value, bool | int | float) and names_arguments(key)):
        return True
    if isinstance(value, list):  # pieces of Gemini's, or calls
        return is_call(name, value) or any(isinstance(item, dict) and "jsonPath" in item for item in value)
    return (isinstance(value, dict) and not is_beside(name, value)) or (
        isinstance(value, str) and value.lstrip()[0] == "{"
    )


def refuse_unread(assembly: Assembly, id: str | None, name: str | None, key: str) -> None:
    """Fail a whole call that has its arguments under the unknown `key`."""
    call = assembly.open_call(id, name, wait=True)
    assembly.drop_call(call, "unreadable", f"tool call {name or '(no name)'}: it has {key!r} and no arguments")
