"""One turn of a call as a stream, and turns until an answer fits, whole."""

from __future__ import annotations

from dragoman.client.call import Call, OutputTurns
from dragoman.client.requester import Requester, drained
from dragoman.client.streaming.streams import AsyncStream
from dragoman.events import Reply


def open_stream(requester: Requester, call: Call) -> AsyncStream:
    """Return one turn that is not sent yet."""
    turns = OutputTurns(call)
    stream = requester.ask(call.targets, turns.request(), timeout=call.timeout, adapt=turns.adapt())
    return AsyncStream(stream, call.output)


async def whole_reply(requester: Requester, call: Call) -> Reply:
    """Return the answer that fits. Raises CallFailed and OutputInvalid as `OutputTurns.take`."""
    turns = OutputTurns(call)
    while True:
        stream = requester.ask(call.targets, turns.request(), is_whole=True, timeout=call.timeout, adapt=turns.adapt())
        reply = turns.take(await drained(stream), stream.attempts)
        if reply is not None:
            return reply
