"""`Client` and its `Stream`: `AsyncClient` without `await`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from dragoman.client.background_loop import Background
from dragoman.client.client import AsyncClient, drained, load
from dragoman.client.exchange import OnDeviation
from dragoman.client.stream import AsyncStream
from dragoman.client.tool_loop import Answer, ToolLoop
from dragoman.config import Config, ToolsMode
from dragoman.discovery.model_facts import ModelFacts
from dragoman.events import Event, Reply
from dragoman.inputs.conversation import Messages, Tools, read_messages, read_tools
from dragoman.protocol import Strictness
from dragoman.types import Attempt, Params, Request, ToolChoice

T = TypeVar("T")
_NO_PARAMS = Params()


class Stream:
    """`AsyncStream` without `await`: use it with `with`, iterate it once."""

    __slots__ = ("_background", "_client", "_stream")

    def __init__(self, stream: AsyncStream, client: Client, background: Background) -> None:
        self._stream = stream
        self._client = client  # kept: it closes itself when nobody has it
        self._background = background

    def __enter__(self) -> Stream:
        """Send the request.

        Raises:
            UsageError, ConfigError: the request cannot be sent at all.
        """
        self._background.run(self._stream.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection, if the response is not over."""
        self.close()

    def close(self) -> None:
        """Stop reading."""
        if not self._background.is_closed:  # else its connection is closed too
            self._background.run(self._stream.close())

    def __iter__(self) -> Iterator[Event]:
        """The events, as they come."""
        stream = self._stream
        while batch := self._background.run(stream._next()):
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

    Its event loop runs in a thread of its own; `on_deviation` is called there. It closes itself when it is dropped, and
    when the program ends. After a fork each process has connections of its own; a stream stays with the process that
    began it.
    """

    def __init__(
        self,
        config: Config | Path | str | None = None,
        *,
        strict: Strictness | None = None,
        tools: ToolsMode | None = None,
        retries: int | None = None,
        on_deviation: OnDeviation | None = None,
    ) -> None:
        self.config = config if isinstance(config, Config) else load(config)
        self._settings = (strict, tools, retries, on_deviation)
        self._background = Background(self._make)

    def _make(self) -> AsyncClient:
        strict, tools, retries, on_deviation = self._settings
        return AsyncClient(self.config, strict=strict, tools=tools, retries=retries, on_deviation=on_deviation)

    @property
    def deviations(self) -> Counter[tuple[str, str, str]]:
        """How often each deviation came, by (provider, model, code)."""
        return self._here().client.deviations

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
        self._background.close()

    def __del__(self) -> None:
        # Without waiting: the collector may run in any thread, that of the event loop too.
        if (background := getattr(self, "_background", None)) is not None:
            background.abandon()

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
        here = self._here()
        stream = here.client.stream(
            target, messages, tools=tools, tool_choice=tool_choice, params=params, session_id=session_id
        )
        return Stream(stream, self, here)

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
            self._here().client.reply(
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
        steps = ToolLoop(read_messages(prompt), functions, max_steps=max_steps, run=self._run)
        while steps.answer is None:
            request = Request(target, steps.messages, offered, "auto", params, True, session_id)
            steps.take_now(self._run(drained(self._here().client.ask(target, request, is_whole=True))))
        return steps.answer

    def models(self, provider: str | None = None) -> tuple[ModelFacts, ...]:
        """The models that can be asked. As `AsyncClient.models`."""
        return self._run(self._here().client.models(provider))

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._background.run(coroutine)

    def _here(self) -> Background:
        """What works in this process: after a fork, a new one."""
        if self._background.pid != os.getpid():
            self._background = Background(self._make)
        return self._background
