"""Convert tools and tool choice between the wire and our values.

Functions are flat here. A namespace is a named group of functions, and calls of them carry its name. We know its
functions by unique names (`namespaces`), and their native fields give their place. Hosted tools (web_search, mcp, …)
are not ours: the list of them stays in the request's native fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.json_fields import Fields, native_fields, read
from dragoman.codec.unread import (
    name_unread,
    read_allowed,
    refuse_no_text,
    refuse_other_kinds,
    wanted_text,
    with_schema,
)
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.protocol import Dialect
from dragoman.protocols.openai_responses.request.namespaces import known_name, new_name, place, place_of
from dragoman.protocols.openai_responses.wire import NAME, make_native, text_of
from dragoman.types import Named, Request, Tool, ToolChoice

_NULL: Final = Raw(b"null")
_FALSE: Final = Raw(b"false")
_KNOWN_OF_CUSTOM: Final = ("type", "name", "description")
_KNOWN: Final = (*_KNOWN_OF_CUSTOM, "parameters")
_decode_tools = _json.typed_decoder(list[dict[str, Raw]])
_decode_list = _json.typed_decoder(list[Raw])


def parse_tools(raw: Raw, deviations: list[Deviation]) -> tuple[tuple[Tool, ...], list[Json]]:
    """Return the tools that a client's program runs, and the others unchanged."""
    entries = _decode_tools(raw)
    if isinstance(entries, Malformed):
        if bytes(raw) != b"null":
            deviations.append(Deviation("wrong-type", "tools", entries.problem))
        return (), []
    tools: list[Tool] = []
    hosted: list[Json] = []
    kinds = [_text(entry, "type") for entry in entries]
    taken: set[str] = set()
    if "namespace" in kinds:
        taken = {_text(entry, "name") for entry, kind in zip(entries, kinds, strict=True) if kind != "namespace"}
    for index, (entry, kind) in enumerate(zip(entries, kinds, strict=True)):
        refuse_other_kinds(entry, {"type": "a text"}, f"tools[{index}].")
        if kind in ("function", "custom", "") and not (kind == "" and "name" not in entry and "function" not in entry):
            tools.append(_parse_tool(entry, deviations, f"tools[{index}]"))
        elif kind == "namespace" and "tools" in entry:
            inner, others = _parse_namespace(entry, taken, deviations)
            tools += inner
            if others:
                hosted.append({**entry, "tools": others})
        else:
            hosted.append(entry)
    return tuple(tools), hosted


def _parse_tool(entry: dict[str, Raw], deviations: list[Deviation], where: str) -> Tool:
    nested = next((kind for kind in ("function", "custom") if kind in entry), None)
    if nested is not None and "name" not in entry:  # Chat's form
        inner = _json.typed_decoder(dict[str, Raw])(entry[nested])
        if not isinstance(inner, Malformed):
            deviations.append(Deviation("sibling-key", f"{where}.{nested}"))
            beside = {name: raw for name, raw in entry.items() if name != nested}
            twice = {name: raw for name, raw in beside.items() if raw not in (_NULL, inner.get(name, raw))}
            name_unread(twice, where, deviations, "type")
            entry = beside | inner
    is_custom = _text(entry, "type") == "custom" and "input_schema" not in entry
    if not is_custom:
        entry = with_schema(entry, "parameters", where, deviations)
    schema = entry.get("parameters")
    known = _KNOWN_OF_CUSTOM if is_custom else _KNOWN
    rest = {name: raw for name, raw in entry.items() if name not in known and raw != _NULL}
    if not is_custom:
        # absent is not false here: hosts are strict unless told
        strict = entry.get("strict", _NULL)
        rest.pop("strict", None)
        if strict != _FALSE:
            rest["strict"] = strict
    name = wanted_text({} if entry.get("name") == _NULL else entry, "name", where)
    if not name:
        raise WireError("expected the name of a tool", path=f"{where}.name")
    return Tool(
        name,
        wanted_text(entry, "description", where) if entry.get("description", _NULL) != _NULL else "",
        None if is_custom or schema is None or schema == _NULL else Raw(bytes(schema)),
        "custom" if is_custom else "function",
        make_native(rest),
    )


def _parse_namespace(
    entry: dict[str, Raw], taken: set[str], deviations: list[Deviation]
) -> tuple[list[Tool], list[Json]]:
    """Return the functions of a namespace by unique names, which are added to `taken`. A repeated one stays native."""
    group = _json.raw({name: raw for name, raw in entry.items() if name != "tools"})
    space = _text(entry, "name")
    inner, others = parse_tools(entry["tools"], deviations)
    tools: list[Tool] = []
    seen: set[str] = set()
    for tool in inner:
        name = new_name(space, tool.name, taken)
        if tool.name in seen or name in taken:
            deviations.append(Deviation("dropped", f"tools.{name[:80]}", "the same tool comes again"))
            others.append(_render_tool(tool))
            continue
        seen.add(tool.name)
        taken.add(name)
        own = tool.native.fields if tool.native is not None else {}
        native = make_native({**own, **place(group, tool.name)})
        tools.append(Tool(name, tool.description, tool.schema, tool.kind, native))
    return tools, others


def _text(entry: dict[str, Raw], name: str) -> str:
    return text_of(_json.decode(entry[name])) if name in entry else ""


def parse_tool_choice(
    value: Json, deviations: list[Deviation], offered: Collection[str] = ()
) -> tuple[ToolChoice, bool]:
    """Return the choice, and whether ours expresses all of it. `offered`: the tools' names."""
    if value is None or value == "auto":
        return "auto", True
    if value == "none":
        return "none", True
    if value == "required" or value == "any":
        return "any", True
    if isinstance(value, dict):
        function = value.get("function")
        name = value.get("name") or (function.get("name") if isinstance(function, dict) else None)
        space = value.get("namespace")
        if isinstance(name, str) and isinstance(space, str) and space:
            name = known_name(space, name, offered)
        kind = value.get("type")
        if isinstance(name, str) and kind in ("function", "custom", "tool", None):
            name_unread(value, "tool_choice", deviations, "type", "name", "namespace", "function")
            return Named(name), True
        if kind == "allowed_tools":
            read_allowed(value.get("tools"), "tool_choice.tools")
            refuse_no_text(value.get("mode"), "tool_choice.mode")
            return ("any" if value.get("mode") == "required" else "auto"), False
        return "auto", False
    deviations.append(Deviation("wrong-type", "tool_choice", str(value)[:60]))
    return "auto", True


def allowed_tools(request: Request) -> Sequence[Tool]:
    """Return the tools that a request lets be called."""
    said = read(native_fields(request.native, NAME).get("tool_choice"))
    if not isinstance(said, dict) or said.get("type") != "allowed_tools":
        return request.tools
    entries = [entry for entry in said.get("tools") or () if isinstance(entry, dict)]
    return allowed_in(entries, [(tool, native_fields(tool.native, NAME)) for tool in request.tools])


def allowed_in(entries: list[dict[str, Any]], tools: Iterable[tuple[Tool, Fields]]) -> list[Tool]:
    """Return the tools that a list of allowed ones has; a namespace allows all of it. `tools`: each with its place."""
    meant = {(text_of(entry.get("namespace")), text_of(entry.get("name"))) for entry in entries}
    spaces = {text_of(entry.get("name")) for entry in entries if entry.get("type") == "namespace"}
    allowed = []
    for tool, fields in tools:
        space, name = place_of(fields)
        places = ((space, name or tool.name), ("", name or tool.name), ("", tool.name))
        if space in spaces or not meant.isdisjoint(places):
            allowed.append(tool)
    return allowed


# ---------------------------------------------------------------- rendering


def render_tools(request: Request, hosted: Raw | None) -> list[Json]:
    """Render all tools; functions of one namespace stand together again."""
    rendered: list[Json] = []
    groups: dict[bytes, list[Json]] = {}
    for tool in request.tools:
        value = _render_tool(tool)
        namespace = value.pop("namespace", None)
        if not isinstance(namespace, Raw):
            rendered.append(value)
            continue
        group = bytes(namespace)
        if group not in groups:
            groups[group] = []
            fields = _json.decode(group)
            rendered.append({**fields, "tools": groups[group]} if isinstance(fields, dict) else value)
        groups[group].append(value)
    entries = _decode_list(hosted) if hosted is not None else []
    return [*rendered, *([] if isinstance(entries, Malformed) else entries)]


def _render_tool(tool: Tool) -> dict[str, Json]:
    own = dict(tool.native.fields) if tool.native is not None and tool.native.protocol == NAME else {}
    value: dict[str, Json] = {"type": tool.kind, "name": tool.name}
    if tool.description:
        value["description"] = tool.description
    if tool.kind == "function":
        value["parameters"] = tool.schema if tool.schema is not None else {"type": "object", "properties": {}}
        said = own.pop("strict", None)
        if said is None:
            value["strict"] = False  # hosts are strict unless told, and then refuse most schemas
        elif said != _NULL:
            value["strict"] = said
    return value | own


def render_tool_choice(request: Request, dialect: Dialect, deviations: list[Deviation]) -> Json:
    """Render the choice; None if it is the default or cannot be expressed."""
    choice = request.tool_choice
    if choice == "auto":
        return None
    if not dialect.supports_tool_choice:
        deviations.append(Deviation("dropped", "tool_choice", "this host knows no tool choice"))
        return None
    if choice == "none":
        return "none"
    if isinstance(choice, Named) and dialect.supports_named_tool_choice:
        tool = next((tool for tool in request.tools if tool.name == choice.name), None)
        if tool is None:
            return {"type": "function", "name": choice.name}
        space, own = place_of(native_fields(tool.native, NAME))
        return {"type": tool.kind, "name": own or tool.name} | ({"namespace": space} if space else {})
    if isinstance(choice, Named):
        deviations.append(Deviation("changed", "tool_choice", "any tool, not the named one"))
    return "required"
