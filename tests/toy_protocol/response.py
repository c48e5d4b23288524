"""Answers, both directions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import final

from dragoman.protocols.toy.wire import decode_line

from dragoman import _json
from dragoman._json import Malformed
from dragoman.bounds import AnswerBounds
from dragoman.events import Deviation, Event, Failure, Finish, Reply, Start, TextDelta, TextEnd, TextStart
from dragoman.protocol import PLAIN, Dialect, NewId, ReplyStyle, TakesNothing, takes_nothing
from dragoman.types import Text


@final
class Decoder:
    """As `protocol.Decoder`. One text, from the first line to the last."""

    def __init__(
        self,
        *,
        new_id: NewId,
        offered_names: frozenset[str] = frozenset(),
        takes_nothing: TakesNothing = takes_nothing,
        dialect: Dialect = PLAIN,
        bounds: AnswerBounds | None = None,
    ) -> None:
        self._rest = b""
        self._begun = False
        self.ended = False

    def feed(self, data: bytes) -> list[Event]:
        """As `protocol.Decoder.feed`."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [event for line in lines for event in self._line(line)]

    def _line(self, data: bytes) -> list[Event]:
        line = decode_line(data)
        if self.ended or not data or isinstance(line, Malformed):
            return []
        if line.done:
            self.ended = True
            return [*self._begin(), TextEnd(0), Finish("stop")]
        return [*self._begin(), TextDelta(0, line.say)]

    def _begin(self) -> list[Event]:
        if self._begun:
            return []
        self._begun = True
        return [Start(), TextStart(0)]

    def close(self) -> list[Event]:
        """As `protocol.Decoder.close`."""
        return [] if self.ended else self.fail(Failure("wire", "the answer was cut"))

    def fail(self, failure: Failure) -> list[Event]:
        """As `protocol.Decoder.fail`."""
        if self.ended:
            return []
        self.ended = True
        return [failure]


@final
class Encoder:
    """As `protocol.Encoder`."""

    def __init__(self, *, new_id: NewId, model: str, created: int, style: ReplyStyle | None = None) -> None:
        self.aborted = False
        self.lost: list[Deviation] = []

    def encode(self, events: Iterable[Event]) -> bytes:
        """As `protocol.Encoder.encode`."""
        out = b""
        for event in events:
            if type(event) is TextDelta:
                out += _json.encode({"say": event.text}) + b"\n"
            elif type(event) is Finish:
                out += _json.encode({"done": True}) + b"\n"
        return out

    def keepalive(self) -> bytes:
        """As `protocol.Encoder.keepalive`."""
        return b"\n"


def render_response(
    reply: Reply,
    *,
    new_id: NewId,
    model: str,
    created: int,
    style: ReplyStyle | None = None,
    lost: list[Deviation] | None = None,
) -> bytes:
    """As `RenderResponse`."""
    words = "".join(part.text for part in reply.message.parts if isinstance(part, Text))
    return _json.encode({"say": words}) + b"\n" + _json.encode({"done": True}) + b"\n"


def render_error(failure: Failure) -> tuple[int, bytes]:
    """As `RenderError`."""
    return failure.status or 500, _json.encode({"error": failure.message})


def parse_error(status: int, body: bytes, *, headers: Mapping[str, str] = {}) -> Failure:
    """As `ParseError`."""
    return Failure("internal", f"status {status}", status)


def check_whole(body: bytes) -> Finish | None:
    """As `CheckWhole`."""
    return None
