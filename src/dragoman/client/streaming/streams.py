"""A response as programs read it: `AsyncStream`, and `Stream` without `await`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

import msgspec

from dragoman.client.streaming.response_stream import ResponseStream
from dragoman.errors import CallFailed, OutputInvalid, UsageError
from dragoman.events import Deviation, Event, Failure, Reply, TextDelta, ToolCallDelta, ToolCallEnd, ToolCallStart
from dragoman.inputs.output_types import NotFitting, OutputType
from dragoman.misuse import kind_of
from dragoman.types import Attempt

if TYPE_CHECKING:
    from dragoman.client.background_loop import Background

_ONCE = "a stream is read once, as events or as text_stream; stream.reply holds all that came"
_UNREAD = "raise_for_failure: nothing of this stream was read, so nothing of its answer is known; read it first"
_CLOSED = "this stream is closed, and nothing of it was read; read it inside its `with` block"


@final
class StreamedCall(msgspec.Struct, frozen=True):
    """A tool call of a stream. `partial` are its arguments so far, always an object; `is_whole`: it is complete."""

    index: int
    id: str
    name: str
    partial: Mapping[str, Any]
    is_whole: bool


class AsyncStream:
    """One response. Iterate it once: as events, or as `text_stream`. With `async with` it is closed early.

    As events it never raises for what the provider or the network does: that is a `Failure`, the last event. No event
    is passed on before the answer begins, so that a failure before it may go to another target.
    """

    __slots__ = ("_calls", "_is_closed", "_is_entered", "_is_taken", "_output", "_stream")

    def __init__(self, stream: ResponseStream, output: OutputType | None = None) -> None:
        self._stream = stream
        self._output = output
        self._is_closed = self._is_entered = self._is_taken = False
        self._calls: dict[int, tuple[str, str, bool]] = {}

    async def __aenter__(self) -> AsyncStream:
        """Prepare the request.

        Raises:
            UsageError, ConfigError: the request cannot be sent at all.
        """
        if not self._is_entered:
            self._is_entered = True
            await self._stream.__aenter__()
        return self

    async def __aexit__(self, *problem: object) -> None:
        """Close the connection, if the response is not over."""
        await self.close()

    async def close(self) -> None:
        """Stop reading. The connection is closed at once unless the body was read to its end."""
        self._is_closed = True
        await self._stream.close()

    def interrupt(self, failure: Failure) -> None:
        """End the response with this failure now; no other target is asked."""
        self._stream.interrupt(failure)

    def __aiter__(self) -> AsyncIterator[Event]:
        """Yield the events as they come. Raises UsageError the second time."""
        self.take()
        return self._events()

    @property
    def text_stream(self) -> AsyncIterator[str]:
        """Yield the text of the answer as it comes; its calls, if any, are in `reply` then.

        Raises:
            CallFailed: the answer broke.
            UsageError: the stream was read before.
        """
        self.take()
        return self._texts()

    async def next_batch(self) -> list[Event]:
        """Return the events of the next bytes, at least one; [] at the end. Do not mix with single events."""
        await self.__aenter__()
        self._is_taken = True
        batch = await self.fetch()
        self.give(batch)
        return batch

    async def fetch(self) -> list[Event]:
        """Return the events of the next bytes, at least one, for `give` as they are given out; [] at the end."""
        return await self._stream.fetch()

    def give(self, batch: list[Event]) -> None:
        """Take events as given out: they are of the reply, and of its calls."""
        self._stream.give(batch)
        for event in batch:
            if type(event) is ToolCallStart:
                self._calls[event.index] = event.id, event.name, False
            elif type(event) is ToolCallEnd:
                self._calls[event.index] = event.call.id, event.call.name, True

    def take(self) -> None:
        """Begin to read. Raises UsageError the second time, or if it is closed."""
        if self._is_taken:
            raise UsageError(_ONCE)
        if self._is_closed:
            raise UsageError(_CLOSED)
        self._is_taken = True

    async def _events(self) -> AsyncIterator[Event]:
        await self.__aenter__()
        try:
            while batch := await self.fetch():
                for event in batch:
                    self.give([event])
                    yield event
        finally:
            await self.close()

    async def _texts(self) -> AsyncIterator[str]:
        async for event in self._events():
            if type(event) is TextDelta:
                yield event.text
        self.raise_for_failure()

    # ------------------------------------------------------------ looking

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The targets that were asked or skipped so far, in order, each with its outcome."""
        return self._stream.attempts

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the provider's response, names in lower case; none before they came."""
        return self._stream.headers

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """Where the provider has left its protocol so far."""
        return self._stream.reply.deviations

    @property
    def reply(self) -> Reply:
        """The response so far, or the whole of it after the last event. `output` is set once the answer fits."""
        reply = self._stream.reply
        if attempts := self.attempts:
            reply = msgspec.structs.replace(reply, attempts=attempts)
        if self._output is None or reply.error is not None or reply.stop_reason == "error":
            return reply
        try:
            return msgspec.structs.replace(reply, output=self._output.value(reply.text))
        except NotFitting:
            return reply

    def raise_for_failure(self) -> AsyncStream:
        """Return the stream itself if its answer did not fail.

        Raises:
            CallFailed: it did, or its only tool calls did.
            OutputInvalid: the answer is not of the `output_type`.
            UsageError: nothing of the stream was read.
        """
        if not self._is_taken:
            raise UsageError(_UNREAD)
        check_reply(self._stream.reply, self.attempts, self._output)
        return self

    @property
    def calls(self) -> list[StreamedCall]:
        """The tool calls so far, open and complete, each with its arguments so far."""
        return [
            StreamedCall(index, id, name, self.partial(index), is_whole)
            for index, (id, name, is_whole) in self._calls.items()
        ]

    def partial(self, event: ToolCallStart | ToolCallDelta | ToolCallEnd | int) -> Mapping[str, Any]:
        """Return the arguments so far of a call, given one of its events or its part index.

        Always an object; {} if there is no such call. A live, read-only view, valid until the next event; `dict(…)`
        keeps it.

        Raises:
            UsageError: it is neither.
        """
        index = event.index if isinstance(event, ToolCallStart | ToolCallDelta | ToolCallEnd) else event
        if not isinstance(index, int) or isinstance(index, bool):
            raise UsageError(f"partial: expected an event of a tool call, or its index, got {kind_of(event)}")
        return self._stream.partial(index)


def check_reply(reply: Reply, attempts: tuple[Attempt, ...], output: OutputType | None) -> Reply:
    """Return the reply with what the client adds.

    Raises:
        CallFailed: the response failed, or its only tool calls did.
        OutputInvalid: the answer is not of the `output_type`. An answer with tool calls is not checked.
    """
    reply = msgspec.structs.replace(reply, attempts=attempts)
    if reply.error is not None and (isinstance(reply.error, Failure) or reply.stop_reason == "error"):
        raise CallFailed(reply.error, reply)
    if output is None or reply.tool_calls:
        return reply
    try:
        return msgspec.structs.replace(reply, output=output.value(reply.text))
    except NotFitting as problem:
        why = "was cut at max_tokens: " if reply.stop_reason == "length" else "does not fit: "
        raise OutputInvalid(f"the answer for output_type {output.name} {why}{problem}", reply) from None


class Stream:
    """One response. Iterate it once: as events, or as `text_stream`. With `with` it is closed early.

    As events it never raises for what the provider or the network does: that is a `Failure`, the last event. Until
    something of an answer came nothing is given out, so that a failure before it may go to another target.
    """

    __slots__ = ("_background", "_client", "_stream")

    def __init__(self, stream: AsyncStream, client: object, background: Background) -> None:
        self._stream = stream
        self._client = client  # kept: a client closes itself when nobody has it
        self._background = background

    def __enter__(self) -> Stream:
        """Make the request ready.

        Raises:
            UsageError, ConfigError: the request cannot be sent at all.
        """
        self._background.run(self._stream.__aenter__())
        return self

    def __exit__(self, *problem: object) -> None:
        """Close the connection, if the response is not over."""
        self.close()

    def close(self) -> None:
        """Stop reading. The connection is closed at once unless the body was read to its end."""
        if not self._background.is_closed:  # else its connection is closed too
            self._background.run(self._stream.close())

    def __iter__(self) -> Iterator[Event]:
        """Yield the events as they come. Raises UsageError the second time."""
        self._stream.take()
        return self._events()

    @property
    def text_stream(self) -> Iterator[str]:
        """Yield the text of the answer as it comes; its calls, if any, are in `reply` then.

        Raises:
            CallFailed: the answer broke.
            UsageError: the stream was read before.
        """
        self._stream.take()
        return self._texts()

    def _events(self) -> Iterator[Event]:
        self._background.run(self._stream.__aenter__())
        try:
            while batch := self._background.run(self._stream.fetch()):
                for event in batch:
                    self._stream.give([event])
                    yield event
        finally:
            self._leave()

    def _leave(self) -> None:
        """Close, because the reader has gone. The collector may call this in any thread, the event loop's too."""
        if not self._background.is_closed:
            self._background.run_soon(self._stream.close())

    def _texts(self) -> Iterator[str]:
        for event in self._events():
            if type(event) is TextDelta:
                yield event.text
        self.raise_for_failure()

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The targets that were asked or skipped so far, in order, each with its outcome."""
        return self._stream.attempts

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the provider's response, names in lower case; none before they came."""
        return self._stream.headers

    @property
    def deviations(self) -> tuple[Deviation, ...]:
        """Where the provider has left its protocol so far."""
        return self._stream.deviations

    @property
    def reply(self) -> Reply:
        """The response so far, or the whole of it after the last event. `output` is set once the answer fits."""
        return self._stream.reply

    def raise_for_failure(self) -> Stream:
        """Return the stream itself if its answer did not fail.

        Raises:
            CallFailed: it did, or its only tool calls did.
            OutputInvalid: the answer is not of the `output_type`.
            UsageError: nothing of the stream was read.
        """
        self._stream.raise_for_failure()
        return self

    @property
    def calls(self) -> list[StreamedCall]:
        """The tool calls so far, open and complete, each with its arguments so far."""
        return self._stream.calls

    def partial(self, event: ToolCallStart | ToolCallDelta | ToolCallEnd | int) -> Mapping[str, Any]:
        """Return the arguments so far of a call, given one of its events or its part index.

        Always an object; {} if there is no such call. A live, read-only view, valid until the next event; `dict(…)`
        keeps it.

        Raises:
            UsageError: it is neither.
        """
        return self._stream.partial(event)
