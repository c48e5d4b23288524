"""Watch three broken streams of real servers being mended, then a real model on this machine call tools.

Fetches a model of 93 MB the first time (checked against its hash) and serves it on a free port of this machine. The
model is tiny: it shows real bytes, real grammar and real arrival times, not wisdom. Exit status 1 when it makes no
tool call in one of the three protocols.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dragoman import embedded
from dragoman.cli.demo_broken import BROKEN_STREAMS, render_broken, render_mended
from dragoman.cli.main import DONE, complain
from dragoman.cli.terminal import Paint, hint, paint_for, say
from dragoman.errors import DragomanError
from dragoman.providers.catalog import Provider, load_catalog

if TYPE_CHECKING:
    from dragoman.http.transport import Transport

EXAMPLE = """\
  dragoman demo
  dragoman demo --streams    only the broken streams: no model, no download
  dragoman demo --bytes      with every byte that arrives, and its events"""

_IN_CHECKOUT: Final = ".venv/bin/dragoman"
_BAR: Final = 30  # columns
_LEG_SECONDS: Final = 60
_HEADING: Final = "Three streams that real servers send, and the calls that dragoman finds in them:"
_LIVE_HEADING: Final = """\
Now a real model on this machine: SmolLM2, 135 million parameters, 93 MB. It is
too small to be wise. Watch each call grow while it streams, in three protocols."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--streams", action="store_true", help="only the broken streams, without a model")
    parser.add_argument("--bytes", action="store_true", help="show every byte, and the events that come of it")


def run(options: argparse.Namespace) -> int:
    """Show it all."""
    paint = paint_for(sys.stdout)
    width = max(shutil.get_terminal_size().columns, 80)
    start = time.monotonic()
    say(_HEADING + "\n")
    for stream in BROKEN_STREAMS:
        say(
            render_broken(stream, paint, width=width) + "\n"
            if options.bytes
            else render_mended(stream, paint, width=width)
        )
    problem = "" if options.streams else _live(paint, width, with_bytes=options.bytes)
    say(_next_steps(paint, time.monotonic() - start))
    return complain(problem) if problem else DONE


def _live(paint: Paint, width: int, *, with_bytes: bool) -> str:
    """Run the model's part. Return what went wrong, or ""."""
    say(f"\n{_LIVE_HEADING}\n")
    hint("starting it…\n")
    progress = ProgressBar(is_terminal=sys.stderr.isatty())
    try:
        with embedded.start(on_progress=progress.show) as server:
            if with_bytes:
                say(f"model   {server.model}, sha256 {server.sha256}\n")
                say(f"server  {server.url}, process {server.pid}\n\n")
            silent = asyncio.run(_play_all(server, paint, width, with_bytes=with_bytes))
    except DragomanError as problem:
        return str(problem)  # the broken streams need no model
    return f"the model made no tool call over {', '.join(silent)}" if silent else ""


async def _play_all(server: embedded.EmbeddedServer, paint: Paint, width: int, *, with_bytes: bool) -> list[str]:
    """Play every leg. Return the protocols in which no call came."""
    from dragoman.cli.demo_live import LEGS, play, target_of
    from dragoman.discovery.query_server import make_transport

    transport = make_transport(seconds=10)
    silent: list[str] = []
    try:
        for leg in LEGS:
            called = False
            try:
                async with asyncio.timeout(_LEG_SECONDS):
                    called = await play(
                        leg, target_of(server, leg.protocol), transport, paint, width=width, with_bytes=with_bytes
                    )
            except TimeoutError:
                say(paint("red", f"  not done in {_LEG_SECONDS} s") + "\n\n")
            silent += [] if called else [leg.protocol]
        say(await say_how_to_use(load_catalog().provider("ollama"), transport, paint))
    finally:
        await transport.close()
    return silent


async def say_how_to_use(ollama: Provider, transport: Transport, paint: Paint) -> str:
    """Describe how to use the Ollama server at its address, or return "" if none answers there."""
    from dragoman.discovery.query_server import look

    found = await look(transport, ollama, key=None)
    if found.failure is not None:
        return ""
    model = next((model for model in found.models if model.tools), None) or next(iter(found.models), None)
    if model is None:
        return f"Ollama answers at {ollama.base_url} and has no model yet: ollama pull granite4\n\n"
    command = f'{_program()} call {model.target} "Why is the sky blue?"'
    return f"Ollama answers at {ollama.base_url}. Use it: {paint('bold', command)}\n\n"


class ProgressBar:
    """The progress of a download on standard error: a bar in a terminal, else a line for each tenth."""

    __slots__ = ("_is_terminal", "_tenth")

    def __init__(self, *, is_terminal: bool) -> None:
        self._is_terminal = is_terminal
        self._tenth = -1

    def show(self, done: int, total: int) -> None:
        """Show that `done` of `total` bytes have come."""
        share = done / total if total else 1.0
        words = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB"
        if self._is_terminal:
            bar = "█" * int(share * _BAR)
            hint(f"\rfetching the model  {bar:░<{_BAR}}  {words}" + ("\n" if done == total else ""))
        elif int(share * 10) > self._tenth:
            self._tenth = int(share * 10)
            hint(f"fetching the model: {words}\n")


def _next_steps(paint: Paint, seconds: float) -> str:
    """Describe what to type next, with the name this program has here; no line is longer than 80 columns."""
    program = _program()
    tools = (
        " \\\n      --tools docs/examples/tools.json --tool-choice required"
        if Path("docs/examples/tools.json").is_file()
        else ""
    )
    steps = (
        ("Ask it yourself", f'{program} call embedded/smollm2 "Weather in Rome?"{tools}'),
        ("See your servers and keys", f"{program} doctor"),
        ("Serve your own client", f"{program} serve"),
    )
    lines = "".join(f"  {what}:\n    {paint('bold', command)}\n" for what, command in steps)
    if program == _IN_CHECKOUT:
        lines += f"  Type `dragoman` alone from here on, in this shell:\n    {paint('bold', '. .venv/bin/activate')}\n"
    return f"{paint('dim', f'That took {seconds:.0f} s.')} Next:\n{lines}"


def _program() -> str:
    """Return how to call this program: by name if the shell finds it, else by path."""
    if shutil.which("dragoman"):
        return "dragoman"
    started = Path(sys.argv[0])
    return os.path.relpath(started) if started.stem == "dragoman" else "python -m dragoman"
