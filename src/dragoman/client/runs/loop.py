"""The loop of `client.run`: a turn of the model, its calls, their results, the next turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, final

import msgspec

from dragoman.client.call import sum_of
from dragoman.errors import CallFailed, StepLimit, UsageError
from dragoman.events import Failure, Reply, ToolCallFailed
from dragoman.inputs.functions import FunctionTool
from dragoman.types import Cost, Message, Output, Text, Tool, ToolCall, ToolResult, Usage


@final
class Answer(msgspec.Struct, Generic[Output], frozen=True, repr_omit_defaults=True):
    """The result of `run`. `messages` is the whole conversation, the answer included.

    `usage` and `cost` are sums over all turns, None if a turn did not report them. `output`: the answer as the
    requested `output_type`.
    """

    text: str
    reply: Reply[Output]
    messages: tuple[Message, ...]
    steps: int
    usage: Usage
    cost: Cost | None
    output: Output = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.text


class ToolLoop:
    """The state of one run. `answer` is None until the model answers without a call."""

    __slots__ = ("_functions", "_max_steps", "_offered", "_replies", "answer", "messages")

    def __init__(
        self,
        messages: tuple[Message, ...],
        functions: Mapping[str, FunctionTool],
        *,
        max_steps: int,
        offered: Iterable[Tool] = (),
    ) -> None:
        if max_steps < 1:
            raise UsageError(f"expected max_steps of at least 1, got {max_steps}")
        self.messages: tuple[Message, ...] = messages
        self.answer: Answer | None = None
        self._functions = functions
        self._offered = [tool.name for tool in offered]
        self._max_steps = max_steps
        self._replies: list[Reply] = []

    def calls_of(self, reply: Reply) -> list[ToolCall]:
        """Return the calls to run: none of an answer in which one failed.

        Raises:
            CallFailed: the response failed; nothing is run.
        """
        if isinstance(reply.error, Failure):
            raise CallFailed(reply.error, reply)
        self._replies.append(reply)
        return [] if reply.failed_calls else reply.tool_calls

    def start(self, call: ToolCall) -> Any:
        """Start a call. Return its value, something to await, or a `Raised`."""
        function = self._functions.get(call.name)
        if function is None:
            known = ", ".join(self._offered or self._functions) or "none"
            return Raised(UsageError(f"there is no tool {call.name!r}; there are: {known}"), is_the_models=True)
        try:
            arguments = function.check(call)
        except UsageError as problem:
            return Raised(problem, is_the_models=True)
        try:
            return function.run(arguments)
        except Exception as problem:
            return Raised(problem)

    def finish(self, reply: Reply, results: list[ToolResult]) -> None:
        """End the turn with the results of its calls. Raises `StepLimit`: it was the last one, and it calls tools."""
        results = results or _withheld(reply)
        said = (reply.message,) if reply.parts else ()
        answers = (Message("tool", tuple(results)),) if results else ()
        told = tuple(_told(failed) for failed in reply.failed_calls)
        self.messages = (*self.messages, *said, *answers, *told)
        if not results and not told:
            self.answer = Answer(reply.text, reply, self.messages, len(self._replies), *sum_of(self._replies))
        elif len(self._replies) >= self._max_steps:
            raise StepLimit(f"the model still calls tools after {self._max_steps} steps", self.messages)


class Raised:
    """The exception of a tool. `is_the_models`: the model called it wrongly."""

    __slots__ = ("is_the_models", "problem")

    def __init__(self, problem: Exception, *, is_the_models: bool = False) -> None:
        self.problem: Exception = problem
        self.is_the_models: bool = is_the_models


def _withheld(reply: Reply) -> list[ToolResult]:
    """Return the result for the good calls of an answer in which one failed: they were not run."""
    words = "It was not run: another call of the same answer could not be read, so none of them was. Call it again."
    calls = reply.tool_calls if reply.failed_calls else ()
    return [ToolResult(call.id, call.name, (Text(words),), is_error=True) for call in calls]


def _told(failed: ToolCallFailed) -> Message:
    """Return a text for the model about a call that could not be delivered and so has no place in the history."""
    name = f"Your call of {failed.name}" if failed.name else "Your tool call"
    return Message("user", (Text(f"{name} was not run: {failed.message}. Call the tool again, whole."),))
