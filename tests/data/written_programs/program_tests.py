"""Tests of a program: the fixture, a broken wire, a rate limit that is retried, a recording."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import dragoman
from dragoman.testing import FakeModel, Recording, call, deviation, error


def book(title: str) -> str:
    """Borrow a book."""
    return f"{title} is yours"


def librarian(wish: str) -> str:
    return str(dragoman.run("ollama/granite4", wish, tools=[book], system="You lend books."))


def test_it_borrows(fake_model: Callable[..., FakeModel]) -> None:
    fake = fake_model(call("book", title="Emma"), "Here it is.")
    assert librarian("Emma, please") == "Here it is."
    assert fake.requests[0].tools[0].name == "book"
    assert fake.requests[1].messages[-1].role == "tool"
    assert "yours" in fake.requests[1].messages[-1].text


def test_it_survives_a_missing_id() -> None:
    with FakeModel([deviation("missing-id"), call("book", title="Emma")], "Here.") as fake:
        assert librarian("Emma") == "Here."
    assert len(fake.requests) == 2


def test_it_waits_and_asks_again() -> None:
    with FakeModel(error(429, "slow down", retry_after=0.01), "Here."):
        assert librarian("Emma") == "Here."


def test_it_reports_a_full_house() -> None:
    with FakeModel(error(400, "no")), pytest.raises(dragoman.CallFailed) as caught:
        librarian("Emma")
    assert caught.value.status == 400


def test_a_recording_replays(tmp_path: Path) -> None:
    with FakeModel("Rhine").serve() as server:
        client = dragoman.Client(base_url=server.url + "/v1")
        with Recording(tmp_path / "rivers"):
            assert str(client.reply("m", "A river?")) == "Rhine"
    with Recording(tmp_path / "rivers", mode="replay") as recording:
        assert not recording.is_recording
        assert str(client.reply("m", "A river?")) == "Rhine"
        with pytest.raises(dragoman.UsageError):
            client.reply("m", "Another question?")


def test_a_function_answers() -> None:
    def echo(request: dragoman.Request) -> str:
        return request.messages[-1].text.upper()

    with FakeModel(echo, echo):
        history: list[dragoman.Message | str] = ["hello"]
        first = dragoman.run("a/b", history)
        assert str(first) == "HELLO"
        assert dragoman.run("a/b", [*first.messages, "again"]).text == "AGAIN"
