"""Typed output: an invoice read in nested types, a union, a TypedDict, pydantic, one answer that does not fit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict

import msgspec
import pydantic

import dragoman
from dragoman.testing import FakeModel


@dataclass
class Line:
    name: str
    cents: int
    tags: list[str] = field(default_factory=list)


@dataclass
class Invoice:
    number: str
    lines: list[Line]
    note: str | None = None


class Point(TypedDict):
    x: float
    y: float


class Colour(msgspec.Struct):
    red: int
    green: int


class Person(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(ge=0)


@dataclass
class Refusal:
    why: str


client = dragoman.Client()
with FakeModel(
    '{"number": "7", "lines": [{"name": "tea", "cents": 250}]}',
    '{"x": 1, "y": 2.5}',
    '{"red": 1, "green": 2}',
    '{"name": "Ada", "age": -3}',
    '{"name": "Ada", "age": 36}',
    '{"answer": {"why": "not readable"}}',
    "I would rather not.",
    "I would rather not.",
) as fake:
    invoice = client.reply("anthropic/claude-sonnet-4-5", "Read", output_type=Invoice).output
    total: int = sum(line.cents for line in invoice.lines)
    print(invoice, total)
    point = client.reply("ollama/granite4", "Where?", output_type=Point).output
    print(point["x"] + point["y"])
    print(client.reply("openai/gpt-5", "Colour?", output_type=Colour).output.green)
    person = client.reply("google/gemini-2.5-flash", "Who?", output_type=Person)
    print(person.output.name, person.output.age, len(fake.requests))
    either = client.run("lab/any", "Read", output_type=Invoice | Refusal).output
    if isinstance(either, Refusal):
        print("refused", either.why)
    try:
        client.reply("lab/any", "Read", output_type=list[Invoice])
    except dragoman.OutputInvalid as invalid:
        print("invalid", invalid.reply.text, invalid)
