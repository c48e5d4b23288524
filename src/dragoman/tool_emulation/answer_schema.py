"""The schema of an answer that is either tool calls or words, built from the tools' own schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.types import ResponseSchema, Tool

_DEEPEST: Final = 48
_NAMED: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
_SINGLE: Final = frozenset({"items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames"})
_SEVERAL: Final = frozenset({"anyOf", "oneOf", "prefixItems", "items"})
_DEFINITIONS: Final = ("$defs", "definitions")
_LEFT_OUT: Final = frozenset({"$schema", "$id", *_DEFINITIONS})


def answer_schema(
    tools: Sequence[Tool], *, may_answer: bool, answer: ResponseSchema | None, most_calls: int | None = None
) -> dict[str, Json]:
    """Return the schema of the answer.

    Its definitions stand at the root, where every server looks for them, and objects are closed, as structured output
    demands.

    Args:
        tools: those that may be called; at least one.
        may_answer: words are allowed in place of calls.
        answer: what the words must be, if the request itself asks for structured output.
        most_calls: the most calls; None: no limit.
    """
    definitions: dict[str, Json] = {}
    calls = [_call(tool, place, definitions) for place, tool in enumerate(tools)]
    several: dict[str, Json] = {"type": "array", "minItems": 1}
    if most_calls is not None:
        several["maxItems"] = most_calls
    several["items"] = calls[0] if len(calls) == 1 else {"anyOf": calls}
    root = _object({"tool_calls": several})
    if may_answer:
        words: Json = {"type": "string"}
        if answer is not None:
            asked = _json.decode(bytes(answer.schema)) if answer.schema is not None else None
            words = _Placed(asked, "answer", definitions).root() if isinstance(asked, dict) else {"type": "object"}
        root = {"type": "object", "anyOf": [root, _object({"answer": words})]}
    return {**root, "$defs": definitions} if definitions else root


def _call(tool: Tool, place: int, definitions: dict[str, Json]) -> Json:
    arguments = _Placed(tool.schema_object(), f"tool{place}", definitions).root()
    return _object({"name": {"type": "string", "enum": [tool.name]}, "arguments": {"type": "object", **arguments}})


def _object(properties: dict[str, Json]) -> dict[str, Json]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


class _Placed:
    """One schema inside the larger one. Its definitions move to the root under their own names."""

    __slots__ = ("_definitions", "_is_recursive", "_known", "_prefix", "_schema")

    def __init__(self, schema: Mapping[str, Json], prefix: str, definitions: dict[str, Json]) -> None:
        self._schema = schema
        self._prefix = prefix
        self._definitions = definitions
        self._is_recursive = False
        self._known: dict[str, Json] = {}
        for key in _DEFINITIONS:
            inner = schema.get(key)
            self._known |= inner if isinstance(inner, dict) else {}

    def root(self) -> dict[str, Json]:
        """Return the schema; its definitions are among the others."""
        for name, inner in self._known.items():
            self._definitions[f"{self._prefix}_{name}"] = self._place(inner)
        placed: dict[str, Json] = self._place(self._schema)
        if self._is_recursive:
            self._definitions[self._prefix] = placed
        return placed

    def _place(self, schema: Json, depth: int = 0, *, closes: bool = True) -> Json:
        if not isinstance(schema, dict):
            return schema
        if depth > _DEEPEST:
            return {}
        out: dict[str, Json] = {}
        for key, value in schema.items():
            if key in _LEFT_OUT:
                continue
            if key == "$ref" and isinstance(value, str):
                reference = self._reference(value)
                if not reference:
                    return {}
                out[key] = reference
            elif key in _NAMED and isinstance(value, dict):
                out[key] = {name: self._place(inner, depth + 1) for name, inner in value.items()}
            elif key in _SINGLE and isinstance(value, dict):
                out[key] = self._place(value, depth + 1, closes=key not in ("not", "if"))
            elif (key in _SEVERAL or key == "allOf") and isinstance(value, list):
                out[key] = [self._place(inner, depth + 1, closes=key != "allOf") for inner in value]
            else:
                out[key] = value
        is_plain = "properties" in out and not {"allOf", "anyOf", "oneOf", "patternProperties", "$ref"} & out.keys()
        if closes and is_plain and "additionalProperties" not in out:
            out["additionalProperties"] = False
        return out

    def _reference(self, reference: str) -> str:
        """Return where a reference points now; "" if that cannot be told: then anything is allowed there."""
        if reference == "#":
            self._is_recursive = True
            return f"#/$defs/{self._prefix}"
        for key in _DEFINITIONS:
            rest = reference.removeprefix(f"#/{key}/")
            if rest != reference and rest.partition("/")[0].replace("~1", "/").replace("~0", "~") in self._known:
                return f"#/$defs/{self._prefix}_{rest}"
        return ""
