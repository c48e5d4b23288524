"""Ask a model one thing and watch the answer arrive: text, thinking folded, tool calls as they grow.

Tools are offered, not run. With --json it prints one event a line. The exit status is 1 when the response failed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import msgspec

from dragoman.cli.body_input import add_tools, error_object, render_events, write
from dragoman.cli.call_question import Question, keep_call, last_call_file, read_question
from dragoman.cli.draw_stream import Drawing, render_summary
from dragoman.cli.main import DONE, complain
from dragoman.cli.option_values import read_count
from dragoman.cli.settings import add_config, load_settings
from dragoman.cli.terminal import hint, paint_for, say
from dragoman.client import AsyncClient
from dragoman.codec.errors.unsupported_tools import refuses_tools
from dragoman.config import Config
from dragoman.discovery.model_facts import check_model, pick_default
from dragoman.errors import UsageError
from dragoman.events import Failure, Reply
from dragoman.providers.catalog import split_target
from dragoman.response_stages import Sequencer
from dragoman.routing.resolve import resolve

EXAMPLE = '  dragoman call ollama/granite4 "Weather in Paris?" --tools tools.json'

_PATIENCE_SECONDS: Final = 2.0
_STEP_SECONDS: Final = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "target", nargs="?", metavar="TARGET", help="provider/model, or a route; none: a model here that takes tools"
    )
    parser.add_argument("prompt", metavar="PROMPT", help="what to ask; - reads standard input")
    add_tools(parser)
    parser.add_argument(
        "--tool-choice", default="auto", metavar="WHICH", help="auto, none, required, or a tool's name (default: auto)"
    )
    parser.add_argument("--system", metavar="TEXT", help="the system prompt (default: none)")
    parser.add_argument(
        "--image", type=Path, action="append", default=[], metavar="FILE", help="show the model an image; repeatable"
    )
    parser.add_argument("--schema", type=Path, metavar="FILE", help="a JSON schema that the answer must fit")
    parser.add_argument(
        "-c", "--continue", dest="goes_on", action="store_true", help="continue the last call's conversation"
    )
    parser.add_argument(
        "--max-tokens", type=read_count, metavar="N", help="most tokens of the answer (default: what the model allows)"
    )
    parser.add_argument("--thinking", action="store_true", help="show thinking as it comes, not folded")
    parser.add_argument("--json", action="store_true", help="print one event a line")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Ask."""
    config = load_settings(options)
    _check_prompt(options, config)
    question = read_question(options, last_call_file())
    reply = asyncio.run(_call(options, question, config))
    error = error_object(reply.error)
    if not options.json and (summary := render_summary(reply)):
        hint(paint_for(sys.stderr)("dim", summary) + "\n")
    return DONE if error is None else complain(f"{error['kind']}: {error['message']}")


def _check_prompt(options: argparse.Namespace, config: Config) -> None:
    """Refuse a lone word that names a model: the prompt was forgotten. Raises `UsageError`: it is one."""
    words = options.prompt
    if options.target is not None or any(each.isspace() for each in words):
        return
    provider, _, model = words.partition("/")
    is_target = bool(model) and provider.replace("-", "").replace("_", "").isalnum()
    if is_target or words in config.routes or words in config.aliases:
        raise UsageError(f"a prompt is missing; say: dragoman call {words} PROMPT")


async def _call(options: argparse.Namespace, question: Question, config: Config) -> Reply:
    drawing, sequencer = Drawing(paint_for(sys.stdout), unfold=options.thinking), Sequencer()
    async with AsyncClient(config) as client:
        target = options.target
        if target is None:
            target = question.target or await _pick_target(client)
        local = resolve(target, config).provider.local
        stream = client.stream(
            target, question.messages, tools=question.tools, tool_choice=question.tool_choice, params=question.params
        )
        async with _waiting("loading model…" if local else "waiting…") as end_waiting, stream:
            while events := await stream.next_batch():
                if options.json:
                    end_waiting()
                    write(render_events(events))
                elif drawn := drawing.draw(sequencer.feed(events)):
                    end_waiting()
                    say(drawn)
        if stream.reply.error is None:
            keep_call(last_call_file(), target, (*question.messages, stream.reply.message))
        return await _advised(stream.reply, client, target)


async def _pick_target(client: AsyncClient) -> str:
    """Return the model to ask if none was named. Raises `UsageError`: no model with tools is known."""
    # Of servers that run models here only: nobody pays for what was not asked for.
    providers = client.config.catalog.providers
    facts = await client.requester.models()
    picked = pick_default(one for one in facts if providers[split_target(one.target)[0]].local)
    if picked is None:
        raise UsageError(
            "no model on this machine takes tools; name one: dragoman call provider/model PROMPT "
            "(dragoman models lists what you can ask; embedded/smollm2 needs neither a server nor a key)"
        )
    why = "validated" if picked.proven else f"takes tools, says the {picked.tools_source}"
    hint(f"{picked.target} ({why})\n")
    return picked.target


async def _advised(reply: Reply, client: AsyncClient, target: str) -> Reply:
    """Return the reply. If its model is missing or supports no tools, the failure names some that do."""
    failure = reply.error
    if not isinstance(failure, Failure) or "/" not in target:
        return reply
    if failure.kind != "not_found" and not refuses_tools(failure):
        return reply
    problem = check_model(await client.requester.models(split_target(target)[0]), target)
    if not problem:
        return reply
    return msgspec.structs.replace(reply, error=msgspec.structs.replace(failure, message=problem))


@contextlib.asynccontextmanager
async def _waiting(words: str) -> AsyncIterator[Callable[[], None]]:
    """Show on a terminal that nothing has come yet, until the yielded function is called.

    That function clears the line at once, so that whatever is written next starts there.
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
