"""Turn the arguments of a client into its configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, get_args

from dragoman.config import MOST_RETRIES, Config, ToolsMode, load_config, read_tables
from dragoman.config.in_code import CodeTables, laid_over
from dragoman.errors import ConfigError, UsageError
from dragoman.inputs.keywords import read_count, read_function, read_text, read_word, wrong
from dragoman.providers.address import base_url_fault, scheme_hint, split_url
from dragoman.types import ProtocolName

_PROTOCOLS: Final = get_args(ProtocolName)
_MODES: Final = get_args(ToolsMode)


def configured(
    config: object,
    base_url: object,
    api_key: object,
    protocol: object,
    providers: object,
    routes: object,
    strict: object,
    tools: object,
    retries: object,
    on_deviation: object,
) -> Config:
    """Return the configuration of a client.

    Raises:
        UsageError: an argument is of the wrong kind.
        ConfigError: something in the configuration is wrong.
    """
    _check_words(strict, tools, retries)
    read_function("on_deviation", on_deviation)
    code = CodeTables(
        base_url=read_text("base_url", base_url),
        api_key=read_text("api_key", api_key),
        protocol=None if protocol is None else read_word("protocol", protocol, _PROTOCOLS),
        providers=_mapping("providers", providers),
        routes=_mapping("routes", routes),
    )
    _check_together(code)
    if isinstance(config, Config):
        if code.is_given:
            raise UsageError("config: expected a path or a mapping beside what is given in code, got a Config")
        return config
    if isinstance(config, Mapping):
        tables, file = dict(config), None
    elif config is None and code.is_given:
        tables, file = {}, None
    elif config == "":
        raise UsageError("config: expected a path or a mapping, got an empty string")
    elif config is None or isinstance(config, str | Path):
        if not code.is_given:
            return load(config)
        assert config is not None
        tables, file = read_tables(config), Path(config)
    else:
        raise wrong("config", "a path or a mapping", config)
    try:
        return laid_over(tables, code, file=file, environ=os.environ, home=Path.home())
    except UsageError as problem:
        raise ConfigError(str(problem)) from None


def _check_words(strict: object, tools: object, retries: object) -> None:
    """Refuse invalid settings. Raises UsageError."""
    if strict is not None and strict != "notes" and not isinstance(strict, bool):
        raise wrong("strict", "True, False or 'notes'", strict)
    if tools is not None:
        read_word("tools", tools, _MODES)
    if retries is not None and read_count("retries", retries, least=0) > MOST_RETRIES:
        raise wrong("retries", f"0 to {MOST_RETRIES}", retries)


def _check_together(code: CodeTables) -> None:
    """Refuse arguments that exclude each other. Raises UsageError."""
    if code.base_url is not None and split_url(code.base_url) is None:
        seen = "something else (not shown)" if code.base_url.strip() else "an empty string"
        raise UsageError(f"base_url: expected http://… or https://…, got {seen}{scheme_hint(code.base_url)}")
    if fault := base_url_fault(code.base_url or "", "set providers, whose tables take a query"):
        raise UsageError(f"base_url: {fault}")
    if code.base_url is None and (code.api_key is not None or code.protocol is not None):
        name = "api_key" if code.api_key is not None else "protocol"
        raise UsageError(f"{name}: expected base_url beside it; a provider's own goes into providers")
    if code.base_url is not None and (code.providers or code.routes):
        raise UsageError("base_url: expected it alone, or providers and routes, got both")


def load(path: Path | str | None) -> Config:
    """Return the configuration at a path, or the usual one. Raises ConfigError."""
    try:
        return load_config(path, environ=os.environ, home=Path.home())
    except (OSError, ValueError) as problem:  # a path that no file can have
        raise ConfigError(f"config: expected a file that can be read: {problem}"[:200]) from None


def _mapping(name: str, value: object) -> Mapping[str, object] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise wrong(name, "a mapping of tables", value)
    for key, table in value.items():
        if not isinstance(key, str) or not isinstance(table, Mapping | list | tuple):
            kind = "a list of targets, or a table" if name == "routes" else "a table"
            raise wrong(f"{name}.{str(key)[:40]}", kind, table)
    return value
