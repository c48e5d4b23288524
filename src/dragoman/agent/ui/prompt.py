"""The line at which a person types: history, several lines, completion of commands, models and files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, final

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from dragoman.agent.safe_text import plain_line
from dragoman.agent.tool_plan import ToolFailed
from dragoman.agent.work_folder import WorkFolder

_MOST: Final = 50


@final
class Words(Completer):  # prompt_toolkit asks for one of its own kind
    """Completes commands after "/", models after /model, and paths of the work folder anywhere."""

    def __init__(self, commands: Sequence[str], models: Callable[[], Iterable[str]], folder: WorkFolder) -> None:
        self._commands = commands
        self._models = models
        self._folder = folder

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What may stand where the cursor is."""
        text = document.text_before_cursor
        word = text.split(" ")[-1].split("\n")[-1]
        if text.startswith("/") and " " not in text:
            found = [f"/{name}" for name in self._commands]
        elif text.startswith(("/model ", "/models ")):
            found = list(self._models())
        elif complete_event.completion_requested:
            found = self._paths(word)
        else:
            return
        for each in [each for each in found if each.startswith(word)][:_MOST]:
            yield Completion(each, start_position=-len(word))

    def _paths(self, word: str) -> list[str]:
        head, slash, _ = word.rpartition("/")
        try:
            entries = self._folder.entries(self._folder.parts(head or "."))
        except ToolFailed:
            return []
        return [f"{head}{slash}{entry.name}{'/' if entry.kind == 'folder' else ''}" for entry in entries]


@final
class Line:
    """Reads what the person types."""

    __slots__ = ("_asking", "_session")

    def __init__(self, words: Words, *, history: Path | None, status: Callable[[], str]) -> None:
        """`history`: the file that keeps what was typed; None keeps nothing. `status`: the line at the bottom."""
        self._session: PromptSession[str] = PromptSession(
            history=_history(history),
            completer=ThreadedCompleter(words),
            complete_while_typing=Condition(self._is_command),
            key_bindings=_keys(),
            multiline=True,
            prompt_continuation="  ",
            bottom_toolbar=lambda: FormattedText([("class:bottom-toolbar", plain_line(status(), 300))]),
            enable_open_in_editor=False,
            mouse_support=False,
        )
        self._asking: PromptSession[str] = PromptSession(history=InMemoryHistory())

    def _is_command(self) -> bool:
        return self._session.default_buffer.text.startswith("/")

    async def read(self) -> str:
        """A prompt or a command. Raises EOFError at Ctrl-D, KeyboardInterrupt at Ctrl-C."""
        return (await self._session.prompt_async("› ")).strip()

    async def ask(self, question: str) -> str:
        """A short answer, which no history keeps. What was typed before it was asked is no answer. Raises as `read`."""
        clear_typeahead(self._asking.input)
        with contextlib.suppress(ImportError, OSError, ValueError):
            import termios

            termios.tcflush(self._asking.input.fileno(), termios.TCIFLUSH)
        return (await self._asking.prompt_async(FormattedText([("bold", question)]))).strip()


def _history(path: Path | None) -> History:
    if path is None:
        return InMemoryHistory()
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        return FileHistory(str(path))
    return InMemoryHistory()


def _keys() -> KeyBindings:
    """Enter sends; Alt-Enter, Ctrl-J or a backslash before Enter begin a new line."""
    keys = KeyBindings()

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
