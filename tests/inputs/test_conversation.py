"""What users pass as tools and messages: functions, our own values, dicts of any of the five protocols."""

from __future__ import annotations

from typing import Any, Final

import pytest

from dragoman.errors import UsageError
from dragoman.inputs.conversation import read_messages, read_tools
from dragoman.protocols.recognize import protocol_of_messages
from dragoman.types import Media, Message, Text, Thinking, Tool, ToolCall, ToolResult
from for_each import for_each

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
GOOGLE = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}
CALL = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "find", "arguments": '{"city":"Rome"}'}}]}


@pytest.mark.parametrize(
    "declared",
    [
        {"type": "function", "function": {"name": "find", "description": "d", "parameters": SCHEMA}},
        {"type": "function", "name": "find", "description": "d", "parameters": SCHEMA},
        {"name": "find", "description": "d", "parameters": SCHEMA},
        {"name": "find", "description": "d", "input_schema": SCHEMA},
        {"name": "find", "description": "d", "inputSchema": SCHEMA},
        {"name": "find", "description": "d", "parametersJsonSchema": SCHEMA},
        {"name": "find", "description": "d", "parameters": GOOGLE},
        {"functionDeclarations": [{"name": "find", "description": "d", "parameters": GOOGLE}]},
    ],
)
def test_a_tool_of_any_protocol(declared: dict[str, Any]) -> None:
    ((tool,), functions) = read_tools([declared])
    assert (tool.name, tool.description, tool.schema_object(), functions) == ("find", "d", SCHEMA, {})


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"type": "web_search_20250305", "name": "web_search"}, r"only its provider runs at tools\[1\]"),
        ({"type": "web_search"}, r"got the keys type at tools\[1\]"),
        ({"name": ""}, r"expected the name of a tool at tools\[1\]"),
        ({"functionDeclarations": [{"name": ""}]}, r"expected .*name.* at tools\[1\]"),
        ({"type": "function", "function": {"name": ""}}, r"expected the name of a tool at tools\[1\]"),
        ({"name": "find", "parameters": "{}"}, r"expected a JSON schema as an object.*tools\[1\] \(find\)"),
        ({"name": "first"}, "expected tools of different names, got first more than once"),
        ({"name": "find", "parameters": {"x": object()}}, "expected plain JSON values"),
        (3, r"tools\[1\]: expected a function, a Tool, a model or a dict, got an int"),
    ],
)
def test_what_is_no_tool_is_refused(declared: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        read_tools([Tool("first"), declared])


@pytest.mark.parametrize(
    ("protocol", "messages"),
    [
        ("openai-chat", [CALL, {"role": "tool", "tool_call_id": "a", "content": "sunny"}]),
        (
            "ollama-chat",
            [
                {"role": "assistant", "tool_calls": [{"function": {"name": "find", "arguments": {"city": "Rome"}}}]},
                {"role": "tool", "tool_name": "find", "content": "sunny"},
            ],
        ),
        (
            "openai-responses",
            [
                {"type": "function_call", "call_id": "a", "name": "find", "arguments": '{"city":"Rome"}'},
                {"type": "function_call_output", "call_id": "a", "output": "sunny"},
            ],
        ),
        (
            "anthropic-messages",
            [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "a", "name": "find", "input": {"city": "Rome"}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "sunny"}]},
            ],
        ),
        (
            "gemini-generate",
            [
                {"role": "model", "parts": [{"functionCall": {"name": "find", "args": {"city": "Rome"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "find", "response": {"result": "sunny"}}}]},
            ],
        ),
    ],
)
def test_messages_of_any_protocol(protocol: str, messages: list[dict[str, Any]]) -> None:
    assert protocol_of_messages(messages) == protocol
    call, result = (message.parts[0] for message in read_messages(messages))
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert (call.name, call.values(), result.text, result.call_id) == ("find", {"city": "Rome"}, "sunny", call.id)


def test_a_failed_result_with_an_image() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    content = [{"type": "text", "text": "no"}, {"type": "image", "source": source}]
    block = {"type": "tool_result", "tool_use_id": "a", "content": content, "is_error": True}
    (message,) = read_messages([{"role": "user", "content": [block]}])
    (result,) = message.parts
    assert isinstance(result, ToolResult)
    assert result.is_error
    assert [type(part) for part in result.parts] == [Text, Media]


def test_our_own_messages_and_dicts_mix() -> None:
    ours = Message("assistant", (Text("hello"),))
    read = read_messages([{"role": "user", "content": "hi"}, ours, {"role": "user", "parts": [{"text": "bye"}]}])
    assert [message.text for message in read] == ["hi", "hello", "bye"]


@pytest.mark.parametrize("messages", [[], [3], [{"role": "wizard", "content": "x"}]])
def test_what_is_no_conversation_is_refused(messages: Any) -> None:
    with pytest.raises(UsageError, match="expected"):
        read_messages(messages)


_CALL: Final = ToolCall("c", "add", '{"a": 1}')


@pytest.mark.parametrize("said", ["3", ["3"], [Text("3")], (Text("3"),)])
def test_a_result_is_given_as_text_or_parts(said: Any) -> None:
    meant = (Message("tool", (ToolResult("c", "add", (Text("3"),)),)),)
    assert read_messages([Message("tool", (ToolResult("c", "add", said),))]) == meant
    assert read_messages([Message.tool(_CALL, "3")]) == meant


@for_each(
    "message",
    [
        Message("tool", "3"), Message("user", (Text(5),)), Message("assistant", (Thinking(None),)),
        Message("assistant", (ToolCall("c", "add", {"a": 1}),)), Message("assistant", (ToolCall("c", None, "{}"),)),
        Message("tool", (ToolResult(5, "add", ()),)), Message("tool", (ToolResult("c", "add", 5),)),
        Message("tool", (ToolResult("c", "add", (Text(5),)),)), Message("tool", (ToolResult("c", "add", (_CALL,)),)),
    ],
)  # fmt: skip
def test_a_part_of_another_kind_is_refused(message: Any) -> None:
    with pytest.raises(UsageError, match=r"^messages\[0\]"):
        read_messages([message])


@for_each("made", [lambda: Message.tool("c", "3"), lambda: Message.tool(_CALL), lambda: Message.tool(_CALL, _CALL)])
def test_a_result_of_another_kind_is_refused(made: Any) -> None:
    with pytest.raises(UsageError, match=r"^Message\.tool: expected"):
        made()
