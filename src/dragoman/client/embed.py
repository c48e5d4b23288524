"""Embed texts."""

from __future__ import annotations

import asyncio
from typing import Final, final

import msgspec

from dragoman import _json
from dragoman._json import Malformed
from dragoman.client.requester import Requester
from dragoman.codec.embeddings import EmbedRequest, too_large
from dragoman.errors import CallFailed, UsageError, WireError
from dragoman.events import Failure, fold
from dragoman.gathered import Gathered
from dragoman.http.response import Response, TransportFailed
from dragoman.inputs.keywords import read_count, read_seconds, read_targets, wrong
from dragoman.protocols import EMBEDDING, PROTOCOLS, embedder
from dragoman.routing.fallback import MOVES
from dragoman.routing.target import Target
from dragoman.secret import masked
from dragoman.types import Attempt, Usage

_SECONDS: Final = 120.0  # for one answer, where nothing else is said
_decode_vector: Final = _json.typed_decoder(list[float])


@final
class Embeddings(msgspec.Struct, frozen=True):
    """The vectors of texts, in their order. `target`: which one made them; `usage.input`: tokens of all texts."""

    vectors: list[list[float]]
    target: str
    usage: Usage
    attempts: tuple[Attempt, ...] = ()


@final
class Texts(msgspec.Struct, frozen=True):
    """The checked arguments of `embed`."""

    targets: str | tuple[str, ...]
    texts: tuple[str, ...]
    dimensions: int | None
    timeout: float


def read_texts(target: object, texts: object, dimensions: object, timeout: object) -> Texts:
    """Read the arguments of `embed`.

    Raises:
        UsageError: one of them is of the wrong kind.
    """
    items = (texts,) if isinstance(texts, str) else texts
    if not isinstance(items, list | tuple) or not items:
        raise wrong("texts", "a string or a list of strings, at least one", texts)
    for position, item in enumerate(items):
        if not isinstance(item, str) or not item:
            raise wrong(f"texts[{position}]", "a string that is not empty", item)
    size = None if dimensions is None else read_count("dimensions", dimensions)
    return Texts(read_targets(target), tuple(items), size, read_seconds("timeout", timeout) or _SECONDS)


async def embed(requester: Requester, asked: Texts) -> Embeddings:
    """Ask the targets, in their order, until one answers.

    Raises:
        UsageError: no target's provider has embeddings that are known.
        CallFailed: the last one failed.
    """
    speaking = map(_speaking, requester.chain(asked.targets).targets)
    targets = [target for target in speaking if target is not None]
    if not targets:
        known = "expected a provider with embeddings (openai-chat, ollama-chat or gemini-generate)"
        seen = asked.targets if isinstance(asked.targets, str) else ", ".join(asked.targets)
        raise UsageError(f"target: {known}, got {seen[:80]!r}")
    attempts: list[Attempt] = []
    for position, target in enumerate(targets):
        begun = asyncio.get_running_loop().time()
        try:
            found = await _asked(requester, target, asked)
        except _Failed as problem:
            failure = problem.failure
            seconds = asyncio.get_running_loop().time() - begun
            attempts.append(
                Attempt(target.name, "failed", failure.message, failure.kind, failure.status, seconds=seconds)
            )
            if position + 1 == len(targets) or failure.kind not in MOVES:
                raise CallFailed(failure, fold([failure])) from None
            continue
        attempts.append(Attempt(target.name, "answered", usage=found.usage))
        return msgspec.structs.replace(found, attempts=tuple(attempts))
    raise AssertionError("unreachable")


class _Failed(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def _speaking(target: Target) -> Target | None:
    """Return the target in a protocol with embeddings, or None if its provider has none."""
    for name in (target.provider.protocol, *target.provider.also):
        if name in EMBEDDING:
            provider = target.provider.speaking(name)
            return msgspec.structs.replace(target, provider=provider, protocol=PROTOCOLS[name])
    return None


async def _asked(requester: Requester, target: Target, asked: Texts) -> Embeddings:
    words = embedder(target.protocol.name)
    http = words.render_request(EmbedRequest(target.model, asked.texts, asked.dimensions))
    try:
        async with asyncio.timeout(asked.timeout):
            response = await requester.send(target, http)
            try:
                body = await _read(response, target.bounds.of_embeddings(len(asked.texts)))
            finally:
                response.close()
        if not 200 <= response.status < 300:
            failure = target.protocol.parse_error(response.status, body, headers=response.headers)
            message = masked(failure.message, target.secrets())
            raise _Failed(msgspec.structs.replace(failure, message=message, code=None))
        found = words.parse_response(body)
    except TransportFailed as problem:
        raise _Failed(problem.failure) from None
    except TimeoutError:
        raise _Failed(Failure("timeout", f"no answer in {asked.timeout:g} seconds")) from None
    except WireError as problem:
        raise _Failed(Failure("wire", str(problem))) from None
    vectors = [_decode_vector(vector) for vector in found.vectors]
    whole = [vector for vector in vectors if not isinstance(vector, Malformed)]
    if len(whole) != len(asked.texts):
        raise _Failed(Failure("wire", f"expected {len(asked.texts)} vectors of numbers, got {len(whole)}"))
    return Embeddings(whole, target.name, Usage(input=found.tokens))


async def _read(response: Response, most: int) -> bytes:
    kept = Gathered()
    while data := await response.read():
        kept.add(data)
        if kept.size > most:
            raise _Failed(too_large(most, kept.size))
    return kept.take()
