"""A word that a field of a request has tomorrow: it reaches servers of its own protocol or is named, everywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dragoman.client.exchange import Exchange
from dragoman.client.request.forwarding import ClientHead
from dragoman.config import Config, load_config
from dragoman.errors import DragomanError
from dragoman.events import Deviation, Failure
from dragoman.protocols import PROTOCOLS
from dragoman.routing.resolve import resolve, with_defaults
from dragoman.types import ProtocolName
from for_each import for_each

TARGETS: Final = ("deepseek/m", "openai/m", "anthropic/m", "gemini/m", "ollama/m")
WORD: Final = "wonder"
#: The forms in which a new word may come.
FORMS: Final[tuple[Any, ...]] = (WORD, {"type": WORD}, {"type": WORD, "x": 1}, [WORD])
CHAT: Final = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
FUNCTION: Final = {"name": "g", "parameters": {"type": "object"}}
#: Protocol → a request → the fields (a path of keys) that take words.
FIELDS: Final[dict[ProtocolName, tuple[dict[str, Any], tuple[str, ...]]]] = {
    "openai-chat": (
        {**CHAT, "tools": [{"type": "function", "function": FUNCTION}]},
        ("tool_choice", "response_format", "reasoning_effort", "thinking", "enable_thinking", "think", "service_tier",
         "prompt_cache_retention", "parallel_tool_calls", "modalities", "verbosity", "new_field"),
    ),
    "openai-responses": (
        {"model": "m", "input": "hi", "tools": [{"type": "function", **FUNCTION}]},
        ("tool_choice", "text.format", "text.verbosity", "reasoning.effort", "reasoning.summary", "truncation",
         "include", "service_tier", "prompt_cache_retention", "parallel_tool_calls", "new_field"),
    ),
    "anthropic-messages": (
        {**CHAT, "max_tokens": 5, "tools": [{"name": "g", "input_schema": {"type": "object"}}]},
        ("tool_choice", "output_config.format", "output_config.effort", "thinking", "service_tier", "cache_control",
         "context_management", "new_field"),
    ),
    "gemini-generate": (
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": [{"functionDeclarations": [FUNCTION]}]},
        ("toolConfig.functionCallingConfig.mode", "generationConfig.responseMimeType", "generationConfig.newField",
         "generationConfig.thinkingConfig.thinkingLevel", "generationConfig.mediaResolution", "newField"),
    ),
    "ollama-chat": (CHAT, ("format", "think", "keep_alive", "options.new_option", "new_field")),
}  # fmt: skip
CASES: Final = [(client, path) for client, (_, paths) in FIELDS.items() for path in paths]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    file: Path = tmp_path_factory.mktemp("words") / "dragoman.toml"
    file.write_text("")
    keys = {"DEEPSEEK_API_KEY": "k", "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k"}
    return load_config(file, environ=keys, home=file.parent)


def bodies(client: ProtocolName, path: str) -> Iterator[bytes]:
    for form in FORMS:
        body: dict[str, Any] = {}
        *above, last = path.split(".")
        inner = body
        for key in above:
            inner = inner.setdefault(key, {})
        inner[last] = form
        yield json.dumps(FIELDS[client][0] | body).encode()


def is_told(client: ProtocolName, body: bytes, target: str, config: Config) -> bool:
    """Whether the word is in what is sent, in a deviation, or why the request is refused."""
    try:
        parsed = PROTOCOLS[client].parse_request(body, path="/v1beta/models/m:generateContent")
        found = resolve(target, config)
        head = ClientHead(client, {})
        exchange = Exchange(found, with_defaults(parsed.request, found), new_id=lambda: "0" * 24, head=head)
    except DragomanError:
        return True
    told = exchange.fail(Failure("connection", "nothing is sent"))
    is_named = bool(parsed.deviations) or any(type(event) is Deviation for event in told)
    return is_named or WORD in exchange.outgoing.body.decode().lower()


@for_each(("client", "path"), CASES, ids=lambda each: each)
def test_a_new_word_is_seen_or_named(client: ProtocolName, path: str, config: Config) -> None:
    for body in bodies(client, path):
        assert [target for target in TARGETS if not is_told(client, body, target, config)] == [], body
