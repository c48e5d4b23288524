"""What is open while an answer is read: the text that is scanned, and the call that was found in it."""

from __future__ import annotations

from dragoman.arguments_text import ArgumentText
from dragoman.events import TextStart, ThinkingStart
from dragoman.stages.rescue.scan import Found, Scanner


class Part:
    """A text or thinking part that is scanned."""

    __slots__ = ("held", "index", "is_ended", "is_thinking", "raw", "scanner", "space", "start")

    def __init__(self, start: TextStart | ThinkingStart, scanner: Scanner) -> None:
        self.start = start
        self.scanner = scanner
        self.index = -1  # of the part that is open in the output
        self.space = ""  # white space behind a call: markup, unless prose follows
        self.is_thinking = isinstance(start, ThinkingStart)
        self.held: list[Found] = []  # of thinking: what was found from its first call on
        self.raw: list[str] = []  # of thinking: the text that has not left
        self.is_ended = False


class Call:
    """A rescued call that is open."""

    __slots__ = ("id", "index", "name", "text", "waits")

    def __init__(self, index: int, call_id: str, name: str, *, waits: bool) -> None:
        self.index = index
        self.id = call_id
        self.name = name
        self.text = ArgumentText()
        self.waits = waits  # it may say again what a structured call said
