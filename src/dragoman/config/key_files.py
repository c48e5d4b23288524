"""The files that keys stand in, and which of them everybody on the machine may read."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Final

from dragoman.config.references import expand
from dragoman.config.settings import Config

_OTHERS: Final = stat.S_IROTH | stat.S_IWOTH


def key_files(config: Config, *, home: Path) -> list[Path]:
    """Return the files that the configuration names for keys, of providers, clients, administrators and MCP servers."""
    references = [*config.server.keys, *config.admin.references()]
    references += [provider.api_key or "" for provider in config.providers.values()]
    for server in config.agent.mcp.values():
        references += [*server.environ.values(), *server.headers.values()]
    folder = config.path.absolute().parent if config.path is not None else home
    names = [each.removeprefix("file:") for each in references if each.startswith("file:")]
    return list(dict.fromkeys([expand(name, home=home, folder=folder) for name in names]))


def open_key_files(config: Config, *, home: Path) -> list[str]:
    """Return one line for each file of keys that every user of the machine may read or write. Windows has no such
    mode.
    """
    lines = []
    for file in key_files(config, home=home) if sys.platform != "win32" else ():
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
        except OSError:  # that it cannot be read is said where it is read
            continue
        if mode & _OTHERS:
            lines.append(f"{file}: every user may read or change this key: expected mode 600, got {mode:o}")
    return lines
