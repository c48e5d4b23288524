"""Read the keywords of a call. A wrong kind is refused by its name, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_args

import msgspec

from dragoman import _json
from dragoman._json import Raw
from dragoman.errors import UsageError
from dragoman.inputs.output_types import OutputType, is_type
from dragoman.misuse import kind_of
from dragoman.providers.catalog import nearest
from dragoman.types import Effort, Message, Named, Params, Reasoning, ResponseSchema, Text, Tool, ToolChoice

_WORDS: Final[Mapping[str, ToolChoice]] = {"auto": "auto", "none": "none", "required": "any", "any": "any"}
_EFFORTS: Final = get_args(Effort)
_CACHES: Final = ("none", "short", "long")
_MOST_TOKENS: Final = 1 << 40
_MOST_SECONDS: Final = 31_536_000  # a year
#: Characters of a wrong value that a message shows.
_SHOWN: Final = 60


def seen(value: object) -> str:
    """Describe a wrong value in an error: a possible prompt or secret shows only its type."""
    if isinstance(value, int) and not -_MOST_TOKENS < value < _MOST_TOKENS:
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
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < _MOST_TOKENS:
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
        raise wrong(name, _or(known), value)
    if value not in known:
        raise UsageError(f"{name}: expected {_or(known)}, got {value[:_SHOWN]!r}{nearest(value, known)}")
    return value


def _or(known: Sequence[str]) -> str:
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
            f"got {value[:_SHOWN]!r}{nearest(value, [*_WORDS, *names])}"
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


# ---------------------------------------------------------------- params


def read_reasoning(name: str, value: object) -> Reasoning | None:
    """Return an effort, or a budget in tokens. True lets the provider choose; False disables thinking."""
    if value is None:
        return value
    if isinstance(value, Reasoning):
        if value.effort is not None:
            read_word(f"{name}.effort", value.effort, _EFFORTS)
        if value.budget is not None:
            read_count(f"{name}.budget", value.budget, least=0)
        return value
    if isinstance(value, bool):
        return Reasoning() if value else Reasoning("none")
    if isinstance(value, str):
        return Reasoning(read_word(name, value, _EFFORTS))  # type: ignore[arg-type]
    if isinstance(value, int):
        return Reasoning(budget=read_count(name, value, least=0))
    raise wrong(name, f"{_or(_EFFORTS)}, a number of tokens, True or False", value)


def read_stop(name: str, value: object) -> tuple[str, ...]:
    """Return the texts, one or several, at which the model stops."""
    items = (value,) if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) and item for item in items):
        raise wrong(name, "a string or a list of strings, none of them empty", value)
    return tuple(items)


def _within(least: float, most: float) -> Callable[[str, object], float]:
    def check(name: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise wrong(name, f"a number from {least:g} to {most:g}", value)
        return value

    return check


def read_schema(name: str, value: object) -> ResponseSchema:
    """Return a schema for the answer from our own value, a mapping, a type, or the JSON text of one."""
    if not isinstance(value, ResponseSchema):
        value = ResponseSchema(value)
    schema: object = value.schema
    if schema is None or isinstance(schema, Raw):
        return value
    if isinstance(schema, Mapping):
        return msgspec.structs.replace(value, schema=read_json(f"{name}.schema", schema))
    if isinstance(schema, str | bytes):
        found = _json.decode(schema)
        if not isinstance(found, dict):
            raise UsageError(f"{name}.schema: expected the JSON text of a schema, got other text")
        return msgspec.structs.replace(value, schema=_json.raw(found))
    if is_type(schema):
        return msgspec.structs.replace(value, schema=OutputType(schema).response_schema().schema)
    raise wrong(f"{name}.schema", "a mapping, a type or JSON text", schema)


def read_json(name: str, value: object) -> Raw:
    """Return a value as JSON text."""
    try:
        return _json.raw(value)
    except (TypeError, ValueError, RecursionError) as problem:
        raise UsageError(f"{name}: expected plain JSON values: {str(problem)[:_SHOWN]}") from None


_FIELDS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "max_tokens": lambda name, value: read_count(name, value),
    "temperature": _within(0, 10),
    "top_p": _within(0, 1),
    "top_k": lambda name, value: read_count(name, value, least=0),
    "stop": read_stop,
    "seed": lambda name, value: read_count(name, value, least=-_MOST_TOKENS),
    "presence_penalty": _within(-10, 10),
    "frequency_penalty": _within(-10, 10),
    "reasoning": read_reasoning,
    "response_schema": read_schema,
    "parallel_tools": read_flag,
    "cache": lambda name, value: read_word(name, value, _CACHES),
    "num_ctx": lambda name, value: read_count(name, value),
}


def read_params(params: object, keywords: Mapping[str, object]) -> Params:
    """Return the parameters.

    Args:
        params: `Params`, or a mapping with its fields, or None.
        keywords: fields that were passed one by one; None is not given. They win.

    Raises:
        UsageError: an unknown field, or one of the wrong kind.
    """
    given: dict[str, object] = {}
    if isinstance(params, Params):
        given = {name: value for name in Params.__struct_fields__ if (value := getattr(params, name)) not in (None, ())}
    elif isinstance(params, Mapping):
        for name, value in params.items():
            if name not in _FIELDS:
                near = nearest(name, _FIELDS) if isinstance(name, str) else ""
                raise UsageError(f"params: {str(name)[:_SHOWN]!r} is no field of Params{near}")
            if value is not None:
                given[name] = value
    elif params is not None:
        raise wrong("params", "Params or a mapping with its fields", params)
    checked = {name: _FIELDS[name](f"params.{name}", value) for name, value in given.items()}
    checked |= {name: _FIELDS[name](name, value) for name, value in keywords.items() if value is not None}
    return Params(**checked)
