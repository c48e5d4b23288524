"""The banner of `dragoman serve` on a terminal: addresses, models, the lines for a client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

import msgspec

from dragoman.cli.presets import load_tables, shown_key
from dragoman.cli.terminal import Paint, clip, first_of
from dragoman.config import Config
from dragoman.types import ProtocolName

_SHOWN: Final = 6
_WIDTH: Final = 70  # characters of a list of models


@final
class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One table of `base_urls.toml`, where the fields are explained."""

    title: str
    address: str
    path: str = ""
    key: str = ""


def render_banner(
    url: str, protocols: Sequence[ProtocolName], config: Config, models: Sequence[str], paint: Paint
) -> str:
    """Render base URLs with the variables that point a vendor's clients there, the models, and what comes next.

    Args:
        models: targets that were found.
    """
    rows = dict.fromkeys(row for name, row in load_tables("base_urls.toml", Row).items() if name in protocols)
    key = shown_key(config)
    lines = ["", paint("bold", "point a client here")]
    for row in rows:
        lines.append(f"  {row.title:<11}export {row.address}={url}{row.path}")
        if row.key:
            lines.append(f"  {'':<11}export {row.key}={key}")
    lines.append("  others     dragoman env CLIENT  (dragoman apps lists them: Claude Code, Zed …)")
    names, more = first_of(_names(config, models), _SHOWN)
    if names:
        lines += ["", f"{paint('bold', 'models')}  {clip(names, _WIDTH)}{more}"]
    lines += ["", paint("dim", "requests are shown below as they come; Ctrl-C ends the gateway"), ""]
    return "\n".join(lines) + "\n"


def _names(config: Config, models: Sequence[str]) -> list[str]:
    """Return the names that clients may ask for."""
    return [*("any name" if name == "*" else name for name in config.routes), *models]
