"""The programs that the documents promise, word for word, against a fake model in place of every provider."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

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
    assert names["run"].answer.messages[-2].text == ""
    assert "ask me first" in str(names["run"].answer.messages[-2].parts[0].text)
    assert [(attempt.target, attempt.outcome) for attempt in names["attempts"]] == [("lab/qwen3", "answered")]
