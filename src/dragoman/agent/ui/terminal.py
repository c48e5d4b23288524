"""The agent at a terminal: prompts and commands in, answers, approvals and results out."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import sys
import textwrap
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from dragoman.agent.attachments import Attachments
from dragoman.agent.commands import COMMANDS, Commands, split_commands
from dragoman.agent.environment import Environment
from dragoman.agent.interface import Notice, StepEnded, Verdict
from dragoman.agent.limits import Meter, Reason
from dragoman.agent.pick_model import EMBEDDED
from dragoman.agent.safe_text import counted, plain_line, revealed_text
from dragoman.agent.session.records import sum_spent
from dragoman.agent.session.session_file import Session
from dragoman.agent.start import Wish, learn_window, make_agent, make_bench, open_session, session_store
from dragoman.agent.tool_plan import Outcome, Plan, ToolFailed
from dragoman.agent.ui.prompt import Line, Words
from dragoman.config import Config
from dragoman.errors import DragomanError, UsageError
from dragoman.events import Event
from dragoman.types import ToolCall

if TYPE_CHECKING:
    from dragoman.agent.ui.approval_view import Showing
    from dragoman.agent.ui.drawing import Screen
    from dragoman.client import AsyncClient

T = TypeVar("T")

_REASONS: Final[dict[Reason, str]] = {
    "interrupted": "stopped",
    "steps": "the limit of steps is reached",
    "minutes": "the limit of time is reached",
    "usd": "the limit of cost is reached",
    "tokens": "the limit of tokens is reached",
    "repeated_call": "the model has made the same call three times",
    "repeated_error": "the same error has come three times",
}
_PULSE_SECONDS: Final = 0.12
_CHOICE: Final = "[y] this once  [n] no, or say why not: "
_CHOICES: Final = "[y] once  [s] for identical calls of this session  [n] no, or say why not: "


def chat(wish: Wish, config: Config) -> int:
    """Chat until the user leaves. Return the exit status."""
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise UsageError("expected a terminal; for scripts there is: dragoman chat -p PROMPT")
    bench = make_bench(wish, config)
    try:
        return asyncio.run(Chat(wish, config, bench).run())
    finally:
        bench.close()


@final
class Chat:
    """One chat, and the agent's interface: it shows events and asks the user.

    Everything but the prompt line is loaded after the first line was typed.
    """

    __slots__ = (
        "_attachments",
        "_bench",
        "_commands",
        "_config",
        "_line",
        "_looking",
        "_models",
        "_screen",
        "_session",
        "_stack",
        "_used",
        "_wish",
    )

    def __init__(self, wish: Wish, config: Config, bench: Environment) -> None:
        self._wish = wish
        self._config = config
        self._bench = bench
        self._session: Session | None = None
        self._commands: Commands | None = None
        self._screen: Screen | None = None
        self._models: list[str] = []
        self._looking: asyncio.Task[None] | None = None
        self._stack = contextlib.AsyncExitStack()  # connections of the sitting
        self._used: StepEnded | None = None
        self._attachments = Attachments(bench.typed_tools)
        words = Words(tuple(COMMANDS), lambda: self._models, bench.folder)
        history = session_store().parent / "chat-history"
        self._line = Line(words, history=history, status=self._status)

    async def run(self) -> int:
        """Run the loop of prompts. Return the exit status."""
        self._session, why = await open_session(self._wish, self._config, self._bench)
        sys.stdout.write(_greeting(self._session, why, self._bench))
        sys.stdout.flush()
        try:
            if self._session.messages:
                self._drawing().show_history(self._session.messages, self._session.titles)
            if self._session.pending:
                await self._opened()
                await self._interruptible(self._work().agent.settle())
            while (text := await self._next_line()) is not None:
                await self._opened()
                for line in split_commands(text):
                    if line.startswith("/"):
                        if await self._command(line):
                            return 0
                    elif line.startswith("!"):
                        await self._run_command(line[1:].strip())
                    elif line:
                        await self._turn(line)
        finally:
            await self._close()
        return 0

    async def _next_line(self) -> str | None:
        """Return what was typed, or None at the end."""
        while True:
            try:
                return await self._line.read()
            except KeyboardInterrupt:
                if not self._line.typed:
                    sys.stdout.write("Ctrl-D or /quit ends the chat\n")
            except EOFError:
                return None

    async def _opened(self) -> None:
        """Load what the first line needs."""
        if self._commands is not None or self._session is None:
            return
        from dragoman.client import AsyncClient

        screen = self._drawing()
        client = AsyncClient(self._config, on_wire=self._on_wire)
        # Ctrl-C at a question about a changed tool leaves out the tools that were still to come.
        for problem in await self._interruptible(self._bench.reach_remotes(self._stack, self._config, self)) or ():
            screen.say(problem, "yellow")
        agent = make_agent(client, self._session, self._bench, self)
        self._commands = Commands(client, agent, self._bench, face=self, store=session_store())
        await learn_window(agent, client)
        self._looking = asyncio.create_task(self._look_around(client))

    def _drawing(self) -> Screen:
        """Return the screen, loaded at the first use."""
        if self._screen is None:
            from rich.console import Console

            from dragoman.agent.ui.drawing import Screen

            self._screen = Screen(Console(highlight=False, markup=False, emoji=False))
        return self._screen

    async def _look_around(self, client: AsyncClient) -> None:
        """Learn the models' names for completion, while the first answer comes."""
        with contextlib.suppress(DragomanError):
            self._models = [one.target for one in await client.requester.models()]

    async def _close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        await self._stack.aclose()
        if self._commands is not None:
            self._commands.agent.session.close()
            await self._commands.client.close()
        elif self._session is not None:
            self._session.close()

    def _on_wire(self, *seen: Any) -> None:
        self._work().recording.take(*seen)

    # ------------------------------------------------------------ a turn

    async def _turn(self, prompt: str) -> None:
        agent, screen = self._work().agent, self._see()
        notes = await self._interruptible(self._attachments.add_files(prompt, self._may_attach, agent.fitted))
        if notes is None:  # stopped at the question about a file
            self._attachments.take()
            screen.say(_REASONS["interrupted"], "yellow")
            return
        for note in notes:
            screen.say(note)
        try:
            reason = await self._interruptible(agent.run(prompt, self._attachments.take()), "waiting for the model")
        except (DragomanError, OSError) as problem:
            screen.say(plain_line(str(problem), 600), "red")
            return
        screen.close()
        if reason in _REASONS:
            screen.say(_REASONS[reason], "yellow")
        screen.say(_summary(agent.meter, self._used))

    async def _command(self, line: str) -> bool:
        """Run a command of the chat. Return whether it ends the chat."""
        work = self._work()
        session = work.agent.session
        page = await self._interruptible(work.run(line), "working")
        if page is None:
            return False
        if work.agent.session is not session:  # what was meant for one conversation goes into no other
            self._attachments.take()
            self._used = None
            session = work.agent.session
            self._see().show_history(session.messages, session.titles)
        self._see().show_page(page)
        return page.ends

    async def _run_command(self, script: str) -> None:
        """Run a command that the user typed, without a question. The model gets its output with the next prompt."""
        screen = self._see()
        try:
            plan = self._attachments.plan_command(script)

            async def run() -> Outcome:
                return await plan.do()

            outcome = await self._interruptible(run(), "the command is running")
        except (ToolFailed, OSError) as problem:
            screen.say(plain_line(str(problem), 600), "yellow")
            return
        if outcome is None:
            screen.say("the command was stopped", "yellow")
            return
        screen.show_output(outcome)
        screen.say(f"{plan.facts}: the model gets this with your next prompt")
        self._attachments.add_output(script, outcome, self._work().agent.fitted)

    async def _may_attach(self, plan: Plan, why: str) -> bool:
        self._see().show_plan(plan)
        return (await self._ask(f"{why} [y/n] ", "yn")).lower() in ("y", "yes")

    async def _interruptible(self, work: Coroutine[Any, Any, T], doing: str = "") -> T | None:
        """Return the work's value; Ctrl-C stops it. The loop then returns "interrupted", other work None.

        `doing`: shown as long as nothing else is drawn.
        """
        screen = self._drawing()
        task = asyncio.create_task(work)
        pulse = asyncio.create_task(_pulse(screen))
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        screen.wait(doing)
        try:
            with self._line.unseen():
                return await task
        except asyncio.CancelledError:
            return None
        finally:
            pulse.cancel()
            screen.wait("")
            loop.remove_signal_handler(signal.SIGINT)

    # ------------------------------------------------------------ the face

    def show(self, events: Sequence[Event]) -> None:
        """Draw the answer as it comes."""
        self._see().show(events)

    def tell(self, notice: Notice) -> None:
        """Draw a notice."""
        if isinstance(notice, StepEnded):
            self._used = notice
        self._see().tell(notice)

    async def approve(self, plan: Plan, call: ToolCall, why: str = "") -> Verdict:
        """Show exactly what would be done, and ask. If not all of it was shown, ask again."""
        showing = self._see().show_plan(plan)
        if why:
            self._see().say(plain_line(why, 400), "yellow")
        may_stay = plan.asks != "always"
        answer = await self._ask(_CHOICES if may_stay else _CHOICE, "ysn" if may_stay else "yn")
        is_yes = answer.lower() in ("y", "yes") or (answer.lower() in ("s", "session") and may_stay)
        if is_yes and showing.left_out and not await self._knows(plan, showing):
            return Verdict("no")
        match answer.lower():
            case "y" | "yes":
                return Verdict("once")
            case "s" | "session" if may_stay:
                return Verdict("session")
            case "" | "n" | "no":
                return Verdict("no")
            case _:
                return Verdict("no", f"the user said: {answer}")

    async def _knows(self, plan: Plan, showing: Showing) -> bool:
        """Return whether the user means all of it, including what was not shown."""
        while True:
            words = (
                f"{counted(showing.lines, 'line')}, {counted(showing.left_out, 'row')} not shown. [y] yes, all of it"
            )
            answer = (await self._ask(f"{words}  [a] show all  [n] no: ", "yan")).lower()
            if answer not in ("a", "all"):
                return answer in ("y", "yes")
            self._see().show_plan(plan, whole=True)

    async def go_on(self, reason: Reason) -> bool:
        """Ask whether the run may continue past a limit."""
        self._see().say(_REASONS.get(reason, reason), "yellow")
        return (await self._ask("go on, as far again? [y/n] ", "yn")).lower() in ("y", "yes")

    async def run_again(self, call: ToolCall) -> bool:
        """Ask whether to repeat a call whose outcome is unknown."""
        self._see().say(plain_line(revealed_text(str(call)), 300), "bold")
        return (await self._ask("run it again? [y/n] ", "yn")).lower() in ("y", "yes")

    async def _ask(self, question: str, keys: str) -> str:
        """Return an answer; each of `keys` is one without Enter. Ctrl-C and Ctrl-D at the question stop the turn."""
        doing = self._see().wait("")
        try:
            return await self._line.ask(question, keys=keys)
        except (KeyboardInterrupt, EOFError):
            raise asyncio.CancelledError from None
        finally:
            self._see().wait(doing)
            task = asyncio.current_task()
            if task is not None:  # the prompt had the signal for itself
                asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)

    # ------------------------------------------------------------ parts that are there after the first line

    def _work(self) -> Commands:
        assert self._commands is not None
        return self._commands

    def _see(self) -> Screen:
        assert self._screen is not None
        return self._screen

    def _status(self) -> str:
        session = self._commands.agent.session if self._commands is not None else self._session
        words = [session.target if session is not None else "…", str(_short(self._bench.folder.path))]
        if self._used is not None:
            words.append(_meter(self._used))
        if session is not None and session.spent:
            spent = sum_spent(session.spent)
            words += [f"{spent.input:,} in, {spent.output:,} out"] if spent.input or spent.output else []
            words += [spent.dollars] if spent.dollars else []
        return " · ".join(words)


async def _pulse(screen: Screen) -> None:
    """Animate the spinner until cancelled."""
    while True:
        await asyncio.sleep(_PULSE_SECONDS)
        screen.tick()


def _greeting(session: Session, why: str, bench: Environment) -> str:
    holding = bench.holding
    place = f"{session.target} in {_short(bench.folder.path)}{f' ({why})' if why else ''}"
    lines = [f"dragoman chat · {place} · {holding.summary}", *holding.gaps]
    if session.messages:
        lines.append(f"{counted(len(session.messages), 'message')} so far")
    if session.target == EMBEDDED:
        lines.append("This model is very small. It must make one call for each prompt, and its answers mean little.")
        lines.append("It only shows that everything works. Name a real one: dragoman chat provider/model, or /models.")
    width = shutil.get_terminal_size().columns
    shown = (plain_line(line, 300) for line in [*lines, "/help lists the commands."])
    return "".join(f"{textwrap.fill(line, width, break_long_words=False)}\n" for line in shown)


def _summary(meter: Meter, used: StepEnded | None) -> str:
    words = [counted(meter.steps, "step")]
    if tokens := meter.tokens:
        words.append(tokens)
    if meter.cost:
        words.append(f"${meter.cost:f}{' and more' if meter.unpriced else ''}")
    if used is not None:
        words.append(_meter(used))
    return " · ".join(words)


def _meter(used: StepEnded) -> str:
    if used.window is None:
        return f"context {used.prompt:,} tokens"
    return f"context {used.prompt:,} of {used.window:,} ({used.prompt * 100 // used.window} %)"


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path)
