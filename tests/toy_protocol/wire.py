"""The JSON of the protocol."""

from __future__ import annotations

from typing import Final

import msgspec

from dragoman import _json
from dragoman.types import ProtocolName

NAME: Final[ProtocolName] = "toy-lines"


class Turn(msgspec.Struct):
    """A turn of the conversation."""

    who: str
    says: str


class Body(msgspec.Struct):
    """A request."""

    model: str
    turns: list[Turn]
    stream: bool = True


class Line(msgspec.Struct):
    """A line of an answer."""

    say: str = ""
    done: bool = False


decode_body: Final = _json.typed_decoder(Body)
decode_line: Final = _json.typed_decoder(Line)
