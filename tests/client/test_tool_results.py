"""What a tool returned reaches the model as text or JSON, at any depth, or is refused by its name."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import ipaddress
import itertools
import json
import types
import uuid
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from pathlib import PurePosixPath
from typing import Any, ClassVar

import msgspec
import pydantic
import pytest

import dragoman
from dragoman.client.runs.results import told
from dragoman.testing import FakeModel
from for_each import for_each


@dataclasses.dataclass
class Box:
    held: Any


class Crate(msgspec.Struct, tag="crate", rename="camel"):
    first_held: Any = None
    not_said: Any = msgspec.UNSET


class Card(pydantic.BaseModel):
    held: Any = None


@dataclasses.dataclass
class Parcel:
    held: int
    unset: int = dataclasses.field(init=False)
    weight: ClassVar[int] = 5
    stamp: dataclasses.InitVar[int] = 7


class Letter:
    """As those of attrs, with a field that has no value yet."""

    __attrs_attrs__ = (types.SimpleNamespace(name="held"), types.SimpleNamespace(name="unset"))

    def __init__(self, held: int) -> None:
        self.held = held


class Colour(enum.Enum):
    RED = "red"


class Array:
    """As numpy's: what `tolist` gives is plain, but for dates, of which it makes counts of nanoseconds."""

    def __init__(self, values: list[Any], kind: str = "i") -> None:
        self.values = values
        self.dtype = types.SimpleNamespace(kind=kind)

    def tolist(self) -> list[Any]:
        return self.values if self.dtype.kind == "i" else [1_700_000_000_000_000_000]

    def astype(self, kind: type[str]) -> Array:
        return Array([kind(value) for value in self.values])


class Table:
    """As pandas': its values without their names are half of it."""

    def tolist(self) -> list[int]:
        return [1]

    def to_dict(self) -> dict[str, int]:
        return {"a": 1}

    def __repr__(self) -> str:
        return "a    1"


class Plain:
    """A thing without a text of its own."""


@contextlib.contextmanager
def opened() -> Iterator[int]:
    yield 1


async def later() -> None: ...


async def numbers() -> AsyncIterator[int]:
    yield 1


@contextlib.asynccontextmanager
async def opened_later() -> AsyncIterator[int]:
    yield 1


#: A value, and what JSON says of it.
TOLD: list[tuple[Any, Any]] = [
    ("hi", "hi"),
    (None, None),
    (True, True),
    (5, 5),
    (1.5, 1.5),
    (10**30, 10**30),
    (float("nan"), "NaN"),
    (float("-inf"), "-Infinity"),
    ({"a": 1}, {"a": 1}),
    ({1: None, None: 2, ("a", 3): 4}, {"1": None, "null": 2, '["a",3]': 4}),
    ((1, 2), [1, 2]),
    ({1}, [1]),
    (frozenset({1}), [1]),
    (range(2), [0, 1]),
    ({"a": 1}.keys(), ["a"]),
    ({"a": 1}.values(), [1]),
    ({"a": 1}.items(), [["a", 1]]),
    (collections.deque([1]), [1]),
    (collections.UserList([1]), [1]),
    (collections.UserDict(a=1), {"a": 1}),
    (types.MappingProxyType({"a": 1}), {"a": 1}),
    (Box(1), {"held": 1}),
    (Crate(1), {"type": "crate", "firstHeld": 1}),
    (Card(held=PurePosixPath("a/b")), {"held": "a/b"}),
    (Colour.RED, "red"),
    (datetime.datetime(2026, 1, 2, 3), "2026-01-02T03:00:00"),
    (datetime.date(2026, 1, 2), "2026-01-02"),
    (datetime.timedelta(days=1), "P1D"),
    (decimal.Decimal("1.10"), "1.10"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (PurePosixPath("a/b"), "a/b"),
    (ipaddress.ip_address("10.0.0.1"), "10.0.0.1"),
    (fractions.Fraction(1, 3), "1/3"),
    (1 + 2j, "(1+2j)"),
    (ValueError("no"), "ValueError: no"),
    (ValueError(), "ValueError: "),
    (
        ExceptionGroup("two", [KeyError("a"), ExceptionGroup("one", [OSError("b")])]),
        "ExceptionGroup: two (2 sub-exceptions); KeyError: 'a'; ExceptionGroup: one (1 sub-exception); OSError: b",
    ),
    (collections.UserString("hi"), "hi"),
    (Parcel(1), {"held": 1}),
    (Letter(1), {"held": 1}),
    (Array([1, 2]), [1, 2]),
    (Array(["2026-01-02"], "M"), ["2026-01-02"]),
    (Table(), "a    1"),
]
#: What makes a value that no model reads, and a word of why.
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: b"PNG", "no model reads them"),
    (lambda: bytearray(b"PNG"), "no model reads them"),
    (lambda: memoryview(b"PNG"), "no model reads them"),
    (lambda: (one for one in [1]), "nobody has read its values"),
    (lambda: map(str, [1]), "nobody has read its values"),
    (lambda: filter(None, [1]), "nobody has read its values"),
    (lambda: zip([1], [2], strict=True), "nobody has read its values"),
    (lambda: iter([1]), "nobody has read its values"),
    (itertools.count, "nobody has read its values"),
    (numbers, "nobody has read its values"),
    (later, "nobody has awaited it"),
    (opened, "it has no text of its own"),
    (opened_later, "it has no text of its own"),
    (lambda: later, "it has no text of its own"),
    (lambda: functools.partial(print), "it has no text of its own"),
    (lambda: Box, "it has no text of its own"),
    (lambda: Card, "it has no text of its own"),
    (lambda: types.SimpleNamespace(held=Plain()), "it has no text of its own"),
    (Plain, "it has no text of its own"),
    (lambda: {1: "a", "1": "b"}, "two keys of an object are the same in JSON"),
    (lambda: dragoman.ToolResult("a", "b", ()), "return it alone"),
]  # fmt: skip
#: What may stand around a value, and what JSON says of that.
AROUND: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda value: [value], lambda said: [said]),
    (lambda value: (0, value), lambda said: [0, said]),
    (lambda value: {"a": value}, lambda said: {"a": said}),
    (lambda value: types.MappingProxyType({"a": value}), lambda said: {"a": said}),
    (lambda value: collections.deque([value]), lambda said: [said]),
    (lambda value: {"a": value}.values(), lambda said: [said]),
    (Box, lambda said: {"held": said}),
    (Crate, lambda said: {"type": "crate", "firstHeld": said}),
    (lambda value: Array([value]), lambda said: [said]),
]


@for_each("value, said", TOLD)
def test_a_value_is_told_as_json_at_any_depth(value: Any, said: Any) -> None:
    alone = told(value)
    if isinstance(said, str) or said is None:
        assert alone == (said or "")
    else:
        assert json.loads(alone) == said
    for (outer, said_outer), (inner, said_inner) in itertools.product(AROUND, AROUND):
        expected = said_outer(said_inner(said))
        assert json.loads(told(outer(inner(value)))) == expected


@pytest.mark.filterwarnings("ignore:coroutine 'later' was never awaited:RuntimeWarning")
@for_each("make, why", REFUSED)
def test_what_no_model_reads_is_refused_by_its_name_at_any_depth(make: Callable[[], Any], why: str) -> None:
    """A list of coroutines, or a generator in a dict, went to the model as `<generator object at 0x…>`."""
    value = make()
    name = "dict" if isinstance(value, dict) else type(value).__name__
    if not isinstance(value, dragoman.ToolResult):
        with pytest.raises(dragoman.UsageError, match=f"the tool returned (an? )?{name}.*: {why}"):
            told(value)
    around = [outer for outer, _ in AROUND]
    if isinstance(value, Hashable) and not isinstance(value, memoryview):
        around += [lambda value: {value: 1}, lambda value: {(value, 1): 1}, lambda value: {value}]
    for outer, (inner, _) in itertools.product(around, AROUND):
        with pytest.raises(dragoman.UsageError, match=f"the tool returned an? .* in it: {why}"):
            told(inner(outer(value)))


def look() -> str:
    """Look."""
    return "here"


@for_each("tool", [Card, dragoman.Tool("Card"), {"name": "Card", "description": "A card.", "parameters": {}}])
def test_a_run_takes_no_tool_that_it_cannot_call(tool: Any) -> None:
    """The model called it and read that there is no such tool; there are: that tool."""
    with FakeModel() as fake, pytest.raises(dragoman.UsageError, match=r"tools: expected functions .*, got Card with"):
        dragoman.run("lab/m", "hi", tools=[look, tool])
    assert fake.requests == []


def mapped(value: Any) -> Any:
    """Return the value with a mapping that is no dict in place of each dict."""
    if isinstance(value, dict):
        return types.MappingProxyType({key: mapped(one) for key, one in value.items()})
    return [mapped(one) for one in value] if isinstance(value, list) else value


TURN = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
CALLED = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
TURNS = [TURN, {"role": "assistant", "tool_calls": [CALLED]}, {"role": "tool", "tool_call_id": "c1", "content": "a"}]


def test_any_mapping_is_a_message_and_any_sequence_a_conversation() -> None:
    """A `MappingProxyType` was refused, though the type of the argument says `Mapping`."""
    taken: list[Any] = [TURNS, mapped(TURNS), collections.deque(TURNS), collections.UserList(map(mapped, TURNS))]
    tool: Any = {"name": "find", "description": "Find.", "parameters": {"type": "object", "properties": {}}}
    with FakeModel(*["yes"] * 8) as fake:
        for messages in taken:
            for one in (tool, mapped(tool)):
                dragoman.reply("lab/m", messages, tools=[one])
    assert len(fake.requests) == 8 and all(request == fake.requests[0] for request in fake.requests)


ODD = [b"a", bytearray(b"a"), memoryview(b"a"), float("nan"), {float("nan")}, frozenset({b"a"}), {1: "a", "1": "b"}]


@for_each("odd", ODD)
def test_what_json_cannot_say_is_refused_within_messages_and_tools(odd: Any) -> None:
    """Bytes went out as base64, NaN in a set or a dataclass as null, and keys that are the same in JSON twice."""
    turn = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": odd}}]}
    inner = {
        "role": "user",
        "content": [{"type": "image_url", "image_url": dataclasses.make_dataclass("Url", ["url"])(odd)}],
    }
    for given in (
        {"messages": inner},
        {"messages": turn},
        {"messages": mapped(turn)},
        {"messages": "hi", "tools": [{"name": odd}]},
    ):
        with FakeModel() as fake, pytest.raises(dragoman.UsageError, match="expected plain JSON values, got"):
            dragoman.reply("lab/m", **given)
        assert fake.requests == []
