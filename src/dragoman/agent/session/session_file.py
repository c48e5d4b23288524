"""A session's file: every step is appended before the next one, so a killed process loses nothing that it did.

One JSON record per line, mode 0600, in the user's state folder. A call's begin record is on disk before the call runs;
its outcome is written right after. A call that began and has no outcome is never run again automatically.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import final

from dragoman import _json
from dragoman._json import Malformed
from dragoman.agent.session.folder import make_store
from dragoman.agent.session.records import (
    VERSION,
    Answered,
    Began,
    Cleared,
    Ended,
    Folded,
    Named,
    Opened,
    Prompted,
    Record,
    Switched,
    Told,
    Undone,
    Unfolded,
    parse_record,
)
from dragoman.agent.tool_plan import Change, Outcome, Plan, ToolFailed
from dragoman.errors import UsageError
from dragoman.events import Reply
from dragoman.inputs.saved_messages import message_of, record_of
from dragoman.types import Message, ToolCall, ToolResult


@final
class Session:
    """The record of a conversation, in memory and in its file.

    Attributes:
        messages: the whole conversation, without system text; foldings do not shorten it.
        foldings: the stretches that summaries replace; the last one applies.
        pending: calls of the last answer that have no result yet.
        begun: those of `pending` that began, by id.
        used_ids: ids of all calls so far.
        titles: the line that the screen showed for each call that began, by id.
    """

    __slots__ = (
        "_file", "_results", "at", "begun", "changes", "folder", "foldings", "id", "messages", "name", "path",
        "pending", "run", "spent", "target", "titles", "used_ids",
    )  # fmt: skip

    def __init__(self, path: Path, file: int) -> None:
        self.path = path
        self._file = file
        self.id = self.folder = self.target = self.name = ""
        self.at = self.run = 0
        self.messages: list[Message] = []
        self.foldings: list[Folded] = []
        self.pending: list[ToolCall] = []
        self.begun: dict[str, Began] = {}
        self.used_ids: set[str] = set()
        self.titles: dict[str, str] = {}
        self.changes: list[tuple[int, Change]] = []
        self.spent: list[Answered] = []
        self._results: list[ToolResult] = []

    # ------------------------------------------------------------ opening

    @staticmethod
    def create(store: Path, *, folder: Path, target: str, id: str, at: int) -> Session:
        """Create a session. `store` is the folder of sessions, created for the user alone if it is missing."""
        make_store(store)
        path = store / f"{at}-{id}.jsonl"
        session = Session(path, os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        _lock(session._file, path)
        session._write(Opened(VERSION, id, str(folder), target, at))
        return session

    @staticmethod
    def load(path: Path) -> Session:
        """Load a session as it was left, also by a killed process.

        Raises:
            UsageError: no session, one of a newer version, or one that another process holds open.
        """
        try:
            file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError as problem:
            raise UsageError(f"cannot resume {path.name}: {problem.strerror}") from None
        try:
            _lock(file, path)
            with os.fdopen(os.dup(file), "rb") as reader:
                content = reader.read()
            whole = content[: content.rfind(b"\n") + 1]
            session = Session(path, file)
            for number, line in enumerate(whole.splitlines(), 1):
                session._take(_read(line, path, number))
            if not session.id:
                raise UsageError(f"{path.name} is not a session")
            if len(whole) < len(content):  # the process was killed while it wrote: that record was never acted on
                os.ftruncate(file, len(whole))
        except BaseException:
            os.close(file)
            raise
        return session

    def close(self) -> None:
        """Let another process resume it."""
        os.close(self._file)

    # ------------------------------------------------------------ steps

    def prompt(self, message: Message, *, at: int) -> None:
        """Record the user's message. Every call must have its result by now."""
        self._write(Prompted(self.run + 1, record_of(message), at))

    def answer(self, reply: Reply, message: Message) -> None:
        """Record the model's answer in the form in which it enters the conversation."""
        usd = None if reply.cost is None else str(reply.cost.usd)
        self._write(Answered(record_of(message), reply.usage.input, reply.usage.output, usd))

    def tell(self, message: Message) -> None:
        """Record a message that the model must know."""
        self._write(Told(record_of(message)))

    def begin(self, call: ToolCall, plan: Plan, *, is_again: bool = False) -> None:
        """Record, on disk, that a call is about to run. `is_again`: the user agreed to repeat it.

        Raises:
            ToolFailed: it has begun before.
        """
        if call.id in self.begun and not is_again:
            raise ToolFailed("this call was run before; it is not run again")
        self._write(Began(call.id, plan.tool, plan.identity, plan.is_idempotent, plan.title))
        if not plan.is_idempotent:
            os.fsync(self._file)

    def end(self, call: ToolCall, outcome: Outcome, *, was_run: bool = True) -> None:
        """Record a call's outcome."""
        result = Message("tool", (outcome.result(call.id, call.name),))
        self._write(Ended(call.id, record_of(result), was_run, outcome.change))

    def switch(self, target: str) -> None:
        """Record that another model continues."""
        self._write(Switched(target))

    def fold(self, first: int, kept: int, summary: str) -> None:
        """Replace a stretch of the conversation with a summary from now on."""
        self._write(Folded(first, kept, summary))

    def unfold(self) -> bool:
        """Undo the last folding. Return False if there is none."""
        if not self.foldings:
            return False
        self._write(Unfolded())
        return True

    def clear(self) -> None:
        """Start the conversation again; the file keeps the old one."""
        self._write(Cleared())

    def rename(self, name: str) -> None:
        """Give the session a name."""
        self._write(Named(name))

    def undone(self, run: int) -> None:
        """Record that the file changes of that run were undone."""
        self._write(Undone(run))

    # ------------------------------------------------------------ records

    def _write(self, record: Record) -> None:
        line = _json.encode(record) + b"\n"
        written = os.write(self._file, line)
        while written < len(line):
            written += os.write(self._file, line[written:])
        self._take(record)

    def _take(self, record: Record) -> None:
        match record:
            case Opened(version, id, folder, target, at):
                if version > VERSION:
                    raise UsageError(f"{self.path.name} was written by a newer dragoman (version {version})")
                self.id, self.folder, self.target, self.at = id, folder, target, at
            case Prompted(run, message):
                self.run = run
                self._say(message_of(message))
            case Answered(message):
                self.spent.append(record)
                said = message_of(message)
                self._say(said)
                self.pending = list(said.tool_calls)
                self.used_ids.update(call.id for call in self.pending)
                self.begun = {}
            case Told(message):
                self._say(message_of(message))
            case Began(call):
                self.begun[call] = record
                self.titles[call] = record.shown
            case Ended(call, result, _, change):
                self._end(call, message_of(result), change)
            case Switched(target):
                self.target = target
            case Named(name):
                self.name = name
            case Folded():
                self.foldings.append(record)
            case Unfolded():
                self.foldings.pop()
            case Cleared():
                self.messages, self.foldings, self.pending, self._results = [], [], [], []
            case Undone(run):
                self.changes = [change for change in self.changes if change[0] != run]

    def _say(self, message: Message) -> None:
        if message.parts:
            self.messages.append(message)

    def _end(self, call: str, result: Message, change: Change | None) -> None:
        self._results += [part for part in result.parts if isinstance(part, ToolResult)]
        self.pending = [each for each in self.pending if each.id != call]
        if change is not None:
            self.changes.append((self.run, change))
        if not self.pending:
            order = {each.id: place for place, each in enumerate(self._last_calls())}
            self._results.sort(key=lambda each: order.get(each.call_id, len(order)))
            self.messages.append(Message("tool", tuple(self._results)))
            self._results = []

    def _last_calls(self) -> list[ToolCall]:
        return next((message.tool_calls for message in reversed(self.messages) if message.role == "assistant"), [])


def _read(line: bytes, path: Path, number: int) -> Record:
    record = parse_record(line)
    if isinstance(record, Malformed):
        raise UsageError(f"{path.name} cannot be resumed: line {number}: {record.problem}")
    return record


def _lock(file: int, path: Path) -> None:
    try:
        import fcntl
    except ModuleNotFoundError:  # pragma: no cover - Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UsageError(f"{path.name} is open in another process") from None
