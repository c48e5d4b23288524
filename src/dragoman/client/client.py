"""`AsyncClient` and `Client`: ask a model, read its answer as events or whole, run its tools."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Coroutine
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import msgspec

from dragoman.client.clocks import Clocks
from dragoman.client.exchange import Exchange, OnDeviation
from dragoman.client.local import LocalServers
from dragoman.client.prices import Prices
from dragoman.client.resolver import resolve, with_defaults
from dragoman.client.run import Answer, Steps
from dragoman.client.stream import AsyncStream, Stream
from dragoman.client.target import Target
from dragoman.client.transport import Transport
from dragoman.config import Config, HttpConfig, ToolsMode, load_config
from dragoman.errors import CallFailed
from dragoman.events import Deviation, Failure, Reply
from dragoman.history import SignatureVault
from dragoman.identifiers import new_id
from dragoman.inputs import Messages, Tools, read_messages, read_tools
from dragoman.types import Params, Request, ToolChoice

T = TypeVar("T")
_NO_PARAMS = Params()


class AsyncClient:
    """Asks models. Use it in one event loop, with `async with` or `close` at the end.

    Args:
        config: a configuration that was loaded, or the path of one; None reads the usual one, if there is one.
        strict: the first deviation of a response is a `Failure`; None takes the configuration's word.
        tools: the way to ask for tools, "auto" to find one that the server takes; None takes the configuration's word.
        on_deviation: is told the target's name and the deviation, for each one, before its event is given out.

    Attributes:
        deviations: how often each deviation came, by (provider, model, code).
    """

    def __init__(
        self,
        config: Config | Path | str | None = None,
        *,
        strict: bool | None = None,
        tools: ToolsMode | None = None,
        on_deviation: OnDeviation | None = None,
    ) -> None:
        self.config = config if isinstance(config, Config) else _load(config)
        self.deviations: Counter[tuple[str, str, str]] = Counter()
        self._strict = strict
        self._tools = tools
        self._refusing: set[str] = set()  # targets that have refused tools
        self._on_deviation = on_deviation
        self._clocks = _clocks(self.config.http)
        self._prices = Prices(self.config)
        self._transport = Transport(
            clocks=self._clocks,
            proxy=self.config.http.proxy.reveal() if self.config.http.proxy is not None else None,
            ca_file=str(self.config.http.ca_file) if self.config.http.ca_file is not None else None,
        )
        self._servers = LocalServers()
        self._vault = SignatureVault()

    async def __aenter__(self) -> AsyncClient:
        """The client itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client."""
        await self.close()

    async def close(self) -> None:
        """Close every connection, and the servers that this client started."""
        await self._transport.close()
        self._servers.close()

    def stream(
        self,
        target: str,
        messages: Messages,
        *,
        tools: Tools = (),
        tool_choice: ToolChoice = "auto",
        params: Params = _NO_PARAMS,
        session_id: str | None = None,
    ) -> AsyncStream:
        """One turn, as events while they come.

        Args:
            target: `provider/model`, or the name of a route.
            messages: a prompt, our `Message`s, or plain dicts of any of the five protocols.
            tools: functions, `Tool`s, or plain dicts of any of the five protocols.
            params: how to answer.
            session_id: names the conversation, for the provider's cache.

        Raises:
            UsageError: the target, a message or a tool cannot be read.
            ConfigError: the target's key or address cannot.
        """
        offered, _ = read_tools(tools)
        request = Request(target, read_messages(messages), offered, tool_choice, params, True, session_id)
        return self._ask(target, request)

    async def reply(
        self,
        target: str,
        messages: Messages,
        *,
        tools: Tools = (),
        tool_choice: ToolChoice = "auto",
        params: Params = _NO_PARAMS,
        session_id: str | None = None,
    ) -> Reply:
        """One turn, whole. Arguments as for `stream`.

        Raises:
            CallFailed: the response failed, or its only tool calls did.
        """
        stream = self.stream(
            target, messages, tools=tools, tool_choice=tool_choice, params=params, session_id=session_id
        )
        return whole(await _drained(stream))

    async def run(
        self,
        target: str,
        prompt: Messages,
        *,
        tools: Tools = (),
        params: Params = _NO_PARAMS,
        session_id: str | None = None,
        max_steps: int = 10,
    ) -> Answer:
        """Ask, run the functions that the model calls, answer it, until it answers without a call.

        Unknown tools, arguments that do not fit and functions that raise are told to the model. Calls of a failed
        response are not run.

        Args:
            tools: functions (those that are coroutines are awaited).
            max_steps: turns of the model.

        Raises:
            CallFailed: a response failed.
            StepLimit: the model still calls tools after `max_steps` turns.
        """
        offered, functions = read_tools(tools)
        steps = Steps(read_messages(prompt), functions, max_steps=max_steps)
        while steps.answer is None:
            request = Request(target, steps.messages, offered, "auto", params, True, session_id)
            await steps.take(await _drained(self._ask(target, request)))
        return steps.answer

    def _ask(self, target: str, request: Request) -> AsyncStream:
        return self.open(resolve(target, self.config, strict=self._strict, tools=self._tools), request)

    def open(
        self,
        target: Target,
        request: Request,
        *,
        keeps_reply: bool = True,
        on_deviation: OnDeviation | None = None,
    ) -> AsyncStream:
        """One turn of a target that is known already: the gateway's way in.

        Args:
            keeps_reply: False for one who reads batches and never looks at `reply`; then no event is kept and no
                price is looked up.
            on_deviation: is told of this turn's deviations too.
        """

        def note(name: str, deviation: Deviation) -> None:
            self._note_deviation(name, deviation)
            if on_deviation is not None:
                on_deviation(name, deviation)

        async def prepare() -> Exchange:
            ready = await self._servers.ready(target)
            if ready.name in self._refusing:
                ready = msgspec.structs.replace(ready, refuses_tools=True)
            asked = with_defaults(request, ready)
            return Exchange(
                ready,
                self._vault.restore(asked),
                new_id=new_id,
                price_of=self._prices.cost if keeps_reply else None,
                on_deviation=note,
                watch=self._vault.watch(asked),
            )

        limit = self._clocks.first_event_of(
            local=target.provider.local, reasoning=request.params.reasoning is not None, whole=not request.stream
        )
        return AsyncStream(
            prepare, transport=self._transport, clocks=self._clocks, first_event=limit, keeps_reply=keeps_reply
        )

    def _note_deviation(self, target: str, deviation: Deviation) -> None:
        if deviation.code == "tools-way":
            self._refusing.add(target)
        provider, _, model = target.partition("/")
        self.deviations[provider, model, deviation.code] += 1
        if self._on_deviation is not None:
            self._on_deviation(target, deviation)


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
        on_deviation: OnDeviation | None = None,
    ) -> None:
        self.config = config if isinstance(config, Config) else _load(config)
        self._settings = (strict, tools, on_deviation)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="dragoman", daemon=True)
        self._thread.start()
        self._client: AsyncClient = self._run(self._make())

    async def _make(self) -> AsyncClient:
        strict, tools, on_deviation = self._settings
        return AsyncClient(self.config, strict=strict, tools=tools, on_deviation=on_deviation)

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
            steps.take_now(self._run(_drained(self._client._ask(target, request))))
        return steps.answer

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


async def _drained(stream: AsyncStream) -> Reply:
    async with stream:
        while await stream.next_batch():
            pass
    return stream.reply


def whole(reply: Reply) -> Reply:
    """The reply, if it did not fail.

    Raises:
        CallFailed: it did.
    """
    if reply.error is not None and (isinstance(reply.error, Failure) or reply.stop_reason == "error"):
        raise CallFailed(reply.error, reply)
    return reply


def _load(path: Path | str | None) -> Config:
    return load_config(path, environ=os.environ, home=Path.home())


def _clocks(http: HttpConfig) -> Clocks:
    return Clocks(
        connect=http.connect_seconds,
        first_event=http.first_event_seconds,
        first_event_reasoning=http.reasoning_first_event_seconds,
        first_event_local=http.local_first_event_seconds,
        silence=http.silence_seconds,
        progress=http.no_progress_seconds,
        total=http.total_seconds,
    )


__all__ = ["AsyncClient", "Client", "whole"]
