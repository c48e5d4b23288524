"""The programs that the documents promise, word for word, against a fake model in place of every provider."""

from __future__ import annotations

import contextlib
import inspect
import io
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.testing import FakeModel, call
from dragoman.types import Request

PROGRAMS = (Path(__file__).parents[1] / "data" / "interface_programs.txt").read_text(encoding="utf-8")


def answered(request: Request) -> Any:
    if request.params.response_schema is not None:
        return '{"name": "Lima", "population": 10000000}'
    if request.tools and request.messages[-1].role != "tool":
        return call("get_weather", city="Paris")
    return f"said of {request.model}"


def run_programs() -> tuple[dict[str, Any], str]:
    """Run them as a module; its names, and what it printed."""
    names: dict[str, Any] = {"__name__": "interface_programs"}
    printed = io.StringIO()
    with FakeModel(*[answered] * 40), contextlib.redirect_stdout(printed):
        exec(compile(PROGRAMS, "interface_programs.py", "exec", dont_inherit=True), names)
        names["test_weather"]()
        names["attempts"] = names["client"].reply(["lab/qwen3", "ollama/granite4"], "hi").attempts
    return names, printed.getvalue()


def test_the_eight_programs_run_word_for_word() -> None:
    names, printed = run_programs()
    assert names["city"] == names["City"]("Lima", 10000000)
    assert "said of claude-sonnet-4-5" in printed
    assert "{'city': 'Paris'}" in printed
    assert str(names["answer"]) == "said of granite4"
    assert "ask me first" in names["run"].answer.messages[-2].text
    assert [(attempt.target, attempt.outcome) for attempt in names["attempts"]] == [("lab/qwen3", "answered")]


@pytest.mark.parametrize("name", ["reply", "stream", "run", "run_stream", "embed"])
@pytest.mark.parametrize("kind", [dragoman.Client, dragoman.AsyncClient])
def test_every_argument_is_described_where_an_editor_shows_it(kind: type, name: str) -> None:
    """In the method's own docstring: an editor does not follow "as in …" to another method for the first argument."""
    method = getattr(kind, name)
    text = inspect.getdoc(method) or ""
    described = {word for line in text.splitlines() for word in line.partition(":")[0].replace(",", " ").split()}
    assert [one for one in inspect.signature(method).parameters if one != "self" and one not in described] == []
    assert inspect.getdoc(getattr(dragoman, name)) is not None


def test_an_event_is_printed_without_what_it_does_not_say() -> None:
    with FakeModel("hi"), dragoman.Client().stream("lab/m", "Hello") as stream:
        printed = [str(event) for event in stream]
    assert "TextDelta(index=0, text='hi')" in printed and "TextEnd(index=0)" in printed
    assert [text for text in printed if "None" in text] == []
