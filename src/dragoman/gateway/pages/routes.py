"""All endpoints of a gateway."""

from __future__ import annotations

from dragoman.client.requester import Requester
from dragoman.gateway.endpoint import Endpoint
from dragoman.gateway.model_names import ModelNames
from dragoman.gateway.pages.embeddings import EmbeddingPages
from dragoman.gateway.pages.forward import Forwarder
from dragoman.gateway.pages.key import KeyPage
from dragoman.gateway.pages.legacy import LegacyPages
from dragoman.gateway.pages.responses import ResponsePages
from dragoman.gateway.relay import Relay
from dragoman.gateway.server.body_memory import BodyMemory
from dragoman.gateway.storage.stores import Stores


def make_endpoints(
    client: Requester, names: ModelNames, relay: Relay, stores: Stores, memory: BodyMemory
) -> tuple[Endpoint, ...]:
    """Return the endpoints in the order in which they are matched. `memory`: of all current requests."""
    forwarder = Forwarder(client, names)
    return (
        *ResponsePages(relay, stores.responses, memory).endpoints(),
        *LegacyPages(client, relay, names, forwarder).endpoints(),
        *EmbeddingPages(forwarder).endpoints(),
        *KeyPage(stores.ledger, lambda: client.config.quotas).endpoints(),
    )
