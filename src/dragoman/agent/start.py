"""Build a chat from the command line and the user's file, for both interfaces."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, final

import msgspec

from dragoman.agent.environment import WEAK_TOOLS, Environment
from dragoman.agent.instructions import system_text
from dragoman.agent.pick_model import Choice, choose_target, known_facts
from dragoman.agent.session.folder import default_store, find_session
from dragoman.agent.session.session_file import Session
from dragoman.config import Config
from dragoman.config.key_files import key_files
from dragoman.errors import DragomanError, UsageError
from dragoman.ids import new_id
from dragoman.providers.catalog import split_target

if TYPE_CHECKING:  # loaded when the first word is said: until then a prompt is all that is needed
    from dragoman.agent.interface import UserInterface
    from dragoman.agent.loop import Agent
    from dragoman.client import AsyncClient


@final
class Wish(msgspec.Struct, frozen=True):
    """The command line's request. `resume`: a session's name or id, "" for the last one, None for a new one."""

    folder: Path
    target: str | None = None
    allow: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    shell: bool = False
    resume: str | None = None


def make_bench(wish: Wish, config: Config) -> Environment:
    """Return the folder, the tools and the rules. Raises UsageError or ConfigError if one of them is missing."""
    return Environment(
        wish.folder,
        config.agent,
        allow=wish.allow,
        tools=wish.tools,
        shell=wish.shell,
        private=[*key_files(config, home=Path.home()), *([config.path] if config.path else []), session_store().parent],
    )


async def open_session(
    wish: Wish, config: Config, bench: Environment, *, store: Path | None = None
) -> tuple[Session, str]:
    """Return the session to work in, and why its model was chosen ("" if it was named).

    Raises:
        UsageError: the session or the model does not exist, or the session belongs to another folder.
    """
    store = store or session_store()
    if wish.resume is not None:
        session = Session.load(find_session(store, wish.resume, folder=bench.folder.path))
        if Path(session.folder) != bench.folder.path:
            session.close()
            raise UsageError(f"this session belongs to {session.folder}; say --folder {session.folder}")
        if wish.target is not None and wish.target != session.target:
            _check_name(wish.target, config)
            session.switch(wish.target)
        return session, ""
    choice = Choice(wish.target) if wish.target is not None else await choose_target(config)
    _check_name(choice.target, config)
    return new_session(store, bench, choice.target), choice.why


def new_session(store: Path, bench: Environment, target: str) -> Session:
    """Return a session that begins now."""
    return Session.create(store, folder=bench.folder.path, target=target, id=new_id()[:10], at=int(time.time()))


def session_store() -> Path:
    """Return the folder of this user's sessions."""
    return default_store(environ=os.environ, home=Path.home())


def make_agent(client: AsyncClient, session: Session, bench: Environment, face: UserInterface) -> Agent:
    """Return the agent for a session, with the tools and words that its model can use."""
    from dragoman.agent.loop import Agent

    agent = Agent(
        client,
        session,
        bench.toolbox,
        approvals=bench.approvals,
        face=face,
        system=system_text(bench.folder.path),
        limits=bench.limits,
    )
    fit_agent(agent, bench)
    return agent


async def learn_window(agent: Agent, client: AsyncClient) -> None:
    """Ask for the model's window if the catalogue does not know it."""
    agent.known_window = None
    if agent.target.limits.context is None:
        with contextlib.suppress(DragomanError):
            facts = await known_facts(client, agent.session.target)
            agent.known_window = facts.context if facts is not None else None


def fit_agent(agent: Agent, bench: Environment) -> None:
    """Give the agent what its session's model can use: all tools, or few tools and a short system text."""
    is_weak = agent.target.dialect.force_call_by_prefill
    agent.calls.toolbox = bench.toolbox.only(WEAK_TOOLS) if is_weak else bench.toolbox
    agent.system = system_text(bench.folder.path, is_weak=is_weak)


def _check_name(target: str, config: Config) -> None:
    """Raise UsageError or ConfigError for a model that can never be asked."""
    if "/" in target:
        provider = split_target(target)[0]
        config.catalog.provider(provider)
        config.key(provider)
    elif target not in config.aliases and target not in config.routes and "*" not in config.routes:
        from dragoman.routing.resolve import refuse_name

        refuse_name(target, config)
