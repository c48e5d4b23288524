"""A provider's calls of MCP servers' tools, and the tools that it found there, as parts report them.

Shapes: Messages' `mcp_tool_use`, `mcp_tool_result` and `mcp_tool_listing`
(https://platform.claude.com/docs/en/agents-and-tools/mcp-connector), Responses' `mcp_call` and `mcp_list_tools`
(https://platform.openai.com/docs/guides/tools-connectors-mcp), both read 2026-11-25.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Final, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.json_fields import Fields, read, read_fields, read_text

_USE: Final = "mcp_tool_use"
_RESULT: Final = "mcp_tool_result"
_CALL: Final = "mcp_call"
_LISTED: Final = {"mcp_list_tools": "server_label", "mcp_tool_listing": "mcp_server_name"}
_DONE: Final = frozenset({"", "completed", "failed"})
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OF_TOOL: Final = ("name", "description", "input_schema")


@final
class RemoteCall(msgspec.Struct, frozen=True):
    """A call and its result. `arguments`: the JSON text of an object; `besides`: paths of what else the part says."""

    server: str
    name: str
    arguments: Raw
    result: str
    is_error: bool
    id: str = ""
    besides: tuple[str, ...] = ()


@final
class RemoteListing(msgspec.Struct, frozen=True):
    """The tools of a server: name, description, input_schema. `besides` as in `RemoteCall`."""

    server: str
    tools: tuple[Json, ...]
    besides: tuple[str, ...] = ()


@final
class Begun(msgspec.Struct, frozen=True):
    """A call whose result follows in another part."""

    id: str
    besides: tuple[str, ...] = ()


Remote: TypeAlias = RemoteCall | RemoteListing
RenderRemote: TypeAlias = Callable[[Remote], list[Raw]]


@final
class RemoteCalls:
    """The calls of one answer, or of one turn."""

    __slots__ = ("_begun",)

    def __init__(self) -> None:
        self._begun: dict[str, Fields] = {}

    def take(self, part: Raw) -> Remote | Begun | None:
        """Return what a part reports, or None if it is no such part, or an incomplete one."""
        fields = read_fields(part) or {}
        kind = read_text(fields.get("type"))
        if kind in _LISTED:
            return _listing(fields, _LISTED[kind])
        if kind == _CALL:
            return _call(fields)
        if kind == _RESULT:
            return self._result(fields)
        id = read_text(fields.get("id"))
        if kind != _USE or not id or id in self._begun or not read_text(fields.get("server_name")):
            return None
        self._begun[id] = fields
        return Begun(id, _others(fields, "id", "name", "server_name", "input"))

    def _result(self, fields: Fields) -> RemoteCall | None:
        id = read_text(fields.get("tool_use_id"))
        text = _text(read(fields.get("content")))
        begun = self._begun.get(id)
        if begun is None or text is None:
            return None
        del self._begun[id]
        arguments = begun.get("input") or Raw(b"{}")
        is_error = fields.get("is_error") == Raw(b"true")
        besides = _others(fields, "tool_use_id", "content", "is_error")
        server, name = read_text(begun.get("server_name")), read_text(begun.get("name"))
        return RemoteCall(server, name, arguments, text, is_error, id, besides)

    def open(self) -> list[str]:
        """Return the ids of calls whose result has not come."""
        return list(self._begun)


def id_in_form(remote: RemoteCall, prefix: str) -> str:
    """Return the id of a call with a protocol's prefix; generate one if there is none that is valid there."""
    id = remote.id if remote.id.startswith(prefix) else prefix + remote.id
    if remote.id and _ID.fullmatch(id):
        return id
    words = (remote.id, remote.server, remote.name, bytes(remote.arguments).decode("utf-8", "replace"))
    return prefix + hashlib.sha256("\0".join(words).encode("utf-8", "replace")).hexdigest()[:24]


def _call(fields: Fields) -> RemoteCall | None:
    """Return a call, or None if it has not ended, or its arguments are no object."""
    arguments = Raw(read_text(fields.get("arguments")).encode("utf-8", "surrogatepass") or b"{}")
    status, error = read_text(fields.get("status")), read(fields.get("error"))
    server, name = read_text(fields.get("server_label")), read_text(fields.get("name"))
    if status not in _DONE or read_fields(arguments) is None or not server or not name:
        return None
    is_error = status == "failed" or error is not None
    text = _error_text(error) if error is not None else read_text(fields.get("output"))
    besides = _others(fields, "id", "arguments", "name", "server_label", "output", "error", "status")
    if isinstance(error, dict):
        besides += tuple([f"error.{key}" for key in error if key not in ("type", "content", "message")])
    return RemoteCall(server, name, arguments, text, is_error, read_text(fields.get("id")), besides)


def _listing(fields: Fields, name: str) -> RemoteListing | None:
    tools = read(fields.get("tools"))
    server = read_text(fields.get(name))
    if not isinstance(tools, list) or not server:
        return None
    besides = list(_others(fields, "tools", name))
    listed: list[Json] = []
    for tool in tools:
        if not isinstance(tool, dict):
            return None
        listed.append({key: tool[key] for key in _OF_TOOL if key in tool})
        besides += [f"tools[].{key}" for key, value in tool.items() if key not in _OF_TOOL and value is not None]
    return RemoteListing(server, tuple(listed), tuple(dict.fromkeys(besides)))


def _text(content: Json) -> str | None:
    """Return the text of a result, or None if it contains more than texts."""
    if isinstance(content, str):
        return content
    texts = []
    for entry in content if isinstance(content, list) else ():
        text = entry.get("text") if isinstance(entry, dict) and entry.get("type") == "text" else None
        if not isinstance(text, str) or not isinstance(entry, dict) or len(entry) > 2:
            return None
        texts.append(text)
    return "\n".join(texts) if isinstance(content, list) else None


def _error_text(error: Json) -> str:
    if isinstance(error, dict):
        found = _text(error.get("content")) if "content" in error else None
        message = error.get("message")
        return found if found is not None else message if isinstance(message, str) else _json.to_text(error)
    return error if isinstance(error, str) else _json.to_text(error)


def _others(fields: Fields, *known: str) -> tuple[str, ...]:
    return tuple(name for name, value in fields.items() if name not in ("type", *known) and bytes(value) != b"null")
