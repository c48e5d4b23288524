"""`output_type`: every kind of type, in every protocol, by structured output and in words."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

import dragoman
from dragoman.client import Client
from dragoman.inputs.output_types import NotFitting, OutputType
from dragoman.testing import FakeModel, call, error
from dragoman.types import ProtocolName, Request
from for_each import for_each

PROTOCOLS: tuple[ProtocolName, ...] = (
    "ollama-chat", "openai-chat", "openai-responses", "anthropic-messages", "gemini-generate",
)  # fmt: skip


@dataclasses.dataclass
class City:
    name: str
    population: int


class Place(TypedDict):
    name: str
    population: int


class Town(msgspec.Struct):
    name: str
    population: int


class Village(pydantic.BaseModel):
    name: str
    population: int


@dataclasses.dataclass
class Nothing:
    reason: Literal["unknown", "none"]


class NoVillage(pydantic.BaseModel):
    reason: str


LIMA = {"name": "Lima", "population": 10}
CITY = City("Lima", 10)
KINDS: dict[str, tuple[Any, Any, Any]] = {
    "dataclass": (City, LIMA, City("Lima", 10)),
    "TypedDict": (Place, LIMA, LIMA),
    "Struct": (Town, LIMA, Town("Lima", 10)),
    "pydantic": (Village, LIMA, Village(name="Lima", population=10)),
    "list of dataclasses": (list[City], {"answer": [LIMA]}, [City("Lima", 10)]),
    "list of pydantic models": (list[Village], {"answer": [LIMA]}, [Village(name="Lima", population=10)]),
    "union of dataclasses": (City | Nothing, {"answer": {"reason": "none"}}, Nothing("none")),
    "union of pydantic models": (Village | NoVillage, {"answer": {"reason": "none"}}, NoVillage(reason="none")),
    "list of a union": (
        list[City | Nothing],
        {"answer": [LIMA, {"reason": "none"}]},
        [City("Lima", 10), Nothing("none")],
    ),
    "number": (int, {"answer": 5}, 5),
    "dict": (dict[str, int], {"a": 5}, {"a": 5}),
}


def client(protocol: ProtocolName, *, native: bool) -> Client:
    dialect = {} if native else {"dialect": {"supports_response_schema": False}}
    table = {"base_url": "http://127.0.0.1:1", "protocol": protocol, **dialect}
    return Client(providers={"lab": table})


def words_of(request: Request) -> str:
    return "".join(message.text for message in request.messages if message.role == "system")


@for_each("kind", KINDS)
@for_each("protocol", PROTOCOLS)
def test_every_kind_in_every_protocol_natively(protocol: ProtocolName, kind: str) -> None:
    asked, said, expected = KINDS[kind]
    with client(protocol, native=True) as lab, FakeModel(json.dumps(said)) as fake:
        reply = lab.reply("lab/m", "Largest city of Peru", output_type=asked)
    assert reply.output == expected
    schema, words = fake.requests[0].params.response_schema, words_of(fake.requests[0])
    if protocol == "anthropic-messages" and kind == "dict":  # its API has no object of any members
        assert schema is None and "must fit this JSON schema" in words
        return
    assert schema is not None and schema.schema is not None and json.loads(bytes(schema.schema))["type"] == "object"
    assert words == ""


@for_each("kind", KINDS)
@for_each("protocol", PROTOCOLS)
def test_every_kind_in_every_protocol_in_words(protocol: ProtocolName, kind: str) -> None:
    asked, said, expected = KINDS[kind]
    fenced = f"Here it is:\n```json\n{json.dumps(said)}\n```" if isinstance(said, dict) else json.dumps(said)
    with client(protocol, native=False) as lab, FakeModel(fenced) as fake:
        reply = lab.reply("lab/m", "Largest city of Peru", system="Be short.", output_type=asked)
    assert fake.requests[0].params.response_schema is None
    assert "must fit this JSON schema" in words_of(fake.requests[0]) and "Be short." in words_of(fake.requests[0])
    assert reply.output == expected


@for_each("protocol", PROTOCOLS)
@for_each("kind", ["dataclass", "pydantic", "list of dataclasses", "union of pydantic models"])
def test_an_answer_that_does_not_fit_is_asked_for_once_more(protocol: ProtocolName, kind: str) -> None:
    asked, said, expected = KINDS[kind]
    with client(protocol, native=True) as lab, FakeModel('{"name": "Lima"}', json.dumps(said)) as fake:
        reply = lab.reply("lab/m", "Largest city of Peru", output_type=asked)
    assert reply.output == expected
    told = fake.requests[1].messages[-1]
    assert told.role == "user" and told.text.startswith("Your answer cannot be used: ")
    assert reply.usage.input is not None and reply.usage.output is not None
    assert len(reply.attempts) == 2


def test_tokens_of_both_tries_are_added() -> None:
    with Client() as plain, FakeModel("no", "no", "no") as fake:
        with pytest.raises(dragoman.OutputInvalid) as raised:
            plain.reply("openai/m", "hi", output_type=City, output_retries=2)
        tokens = raised.value.reply.usage.output
        assert len(fake.requests) == 3 and tokens is not None and tokens % 3 == 0
    assert raised.value.reply.text == "no"
    assert isinstance(raised.value, dragoman.CallFailed)


def test_no_value_of_an_answer_stands_in_an_error() -> None:
    secret = "hunter2-hunter2"
    for kind in (City, Village, list[Village], City | Nothing):
        with Client() as plain, FakeModel(json.dumps({"name": [secret], "population": secret})):
            with pytest.raises(dragoman.OutputInvalid) as raised:
                plain.reply("openai/m", "hi", output_type=kind, output_retries=0)
        assert secret not in str(raised.value)


def test_a_server_that_refuses_schemas_is_asked_in_words() -> None:
    refusal = error(400, "Unknown parameter: 'response_format'")
    with Client() as plain, FakeModel(refusal, json.dumps(LIMA)) as fake:
        assert plain.reply("openai/m", "hi", output_type=City).output == City("Lima", 10)
    assert fake.requests[1].params.response_schema is None
    with Client() as plain, FakeModel(error(400, "messages is too long")), pytest.raises(dragoman.CallFailed):
        plain.reply("openai/m", "hi", output_type=City)


def test_a_run_has_an_output_too() -> None:
    def find(city: str) -> str:
        return "10"

    with Client() as plain, FakeModel(call("find", city="Lima"), "ten", json.dumps(LIMA)) as fake:
        answer = plain.run("openai/m", "hi", tools=[find], output_type=City)
    assert answer.output == City("Lima", 10) and len(fake.requests) == 3
    with Client() as plain, FakeModel("ten", "ten"), pytest.raises(dragoman.OutputInvalid):
        plain.run("openai/m", "hi", tools=[find], output_type=City)


def test_an_answer_that_calls_tools_is_not_looked_at() -> None:
    def find(city: str) -> str:
        return "10"

    with Client() as plain, FakeModel(call("find", city="Lima")):
        reply = plain.reply("openai/m", "hi", tools=[find], output_type=City)
    assert reply.output is None and [one.name for one in reply.tool_calls] == ["find"]


def test_a_stream_has_its_output_at_the_end() -> None:
    with Client() as plain, FakeModel(json.dumps(LIMA), "no"):
        stream = plain.stream("openai/m", "hi", output_type=City)
        assert "".join(stream.text_stream) == json.dumps(LIMA)
        assert stream.reply.output == City("Lima", 10)
        stream = plain.stream("openai/m", "hi", output_type=City)
        with pytest.raises(dragoman.OutputInvalid):
            list(stream.text_stream)


class Node(msgspec.Struct):
    next: Node | None = None


@for_each("kind", [5, "City", type(None), City("a", 1), object, Node, complex, [City], {"a": int}])
def test_what_is_no_type_is_refused(kind: Any) -> None:
    with Client() as plain, FakeModel() as fake, pytest.raises(dragoman.UsageError):
        plain.reply("openai/m", "hi", output_type=kind)
    assert fake.requests == []


def test_a_union_takes_the_member_that_knows_most() -> None:
    @dataclasses.dataclass
    class Named:
        name: str

    read = OutputType(Named | City).value
    assert read(json.dumps({"answer": LIMA})) == City("Lima", 10)
    assert read('{"answer": {"name": "Lima"}}') == Named("Lima")


@for_each(
    ("kind", "is_strict"), [(City, True), (Village, True), (list[City], True), (Nothing, True), (dict[str, int], None)]
)
def test_strictness_is_asked_for_where_it_can_be(kind: Any, is_strict: bool | None) -> None:
    assert OutputType(kind).response_schema().strict is is_strict


class One(msgspec.Struct):
    a: int


class TwoDict(TypedDict):
    b: str


@dataclasses.dataclass
class Three:
    a: int
    c: int = 0


@for_each(
    ("kind", "text", "value"),
    [
        (One | TwoDict, '{"a": 1}', One(1)),
        (One | TwoDict, '{"b": "x"}', {"b": "x"}),
        (One | TwoDict | None, '{"a": 1}', One(1)),
        (Village | NoVillage, '{"reason": "none"}', NoVillage(reason="none")),
        (One | Three, '{"a": 1, "c": 2}', Three(1, 2)),
        (One | Three, '{"answer": {"a": 1, "c": 2}}', Three(1, 2)),
    ],
)
def test_an_object_without_its_frame_is_taken_where_one_member_of_a_union_fits(
    kind: object, text: str, value: object
) -> None:
    assert OutputType(kind).value(text) == value


@for_each(
    ("kind", "text"),
    [
        (One | Three, '{"a": 1}'),  # two readings
        (One | TwoDict, '{"a": 1, "b": "x"}'),  # no member has both keys
        (One | TwoDict, '{"a": "one"}'),
        (One | TwoDict, "{}"),
        (One | TwoDict, '{"value": {"a": 1}}'),
        (list[One], '{"a": 1}'),
        (int | str, '{"a": 1}'),
    ],
)
def test_an_object_without_its_frame_is_refused_where_none_fits_or_several(kind: object, text: str) -> None:
    with pytest.raises(NotFitting, match="the key 'answer' alone"):
        OutputType(kind).value(text)
