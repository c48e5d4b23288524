"""Embeddings: the values that three protocols share, and each protocol's renderers."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable
from typing import Final, final
from typing import Protocol as Interface

import msgspec

from dragoman import _json
from dragoman._json import Raw
from dragoman.bounds import exceeded
from dragoman.errors import WireError
from dragoman.events import Failure
from dragoman.protocol import HttpRequest
from dragoman.types import Native

#: A digit → 9, and `E` → `e`.
_AS_FORMS: Final = bytes.maketrans(b"012345678E", b"999999999e")
#: What else a JSON list of numbers has in it. A word has another letter.
_OF_NUMBERS: Final = b"9+-.e, \t\r\n"
#: Forms of numbers that a float may not hold.
_HUGE: Final = (b"e999", b"e+999", b"9" * 300)


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


def embedded(vectors: Iterable[Raw], tokens: int | None = None) -> Embedded:
    """Return the vectors of an answer, each a list of numbers. They are looked at as texts, for they may be many.

    Raises:
        WireError: one is something else, or has a number that no 32-bit float holds.
    """
    told = tuple(vectors)
    for vector in told:
        forms = bytes(vector).translate(_AS_FORMS)
        if forms[:1] != b"[" or forms[1:-1].translate(None, _OF_NUMBERS):
            raise _no_vector()
        if any(form in forms for form in _HUGE):
            packed(vector)
    return Embedded(told, tokens)


def packed(vector: Raw) -> str:
    """Return a vector as base64 of little-endian 32-bit floats. Raises WireError: they hold one of its numbers not."""
    numbers = _json.decode(bytes(vector))
    if not isinstance(numbers, list):
        raise _no_vector()
    try:
        return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
    except (struct.error, OverflowError):
        raise _no_vector() from None


def _no_vector() -> WireError:
    return WireError("expected embeddings that are lists of numbers", status=502)


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
