"""Read the parameters of a call: those of a model's answer, one by one or as `Params`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

import msgspec

from dragoman import _json
from dragoman._json import Raw
from dragoman.errors import UsageError
from dragoman.inputs.keywords import MOST_TOKENS, SHOWN, one_of, read_count, read_flag, read_word, wrong
from dragoman.inputs.output_types import OutputType, is_type
from dragoman.inputs.values import check_made, read_object
from dragoman.providers.catalog import nearest
from dragoman.types import Effort, Params, Reasoning, ResponseSchema

_EFFORTS: Final = get_args(Effort)
_CACHES: Final = ("none", "short", "long")


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
    raise wrong(name, f"{one_of(_EFFORTS)}, a number of tokens, True or False", value)


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
    check_made(value, name)
    schema: object = value.schema
    if schema is None:
        return value
    if isinstance(schema, Mapping | Raw):
        return msgspec.structs.replace(value, schema=read_object(f"{name}.schema", schema))
    if isinstance(schema, str | bytes):
        found = _json.decode(schema)
        if not isinstance(found, dict):
            raise UsageError(f"{name}.schema: expected the JSON text of a schema, got other text")
        return msgspec.structs.replace(value, schema=_json.raw(found))
    if is_type(schema):
        return msgspec.structs.replace(value, schema=OutputType(schema).response_schema().schema)
    raise wrong(f"{name}.schema", "a mapping, a type or JSON text", schema)


_FIELDS: Final[Mapping[str, Callable[[str, object], Any]]] = {
    "max_tokens": lambda name, value: read_count(name, value),
    "temperature": _within(0, 10),
    "top_p": _within(0, 1),
    "top_k": lambda name, value: read_count(name, value, least=0),
    "stop": read_stop,
    "seed": lambda name, value: read_count(name, value, least=-MOST_TOKENS),
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
                raise UsageError(f"params: {str(name)[:SHOWN]!r} is no field of Params{near}")
            if value is not None:
                given[name] = value
    elif params is not None:
        raise wrong("params", "Params or a mapping with its fields", params)
    checked = {name: _FIELDS[name](f"params.{name}", value) for name, value in given.items()}
    checked |= {name: _FIELDS[name](name, value) for name, value in keywords.items() if value is not None}
    return Params(**checked)
