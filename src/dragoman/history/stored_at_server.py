"""Tell whether a request goes on with what only its server stores."""

from __future__ import annotations

from typing import Final

from dragoman.codec.json_fields import read_fields, read_text
from dragoman.types import Native

#: Fields that name it with a text, and with an object that has one of the ids: a text in `prompt` is an older API's.
_BY_TEXT: Final = ("previous_response_id", "conversation", "cachedContent")
_BY_ID: Final = ("conversation", "prompt", "thread")
_IDS: Final = ("id", "previous_message_id")
#: Those that hosts other than the vendor's pass over without a word.
PASSED_OVER: Final = frozenset({"thread.previous_message_id"})


def stored_at_server(native: Native | None) -> str:
    """Return the path of what names it in a request, "" if nothing does."""
    if native is None:
        return ""
    for name in _BY_TEXT:
        if read_text(native.fields.get(name)):
            return name
    for name in _BY_ID:
        inner = read_fields(native.fields.get(name)) or {}
        for id in _IDS:
            if read_text(inner.get(id)):
                return f"{name}.{id}"
    return ""
