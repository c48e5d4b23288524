"""Gemini's tools in the shared form.

Spec: https://ai.google.dev/api/caching#Tool (read 2026-11-22). Google runs all of them except computer use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.hosted.earlier_calls import with_images
from dragoman.codec.hosted.file_filters import read_filter
from dragoman.codec.json_fields import as_object, native_fields, read
from dragoman.deviations import clip
from dragoman.events import Deviation
from dragoman.protocol.native_tools import NativeTool, Opened, RemoteServer, Runner, SchemaRules, ToolForms, Written
from dragoman.protocols.gemini.wire import NAME
from dragoman.types import Native, Request, Tool

_KINDS: Final = {
    "googleSearch": "web_search", "googleSearchRetrieval": "web_search", "enterpriseWebSearch": "web_search",
    "parallelAiSearch": "web_search", "exaAiSearch": "web_search", "urlContext": "web_fetch",
    "codeExecution": "code_execution", "fileSearch": "file_search", "retrieval": "file_search", "googleMaps": "maps",
    "mcpServers": "mcp", "computerUse": "computer",
}  # fmt: skip
_IMAGES: Final = "responseModalities"
#: Of a picture's width to its height: those that other protocols' tools know.
_RATIOS: Final = ("1:1", "3:2", "2:3")
#: How the name of a store begins.
_STORE: Final = "fileSearchStores/"
_WRITTEN: Final = {"web_search": "googleSearch", "web_fetch": "urlContext", "code_execution": "codeExecution"}


def open_request(request: Request) -> Opened:
    """As `ToolForms.open_request`."""
    native = dict(native_fields(request.native, NAME))
    hosted = read(native.pop("tools", None))
    found: list[NativeTool] = []
    for entry in hosted if isinstance(hosted, list) else []:
        for key in entry if isinstance(entry, dict) else ():
            if key == "mcpServers":
                found += _read_servers(entry[key])
                continue
            if key == "fileSearch":
                found.append(_read_file_search(as_object(entry[key])))
                continue
            runner: Runner = "client" if key == "computerUse" else "provider"
            said = {} if entry[key] is None else entry[key]
            kind, where = _KINDS.get(key, "other"), f"tools.{clip(key)}"
            if isinstance(said, dict):
                found.append(NativeTool(kind, key, where, runner, unsaid=tuple(said)))
            else:
                found.append(NativeTool(kind, key, where, runner, bound="its settings, which are no object"))
    images, forced = _take_images(native)
    found += images
    tools = request.tools
    deviations: list[Deviation] = []
    config, calling = _calling(native)
    if calling.get("allowedFunctionNames"):
        tools = allowed_tools(request)
        del calling["allowedFunctionNames"]  # the list of tools says it
        where = "toolConfig.functionCallingConfig.allowedFunctionNames"
        count = f"{len(tools)} of {len(request.tools)} tools are offered"
        deviations.append(Deviation("changed", where, count, "note"))
        config["functionCallingConfig"] = calling
        native["toolConfig"] = _json.raw({key: value for key, value in config.items() if value})
    kept = Native(NAME, native) if native else None
    return Opened(
        msgspec.structs.replace(request, tools=tools, native=kept), tuple(found), forced, deviations=tuple(deviations)
    )


def allowed_tools(request: Request) -> tuple[Tool, ...]:
    """Return the tools that a request lets be called."""
    _, calling = _calling(native_fields(request.native, NAME))
    names = calling.get("allowedFunctionNames")
    names = [names] if isinstance(names, str) else names
    return tuple([tool for tool in request.tools if tool.name in names]) if names else request.tools


def _calling(native: Mapping[str, Raw]) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return the configuration of tools, and what it says of calls."""
    config = as_object(read(native.get("toolConfig")))
    return config, as_object(config.get("functionCallingConfig"))


def _take_images(native: dict[str, Raw]) -> tuple[list[NativeTool], str]:
    """Remove images as a response modality from the native fields.

    Return the tool that makes them, and its name if the answer may contain nothing else. The image's form is kept if
    tools know it.
    """
    config = as_object(read(native.get("generationConfig")))
    kinds = config.get("responseModalities")
    if not isinstance(kinds, list) or "IMAGE" not in kinds or not all(kind in ("TEXT", "IMAGE") for kind in kinds):
        return [], ""
    del config["responseModalities"]
    form = as_object(config.get("imageConfig"))
    settings: dict[str, Json] = {}
    if form.get("aspectRatio") in _RATIOS:
        settings["aspect"] = form.pop("aspectRatio")
        config["imageConfig"] = form
    native["generationConfig"] = _json.raw({key: value for key, value in config.items() if value != {}})
    tool = NativeTool("image_generation", _IMAGES, f"generationConfig.{_IMAGES}", settings=settings)
    return [tool], "" if "TEXT" in kinds else _IMAGES


def _read_servers(servers: Json) -> list[NativeTool]:
    """Return MCP servers that the provider calls."""
    found: list[NativeTool] = []
    for entry in servers if isinstance(servers, list) else []:
        given = as_object(entry)
        said = as_object(given.get("streamableHttpTransport"))
        texts = {key: value for key, value in as_object(said.get("headers")).items() if isinstance(value, str)}
        url, name = said.get("url"), given.get("name")
        server = RemoteServer(str(name or ""), str(url or ""), "", texts).with_token()
        unsaid = [f"streamableHttpTransport.{clip(key)}" for key in said if key not in ("url", "headers")]
        unsaid += [clip(key) for key in given if key not in ("name", "streamableHttpTransport")]
        bound = "" if url and name else "it has no name and address of a server"
        where = "tools.mcpServers"
        found.append(NativeTool("mcp", "mcpServers", where, unsaid=tuple(unsaid), server=server, bound=bound))
    return found


def _read_file_search(said: dict[str, Json]) -> NativeTool:
    settings = {"stores": said.get("fileSearchStoreNames"), "max_results": said.get("topK")}
    unsaid = tuple(clip(key) for key in said if key not in ("fileSearchStoreNames", "topK", "metadataFilter"))
    wanted = said.get("metadataFilter")
    settings["filter"] = wanted if read_filter(wanted) is not None else None
    return NativeTool(
        "file_search", "fileSearch", "tools.fileSearch", unsaid=unsaid,
        settings={name: value for name, value in settings.items() if value},
        bound="its filter has no exact words in other protocols" if wanted and not settings["filter"] else "",
    )  # fmt: skip


def _write_file_search(settings: dict[str, Json]) -> Written | None:
    """Render a search of Google's stores; others do not exist there."""
    stores = settings.get("stores")
    if not isinstance(stores, list) or not all(str(store).startswith(_STORE) for store in stores):
        return None
    said: dict[str, Json] = {"fileSearchStoreNames": stores}
    if "max_results" in settings:
        said["topK"] = settings["max_results"]
    if "filter" in settings:
        said["metadataFilter"] = settings["filter"]
    return Written(_json.raw({"fileSearch": said}))


def _write_server(server: RemoteServer) -> Written | None:
    if server.allowed is not None:
        return None
    headers: dict[str, Json] = dict(server.headers)
    if server.token:
        headers["Authorization"] = f"Bearer {server.token}"
    transport: dict[str, Json] = {"url": server.url} | ({"headers": headers} if headers else {})
    entry: Json = {"mcpServers": [{"name": server.name, "streamableHttpTransport": transport}]}
    return Written(_json.raw(entry))


def write_tool(tool: NativeTool) -> Written | None:
    """Render a tool that the provider runs. A server's tools cannot be restricted here."""
    if tool.server is not None:
        return _write_server(tool.server)
    if tool.kind == "file_search":
        return _write_file_search(tool.settings)
    if tool.kind == "image_generation":
        config: dict[str, Json] = {"responseModalities": ["TEXT", "IMAGE"]}
        if "aspect" in tool.settings:
            config["imageConfig"] = {"aspectRatio": tool.settings["aspect"]}
        return Written(None, None, (), {"generationConfig": config})
    if tool.kind not in _WRITTEN:
        return None
    entry: dict[str, Json] = {_WRITTEN[tool.kind]: {}}
    return Written(_json.raw(entry), None, tuple(tool.settings))


def restate(request: Request) -> tuple[Request, list[Deviation]]:
    """As `ToolForms.restate`."""
    return with_images(request, NAME)


FORMS: Final = ToolForms(
    re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*"),
    64,
    open_request=open_request,
    allowed=allowed_tools,
    write_tool=write_tool,
    restate=restate,
    schema=SchemaRules(references="defs"),
)
