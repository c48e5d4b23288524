"""All endpoints of a gateway."""

from __future__ import annotations

from dragoman.client import AsyncClient
from dragoman.gateway.embedding_pages import EmbeddingPages
from dragoman.gateway.endpoint import Endpoint
from dragoman.gateway.forward import Forwarder
from dragoman.gateway.legacy_pages import LegacyPages
from dragoman.gateway.names import Names
from dragoman.gateway.relay import Relay
from dragoman.gateway.response_pages import ResponsePages
from dragoman.gateway.stores import Stores


def make_endpoints(client: AsyncClient, names: Names, relay: Relay, stores: Stores) -> tuple[Endpoint, ...]:
    """The endpoints, in the order in which they are asked for a path."""
    forwarder = Forwarder(client, names)
    return (
        *ResponsePages(relay, stores.responses).endpoints(),
        *LegacyPages(client, relay, names, forwarder).endpoints(),
        *EmbeddingPages(forwarder).endpoints(),
    )
