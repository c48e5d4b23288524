"""Responses' tools in the shared form: tools that its clients run become functions, and calls are converted back.

Shapes: https://platform.openai.com/docs/guides/tools-shell, …/tools-apply-patch, …/tools-tool-search (read 2026-11-22).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.hosted.earlier_calls import with_remotes
from dragoman.codec.json_fields import as_object, native_fields, read, read_fields, read_objects
from dragoman.codec.unread import name_unread
from dragoman.deviations import clip
from dragoman.events import Deviation
from dragoman.protocol.native_tools import (
    NativeTool,
    Opened,
    Runner,
    SchemaRules,
    ToolForms,
    Written,
    hosted_tool,
    unsaid,
)
from dragoman.protocols.openai_responses.remote_items import render_remote
from dragoman.protocols.openai_responses.request.files_and_images import (
    read_file_search,
    read_image_generation,
    write_file_search,
    write_image_generation,
)
from dragoman.protocols.openai_responses.request.namespaces import known_name, place_of
from dragoman.protocols.openai_responses.request.remote_servers import (
    allowed_of,
    is_meant,
    read_server_tool,
    write_server_tool,
)
from dragoman.protocols.openai_responses.request.tools import allowed_in, allowed_tools, parse_tools
from dragoman.protocols.openai_responses.wire import NAME, text_of
from dragoman.types import Message, Named, Native, Opaque, Part, Request, Text, Tool, ToolCall, ToolChoice, ToolResult

_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_NUMBER: Final = {"type": "integer"}


def _object(properties: dict[str, Json], *required: str) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


def _function(name: str, description: str, schema: Json) -> Tool:
    return Tool(name, description, _json.raw(schema))


#: By type, what a client runs itself.
_FUNCTIONS: Final[dict[str, Tool]] = {
    "shell": _function(
        "shell", "Run shell commands on the user's machine, one after the other.",
        _object({"commands": _TEXTS, "timeout_ms": _NUMBER, "max_output_length": _NUMBER}, "commands")),
    "local_shell": _function(
        "local_shell", "Run one command on the user's machine, given as a list of arguments.",
        _object({"command": _TEXTS, "timeout_ms": _NUMBER, "working_directory": _TEXT, "user": _TEXT,
                 "env": {"type": "object", "additionalProperties": _TEXT}}, "command")),
    "apply_patch": _function(
        "apply_patch",
        "Create, update or delete one file. `diff`: for create_file every line of the file behind a +; for update_file "
        "hunks in the V4A form: @@ lines with context, and lines behind a space, - or +; not for delete_file.",
        _object({"type": {"type": "string", "enum": ["create_file", "update_file", "delete_file"]}, "path": _TEXT,
                 "diff": _TEXT}, "type", "path")),
}  # fmt: skip
_SEARCH: Final = "tool_search"
#: What an opened item says, by its type, beside `type` and its call's id; the same words where it says nothing else.
_SAID: Final = {
    "shell_call": ("action",), "local_shell_call": ("action",), "apply_patch_call": ("operation",),
    "tool_search_call": ("arguments",), "shell_call_output": ("output",), "local_shell_call_output": ("output",),
    "apply_patch_call_output": ("output",), "tool_search_output": ("tools",),
    "additional_tools": ("tools", "role"),
}  # fmt: skip
_USUAL: Final = (("status", "completed"), ("execution", "client"), ("caller", {"type": "direct"}),
                 ("environment", {"type": "local"}))  # fmt: skip
_SEARCH_SCHEMA: Final = _object({"query": _TEXT, "limit": _NUMBER}, "query")
#: What providers run, by the beginning of the type.
_KINDS: Final = (
    ("web_search", "web_search"), ("file_search", "file_search"), ("code_interpreter", "code_execution"),
    ("mcp", "mcp"), ("image_generation", "image_generation"), ("computer", "computer"), ("tool_search", "tool_search"),
    ("shell", "shell"),
)  # fmt: skip
_READERS: Final[dict[str, Callable[[dict[str, Any]], NativeTool]]] = {
    "mcp": read_server_tool, "file_search": read_file_search, "image_generation": read_image_generation,
}  # fmt: skip
_DEFERRED: Final = Raw(b"true")
_SWITCHES: Final = (_DEFERRED, Raw(b"false"))
_BRINGING: Final = ("additional_tools", "tool_search_output")
#: Items of calls and of their results → the tool.
_CALLS: Final = {"shell_call": "shell", "local_shell_call": "local_shell", "apply_patch_call": "apply_patch",
                 "tool_search_call": "tool_search"}  # fmt: skip
_RESULTS: Final = {"shell_call_output": "shell", "local_shell_call_output": "local_shell",
                   "apply_patch_call_output": "apply_patch", "tool_search_output": "tool_search"}  # fmt: skip


def open_request(request: Request) -> Opened:
    """As `ToolForms.open_request`."""
    deviations: list[Deviation] = []
    native = dict(native_fields(request.native, NAME))
    choice, forced = _chosen(request), ""
    tools, forms = _opened_tools(request.tools, deviations, choice)
    others = [_native_tool(item) for item in read_objects(native.pop("tools", None))]
    brought: list[Tool] = []
    for item in _bringing(request):
        parsed, hosted = parse_tools(_json.raw(item["tools"]), deviations)
        brought += parsed
        others += [_native_tool(_plain(entry)) for entry in hosted]
    if brought:
        found, more = _opened_tools(tuple(brought), deviations, choice, found=True)
        tools += _newest(found, tools, deviations)
        forms |= more
    said = read(native.pop("tool_choice", None))
    if isinstance(said, dict) and said.get("type") == "allowed_tools":
        for number, entry in enumerate(said.get("tools") or ()):
            where = f"tool_choice.tools[{number}]"
            name_unread(_plain(entry), where, deviations, "type", "name", "namespace", "server_label")
        count = len(tools) + len(others)
        tools, others = _allowed(said, tools, others, forms)
        kept = f"{len(tools) + len(others)} of {count} tools are offered"
        deviations.append(Deviation("changed", "tool_choice.tools", kept, "note"))
    elif isinstance(said, dict):
        deviations += _choice_unsaid(said, others)
        forced = next((tool.name for tool in others if is_meant(tool, said)), str(said.get("type")))
        choice = Named(forced) if any(tool.name == forced and tool.function for tool in others) else "auto"
    _note_rest(request, deviations)
    names = frozenset([tool.name for tool in tools])
    messages = tuple([_opened_message(message, names) for message in request.messages])
    opened = msgspec.structs.replace(
        request,
        messages=messages,
        tools=tuple(tools),
        tool_choice=choice,
        native=Native(NAME, native) if native else None,
    )
    return Opened(opened, tuple(others), forced, forms, tuple(deviations))


def _chosen(request: Request) -> ToolChoice:
    """Return the choice. The own name of a function in one namespace only is that function's."""
    choice = request.tool_choice
    if not isinstance(choice, Named) or any(tool.name == choice.name for tool in request.tools):
        return choice
    meant = [tool.name for tool in request.tools if place_of(native_fields(tool.native, NAME))[1] == choice.name]
    return Named(meant[0]) if len(meant) == 1 else choice


def _opened_tools(
    given: tuple[Tool, ...], deviations: list[Deviation], choice: ToolChoice, *, found: bool = False
) -> tuple[list[Tool], dict[str, Native]]:
    """Return tools without their place in a namespace, and what their calls carry instead.

    Deferred tools exist only once they were found or chosen.
    """
    tools: list[Tool] = []
    forms: dict[str, Native] = {}
    hidden, said = 0, dict[str, None]()
    for tool in given:
        if tool.native is None:
            tools.append(tool)
            continue
        own = dict(native_fields(tool.native, NAME))
        space, name = place_of(own)
        said |= dict.fromkeys(unsaid(read_fields(own.get("namespace")) or {}, "name"))
        own.pop("namespace", None)
        own.pop("name", None)
        deferred = own.get("defer_loading")
        if deferred in _SWITCHES:
            del own["defer_loading"]
        if deferred == _DEFERRED and not found and choice != Named(tool.name):
            hidden += 1
            continue
        if space:
            forms[tool.name] = Native(NAME, {"namespace": _json.raw(space), "name": _json.raw(name)})
        tools.append(msgspec.structs.replace(tool, native=Native(NAME, own) if own else None))
    for name in said:
        deviations.append(Deviation("untranslated", f"tools.namespace.{name}", f"{NAME}'s own", "note"))
    if hidden:
        deviations.append(Deviation("changed", "tools", f"{hidden} deferred tools, until they are found", "note"))
    return tools, forms


def _newest(found: list[Tool], offered: list[Tool], deviations: list[Deviation]) -> list[Tool]:
    """Return the newest tool of each name that a conversation brings, except names that are offered already."""
    known = {tool.name: tool for tool in offered}
    newest: dict[str, Tool] = {}
    for tool in found:
        other = known.get(tool.name) or newest.get(tool.name)
        if other is not None and other != tool:
            deviations.append(Deviation("dropped", f"tools.{clip(tool.name)}", "another tool has this name"))
        newest[tool.name] = tool
    return [tool for name, tool in newest.items() if name not in known]


def _plain(entry: Json) -> dict[str, Any]:
    return as_object(_json.decode(_json.raw(entry)))


def _native_tool(entry: dict[str, Any]) -> NativeTool:
    type = str(entry.get("type") or "tool")
    where = f"tools.{clip(type)}"
    environment = entry.get("environment")
    is_local = not isinstance(environment, dict) or environment.get("type") == "local"
    if type in _FUNCTIONS and (type != "shell" or is_local):
        others = unsaid(entry, "environment")
        if isinstance(environment, dict):
            others += tuple([f"environment.{name}" for name in unsaid(environment)])
        return NativeTool(type, type, where, "client", _FUNCTIONS[type], unsaid=others)
    if type == _SEARCH and entry.get("execution") == "client":
        schema = entry.get("parameters") or _SEARCH_SCHEMA
        words = str(entry.get("description") or "Find tools by what they do. What is found can be called afterwards.")
        others = unsaid(entry, "execution", "description", "parameters")
        return NativeTool(type, type, where, "client", _function(type, words, schema), unsaid=others)
    kind = next((kind for start, kind in _KINDS if type.startswith(start)), "other")
    read = _READERS.get(kind)
    if read is not None:
        return read(entry)
    runner: Runner = "client" if kind == "computer" else "provider"
    usual = ("container",) if entry.get("container") == {"type": "auto"} else ()
    return hosted_tool(entry, kind, where, *usual, runner=runner)


def _choice_unsaid(said: dict[str, Any], others: list[NativeTool]) -> list[Deviation]:
    """Return what a choice of a tool that is no function says and is expressed nowhere else."""
    if not any(is_meant(tool, said) for tool in others):
        return [Deviation("dropped", f"tool_choice.{clip(str(said.get('type')))}", "no tool of this kind is offered")]
    return [Deviation("untranslated", f"tool_choice.{key}", f"only {NAME} has it", "note") for key in unsaid(said)]


def _note_rest(request: Request, deviations: list[Deviation]) -> None:
    """Name the other fields of items that become calls and results of functions."""
    found: dict[str, None] = {}
    for message in request.messages:
        if Opaque not in map(type, message.parts):
            continue
        for part in message.parts:
            item = read(part.raw) if type(part) is Opaque and part.protocol == NAME else None
            if not isinstance(item, dict) or (known := _SAID.get(str(item.get("type")))) is None:
                continue
            usual = [name for name, value in _USUAL if item.get(name) == value]
            where = f"messages.<{item['type']}>."
            ids = () if item.get("call_id") or item["type"] == "additional_tools" else ("id",)
            found |= {where + name: None for name in unsaid(item, "call_id", *ids, *known, *usual)}
    deviations += [Deviation("untranslated", where, f"only {NAME} has it", "note") for where in found]


def _allowed(
    said: dict[str, Any], tools: list[Tool], others: list[NativeTool], forms: dict[str, Native]
) -> tuple[list[Tool], list[NativeTool]]:
    """Return only what a choice allows."""
    entries = [entry for entry in said.get("tools") or () if isinstance(entry, dict)]
    return allowed_in(entries, [(tool, native_fields(forms.get(tool.name), NAME)) for tool in tools]), allowed_of(
        others, entries
    )


# ---------------------------------------------------------------- the conversation


def _bringing(request: Request) -> list[dict[str, Any]]:
    """Yield the items that bring tools."""
    found = []
    for message in request.messages:
        if Opaque not in map(type, message.parts):
            continue
        for part in message.parts:
            if type(part) is Opaque and part.protocol == NAME:
                item = read(part.raw)
                if isinstance(item, dict) and item.get("type") in _BRINGING and isinstance(item.get("tools"), list):
                    found.append(item)
    return found


def _opened_message(message: Message, names: frozenset[str]) -> Message:
    kinds = tuple(map(type, message.parts))
    if Opaque not in kinds and ToolCall not in kinds:
        return message
    parts: list[Part] = []
    for part in message.parts:
        if type(part) is Opaque and part.protocol == NAME:
            opened = _opened_part(part)
            parts += (part,) if opened is None else opened
        elif type(part) is ToolCall and part.native is not None:
            parts.append(_opened_call(part, names))
        else:
            parts.append(part)
    is_same = len(parts) == len(message.parts) and all(
        new is old for new, old in zip(parts, message.parts, strict=True)
    )
    return message if is_same else msgspec.structs.replace(message, parts=tuple(parts))


def _opened_call(call: ToolCall, names: frozenset[str]) -> ToolCall:
    """Return a call with the unique name of its function."""
    own = native_fields(call.native, NAME)
    space, name = place_of(own)
    if not space:
        return call
    rest = {key: value for key, value in own.items() if key not in ("namespace", "name")}
    native = Native(NAME, rest) if rest else None
    return msgspec.structs.replace(call, name=known_name(space, name, names), native=native)


def _opened_part(part: Opaque) -> tuple[Part, ...] | None:
    """Return a part of a tool that the client runs as a call or a result; None for any other."""
    item = read(part.raw)
    if not isinstance(item, dict):
        return None
    type, id = str(item.get("type")), text_of(item.get("call_id") or item.get("id"))
    if type == "additional_tools":
        return ()
    if type in _CALLS:
        arguments = item.get({"apply_patch_call": "operation", "tool_search_call": "arguments"}.get(type, "action"))
        if isinstance(arguments, dict):
            arguments = {key: value for key, value in arguments.items() if value is not None}
            if type == "local_shell_call":
                arguments = {key: value for key, value in arguments.items() if key != "type" and value != {}}
        text = arguments if isinstance(arguments, str) else _json.to_text(arguments or {})
        return (ToolCall(id, _CALLS[type], text),)
    if type not in _RESULTS:
        return None
    name = _RESULTS[type]
    if name == _SEARCH:
        return (ToolResult(id, name, (Text(_found(item.get("tools"))),)),)
    is_error = item.get("status") == "failed"
    return (ToolResult(id, name, (Text(_output_text(item.get("output"))),), is_error),)


def _found(tools: Json) -> str:
    """Return the result of a search as text for a model."""
    parsed, hosted = parse_tools(_json.raw(tools or []), [])
    names = ", ".join(dict.fromkeys(tool.name for tool in parsed))
    kinds = ", ".join(dict.fromkeys(clip(_plain(entry).get("type") or "tool") for entry in hosted))
    told = [f"These tools can be called now: {names}."] * bool(names) + [f"Found too: {kinds}."] * bool(kinds)
    return " ".join(told) or "No tool was found."


def _output_text(output: Json) -> str:
    if isinstance(output, str):
        return output
    texts = []
    for entry in output if isinstance(output, list) else ():
        if isinstance(entry, dict):
            outcome = entry.get("outcome") or {}
            code = outcome.get("exit_code") if isinstance(outcome, dict) else None
            ended = f"\n(exit code {code})" if code else "\n(timed out)" if _has_timed_out(outcome) else ""
            texts.append(f"{entry.get('stdout') or ''}{entry.get('stderr') or ''}{ended}")
    return "\n".join(texts) if texts else _json.to_text(output) if output else ""


def _has_timed_out(outcome: Json) -> bool:
    return isinstance(outcome, dict) and outcome.get("type") == "timeout"


# ---------------------------------------------------------------- calls, as clients read them


def _write_shell(values: dict[str, Json]) -> dict[str, Json]:
    return {"action": {"timeout_ms": None, "max_output_length": None, **values}}


def _write_local_shell(values: dict[str, Json]) -> dict[str, Json]:
    return {"action": {"type": "exec", "env": {}, **values}}


_WRITERS: Final[dict[str, Callable[[dict[str, Json]], dict[str, Json]]]] = {
    "shell": _write_shell,
    "local_shell": _write_local_shell,
    "apply_patch": lambda values: {"operation": values},
    "tool_search": lambda values: {"execution": "client", "arguments": values},
}


def write_call(kind: str, call: ToolCall) -> Opaque | None:
    """Render a call of a tool that the client runs as the item that it knows; None: as a function's."""
    write = _WRITERS.get(kind)
    values = _json.decode_object(call.arguments)
    if write is None or isinstance(values, _json.Malformed):
        return None
    item = {"id": f"item_{call.id}", "type": f"{kind}_call", "call_id": call.id, "status": "completed", **write(values)}
    return Opaque(NAME, _json.raw(item))


def write_tool(tool: NativeTool) -> Written | None:
    """Render a tool that the provider runs."""
    if tool.kind == "code_execution":
        entry: dict[str, Json] = {"type": "code_interpreter", "container": {"type": "auto"}}
        return Written(_json.raw(entry), _json.raw({"type": "code_interpreter"}), tuple(tool.settings))
    if tool.server is not None:
        return write_server_tool(tool.server)
    if tool.kind == "file_search":
        return write_file_search(tool.settings)
    if tool.kind == "image_generation":
        return write_image_generation(tool.settings)
    if tool.kind != "web_search":
        return None
    entry = {"type": "web_search"}
    domains = {key: tool.settings[key] for key in ("allowed_domains", "blocked_domains") if key in tool.settings}
    if domains:
        entry["filters"] = domains
    for key in ("user_location", "search_context_size"):
        if key in tool.settings:
            entry[key] = tool.settings[key]
    lost = ("max_uses",) if "max_uses" in tool.settings else ()
    return Written(_json.raw(entry), _json.raw({"type": "web_search"}), lost)


def restate(request: Request) -> tuple[Request, list[Deviation]]:
    """As `ToolForms.restate`."""
    return with_remotes(request, NAME, render_remote)


FORMS: Final = ToolForms(
    re.compile(r"[A-Za-z0-9_-]+"),
    64,
    keeps_custom=True,
    open_request=open_request,
    allowed=allowed_tools,
    write_call=write_call,
    write_tool=write_tool,
    restate=restate,
    schema=SchemaRules(has_plain_root=True, names_members=True),
)
