"""The state of a run between its turns: which calls run, what results the model gets, whether the answer fits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol, TypeAlias, final

import msgspec

from dragoman.client.call import Call, again, refuses_schema
from dragoman.client.requester import Requester
from dragoman.client.runs.loop import Answer, Raised, ToolLoop
from dragoman.client.runs.results import error_of, result_of
from dragoman.client.streaming.response_stream import ResponseStream
from dragoman.client.streaming.streams import check_reply
from dragoman.errors import CallFailed, OutputInvalid, UsageError
from dragoman.events import Event, Reply
from dragoman.misuse import kind_of
from dragoman.types import Message, Text, ToolCall, ToolResult

#: True: run it. False: refuse. A text: refuse, and tell the model this.
Verdict: TypeAlias = bool | str
Approve: TypeAlias = Callable[[ToolCall], Verdict]
AsyncApprove: TypeAlias = Callable[[ToolCall], Verdict | Awaitable[Verdict]]
OnToolError: TypeAlias = Literal["tell", "raise"]


@final
class ToolStarted(msgspec.Struct, frozen=True):
    """A tool starts."""

    call: ToolCall


@final
class ToolFinished(msgspec.Struct, frozen=True):
    """A tool has run, or was refused: then `result.is_error`, and it took no time. `seconds`: how long it took."""

    call: ToolCall
    result: ToolResult
    seconds: float


RunEvent: TypeAlias = Event | ToolStarted | ToolFinished


class RemoteTools(Protocol):
    """Tools that run elsewhere."""

    def has(self, name: str) -> bool:
        """Return whether there is a tool of this name."""
        ...

    async def call(self, call: ToolCall) -> ToolResult:
        """Run it."""
        ...


@final
class ToolRun:
    """The state of a run between the turns. `ToolLoop` finds functions and writes results."""

    __slots__ = ("_call", "_left", "_on_error", "_step", "is_in_words", "remote", "steps")

    def __init__(
        self, call: Call, *, max_steps: int, on_tool_error: OnToolError, remote: RemoteTools | None = None
    ) -> None:
        self.steps: ToolLoop = ToolLoop(call.messages, call.functions, max_steps=max_steps, offered=call.tools)
        self.remote: RemoteTools | None = remote
        self.is_in_words: bool = False
        self._call = call
        self._left = call.output_retries
        self._on_error = on_tool_error
        self._step = 0

    @property
    def answer(self) -> Answer | None:
        """The result of the run; None before its end."""
        return self.steps.answer

    def ask(self, requester: Requester, *, is_whole: bool) -> ResponseStream:
        """Start the next turn. A required tool is required once; then the model is free."""
        choice = self._call.tool_choice
        if self._step and choice != "none":
            choice = "auto"
        request = self._call.request(self.steps.messages, tool_choice=choice)
        return requester.ask(
            self._call.targets,
            request,
            is_whole=is_whole,
            timeout=self._call.timeout,
            adapt=self._call.adapt(in_words=self.is_in_words),
        )

    def calls_of(self, reply: Reply) -> list[ToolCall] | None:
        """Return the calls of a turn, or None if it is asked again, in words.

        Raises:
            CallFailed: the turn failed; none of its calls is run.
        """
        try:
            calls = self.steps.calls_of(reply)
        except CallFailed as problem:
            if self._call.output is None or self.is_in_words or not refuses_schema(problem.failure):
                raise
            self.is_in_words = True
            return None
        self._step += 1
        return calls

    def refusal(self, call: ToolCall, verdict: object) -> ToolResult | None:
        """Return the model's result for a call that must not run, or None if it may.

        Raises:
            UsageError: `approve` returned something else.
        """
        if verdict is True:
            return None
        if verdict is False or verdict == "":
            verdict = "The user has refused this call."
        if not isinstance(verdict, str):
            raise UsageError(f"approve: expected True, False or a string, got {kind_of(verdict)}")
        return ToolResult(call.id, call.name, (Text(verdict),), is_error=True)

    def start(self, call: ToolCall) -> Any:
        """Start a call. Return its value, something to await, or its exception."""
        if self.remote is not None and self.remote.has(call.name):
            return self.remote.call(call)
        return self.steps.start(call)

    def result(self, call: ToolCall, value: Any) -> ToolResult:
        """Return the model's result for a call's value.

        Raises:
            Exception: the tool's own, with `on_tool_error="raise"`. The model's own mistakes go to the model.
        """
        if not isinstance(value, Raised):
            try:
                return result_of(call, value)
            except Exception as problem:  # a value that no model reads, or its own `__str__`
                value = Raised(problem)
        if self._on_error == "raise" and not value.is_the_models:
            raise value.problem
        return error_of(call, value.problem)

    def finish(self, reply: Reply, results: list[ToolResult]) -> None:
        """End the turn.

        Raises:
            StepLimit: it was the last one, and it calls tools.
            OutputInvalid: the answer is not of the `output_type`, and no try is left.
        """
        self.steps.finish(reply, results)
        answer, output = self.steps.answer, self._call.output
        if answer is None or output is None:
            return
        try:
            checked = check_reply(reply, (), output)
        except OutputInvalid as problem:
            if not self._left:
                raise
            self._left -= 1
            said: tuple[Message, ...] = again(reply, problem, output)[-1:]
            self.steps.messages = (*self.steps.messages, *said)
            self.steps.answer = None
            return
        self.steps.answer = msgspec.structs.replace(answer, reply=checked, output=checked.output)
