"""The provider's file search and image generation, in the shared form.

Spec: https://platform.openai.com/docs/guides/tools-file-search, …/tools-image-generation (read 2026-11-25).
"""

from __future__ import annotations

from typing import Any, Final

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.hosted.file_filters import filter_text, read_filter
from dragoman.protocol.native_tools import NativeTool, Written, unsaid

_OF_SEARCH: Final = ("vector_store_ids", "max_num_results", "filters")
_RATIOS: Final = {"1024x1024": "1:1", "1536x1024": "3:2", "1024x1536": "2:3"}
_SIZES: Final = {ratio: size for size, ratio in _RATIOS.items()}
#: How the names of stores begin that are of another vendor.
_FOREIGN_STORE: Final = "fileSearchStores/"


def read_file_search(entry: dict[str, Any]) -> NativeTool:
    """Parse the entry of a file search among a request's tools."""
    settings = {"stores": entry.get("vector_store_ids"), "max_results": entry.get("max_num_results")}
    wanted = entry.get("filters")
    settings["filter"] = filter_text(wanted) if wanted else None
    return NativeTool(
        "file_search", "file_search", "tools.file_search", unsaid=unsaid(entry, *_OF_SEARCH),
        settings={name: value for name, value in settings.items() if value},
        bound="its filter has no exact words in other protocols" if wanted and not settings["filter"] else "",
    )  # fmt: skip


def read_image_generation(entry: dict[str, Any]) -> NativeTool:
    """Parse the entry of the tool that makes images."""
    size = str(entry.get("size") or "auto")
    settings: dict[str, Json] = {"aspect": _RATIOS[size]} if size in _RATIOS else {}
    said = ("size",) if settings or size == "auto" else ()
    bound = "a mask says what of an image may change" if entry.get("input_image_mask") else ""
    name = "image_generation"
    return NativeTool(name, name, f"tools.{name}", settings=settings, unsaid=unsaid(entry, *said), bound=bound)


def write_file_search(settings: dict[str, Json]) -> Written | None:
    """Render a search of stores that are not another vendor's; those do not exist here."""
    stores = settings.get("stores")
    if not isinstance(stores, list) or any(str(store).startswith(_FOREIGN_STORE) for store in stores):
        return None
    entry: dict[str, Json] = {"type": "file_search", "vector_store_ids": stores}
    if "max_results" in settings:
        entry["max_num_results"] = settings["max_results"]
    if "filter" in settings:
        entry["filters"] = read_filter(settings["filter"])
    return Written(_json.raw(entry), _json.raw({"type": "file_search"}))


def write_image_generation(settings: dict[str, Json]) -> Written:
    """Render the tool that makes images. An `aspect` other than three has no size here."""
    aspect = str(settings.get("aspect") or "")
    entry: dict[str, Json] = {"type": "image_generation"}
    if aspect in _SIZES:
        entry["size"] = _SIZES[aspect]
    lost = ("aspect",) if aspect and aspect not in _SIZES else ()
    return Written(_json.raw(entry), _json.raw({"type": "image_generation"}), lost)
