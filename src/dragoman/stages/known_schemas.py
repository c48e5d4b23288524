"""A cache of tool schemas: clients offer the same tools with every request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from dragoman import _json
from dragoman.protocol import TakesNothing
from dragoman.stages.json_schema import ToolSchema
from dragoman.stages.schema_validator import MOST_OBJECTS
from dragoman.types import Tool

#: Bytes that all of them may take, as they are guessed from their texts.
_MOST_BYTES: Final = 32 * 1024 * 1024
#: Bytes that a value takes in memory, and an object's type of the JSON reader.
_VALUE_BYTES: Final = 64
_TYPE_BYTES: Final = 4_500
_NO_ARGUMENTS: Final[dict[str, _json.Json]] = {"type": "object", "properties": {}}


class KnownSchemas:
    """The schemas used last, within a bound of memory, because clients choose the size of each. Threads may share it: a
    race costs a second look at most.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._schemas: OrderedDict[bytes, tuple[ToolSchema, int]] = OrderedDict()
        self._most_bytes = most_bytes

    def get(self, text: bytes) -> ToolSchema:
        """Return the schema of a text. One that alone exceeds the bound is parsed each time."""
        known = self._schemas.pop(text, None)
        if known is None:
            value = _json.decode(text)
            known = ToolSchema(value if isinstance(value, dict) else _NO_ARGUMENTS), _bytes_of(text)
            if known[1] > self._most_bytes:
                return known[0]
            self._make_room(known[1])
        self._schemas[text] = known
        return known[0]

    @property
    def size(self) -> int:
        """The bytes of the cached schemas."""
        return sum([size for _, size in list(self._schemas.values())])

    def _make_room(self, size: int) -> None:
        excess = self.size + size - self._most_bytes
        while excess > 0 and self._schemas:
            excess -= self._schemas.popitem(last=False)[1][1]


def _bytes_of(text: bytes) -> int:
    braces = text.count(b"{")
    values = braces + text.count(b",") + text.count(b":") + text.count(b"[")
    return len(text) + _VALUE_BYTES * values + _TYPE_BYTES * min(braces, MOST_OBJECTS)


_KNOWN: Final = KnownSchemas()


def schema_of(tool: Tool) -> ToolSchema:
    """Return the schema of a tool. One response calls this once per tool, because it may be too large for the cache."""
    return _KNOWN.get(bytes(tool.schema) if tool.schema is not None else b"")


def nothing_fits(tools: Sequence[Tool]) -> TakesNothing:
    """Return a function that tells whether `{}` are valid arguments of a tool, by name."""
    by_name = {tool.name: tool for tool in tools}

    def takes_nothing(name: str) -> bool:
        tool = by_name.get(name)
        return tool is None or tool.schema is None or schema_of(tool).takes_as_is("{}")

    return takes_nothing
