"""`Client` and its `Stream`: `AsyncClient` without `await`."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from dragoman.client.capability import ModelFacts
from dragoman.client.client import AsyncClient, drained, load
from dragoman.client.exchange import OnDeviation
from dragoman.client.fallback import Attempt
from dragoman.client.run import Answer, Steps
from dragoman.client.stream import AsyncStream
from dragoman.config import Config, ToolsMode
from dragoman.events import Event, Reply
from dragoman.inputs import Messages, Tools, read_messages, read_tools
from dragoman.types import Params, Request, ToolChoice

T = TypeVar("T")
#: Runs a coroutine in the client's own event loop and waits for it.
Run = Callable[[Coroutine[Any, Any, T]], T]
_NO_PARAMS = Params()


class Stream:
    """`AsyncStream` without `await`: use it with `with`, iterate it once."""

    __slots__ = ("_run", "_stream")

    def __init__(self, stream: AsyncStream, run: Run[Any]) -> None:
        self._stream = stream
        self._run = run

    def __enter__(self) -> Stream:
        """Send the request.

        Raises:
            UsageError, ConfigError: the request cannot be sent at all.
        """
        self._run(self._stream.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection, if the response is not over."""
        self.close()

    def close(self) -> None:
        """Stop reading."""
        self._run(self._stream.close())

    def __iter__(self) -> Iterator[Event]:
        """The events, as they come."""
        stream = self._stream
        while batch := self._run(stream._next()):
            for event in batch:
                stream._note([event])
                yield event

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """What came of the targets that were asked or passed over so far, in order."""
        return self._stream.attempts

    @property
    def reply(self) -> Reply:
        """The response so far, or the whole of it after the last event."""
        return self._stream.reply

    def partial(self, index: int) -> Mapping[str, Any]:
        """The arguments so far of the call with this part index: a live, read-only view."""
        return self._stream.partial(index)


class Client:
    """`AsyncClient` without `await`. It may be used from many threads, and inside a running event loop.

    Its event loop runs in a thread of its own; `on_deviation` is called there.
    """

    def __init__(
        self,
        config: Config | Path | str | None = None,
        *,
        strict: bool | None = None,
        tools: ToolsMode | None = None,
        retries: int | None = None,
        on_deviation: OnDeviation | None = None,
    ) -> None:
        self.config = config if isinstance(config, Config) else load(config)
        self._settings = (strict, tools, retries, on_deviation)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="dragoman", daemon=True)
        self._thread.start()
        self._client: AsyncClient = self._run(self._make())

    async def _make(self) -> AsyncClient:
        strict, tools, retries, on_deviation = self._settings
        return AsyncClient(self.config, strict=strict, tools=tools, retries=retries, on_deviation=on_deviation)

    @property
    def deviations(self) -> Counter[tuple[str, str, str]]:
        """How often each deviation came, by (provider, model, code)."""
        return self._client.deviations

    def __enter__(self) -> Client:
        """The client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        self.close()

    def close(self) -> None:
        """Close every connection, and the servers that this client started."""
        if self._loop.is_closed():
            return
        self._run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __del__(self) -> None:
        loop = getattr(self, "_loop", None)
        if loop is not None and not loop.is_closed() and threading.current_thread() is not self._thread:
            self.close()

    def stream(
        self,
        target: str,
        messages: Messages,
        *,
        tools: Tools = (),
        tool_choice: ToolChoice = "auto",
        params: Params = _NO_PARAMS,
        session_id: str | None = None,
    ) -> Stream:
        """One turn, as events while they come. As `AsyncClient.stream`."""
        stream = self._client.stream(
            target, messages, tools=tools, tool_choice=tool_choice, params=params, session_id=session_id
        )
        return Stream(stream, self._run)

    def reply(
        self,
        target: str,
        messages: Messages,
        *,
        tools: Tools = (),
        tool_choice: ToolChoice = "auto",
        params: Params = _NO_PARAMS,
        session_id: str | None = None,
    ) -> Reply:
        """One turn, whole. As `AsyncClient.reply`."""
        return self._run(
            self._client.reply(
                target, messages, tools=tools, tool_choice=tool_choice, params=params, session_id=session_id
            )
        )

    def run(
        self,
        target: str,
        prompt: Messages,
        *,
        tools: Tools = (),
        params: Params = _NO_PARAMS,
        session_id: str | None = None,
        max_steps: int = 10,
    ) -> Answer:
        """Ask, run the functions that the model calls, answer it. As `AsyncClient.run`; functions that are no
        coroutines run in the calling thread."""
        offered, functions = read_tools(tools)
        steps = Steps(read_messages(prompt), functions, max_steps=max_steps, run=self._run)
        while steps.answer is None:
            request = Request(target, steps.messages, offered, "auto", params, True, session_id)
            steps.take_now(self._run(drained(self._client.ask(target, request, is_whole=True))))
        return steps.answer

    def models(self, provider: str | None = None) -> tuple[ModelFacts, ...]:
        """The models that can be asked. As `AsyncClient.models`."""
        return self._run(self._client.models(provider))

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a Client cannot be used in its own event loop; use AsyncClient there")
        if self._loop.is_closed():
            coroutine.close()
            raise RuntimeError("this Client is closed")
        future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
