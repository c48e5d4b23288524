"""Gemini's tools in everybody's words.

Spec: https://ai.google.dev/api/caching#Tool (read 2026-11-22). Google runs all of them but its computer's.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.json_fields import native_fields, read
from dragoman.deviations import clip
from dragoman.protocol.native_tools import NativeTool, Opened, Runner, ToolForms, Written
from dragoman.protocols.gemini.wire import NAME
from dragoman.types import Native, Request

_KINDS: Final = {
    "googleSearch": "web_search", "googleSearchRetrieval": "web_search", "enterpriseWebSearch": "web_search",
    "parallelAiSearch": "web_search", "exaAiSearch": "web_search", "urlContext": "web_fetch",
    "codeExecution": "code_execution", "fileSearch": "file_search", "retrieval": "file_search", "googleMaps": "maps",
    "mcpServers": "mcp", "computerUse": "computer",
}  # fmt: skip
_WRITTEN: Final = {"web_search": "googleSearch", "web_fetch": "urlContext", "code_execution": "codeExecution"}


def open_request(request: Request) -> Opened:
    """As `ToolForms.open_request`."""
    native = dict(native_fields(request.native, NAME))
    hosted = read(native.pop("tools", None))
    found: list[NativeTool] = []
    for entry in hosted if isinstance(hosted, list) else []:
        for key in entry if isinstance(entry, dict) else ():
            runner: Runner = "client" if key == "computerUse" else "provider"
            unsaid = tuple(entry[key]) if isinstance(entry[key], dict) else ()
            found.append(NativeTool(_KINDS.get(key, "other"), key, f"tools.{clip(key)}", runner, unsaid=unsaid))
    tools = request.tools
    config = read(native.get("toolConfig"))
    calling = config.get("functionCallingConfig") if isinstance(config, dict) else None
    allowed = calling.get("allowedFunctionNames") if isinstance(calling, dict) else None
    if isinstance(config, dict) and isinstance(calling, dict) and isinstance(allowed, list) and allowed:
        tools = tuple([tool for tool in tools if tool.name in allowed])
        del calling["allowedFunctionNames"]  # the list of tools says it
        config["functionCallingConfig"] = calling
        native["toolConfig"] = _json.raw({key: value for key, value in config.items() if value})
    kept = Native(NAME, native) if native else None
    return Opened(msgspec.structs.replace(request, tools=tools, native=kept), tuple(found))


def write_tool(tool: NativeTool) -> Written | None:
    """A tool that the provider runs, as this protocol says it."""
    if tool.kind not in _WRITTEN:
        return None
    entry: dict[str, Json] = {_WRITTEN[tool.kind]: {}}
    return Written(_json.raw(entry), None, tuple(tool.settings))


FORMS: Final = ToolForms(re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*"), 64, open_request=open_request, write_tool=write_tool)
