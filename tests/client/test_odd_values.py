"""Values that are nearly of a plain kind: subclasses of texts and numbers, half characters and odd keys in tables."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any, get_args

import msgspec
import pytest

import dragoman
from dragoman.testing import FakeModel, call
from dragoman.types import ProtocolName
from for_each import for_each


class Markup(str):
    """As a library of templates returns it."""


class Fraction(float):
    """As a library of arrays returns it."""


class Count(int):
    """As a library of units returns it."""


class Word(enum.StrEnum):
    HELLO = "hello"


def subclassed(value: Any) -> Any:
    """Return the value with a subclass in place of each text and number, keys too."""
    match value:
        case bool() | None:
            return value
        case str():
            return Markup(value)
        case int():
            return Count(value)
        case float():
            return Fraction(value)
        case dict():
            return {subclassed(key): subclassed(one) for key, one in value.items()}
        case list() | tuple():
            return type(value)([subclassed(one) for one in value])
        case msgspec.Struct():
            return type(value)(*[subclassed(getattr(value, name)) for name in value.__struct_fields__])
    return value


SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "minLength": 1}}}
CALL = dragoman.ToolCall("c1", "find", '{"city": "Rome"}')
RESULT = dragoman.ToolResult("c1", "find", (dragoman.Text("here"),))
PICTURE = dragoman.Media("image", "image/png", "aGk=")
#: What a program passes, by an argument.
PASSED: list[dict[str, Any]] = [
    {"target": "lab/m"},
    {"target": ["lab/m"]},
    {"messages": "hi"},
    {"messages": ["hi"]},
    {"messages": dragoman.Message("user", (dragoman.Text("hi"), PICTURE))},
    {"messages": ["hi", dragoman.Message("assistant", (CALL,)), dragoman.Message("tool", (RESULT,))]},
    {"messages": [{"role": "user", "content": "hi"}]},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
    {"system": "hi"},
    {"tools": [dragoman.Tool("find", "Find.", SCHEMA)], "tool_choice": "find"},
    {"tools": [{"name": "find", "description": "Find.", "parameters": SCHEMA}]},
    {"stop": "a"},
    {"stop": ["a"], "temperature": 0.5, "top_p": 0.5, "max_tokens": 50, "seed": 5, "timeout": 50.5},
    {"reasoning": "low", "cache": "short", "session_id": "one"},
    {"params": {"max_tokens": 5, "temperature": 0.5, "stop": ["a"], "response_schema": SCHEMA}},
]


@pytest.mark.parametrize("protocol", get_args(ProtocolName))
def test_a_subclass_of_a_text_or_a_number_is_sent_as_one(protocol: ProtocolName) -> None:
    """Each was a bare `TypeError` from within, when the request was written."""

    def sent(change: Callable[[Any], Any]) -> list[dragoman.Request]:
        with FakeModel(*["yes"] * len(PASSED), protocol=protocol) as fake:
            for passed in PASSED:
                given: dict[str, Any] = {"target": "lab/m", "messages": "hi"} | {
                    name: change(value) for name, value in passed.items()
                }
                dragoman.reply(**given)
        return fake.requests

    assert sent(subclassed) == sent(lambda value: value)


def test_what_else_takes_a_text_takes_its_subclass() -> None:
    def find(city: str) -> dict[str, Any]:
        """Find a city."""
        return {Markup("city"): Markup(city), "height": Fraction(1.5), "people": Count(5), "kind": Word.HELLO}

    with FakeModel(call(Markup("find"), city=Markup("Rome")), Markup("yes")) as fake:
        answer = dragoman.run("lab/m", Word.HELLO, tools=[find])
        assert str(answer) == "yes" and fake.requests[0].messages[-1].text == "hello"
        result = fake.requests[1].messages[-1].parts[0]
        assert isinstance(result, dragoman.ToolResult)
        assert result.text == '{"city":"Rome","height":1.5,"people":5,"kind":"hello"}'
        assert dragoman.load_messages(Markup(dragoman.dump_messages([Markup("hi"), *answer.messages])))[0].text == "hi"
        assert dragoman.embed(Markup("openai/m"), Markup("one")).vectors == dragoman.embed("openai/m", ["one"]).vectors
    tables = {"lab": {"base_url": "http://127.0.0.1:1", "protocol": "openai-chat", "headers": {"a": "b"}}}
    dragoman.Client(providers=subclassed(tables), routes=subclassed({"fast": ["lab/m"]})).close()


LAB = {"base_url": "http://127.0.0.1:1", "protocol": "openai-chat"}


def odd_tables() -> Iterator[dict[str, Any]]:
    for odd in ("\ud800", {"\ud800": "b"}, {"a": "\ud800"}, ["\ud800"], {5: "a"}, {None: "a"}):
        for name in (*LAB, "headers", "dialect", "clean"):
            yield {"providers": {"lab": LAB | {name: odd}}}
        yield {"providers": {"lab": odd}}
        for name in ("targets", "tools", "strict"):
            yield {"routes": {"fast": {"targets": ["lab/m"]} | {name: odd}}, "providers": {"lab": LAB}}
        for table, name in (("http", "connect_seconds"), ("server", "protocols"), ("agent", "allow"), ("agent", "mcp")):
            yield {"config": {table: {name: odd}}}
    yield {"base_url": LAB["base_url"], "api_key": "\ud800"}
    yield {"providers": {"lab": LAB | {"api_key": "\ud800"}}}


@for_each("given", odd_tables())
def test_a_table_in_code_holds_what_a_file_can_hold(given: dict[str, Any]) -> None:
    """Half a character was a bare `UnicodeEncodeError`, or was taken and broke the request."""
    with pytest.raises(dragoman.DragomanError) as told:
        dragoman.Client(**given).close()
    assert len(str(told.value)) < 700


@for_each("servers", [{"files": {None: 1}}, {"files": {"command": ["a"], 5: {}}}, {"files": {"command": ["\ud800"]}}])
def test_a_table_of_an_mcp_server_too(servers: Any) -> None:
    with FakeModel("yes") as fake, pytest.raises(dragoman.UsageError, match=r"mcp\.files"):
        dragoman.run("lab/m", "hi", mcp=servers)
    assert fake.requests == []


def test_a_schema_has_some_hundred_levels_at_most_on_every_python() -> None:
    """Python 3.14 wrote 50,000 of them, which no server reads."""

    def nested(levels: int) -> dict[str, Any]:
        schema: dict[str, Any] = {}
        for _ in range(levels - 1):
            schema = {"items": schema}
        return schema

    with FakeModel(*["yes"] * 2):
        dragoman.reply("lab/m", "hi", tools=[dragoman.Tool("wide", "", {"enum": [[{}]] * 600})])
        dragoman.reply("lab/m", "hi", tools=[dragoman.Tool("deep", "", nested(90))])
        for levels in (501, 5_000):
            with pytest.raises(dragoman.UsageError, match=r"tools\[0\]\.schema"):
                dragoman.reply("lab/m", "hi", tools=[dragoman.Tool("deep", "", nested(levels))])


def test_a_long_word_is_clipped() -> None:
    for name in ("tools", "strict", "cache"):
        with pytest.raises(dragoman.ConfigError) as told:
            dragoman.Client({"routes": {"fast": {"targets": ["a/b"], name: "x" * 5_000}}})
        assert f"routes.fast.{name}: expected one of" in str(told.value) and len(str(told.value)) < 300


@for_each("value", [5, None, "a", object(), [5], [[]]])
def test_what_is_no_response_has_no_events(value: Any) -> None:
    for function in (dragoman.fold, dragoman.unfold):
        with pytest.raises(dragoman.UsageError, match="fold: expected"):
            function(value)
