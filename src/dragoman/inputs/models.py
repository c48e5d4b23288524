"""Self-validating classes, recognised by their methods (`model_json_schema`, `model_validate`): pydantic's and similar
ones. None is imported.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman.errors import UsageError
from dragoman.inputs.values import without_odd_defaults
from dragoman.misuse import first_line

_DEEPEST: Final = 64
_MOST_VALUES: Final = 20_000


def is_model(kind: object) -> bool:
    """Return whether it is such a class."""
    return (
        isinstance(kind, type)
        and callable(getattr(kind, "model_json_schema", None))
        and callable(getattr(kind, "model_validate", None))
    )


def model_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of such a class, with references written out, so that it can stand inside another one.

    Raises:
        UsageError: it has none, or it refers to itself.
    """
    try:
        schema = kind.model_json_schema()
    except Exception as problem:  # whatever such a class raises
        raise UsageError(f"{kind.__name__}: its JSON schema cannot be made: {first_line(problem)}") from None
    return in_place(schema, kind.__name__)


def in_place(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a schema without references: each definition replaces the references to it.

    Raises:
        UsageError: a definition refers to itself, or it is too large.
    """
    schema = without_odd_defaults(schema)
    definitions = schema.get("$defs", {})
    left = [_MOST_VALUES]

    def placed(value: Any, inside: tuple[str, ...], depth: int = 0) -> Any:
        left[0] -= 1
        if depth > _DEEPEST or left[0] < 0:
            raise UsageError(f"{name}: expected a type of at most {_MOST_VALUES} parts, nested {_DEEPEST} deep")
        if isinstance(value, list):
            return [placed(item, inside, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        reference = value.get("$ref")
        rest = {key: one for key, one in value.items() if key != "$ref"} if isinstance(reference, str) else value
        if "oneOf" in rest or "anyOf" in rest:
            rest = {key: one for key, one in rest.items() if key != "discriminator"}  # it refers to what is gone
        out = {key: placed(one, inside, depth + 1) for key, one in rest.items()}
        if not isinstance(reference, str):
            return out
        target = reference.removeprefix("#/$defs/")
        if target in inside:
            raise UsageError(f"{name}: expected a type that does not hold itself, got {target} in {target}")
        return {**placed(definitions.get(target, {}), (*inside, target), depth + 1), **out}

    found: dict[str, Any] = placed({key: one for key, one in schema.items() if key != "$defs"}, ())
    return found


def model_value(kind: Any, value: object) -> Any:
    """Return a value as an instance of such a class.

    Raises:
        ValueError: it does not fit; says where, and never the value.
    """
    try:
        return kind.model_validate(value)
    except Exception as problem:  # whatever such a class raises
        raise ValueError(problem_of(problem)) from None


def problem_of(problem: Exception) -> str:
    """Describe what did not fit, without the values."""
    errors = getattr(problem, "errors", None)
    if callable(errors):
        try:
            found = errors(include_input=False, include_url=False, include_context=False)
            said = [f"{one['msg']} at {'.'.join(map(str, one['loc'])) or 'the top'}" for one in found]
            return "; ".join(said[:8])
        except Exception:  # another library's `errors`
            return type(problem).__name__
    return type(problem).__name__
