"""Say which configuration was read, which servers and keys were found, what fails and why, and one fix for each.

Asks the servers on this machine for their models, and each provider that has a key for its list, which costs nothing;
with --local, only this machine. Exit status 1 when something fails.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import textwrap
from typing import Final

from dragoman import _json
from dragoman.cli.body_input import write
from dragoman.cli.doctor_checks import Finding, Level, examine
from dragoman.cli.main import DONE, complain
from dragoman.cli.settings import add_config, load_settings
from dragoman.cli.terminal import Colour, Paint, columns_of, harmless, paint_for, say
from dragoman.errors import ConfigError

EXAMPLE = "  dragoman doctor"

_LONGEST: Final = 10_000  # columns of what is no terminal
_MARKS: Final[dict[Level, tuple[str, Colour]]] = {"good": ("✓", "green"), "note": ("–", "dim"), "bad": ("✗", "red")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--local", action="store_true", help="ask no server beyond this machine")
    parser.add_argument("--json", action="store_true", help="print one JSON object a finding and line")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Examine."""
    try:
        findings = asyncio.run(examine(load_settings(options), only_local=options.local))
    except ConfigError as problem:
        findings = [Finding("bad", "configuration", str(problem), "correct it, then: dragoman config check")]
    if options.json:
        write(b"".join(_json.encode(finding) + b"\n" for finding in findings))
    else:
        columns = columns_of(sys.stdout, most=_LONGEST)
        say("".join(render_finding(finding, paint_for(sys.stdout), columns) for finding in findings))
    bad = [finding.subject for finding in findings if finding.level == "bad"]
    return complain(f"{len(bad)} of {len(findings)} checks failed: {', '.join(bad)}") if bad else DONE


def render_finding(finding: Finding, paint: Paint, columns: int) -> str:
    """Render a finding on one line and its fix below, broken between words where the terminal ends."""
    mark, colour = _MARKS[finding.level]
    line = f"{paint(colour, mark)} {harmless(f'{finding.subject}: {finding.text}')}\n"
    fix = textwrap.wrap(finding.fix, max(columns - 9, 20), break_long_words=False, break_on_hyphens=False)
    return line + (f"    {paint('bold', 'fix')} " + "\n        ".join(fix) + "\n" if fix else "")
