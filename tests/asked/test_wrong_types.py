# ruff: noqa: E501 - requests, which a line end would tear
"""Requests with a value of another kind at any place: refused with the place, or told; nothing breaks and nothing goes
unsaid."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from asked.asking import VENDORS, asked
from asked.writing import (
    CITY,
    EVERYWHERE,
    PIXEL,
    PNG_URL,
    answered,
    called,
    chat,
    function,
    gemini,
    messages,
    ollama,
    responses,
    result,
    says,
    tells,
    tool,
    used,
)
from dragoman.types import ProtocolName
from for_each import for_each

MARK: Final = "mark9999"
#: One of each kind of JSON; a marked one is found again.
WRONG: Final[tuple[Any, ...]] = (7351, -1, 1.5, True, MARK, "", [MARK], [7351], [], {"x": MARK}, {}, [[MARK]], "\x00")
_IMAGE: Final = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
BODIES: Final[dict[ProtocolName, dict[str, Any]]] = {
    "openai-chat": chat(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": PNG_URL}}]},
        called(), answered(), {"role": "user", "content": "And?"},
        tools=[function(description="Looks.")], tool_choice={"type": "function", "function": {"name": "look"}},
        temperature=0.5, top_p=0.5, max_tokens=99, stop=["x"], seed=3, stream=False, parallel_tool_calls=True,
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": CITY}}, reasoning_effort="low"),
    "openai-responses": {
        **responses(
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Look."},
                                                            {"type": "input_image", "image_url": PNG_URL}]},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "rain"}),
        "instructions": "Be brief.", "tools": [{"type": "function", "name": "look", "description": "Looks.", "parameters": CITY}],
        "tool_choice": {"type": "function", "name": "look"}, "temperature": 0.5, "max_output_tokens": 99,
        "reasoning": {"effort": "low"}, "text": {"format": {"type": "json_schema", "name": "n", "schema": CITY}}, "stream": False},
    "anthropic-messages": messages(
        tells({"type": "text", "text": "Look."}, _IMAGE), says({"type": "text", "text": "Well."}, used()), tells(result()),
        system="Be brief.", tools=[tool(description="Looks.")], tool_choice={"type": "tool", "name": "look"}, temperature=0.5,
        top_k=3, stop_sequences=["x"], thinking={"type": "disabled"}, stream=False, metadata={"user_id": "u"}),
    "gemini-generate": gemini(
        {"role": "user", "parts": [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"city": "Rome"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": "rain"}}}]},
        systemInstruction={"parts": [{"text": "Be brief."}]},
        tools=[{"functionDeclarations": [{"name": "look", "description": "Looks.", "parameters": {"type": "OBJECT"}}]}],
        toolConfig={"functionCallingConfig": {"mode": "ANY"}},
        generationConfig={"temperature": 0.5, "maxOutputTokens": 99, "stopSequences": ["x"], "thinkingConfig": {"thinkingBudget": 5}}),
    "ollama-chat": ollama(
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look.", "images": [PIXEL]},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {"city": "Rome"}}}]},
        {"role": "tool", "tool_name": "look", "content": "rain"},
        tools=[function(description="Looks.")], format=CITY, options={"temperature": 0.5, "num_predict": 99}, think=True, stream=False),
}  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value."""
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield from places(inner, (*path, key))


def with_value(body: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    made = copy.deepcopy(body)
    inner: Any = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return made


def unsaid(client: ProtocolName, target: ProtocolName, *, step: int = 1) -> list[str]:
    """Places where a wrong value is neither refused, nor seen by the provider, nor told. `step`: plays each n-th value,
    beginning with another at each place."""
    body = BODIES[client]
    usual = asked(client, body, VENDORS[target])
    assert not usual.refused
    found = []
    for place, path in enumerate(places(body)):
        for value in WRONG[place % step :: step]:
            sent = asked(client, with_value(body, path, value), VENDORS[target])
            if sent.refused or set(sent.deviations) - set(usual.deviations):
                continue
            word = next((each for each in (MARK, "7351", "u0000") if each in json.dumps(value)), None)
            if word is not None and word not in json.dumps(sent.body).lower():
                found.append(f"{'.'.join(map(str, path))} = {json.dumps(value)}")
    return found


#: What is read all the same: the model is the target's, numbers are numbers, and a result answers by its place,
#: a model that samples in its own way takes no top_p, and names of schemas are told of always.
SAME: Final = frozenset({
    ("openai-chat", "model"), ("openai-responses", "model"), ("anthropic-messages", "model"), ("ollama-chat", "model"),
    ("openai-chat", "seed"), ("anthropic-messages", "top_k"), ("openai-chat", "messages.3.tool_call_id"),
    ("openai-responses", "input.2.call_id"), ("gemini-generate", "contents.2.parts.0.functionResponse.name"),
    ("ollama-chat", "messages.3.tool_name"), ("openai-chat", "messages.2.tool_calls.0.type"),
    ("openai-chat", "tools.0.type"), ("openai-responses", "tools.0.type"), ("ollama-chat", "tools.0.type"),
    ("openai-chat", "messages.1.content.0.type"), ("openai-chat", "top_p"),
    ("openai-chat", "response_format.json_schema.name"), ("openai-responses", "text.format.name"),
})  # fmt: skip


#: What is told of always, whatever its value is, or is of no use at that target.
TOLD: Final = frozenset({
    ("openai-chat", "openai-chat", "reasoning_effort"),
    ("openai-chat", "openai-responses", "stop"), ("openai-chat", "openai-responses", "stop.0"),
    ("openai-chat", "openai-responses", "temperature"), ("openai-chat", "ollama-chat", "tool_choice.function.name"),
    ("openai-responses", "openai-responses", "temperature"), ("openai-responses", "ollama-chat", "tool_choice.name"),
    ("anthropic-messages", "openai-responses", "stop_sequences"),
    ("anthropic-messages", "openai-responses", "stop_sequences.0"),
    ("anthropic-messages", "gemini-generate", "metadata.user_id"),
    ("anthropic-messages", "ollama-chat", "metadata.user_id"), ("anthropic-messages", "ollama-chat", "tool_choice.name"),
    ("anthropic-messages", "ollama-chat", "messages.0.content.1.source.media_type"),  # it tells kinds from the bytes
    ("gemini-generate", "openai-responses", "generationConfig.stopSequences"),
    ("gemini-generate", "openai-responses", "generationConfig.stopSequences.0"),
    ("gemini-generate", "openai-responses", "generationConfig.temperature"),
    ("gemini-generate", "anthropic-messages", "generationConfig.thinkingConfig.thinkingBudget"),
    ("gemini-generate", "ollama-chat", "generationConfig.thinkingConfig.thinkingBudget"),
    ("ollama-chat", "openai-responses", "options.temperature"),
})  # fmt: skip


@pytest.mark.parametrize("client", EVERYWHERE)
def test_a_value_of_another_kind_is_refused_seen_or_told(client: ProtocolName) -> None:
    first: ProtocolName = "anthropic-messages" if client == "openai-chat" else "openai-chat"
    for target in EVERYWHERE:
        found = {place.partition(" = ")[0] for place in unsaid(client, target, step=1 if target == first else 4)}
        assert not {place for place in found if (client, place) not in SAME and (client, target, place) not in TOLD}, (
            target
        )


#: Settings of how to answer: a value of another kind there, an empty one too, would be as if nobody had asked.
SETTINGS: Final[dict[ProtocolName, tuple[str, ...]]] = {
    "openai-chat": ("response_format", "response_format.type", "response_format.json_schema",
                    "response_format.json_schema.name", "response_format.json_schema.schema", "reasoning_effort"),
    "openai-responses": ("text", "text.format", "text.format.type", "text.format.name", "reasoning", "instructions"),
    "anthropic-messages": ("output_config", "output_config.format", "output_config.effort", "output_format"),
    "gemini-generate": ("generationConfig", "generationConfig.thinkingConfig"),
    "ollama-chat": ("format", "think", "options"),
}  # fmt: skip
_OF_LISTS: Final = ("instructions",)


@for_each("client", EVERYWHERE)
def test_a_setting_of_another_kind_is_refused_with_its_place(client: ProtocolName) -> None:
    for where in SETTINGS[client]:
        *above, last = where.split(".")
        body = copy.deepcopy(BODIES[client])
        inner = body
        for key in above:
            inner = inner.setdefault(key, {"type": "json_schema", "schema": CITY} if key == "format" else {})
        for value in ([], [MARK]) if last not in _OF_LISTS else ({}, {"x": MARK}):
            inner[last] = value
            for target in EVERYWHERE:
                sent = asked(client, body, VENDORS[target])
                assert where in sent.refused and "expected" in sent.refused, (where, value, target, sent.refused)


_SOUND: Final = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
_FREE: Final = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}}
#: Requests with what the others have not, by client, and the places in them where no value of another kind is read.
FURTHER: Final[tuple[tuple[ProtocolName, dict[str, Any], tuple[str, ...]], ...]] = (
    ("openai-chat", chat({"role": "user", "content": [{"type": "text", "text": "Hark."}, _SOUND]},
                         {"role": "assistant", "content": "Well.", "reasoning_content": "why", "refusal": None},
                         {"role": "user", "content": "And?"}, tools=[function()], stream=True, prompt_cache_key="k",
                         stream_options={"include_usage": True},
                         response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": CITY, "strict": True,
                                                                                 "description": "d"}},
                         tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [
                             {"type": "function", "function": {"name": "look"}}]}}),
     ("messages.0.content.1.input_audio.format", "messages.1.reasoning_content", "messages.1.refusal", "prompt_cache_key",
      "stream_options.include_usage", "response_format.json_schema.strict", "response_format.json_schema.description",
      "tool_choice.allowed_tools.tools", "tool_choice.allowed_tools.tools.0")),
    ("openai-responses", {
        **responses({"role": "user", "content": [{"type": "input_file", "filename": "a.pdf", "file_data": "AAAA"}, {"type": "input_text", "text": "Read."}]}),
        "tools": [{"type": "function", "name": "look", "parameters": CITY}], "prompt_cache_key": "k", "include": [],
        "text": {"format": {"type": "json_schema", "name": "n", "schema": CITY, "strict": True, "description": "d"}},
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look"}]}},
     ("input.0.content.0.file_data", "tools.0.name", "prompt_cache_key", "include", "text.format.strict",
      "text.format.description", "tool_choice.mode", "tool_choice.tools", "tool_choice.tools.0")),
    ("anthropic-messages", messages(
        tells({"type": "text", "text": "Look."}, _FREE), says(used()), tells({**result(), "is_error": True}),
        tools=[tool()], tool_choice={"type": "tool", "name": "look"}),
     ("messages.0.content.1.source.media_type", "messages.2.content.0.is_error", "tool_choice.name")),
    ("gemini-generate", gemini(
        {"role": "user", "parts": [{"text": "Look."}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}]},
        {"role": "model", "parts": [{"text": "hm", "thought": True, "thoughtSignature": "c2ln"}, {"text": "Well."}]},
        {"role": "user", "parts": [{"text": "And?"}]}, tools=[{"functionDeclarations": [{"name": "look"}]}],
        toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
        generationConfig={"thinkingConfig": {"thinkingBudget": 5, "includeThoughts": True}}),
     ("contents.0.parts.1.inlineData.mimeType", "contents.1.parts.0.thought", "contents.1.parts.0.thoughtSignature",
      "tools.0.functionDeclarations", "toolConfig.functionCallingConfig.mode",
      "generationConfig.thinkingConfig.includeThoughts")),
    ("openai-responses", responses(
        {"role": "user", "content": "Look."},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "c2ln"},
        {"role": "user", "content": "And?"}),
     ("input.1.summary", "input.1.summary.0.text", "input.1.encrypted_content")),
    ("gemini-generate", gemini(
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "look", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c", "name": "look", "response": {"result": "rain"}}}]}),
     ("contents.1.parts.0.functionCall.id", "contents.2.parts.0.functionResponse.id",
      "contents.2.parts.0.functionResponse.name")),
    ("ollama-chat", ollama(
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "", "thinking": "hm",
         "tool_calls": [{"id": "c", "function": {"index": 0, "name": "look", "arguments": {}}}]},
        {"role": "tool", "tool_name": "look", "tool_call_id": "c", "content": "rain"}),
     ("messages.1.thinking", "messages.1.tool_calls", "messages.1.tool_calls.0.id", "messages.1.tool_calls.0.function.index",
      "messages.2.tool_name", "messages.2.tool_call_id")),
)  # fmt: skip


@for_each(("client", "body", "wheres"), FURTHER)
def test_a_value_of_another_kind_is_refused_with_its_place(
    client: ProtocolName, body: dict[str, Any], wheres: tuple[str, ...]
) -> None:
    for target in EVERYWHERE:
        assert not asked(client, body, VENDORS[target]).refused
        for where in wheres:
            path = tuple(int(key) if key.isdecimal() else key for key in where.split("."))
            written = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)[1:]
            usual: Any = body
            for key in path:
                usual = usual[key]
            for value in [each for each in (7351, {"x": MARK}, [[MARK]]) if type(each) is not type(usual)]:
                sent = asked(client, with_value(body, path, value), VENDORS[target])
                assert written in sent.refused and "expected" in sent.refused, (where, value, target, sent)


def test_a_picture_without_a_source_is_refused_with_its_place() -> None:
    for url in (7, "", [], {}):
        part = {"type": "image_url", "image_url": {"url": url}}
        sent = asked("openai-chat", chat({"role": "user", "content": [part]}), VENDORS["gemini-generate"])
        assert "messages[0].content[0].image_url.url" in sent.refused, (url, sent)
        part = {"type": "input_image", "image_url": url}
        sent = asked("openai-responses", responses({"role": "user", "content": [part]}), VENDORS["gemini-generate"])
        assert "input[0].content[0].image_url" in sent.refused, (url, sent)


#: Settings that cannot be read as they stand, by client: what stands there, and what a deviation or an error names.
UNREAD: Final[tuple[tuple[ProtocolName, dict[str, Any], str], ...]] = (
    *(("openai-chat", {"n": value}, "n") for value in ("some", {"x": 1}, 2.5, 0, -1)),
    ("openai-chat", {"reasoning": "x", "thinking": {"type": "enabled"}}, "reasoning"),
    ("openai-chat", {"reasoning": {"effort": [1], "max_tokens": 2000}}, "reasoning.effort"),
    ("openai-chat", {"reasoning": {"effort": "low", "max_tokens": "x"}}, "reasoning.max_tokens"),
    ("openai-chat", {"thinking": {"type": "enabled", "budget_tokens": 1.5}}, "thinking.budget_tokens"),
    ("openai-responses", {"max_output_tokens": 2.5}, "max_output_tokens"),
    ("anthropic-messages", {"max_tokens": 0.5}, "max_tokens"),
    ("anthropic-messages", {"top_k": 1.5}, "top_k"),
    ("anthropic-messages", {"top_k": 10**400}, "top_k"),
    *(("gemini-generate", {"generationConfig": {"thinkingConfig": {"thinkingBudget": value}}},
       "generationConfig.thinkingConfig.thinkingBudget") for value in ([], {}, "much", True)),
    ("openai-chat", {"enable_thinking": True, "thinking_budget": "much"}, "thinking_budget"),
    ("anthropic-messages", {"output_config": {"format": {"type": "x", "schema": CITY}}}, "output_config.format.type"),
    ("anthropic-messages", {"output_config": {"format": {"type": "json_schema", "schema": CITY, "x": 1}}},
     "output_config.format.x"),
    ("anthropic-messages", {"output_format": {"type": "x"}}, "output_format.type"),
    ("anthropic-messages", {"tool_choice": {"type": "any", "disable_parallel_tool_use": "low"}},
     "tool_choice.disable_parallel_tool_use"),
    ("gemini-generate", {"generationConfig": {"responseSchema": -1}}, "generationConfig.responseSchema"),
    *(("openai-responses", {"text": {"format": {"type": "json_schema", "name": "n", "schema": value}}},
       "text.format.schema") for value in ("json", 7, [])),
    *(("anthropic-messages", {"output_config": {"format": {"type": "json_schema", "schema": value}}},
       "output_config.format.schema") for value in ("json", 7, [])),
    ("anthropic-messages", {"output_format": {"type": "json_schema", "schema": "json"}}, "output_format.schema"),
    ("anthropic-messages", {"output_config": {"format": {"type": "json_schema", "schema": None}}},
     "output_config.format.type"),
    *(("gemini-generate", {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": value}},
       "generationConfig.responseJsonSchema") for value in ("json", 7, [])),
    ("gemini-generate", {"generationConfig": {"responseFormat": [{"text": {"jsonSchema": "json"}}]}},
     "generationConfig.responseFormat[].text.jsonSchema"),
    ("gemini-generate", {"generationConfig": {"responseMimeType": 1}}, "generationConfig.responseMimeType"),
    ("gemini-generate", {"generationConfig": {"responseMimeType": "text/plain", "responseSchema": {"type": "STRING"}}},
     "generationConfig.responseSchema.type"),
)  # fmt: skip
_LEAST: Final = {
    "openai-chat": chat, "openai-responses": responses, "anthropic-messages": messages, "gemini-generate": gemini,
}  # fmt: skip


@for_each(("client", "fields", "where"), UNREAD)
def test_a_setting_that_is_not_read_is_told_with_its_place(
    client: ProtocolName, fields: dict[str, Any], where: str
) -> None:
    for target in EVERYWHERE:
        sent = asked(client, _LEAST[client](**fields), VENDORS[target])
        is_kept = target == client and fields.items() <= sent.body.items()
        assert is_kept or where in sent.refused or where in [said.where for said in sent.deviations], (target, sent)


#: Where the words of a result stand.
RESULTS: Final[dict[ProtocolName, tuple[Any, ...]]] = {
    "openai-chat": ("messages", 3, "content"), "openai-responses": ("input", 2, "output"),
    "anthropic-messages": ("messages", 2, "content", 0, "content"),
    "gemini-generate": ("contents", 2, "parts", 0, "functionResponse", "response"), "ollama-chat": ("messages", 3, "content"),
}  # fmt: skip


@for_each("client, target", [(client, target) for client in EVERYWHERE for target in EVERYWHERE])
def test_a_result_of_another_kind_reaches_the_model_or_is_refused(client: ProtocolName, target: ProtocolName) -> None:
    for value in (*WRONG, [{"x": MARK}], [{"type": "text", "text": "a"}, {"x": MARK}], {"type": "Feature", "x": MARK}):
        word = next((each for each in (MARK, "7351") if each in json.dumps(value)), "")
        sent = asked(client, with_value(BODIES[client], RESULTS[client], value), VENDORS[target])
        assert sent.refused or word in json.dumps(sent.body), (value, sent.body)


def test_ids_of_another_kind_are_refused_and_pair_no_results_by_their_place() -> None:
    call, said = called(), answered()
    call["tool_calls"][0]["id"] = said["tool_call_id"] = 1
    item = {"type": "function_call", "call_id": 1, "name": "look", "arguments": "{}"}
    given = {"type": "function_call_output", "call_id": 1, "output": "rain"}
    bodies: list[tuple[ProtocolName, dict[str, Any], str]] = [
        ("openai-chat", chat({"role": "user", "content": "Look."}, call, said), "messages[1].tool_calls[0].id"),
        ("openai-chat", chat({"role": "user", "content": "Look."}, called(), said), "messages[2].tool_call_id"),
        ("openai-responses", responses(item, given), "input[0].call_id"),
        ("openai-responses", responses({**item, "call_id": "1"}, given), "input[1].call_id"),
    ]
    for client, body, place in bodies:
        assert place in asked(client, body, VENDORS["openai-chat"]).refused


def test_a_content_that_is_no_text_is_refused() -> None:
    for client, body, place in (
        ("openai-chat", chat({"role": "user", "content": 7}), "messages[0].content"),
        ("openai-chat", chat({"role": "user", "content": {"x": 1}}), "messages[0].content"),
        ("openai-responses", responses({"role": "user", "content": 7}), "input[0].content"),
        ("ollama-chat", ollama({"role": "user", "content": ["a", {"type": "image_url"}]}), "messages[0].content[1]"),
        *(("anthropic-messages", messages(tells({"type": "text", "text": "Look."}), says(used()), tells(result(content=[block]))), "messages[2].content[0].content")
          for block in (used(), result(), {"type": "thinking", "thinking": "Hm.", "signature": "c2VhbA=="})),
    ):  # fmt: skip
        assert place in asked(client, body, VENDORS["openai-chat"]).refused
