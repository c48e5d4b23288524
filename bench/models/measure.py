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
from tasks import TASKS

import dragoman
from dragoman import embedded
from dragoman.config import ToolsMode, load_config

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "ways.md"
#: What is measured: name → how the tools are asked for, and whether a call is asked for at all events.
RUNS: dict[str, tuple[ToolsMode, bool]] = {
    "native": ("native", False),
    "prompted": ("prompted", False),
    "schema": ("schema", False),
    "prompted, forced": ("prompted", True),
    "schema, forced": ("schema", True),
}
CONTEXT = 3072


@dataclass(frozen=True)
class Row:
    """What a model made of the tasks in one run: counts. `invented`: answers to the tasks that need no tool in which
    there was a call (forced, there are no such tasks); `wrong_calls`: calls that were not the right one."""

    model: str
    run: str
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
    parser.add_argument("--only", choices=RUNS, action="append", help="this run alone; may be given again")
    parser.add_argument("--show", action="store_true", help="print every answer")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    models = [("SmolLM2-135M-Instruct Q4_1", embedded.load_weights())]
    if options.large:
        models.append(("Qwen2.5-Coder-1.5B-Instruct Q4_K_M", large_model.load()))
    rows = [row for name, path in models for row in measure(name, path, options.only or [*RUNS], shows=options.show)]
    text = table(rows)
    print(text)
    if options.write:
        PAGE.write_text(page(text), encoding="utf-8")
    return 0


def measure(name: str, path: Path, runs: Sequence[str], *, shows: bool) -> list[Row]:
    """One row a run, on one server."""
    rows = []
    with embedded.start(path, context=CONTEXT) as server, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dragoman.toml"
        file.write_text(
            f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{server.url}/v1"\napi_key = "env:KEY"\n',
            encoding="utf-8",
        )
        config = load_config(file, environ={"KEY": server.api_key}, home=Path(folder))
        for run in runs:
            way, forced = RUNS[run]
            tasks = [task for task in TASKS if not forced or task.name is not None]
            began, outcomes = time.monotonic(), []
            with dragoman.Client(config, tools=way) as client:
                for outcome in play(client, f"lab/{server.model}", tasks, forced=forced):
                    outcomes.append(outcome)
                    if shows:
                        print(shown(run, outcome), flush=True)
            rows.append(count(name, run, outcomes, time.monotonic() - began))
            print(rows[-1], file=sys.stderr)
    return rows


def count(name: str, run: str, outcomes: Sequence[Outcome], seconds: float) -> Row:
    """The outcomes in one row."""
    tool = [outcome for outcome in outcomes if outcome.task.name is not None]
    plain = [outcome for outcome in outcomes if outcome.task.name is None]
    return Row(
        name,
        run,
        right=sum(outcome.is_right for outcome in tool),
        tasks=len(tool),
        invented=sum(not outcome.is_right for outcome in plain),
        plain_tasks=len(plain),
        wrong_calls=sum(bool(outcome.calls) and not outcome.is_right for outcome in tool),
        seconds=seconds,
    )


def shown(run: str, outcome: Outcome) -> str:
    """An answer in one line."""
    said = outcome.calls or [(call.kind, call.name) for call in outcome.reply.failed_calls] or outcome.reply.text[:80]
    return f"{'right' if outcome.is_right else 'WRONG':6}{run:17} {outcome.task.prompt} → {said!r}"


def table(rows: Sequence[Row]) -> str:
    """The rows as a table of the documentation."""
    lines = ["| model | `tools` | right calls | wrong calls | calls where none was needed |", "|---|---|--:|--:|--:|"]
    for row in rows:
        invented = f"{row.invented} of {row.plain_tasks}" if row.plain_tasks else "not asked"
        lines.append(f"| {row.model} | {row.run} | {row.right} of {row.tasks} | {row.wrong_calls} | {invented} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """The page around the table."""
    day = datetime.now(UTC).date().isoformat()
    return PAGE_TEXT.format(table=text, day=day)


PAGE_TEXT = """# Ways of asking for tools, measured

<!-- Written by `make models LARGE=1 OPTIONS=--write`: run it again, do not change this page. -->

This page shows what real small models make of the three [ways of asking](../how-to/models-without-tools.md). Each
model answered thirty requests (`bench/models/tasks.py`): twenty have one right call each, of three tools that are
offered, and ten need no tool. A call is right when it comes alone, with the right name and exactly the right
arguments. Upper and lower case count as the same. “Forced” is `tool_choice="required"` for the first twenty.

Each model ran behind llama.cpp's server, which holds an answer to a schema by a grammar. Both used ChatML and one
tool template, at temperature 0, through `dragoman.Client`. Each row is one run of {day}. To print the table again,
run `make models LARGE=1`.

{table}

How to read it:

- The larger model cannot write the `<tool_call>` tags that the words ask for. Each tag is one token, which a coder
  model has not learned. It writes the JSON in a fence or alone, and dragoman reads that, as it does with `native`.
- Asked in words, both models make the fewest calls that nobody needs. Some of what a schema misses is arithmetic that
  the model did itself.
- So, when a server refuses tools, `auto` asks in words. It asks by a schema only if the request demands a call.
- The smallest model makes almost no right call, and its forced calls are mostly wrong. It shows the plumbing, no
  more. Give such a model no tool that changes something.
"""


if __name__ == "__main__":
    sys.exit(main())
