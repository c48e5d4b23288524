"""Plain functions as tools: the schema from the signature, descriptions from the docstring, values checked before the
call.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Awaitable, Callable
from typing import Any, Final, final

import msgspec

from dragoman import _json
from dragoman.errors import UsageError
from dragoman.inputs.models import is_model, model_schema, model_value
from dragoman.inputs.values import without_odd_defaults
from dragoman.misuse import reason
from dragoman.types import Tool, ToolCall

_ARGS: Final = re.compile(r"^\s*(?:Args|Arguments|Parameters):\s*$", re.MULTILINE)
_ENTRY: Final = re.compile(r"^(\s+)\*{0,2}(\w+)(?:\s*\([^)]*\))?\s*:\s*+(.*)$")


@final
class FunctionTool(msgspec.Struct, frozen=True):
    """A tool and its function. `arguments` is a Struct type with a field for each parameter."""

    tool: Tool
    function: Callable[..., Any]
    arguments: type[msgspec.Struct]

    def check(self, call: ToolCall) -> msgspec.Struct:
        """Return a call's arguments as the function takes them.

        Raises:
            UsageError: they do not fit the signature; says which and what was expected.
        """
        try:
            return msgspec.convert(call.values(), self.arguments, strict=False, dec_hook=_convert_model)
        except (msgspec.ValidationError, ValueError) as problem:
            raise UsageError(f"arguments of {self.tool.name}: {problem}") from None

    def call(self, call: ToolCall) -> Any | Awaitable[Any]:
        """Run the function with a call's arguments. Raises UsageError as `check`."""
        return self.run(self.check(call))

    def run(self, values: msgspec.Struct) -> Any | Awaitable[Any]:
        """Run the function with arguments that `check` returned."""
        return self.function(**{name: getattr(values, name) for name in self.arguments.__struct_fields__})


def tool_of(function: Callable[..., Any]) -> FunctionTool:
    """Return the tool of a function.

    The name is the function's, the description its docstring up to `Args:`, whose entries (Google form) describe the
    parameters. Parameters without annotation take any value; those without default are required.

    Raises:
        UsageError: the signature has `*args`, `**kwargs` or positional-only parameters, or a type that JSON cannot
            express; or the function is a generator.
    """
    name = getattr(function, "__name__", "")
    if not name or name == "<lambda>" or not isinstance(name, str):
        seen = "a lambda" if name == "<lambda>" else f"an object of type {type(function).__name__}"
        raise UsageError(f"expected a named function as a tool, got {seen}; give it a name with def")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"tool {name}: expected a function that returns, got one that yields; return a list")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as problem:  # an annotation may be a text, which is run
        raise UsageError(f"tool {name}: its annotations cannot be read: {reason(problem)}") from None
    summary, described = _read_docstring(inspect.getdoc(function) or "")
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in _parameters(name, function):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            what = f"{parameter.replace(annotation=parameter.empty)}, which is {parameter.kind.description}"
            raise UsageError(f"tool {name}: expected parameters with names, got {what}")
        kind = hints.get(parameter.name, Any)
        description = described.get(parameter.name) or _description_in(kind)
        if parameter.default is None:
            kind = typing.Optional[kind]  # noqa: UP045  # `city: str = None` is written too
        if description:
            kind = typing.Annotated[kind, msgspec.Meta(description=description)]
        if parameter.default is parameter.empty:
            fields.append((parameter.name, kind))
        else:
            fields.append((parameter.name, kind, _default(parameter.default)))
    try:
        arguments = msgspec.defstruct(f"{name}_arguments", fields, kw_only=True)
        schema = _schema(arguments)
    except Exception as problem:  # so may those of a dataclass among the parameters
        raise UsageError(f"tool {name}: its parameters cannot be said in JSON: {reason(problem)}") from None
    return FunctionTool(Tool(name, summary, _json.raw(schema)), function, arguments)


def _parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise UsageError(f"tool {name}: its parameters cannot be known; wrap it into a function of yours") from None
    place = getattr(function, "__qualname__", "").rpartition("<locals>.")[2]
    if found and found[0].name == "self" and "." in place:
        raise UsageError(f"tool {name}: expected a method of an object, as tools=[thing.{name}], got one of its class")
    return found


def _description_in(kind: Any) -> str:
    """Return the text in `Annotated[int, "how many"]`."""
    return next((words for words in getattr(kind, "__metadata__", ()) if isinstance(words, str)), "")


def _default(value: Any) -> Any:
    """Return a default for a Struct field. Mutable ones are copied for each call."""
    if isinstance(value, list | dict | set):
        copy = value.copy()
        return msgspec.field(default_factory=lambda: copy.copy())
    return msgspec.field(default=value)


def _schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of an object, without a reference at the top."""
    (schema,), definitions = msgspec.json.schema_components(  # noqa: TID251
        [arguments], ref_template="#/$defs/{name}", schema_hook=_schema_of_model
    )
    definitions = {name: without_odd_defaults(one) for name, one in definitions.items()}
    top = definitions.pop(str(schema["$ref"]).rpartition("/")[2])
    top.pop("title", None)
    top.setdefault("properties", {})
    for value in top["properties"].values():
        if value.get("default", ...) is None:
            del value["default"]
    if not top.get("required"):
        top.pop("required", None)
    return {**top, "$defs": definitions} if definitions else top


def _schema_of_model(kind: type) -> dict[str, Any]:
    if not is_model(kind):
        raise NotImplementedError
    return model_schema(kind)


def _convert_model(kind: type, value: Any) -> Any:
    if not is_model(kind):
        raise NotImplementedError
    return model_value(kind, value)


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the description before `Args:` of a docstring in Google form, and the description of each parameter."""
    found = _ARGS.search(text)
    if found is None:
        return text.strip(), {}
    described: dict[str, str] = {}
    name, indent = "", ""
    for line in text[found.end() :].splitlines():
        entry = _ENTRY.match(line)
        if entry and (not indent or entry[1] == indent):
            indent, name = entry[1], entry[2]
            described[name] = entry[3].strip()
        elif name and line.strip() and line.startswith(indent + " "):
            described[name] = f"{described[name]} {line.strip()}"
        elif line.strip() and not line.startswith(" "):
            break
    return text[: found.start()].strip(), {key: value for key, value in described.items() if value}
