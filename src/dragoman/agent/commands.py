"""The slash commands, such as `/help`. Each returns a page; the interface draws it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import msgspec

from dragoman.agent.pick_model import check_target, full_name
from dragoman.agent.safe_text import counted, plain_line
from dragoman.agent.session.compaction import FULL
from dragoman.agent.session.folder import find_session, list_sessions
from dragoman.agent.session.records import sum_spent
from dragoman.agent.session.session_file import Session
from dragoman.agent.start import fit_agent, learn_window, make_agent, new_session
from dragoman.agent.undo import undo_run
from dragoman.agent.wire_recorder import WireRecorder
from dragoman.errors import DragomanError, UsageError
from dragoman.types import ToolResult

if TYPE_CHECKING:
    from dragoman.agent.environment import Environment
    from dragoman.agent.interface import UserInterface
    from dragoman.agent.loop import Agent
    from dragoman.client import AsyncClient
    from dragoman.discovery.model_facts import ModelFacts


@final
class Page(msgspec.Struct, frozen=True):
    """A command's output: words, then a table. `ends`: the chat is over."""

    text: str = ""
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    ends: bool = False


#: Each command, its argument, and what it does, in the order of the help.
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "help": ("", "this list"),
    "models": ("[PROVIDER or MODEL]", "list the models that you can ask; with a model's name: as /model"),
    "model": ("[NAME]", "go on with another model: a route, provider/model, or its name alone"),
    "tools": ("", "what the model may call, and what it may do without asking"),
    "unfold": ("[N]", "the last result in full, as the model got it; N: the Nth last; so does Ctrl-O"),
    "wire": ("", "the last exchange: bytes, events and deviations side by side"),
    "cost": ("", "tokens and dollars of this session"),
    "undo": ("", "take back the file changes of the last turn that made some"),
    "compact": ("[undo]", "summarise the older part of the conversation, or undo that"),
    "save": ("[NAME]", "give the session a name; it is kept anyway"),
    "resume": ("[NAME]", "the sessions of this folder, or go on with one"),
    "clear": ("", "begin the conversation anew"),
    "quit": ("", "end (so does Ctrl-D)"),
}


def split_commands(text: str) -> list[str]:
    """Split commands typed ahead, one per line. Any other text is returned whole."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines if lines and all(line.startswith("/") for line in lines) else [text]


@final
class Commands:
    """The commands of one chat.

    Attributes:
        agent: the agent of the open session; another session has another agent.
        recording: the last exchange.
    """

    __slots__ = ("_bench", "_face", "_store", "agent", "client", "recording")

    def __init__(
        self, client: AsyncClient, agent: Agent, bench: Environment, *, face: UserInterface, store: Path
    ) -> None:
        self.client = client
        self.agent = agent
        self.recording = WireRecorder()
        self._bench = bench
        self._face = face
        self._store = store

    async def run(self, line: str) -> Page:
        """Run the line's command. An error is a page too."""
        name, _, argument = line.removeprefix("/").strip().partition(" ")
        name = {"exit": "quit", "q": "quit", "?": "help"}.get(name, name)
        works = self._works()
        meant = [name] if name in works else [each for each in works if name and each.startswith(name)]
        work = works[meant[0]] if len(meant) == 1 else None
        if work is None:
            return Page(f"unknown command /{plain_line(name, 40)}; /help lists them")
        try:
            return await work(argument.strip())
        except (DragomanError, OSError) as problem:
            return Page(plain_line(str(problem), 500))

    def _works(self) -> dict[str, Callable[[str], Awaitable[Page]]]:
        return {
            "help": self._help, "models": self._models, "model": self._model, "tools": self._tools,
            "unfold": self._unfold, "wire": self._wire, "cost": self._cost, "undo": self._undo,
            "compact": self._compact, "save": self._save, "resume": self._resume, "clear": self._clear,
            "quit": self._quit,
        }  # fmt: skip

    async def _help(self, argument: str) -> Page:
        rows = tuple((f"/{name} {usage}".strip(), words) for name, (usage, words) in COMMANDS.items())
        rows += (
            ("@FILE", "attach a file of the work folder to the prompt"),
            ("!COMMAND", "run a command yourself, in the sandbox; the model gets its output with your next prompt"),
        )
        keys = "Enter sends, Alt-Enter or Ctrl-J makes a new line, Tab completes, Ctrl-C stops the turn."
        return Page(keys, ("command", "does"), rows)

    # ------------------------------------------------------------ models

    async def _models(self, argument: str) -> Page:
        if argument and argument not in self.client.config.catalog.providers:
            return await self._model(argument)
        facts = await self.client.models(argument or None)
        current = self.agent.target.name
        rows = tuple(
            (
                "*" if one.target in (current, f"{current}:latest") else "",
                one.target,
                "?" if one.context is None else f"{one.context:,}",
                _claims(one),
                _proof(one),
            )
            for one in facts
        )
        words = "" if rows else "no server answers here and no provider's key is set"
        return Page(words, ("", "model", "context", "claims", "proven"), rows)

    async def _model(self, argument: str) -> Page:
        if not argument:
            return Page(f"now: {self.agent.session.target}; /model NAME goes on with another one")
        argument = await full_name(self.client, argument)
        facts = await check_target(self.client, argument)
        agent = self.agent
        before = agent.session.target
        agent.session.switch(argument)
        agent.known_window = facts.context if facts is not None else None
        fit_agent(agent, self._bench)
        words = [f"{before} → {argument} ({agent.target.protocol.name})"]
        if facts is None:
            words.append("nothing is known of it: whether it takes tools will show")
        elif facts.tools is None and facts.proven is None:
            words.append("whether it takes tools is not known")
        elif facts.disagreement:
            words.append(facts.disagreement)
        words += self._warnings()
        return Page("\n".join(words))

    def _warnings(self) -> list[str]:
        agent = self.agent
        tokens, window = agent.prompt_tokens(), agent.window
        words = []
        if agent.target.dialect.force_call_by_prefill:
            words.append("a very small model: it must make one call for each prompt, and its answers mean little")
        if window is not None and tokens > window * FULL:
            words.append(
                f"the conversation (about {tokens:,} tokens) does not fit its window of {window:,}: "
                "its older part will be summarised (/compact undo takes that back)"
            )
        return words

    # ------------------------------------------------------------ looking

    async def _tools(self, argument: str) -> Page:
        rows = tuple(
            (tool.name, plain_line(tool.description.partition("\n")[0], 90)) for tool in self.agent.calls.tools
        )
        rules = ", ".join(self._bench.approvals.rules) or "nothing but reading"
        holding = self._bench.holding
        return Page("\n".join([f"needs no asking: {rules}", holding.summary, *holding.gaps]), ("tool", "does"), rows)

    async def _unfold(self, argument: str) -> Page:
        """Show the Nth last result: its call and its text."""
        messages = self.agent.session.messages
        results = [part for message in messages for part in message.parts if isinstance(part, ToolResult)]
        if argument and not (argument.isascii() and argument.isdigit() and int(argument)):
            raise UsageError(f"expected /unfold N, the Nth last result, got {argument[:40]!r}")
        number = int(argument or 1)
        if number > len(results):
            return Page(f"there are {counted(len(results), 'result')}" if results else "there is no result yet")
        result = results[-number]
        calls = (call for message in reversed(messages) for call in message.tool_calls)
        call = next((call for call in calls if call.id == result.call_id), None)
        title = plain_line(f"{result.name} {call.arguments if call is not None else ''}", 300)
        return Page(f"{title}\n{result.text}")

    async def _wire(self, argument: str) -> Page:
        if not self.recording.request:
            return Page("nothing was asked yet")
        rows = tuple((row.data, row.events, row.deviations) for row in self.recording.rows())
        head = f"{self.recording.request}\nstatus {self.recording.status}"
        return Page(head, ("bytes", "events", "deviations"), rows)

    async def _cost(self, argument: str) -> Page:
        spent = sum_spent(self.agent.session.spent)
        dollars = spent.dollars or "no price is known"
        if spent.usd is not None and spent.unpriced:
            dollars = f"${spent.usd:f} and {counted(spent.unpriced, 'answer')} without a known price"
        tokens, window = self.agent.prompt_tokens(), self.agent.window
        share = f" of {window:,} ({tokens * 100 // window} %)" if window else ""
        return Page(
            f"{counted(spent.answers, 'answer')}: {spent.input:,} tokens in, {spent.output:,} out; {dollars}\n"
            f"the next prompt: about {tokens:,} tokens{share}"
        )

    # ------------------------------------------------------------ the session

    async def _undo(self, argument: str) -> Page:
        lines = undo_run(self.agent.session, self._bench.folder)
        return Page("\n".join(map(plain_line, lines)) or "no file change to take back")

    async def _compact(self, argument: str) -> Page:
        if argument == "undo":
            done = self.agent.session.unfold()
            return Page("the whole conversation is sent again" if done else "nothing was summarised")
        return Page("" if await self.agent.shorten() else "there is nothing to leave out yet")

    async def _save(self, argument: str) -> Page:
        if argument:
            self.agent.session.rename(argument)
        session = self.agent.session
        return Page(f"kept as {session.name or session.id}: {session.path}")

    async def _resume(self, argument: str) -> Page:
        if not argument:
            rows = tuple(
                (saved.name or saved.id, saved.target, plain_line(saved.first, 70))
                for saved in list_sessions(self._store, folder=self._bench.folder.path)
            )
            return Page("" if rows else "no session of this folder", ("session", "model", "began with"), rows)
        path = find_session(self._store, argument, folder=self._bench.folder.path)
        if path == self.agent.session.path:
            return Page("that is this session")
        session = Session.load(path)
        if Path(session.folder) != self._bench.folder.path:
            session.close()
            raise UsageError(f"that session belongs to {session.folder}")
        await self._enter(session)
        return Page(f"{counted(len(session.messages), 'message')} with {session.target}")

    async def _clear(self, argument: str) -> Page:
        await self._enter(new_session(self._store, self._bench, self.agent.session.target))
        return Page("a new conversation; /resume finds the old one")

    async def _enter(self, session: Session) -> None:
        self.agent.session.close()
        self.agent = make_agent(self.client, session, self._bench, self._face)
        await learn_window(self.agent, self.client)
        await self.agent.settle()

    async def _quit(self, argument: str) -> Page:
        return Page(ends=True)


def _claims(facts: ModelFacts) -> str:
    words = [word for word, claimed in (("tools", facts.tools), ("thinking", facts.thinking)) if claimed]
    return ", ".join(words) or ("?" if facts.tools is None else "no tools")


def _proof(facts: ModelFacts) -> str:
    return "–" if facts.proven is None else "tools work" if facts.proven else "tools fail"
