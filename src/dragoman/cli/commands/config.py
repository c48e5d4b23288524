"""Show, check or write the configuration, dragoman.toml. Secrets are masked.

path    where it is read from, whether it exists or not
check   read it and name what is wrong
show    the settings in force, as TOML
init    write a first one; an existing one is left alone
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman import _json
from dragoman.agent.safe_text import counted
from dragoman.cli.body_input import write_json
from dragoman.cli.main import DONE, complain
from dragoman.cli.settings import add_config, load_settings, settings_file
from dragoman.cli.terminal import say
from dragoman.config import Config, key_variable
from dragoman.secret import MASK, Secret

EXAMPLE = "  dragoman config show"

_FIRST: Final = """\
# dragoman's settings. Everything is optional; `dragoman config show` prints what is in force.
# Keys stand here by reference only: "env:NAME" or "file:PATH". Without one, a provider's usual variable is read.

# [providers.ollama]
# base_url = "http://127.0.0.1:11434"

# [providers.lab]                     # any other server
# protocol = "openai-chat"
# base_url = "http://10.0.0.5:8000/v1"
# api_key = "env:LAB_KEY"

# [models."ollama/granite4"]          # what differs for one model
# options = { temperature = 0.3 }

# [prices."lab/my-model"]             # US dollars per million tokens
# input = 0.5
# output = 1.5

# [http]
# proxy = "env:HTTPS_PROXY"           # off unless named
# ca_file = "/etc/ssl/certs/lab.pem"  # further authorities
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("action", choices=list(_ACTIONS), metavar="|".join(_ACTIONS), help="what to do")
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="the configuration, as --config")
    parser.add_argument("--json", action="store_true", help="show: print JSON")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Run the action."""
    options.config = options.config or options.file
    return _ACTIONS[options.action](options)


def print_path(options: argparse.Namespace) -> int:
    """Run `config path`."""
    say(f"{settings_file(options)}\n")
    return DONE


def check(options: argparse.Namespace) -> int:
    """Run `config check`. The exit status is 1 if something is wrong, such as a key that cannot be read."""
    config = load_settings(options)
    if config.unread_keys:
        return complain(f"{config.path}: {'; '.join(config.unread_keys.values())}")
    counts = ", ".join(
        counted(len(getattr(config, f"{name}s")), name) for name in ("provider", "route", "model", "price")
    )
    say(
        f"{config.path}: good ({counts})\n"
        if config.path
        else f"{settings_file(options)}: there is none, the defaults hold\n"
    )
    return DONE


def show(options: argparse.Namespace) -> int:
    """Run `config show`."""
    config = load_settings(options)
    shown = settings_object(config, os.environ)
    if options.json:
        write_json({"path": None if config.path is None else str(config.path), **shown})
    else:
        say(f"# {config.path or 'no file is read; these are the defaults'}\n{render_toml(shown)}")
    return DONE


def init(options: argparse.Namespace) -> int:
    """Run `config init`. Only its owner can read the file."""
    path = settings_file(options)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return complain(f"{path} exists; it is left as it is")
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(_FIRST)
    say(f"{path}\n")
    return DONE


_ACTIONS: Final = {"path": print_path, "check": check, "show": show, "init": init}


def settings_object(config: Config, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings in force as plain values: providers that are configured or have a key, secrets masked."""
    providers = {}
    for name, provider in config.catalog.providers.items():
        mine = config.providers.get(name)
        if mine is None and name not in config.keys:
            continue
        table = dict(mine.table) if mine is not None else {}
        for secretive in ("headers", "query"):
            if isinstance(table.get(secretive), dict):
                table[secretive] = dict.fromkeys(table[secretive], MASK)
        reference = mine.api_key if mine is not None else None
        variable = key_variable(provider, environ)
        key = reference or (f"env:{variable}" if variable else None)
        state = {"key_found": name in config.keys} if key else {}
        providers[name] = {"protocol": provider.protocol, "base_url": provider.base_url, **table, **state}
        if key:
            providers[name]["api_key"] = key
        if mine is not None and mine.clean is not None:
            providers[name]["clean"] = mine.clean
    shown = {"providers": providers}
    for section in ("server", "routes", "models", "validate", "http", "prices"):
        shown[section] = _plain(getattr(config, section))
    return shown


def _plain(value: Any) -> Any:
    """Return structs as tables, without unset fields."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items() if inner not in (None, (), {})}
    if isinstance(value, tuple | list):
        return [_plain(inner) for inner in value]
    if isinstance(value, Secret):
        return MASK
    return float(value) if isinstance(value, Decimal) else str(value) if isinstance(value, Path) else value


def render_toml(tables: Mapping[str, Any]) -> str:
    """Render tables of tables as TOML; deeper values stand inline. Empty tables are left out."""
    lines: list[str] = []
    for section, table in tables.items():
        has_one_level = section in ("server", "validate", "http")
        inner = {(section,): table} if has_one_level else {(section, name): value for name, value in table.items()}
        for path, values in inner.items():
            if values:
                lines += [
                    f"[{'.'.join(map(_key, path))}]",
                    *(f"{_key(key)} = {_value(values[key])}" for key in values),
                    "",
                ]
    return "\n".join(lines)


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("-", "_").replace("_", "a").isalnum()
    return name if is_bare else _json.to_text(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(inner)}' for key, inner in value.items())} }}" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return _json.to_text(value)
