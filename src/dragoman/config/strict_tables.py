"""Convert tables of the configuration to Structs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import NODEFAULT

from dragoman.config.agent import McpServer
from dragoman.errors import ConfigError
from dragoman.providers.address import scheme_hint, split_url
from dragoman.providers.catalog import nearest
from dragoman.providers.wrong_tables import dotted, listed, wrong_value

T = TypeVar("T", bound=msgspec.Struct)


def as_struct(table: Mapping[str, Any], kind: type[T], where: str) -> T:
    """Return a table as a Struct. Wrong keys and types are named by their path."""
    names, defaults = kind.__struct_fields__, kind.__struct_defaults__
    refuse_unknown(table, names, where)
    defaults_of = dict(zip(reversed(names), reversed(defaults), strict=False))
    missing = [name for name in names if defaults_of.get(name, NODEFAULT) is NODEFAULT and name not in table]
    if missing:
        raise ConfigError(f"{where}.{missing[0]}: missing")
    read: Callable[[Mapping[str, Any]], T] = partial(msgspec.convert, type=kind, dec_hook=_path)
    try:
        return read(table)
    except msgspec.ValidationError as problem:
        raise wrong_value(problem, kind, where, table, read) from None


def _path(kind: type, value: object) -> object:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise ValueError(f"Expected `str`, got `{type(value).__name__}`")


def refuse_unknown(table: Mapping[str, Any], known: list[str] | tuple[str, ...], where: str) -> None:
    """Refuse an unknown key. Raises ConfigError, which names the nearest key, or the known ones."""
    for key in table:
        if key not in known:
            path = f"{where}.{dotted(key)}" if where else dotted(key)
            raise ConfigError(f"{path}: unknown key{nearest(key, known) or listed(known)}")


def read_mcp_server(table: Mapping[str, Any], where: str) -> McpServer:
    """Return the MCP server of a table.

    Raises:
        ConfigError: the table does not fit; it names the path of the key and what was expected.
    """
    if isinstance(table.get("command"), str):
        raise ConfigError(f'{where}.command: expected a list, as ["python", "server.py"], got a string')
    server = as_struct(table, McpServer, where)
    check_mcp_server(server, where)
    return server


def check_mcp_server(server: McpServer, where: str) -> None:
    """Refuse a server with neither or both of `command` and `url`. Raises ConfigError."""
    if bool(server.command) == (server.url is not None):
        raise ConfigError(f"{where}: expected either command or url")
    if server.url is not None and split_url(server.url) is None:
        raise ConfigError(
            f"{where}.url: expected http://… or https://…, got something else (not shown){scheme_hint(server.url)}"
        )
