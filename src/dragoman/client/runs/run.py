"""A run in progress: the turns of the model and the tools between. `AsyncRun`, and `Run` without `await`."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any

from dragoman.client.requester import Requester
from dragoman.client.runs.loop import Answer, Raised
from dragoman.client.runs.state import Approve, AsyncApprove, RunEvent, ToolFinished, ToolRun, ToolStarted
from dragoman.errors import UsageError
from dragoman.types import ToolCall, ToolResult


class AsyncRun:
    """A run, as events while it goes on. Iterate it once, then look at `answer`. Leaving early ends it.

    The calls of a turn run at once, after all of them were decided on. A function that is not `async` holds up the
    event loop while it runs.
    """

    __slots__ = ("_approve", "_close", "_is_taken", "_open", "_requester", "_run", "_whole")

    def __init__(
        self,
        requester: Requester,
        make: Callable[[], Awaitable[ToolRun]],
        *,
        approve: AsyncApprove | None,
        is_whole: bool = False,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Create it. `make` returns the run, whose tools may have to be connected first; `close` disconnects them."""
        self._requester = requester
        self._open = make
        self._close = close
        self._approve = approve
        self._whole = is_whole
        self._is_taken = False
        self._run: ToolRun | None = None

    async def __aenter__(self) -> AsyncRun:
        """Return the run itself."""
        return self

    async def __aexit__(self, *problem: object) -> None:
        """End it."""
        await self.close()

    async def close(self) -> None:
        """End it. A running tool is cancelled if possible."""
        if self._close is not None:
            close, self._close = self._close, None
            await close()

    @property
    def answer(self) -> Answer:
        """The result.

        Raises:
            UsageError: it is not over.
        """
        return answer_of(self._run)

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        """Yield the events of each turn, and of the tools between. Raises UsageError the second time.

        A turn's failure is yielded as its `Failure` and then raised as CallFailed; `StepLimit`, `OutputInvalid`, and
        with `on_tool_error="raise"` a tool's own exception are raised too.
        """
        if self._is_taken:
            raise UsageError("a run is read once; run.answer holds what it came to")
        self._is_taken = True
        return self._events()

    async def _events(self) -> AsyncIterator[RunEvent]:
        try:
            run = self._run = await self._open()
            while run.answer is None:
                async with run.ask(self._requester, is_whole=self._whole) as stream:
                    while batch := await stream.next_batch():
                        for event in batch:
                            yield event
                calls = run.calls_of(stream.reply)
                if calls is None:
                    continue
                results: dict[int, ToolResult] = {}
                async for made in self._called(run, calls, results):
                    yield made
                run.finish(stream.reply, [results[place] for place in range(len(calls))])
        finally:
            await self.close()

    async def _called(
        self, run: ToolRun, calls: list[ToolCall], results: dict[int, ToolResult]
    ) -> AsyncIterator[ToolStarted | ToolFinished]:
        """Run calls concurrently, after all of them were decided on."""
        tasks: dict[asyncio.Task[tuple[ToolResult, float]], int] = {}
        allowed: list[int] = []
        for place, call in enumerate(calls):
            verdict: object = True if self._approve is None else self._approve(call)
            if inspect.isawaitable(verdict):
                verdict = await verdict
            refused = run.refusal(call, verdict)
            if refused is None:
                allowed.append(place)
            else:
                results[place] = refused
                yield ToolFinished(call, refused, 0.0)
        try:
            for place in allowed:
                yield ToolStarted(calls[place])
                tasks[asyncio.create_task(_done(run, calls[place]))] = place
            left = set(tasks)
            while left:
                done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    place = tasks[task]
                    results[place], seconds = task.result()
                    yield ToolFinished(calls[place], results[place], seconds)
        finally:
            for task in tasks:
                task.cancel()


async def _done(run: ToolRun, call: ToolCall) -> tuple[ToolResult, float]:
    begun = time.monotonic()
    value = run.start(call)
    if inspect.isawaitable(value):
        try:
            value = await value
        except Exception as problem:
            value = Raised(problem)
    return run.result(call, value), time.monotonic() - begun


def answer_of(run: ToolRun | None) -> Answer:
    """Return the result of a run.

    Raises:
        UsageError: it is not over.
    """
    if run is None or run.answer is None:
        raise UsageError("run.answer: the run is not over; read its events first")
    return run.answer


class Run:
    """A run, as events while it goes on. Iterate it once, then look at `answer`. Leaving early ends it.

    Functions run in the thread that iterates, one after the other.
    """

    __slots__ = ("_approve", "_close", "_is_taken", "_make", "_requester", "_run", "_wait", "_whole")

    def __init__(
        self,
        requester: Callable[[], Requester],
        make: Callable[[], Awaitable[ToolRun]],
        *,
        wait: Callable[[Coroutine[Any, Any, Any]], Any],
        approve: Approve | None,
        is_whole: bool = False,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Create it. `wait` runs a coroutine where the client lives. The others are as for `AsyncRun`."""
        self._requester = requester
        self._make = make
        self._wait = wait
        self._approve = approve
        self._whole = is_whole
        self._close = close
        self._is_taken = False
        self._run: ToolRun | None = None

    def __enter__(self) -> Run:
        """Return the run itself."""
        return self

    def __exit__(self, *problem: object) -> None:
        """End it."""
        self.close()

    def close(self) -> None:
        """End it."""
        if self._close is not None:
            close, self._close = self._close, None
            self._wait(_awaited(close))

    @property
    def answer(self) -> Answer:
        """The result.

        Raises:
            UsageError: it is not over.
        """
        return answer_of(self._run)

    def __iter__(self) -> Iterator[RunEvent]:
        """Yield the events of each turn, and of the tools between. Raises UsageError the second time.

        A turn's failure is yielded as its `Failure` and then raised as CallFailed; `StepLimit`, `OutputInvalid`, and
        with `on_tool_error="raise"` a tool's own exception are raised too.
        """
        if self._is_taken:
            raise UsageError("a run is read once; run.answer holds what it came to")
        self._is_taken = True
        return self._events()

    def _events(self) -> Iterator[RunEvent]:
        wait = self._wait
        try:
            run = self._run = wait(_awaited(self._make))
            while run.answer is None:
                stream = run.ask(self._requester(), is_whole=self._whole)
                wait(stream.__aenter__())
                try:
                    while batch := wait(stream.next_batch()):
                        yield from batch
                finally:
                    wait(stream.close())
                calls = run.calls_of(stream.reply)
                if calls is None:
                    continue
                results: list[ToolResult] = []
                for call in calls:
                    yield from self._called(run, call, results)
                run.finish(stream.reply, results)
        finally:
            self.close()

    def _called(self, run: ToolRun, call: ToolCall, results: list[ToolResult]) -> Iterator[ToolStarted | ToolFinished]:
        refused = run.refusal(call, True if self._approve is None else self._approve(call))
        if refused is not None:
            results.append(refused)
            yield ToolFinished(call, refused, 0.0)
            return
        yield ToolStarted(call)
        begun = time.monotonic()
        value = run.start(call)
        if inspect.isawaitable(value):
            try:
                value = self._wait(_settled(value))
            except Exception as problem:
                value = Raised(problem)
        results.append(run.result(call, value))
        yield ToolFinished(call, results[-1], time.monotonic() - begun)


async def _settled(value: Awaitable[Any]) -> Any:
    return await value


async def _awaited(make: Callable[[], Awaitable[Any]]) -> Any:
    return await make()
