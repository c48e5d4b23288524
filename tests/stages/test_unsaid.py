"""What a protocol cannot say of a request is declared, never silent."""

from __future__ import annotations

import pytest

from dragoman import _json
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Named, Params, ProtocolName, Request, ResponseSchema, Text, ToolChoice

HELLO = (Message("user", (Text("hello"),)),)
FORM = ResponseSchema(_json.raw({"type": "object"}), strict=True, description="d")


def dropped(protocol: ProtocolName, request: Request) -> set[str]:
    rendered = PROTOCOLS[protocol].render_request(request)
    return {deviation.where for deviation in rendered.deviations if deviation.code == "dropped"}


@pytest.mark.parametrize("choice", ["any", Named("find")])
@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_a_choice_without_tools(protocol: ProtocolName, choice: ToolChoice) -> None:
    assert "tool_choice" in dropped(protocol, Request("m", HELLO, (), choice))


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_a_conversation_without_a_cache_key(protocol: ProtocolName) -> None:
    """It is a hint alone: a note, and no fault of any request that the agent makes."""
    deviations = PROTOCOLS[protocol].render_request(Request("m", HELLO, session_id="s")).deviations
    assert [(each.code, each.severity) for each in deviations if each.where == "session_id"] == [("dropped", "note")]


@pytest.mark.parametrize("protocol", ["ollama-chat", "gemini-generate", "anthropic-messages"])
def test_what_stands_beside_a_schema(protocol: ProtocolName) -> None:
    lost = {"params.response_schema.strict", "params.response_schema.description"}
    assert lost <= dropped(protocol, Request("m", HELLO, params=Params(response_schema=FORM)))


@pytest.mark.parametrize("protocol", ["anthropic-messages", "gemini-generate"])
def test_a_message_with_nothing_in_it(protocol: ProtocolName) -> None:
    assert dropped(protocol, Request("m", (*HELLO, Message("assistant", ())))) == {"messages[1]"}
