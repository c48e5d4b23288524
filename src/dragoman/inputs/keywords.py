"""Read the keywords of a call. A wrong kind is refused by its name, before anything is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from dragoman.errors import UsageError
from dragoman.misuse import kind_of
from dragoman.providers.catalog import nearest
from dragoman.types import Message, Named, Text, Tool, ToolChoice

_WORDS: Final[Mapping[str, ToolChoice]] = {"auto": "auto", "none": "none", "required": "any", "any": "any"}
MOST_TOKENS: Final = 1 << 40
_MOST_SECONDS: Final = 31_536_000  # a year
#: Characters of a wrong value that a message shows.
SHOWN: Final = 60


def seen(value: object) -> str:
    """Describe a wrong value in an error: a possible prompt or secret shows only its type."""
    if isinstance(value, int) and not -MOST_TOKENS < value < MOST_TOKENS:
        return "a number that is too large"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, type):
        return f"the type {value.__name__}"
    return kind_of(value)


def wrong(name: str, expected: str, value: object) -> UsageError:
    """Return the error for an argument of the wrong kind."""
    return UsageError(f"{name}: expected {expected}, got {seen(value)}")


def read_text(name: str, value: object) -> str | None:
    """Return a text or None."""
    if value is not None and not isinstance(value, str):
        raise wrong(name, "a string", value)
    return value


def read_count(name: str, value: object, *, least: int = 1) -> int:
    """Return a whole number of at least `least`."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < MOST_TOKENS:
        raise wrong(name, f"a whole number of at least {least}", value)
    return value


def read_seconds(name: str, value: object) -> float | None:
    """Return seconds, more than 0, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST_SECONDS:
        raise wrong(name, f"seconds, more than 0 and at most {_MOST_SECONDS:,}", value)
    return float(value)


def read_flag(name: str, value: object) -> bool:
    """Return True or False."""
    if not isinstance(value, bool):
        raise wrong(name, "True or False", value)
    return value


def read_function(name: str, value: object) -> Any:
    """Return a callable, or None."""
    if value is not None and not callable(value):
        raise wrong(name, "a function", value)
    return value


def read_word(name: str, value: object, known: Sequence[str]) -> str:
    """Return one of a few words."""
    if not isinstance(value, str):
        raise wrong(name, one_of(known), value)
    if value not in known:
        raise UsageError(f"{name}: expected {one_of(known)}, got {value[:SHOWN]!r}{nearest(value, known)}")
    return value


def one_of(known: Sequence[str]) -> str:
    """Return a few words as an error names them: `'a', 'b' or 'c'`."""
    return " or ".join([", ".join(map(repr, known[:-1])), repr(known[-1])]) if len(known) > 1 else repr(known[0])


def read_targets(value: object) -> str | tuple[str, ...]:
    """Return a target's or route's name, or several in the order in which they are tried."""
    if isinstance(value, str):
        if not value.strip():
            raise UsageError("target: expected provider/model or the name of a route, got an empty string")
        return value
    if not isinstance(value, list | tuple):
        raise wrong("target", "provider/model, the name of a route, or a list of them", value)
    if not value:
        raise UsageError("target: expected at least one provider/model, got an empty list")
    for position, one in enumerate(value):
        if not isinstance(one, str) or not one.strip():
            raise wrong(f"target[{position}]", "provider/model or the name of a route", one)
    return tuple(value)


def read_tool_choice(value: object, tools: Sequence[Tool]) -> ToolChoice:
    """Return the word, or the offered tool of that name."""
    names = [tool.name for tool in tools]
    if isinstance(value, Named):
        value = value.name
    elif isinstance(value, str) and value in _WORDS:
        choice = _WORDS[value]
        if choice == "any" and not tools:
            raise UsageError(f"tool_choice: {value!r} asks for a call, and there are no tools; give some as tools=[…]")
        return choice
    if not isinstance(value, str):
        raise wrong("tool_choice", "'auto', 'none', 'required' or the name of a tool", value)
    if value not in names:
        known = ", ".join(names) or "none"
        raise UsageError(
            f"tool_choice: expected 'auto', 'none', 'required' or the name of a tool ({known}), "
            f"got {value[:SHOWN]!r}{nearest(value, [*_WORDS, *names])}"
        )
    return Named(value)


def with_system(system: object, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the conversation with instructions before it. They join those that it begins with."""
    text = read_text("system", system)
    if text is None:
        return messages
    first = messages[0] if messages else None
    if first is None or first.role != "system":
        return (Message("system", (Text(text),)), *messages)
    return (msgspec.structs.replace(first, parts=(Text(text + "\n\n"), *first.parts)), *messages[1:])
