"""Draw an answer as it grows on a terminal: text, folded thinking, tool calls with their arguments as they come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never, final

from dragoman.cli.terminal import Paint, harmless
from dragoman.events import (
    Deviation,
    Event,
    Failure,
    Finish,
    NativeEvent,
    PartEvent,
    Reply,
    Start,
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
    UsageUpdate,
)
from dragoman.routing.attempts import before_the_answer
from dragoman.types import Media

_DOT_EVERY: Final = 200  # characters of folded thinking


@final
class Drawing:
    """Turns events into terminal output. One part is open at a time (`dragoman.response_stages.Sequencer`)."""

    __slots__ = ("_line_open", "_paint", "_thinking", "_unfold")

    def __init__(self, paint: Paint, *, unfold: bool = False) -> None:
        """Create it. `unfold` shows thinking as text."""
        self._paint = paint
        self._unfold = unfold
        self._thinking = 0  # characters of the open thinking part
        self._line_open = False

    def draw(self, events: Sequence[Event]) -> str:
        """Return what these events add."""
        return "".join(map(self._draw, events))

    def _draw(self, event: Event) -> str:
        match event:
            case TextDelta(_, text):
                return self._put(harmless(text))
            case ToolCallDelta(_, text):
                return self._put(self._paint("cyan", harmless(text)))
            case ThinkingDelta(_, text):
                return self._think(text)
            case ThinkingStart():
                self._thinking = 0
                return self._fresh_line() + ("" if self._unfold else self._put(self._paint("dim", "thinking ")))
            case TextStart():
                return self._fresh_line()
            case ToolCallStart(_, _, name):
                return self._fresh_line() + self._put(self._paint("bold", harmless(name)) + "(")
            case ThinkingEnd():
                return ("" if self._unfold else self._put(self._paint("dim", f" {self._thinking:,} characters"))) + (
                    self._fresh_line()
                )
            case TextEnd():
                return self._fresh_line()
            case ToolCallEnd():
                return self._put(")") + self._fresh_line()
            case ToolCallFailed(_, _, name, _, message):
                return self._fail(f"{name or 'a tool call'} failed: {message}")
            case PartEvent(_, part):
                kind = part.kind if isinstance(part, Media) else "a part that only its protocol knows"
                return self._fresh_line() + self._put(self._paint("dim", f"[{kind}]")) + self._fresh_line()
            case Finish() | Failure():
                return self._fresh_line()
            case Start() | UsageUpdate() | Deviation() | NativeEvent():
                return ""
            case _:
                assert_never(event)

    def _think(self, text: str) -> str:
        before = self._thinking // _DOT_EVERY
        self._thinking += len(text)
        shown = harmless(text) if self._unfold else "." * (self._thinking // _DOT_EVERY - before)
        return self._put(self._paint("dim", shown))

    def _fail(self, message: str) -> str:
        return self._fresh_line() + self._put(self._paint("red", harmless(message))) + self._fresh_line()

    def _put(self, text: str) -> str:
        if text:
            self._line_open = not text.endswith("\n")
        return text

    def _fresh_line(self) -> str:
        return self._put("\n") if self._line_open else ""


def render_summary(reply: Reply) -> str:
    """Render the end of an answer in one line: why it stopped, tokens, cost, deviations, targets that failed before.

    Return "" if there is nothing to say but that it failed.
    """
    usage = reply.usage
    words: list[str] = [] if reply.stop_reason == "error" else [reply.stop_reason]
    if usage.input is not None or usage.output is not None:
        counts = (f"{'?' if count is None else f'{count:,}'}" for count in (usage.input, usage.output))
        words.append("{} in, {} out".format(*counts))
    if reply.cost is not None:
        words.append(f"${format(reply.cost.usd, 'f')}")
    codes = list(dict.fromkeys(deviation.code for deviation in reply.deviations))
    if codes:
        words.append(f"odd: {', '.join(codes)}")
    if fallback := before_the_answer(reply.attempts):
        words.append(fallback)
    return " · ".join(words)
