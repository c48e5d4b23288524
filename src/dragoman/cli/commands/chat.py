"""Talk to a model that works in this folder: it reads, and asks before it writes, runs a command or fetches a page.

With -p it does one task without a person. Beside reading it does only what --allow or the user's file names; it tells
the model what it refused. Exit status 1 when there is no answer, 130 when it was interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from pathlib import Path

from dragoman.agent.sandbox.process_secrecy import hide_environment
from dragoman.agent.start import Wish
from dragoman.cli.body_input import read_prompt, reading
from dragoman.cli.main import DONE, INTERRUPTED, complain
from dragoman.cli.settings import add_config, load_settings
from dragoman.cli.terminal import harmless, hint, say
from dragoman.config import Config
from dragoman.errors import MissingExtra, UsageError

EXAMPLE = (
    '  dragoman chat ollama/granite4\n  dragoman chat -p "Which tests fail, and why?" --allow "run:pytest **" --json'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("target", nargs="?", metavar="TARGET", help="provider/model, or the name of a route")
    parser.add_argument("-p", "--prompt", metavar="PROMPT", help="do this one task and end; - reads standard input")
    parser.add_argument("--json", action="store_true", help="with -p: print one JSON object a line")
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="TOOL[:PATTERN]",
        help="what it may do without asking; repeatable",
    )
    parser.add_argument(
        "--resume", nargs="?", const="", metavar="SESSION", help="go on with a session: the last one, or this"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path(), metavar="DIR", help="the work folder (default: this one)"
    )
    parser.add_argument(
        "--tools",
        action="append",
        default=[],
        metavar="FILE.py",
        help="a file whose functions are tools; may be repeated",
    )
    parser.add_argument("--shell", action="store_true", help="offer the model a shell; you are asked about each script")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Chat, or do one task."""
    hide_environment()
    config = load_settings(options)
    for name in options.tools:
        if name.endswith(".py"):
            with reading(name, "--tools"):
                Path(name).stat()
    wish = Wish(
        options.folder,
        options.target,
        allow=tuple(options.allow),
        tools=tuple(options.tools),
        shell=options.shell,
        resume=options.resume,
    )
    if options.prompt is None:
        if options.json:
            raise UsageError("expected --json together with -p PROMPT")
        try:
            import prompt_toolkit  # noqa: F401
            import rich  # noqa: F401
        except ModuleNotFoundError:
            raise MissingExtra('a chat at a terminal needs the extra "agent": pip install "dragoman[agent]"') from None
        from dragoman.agent.ui.terminal import chat

        return chat(wish, config)
    prompt = read_prompt(options.prompt)
    if not prompt.strip():
        raise UsageError("expected a prompt, got nothing")
    return asyncio.run(_task(prompt, wish, config, as_json=options.json))


async def _task(prompt: str, wish: Wish, config: Config, *, as_json: bool) -> int:
    """Run one prompt without a person."""
    from dragoman.agent.start import learn_window, make_agent, make_bench, open_session
    from dragoman.agent.ui.headless import Headless
    from dragoman.client import AsyncClient

    face = Headless(say if as_json else hint, as_json=as_json)
    bench = make_bench(wish, config)
    try:
        session, why = await open_session(wish, config, bench)
        if why and not as_json:
            hint(f"{session.target}: {why}\n")
        async with AsyncClient(config) as client, contextlib.AsyncExitStack() as stack:
            for problem in await bench.reach_remotes(stack, config, face):
                hint(f"{harmless(problem)}\n")
            agent = make_agent(client, session, bench, face)
            await learn_window(agent, client)
            reason = await agent.run(prompt)
            face.end(reason, agent.meter, session=session.id)
        session.close()
    finally:
        bench.close()
    if reason == "interrupted":
        return INTERRUPTED
    if reason != "answered":
        return complain(f"no answer: {face.problem or reason}")
    if not as_json:
        say(harmless(face.text).rstrip() + "\n")
    return DONE
