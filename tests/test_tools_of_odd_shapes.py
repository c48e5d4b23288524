"""Tools and choices of tools in shapes that mix protocols, or that none has: what is not read of them is named."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any, Final

from conversations import reply
from dragoman.errors import UsageError
from dragoman.types import ProtocolName
from field_fates import Sent, send
from for_each import for_each
from gateway.pages.test_health import watched
from gateway.running import whole_of

MARK: Final = "mark9999"
OBJECT: Final = {"type": "object"}
CHAT: Final = "openai-chat"
RESPONSES: Final = "openai-responses"
MESSAGES: Final = "anthropic-messages"
GEMINI: Final = "gemini-generate"
OLLAMA: Final = "ollama-chat"
NESTED: Final = {"type": "function", "function": {"name": "f", "parameters": OBJECT}}
FLAT: Final = {"type": "function", "name": "f", "parameters": OBJECT}
BARE: Final = {"name": "f", "input_schema": OBJECT}
SEARCH: Final = {"type": "web_search"}
CODE: Final = {"type": "code_interpreter", "container": {"type": "auto"}}
TOOLS: Final[dict[ProtocolName, list[dict[str, Any]]]] = {
    CHAT: [NESTED, FLAT, BARE, SEARCH, CODE, {"type": "custom", "custom": {"name": "c"}}, {"type": "whatever"}],
    RESPONSES: [FLAT, NESTED, SEARCH, CODE, {"type": "custom", "name": "c"}, {"type": "tool_search"},
                {"type": "custom", "custom": {"name": "c"}}],
    MESSAGES: [BARE, {"type": "web_search_20250305", "name": "web_search"},
               {"type": "code_execution_20250825", "name": "code_execution"},
               {"type": "bash_20250124", "name": "bash"}],
    GEMINI: [{"functionDeclarations": [{"name": "f", "parameters": OBJECT}]}, {"googleSearch": {}},
             {"codeExecution": {}}, {"urlContext": {}}, {"fileSearch": {"fileSearchStoreNames": ["a"]}}],
    OLLAMA: [NESTED, {"name": "f", "parameters": OBJECT}],
}  # fmt: skip
BESIDE: Final = (
    "custom", "function", "name", "parameters", "input_schema", "strict", "type", "tools", "filters", "user_location",
    "max_uses", "defer_loading", "googleSearch", "codeExecution", "urlContext", "zork",
)  # fmt: skip
VALUES: Final = (MARK, [MARK], {"name": MARK})


def request(source: ProtocolName, *tools: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A request with these tools, and one that is always there."""
    keep = {"name": "keep", "parameters": OBJECT}
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **more}
    known: dict[str, Any] = {"type": "function", "function": keep}
    if source == GEMINI:
        body, known = {"contents": [{"parts": [{"text": "hi"}]}], **more}, {"functionDeclarations": [keep]}
    elif source == RESPONSES:
        body, known = {"model": "m", "input": "hi", **more}, {"type": "function", **keep}
    elif source == MESSAGES:
        body["max_tokens"], known = 9, {"name": "keep", "input_schema": OBJECT}
    return body | {"tools": [*tools, known]}


def played(body: dict[str, Any], source: ProtocolName, target: ProtocolName) -> Sent | None:
    """What a provider is sent; None: the client gets an error."""
    try:
        sent = send(json.dumps(body), source, target)
    except UsageError:
        return None
    return None if isinstance(sent, str) else sent


def plain(words: str) -> str:
    return words.lower().replace("_", "")


@for_each("source,target,key", product(TOOLS, TOOLS, BESIDE))
def test_what_stands_in_a_tool_beside_what_is_read_of_it_is_sent_or_named(
    source: ProtocolName, target: ProtocolName, key: str
) -> None:
    for number, tool in enumerate(TOOLS[source], BESIDE.index(key)):
        if key in tool:
            continue
        value = VALUES[number % len(VALUES)]
        sent = played(request(source, {**tool, key: value}), source, target)
        named = [] if sent is None else [plain(said.where) for said in sent.deviations]
        if sent is None or MARK in json.dumps([sent.body, named]):
            continue
        kinds = {plain(str(word)) for word in (tool.get("type"), tool.get("name"), *tool) if word}
        left_out = {"tools", *(f"tools.{kind}" for kind in kinds)}  # the whole tool
        assert left_out.intersection(named) or any(plain(key) in where for where in named), (tool, value, named)


@for_each("tool", [{"type": 7, "name": MARK}, {"type": ["function"], "name": MARK}, {"type": "function"},
                   {"type": "custom", "name": ""}, {"type": "function", "function": {}}])  # fmt: skip
def test_a_tool_that_nobody_could_call_is_refused(tool: dict[str, Any]) -> None:
    for source in (CHAT, RESPONSES):
        assert isinstance(send(json.dumps(request(source, tool)), source, CHAT), str), (source, tool)


CHOICES: Final[dict[ProtocolName, list[Any]]] = {
    CHAT: [SEARCH, "f", 7, {"type": "zork"}, {"type": "function"}, ["f"]],
    RESPONSES: [SEARCH, "f", 7, {"type": "zork"}, {"type": "mcp", "server_label": "s"}],
    MESSAGES: [SEARCH, "f", 7, {"type": "zork"}, {"type": "function", "name": "f"}],
    OLLAMA: ["f", 7, {"type": "zork"}, ["f"]],
}


@for_each("source,target", product(CHOICES, TOOLS))
def test_a_choice_that_is_not_passed_on_is_named(source: ProtocolName, target: ProtocolName) -> None:
    for choice, has_tools in product(CHOICES[source], (True, False)):
        body = request(source, tool_choice=choice)
        if not has_tools:
            del body["tools"]
        sent = played(body, source, target)
        if sent is not None and "tool_choice" not in sent.body:
            assert any(said.where.startswith("tool_choice") for said in sent.deviations), (choice, has_tools)


def test_the_log_names_the_place_of_what_was_ignored_for_its_type(tmp_path: Path) -> None:
    with watched(tmp_path) as (running, lines):
        for source, path in ((CHAT, "/v1/chat/completions"), (MESSAGES, "/v1/messages"), (OLLAMA, "/api/chat")):
            running.answer(whole_of(CHAT, reply("text")))
            body = request(source, model="via-openai-chat", tool_choice={"type": "zork"})
            assert running.request("POST", path, json.dumps(body).encode())[0] == 200
    assert [said for line in lines for said in line["lost"] if said.startswith("wrong-type")] == [
        "wrong-type tool_choice", "wrong-type tool_choice.type", "wrong-type tool_choice",
    ]  # fmt: skip
