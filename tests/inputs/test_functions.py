"""Plain functions as tools: their schema, their words, and calls with values that do or do not fit."""

from __future__ import annotations

import dataclasses
import enum
import functools
import pathlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

import dragoman
from dragoman.errors import UsageError
from dragoman.inputs.functions import tool_of
from dragoman.inputs.output_types import OutputType
from dragoman.testing import FakeModel
from dragoman.types import ToolCall
from for_each import for_each


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


def paint(room: str, colour: Colour = Colour.RED, *, coats: int | None = None) -> str:
    """Paint a room.

    Twice if you like.

    Args:
        room: which room,
            by name
        coats (int, optional): how many: one is enough
    """
    return f"{room} {colour.value} {coats}"


def shapes(size: Literal["s", "m"], sides: Annotated[int, "how many"], points: list[dict[str, float]], other) -> None:  # type: ignore[no-untyped-def]
    """Draw."""


def late(city: str = None) -> None:  # type: ignore[assignment]  # noqa: RUF013
    """A default that its annotation leaves out."""


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    found: dict[str, Any] = tool_of(function).tool.schema_object()["properties"]
    return found


def test_words_come_from_the_docstring() -> None:
    tool = tool_of(paint).tool
    assert (tool.name, tool.description) == ("paint", "Paint a room.\n\nTwice if you like.")
    assert properties(paint)["room"] == {"type": "string", "description": "which room, by name"}
    assert properties(paint)["coats"]["description"] == "how many: one is enough"
    assert tool.schema_object()["required"] == ["room"]


def test_types_come_from_the_signature() -> None:
    assert properties(shapes) == {
        "size": {"enum": ["m", "s"]},
        "sides": {"type": "integer", "description": "how many"},
        "points": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "number"}}},
        "other": {},
    }


def test_a_default_of_none_may_be_said() -> None:
    assert properties(late) == {"city": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
    assert tool_of(late).call(ToolCall("1", "late", '{"city":null}')) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [('{"room":"hall"}', "hall red None"), ('{"room":"hall","colour":"blue","coats":"2","extra":1}', "hall blue 2")],
)
def test_a_call_runs_the_function(arguments: str, said: str) -> None:
    assert tool_of(paint).call(ToolCall("1", "paint", arguments)) == said


@pytest.mark.parametrize("arguments", ['{"colour":"red"}', '{"room":"hall","colour":"green"}'])
def test_arguments_that_do_not_fit_are_told(arguments: str) -> None:
    with pytest.raises(UsageError, match="arguments of paint: "):
        tool_of(paint).call(ToolCall("1", "paint", arguments))


def many(*cities: str) -> None: ...


def placed(city: str, /) -> None: ...


def one_by_one(city: str) -> Iterator[str]:
    yield city


async def one_by_one_later(city: str) -> AsyncIterator[str]:
    yield city


def any_named(**cities: str) -> None: ...


def unsayable(place: pathlib.Path) -> None: ...


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (many, r"tool many: expected parameters with names, got \*cities"),
        (placed, "tool placed: expected parameters with names, got city, which is positional-only"),
        (
            one_by_one,
            "tool one_by_one: expected a function that returns, got one that yields; return a list",
        ),
        (one_by_one_later, "tool one_by_one_later: expected a function that returns, got one that yields"),
        (any_named, r"tool any_named: expected parameters with names, got \*\*cities"),
        (unsayable, "tool unsayable: its parameters cannot be said in JSON: type .*Path.* is not supported"),
        (lambda: None, "got a lambda"),
        (functools.partial(paint, room="hall"), "got an object of type partial"),
    ],
)
def test_what_is_no_tool_is_refused(function: Callable[..., Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        tool_of(function)


@dataclasses.dataclass
class _Inner:
    x: float = float("-inf")


class _Odd(pydantic.BaseModel):
    """Pydantic."""

    x: float | None = None
    default: float = float("nan")
    y: float = 2.5


def test_a_default_that_json_cannot_say_is_not_told() -> None:
    """NaN was told as null, which the type does not take."""

    def look(inner: _Inner, default: float = float("nan"), y: float = 2.5) -> str:
        """Look."""
        return ""

    made = (tool_of(look).tool.schema_object(), msgspec.json.decode(OutputType(_Odd).response_schema().schema or b""))
    for schema in made:
        text = msgspec.json.encode(schema)
        assert text.count(b'"default":null') == text.count(b'"x":{"anyOf"') and b'"default":2.5' in text
        assert {"default", "y"} <= schema["properties"].keys()
    with FakeModel("hi") as fake:
        dragoman.reply("any/model", "hi", tools=[_Odd])
    assert set(fake.requests[0].tools[0].schema_object()["properties"]) == {"x", "default", "y"}
    assert bytes(fake.requests[0].tools[0].schema or b"").count(b'"default":null') == 1  # of the x that may be None


def test_a_pydantic_model_is_a_tool() -> None:
    class Paint(pydantic.BaseModel):
        """Paint a room."""

        room: str
        coats: int = 1

    with FakeModel("Painted.") as fake:
        dragoman.reply("lab/m", "Paint the kitchen.", tools=[Paint])
    [tool] = fake.requests[0].tools
    assert (tool.name, tool.description) == ("Paint", "Paint a room.")
    assert tool.schema_object()["required"] == ["room"]


#: Texts as annotations, which Python runs when it reads them: each raises something else.
_WRONG_TEXTS = (
    "1/0", "os.nope", "int |", "two words", "nope", "nope[0]", "int[0]", "5", "[].pop()",
    "{}['a']", "\0", "", "(" * 300,
    "__import__('nope')", "a" * 5_000, "next(iter(()))",
)  # fmt: skip


@for_each("text", _WRONG_TEXTS)
def test_an_annotation_that_raises_is_told_at_once(text: str) -> None:
    """A misspelled `datetime.dattime` as text ended in a bare AttributeError, other texts in whatever they raised."""

    def look(place: int) -> str:
        return ""

    look.__annotations__ = {"place": text}
    inner = dataclasses.make_dataclass("Inner", ["place"])
    inner.__annotations__ = {"place": text}

    def nested(place: int) -> str:
        return ""

    nested.__annotations__ = {"place": inner}
    for tool in (look, nested):
        with pytest.raises(UsageError, match=f"^tool {tool.__name__}: its ") as told:
            tool_of(tool)
        assert len(str(told.value)) < 500
    with pytest.raises(UsageError, match=r"^output_type: Inner cannot be said in JSON: ."):
        OutputType(inner)
