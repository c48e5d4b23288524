"""Embeddings: the values that three protocols share, and each protocol's renderers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol as Interface
from typing import final

import msgspec

from dragoman._json import Raw
from dragoman.bounds import exceeded
from dragoman.events import Failure
from dragoman.protocol import HttpRequest
from dragoman.types import Native


def too_large(most: int, seen: int) -> Failure:
    """Return the failure of an answer of more than `most` bytes. `seen`: those so far."""
    told = exceeded(f"an answer of at most {most} bytes", "embeddings_mib", f"{seen} or more")
    return Failure("answer_too_large", told)


@final
class EmbedRequest(msgspec.Struct, frozen=True):
    """A request for embeddings of texts, or of token numbers. `dimensions`: of the vectors.

    `is_single`: the client expects one vector, not a list; `is_packed`: as base64 of little-endian 32-bit floats.
    `native`: the client's protocol-specific fields.
    """

    model: str
    inputs: tuple[str | tuple[int, ...], ...]
    dimensions: int | None = None
    is_single: bool = False
    is_packed: bool = False
    native: Native | None = None


@final
class Embedded(msgspec.Struct, frozen=True):
    """The vectors in the order of the inputs, as their JSON text, and the tokens of all inputs (None: not reported)."""

    vectors: tuple[Raw, ...]
    tokens: int | None = None


class ParseEmbedRequest(Interface):
    """Parses a client's request. `path` is the request's, with its query. Raises `WireError`: it is not one."""

    def __call__(self, body: bytes, *, path: str = ...) -> EmbedRequest: ...


@final
class Embedder(msgspec.Struct, frozen=True):
    """One protocol's functions for embeddings.

    Attributes:
        routes: the paths that clients use.
        render_request: raises `WireError` for what it cannot express.
        parse_response: raises `WireError` for what is no answer.
        render_response: takes the request, its answer and the estimated tokens.
    """

    routes: tuple[str, ...]
    parse_request: ParseEmbedRequest
    render_request: Callable[[EmbedRequest], HttpRequest]
    parse_response: Callable[[bytes], Embedded]
    render_response: Callable[[EmbedRequest, Embedded, int], bytes]
