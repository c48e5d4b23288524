"""A decoder, stages and an encoder in a row: what the gateway has for a translated answer, without its sockets."""

from __future__ import annotations

from dragoman.events import Event
from dragoman.pipe import Reader
from dragoman.protocol import Encoder


class Pipe:
    """Translates bytes. `read_along` has the events of the last call."""

    def __init__(self, reader: Reader, encoder: Encoder) -> None:
        self._reader, self._encoder = reader, encoder
        self.read_along: list[Event] = []

    @property
    def aborted(self) -> bool:
        """Whether the client's connection must be cut after the last bytes, not ended."""
        return self._encoder.aborted

    def feed(self, data: bytes) -> bytes:
        """Take the provider's next bytes. Return the client's."""
        self.read_along = self._reader.feed(data)
        return self._encoder.encode(self.read_along)

    def close(self) -> bytes:
        """End the provider's body."""
        self.read_along = self._reader.close()
        return self._encoder.encode(self.read_along)
