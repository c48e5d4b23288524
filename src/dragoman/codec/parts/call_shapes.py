"""Recognise what looks like a call, a piece of one or its arguments, wherever it stands; and what only seems to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.parts.settled_arguments import is_placeholder

#: How arguments are called here and there, in small letters without `_` and `-`.
_SPELLINGS: Final = frozenset({
    "arg", "args", "argument", "arguments", "argumentsjson", "callarguments", "functionargs", "functionarguments",
    "input", "inputjson", "inputs", "kwargs", "param", "parameter", "parameters", "params", "parsedarguments",
    "partialargs", "partialjson", "toolargs", "toolinput",
})  # fmt: skip
#: Those that nothing but a call has.
_CALLS_OWN: Final = frozenset({
    "arguments", "argumentsjson", "callarguments", "functionargs", "functionarguments", "inputjson", "parsedarguments",
    "partialargs", "partialjson", "toolargs", "toolinput",
})  # fmt: skip
#: What stands in further names of theirs.
_WORDS: Final = ("args", "argument", "inputjson", "parameter", "params", "partialjson")
#: Keys of arguments that may have left their call for an object around it, as they are written.
ASTRAY: Final = frozenset(
    spelling
    for words in (
        "args", "argument", "arguments", "arguments_json", "call_arguments", "function_args", "function_arguments",
        "input", "input_json", "kwargs", "parsed_arguments", "partial_args", "partial_json", "tool_args", "tool_input",
    )
    for camel in (words.title().replace("_", ""),)
    for spelling in (words, words.upper(), camel, camel[:1].lower() + camel[1:])
)  # fmt: skip
#: Objects that vendors write beside a call, and that say nothing of its arguments; so do those with metadata.
_BESIDE: Final = frozenset({
    "agent", "cachecontrol", "caller", "contentfilterresults", "extracontent", "logprobs", "mediaprocessing",
    "mediaresolution", "providerspecificfields", "timings", "usage",
})  # fmt: skip
#: What the key of calls has in it, and the types of their pieces.
_CALLS: Final = ("toolcall", "functioncall", "tooluse")
CALL_TYPES: Final = frozenset({
    "custom_tool_call", "function", "function_call", "input_json_delta", "tool_call", "tool_use", "toolcall", "tooluse",
})  # fmt: skip
#: Keys of objects that tell of tools offered, or of calls that the provider has run.
_OFFERED: Final = frozenset({
    "availabletools", "executedtools", "functions", "mcplisttools", "mcpservers", "mcptoolcalls", "tools",
})  # fmt: skip
_RAN: Final = frozenset({"output", "outputs", "result", "results", "response"})
#: Keys under which a request has the conversation so far, which an answer may tell again.
_CONVERSATIONS: Final = ("messages", "contents", "input", "history")
#: Members that make an object a schema.
_SCHEMA_KEYS: Final = ("properties", "items", "$ref", "anyOf", "oneOf", "allOf", "enum", "additionalProperties")
_SCHEMA_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_DEEPEST: Final = 6


def plain(key: str) -> str:
    """Return a key in lower case, without `_` and `-`."""
    return key.lower().replace("_", "").replace("-", "")


def names_arguments(key: str) -> bool:
    """Return whether a key is one of arguments."""
    name = plain(key)
    return name in _SPELLINGS or any(word in name for word in _WORDS)


def is_spelling(name: str) -> bool:
    """Return whether a plain key is a known spelling of arguments."""
    return name in _SPELLINGS


def may_name_calls(name: str) -> bool:
    """Return whether calls, or pieces of one, stand under a plain key: not tokens that calls cost, nor how to call."""
    return name == "partialargs" or (any(word in name for word in _CALLS) and not ("token" in name or "config" in name))


def is_astray(key: str, value: Json) -> bool:
    """Return whether a member of an object around calls, under a key of `ASTRAY`, may be the arguments of one.

    An `input` that is text, a list, or contains a conversation is that of a request.
    """
    if isinstance(value, dict):
        return bool(value) and not is_request(value)
    return plain(key) != "input" and isinstance(value, str) and value.lstrip()[:1] == "{" and not is_placeholder(value)


def is_beside(name: str, value: Json) -> bool:
    """Return whether an object under a plain key of a call is one that vendors write there, with no call in it."""
    return (name in _BESIDE or "metadata" in name) and not is_call(name, value)


def is_call(name: str, value: Json, depth: int = 0) -> bool:
    """Return whether a value is a call, a piece of one, or contains one. `name`: its plain key."""
    if not value or depth > _DEEPEST or (name in _OFFERED and not _is_called(name, value)):
        return False
    is_named = may_name_calls(name)
    if isinstance(value, str):
        return is_named and value.lstrip()[:1] in ("{", "[") and not is_placeholder(value)
    if isinstance(value, list):
        is_told_again = name == "input" or (is_conversation(value) and (name in _CONVERSATIONS or _is_asked(value)))
        return not is_told_again and any(is_call(name, item, depth + 1) for item in value)
    if not isinstance(value, dict):
        return False
    if is_named:  # or counts of calls
        return not all(item is None or isinstance(item, int | float) for item in value.values())
    members = {plain(key): item for key, item in value.items()}
    if _RAN.isdisjoint(members) and _has_arguments(name, members):
        return True
    if is_request(value) or is_schema(value):
        return False
    return any(is_call(key, item, depth + 1) for key, item in members.items())


def told_calls(name: str, value: Json, depth: int = 0) -> list[tuple[str, str, str]] | None:
    """Return id ("" if it has none), name and arguments of each call that a value contains, in order; None if one is
    not whole.
    """
    if not is_call(name, value, depth):
        return []
    if isinstance(value, list):
        inner = [told_calls(name, item, depth + 1) for item in value]
    elif not isinstance(value, dict):
        return None
    elif (call := _whole_call(value)) is not None:
        return [call]
    elif _has_arguments(name, {plain(key): item for key, item in value.items()}):
        return None
    else:
        inner = [told_calls(plain(key), item, depth + 1) for key, item in value.items()]
    found = [call for calls in inner for call in calls or ()]
    return found if found and None not in inner else None


def _whole_call(entry: dict[str, Json]) -> tuple[str, str, str] | None:
    """Return id, name and arguments of an object that is a call, or an entry around one; None if it is neither."""
    function = entry.get("function")
    told = function if isinstance(function, dict) else entry
    given = [item for key, item in told.items() if plain(key) in _SPELLINGS and isinstance(item, str | dict)]
    name, beside = told.get("name"), (item for item in (*told.items(), *entry.items()) if item[1] not in (told, *given))
    if not isinstance(name, str) or len(given) != 1 or any(is_call(plain(key), item) for key, item in beside):
        return None
    id = entry.get("call_id") or entry.get("id")
    return id if isinstance(id, str) else "", name, given[0] if isinstance(given[0], str) else _json.to_text(given[0])


def has_run(entry: Mapping[str, Json]) -> bool:
    """Return whether an entry of calls tells what the provider has run: with its result, under the name of its type."""
    kind = entry.get("type")
    told = entry.get(kind) if isinstance(kind, str) and not entry.get("function") else None
    return isinstance(told, dict) and any(plain(key) in _RAN and item for key, item in told.items())


def _has_arguments(name: str, members: Mapping[str, Json]) -> bool:
    """Return whether an object is a call or a piece of one, by its own members. Metadata are the user's texts."""
    is_metadata = "metadata" in name
    if any(key in _CALLS_OWN and _tells(item, is_metadata=is_metadata) for key, item in members.items()):
        return True  # a piece of a call need not name it
    told = [item for key, item in members.items() if key in _SPELLINGS and item is not None]
    if not told or (is_metadata and all(isinstance(item, str) for item in told)):
        return False
    kind = members.get("type")
    names = any(isinstance(members.get(key), str) and members[key] for key in ("name", "toolname", "functionname"))
    return names or (isinstance(kind, str) and kind in CALL_TYPES)


def _is_called(name: str, value: Json) -> bool:
    """Return whether the value of a key for offered tools is a call of one, with arguments."""
    if name not in ("tools", "functions"):
        return False
    one = value[0] if isinstance(value, list) and value else value
    function = one.get("function") if isinstance(one, dict) else None
    return any("arguments" in inner for inner in (one, function) if isinstance(inner, dict))


def _tells(arguments: Json, *, is_metadata: bool) -> bool:
    """Return whether a value under the key of arguments contains any."""
    if isinstance(arguments, str):
        return not is_metadata and not is_placeholder(arguments)
    return isinstance(arguments, dict | list) and bool(arguments)


def is_schema(value: dict[str, Json]) -> bool:
    """Return whether an object is a JSON schema, in which a property may have any name."""
    kind = value.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    is_typed = bool(kinds) and all(isinstance(one, str) and one in _SCHEMA_TYPES for one in kinds)
    properties = value.get("properties")
    if isinstance(properties, dict) and all(isinstance(one, dict | bool) for one in properties.values()):
        return True
    return is_typed and any(key in value for key in _SCHEMA_KEYS)


def is_request(value: dict[str, Json]) -> bool:
    """Return whether an object is the answer's request, repeated: it contains a conversation."""
    return any(is_conversation(value[key]) for key in _CONVERSATIONS if key in value)


def is_conversation(value: Json) -> bool:
    """Return whether a value is a list of messages, each with a role."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) for one in value)
        and any(isinstance(one, dict) and isinstance(one.get("role"), str) for one in value)
    )


def _is_asked(messages: list[Json]) -> bool:
    """Return whether a conversation ends with a message that is not the model's: no answer stands in it."""
    last = messages[-1]
    return isinstance(last, dict) and last.get("role") not in (None, "assistant", "model")
