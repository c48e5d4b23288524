"""What a tool returned, as the model reads it: texts and pictures as they are, values as JSON, nothing else.

Nothing that a tool returned is told by Python's name of the object (`<generator object …>`): it says nothing, and what
would do the tool's work has not run.
"""

from __future__ import annotations

from collections import UserString
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, KeysView, Mapping, Sequence, Set, ValuesView
from enum import Enum
from math import isfinite
from typing import Any, Final, TypeAlias

import msgspec

from dragoman import _json
from dragoman.errors import UsageError
from dragoman.inputs.values import fields_of
from dragoman.misuse import kind_of
from dragoman.types import Media, Text, ToolCall, ToolResult

_Plain: TypeAlias = str | int | float | bool | list[Any] | dict[str, Any] | None

_BYTES: Final = (bytes, bytearray, memoryview)
_PART: Final = (Text, Media, ToolResult)
_LISTED: Final = (list, tuple, Set, Sequence, KeysView, ValuesView)
#: What is told of no value, and how to return what was meant.
_REFUSED: Final[tuple[tuple[tuple[type, ...], str], ...]] = (
    (_BYTES, "no model reads them; return a string, or dragoman.Media('image', 'image/png', data='BASE64')"),
    (_PART, "return it alone, or in a list with strings"),
    ((Iterator, AsyncIterator), "nobody has read its values; return a list"),
    ((Awaitable,), "nobody has awaited it; await it, and return its value"),
)
#: What JSON has no number for.
_ODD_NUMBERS: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
#: numpy's dates, whose `tolist` counts nanoseconds.
_DATES: Final = ("M", "m")


def error_of(call: ToolCall, problem: Exception) -> ToolResult:
    """Return the model's result for a tool's exception."""
    return ToolResult(call.id, call.name, (Text(said_of(problem)),), is_error=True)


def said_of(problem: BaseException) -> str:
    """Return an exception's name and words, and those of the exceptions in a group."""
    inner = problem.exceptions if isinstance(problem, BaseExceptionGroup) else ()
    return "; ".join([f"{type(problem).__name__}: {problem}", *map(said_of, inner)])


def result_of(call: ToolCall, value: object) -> ToolResult:
    """Return the model's result for a tool's value.

    A `Text` or `Media`, or a list with one, stays what it is, and a `ToolResult` too. Other values are told as `told`.

    Raises:
        UsageError: as `told`.
    """
    if isinstance(value, ToolResult):
        return msgspec.structs.replace(value, call_id=call.id, name=call.name)
    items = value if isinstance(value, list | tuple) else (value,)
    if not any(isinstance(item, Text | Media) for item in items):
        items = (value,)
    parts = [item if isinstance(item, Text | Media) else Text(told(item)) for item in items]
    return ToolResult(call.id, call.name, tuple(parts))


def told(value: object) -> str:
    """Return a tool's value as text: a string as it is, None as nothing, another value as JSON.

    Raises:
        UsageError: it holds what is neither JSON nor has a text of its own; names it.
    """
    try:
        plain = _plain(value)
        if isinstance(plain, str):
            return plain
        return "" if plain is None else _json.raw_text(_json.raw(plain))
    except _Refused as refused:
        inner = "" if refused.value is value else f" with {kind_of(refused.value)} in it"
        raise UsageError(f"the tool returned {kind_of(value)}{inner}: {refused.fix}") from None
    except RecursionError:
        raise UsageError(f"the tool returned {kind_of(value)}: it holds itself, or has too many levels") from None


class _Refused(Exception):
    """A value within what a tool returned that no model reads, and how to return what was meant."""

    def __init__(self, value: object, fix: str) -> None:
        self.value: object = value
        self.fix: str = fix


def _plain(value: Any) -> _Plain:
    """Return a value of a tool as plain values that JSON can say, nothing of it lost."""
    match value:
        case None | bool():
            return value
        case Enum():
            return _plain(value.value)
        case str():
            return str.__str__(value)
        case UserString():  # a sequence of itself
            return _plain(value.data)
        case BaseException():
            return said_of(value)
        case int():
            return value.real
        case float():
            return value.real if isfinite(value) else _ODD_NUMBERS[str(value.real)]
        case list():  # before what has to be asked for its kind
            return [_plain(item) for item in value]
        case Mapping():
            return _object(value.items())
        case _:
            return _plain_of_object(value)


def _plain_of_object(value: Any) -> _Plain:
    """Return what is no plain value of JSON as such values."""
    for kinds, fix in _REFUSED:
        if isinstance(value, kinds):
            raise _Refused(value, fix)
    if isinstance(value, _LISTED):
        return [_plain(item) for item in value]
    if callable(getattr(value, "model_dump", None)) and not isinstance(value, type):  # pydantic's, and similar ones
        return _plain(value.model_dump())
    if (fields := fields_of(value)) is not None:
        return _object(fields)
    return _plain_of_other(value)


def _object(items: Iterable[tuple[object, object]]) -> dict[str, Any]:
    """Return names and values as an object."""
    out: dict[str, Any] = {}
    for key, one in items:
        if one is msgspec.UNSET:
            continue
        plain = _plain(key)
        name = plain if isinstance(plain, str) else _json.encode(plain).decode()
        if name in out:
            raise _Refused(key, "two keys of an object are the same in JSON")
        out[name] = _plain(one)
    return out


def _plain_of_other(value: Any) -> _Plain:
    """Return a date, a number of another library, an array, or the text of an object that has one."""
    if callable(getattr(value, "tolist", None)) and not hasattr(value, "to_dict"):  # numpy's; a table has names too
        is_date = getattr(getattr(value, "dtype", None), "kind", "") in _DATES
        return _plain((value.astype(str) if is_date else value).tolist())
    try:
        return str(msgspec.to_builtins(value))  # a date, a duration, a Decimal, a UUID
    except TypeError:
        pass
    if any("__str__" in vars(kind) for kind in type(value).__mro__[:-1]):
        return str(value)
    shown = repr(value)
    if shown.startswith("<") or " at 0x" in shown or callable(value):
        raise _Refused(value, "it has no text of its own; return a string, or values that JSON has")
    return shown
