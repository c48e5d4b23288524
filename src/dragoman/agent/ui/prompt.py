"""The input line: history, several lines, completion of commands, models and files.

No key is lost: what is typed while the agent works stands at the next prompt, unsent, and answers no question.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, final

from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from dragoman.agent.safe_text import plain_line, plain_text
from dragoman.agent.tool_plan import ToolFailed
from dragoman.agent.work_folder import WorkFolder

_MOST: Final = 50
#: Longer than the time between two keys of somebody who types words.
_MORE_SECONDS: Final = 0.4


@final
class Words(Completer):  # prompt_toolkit asks for one of its own kind
    """Completes commands after "/", models after /model, files after "@", and paths of the work folder anywhere."""

    def __init__(self, commands: Sequence[str], models: Callable[[], Iterable[str]], folder: WorkFolder) -> None:
        self._commands = commands
        self._models = models
        self._folder = folder

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield the completions at the cursor."""
        text = document.text_before_cursor
        word = text.split(" ")[-1].split("\n")[-1]
        if text.startswith("/") and " " not in text:
            found = [f"/{name}" for name in self._commands]
        elif text.startswith(("/model ", "/models ")):
            found = list(self._models())
        elif word.startswith("@"):
            found = [f"@{path}" for path in self._paths(word[1:])]
        elif complete_event.completion_requested:
            found = self._paths(word)
        else:
            return
        for each in [each for each in found if each.startswith(word)][:_MOST]:
            yield Completion(each, start_position=-len(word))

    def _paths(self, word: str) -> list[str]:
        head, slash, begun = word.rpartition("/")
        try:
            entries, _ = self._folder.entries(self._folder.parts(head or "."), _MOST, beginning=begun)
        except ToolFailed:
            return []
        return [f"{head}{slash}{entry.name}{'/' if entry.kind == 'folder' else ''}" for entry in entries]


@final
class Line:
    """Reads what the user types."""

    __slots__ = ("_asking", "_kept", "_session", "_unfolded")

    def __init__(self, words: Words, *, history: Path | None, status: Callable[[], str]) -> None:
        """Create it. `history`: the file of what was typed; None keeps nothing. `status`: the line at the bottom."""
        self._kept = ""  # what was typed when nobody asked for it
        self._unfolded = 0  # results that Ctrl-O has shown since something else was typed
        self._session: PromptSession[str] = PromptSession(
            history=_history(history),
            completer=ThreadedCompleter(words),
            complete_while_typing=Condition(self._is_completed),
            key_bindings=_keys(self._unfold),
            multiline=True,
            prompt_continuation="  ",
            bottom_toolbar=lambda: FormattedText([("class:bottom-toolbar", plain_line(status(), 300))]),
            enable_open_in_editor=False,
            mouse_support=False,
        )
        self._asking: PromptSession[str] = PromptSession(history=InMemoryHistory())

    def _is_completed(self) -> bool:
        """Return whether completion needs no Tab: for commands, and files behind "@"."""
        text = self._session.default_buffer.document.text_before_cursor
        return text.startswith("/") or text.split(" ")[-1].startswith("@")

    @property
    def typed(self) -> str:
        """Return what stands at the prompt, or stood there when it was left."""
        return self._session.default_buffer.text

    async def read(self) -> str:
        """Return a prompt or a command. Raises EOFError at Ctrl-D, KeyboardInterrupt at Ctrl-C."""
        kept, self._kept = self._kept, ""
        line = (await self._session.prompt_async(FormattedText([("bold ansicyan", "› ")]), default=kept)).strip()
        if not line.startswith("/unfold"):
            self._unfolded = 0
        return line

    def _unfold(self, event: KeyPressEvent) -> None:
        """Leave the line for a command that shows the last result, or the one before it. The typed text stays."""
        self._kept = event.current_buffer.text
        self._unfolded += 1
        event.app.exit(result=f"/unfold {self._unfolded}")

    async def ask(self, question: str, *, keys: str = "") -> str:
        """Return a short answer, which no history keeps. Text typed before the question is no answer. Raises as `read`.

        One of `keys` is an answer without Enter, unless more is typed within `_MORE_SECONDS`, for example a reason that
        begins with that letter.
        """
        self._kept += self._typed_before()
        buffer = self._asking.default_buffer
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle | None = None

        def answer(text: str) -> None:
            if buffer.text == text and self._asking.app.is_running:
                buffer.validate_and_handle()

        def look(_: Buffer) -> None:
            nonlocal timer
            if timer is not None:
                timer.cancel()
            text = buffer.text
            timer = loop.call_later(_MORE_SECONDS, answer, text) if len(text) == 1 and text.lower() in keys else None

        buffer.on_text_changed += look
        try:
            return (await self._asking.prompt_async(FormattedText([("bold", question)]))).strip()
        finally:
            buffer.on_text_changed -= look
            if timer is not None:
                timer.cancel()

    def _typed_before(self) -> str:
        """Return what was typed and not read, and remove it from the terminal."""
        source = self._asking.input
        text = "".join(press.data for press in get_typeahead(source))
        with contextlib.suppress(ImportError, OSError, ValueError):
            text += _pending(source.fileno()).decode("utf-8", "ignore")
        text = plain_text(text.replace("\r", "\n")).replace("\0", "").replace("�", "")
        return text if text.strip() else ""

    @contextlib.contextmanager
    def unseen(self) -> Iterator[None]:
        """Keep typed text from appearing between the agent's lines; it waits for the next prompt."""
        source = self._asking.input
        try:
            import termios

            before = termios.tcgetattr(source.fileno())
        except (ImportError, OSError, ValueError):
            yield
            return
        quiet = [*before]
        quiet[3] &= ~termios.ECHO
        termios.tcsetattr(source.fileno(), termios.TCSANOW, quiet)
        try:
            yield
        finally:
            termios.tcsetattr(source.fileno(), termios.TCSANOW, before)


def _pending(terminal: int) -> bytes:
    """Return the unread input of a terminal, at most 64 KiB."""
    import termios

    before = termios.tcgetattr(terminal)
    at_once = [*before[:6], [*before[6]]]
    at_once[3] &= ~termios.ICANON  # lines that were not ended, too
    at_once[6][termios.VMIN], at_once[6][termios.VTIME] = 0, 0
    termios.tcsetattr(terminal, termios.TCSANOW, at_once)
    try:
        return os.read(terminal, 65_536)
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def _history(path: Path | None) -> History:
    if path is None:
        return InMemoryHistory()
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        return FileHistory(str(path))
    return InMemoryHistory()


def _keys(unfold: Callable[[KeyPressEvent], None]) -> KeyBindings:
    """Return the key bindings: Enter sends; Alt-Enter, Ctrl-J or a backslash before Enter begin a new line; Ctrl-O
    unfolds a result.
    """
    keys = KeyBindings()
    keys.add("c-o")(unfold)

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.apply_completion(buffer.complete_state.current_completion)
        elif buffer.document.char_before_cursor == "\\":
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
