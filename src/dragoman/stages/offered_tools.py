"""The tools that parsers of calls know: those that were offered and, where a call to another one is read, any."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

import msgspec

from dragoman._json import Json
from dragoman.secret import name_alone
from dragoman.stages.argument_repair.repairer import read_object
from dragoman.stages.json_schema import Judge, Shape, ToolSchema
from dragoman.stages.known_schemas import schema_of
from dragoman.stages.schema_words import describes
from dragoman.stages.tool_names import clean_name
from dragoman.types import Tool

#: The name of a tool that was not offered.
_NAME: Final = re.compile(r"[^\W\d][\w.:/$@-]{0,127}")
#: The same at the beginning of a message, where a word of many languages would be one, perhaps with a blank behind it.
_FIRST_NAME: Final = re.compile(r"[A-Za-z_][\w.:/$@-]{0,127} ?", re.ASCII)
#: What `read_object` returns.
Read: TypeAlias = tuple[dict[str, Json] | None, bool]
#: Arguments that are remembered have at most so many characters.
_SHORT: Final = 2048
#: What its arguments may be.
_ANYTHING: Final = ToolSchema({})


class Tools(msgspec.Struct, eq=False):
    """The tools of one response, for parsers.

    Attributes:
        reads_others: calls to other tools are read too, with the same reader, so that what their values hold is none.
        lacks_one: a call to another tool was not read.
    """

    _tools: Sequence[Tool]
    _schemas: dict[str, ToolSchema] = {}
    _by_name: dict[str, Tool] | None = None  # most answers hold no call in their text
    reads_others: bool = False
    lacks_one: bool = False
    _last: list[tuple[str, str, Read]] = []  # the arguments that were read last: several ask for those of a call

    __repr__ = name_alone

    def for_candidate(self, *, reads_others: bool) -> Tools:
        """Return the same tools for the families that read one candidate."""
        return Tools(self._tools, self._schemas, self._functions(), reads_others, _last=self._last)

    def _functions(self) -> dict[str, Tool]:
        if self._by_name is None:
            self._by_name = {tool.name: tool for tool in self._tools if tool.kind == "function"}
        return self._by_name

    def names(self) -> Collection[str]:
        """Return the names of the offered tools."""
        return self._functions()

    def offered(self, name: str) -> str | None:
        """Return the offered tool that a name means after cleaning, or None."""
        return clean_name(name, self._functions())

    def called(self, name: str) -> str | None:
        """Return the tool that the name of a call means: an offered one, or another one if such calls are read."""
        offered = self.offered(name)
        if offered is not None or _NAME.fullmatch(name) is None:
            return offered
        self.lacks_one = self.lacks_one or not self.reads_others
        return name if self.reads_others else None

    def names_at(self, message: str) -> tuple[str, ...]:
        """Return the offered tools with whose name a message begins, or may begin when more of it has come."""
        return tuple([name for name in self._functions() if message.startswith(name) or name.startswith(message)])

    def first_name(self, message: str) -> str:
        """Return the name with which a message begins, or ""."""
        found = _FIRST_NAME.match(message)
        return found.group() if found is not None else ""

    def has(self, name: str) -> bool:
        """Return whether a tool of this very name was offered."""
        return name in self._functions()

    def schema(self, name: str) -> ToolSchema:
        """Return the schema of a tool; another one takes anything."""
        schema = self._schemas.get(name)
        if schema is None:
            tool = self._functions().get(name)
            if tool is None:
                return _ANYTHING
            schema = self._schemas[name] = schema_of(tool)
        return schema

    def shape(self, name: str, key: str) -> Shape:
        """Return the shape of one argument of a tool."""
        return self.schema(name).argument(key)

    def fits(self, name: str, arguments: str) -> bool:
        """Return whether argument text, repaired and coerced, fits the tool's schema, and gives values."""
        schema = self.schema(name)
        value = self.read(name, arguments)
        judge = Judge(schema, len(arguments))
        return value is not None and judge.fits(value, schema.root().schema) and not describes(value, schema)

    def read(self, name: str, arguments: str) -> dict[str, Json] | None:
        """Return argument text of a tool, repaired and coerced, or None if it is no object."""
        return self.read_object(name, arguments)[0]

    def read_object(self, name: str, arguments: str) -> Read:
        """Return the same, and whether a comma was missing in it."""
        if self._last and self._last[0][:2] == (name, arguments):
            return self._last[0][2]
        read = read_object(self.schema(name), arguments)
        self._last[:] = [(name, arguments, read)] if len(arguments) <= _SHORT else []
        return read
