"""List the clients that dragoman knows how to point at the gateway, and the port that each looks at by default."""

from __future__ import annotations

import argparse

from dragoman.cli.body_input import write_json
from dragoman.cli.main import DONE
from dragoman.cli.presets import load_presets
from dragoman.cli.terminal import render_table, say

EXAMPLE = "  dragoman apps"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--json", action="store_true", help="print one JSON object a client and line")


def run(options: argparse.Namespace) -> int:
    """List them."""
    presets = load_presets()
    if options.json:
        for name, preset in presets.items():
            row = {"name": name, "title": preset.title, "speaks": list(preset.speaks), "port": preset.port}
            write_json(row)
        return DONE
    rows = [("NAME", "CLIENT", "SPEAKS", "PORT")]
    rows += [(name, preset.title, ", ".join(preset.speaks), str(preset.port or "")) for name, preset in presets.items()]
    say(render_table(rows))
    return DONE
