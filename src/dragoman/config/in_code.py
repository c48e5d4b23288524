"""A configuration from tables in code. Keys may be written out there; in a file they may not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

import msgspec

from dragoman._json import has_whole_characters
from dragoman.config.reading import read_document, read_table
from dragoman.config.settings import Config
from dragoman.errors import ConfigError
from dragoman.misuse import kind_of
from dragoman.providers.address import split_url
from dragoman.secret import Secret
from dragoman.types import DEFAULT_PROTOCOL

_REFERENCES: Final = ("env:", "file:")


@final
class CodeTables(msgspec.Struct, frozen=True, kw_only=True):
    """Tables given in code beside a file or a mapping. They may contain keys: `repr` shows none."""

    base_url: str | None = None
    api_key: str | None = None
    protocol: str | None = None
    providers: Mapping[str, Any] | None = None
    routes: Mapping[str, Any] | None = None

    @property
    def is_given(self) -> bool:
        """Return whether there are any."""
        return any(value is not None for value in (self.base_url, self.providers, self.routes))

    def __repr__(self) -> str:
        return "CodeTables(…)"


def laid_over(
    tables: Mapping[str, Any], code: CodeTables, *, file: Path | None, environ: Mapping[str, str], home: Path
) -> Config:
    """Return the configuration of these tables, overridden by what is given in code.

    Args:
        file: the file of the tables; None: they come from code too.

    Raises:
        ConfigError, UsageError: something in them is wrong: the path of the key, what was expected.
    """
    document = {name: dict(table) if isinstance(table, Mapping) else table for name, table in tables.items()}
    keys: dict[str, str] = {}
    if file is None:
        document["providers"] = _without_keys(document.get("providers"), keys)
    if code.providers is not None:
        given = _without_keys(code.providers, keys)
        document["providers"] = {**read_table(document, "providers"), **given}
    if code.routes is not None:
        routes = {
            name: {"targets": list(route)} if isinstance(route, list | tuple) else route
            for name, route in code.routes.items()
        }
        document["routes"] = {**read_table(document, "routes"), **routes}
    only = ""
    if code.base_url is not None:
        found = split_url(code.base_url)
        only = found[0].netloc.rpartition("@")[2] if found is not None else "server"
        table = {"base_url": code.base_url, "protocol": code.protocol or DEFAULT_PROTOCOL}
        document["providers"] = {**read_table(document, "providers"), only: table}
        if code.api_key is not None:
            keys[only] = code.api_key
    config = read_document(plain_tables(document), file=file, environ=environ, home=home)
    plain_tables({name: {"api_key": key} for name, key in keys.items()}, "providers")
    secrets = {name: Secret(key) for name, key in keys.items() if key}
    return msgspec.structs.replace(config, keys={**config.keys, **secrets}, only_provider=only)


def _without_keys(providers: object, keys: dict[str, str]) -> dict[str, Any]:
    """Return tables of providers without the keys that are written out in them. Move those into `keys`."""
    if providers is None:
        return {}
    if not isinstance(providers, Mapping):
        raise ConfigError(f"providers: expected a table, got {type(providers).__name__}")
    out: dict[str, Any] = {}
    for name, table in providers.items():
        if isinstance(table, Mapping):
            key = table.get("api_key")
            if isinstance(key, str) and not key.startswith(_REFERENCES):
                keys[name] = key
                table = {field: value for field, value in table.items() if field != "api_key"}
        out[name] = table
    return out


def plain_tables(value: Any, where: str = "", depth: int = 0) -> Any:
    """Return tables as a file's reader does: dicts, lists and plain values.

    Raises:
        ConfigError: no file can hold one of them; says which.
    """
    if depth > 32:
        raise ConfigError(f"{where}: expected tables that are nested less deeply")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or not has_whole_characters(key):
                raise ConfigError(f"{where or 'config'}: expected texts in UTF-8 as keys, got {kind_of(key)}")
        return {
            str.__str__(key): plain_tables(inner, f"{where}.{key[:80]}" if where else key[:80], depth + 1)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain_tables(inner, f"{where}[{place}]", depth + 1) for place, inner in enumerate(value)]
    if isinstance(value, str | Path) and not has_whole_characters(str(value)):
        raise ConfigError(f"{where}: expected a text in UTF-8")
    return str(value) if isinstance(value, Path) else str.__str__(value) if isinstance(value, str) else value
