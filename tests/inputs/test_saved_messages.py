"""A conversation is kept as JSON text, and comes back as it was."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from agent.session.test_session_file import MESSAGES
from dragoman import Message, UsageError
from dragoman._json import Raw
from dragoman.testing import FakeModel, call, thinking
from dragoman.types import Opaque
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


#: By protocol, an answer that keeps `%s`, a number, beside its text.
KEEPING = {
    "ollama-chat": '{"model":"m","message":{"role":"assistant","content":"hi","score":%s},"done":true}',
    "openai-chat": '{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hi",'
    '"annotations":[{"type":"url_citation","url_citation":{"url":"u","score":%s}}]}}]}',
    "openai-responses": '{"object":"response","status":"completed","id":"r","output":[{"type":"file_search_call",'
    '"id":"f","status":"completed","queries":["q"],"results":[{"score":%s}]},{"type":"message","id":"m",'
    '"role":"assistant","score":%s,"content":[{"type":"output_text","text":"hi","annotations":[{"score":%s}]},'
    '{"type":"new","score":%s}]}]}',
    "anthropic-messages": '{"type":"message","role":"assistant","stop_reason":"end_turn","content":[{"type":"text",'
    '"text":"hi","citations":[{"type":"char_location","score":%s}]},{"type":"new","score":%s}]}',
    "gemini-generate": '{"candidates":[{"finishReason":"STOP","content":{"role":"model","parts":[{"text":"hi",'
    '"score":%s},{"new":{"score":%s}}]}}]}',
}


@for_each("protocol", KEEPING)
def test_what_an_answer_keeps_can_be_kept(protocol: Any) -> None:
    for word in ("NaN", "-Infinity", "1e999", "1.50"):
        answer = dragoman.decode(KEEPING[protocol].replace("%s", word).encode(), protocol)
        said = [Message.user("hello"), answer.message]
        assert answer.text == "hi" and dragoman.load_messages(dragoman.dump_messages(said)) == tuple(said)


OTHER = (
    None, 3, ["x"], "", "hi", "{}", "[3]", '[{"role":"user"}]', '[{"role":"user","parts":[{"kind":"x"}]}]',
    '[{"role":"user","parts":[]}]', '[{"role":"tool","parts":[{"kind":"text","value":{"text":"a"}}]}]',
    '[{"role":"assistant","parts":[{"kind":"call","value":{"id":"a","name":"","arguments":"{}"}}]}]',
    '[{"role":"tool","parts":[{"kind":"result","value":{"call_id":"","name":"","parts":[{"kind":"thinking","value":{"text":""}}]}}]}]',
)  # fmt: skip


@for_each("given", OTHER)
def test_other_text_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=r"^load_messages: expected the text of dump_messages"):
        dragoman.load_messages(given)


NO_UTF8 = Message("assistant", (Opaque("openai-chat", Raw(b'"\xff"')),))


@for_each("given", [None, 3, "", [3], [""], {"role": "user"}, NO_UTF8])
def test_what_is_no_conversation_is_refused(given: Any) -> None:
    with pytest.raises(UsageError):
        dragoman.dump_messages(given)
