"""Conversations of very many calls and results cost time in proportion, whatever their ids are."""

from __future__ import annotations

import pytest

from dragoman.history import fit
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Request, Text, ToolCall, ToolResult
from growth import MOST_EXPONENT, exponent

_TEXT = (Text("x"),)


def one_turn(count: int) -> list[Message]:
    """The calls of one turn have all the same id."""
    results = tuple(ToolResult("a", "f", _TEXT) for _ in range(count))
    return [Message("assistant", tuple(ToolCall("a", "f", "{}") for _ in range(count))), Message("tool", results)]


def every_turn(count: int) -> list[Message]:
    """Every turn calls twice with the same id, and has one result."""
    turn = [Message("assistant", (ToolCall("a", "f", "{}"),) * 2), Message("tool", (ToolResult("a", "f", _TEXT),))]
    return turn * count


def without_ids(count: int) -> list[Message]:
    """Nothing has an id, and the results come behind a word of the user."""
    calls = tuple(ToolCall("", "f", "{}") for _ in range(count))
    results = tuple(ToolResult("", "f", _TEXT) for _ in range(count))
    return [Message("assistant", calls), Message("user", _TEXT), Message("tool", results)]


def by_name(count: int) -> list[Message]:
    """The results have names alone, and come in the other order."""
    calls = tuple(ToolCall(f"call-{number}", f"f{number}", "{}") for number in range(count))
    results = tuple(ToolResult("", f"f{count - number}", _TEXT) for number in range(count))
    return [Message("assistant", calls), Message("user", _TEXT), Message("tool", results)]


def strangers(count: int) -> list[Message]:
    """No result is of any of the calls."""
    calls = [Message("assistant", (ToolCall(f"call-{number}", "f", "{}"),)) for number in range(count)]
    return [*calls, Message("tool", tuple(ToolResult(f"other-{number}", "f", _TEXT) for number in range(count)))]


def scattered(count: int) -> list[Message]:
    """Each result is a message, with a word of the user between."""
    calls = Message("assistant", tuple(ToolCall(f"call-{number}", "f", "{}") for number in range(count)))
    found = [calls]
    for number in range(count):
        found += [Message("user", _TEXT), Message("tool", (ToolResult(f"call-{count - 1 - number}", "f", _TEXT),))]
    return found


CONVERSATIONS = [one_turn, every_turn, without_ids, by_name, strangers, scattered]
each_conversation = pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda function: function.__name__)


@each_conversation
def test_a_conversation_is_fitted_in_linear_time(conversation):
    def run(count: int) -> object:
        return fit(Request("m", tuple(conversation(count))), protocol="anthropic-messages")

    assert exponent(run, 50) <= MOST_EXPONENT


@each_conversation
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_conversation_is_written_and_read_in_linear_time(protocol: str, conversation):
    def run(count: int) -> object:
        fitted, _ = fit(Request("m", tuple(conversation(count))), protocol=protocol)
        body = PROTOCOLS[protocol].render_request(fitted).http.body
        return PROTOCOLS[protocol].parse_request(body, path="/v1beta/models/m:generateContent")

    assert exponent(run, 50) <= MOST_EXPONENT
