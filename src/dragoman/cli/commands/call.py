"""Ask a model one thing, one turn, and watch the answer arrive: text, thinking folded, tool calls as they grow.

Tools are offered, not run. With --json, one event a line. Exit status 1 when the response failed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from typing import Final

import msgspec

from dragoman.cli.body_input import add_tools, error_object, load_tools, render_events, write
from dragoman.cli.draw_stream import Drawing, render_summary
from dragoman.cli.main import DONE, complain
from dragoman.cli.settings import add_config, load_settings
from dragoman.cli.terminal import hint, paint_for, say
from dragoman.client import AsyncClient
from dragoman.codec.error_body import refuses_tools
from dragoman.discovery.model_facts import check_model, pick_default
from dragoman.errors import UsageError
from dragoman.events import Failure, Reply
from dragoman.providers.catalog import split_target
from dragoman.response_stages import Sequencer
from dragoman.routing.resolve import resolve
from dragoman.types import Named, Params, ToolChoice

EXAMPLE = '  dragoman call ollama/granite4 "Weather in Paris?" --tools tools.json'

_PATIENCE_SECONDS: Final = 2.0
_STEP_SECONDS: Final = 0.5
_CHOICES: Final[dict[str, ToolChoice]] = {"auto": "auto", "none": "none", "any": "any"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "target", nargs="?", metavar="TARGET", help="provider/model, or a route; none: a model here that takes tools"
    )
    parser.add_argument("prompt", metavar="PROMPT", help="what to ask; - reads standard input")
    add_tools(parser)
    parser.add_argument(
        "--tool-choice", default="auto", metavar="WHICH", help="auto, none, any, or a tool's name (default: auto)"
    )
    parser.add_argument("--max-tokens", type=int, metavar="N", help="most tokens of the answer")
    parser.add_argument("--thinking", action="store_true", help="show thinking as it comes, not folded")
    parser.add_argument("--json", action="store_true", help="print one event a line")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Ask."""
    reply = asyncio.run(_call(options))
    if not options.json:
        hint(paint_for(sys.stderr)("dim", render_summary(reply)) + "\n")
    error = error_object(reply.error)
    return DONE if error is None else complain(f"{error['kind']}: {error['message']}")


async def _call(options: argparse.Namespace) -> Reply:
    config = load_settings(options)
    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    drawing, sequencer = Drawing(paint_for(sys.stdout), unfold=options.thinking), Sequencer()
    async with AsyncClient(config) as client:
        target = options.target or await _pick_target(client)
        local = resolve(target, config).provider.local
        stream = client.stream(
            target,
            prompt,
            tools=load_tools(options.tools),
            tool_choice=_CHOICES.get(options.tool_choice) or Named(options.tool_choice),
            params=Params(max_tokens=options.max_tokens),
        )
        async with _waiting("loading model…" if local else "waiting…") as end_waiting, stream:
            while events := await stream.next_batch():
                if options.json:
                    end_waiting()
                    write(render_events(events))
                elif drawn := drawing.draw(sequencer.feed(events)):
                    end_waiting()
                    say(drawn)
        return await _advised(stream.reply, client, target)


async def _pick_target(client: AsyncClient) -> str:
    """The model to ask when nobody named one.

    Raises:
        UsageError: none that takes tools is known.
    """
    # Of this machine only: nobody pays for what was not asked for.
    picked = pick_default(one for one in await client.models() if one.is_local)
    if picked is None:
        raise UsageError("expected a target: no model on this machine takes tools; dragoman models lists what there is")
    why = "validated" if picked.proven else f"takes tools, says the {picked.tools_source}"
    hint(f"{picked.target} ({why})\n")
    return picked.target


async def _advised(reply: Reply, client: AsyncClient, target: str) -> Reply:
    """The reply; when its model is missing or takes no tools, the failure names some that do."""
    failure = reply.error
    if not isinstance(failure, Failure) or "/" not in target:
        return reply
    if failure.kind != "not_found" and not refuses_tools(failure):
        return reply
    problem = check_model(await client.models(split_target(target)[0]), target)
    if not problem:
        return reply
    return msgspec.structs.replace(reply, error=msgspec.structs.replace(failure, message=problem))


@contextlib.asynccontextmanager
async def _waiting(words: str) -> AsyncIterator[Callable[[], None]]:
    """Tell a terminal that nothing has come yet, until what this gives is called.

    That takes the words off the line at once: whatever is written next shall stand there, and stay.
    """
    is_shown = False

    async def tell() -> None:
        nonlocal is_shown
        seconds = _PATIENCE_SECONDS
        await asyncio.sleep(_PATIENCE_SECONDS)
        while True:
            is_shown = True
            hint(f"\r{words} {seconds:.0f} s")
            await asyncio.sleep(_STEP_SECONDS)
            seconds += _STEP_SECONDS

    def end() -> None:
        nonlocal is_shown
        if task is not None:
            task.cancel()  # from here on it writes nothing
        if is_shown:
            is_shown = False
            hint("\r\033[K")

    task = asyncio.create_task(tell()) if sys.stderr.isatty() else None
    try:
        yield end
    finally:
        end()
