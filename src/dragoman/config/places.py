"""The folders of the configuration and of dragoman's data."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FILE_NAME: Final = "dragoman.toml"


def default_path(*, environ: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    """Return where the configuration is looked for by default. It is never relative, so never in the current folder."""
    named = environ.get("APPDATA" if platform == "win32" else "XDG_CONFIG_HOME", "")
    if Path(named).is_absolute():
        folder = Path(named)
    elif platform == "win32":
        folder = home / "AppData" / "Roaming"
    else:
        folder = home / "Library" / "Application Support" if platform == "darwin" else home / ".config"
    return folder.absolute() / "dragoman" / FILE_NAME


def data_folder(*, environ: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    """Return the folder of data such as the results of validation."""
    named = environ.get("LOCALAPPDATA" if platform == "win32" else "XDG_DATA_HOME", "")
    if Path(named).is_absolute():
        folder = Path(named)
    elif platform == "win32":
        folder = home / "AppData" / "Local"
    else:
        folder = home / "Library" / "Application Support" if platform == "darwin" else home / ".local" / "share"
    return folder.absolute() / "dragoman"


def state_folder(*, environ: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    """Return the folder of gateway data that outlives a request."""
    if platform in ("win32", "darwin"):
        return data_folder(environ=environ, home=home, platform=platform)
    named = Path(environ.get("XDG_STATE_HOME", ""))
    return (named if named.is_absolute() else home / ".local" / "state").absolute() / "dragoman"
