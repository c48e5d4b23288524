"""Find out what models can really do: probes with one right answer each, asked over the wire, graded, and kept.

The quick suite asks at most 8 times, and 4 times when the model's tools work. Results are kept as proofs; routes with
only_validated = true, `dragoman models` and the gateway look at them. Exit status 1 when a target did not pass.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from importlib.metadata import version
from pathlib import Path

from dragoman._json import has_whole_characters
from dragoman.agent.safe_text import counted
from dragoman.cli.body_input import check_folder, read_option_file
from dragoman.cli.main import DONE, complain
from dragoman.cli.option_values import read_count
from dragoman.cli.settings import add_config, load_settings
from dragoman.cli.terminal import Paint, clip, columns_of, hint, paint_for, say
from dragoman.config import Config
from dragoman.errors import UsageError
from dragoman.proofs import ProbeResult, Proof, ProofStore, is_proven, parse_export, render_export
from dragoman.validate.ask import Asker
from dragoman.validate.limits import Budget, Pace
from dragoman.validate.probe import label_of
from dragoman.validate.report import Report, render_document, render_target, renderer_for
from dragoman.validate.results import Settings, TargetRun
from dragoman.validate.runner import Runner, run_all
from dragoman.validate.selection import check_paid, due_targets, expanded, unfinished

EXAMPLE = (
    "  dragoman validate ollama/granite4 --full-suite --report granite4.html\n"
    "  dragoman validate --due    # from cron: what expires soon, or has changed"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="provider/model, or a route: all its targets")
    parser.add_argument("--suite", choices=["quick", "full"], default="quick", help="how much to ask (default: quick)")
    parser.add_argument(
        "--full-suite", dest="suite", action="store_const", const="full", help="the same as --suite full"
    )
    parser.add_argument(
        "--trials", type=read_count, default=1, metavar="N",
        help="ask each probe N times, every second time at the model's own temperature; all must pass (default: 1)",
    )  # fmt: skip
    parser.add_argument("--seed", metavar="TEXT", help="ask the same questions again (default: new ones every time)")
    parser.add_argument(
        "--report", type=Path, action="append", default=[], metavar="FILE", help="write .json, .html or .xml (JUnit)"
    )
    parser.add_argument(
        "--jobs", type=read_count, default=1, metavar="N", help="validate N targets at a time (default: 1)"
    )
    parser.add_argument("--max-cost", type=_dollars, metavar="USD", help="stop before more than this is spent")
    parser.add_argument("--allow-paid", action="store_true", help="ask models that cost money too")
    parser.add_argument("--due", action="store_true", help="only what has no proof, or one that expires or is void")
    parser.add_argument("--resume", action="store_true", help="leave out what this suite has proven in the last day")
    parser.add_argument(
        "--per-minute", type=read_count, default=60, metavar="N", help="requests to one remote provider (default: 60)"
    )
    parser.add_argument(
        "--context", type=read_count, default=32_768, metavar="TOKENS", help="longest window to fill (default: 32768)"
    )
    parser.add_argument(
        "--timeout", type=read_count, default=300, metavar="SECONDS", help="of one answer (default: 300)"
    )
    parser.add_argument("--export", metavar="FILE", help="write the proofs as JSON; - is standard output")
    parser.add_argument("--import", dest="import_file", type=Path, metavar="FILE", help="take proofs from such a file")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Validate, and keep the results."""
    config = load_settings(options)
    for file in options.report:
        renderer_for(file)
    if options.export is not None:
        check_folder(options.export, "--export")
    store = ProofStore(
        config.validate.store,
        clock=time.time,
        expires_days=config.validate.expires_days,
        say=lambda message: hint(f"{message}\n"),
    )
    if options.import_file is not None:
        proofs = parse_export(read_option_file(options.import_file, "--import"), where=str(options.import_file))
        if not store.put(*proofs):
            return complain(f"{counted(len(proofs), 'proof')} could not be kept")
        hint(f"{counted(len(proofs), 'proof')} taken from {options.import_file}\n")
    if options.targets or options.due:
        runs = asyncio.run(_validate(options, config, store))
        status = _judge(runs)
    elif options.export is None and options.import_file is None:
        raise UsageError("expected a target provider/model, the name of a route, or --due")
    else:
        runs, status = [], DONE
    if options.export is not None:
        _export(options.export, runs, store)
    return status


async def _validate(options: argparse.Namespace, config: Config, store: ProofStore) -> list[TargetRun]:
    seed = options.seed if options.seed is not None else f"{time.time_ns():x}"
    if not has_whole_characters(seed):
        raise UsageError("--seed: expected a text in UTF-8")
    settings = Settings(
        suite=options.suite,
        trials=options.trials,
        seed=seed,
        max_context=options.context,
        timeout=float(options.timeout),
    )
    asker = Asker(config, timeout=settings.timeout)
    try:
        targets = expanded(options.targets, config)
        if options.due:
            targets = await due_targets(targets, asker, store, allow_paid=options.allow_paid, now=time.time())
        if options.resume:
            targets = unfinished(targets, store, suite=options.suite, now=time.time())
        if not options.due:
            check_paid(targets, asker, allow_paid=options.allow_paid, max_cost=options.max_cost)
        if not targets:
            hint("nothing is due\n")
        progress = _Progress(paint_for(sys.stderr), is_shown=sys.stderr.isatty())
        runner = Runner(
            asker,
            settings,
            budget=Budget(options.max_cost),
            pace=Pace(per_minute=options.per_minute),
            version=version("dragoman"),
            on_progress=progress.show,
        )
        started = time.time()

        def on_done(run: TargetRun) -> None:
            progress.clear()
            if run.proof is not None and not run.problem and not _says_nothing(run.proof):
                store.put(run.proof)
            if not options.json:
                say(render_target(run, paint=paint_for(sys.stdout), width=columns_of(sys.stdout)))

        runs = await run_all(runner, targets, jobs=options.jobs, on_done=on_done)
    finally:
        await asker.close()
    report = Report(version("dragoman"), settings, int(started), time.time() - started, tuple(runs))
    for file in options.report:
        file.write_bytes(renderer_for(file)(report))
        hint(f"{file} written\n")
    if options.json:
        say(render_document(report).decode() + "\n")
    return runs


def _says_nothing(proof: Proof) -> bool:
    """Return whether the first probe could not be made; then an earlier proof stands."""
    called = proof.probes.get("toolCall")
    return called is None or called.verdict == "error"


def _judge(runs: Sequence[TargetRun]) -> int:
    """Return the exit status, and print what is wrong in one line."""
    faults = {run.target: _fault(run) for run in runs}
    bad = {target: fault for target, fault in faults.items() if fault}
    if not bad:
        return DONE
    told = "; ".join(f"{target}: {fault}" for target, fault in list(bad.items())[:5])
    return complain(f"{len(bad)} of {counted(len(runs), 'target')} did not pass: {told}")


def _fault(run: TargetRun) -> str:
    """Return why a target did not pass, in short; "" if it did."""
    if run.proof is None or run.problem:
        return run.problem
    bad = [name for name, result in run.proof.probes.items() if result.verdict in ("failed", "error")]
    faults = [] if is_proven(run.proof) else ["its tools are not proven"]
    if bad:
        faults.append(f"{', '.join(map(label_of, bad))} failed")
    return ", ".join(faults)


def _export(file: str, runs: Sequence[TargetRun], store: ProofStore) -> None:
    proofs = [run.proof for run in runs if run.proof is not None] if runs else store.all()
    data = render_export(proofs) + b"\n"
    if file == "-":
        say(data.decode())
    else:
        Path(file).write_bytes(data)
        hint(f"{counted(len(proofs), 'proof')} written to {file}\n")


class _Progress:
    """A progress line on a terminal's standard error, rewritten in place."""

    __slots__ = ("_is_shown", "_paint")

    def __init__(self, paint: Paint, *, is_shown: bool) -> None:
        self._paint = paint
        self._is_shown = is_shown

    def show(self, target: str, probe: str, result: ProbeResult, done: int, total: int) -> None:
        """Show that a probe is done."""
        if self._is_shown:
            bar = "█" * (20 * done // total) + "░" * (20 - 20 * done // total)
            line = f"{bar} {done}/{total} {target} {label_of(probe)}: {result.verdict}"
            hint(f"\r\033[K{clip(line, columns_of(sys.stderr) - 1)}")  # a line that wraps could not be taken back

    def clear(self) -> None:
        """Clear the line for other output."""
        if self._is_shown:
            hint("\r\033[K")


def _dollars(text: str) -> Decimal:
    try:
        dollars = Decimal(text.removeprefix("$"))
    except InvalidOperation:
        raise argparse.ArgumentTypeError(f"expected US dollars, got {text!r}") from None
    if not dollars.is_finite() or dollars < 0:
        raise argparse.ArgumentTypeError(f"expected US dollars, got {text!r}")
    return dollars
