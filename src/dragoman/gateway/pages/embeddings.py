"""Embeddings in the three protocols that have them, in front of providers of any of the three."""

from __future__ import annotations

from functools import partial
from typing import Final

import msgspec

from dragoman.client.offload import run_sized, weight_of
from dragoman.codec.embeddings import Embedded, Embedder, EmbedRequest
from dragoman.errors import WireError
from dragoman.events import Failure
from dragoman.gateway.endpoint import Call, Endpoint, Refused
from dragoman.gateway.messages import Answer
from dragoman.gateway.pages.forward import Forwarder
from dragoman.protocol import HttpRequest
from dragoman.protocols import EMBEDDING, embedder
from dragoman.routing.target import Target
from dragoman.types import Native, ProtocolName, Usage

#: Texts of one request.
_MOST_INPUTS: Final = 2_048
#: Characters of a number in a vector.
_NUMBER: Final = 20
#: Characters of a token, where no server counts them.
_CHARACTERS: Final = 4


class EmbeddingPages:
    """The endpoints of one gateway."""

    __slots__ = ("_forwarder",)

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return all paths."""
        found: list[Endpoint] = []
        for name in EMBEDDING:
            asked = _Asked(self._forwarder, name)
            found += [Endpoint(name, ("POST",), route, asked.serve) for route in asked.embedder.routes]
        return tuple(found)


class _Asked:
    """Answers the clients of one protocol."""

    __slots__ = ("_forwarder", "_name", "embedder")

    def __init__(self, forwarder: Forwarder, name: ProtocolName) -> None:
        self._forwarder = forwarder
        self._name = name
        self.embedder: Embedder = embedder(name)

    async def serve(self, call: Call) -> None:
        """Answer one request."""
        parse = partial(self.embedder.parse_request, call.body, path=call.head.target)
        request = await run_sized(weight_of(call.body), parse)
        if len(request.inputs) > _MOST_INPUTS:
            raise WireError(f"expected at most {_MOST_INPUTS} texts, got {len(request.inputs)}")
        chain = self._forwarder.find(request.model, EMBEDDING, call)
        if chain is None:
            raise WireError(f"model {request.model[:120]!r} has no embeddings: its provider offers none that are known")

        def rendered(target: Target) -> HttpRequest:
            native = self._own(request, target.protocol.name)
            asked = msgspec.structs.replace(request, model=target.model, native=native)
            return embedder(target.protocol.name).render_request(asked)

        def read(target: Target, body: bytes) -> tuple[Embedded, Usage]:
            found = embedder(target.protocol.name).parse_response(body)
            # No text is written for vectors.
            usage = Usage(input=found.tokens, output=None if found.tokens is None else 0)
            if len(found.vectors) != len(request.inputs):
                counts = f"expected {len(request.inputs)} embeddings, got {len(found.vectors)}"
                raise Refused(Failure("wire", counts, usage=usage))
            return found, usage

        most = chain.targets[0].bounds.of_embeddings(len(request.inputs))
        embedded = await self._forwarder.whole(call, chain, rendered, read, most)
        call.record.usage = Usage(input=embedded.tokens)
        render = partial(self.embedder.render_response, request, embedded, _estimate(request))
        call.answer(Answer(200, await run_sized(_NUMBER * sum(map(len, embedded.vectors)), render)))

    def _own(self, request: EmbedRequest, name: ProtocolName) -> Native | None:
        return request.native if request.native is not None and request.native.protocol == name else None


def _estimate(request: EmbedRequest) -> int:
    return sum(-(-len(item) // (_CHARACTERS if isinstance(item, str) else 1)) for item in request.inputs)
