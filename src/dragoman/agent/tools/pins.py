"""Pins: the user's approvals of MCP tools, each with the tool's description at that time.

A server can describe a tool in one way until it is approved and in another one afterwards, and the model obeys the
description. So the first approved call of a tool pins its whole definition. A tool that differs from its pin is not
offered until the user has seen the difference and approved it.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman.agent.session.folder import make_store
from dragoman.errors import DragomanError

#: How a tool stands to its pin: there is none, it is the same, it differs.
Health: TypeAlias = Literal["new", "same", "changed"]

_FILE_LIMIT: Final = 16 * 1024**2  # bytes


class PinsError(DragomanError):
    """The file of pins cannot be read, so no tool can be judged."""


@final
class Pin(msgspec.Struct, frozen=True):
    """A tool as it was approved: the digest of its definition, and the definition to show later differences."""

    digest: str
    definition: str


@final
class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: by server (`origin_of`), by the tool's own name."""

    version: Literal[1]
    servers: dict[str, dict[str, Pin]]


_parse_file: Final = _json.typed_decoder(_File)


def origin_of(name: str, command: tuple[str, ...], url: str | None) -> str:
    """Return what distinguishes a server of the user's file: pins of one do not apply to a different program."""
    return f"{name} {hashlib.sha256(_json.encode([*command, url])).hexdigest()[:32]}"


def definition_of(said: Mapping[str, Any]) -> str:
    """Return all that a server says about a tool, as text whose lines can be compared; equal for equal definitions."""
    return _json.indented(said)


@final
class Pins:
    """The pins of this user. The file is read each time, so concurrent sessions see each other's pins."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def standing(self, origin: str, tool: str, definition: str) -> Health:
        """Return whether the tool is as it was approved.

        Raises:
            PinsError: the file is damaged.
        """
        pin = self._read().get(origin, {}).get(tool)
        if pin is None:
            return "new"
        return "same" if pin.digest == _digest(definition) else "changed"

    def difference(self, origin: str, tool: str, definition: str) -> str:
        """Return a diff from what was approved to what the server says now."""
        pin = self._read().get(origin, {}).get(tool)
        before = pin.definition.split("\n") if pin is not None else []
        lines = difflib.unified_diff(before, definition.split("\n"), "as you approved it", "as it is now", lineterm="")
        return "\n".join(lines)

    def keep(self, origin: str, tool: str, definition: str) -> None:
        """Pin the definition that the user approved."""
        servers = self._read()
        pins = servers.setdefault(origin, {})
        pin = Pin(_digest(definition), definition)
        if pins.get(tool) == pin:
            return
        pins[tool] = pin
        make_store(self._path.parent)
        temporary = self._path.with_name(f".{self._path.name}.{secrets.token_hex(6)}")
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(_json.encode(_File(1, servers)))
                file.flush()
                os.fsync(handle)
            temporary.replace(self._path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()

    def _read(self) -> dict[str, dict[str, Pin]]:
        try:
            with self._path.open("rb") as file:
                content = file.read(_FILE_LIMIT + 1)
        except FileNotFoundError:
            return {}
        except OSError as problem:
            raise PinsError(f"{self._path} cannot be read: {problem.strerror}") from None
        found = _parse_file(content) if len(content) <= _FILE_LIMIT else None
        if not isinstance(found, _File):
            raise PinsError(
                f"{self._path}, which holds what you approved of MCP servers, is damaged; remove it,"
                " and each of their tools is new to you"
            )
        return found.servers


def _digest(definition: str) -> str:
    return hashlib.sha256(definition.encode("utf-8", "surrogatepass")).hexdigest()
