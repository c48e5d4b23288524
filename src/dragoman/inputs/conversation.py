"""Read messages and tools that users pass: strings, our own classes, or plain dicts of any protocol."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import Any, Final, TypeAlias, get_args

import msgspec

from dragoman import _json
from dragoman._json import Raw
from dragoman.errors import UsageError, WireError
from dragoman.inputs.functions import FunctionTool, tool_of
from dragoman.inputs.models import is_model, model_schema
from dragoman.inputs.values import check_made, read_json, read_object
from dragoman.misuse import kind_of
from dragoman.protocols import PROTOCOLS, recognition
from dragoman.protocols.recognize import protocol_of_messages, tool_entry
from dragoman.types import (
    Media,
    Message,
    Opaque,
    Origin,
    Part,
    ProtocolName,
    Request,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    read_content,
)

Messages: TypeAlias = str | Message | Mapping[str, Any] | Sequence[str | Message | Mapping[str, Any]]
Tools: TypeAlias = Iterable[Tool | FunctionTool | Callable[..., Any] | type | Mapping[str, Any]]


def read_messages(messages: Messages) -> tuple[Message, ...]:
    """Return a conversation in our values.

    Dicts may be of any of the five protocols, one protocol for the whole list.

    Raises:
        UsageError: not a conversation; says where.
    """
    if isinstance(messages, str | Message | Mapping):
        messages = [messages]
    if not isinstance(messages, Sequence) or isinstance(messages, bytes | bytearray | memoryview | range):
        raise UsageError(f"messages: expected {_TAKEN}, or a list of them, got {kind_of(messages)}{_hint(messages)}")
    if isinstance(messages, tuple) and _is_pair(messages):
        raise UsageError(f"messages: expected {_TAKEN}, or a list of them, got a pair{_hint(messages)}")
    if not messages:
        raise UsageError("messages: expected at least one message, got an empty list")
    out: list[Message] = []
    plain: list[Mapping[str, Any]] = []
    items: list[object] = list(messages)
    for position, item in enumerate(items):
        if not isinstance(item, Message) and isinstance(item, Mapping):
            _check_dict(item, f"messages[{position}]")
            plain.append(item)
            continue
        out += _read_dicts(plain)
        plain = []
        if isinstance(item, str):
            out.append(Message("user", (Text(item),)))
        elif isinstance(item, Message):
            out.append(_checked(item, f"messages[{position}]"))
        else:
            raise UsageError(f"messages[{position}]: expected {_TAKEN}, got {kind_of(item)}{_hint(item)}")
    out += _read_dicts(plain)
    if any(message.role == "user" and all(map(_is_blank, message.parts)) for message in out):
        raise UsageError("messages: expected something in every message of the user, got an empty one")
    return tuple(out)


_TAKEN: Final = "a string, a Message or a dict"
_ROLES: Final = get_args(Role)
_PARTS: Final[tuple[type, ...]] = get_args(Part)


def _is_pair(value: object) -> bool:
    """Return whether it is a turn as LangChain writes one: `("user", "hello")`."""
    return isinstance(value, tuple | list) and len(value) == 2 and value[0] in (*_ROLES, "human", "ai")


def _hint(value: object) -> str:
    """Return how to write what was probably meant, or ""."""
    if hasattr(value, "read_bytes"):
        return "; a file goes into a message: Message.user('…', Path('cat.png'))"
    if _is_pair(value):
        return "; a role goes into a dict: {'role': 'user', 'content': '…'}"
    return ""


def _is_blank(part: Part) -> bool:
    """Return whether a part says nothing."""
    return isinstance(part, Text) and not part.text.strip()


def _checked(message: Message, where: str) -> Message:
    """Return a caller's message, who may have written `Message("user", "hello")`."""
    check_made(message, where)
    given: object = message.parts
    if isinstance(given, tuple) and all(isinstance(part, _PARTS) for part in given):
        if not given and message.role != "assistant":
            raise UsageError(f"{where}: expected something in the message, got nothing")
    else:
        given = read_content(given, where)
    parts = tuple([_checked_part(part, f"{where}.parts[{position}]") for position, part in enumerate(given)])
    if message.role == "tool" and not all(isinstance(part, ToolResult | Opaque) for part in parts):
        raise UsageError(f"{where}: expected a ToolResult in a message of role tool; say: Message.tool(call, '…')")
    is_as_given = given is message.parts and all(map(is_, parts, given))
    return message if is_as_given else msgspec.structs.replace(message, parts=parts)


def _checked_part(part: Part, where: str) -> Part:
    """Return a caller's part; a result may have been written `ToolResult(call.id, call.name, "21 °C")`."""
    check_made(part, where)
    if isinstance(part, ToolCall):
        if not part.name:
            raise UsageError(f"{where}.name: expected the name of a tool, got an empty string")
        if type(part.arguments) is not str:  # a subclass, which the JSON reader refuses
            return msgspec.structs.replace(part, arguments=str.__str__(part.arguments))
    if isinstance(part, Media):
        return _checked_media(part, where)
    if not isinstance(part, ToolResult):
        return part
    given: object = part.parts
    said = read_content(given, f"{where}.parts") if given != () and given != [] else ()
    inner = tuple([_checked_part(item, f"{where}.parts") for item in said])
    if not all(isinstance(item, Text | Media | Opaque) for item in inner):
        raise UsageError(f"{where}.parts: expected texts and media, got another part")
    return part if inner == given else msgspec.structs.replace(part, parts=inner)


#: What base64 is written with, in either alphabet.
_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_="


def _checked_media(media: Media, where: str) -> Media:
    """Return a caller's media, whose base64 may stand in lines. An answer's sound may have an id in place of data."""
    data = "".join(media.data.split()) if media.data else None
    if data is None and not media.url and media.native is None:
        raise UsageError(f"{where}: expected data or a url in Media, got neither")
    if data is not None and (not data or data.encode("utf-8", "replace").translate(None, _BASE64)):
        raise UsageError(f"{where}.data: expected base64, got other text; say: Media.of('cat.png')")
    return media if data == media.data else msgspec.structs.replace(media, data=data)


#: Keys that say something in a message of any protocol.
_SAYING: Final = frozenset({"content", "parts", "type", "tool_calls", "function_call", "images", "refusal", "audio"})


def _check_dict(message: Mapping[str, Any], where: str) -> None:
    if not all(isinstance(key, str) for key in message):
        raise UsageError(f"{where}: expected strings as keys")
    if _SAYING.isdisjoint(message):
        keys = ", ".join(message)[:80] or "none"
        raise UsageError(f"{where}: expected a message with content, got the keys {keys}")
    kind, role = message.get("type", "message"), message.get("role")
    if kind == "message" and not isinstance(role, str) and "parts" not in message:
        raise UsageError(f"{where}: expected a role, as in {{'role': 'user', 'content': '…'}}, got none")
    if not isinstance(kind, str):
        raise UsageError(f"{where}: expected a string as type, got {kind_of(kind)}")
    if not isinstance(message.get("content"), str | list | tuple | Mapping | None):
        seen = kind_of(message["content"])
        raise UsageError(f"{where}.content: expected a string or a list of parts, got {seen}")
    if message.get("content") is None and message.keys() <= {"role", "content", "type", "name"}:
        raise UsageError(f"{where}: expected content, got None")


def read_tools(tools: Tools) -> tuple[tuple[Tool, ...], dict[str, FunctionTool]]:
    """Return tools in our values, and the functions among them by name.

    Raises:
        UsageError: not a tool, or two of one name.
    """
    out: list[Tool] = []
    functions: dict[str, FunctionTool] = {}
    if isinstance(tools, str | bytes | Mapping | Tool | FunctionTool) or not isinstance(tools, Iterable):
        raise UsageError(f"tools: expected a list, as tools=[get_weather], got {kind_of(tools)}")
    items: list[object] = list(tools)
    for position, item in enumerate(items):
        if isinstance(item, Tool):
            out.append(_checked_tool(item, f"tools[{position}]"))
        elif isinstance(item, Mapping):
            out += _read_tool_dict(item, position)
        elif is_model(item):
            out.append(_model_tool(item))
        elif isinstance(item, FunctionTool) or callable(item):
            function = item if isinstance(item, FunctionTool) else tool_of(item)
            functions[function.tool.name] = function
            out.append(function.tool)
        else:
            raise UsageError(f"tools[{position}]: expected a function, a Tool, a model or a dict, got {kind_of(item)}")
    names = [tool.name for tool in out]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"expected tools of different names, got {', '.join(twice)} more than once")
    return tuple(out), functions


def _checked_tool(tool: Tool, where: str) -> Tool:
    """Return a caller's tool, whose schema may be a mapping."""
    check_made(tool, where)
    if not tool.name:
        raise UsageError(f"{where}.name: expected a name, got an empty string")
    schema: object = tool.schema
    if schema is None:
        return tool
    if not isinstance(schema, Mapping | Raw):
        seen = kind_of(schema)
        raise UsageError(f"{where} ({tool.name}): expected a JSON schema as a mapping or Raw, got {seen}")
    return msgspec.structs.replace(tool, schema=read_object(f"{where}.schema ({tool.name})", schema))


def _model_tool(kind: Any) -> Tool:
    """Return a self-validating class as a tool whose arguments are its fields."""
    schema = model_schema(kind)
    description = schema.pop("description", None) or inspect.cleandoc(kind.__doc__ or "")
    schema.pop("title", None)
    return Tool(kind.__name__, str(description), _json.raw(schema))


def _read_dicts(messages: list[Mapping[str, Any]]) -> tuple[Message, ...]:
    if not messages:
        return ()
    protocol = protocol_of_messages(messages)
    body: dict[str, Any] = {"model": "any", recognition(protocol).messages_field: messages, "max_tokens": 1}
    read = _parsed(protocol, body).messages
    return tuple(_with_origin(message, protocol) for message in read)


def _with_origin(message: Message, protocol: ProtocolName) -> Message:
    """Return an answer with its origin: the signatures in a dict belong to a provider that speaks its protocol."""
    if message.role != "assistant" or not any(map(_has_seal, message.parts)):
        return message
    return msgspec.structs.replace(message, origin=Origin(protocol))


def _has_seal(part: Part) -> bool:
    if isinstance(part, Thinking) and part.redacted:
        return True
    return isinstance(part, Text | Thinking | ToolCall) and bool(part.signature)


def _read_tool_dict(tool: Mapping[str, Any], position: int) -> tuple[Tool, ...]:
    protocol, declared = _declared(tool, f"tools[{position}]")
    marks = recognition(protocol)
    body: dict[str, Any] = {"model": "any", marks.messages_field: marks.hello, "tools": [declared], "max_tokens": 1}
    found = _parsed(protocol, body, position).tools
    if not found:
        raise UsageError(f"expected a tool of yours, got one that only its provider runs at tools[{position}]")
    for read in found:
        if not read.name:
            raise UsageError(f"expected a name, got an empty one at tools[{position}]")
        if read.schema is not None and bytes(read.schema)[:1] != b"{":
            raise UsageError(f"expected a JSON schema as an object, got other JSON at tools[{position}] ({read.name})")
    return found


def _declared(tool: Mapping[str, Any], where: str) -> tuple[ProtocolName, Mapping[str, Any]]:
    """Return the protocol that a tool is written in, and the entry of its `tools`."""
    found = tool_entry(tool)
    if found is None:
        raise UsageError(f"expected a tool with a name, got the keys {', '.join(map(str, tool)) or 'none'} at {where}")
    return found


def _parsed(protocol: ProtocolName, body: dict[str, Any], position: int = 0) -> Request:
    """Return the request that a body says. `position`: of its one tool among those that were given."""
    encoded = bytes(read_json("messages" if "tools" not in body else "tools", body))
    try:
        spoken = PROTOCOLS[protocol]
        path = spoken.routes[0][1].replace("{model}", "any")
        return spoken.parse_request(encoded, path=path).request
    except WireError as problem:
        told = str(problem).replace(" at tools[0]", f" at tools[{position}]")
        raise UsageError(f"read as {protocol}: {told}") from None
