"""A conversation is kept as JSON text, and comes back as it was."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from agent.session.test_session_file import MESSAGES
from dragoman import Message, UsageError
from dragoman.testing import FakeModel, call, thinking
from for_each import for_each


def test_a_conversation_comes_back_as_it_was() -> None:
    kept = dragoman.dump_messages(MESSAGES)
    assert dragoman.load_messages(kept) == tuple(MESSAGES) == dragoman.load_messages(kept.encode())
    assert "null" not in kept and dragoman.load_messages(dragoman.dump_messages([])) == ()
    assert dragoman.load_messages(dragoman.dump_messages("hi")) == (Message.user("hi"),)


def test_a_run_goes_on_from_its_file() -> None:
    def weather(city: str) -> str:
        """Current weather of a city."""
        return "21 °C"

    with FakeModel([thinking("hm"), call("weather", city="Rome")], "It is 21 °C.", "24 °C.") as fake:
        first = dragoman.run("anthropic/claude-sonnet-4-5", "Weather in Rome?", tools=[weather])
        kept = dragoman.load_messages(dragoman.dump_messages(first.messages))
        dragoman.run("anthropic/claude-sonnet-4-5", [*kept, "And in Cairo?"], tools=[weather])
    assert kept == first.messages
    sent = fake.requests[2].messages
    assert [message.text for message in sent[:-1]] == [message.text for message in kept]
    assert sent[1].tool_calls == kept[1].tool_calls


@for_each(
    "given", [None, 3, ["x"], "", "hi", "{}", "[3]", '[{"role":"user"}]', '[{"role":"user","parts":[{"kind":"x"}]}]']
)
def test_other_text_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=r"^load_messages: expected the text of dump_messages"):
        dragoman.load_messages(given)


@for_each("given", [None, 3, "", [3], [""], {"role": "user"}])
def test_what_is_no_conversation_is_refused(given: Any) -> None:
    with pytest.raises(UsageError):
        dragoman.dump_messages(given)
