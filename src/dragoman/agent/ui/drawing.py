"""Draw the agent's work with rich: the answer as it grows, calls, results, diffs.

Foreign text is never markup, and its escape sequences are removed before it is drawn.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final, final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from dragoman.agent.commands import Page
from dragoman.agent.interface import CallBegins, CallEnded, Failed, Interrupted, Notice, Shortened, StepEnded
from dragoman.agent.safe_text import counted, plain_line, plain_text, revealed_text
from dragoman.agent.tool_plan import Outcome, Plan
from dragoman.agent.ui.approval_view import Showing, show_action, show_head
from dragoman.agent.ui.blocks import BLOCK_LIMIT, Blocks
from dragoman.events import (
    Event,
    Failure,
    Finish,
    PartEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
)
from dragoman.routing.attempts import before_the_answer
from dragoman.types import Message, ToolCall, ToolResult
from dragoman.types import Text as Words

#: What is waited for, when it is an answer.
MODEL: Final = "waiting for the model"
_SIGNS: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SIGN_SECONDS: Final = 0.12
_OLD_PROMPTS: Final = 2
_OWN_LINES: Final = 200
_UNFOLDS: Final = " (Ctrl-O shows all)"
_FRAME_SECONDS: Final = 0.06
_RESULT_LINES: Final = 6
_TAIL: Final = 4_096  # characters
_MARKDOWN_SECONDS: Final = 3.0  # of one part of an answer
_DIFF_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


@final
class Screen:
    """Draws events and notices. One part of the answer is open at a time."""

    __slots__ = (
        "_approved", "_blocks", "_doing", "_ended", "_kind", "_last", "_live", "_running", "_since", "_size", "_spent",
        "_tail", "_title", "console",
    )  # fmt: skip

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live: Live | None = None
        self._last = 0.0
        self._kind = ""  # what is open: "text", "thinking", "call", or nothing
        self._blocks = Blocks()  # of a text
        self._tail = ""  # the last characters of what is open, and how many there were
        self._size = 0
        self._spent = 0.0  # seconds that Markdown has taken
        self._title = ""
        self._approved = ""  # the plan that was shown last for approval, so that it is not shown again
        self._doing = ""  # what is waited for, and since when
        self._since = 0.0
        self._running: dict[str, Plan] = {}  # calls that began and are not shown as ended, by id, in their order
        self._ended: dict[str, CallEnded] = {}  # outcomes that wait for those of calls before

    # ------------------------------------------------------------ signs of life

    def wait(self, doing: str) -> str:
        """Show what is going on while nothing else is drawn; "" shows nothing. Return the previous text."""
        before, self._doing, self._since = self._doing, doing, time.monotonic()
        if not doing and not self._kind:
            self._stop()
        return before

    def tick(self) -> None:
        """Draw the next frame of the spinner."""
        if self._doing and not self._kind and self.console.is_terminal:
            now = time.monotonic()
            sign = _SIGNS[int(now / _SIGN_SECONDS) % len(_SIGNS)]
            self._refresh(Text(f"{sign} {self._doing}  {now - self._since:.0f} s", "dim"))

    # ------------------------------------------------------------ the answer

    def show(self, events: Sequence[Event]) -> None:
        """Draw the new part of the answer. By then no call runs."""
        self._running.clear()
        for event in events:
            match event:
                case TextDelta(_, text) | ThinkingDelta(_, text) | ToolCallDelta(_, text):
                    self._grow(plain_text(text))
                case TextStart():
                    self._open("text")
                case ThinkingStart():
                    self._open("thinking")
                case ToolCallStart(_, _, name):
                    self._open("call", plain_line(name, 60))
                case TextEnd() | ThinkingEnd() | ToolCallEnd() | ToolCallFailed() | Finish() | Failure():
                    self.close()
                case PartEvent():
                    self._print(Text("[a part that is no text]", "dim"))
                case _:
                    pass
        self._draw()

    def close(self) -> None:
        """Finish what is open: print the live region for good."""
        kind, self._kind = self._kind, ""
        self._stop()
        if kind == "text":
            self._print_block(self._blocks.rest)
        elif kind == "thinking" and self._size:
            self._print(Text(f"thought for {self._size:,} characters", "dim italic"))

    def _open(self, kind: str, title: str = "") -> None:
        self.close()
        self._kind, self._title = kind, title
        self._blocks, self._tail, self._size, self._spent = Blocks(), "", 0, 0.0

    def _grow(self, text: str) -> None:
        """Print complete blocks. Keep only as much of the rest as is drawn."""
        if self._kind == "text":
            for whole in self._blocks.add(text):
                self._stop()
                self._print_block(whole)
        self._size += len(text)
        self._tail = (self._tail + text[-_TAIL:])[-_TAIL:]

    def _print_block(self, text: str) -> None:
        """Print a block as Markdown, or as text once Markdown has taken long: the cost of hostile text is bounded."""
        if not text.strip():
            return
        began = time.monotonic()
        is_plain = self._spent > _MARKDOWN_SECONDS or len(text) > BLOCK_LIMIT
        self._print(Text(text.strip("\n")) if is_plain else Markdown(text.strip()))
        self._spent += time.monotonic() - began

    def _draw(self) -> None:
        if not self._kind or not self.console.is_terminal:
            return
        now = time.monotonic()
        if now - self._last < _FRAME_SECONDS:
            return
        self._last = now
        self._refresh(self._region())

    def _refresh(self, region: RenderableType) -> None:
        if self._live is None:
            self._live = Live(console=self.console, auto_refresh=False, transient=True, vertical_overflow="crop")
            self._live.start()
        self._live.update(region, refresh=True)

    def _region(self) -> RenderableType:
        width, height = self.console.width, max(self.console.height - 4, 3)
        if self._kind == "thinking":
            return Text(f"thinking… {self._size:,} characters", "dim italic")
        if self._kind == "call":
            line = " ".join(self._tail.split())
            room = max(width - len(self._title) - 6, 10)
            return Text.assemble((self._title, "bold"), "(", (line[-room:], "cyan"))
        lines = self._blocks.rest.split("\n")
        return Text("\n".join(lines[-height:]))

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    # ------------------------------------------------------------ what happens

    def tell(self, notice: Notice) -> None:
        """Draw a notice."""
        match notice:
            case CallBegins(call, plan):
                self.close()
                if not self._running:
                    self._entitle(plan)
                self._running[call.id] = plan
                self.wait(f"{plain_line(plan.tool, 40)} is running")
            case CallEnded(call):
                self.close()
                self._ended[call.id] = notice
                self._show_ended()
            case Shortened(messages, before, after, summary, by_model):
                who = "by the model" if by_model else "without the model"
                counted = "1 message is" if messages == 1 else f"{messages} messages are"
                head = f"{counted} summarised, {who}: {before:,} → {after:,} tokens"
                self._print(Group(Text(head, "yellow"), Text(_clip(plain_text(summary), 12), "dim")))
                self._print(Text("/compact undo sends all of it again", "dim"))
            case Failed(failure):
                self.close()
                self._print(Text(f"{failure.kind}: {plain_line(failure.message, 600)}", "red"))
            case Interrupted(call):
                self._print(
                    Text(f"{plain_line(call.name)} was cut off; whether it had its effect is not known", "yellow")
                )
            case StepEnded(reply):
                self.close()
                if fallback := before_the_answer(reply.attempts):
                    self.say(plain_line(fallback, 300))

    def _entitle(self, plan: Plan) -> None:
        if plan.identity != self._approved:
            self._print(_title_of(plan))

    def _show_ended(self) -> None:
        """Show concurrent calls in the order in which they began, each result under its call."""
        for id in [id for id in self._ended if id not in self._running]:  # these never began
            self._show_outcome(self._ended.pop(id))
        while self._running and (first := next(iter(self._running))) in self._ended:
            del self._running[first]
            self._show_outcome(self._ended.pop(first))
            if self._running:
                self._entitle(next(iter(self._running.values())))
        if not self._running:
            self.wait(MODEL)

    def _show_outcome(self, ended: CallEnded) -> None:
        is_new = ended.plan is not None and ended.plan.identity != self._approved
        self._approved = ""
        self._print(_outcome(ended, with_diff=is_new))

    def show_plan(self, plan: Plan, *, whole: bool = False) -> Showing:
        """Show what is to be approved as it will be done: all of it, or its first and last rows."""
        self.close()
        self._approved = plan.identity
        showing = show_action(plan, width=self.console.width, height=self.console.height, whole=whole)
        head = show_head(plan, width=self.console.width)
        self._print(Group(head, showing.text))
        if showing.is_odd:
            self.say("characters that are not what they look like are written out as <U+…>", "yellow")
        return showing

    def show_page(self, page: Page) -> None:
        """Show a command's page."""
        if page.text:
            self._print(Text(plain_text(page.text)))
        if page.rows:
            table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
            for name in page.header:
                table.add_column(Text(name), overflow="fold")
            for row in page.rows:
                table.add_row(*(Text(plain_text(cell)) for cell in row))
            self._print(table)

    def say(self, words: str, style: str = "dim") -> None:
        """Print a line of our own."""
        self.close()
        self._print(Text(plain_text(words), style))

    def show_output(self, outcome: Outcome) -> None:
        """Show the output of a command that the user typed."""
        self._print(
            Text(_clip(plain_text(outcome.shown or outcome.text), _OWN_LINES), "red" if outcome.is_error else "")
        )

    def show_history(self, messages: Sequence[Message], titles: Mapping[str, str]) -> None:
        """Show the end of a resumed conversation: the last prompts and what followed. `titles`: of its calls, by id."""
        prompts = [place for place, message in enumerate(messages) if message.role == "user"]
        first = prompts[-_OLD_PROMPTS] if len(prompts) > _OLD_PROMPTS else 0
        if first:
            self.say(f"… {counted(first, 'message')} before")
        for message in messages[first:]:
            for place, part in enumerate(message.parts):
                match part:
                    case Words(text) if message.role == "user":
                        self._print(Text(_first(f"› {text}" if not place else text, 3), "cyan"))
                    case Words(text):
                        self._spent = 0.0
                        self._print_block(text)
                    case ToolCall(id):
                        line = plain_line(revealed_text(titles.get(id) or str(part)), 160)
                        self._print(Text.assemble(("▸ ", "cyan"), (line, "bold")))
                    case ToolResult():
                        self._print(Text(_indented(_clip(plain_text(part.text), _RESULT_LINES, _UNFOLDS)), "dim"))
                    case _:
                        pass

    def _print(self, renderable: RenderableType) -> None:
        self._stop()
        self.console.print(renderable, highlight=False, soft_wrap=False)


def _title_of(plan: Plan) -> Text:
    return Text.assemble(("▸ ", "cyan"), (plain_line(plan.title, 160), "bold"))


def _outcome(ended: CallEnded, *, with_diff: bool) -> RenderableType:
    shown = plain_text(ended.outcome.shown or ended.outcome.text)
    if not ended.was_run:
        return Text(f"  {plain_line(ended.call.name, 60)}: {plain_line(shown, 300)}", "yellow")
    body = Text(_indented(_clip(shown, _RESULT_LINES, _UNFOLDS)))
    body.stylize("red" if ended.outcome.is_error else "dim")
    if with_diff and ended.plan is not None and ended.plan.diff and not ended.outcome.is_error:
        return Group(draw_diff(_clip(ended.plan.diff, 40)), body)
    return body


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))


def draw_diff(diff: str) -> Text:
    """Return a coloured diff."""
    out = Text()
    for line in diff.rstrip("\n").split("\n"):
        out.append(f"{line}\n", _DIFF_COLOURS.get(line[:1], ""))
    out.rstrip()
    return out


def _clip(text: str, lines: int, note: str = "") -> str:
    """Return the last lines of a text, and how many are missing."""
    every = text.rstrip("\n").split("\n")
    if len(every) <= lines:
        return "\n".join(every)
    return "\n".join([f"… {counted(len(every) - lines, 'line')} before{note}", *every[-lines:]])


def _first(text: str, lines: int) -> str:
    """Return the first lines of a text, and how many are missing."""
    every = plain_text(text).rstrip("\n").split("\n")
    return "\n".join(
        every if len(every) <= lines else [*every[:lines], f"… {counted(len(every) - lines, 'line')} more"]
    )
