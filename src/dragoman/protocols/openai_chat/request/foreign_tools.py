"""Chat's tools in the shared form: those that servers run, by a type of their own or by `web_search_options`."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from dragoman._json import Json
from dragoman.codec.json_fields import as_object, native_fields, read, read_fields, read_items, read_text
from dragoman.deviations import clip
from dragoman.protocol.native_tools import NativeTool, Opened, SchemaRules, ToolForms, hosted_tool, read_place
from dragoman.protocols.openai_chat.wire import NAME
from dragoman.types import Native, Request

_KINDS: Final = (("web_search", "web_search"), ("browser_search", "web_search"), ("code", "code_execution"),
                 ("file_search", "file_search"), ("retrieval", "file_search"), ("mcp", "mcp"))  # fmt: skip
_OPTIONS: Final = "web_search_options"


def open_request(request: Request) -> Opened:
    """As `ToolForms.open_request`."""
    native = dict(native_fields(request.native, NAME))
    found = [_native_tool(as_object(read(item))) for item in read_items(native.pop("tools", None)) or ()]
    options = read_fields(native.pop(_OPTIONS, None))
    if options is not None:
        location = read_fields(options.get("user_location")) or {}
        said = as_object(read(location.get("approximate")))
        if "type" in location:
            said = {"type": read(location["type"]), **said}
        place, rest = read_place(said, "user_location.approximate")
        rest += tuple([f"user_location.{clip(key)}" for key in location if key not in ("type", "approximate")])
        settings: dict[str, Json] = {"user_location": place} if place else {}
        if size := read_text(options.get("search_context_size")):
            settings["search_context_size"] = size
        unsaid = tuple(clip(key) for key in options if key not in ("user_location", "search_context_size"))
        found.append(NativeTool("web_search", _OPTIONS, _OPTIONS, settings=settings, unsaid=(*unsaid, *rest)))
    kept = Native(NAME, native) if native else None
    return Opened(msgspec.structs.replace(request, native=kept), tuple(found))


def _native_tool(entry: dict[str, Any]) -> NativeTool:
    type = str(entry.get("type") or "tool")
    kind = next((kind for start, kind in _KINDS if type.startswith(start)), "other")
    usual = ("container",) if entry.get("container") == {"type": "auto"} else ()
    return hosted_tool(entry, kind, f"tools.{clip(type)}", *usual)


FORMS: Final = ToolForms(
    re.compile(r"[A-Za-z0-9_-]+"),
    64,
    open_request=open_request,
    schema=SchemaRules(has_plain_root=None, names_members=True),
)
