"""What the vendors' pages and error messages say of a request: `broken` gives each rule that a body breaks.

The types of their SDKs are looser: nothing there says where a result must stand, or which schema is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from dragoman.types import ProtocolName

_NAMES: Final = {
    "openai-chat": r"[a-zA-Z0-9_-]{1,64}",
    "openai-responses": r"[a-zA-Z0-9_-]{1,64}",
    "anthropic-messages": r"[a-zA-Z0-9_-]{1,128}",
    "gemini-generate": r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}",
    "ollama-chat": r".+",
}
_UNIONS: Final = ("oneOf", "anyOf", "allOf")
_IN_FORMATS: Final = frozenset({
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref",
    "$defs", "description", "title", "default", "format", "minItems",
})  # fmt: skip


def broken(protocol: ProtocolName, body: dict[str, Any]) -> list[str]:
    """The rules that a body breaks, in words."""
    check = {
        "openai-chat": _chat,
        "openai-responses": _responses,
        "anthropic-messages": _anthropic,
        "gemini-generate": _gemini,
        "ollama-chat": _ollama,
    }[protocol]
    return [*check(body), *_tools(protocol, body)]


# ---------------------------------------------------------------- tools


def functions_of(protocol: ProtocolName, body: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name and schema of each function."""
    for tool in body.get("tools", ()):
        if protocol in ("openai-chat", "ollama-chat") and tool["type"] == "function":
            yield tool["function"]["name"], tool["function"].get("parameters")
        elif protocol == "openai-responses" and tool["type"] == "function":
            yield tool["name"], tool["parameters"]
        elif protocol == "anthropic-messages" and "input_schema" in tool:
            yield tool["name"], tool["input_schema"]
        elif protocol == "gemini-generate":
            for function in tool.get("functionDeclarations", ()):
                yield function["name"], function.get("parametersJsonSchema")


def _tools(protocol: ProtocolName, body: dict[str, Any]) -> Iterator[str]:
    names = [name for name, _ in functions_of(protocol, body)]
    if len(set(names)) < len(names):
        yield "two tools have one name"
    known = [
        *names,
        *(tool["name"] for tool in body.get("tools", ()) if "name" in tool),
        *(tool["custom"]["name"] for tool in body.get("tools", ()) if "custom" in tool),
    ]
    yield from (f"tool_choice: no tool is called {name}" for name in _chosen(body) if name not in known)
    for name, schema in functions_of(protocol, body):
        if re.fullmatch(_NAMES[protocol], name) is None:
            yield f"name of a tool: {name}"
        if schema is not None:
            yield from (f"{name}: {fault}" for fault in broken_schema(protocol, schema))


def _chosen(body: dict[str, Any]) -> list[str]:
    """The names of tools that a choice has."""
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        inner = choice.get("function") or choice.get("custom") or choice
        return [inner["name"]] if "name" in inner else []
    config = body.get("toolConfig", {}).get("functionCallingConfig", {})
    return list(config.get("allowedFunctionNames", ()))


def broken_schema(protocol: ProtocolName, schema: Any) -> Iterator[str]:
    """What of a tool's schema the vendor refuses."""
    if not isinstance(schema, dict):
        yield "no object"
        return
    if schema.get("type") != "object":
        yield "the root's type is not object"
    if protocol == "ollama-chat":
        yield from _go_struct(schema)
        return
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as problem:
        yield f"draft 2020-12: {problem.message}"
        return
    if protocol in ("openai-chat", "openai-responses"):
        if "properties" not in schema:
            yield "object schema missing properties"
        yield from (f"{key} at the root" for key in (*_UNIONS, "enum", "not") if key in schema)
        yield from ("array schema missing items" for each in nodes(schema) if _lacks_items(each))
    if protocol == "anthropic-messages":
        yield from (f"{key} at the root" for key in _UNIONS if key in schema)
        keys = schema.get("properties", {})
        yield from (f"key {key!r}" for key in keys if re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", key) is None)
    if protocol == "gemini-generate":
        yield from _gemini_refs(schema)


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every subschema that is an object."""
    if not isinstance(schema, dict):
        return
    yield schema
    for key in ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas"):
        if isinstance(schema.get(key), dict):
            for inner in schema[key].values():
                yield from nodes(inner)
    for key in ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"):
        yield from nodes(schema.get(key))
    for key in (*_UNIONS, "prefixItems"):
        for inner in schema.get(key, ()) if isinstance(schema.get(key), list) else ():
            yield from nodes(inner)


def _lacks_items(node: dict[str, Any]) -> bool:
    kinds = node.get("type")
    is_array = kinds == "array" or (isinstance(kinds, list) and "array" in kinds)
    return is_array and "items" not in node


def _gemini_refs(schema: dict[str, Any]) -> Iterator[str]:
    for node in nodes(schema):
        if "$ref" not in node:
            continue
        others = [key for key in node if key not in ("description", "default") and not key.startswith("$")]
        if others and node is not schema:
            yield f"$ref beside {others}"
        pointer = str(node["$ref"])
        name = pointer.removeprefix("#/$defs/")
        if pointer != "#" and (name == pointer or name not in schema.get("$defs", {})):
            yield f"reference to undefined schema {pointer}"


def _go_struct(schema: dict[str, Any]) -> Iterator[str]:
    """The server decodes into typed fields."""
    if not isinstance(schema.get("properties", {}), dict):
        yield "properties is no object"
        return
    if not _are_texts(schema.get("required", [])):
        yield "required is no list of texts"
    for inner in schema.get("properties", {}).values():
        yield from _go_property(inner)


def _go_property(node: Any) -> Iterator[str]:
    if not isinstance(node, dict):
        yield "a property is no object"
        return
    kind = node.get("type", "")
    if not isinstance(kind, str) and not _are_texts(kind):
        yield "a type is no text or list of texts"
    if not isinstance(node.get("description", ""), str):
        yield "a description is no text"
    if not isinstance(node.get("enum", []), list):
        yield "enum is no list"
    if not _are_texts(node.get("required", [])):
        yield "required is no list of texts"
    inner = node.get("properties", {})
    if not isinstance(inner, dict) or not isinstance(node.get("anyOf", []), list):
        yield "properties is no object, or anyOf no list"
        return
    for each in (*inner.values(), *node.get("anyOf", ())):
        yield from _go_property(each)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


# ---------------------------------------------------------------- conversations


def _chat(body: dict[str, Any]) -> Iterator[str]:
    waiting: list[str] = []
    if not body["messages"]:
        yield "no messages"
    for place, message in enumerate(body["messages"]):
        role, content = message["role"], message.get("content")
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"messages[{place}]: a result of no call before it"
            else:
                waiting.remove(message["tool_call_id"])
            if not isinstance(content, str) and {part["type"] for part in content} != {"text"}:
                yield f"messages[{place}]: a result that is no text"
            continue
        if waiting:
            yield f"messages[{place}]: tool_calls without results"
        waiting = [call["id"] for call in message.get("tool_calls", ())]
        if any(not 0 < len(id) <= 40 for id in waiting) or len(set(waiting)) < len(waiting):
            yield f"messages[{place}]: ids"
        if message.get("tool_calls") == []:
            yield f"messages[{place}]: an empty list of calls"
        if content is None and not ({"tool_calls", "refusal", "audio", "function_call"} & message.keys()):
            yield f"messages[{place}]: no content"
        if content == []:
            yield f"messages[{place}]: an empty content"
    if waiting:
        yield "tool_calls without results at the end"
    if "tool_choice" in body and not body.get("tools"):
        yield "tool_choice without tools"
    if "parallel_tool_calls" in body and not body.get("tools"):
        yield "parallel_tool_calls without tools"
    if len(body.get("stop", ())) > 4:
        yield "more than four stops"


def _responses(body: dict[str, Any]) -> Iterator[str]:
    calls: dict[str, str] = {}
    found: list[str] = []
    for place, item in enumerate(body.get("input", ())):
        if item["type"] in ("function_call", "custom_tool_call"):
            if item["call_id"] in calls or re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", item["call_id"]) is None:
                yield f"input[{place}]: call_id"
            calls[item["call_id"]] = item["type"]
        elif item["type"] in ("function_call_output", "custom_tool_call_output"):
            if calls.get(item["call_id"], "") + "_output" != item["type"]:
                yield f"input[{place}]: an output of no call"
            found.append(item["call_id"])
        elif item["type"] == "message" and item["role"] == "tool":
            yield f"input[{place}]: role"
        elif item["type"] == "message" and item["content"] == []:
            yield f"input[{place}]: an empty content"
    if sorted(calls) != sorted(found):
        yield "no tool output found for a call"
    if "tool_choice" in body and not body.get("tools"):
        yield "tool_choice without tools"


def _anthropic(body: dict[str, Any]) -> Iterator[str]:
    waiting: list[str] = []
    ids: set[str] = set()
    if not body["messages"]:
        yield "at least one message is required"
    blocks: list[dict[str, Any]] = []
    for place, message in enumerate(body["messages"]):
        where = f"messages[{place}]"
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if message["role"] not in ("user", "assistant"):
            yield f"{where}: role {message['role']}"
        if not blocks:
            yield f"{where}: empty content"
        kinds = [block["type"] for block in blocks]
        found = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(found) != sorted(waiting):
            yield f"{where}: tool_use ids without tool_result blocks immediately after, or the other way"
        if kinds[: len(found)] != ["tool_result"] * len(found):
            yield f"{where}: results do not stand first"
        inner = [each for block in blocks if isinstance(block.get("content"), list) for each in block["content"]]
        texts = [block["text"] for block in (*blocks, *inner) if block["type"] == "text"]
        if not all(text.strip() for text in texts):
            yield f"{where}: text content blocks must contain non-whitespace text"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if any(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", id) is None or id in ids for id in waiting):
            yield f"{where}: ids"
        ids |= set(waiting)
    if waiting:
        yield "tool_use ids without tool_result blocks at the end"
    is_begun = bool(blocks) and body["messages"][-1]["role"] == "assistant" and blocks[-1]["type"] == "text"
    if is_begun and blocks[-1]["text"] != blocks[-1]["text"].rstrip():
        yield "final assistant content cannot end with trailing whitespace"
    yield from _anthropic_params(body)


def _anthropic_params(body: dict[str, Any]) -> Iterator[str]:
    system = body.get("system", "x")
    if system == [] or (isinstance(system, str) and not system.strip()):
        yield "an empty system prompt"
    if not 0 <= body.get("temperature", 0) <= 1:
        yield "temperature"
    is_newer = "opus-4-8" in body["model"]
    if is_newer and (body.get("temperature", 1) != 1 or {"top_p", "top_k"} & body.keys()):
        yield "temperature, top_p or top_k is deprecated for this model"
    if {"temperature", "top_p"} <= body.keys():
        yield "temperature and top_p cannot both be specified for this model"
    if not all(word.strip() for word in body.get("stop_sequences", ())):
        yield "stop_sequences: each stop sequence must contain non-whitespace"
    thinking = body.get("thinking") or {}
    if is_newer and thinking.get("type") == "enabled":
        yield "thinking.type.enabled is not supported for this model"
    if thinking.get("type") == "enabled":
        if not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
            yield "budget_tokens"
        if body.get("tool_choice", {}).get("type") in ("any", "tool"):
            yield "thinking may not be enabled when tool_choice forces tool use"
        last = next((each for each in reversed(body["messages"]) if each["role"] == "assistant"), None)
        blocks = last["content"] if last is not None and isinstance(last["content"], list) else []
        is_open = any(block["type"] == "tool_use" for block in blocks)
        if is_open and blocks[0]["type"] not in ("thinking", "redacted_thinking"):
            yield "expected thinking or redacted_thinking, but found tool_use"
    if "tool_choice" in body and not body.get("tools"):
        yield "tool_choice without tools"
    form = (body.get("output_config") or {}).get("format")
    if form:
        yield from broken_format(form["schema"])


def broken_format(schema: Any) -> Iterator[str]:
    """What of an answer's schema Anthropic refuses."""
    for node in nodes(schema):
        yield from (f"format: {key}" for key in node if key not in _IN_FORMATS)
        if node.get("type") == "object" and node.get("additionalProperties") is not False:
            yield "format: additionalProperties must be false"
        if node.get("minItems", 0) not in (0, 1):
            yield "format: minItems"
        if not node.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
            yield "format: a schema must have a type"


def _gemini(body: dict[str, Any]) -> Iterator[str]:
    waiting: list[str] = []
    last = ""
    if not body["contents"]:
        yield "contents is not specified"
    for place, content in enumerate(body["contents"]):
        where, role, parts = f"contents[{place}]", content["role"], content["parts"]
        if not parts:
            yield f"{where}: no parts"
        if role not in ("user", "model"):
            yield f"{where}: role"
        if any(part.get("text") == "" and "thoughtSignature" not in part for part in parts):
            yield f"{where}: an empty text"
        found = [part["functionResponse"].get("id", "") for part in parts if "functionResponse" in part]
        if sorted(found) != sorted(waiting):
            yield f"{where}: the number of function response parts is not that of the function call parts"
        calls = [part for part in parts if "functionCall" in part]
        if calls and last != "user":
            yield f"{where}: a function call turn does not come immediately after a user turn"
        if calls and "thoughtSignature" not in calls[0] and "gemini-3" in body["model"]:
            yield f"{where}: the first call has no thought signature"
        waiting = [part["functionCall"].get("id", "") for part in calls]
        last = role
    if waiting:
        yield "calls without responses at the end"


def _ollama(body: dict[str, Any]) -> Iterator[str]:
    for place, message in enumerate(body["messages"]):
        if message["role"] not in ("system", "user", "assistant", "tool"):
            yield f"messages[{place}]: role"
        if not isinstance(message.get("content", ""), str):
            yield f"messages[{place}]: content is no text"
        for call in message.get("tool_calls", ()):
            if not isinstance(call["function"]["arguments"], dict):
                yield f"messages[{place}]: arguments are no object"
    if not isinstance(body.get("think", False), bool | str):
        yield "think"
