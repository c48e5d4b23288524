"""Which way to ask for tools works with real small models: `make models [LARGE=1]`.

Plays `tasks.py` natively, in words and by schema on real models, each behind llama.cpp's own server on loopback, and
prints a table; `--write` puts it into docs/reference/ways.md. SmolLM2 takes some minutes, the larger one (1.07 GB to
fetch, once) about ten more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import large_model
from asking import Outcome, play
from tasks import TASKS, Task

import dragoman
from dragoman import embedded
from dragoman.config import ToolsMode, load_config

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "ways.md"
WAYS: tuple[ToolsMode, ...] = ("native", "prompted", "schema")
CONTEXT = 3072


@dataclass(frozen=True)
class Row:
    """What a model made of the tasks in one way: counts. `invented`: answers to the tasks that need no tool in which
    there was a call; `others`: wrong calls among the rest."""

    model: str
    way: str
    right: int
    tasks: int
    invented: int
    plain_tasks: int
    wrong_calls: int
    seconds: float


def main() -> int:
    """Play, print, and write when asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="Qwen2.5-Coder-1.5B too (1.07 GB, once)")
    parser.add_argument("--only", default="", metavar="WAY", help="this way alone")
    parser.add_argument("--show", action="store_true", help="print every answer")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    models = [("SmolLM2-135M-Instruct Q4_1", embedded.load_weights())]
    if options.large:
        models.append(("Qwen2.5-Coder-1.5B-Instruct Q4_K_M", large_model.load()))
    rows = [
        row
        for name, path in models
        for row in measure(name, path, [way for way in WAYS if options.only in ("", way)], TASKS, shows=options.show)
    ]
    text = table(rows)
    print(text)
    if options.write:
        PAGE.write_text(page(text), encoding="utf-8")
    return 0


def measure(name: str, path: Path, ways: Sequence[ToolsMode], tasks: Sequence[Task], *, shows: bool) -> list[Row]:
    """One row a way, on one server."""
    rows = []
    with embedded.start(path, context=CONTEXT) as server, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dragoman.toml"
        file.write_text(
            f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{server.url}/v1"\napi_key = "env:KEY"\n',
            encoding="utf-8",
        )
        config = load_config(file, environ={"KEY": server.api_key}, home=Path(folder))
        for way in ways:
            began, outcomes = time.monotonic(), []
            with dragoman.Client(config, tools=way) as client:
                for outcome in play(client, f"lab/{server.model}", tasks):
                    outcomes.append(outcome)
                    if shows:
                        print(shown(way, outcome), flush=True)
            rows.append(count(name, way, outcomes, time.monotonic() - began))
            print(f"{name} {way}: {rows[-1]}", file=sys.stderr)
    return rows


def count(name: str, way: str, outcomes: Sequence[Outcome], seconds: float) -> Row:
    """The outcomes in one row."""
    tool = [outcome for outcome in outcomes if outcome.task.name is not None]
    plain = [outcome for outcome in outcomes if outcome.task.name is None]
    return Row(
        name,
        way,
        right=sum(outcome.is_right for outcome in tool),
        tasks=len(tool),
        invented=sum(not outcome.is_right for outcome in plain),
        plain_tasks=len(plain),
        wrong_calls=sum(bool(outcome.calls) and not outcome.is_right for outcome in tool),
        seconds=seconds,
    )


def shown(way: str, outcome: Outcome) -> str:
    """An answer in one line."""
    said = outcome.calls or [(call.kind, call.name) for call in outcome.reply.failed_calls] or outcome.reply.text[:80]
    return f"{'right' if outcome.is_right else 'WRONG':6}{way:9} {outcome.task.prompt} → {said!r}"


def table(rows: Sequence[Row]) -> str:
    """The rows as a table of the documentation."""
    lines = [
        "| model | `tools` | right calls | wrong calls | calls where none was needed |",
        "|---|---|--:|--:|--:|",
    ]
    for row in rows:
        lines.append(
            f"| {row.model} | `{row.way}` | {row.right} of {row.tasks} | {row.wrong_calls} "
            f"| {row.invented} of {row.plain_tasks} |"
        )
    return "\n".join(lines)


def page(text: str) -> str:
    """The page around the table."""
    day = datetime.now(UTC).date().isoformat()
    return PAGE_TEXT.format(table=text, day=day)


PAGE_TEXT = """# Ways of asking for tools, measured

<!-- Written by `make models LARGE=1 OPTIONS=--write`: run it again, do not change this page. -->

What real small models make of the three [ways of asking](../how-to/models-without-tools.md): twenty requests with one
right call each, of three tools that are offered, and ten that need no tool (`bench/models/tasks.py`). A call is right
when it comes alone, with the right name and exactly the right arguments, upper and lower case apart. Each model ran
behind llama.cpp's server, which holds the answer to a schema by a grammar, with ChatML and one tool template for both,
at temperature 0, through `dragoman.Client`. One run, {day}; `make models LARGE=1` prints it again.

{table}

What it shows:

- The smallest model calls no tool of its own accord, in any way. It invents calls when a schema offers them to it:
  do not give such a model tools that change something, in any way but by a forced call.
- A coder model that says nothing in its template's tags (`<tool_call>` is one word of its vocabulary, which it never
  learned to write) still calls rightly: it writes the JSON in a fence, or alone, and both are read.
- What a way costs is that calls come where none was needed. Words say "only when" as well as they can; a schema
  makes calling as easy as answering.
"""


if __name__ == "__main__":
    sys.exit(main())
