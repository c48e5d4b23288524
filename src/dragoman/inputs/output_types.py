"""`output_type`: the JSON schema of a type, and an answer's text as a value of it.

It may be a dataclass, TypedDict, Struct or another type that msgspec knows, a pydantic model, a list of these, or a
union. A type that is no object is requested inside one, under `answer`, because structured output takes objects
everywhere.
"""

from __future__ import annotations

import contextlib
import re
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, Final, Union, final, get_args, get_origin

import msgspec

from dragoman import _json
from dragoman._json import Json
from dragoman.errors import UsageError
from dragoman.inputs.models import in_place, is_model, model_schema, model_value, problem_of
from dragoman.misuse import first_line, kind_of, reason
from dragoman.types import ResponseSchema

_WRAPPED: Final = "answer"
_FENCE: Final = "```"
_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")


class NotFitting(Exception):
    """An answer that is not of the type. The message says why, without the answer's values."""


@final
class OutputType:
    """The type of an answer.

    Attributes:
        name: its name in messages.
        schema: the JSON schema of the whole answer, an object.

    Raises:
        UsageError: JSON cannot express the type.
    """

    __slots__ = ("_is_wrapped", "_members", "_read", "name", "schema")

    def __init__(self, kind: Any) -> None:
        if not is_type(kind):
            raise UsageError(f"output_type: expected a type, as a dataclass or list[int], got {kind_of(kind)}")
        self.name: str = _name_of(kind)
        schema, self._read = _read(kind, self.name)
        self._is_wrapped = schema.get("type") != "object"
        self._members = _objects_of(kind, self.name) if self._is_wrapped else []
        if self._is_wrapped:
            schema = {"type": "object", "properties": {_WRAPPED: schema}, "required": [_WRAPPED]}
        self.schema: dict[str, Json] = _closed(schema)

    def response_schema(self) -> ResponseSchema:
        """Return the schema in the form of a request."""
        name = _NAME.sub("_", self.name).strip("_")[:60] or "response"
        return ResponseSchema(_json.raw(self.schema), name, strict=True if _is_strict(self.schema) else None)

    def words(self) -> str:
        """Return the instructions for models without structured output."""
        schema = _json.to_text(self.schema)
        return f"Answer with one JSON object only, and nothing around it. It must fit this JSON schema:\n{schema}"

    def value(self, text: str) -> Any:
        """Return the value of an answer's text. Raises `NotFitting`: it is not JSON, or not of the type."""
        found = _json_in(text)
        if self._is_wrapped:
            if isinstance(found, dict) and found.keys() == {_WRAPPED}:
                found = found[_WRAPPED]
            elif isinstance(found, dict):
                return self._bare(found)
        try:
            return self._read(found)
        except (ValueError, TypeError) as problem:
            raise NotFitting(str(problem)) from None

    def _bare(self, found: dict[str, Any]) -> Any:
        """Return a value that a prompted model sent without its frame.

        It counts if one member of a union has all its keys and takes it, and no other does.
        """
        fitting = []
        for schema, read in self._members:
            if found.keys() <= schema.get("properties", {}).keys():
                with contextlib.suppress(ValueError, TypeError):
                    fitting.append(read(found))
        if len(fitting) != 1:
            why = f"; without it, {len(fitting)} types of {self.name} take the object" if len(fitting) > 1 else ""
            raise NotFitting(f"expected an object with the key {_WRAPPED!r} alone{why}")
        return fitting[0]


def is_type(kind: object) -> bool:
    """Return whether values can be of it."""
    if isinstance(kind, type) or get_origin(kind) is not None:
        return kind is not type(None)
    return False


def _name_of(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind).replace("typing.", "")[:120]


def _read(kind: Any, name: str) -> tuple[dict[str, Any], Callable[[Any], Any]]:
    """Return the schema of a type, and the function that makes a value of it."""
    if is_model(kind):
        return model_schema(kind), lambda value: model_value(kind, value)
    if _holds_model(kind):
        return _adapted(kind, name)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list and arguments:
        item, read = _read(arguments[0], name)
        return {"type": "array", "items": item}, lambda value: _read_list(value, read)
    if origin in (Union, types.UnionType) and sum(map(_is_object, arguments)) > 1:
        return _union([_read(one, name) for one in arguments])
    try:
        (schema,), definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")  # noqa: TID251
    except Exception as problem:  # an annotation may be a text, which is run
        raise UsageError(f"output_type: {name} cannot be said in JSON: {reason(problem)}") from None
    return in_place({**schema, "$defs": definitions}, name), lambda value: msgspec.convert(value, kind)


def _objects_of(kind: Any, name: str) -> list[tuple[dict[str, Any], Callable[[Any], Any]]]:
    """Return the members of a union whose values are objects."""
    if get_origin(kind) not in (Union, types.UnionType):
        return []
    members = [_read(one, name) for one in get_args(kind) if one is not type(None)]
    return [(schema, read) for schema, read in members if schema.get("type") == "object"]


def _is_object(kind: Any) -> bool:
    """Return whether its values are objects, which msgspec cannot distinguish in a union."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind.__struct_config__.tag is None
    is_dataclass = hasattr(kind, "__dataclass_fields__")
    return is_dataclass or typing.is_typeddict(kind) or get_origin(kind) is dict or kind is dict


def _read_list(value: Any, read: Callable[[Any], Any]) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"Expected `array`, got `{type(value).__name__}`")
    out = []
    for position, item in enumerate(value):
        try:
            out.append(read(item))
        except ValueError as problem:
            raise ValueError(f"{problem} in item {position}") from None
    return out


def _union(members: list[tuple[dict[str, Any], Callable[[Any], Any]]]) -> tuple[dict[str, Any], Callable[[Any], Any]]:
    """Return the union's schema and reader. Of fitting members the fewest unknown keys win, then the first."""

    def read(value: Any) -> Any:
        fitting: list[tuple[int, int, Any]] = []
        problems = []
        for position, (schema, reader) in enumerate(members):
            try:
                fit = reader(value)
            except ValueError as problem:
                problems.append(str(problem))
                continue
            unknown = len(value.keys() - schema.get("properties", {}).keys()) if isinstance(value, dict) else 0
            fitting.append((unknown, position, fit))
        if not fitting:
            raise ValueError("; or ".join(problems))
        return min(fitting, key=lambda one: one[:2])[2]

    return {"anyOf": [schema for schema, _ in members]}, read


def _holds_model(kind: Any) -> bool:
    return is_model(kind) or any(map(_holds_model, get_args(kind)))


def _adapted(kind: Any, name: str) -> tuple[dict[str, Any], Callable[[Any], Any]]:
    """Return the schema and reader of a list or union of models, from their own library."""
    make = getattr(sys.modules.get("pydantic"), "TypeAdapter", None)
    if make is None:
        raise UsageError(f"output_type: {name}: models in lists and unions need pydantic 2")
    try:
        adapter = make(kind)
        schema = in_place(adapter.json_schema(), name)
    except UsageError:
        raise
    except Exception as problem:  # whatever that library raises
        raise UsageError(f"output_type: {name} cannot be said in JSON: {first_line(problem)}") from None

    def read(value: Any) -> Any:
        try:
            return adapter.validate_python(value)
        except Exception as problem:
            raise ValueError(problem_of(problem)) from None

    return schema, read


def _closed(schema: Any) -> Any:
    """Return a schema whose objects take no further keys, as structured output demands."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: one if key in ("enum", "const", "default") else _closed(one) for key, one in schema.items()}
    if isinstance(schema.get("properties"), dict):
        out["properties"] = {key: _closed(one) for key, one in schema["properties"].items()}
        if schema.get("type") == "object":
            out.setdefault("additionalProperties", False)
    return out


#: What servers with strict structured output take in a schema.
_STRICT_KEYS: Final = {
    *("type", "properties", "required", "additionalProperties", "items"),
    *("anyOf", "enum", "const", "title", "description"),
}


def _is_strict(schema: Any) -> bool:
    """Return whether strict structured output takes the schema: every key required, only the usual keywords."""
    if not isinstance(schema, dict) or not schema.keys() <= _STRICT_KEYS:
        return False
    properties = schema.get("properties")
    if schema.get("type") == "object":
        if not isinstance(properties, dict) or schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", ())) != properties.keys():
            return False
    inner = [*(properties or {}).values(), *schema.get("anyOf", ())]
    if "items" in schema:
        inner.append(schema["items"])
    return all(map(_is_strict, inner))


def _json_in(text: str) -> Any:
    """Return the JSON value that a text is, or the only one in it: in a fence, or with words around it."""
    inner = text.strip()
    if inner.startswith(_FENCE) and inner.endswith(_FENCE):
        inner = inner.removesuffix(_FENCE).partition("\n")[2].strip()
    found = _json.decode(inner)
    if not isinstance(found, _json.Malformed):
        return found
    start, end = inner.find("{"), inner.rfind("}")
    if 0 <= start < end:
        around = _json.decode(inner[start : end + 1])
        if not isinstance(around, _json.Malformed):
            return around
    if not text.strip():
        raise NotFitting("expected JSON, got an empty answer")
    raise NotFitting(f"expected JSON: {found.problem}")


__all__ = ["NotFitting", "OutputType", "is_type"]
