"""Messages' tools in the shared form: tools that its clients run become functions with the published schema.

Shapes: https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview and its pages on bash-tool,
text-editor-tool, memory-tool, computer-use-tool, tool-search-tool and web-search-tool (read 2026-11-22).
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.hosted.earlier_calls import with_remotes
from dragoman.codec.json_fields import native_fields, read_fields, read_objects, read_text
from dragoman.deviations import clip
from dragoman.events import Deviation
from dragoman.protocol.native_tools import (
    NativeTool,
    Opened,
    Runner,
    SchemaRules,
    ToolForms,
    Written,
    read_place,
    unsaid,
)
from dragoman.protocols.anthropic.remote_blocks import render_remote
from dragoman.protocols.anthropic.request.parse import parse_tool
from dragoman.protocols.anthropic.request.remote_servers import is_toolset, read_server_tools, write_server_tool
from dragoman.protocols.anthropic.wire import NAME
from dragoman.types import Message, Named, Native, Opaque, Part, Request, Text, Tool, ToolResult

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}
_PAIR: Final = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}
_DATED: Final = re.compile(r"_\d{8}$")


def _commands(names: tuple[str, ...], properties: dict[str, Json]) -> Json:
    command = {"type": "string", "enum": list(names)}
    return {"type": "object", "properties": {"command": command, **properties}, "required": ["command"]}


_EDITING: Final[dict[str, Json]] = {
    "path": _TEXT, "view_range": _PAIR, "old_str": _TEXT, "new_str": _TEXT, "file_text": _TEXT, "insert_line": _NUMBER,
}  # fmt: skip
#: By kind: words and schema.
_FUNCTIONS: Final[dict[str, tuple[str, Json]]] = {
    "bash": (
        "Run a command in a bash session on the user's machine that goes on from call to call; restart begins anew.",
        {"type": "object", "properties": {"command": _TEXT, "restart": {"type": "boolean"}}},
    ),
    "text_editor": (
        "View, create and edit files of the user's machine.",
        _commands(("view", "create", "str_replace", "insert"), {**_EDITING, "insert_text": _TEXT}),
    ),
    "memory": (
        "Read and write the notes under /memories that last from one conversation to the next. Look there first.",
        _commands(
            ("view", "create", "str_replace", "insert", "delete", "rename"),
            {**_EDITING, "insert_text": _TEXT, "old_path": _TEXT, "new_path": _TEXT},
        ),
    ),
    "computer": (
        "Use the user's screen, mouse and keyboard. Coordinates are pixels of the last screenshot.",
        {
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": [
                    "key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click",
                    "double_click", "triple_click", "left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait",
                    "screenshot", "cursor_position", "zoom"]},
                "text": _TEXT, "coordinate": _PAIR, "start_coordinate": _PAIR,
                "scroll_direction": {"type": "string", "enum": ["up", "down", "left", "right"]},
                "scroll_amount": _NUMBER, "duration": {"type": "number"},
                "region": {"type": "array", "items": _NUMBER, "minItems": 4, "maxItems": 4},
            },
            "required": ["action"],
        },
    ),
}  # fmt: skip
#: What providers run, by the beginning of the type.
_KINDS: Final = (
    ("web_search", "web_search"), ("web_fetch", "web_fetch"), ("code_execution", "code_execution"),
    ("tool_search_tool", "tool_search"),
)  # fmt: skip
_SETTINGS: Final = ("allowed_domains", "blocked_domains", "user_location", "max_uses")
#: By kind: the type, and the settings that it takes.
_WRITTEN: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "web_search": ("web_search_20250305", _SETTINGS),
    "web_fetch": ("web_fetch_20250910", ("allowed_domains", "blocked_domains", "max_uses")),
    "code_execution": ("code_execution_20250825", ()),
}


def open_request(request: Request) -> Opened:
    """As `ToolForms.open_request`."""
    native = dict(native_fields(request.native, NAME))
    entries = read_objects(native.pop("tools", None))
    others = [_native_tool(item) for item in entries if not is_toolset(item)]
    others += read_server_tools(entries, native)
    listed = _Listed(request.tools, is_searched=any(tool.kind == "tool_search" for tool in others))
    if isinstance(request.tool_choice, Named):
        listed.show(request.tool_choice.name)
    messages = [_opened_message(message, listed) for message in request.messages]
    choice, forced = request.tool_choice, ""
    if isinstance(choice, Named) and all(tool.name != choice.name for tool in request.tools):
        meant = next((tool for tool in others if tool.name == choice.name), None)
        forced = meant.name if meant is not None else ""
        choice = choice if meant is None or meant.function is not None else "auto"
    if listed.is_searched:  # by the provider: where it cannot, all tools are there from the beginning
        others = [tool for tool in others if tool.kind != "tool_search"]
        listed.deviations.append(Deviation("changed", "tools", "all are offered in place of a search for them"))
    opened = msgspec.structs.replace(
        request,
        messages=tuple(messages),
        tools=listed.offered(),
        tool_choice=choice,
        native=Native(NAME, native) if native else None,
    )
    return Opened(opened, tuple(others), forced, {}, tuple(listed.deviations))


class _Listed:
    """The list of tools while a conversation changes it."""

    __slots__ = ("_hidden", "_noted", "_tools", "deviations", "is_searched")

    def __init__(self, tools: tuple[Tool, ...], *, is_searched: bool) -> None:
        self._tools: dict[str, Tool] = {}
        self._hidden: set[str] = set()
        self._noted: set[str] = set()
        self.is_searched = is_searched
        self.deviations: list[Deviation] = []
        for tool in tools:
            own = dict(native_fields(tool.native, NAME))
            if own.pop("defer_loading", None) == Raw(b"true"):
                tool = msgspec.structs.replace(tool, native=Native(NAME, own) if own else None)
                if not is_searched:
                    self._hidden.add(tool.name)
            if self._tools.setdefault(tool.name, tool) != tool:
                self.deviations.append(Deviation("dropped", f"tools.{clip(tool.name)}", "a second tool of this name"))

    def note_rest(self, kind: str, fields: dict[str, Raw], *known: str) -> None:
        """Name the other fields of a block."""
        for key, value in fields.items():
            if key != "type" and key not in known and bytes(value) != b"null":
                where = f"messages.<{kind}>.{clip(key)}"
                if where not in self._noted:
                    self._noted.add(where)
                    self.deviations.append(Deviation("untranslated", where, f"only {NAME} has it", "note"))

    def has(self, name: str) -> bool:
        return name in self._tools

    def show(self, name: str) -> None:
        self._hidden.discard(name)

    def hide(self, name: str) -> None:
        self._hidden.add(name)

    def add(self, tool: Tool) -> None:
        self._tools[tool.name] = tool
        self.show(tool.name)

    def offered(self) -> tuple[Tool, ...]:
        hidden = len(self._hidden & self._tools.keys())
        if hidden:
            self.deviations.append(Deviation("changed", "tools", f"{hidden} deferred or withdrawn tools", "note"))
        return tuple([tool for name, tool in self._tools.items() if name not in self._hidden])


def _native_tool(entry: dict[str, Any]) -> NativeTool:
    type = str(entry.get("type") or "")
    bare = _DATED.sub("", type)
    name = str(entry.get("name") or bare)
    where = f"tools.{clip(name)}"
    if bare in _FUNCTIONS:
        words, schema = _FUNCTIONS[bare]
        width, height = entry.get("display_width_px"), entry.get("display_height_px")
        if isinstance(width, int) and isinstance(height, int):
            words = f"{words} The screen has {width} × {height} of them."
        function = Tool(name, words, _json.raw(schema))
        rest = unsaid(entry, "name", "display_width_px", "display_height_px")
        return NativeTool(bare, name, where, "client", function, unsaid=rest)
    kind = next((kind for start, kind in _KINDS if bare.startswith(start)), "other")
    place, elsewhere = read_place(entry.get("user_location"), "user_location")
    settings = {key: value for key, value in {**entry, "user_location": place}.items() if key in _SETTINGS and value}
    runner: Runner = "client" if bare.endswith("_toolset") and kind == "other" else "provider"
    kind = "computer" if runner == "client" else kind
    return NativeTool(
        kind, name, where, runner, None, settings, (*unsaid(entry, "name", "user_location", *settings), *elsewhere)
    )


# ---------------------------------------------------------------- the conversation


def _opened_message(message: Message, listed: _Listed) -> Message:
    parts: list[Part] = []
    is_changed = False
    for part in message.parts:
        opened: tuple[Part, ...] | None = None
        if type(part) is Opaque and part.protocol == NAME:
            opened = _opened_part(part, listed)
        elif type(part) is ToolResult and any(type(inner) is Opaque for inner in part.parts):
            inner = [new for old in part.parts for new in _opened_inner(old, listed)]
            opened = (msgspec.structs.replace(part, parts=tuple(inner)),)
        is_changed = is_changed or opened is not None
        parts += (part,) if opened is None else opened
    return msgspec.structs.replace(message, parts=tuple(parts)) if is_changed else message


def _opened_inner(part: Any, listed: _Listed) -> tuple[Any, ...]:
    opened = _opened_part(part, listed) if type(part) is Opaque and part.protocol == NAME else None
    return (part,) if opened is None else opened


def _opened_part(part: Opaque, listed: _Listed) -> tuple[Part, ...] | None:
    """Return a block as text, or as its effect on the list of tools; None for any other."""
    fields = read_fields(part.raw) or {}
    kind = read_text(fields.get("type"))
    if kind == "tool_reference":
        name = read_text(fields.get("tool_name"))
        listed.show(name)
        listed.note_rest(kind, fields, "tool_name")
        return (Text(f"The tool {name} can be called now."),)
    if kind in ("tool_addition", "tool_removal"):
        tool = read_fields(fields.get("tool")) or {}
        if not _change(kind, tool, listed):
            return None
        if not listed.has(name := read_text(tool.get("name"))) and "definition" not in tool:
            where = f"messages.<{kind}>.tool.name"
            listed.deviations.append(Deviation("dropped", where, f"no tool is called {clip(name)}"))
        listed.note_rest(kind, fields, "tool")
        return ()
    return None  # what is said as text is so when the request is written


def _change(kind: str, tool: dict[str, Raw], listed: _Listed) -> bool:
    """Change the list of tools. Return whether that was possible."""
    name = read_text(tool.get("name"))
    definition = read_fields(tool.get("definition"))
    if definition is not None:
        found = parse_tool(definition)
        if found is None:
            return False
        listed.add(found)
    elif read_text(tool.get("type")) != "tool_reference" or not name:
        return False
    elif kind == "tool_addition":
        listed.show(name)
    else:
        listed.hide(name)
    return True


def write_tool(tool: NativeTool) -> Written | None:
    """Render a tool that the provider runs."""
    if tool.server is not None:
        return write_server_tool(tool.server)
    if tool.kind not in _WRITTEN:
        return None
    type, takes = _WRITTEN[tool.kind]
    entry: dict[str, Json] = {"type": type, "name": tool.kind}
    entry |= {key: tool.settings[key] for key in takes if key in tool.settings}
    lost = tuple(key for key in tool.settings if key not in takes)
    return Written(_json.raw(entry), _json.raw({"type": "tool", "name": tool.kind}), lost)


def restate(request: Request) -> tuple[Request, list[Deviation]]:
    """As `ToolForms.restate`."""
    return with_remotes(request, NAME, render_remote)


FORMS: Final = ToolForms(
    re.compile(r"[A-Za-z0-9_-]+"),
    128,
    open_request=open_request,
    write_tool=write_tool,
    restate=restate,
    schema=SchemaRules(has_plain_root=True, key=re.compile(r"[A-Za-z0-9_.-]{1,64}")),
)
