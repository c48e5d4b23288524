"""What was spent, from the gateway's ledger: summed by key, owner, team, route, target, day, month or state.

Attempts whose cost nobody knows are counted as unpriced, never as 0.
"""

from __future__ import annotations

import argparse
from typing import Final

from dragoman.cli.body_input import write_json
from dragoman.cli.ledger_input import ledger_errors, ledger_folder, read_since
from dragoman.cli.main import DONE
from dragoman.cli.settings import add_config
from dragoman.cli.terminal import hint, say
from dragoman.errors import UsageError
from dragoman.ledger.reports.usage import GROUPINGS, Used, read_usage
from dragoman.money import render_usd

EXAMPLE = "  dragoman spend --by team,target --since 7d"

_FIGURES: Final = ("attempts", "unpriced", "input", "output")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_config(parser)
    groups = f"what to sum by: {', '.join(GROUPINGS)} (default: target)"
    parser.add_argument("--by", default="target", metavar="A,B", help=groups)
    parser.add_argument("--since", metavar="7d|DATE", help="only from then on, as 12h, 7d or 2026-11-01 (UTC)")
    parser.add_argument("--json", action="store_true", help="print a JSON object a line")


def run(options: argparse.Namespace) -> int:
    """Print the sums."""
    by = [name.strip() for name in options.by.split(",") if name.strip()]
    for name in by:
        if name not in GROUPINGS:
            raise UsageError(f"--by: expected some of {', '.join(GROUPINGS)}, got {name[:40]!r}")
    with ledger_errors("the ledger"):
        found = read_usage(ledger_folder(options), by, since=read_since(options.since))
    if options.json:
        for used in found:
            figures = {name: getattr(used, name) for name in Used.__struct_fields__ if name != "group"}
            write_json({**dict(zip(by, used.group, strict=True)), **figures})
        return DONE
    if not found:
        hint("nothing was recorded: dragoman serve records the requests that it answers\n")
        return DONE
    head = (*by, "US dollars", *_FIGURES)
    lines = [(*used.group, render_usd(used.nano), *(str(getattr(used, name)) for name in _FIGURES)) for used in found]
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    for line in (head, *lines):
        cells = [
            cell.ljust(width) if place < len(by) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        say("  ".join(cells).rstrip() + "\n")
    return DONE
