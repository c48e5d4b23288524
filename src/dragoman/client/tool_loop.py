"""The loop of `client.run`: a turn of the model, its calls, their results, the next turn."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Generic, final

import msgspec

from dragoman import _json
from dragoman.errors import CallFailed, StepLimit, UsageError
from dragoman.events import Failure, Reply, ToolCallFailed
from dragoman.inputs.functions import FunctionTool
from dragoman.types import NO_USAGE, Cost, Message, Output, Text, ToolCall, ToolResult, Usage


@final
class Answer(msgspec.Struct, Generic[Output], frozen=True):
    """What `run` came to. `messages` is the whole conversation, the answer included; `usage` and `cost` are sums over
    all turns, None where a turn did not say. `output`: the answer as the `output_type` that was asked for."""

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

    __slots__ = ("_functions", "_max_steps", "_replies", "_run", "answer", "messages")

    def __init__(
        self,
        messages: tuple[Message, ...],
        functions: Mapping[str, FunctionTool],
        *,
        max_steps: int,
        run: Callable[[Any], Any] | None = None,
    ) -> None:
        """`run` runs the coroutine of an asynchronous function, for `take_now`."""
        if max_steps < 1:
            raise UsageError(f"expected max_steps of at least 1, got {max_steps}")
        self.messages = messages
        self.answer: Answer | None = None
        self._functions = functions
        self._max_steps = max_steps
        self._replies: list[Reply] = []
        self._run = run

    async def take(self, reply: Reply) -> None:
        """Take a turn of the model: run its calls side by side.

        Raises:
            CallFailed: the response failed; nothing was run.
            StepLimit: this was the last step, and it calls tools.
        """
        calls = self._calls(reply)
        results = await asyncio.gather(*(self._called(call) for call in calls))
        self._answer_calls(reply, results)

    def take_now(self, reply: Reply) -> None:
        """The same without an event loop: one call after the other."""
        results = []
        for call in self._calls(reply):
            value = self._start(call)
            if inspect.isawaitable(value):
                value = self._settled(call, value)
            results.append(_result(call, value))
        self._answer_calls(reply, results)

    def _settled(self, call: ToolCall, value: Any) -> Any:
        async def wait() -> Any:
            return await value

        assert self._run is not None
        try:
            return self._run(wait())
        except Exception as problem:
            return _Raised(problem)

    def _calls(self, reply: Reply) -> list[ToolCall]:
        """The calls to run: none of an answer in which one failed."""
        if isinstance(reply.error, Failure):
            raise CallFailed(reply.error, reply)
        self._replies.append(reply)
        return [] if reply.failed_calls else reply.tool_calls

    async def _called(self, call: ToolCall) -> ToolResult:
        value = self._start(call)
        if inspect.isawaitable(value):
            try:
                value = await value
            except Exception as problem:
                value = _Raised(problem)
        return _result(call, value)

    def _start(self, call: ToolCall) -> Any:
        function = self._functions.get(call.name)
        if function is None:
            known = ", ".join(self._functions) or "none"
            return _Raised(UsageError(f"there is no tool {call.name!r}; there are: {known}"))
        try:
            return function.call(call)
        except Exception as problem:
            return _Raised(problem)

    def _answer_calls(self, reply: Reply, results: list[ToolResult]) -> None:
        results = results or _withheld(reply)
        said = (reply.message,) if reply.parts else ()
        answers = (Message("tool", tuple(results)),) if results else ()
        told = tuple(_told(failed) for failed in reply.failed_calls)
        self.messages = (*self.messages, *said, *answers, *told)
        if not results and not told:
            self.answer = Answer(reply.text, reply, self.messages, len(self._replies), self._usage(), self._cost())
        elif len(self._replies) >= self._max_steps:
            raise StepLimit(f"the model still calls tools after {self._max_steps} steps", self.messages)

    def _usage(self) -> Usage:
        usages = [reply.usage for reply in self._replies]
        sums = {}
        for field in Usage.__struct_fields__:
            figures = [getattr(usage, field) for usage in usages]
            sums[field] = None if None in figures else sum(figures)
        return Usage(**sums) if usages else NO_USAGE

    def _cost(self) -> Cost | None:
        costs = [reply.cost for reply in self._replies]
        known = [cost for cost in costs if cost is not None]
        if not known or len(known) < len(costs):
            return None
        return Cost(sum((cost.usd for cost in known[1:]), known[0].usd), known[0].source)


class _Raised:
    """What a tool raised."""

    __slots__ = ("problem",)

    def __init__(self, problem: Exception) -> None:
        self.problem = problem


def _result(call: ToolCall, value: Any) -> ToolResult:
    if isinstance(value, _Raised):
        text = f"{type(value.problem).__name__}: {value.problem}"
        return ToolResult(call.id, call.name, (Text(text),), is_error=True)
    if not isinstance(value, str):
        try:
            value = "" if value is None else _json.to_text(value)
        except TypeError:
            value = str(value)
    return ToolResult(call.id, call.name, (Text(value),))


def _withheld(reply: Reply) -> list[ToolResult]:
    """What is told of the good calls of an answer in which one failed: they were not run."""
    words = "It was not run: another call of the same answer could not be read, so none of them was. Call it again."
    calls = reply.tool_calls if reply.failed_calls else ()
    return [ToolResult(call.id, call.name, (Text(words),), is_error=True) for call in calls]


def _told(failed: ToolCallFailed) -> Message:
    """A call that could not be delivered has no place in the history; the model is told in words."""
    name = f"Your call of {failed.name}" if failed.name else "Your tool call"
    return Message("user", (Text(f"{name} was not run: {failed.message}. Call the tool again, whole."),))
