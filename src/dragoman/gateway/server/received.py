"""A request that has arrived, and what its answer must know of its connection."""

from __future__ import annotations

from typing import final

import msgspec

from dragoman.gateway.messages import Head
from dragoman.gateway.server.body_memory import Charge
from dragoman.secret import name_alone


@final
class Received(msgspec.Struct, frozen=True, gc=False):
    """A whole request.

    Attributes:
        keeps: the connection may serve another one after it.
        is_chunked: its client reads chunked bodies.
        is_admitted: Host, Origin and key were judged.
        charge: the memory of its body.
    """

    __repr__ = name_alone

    head: Head
    body: bytes
    keeps: bool
    is_chunked: bool
    is_admitted: bool
    charge: Charge
