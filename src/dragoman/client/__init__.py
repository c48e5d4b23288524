"""Ask models: `AsyncClient`, `Client`, and the exchange beneath them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dragoman.client.asynchronous import AsyncClient
    from dragoman.client.embed import Embeddings
    from dragoman.client.runs.loop import Answer
    from dragoman.client.runs.run import AsyncRun, Run
    from dragoman.client.runs.state import ToolFinished, ToolStarted
    from dragoman.client.streaming.streams import AsyncStream, Stream, StreamedCall
    from dragoman.client.synchronous import Client
    from dragoman.discovery.model_facts import ModelFacts
    from dragoman.types import Attempt

__all__ = [
    "Answer", "AsyncClient", "AsyncRun", "AsyncStream", "Attempt", "Client", "Embeddings", "ModelFacts", "Run",
    "Stream", "StreamedCall", "ToolFinished", "ToolStarted",
]  # fmt: skip

_PLACES: Final = {
    "Answer": "dragoman.client.runs.loop",
    "AsyncClient": "dragoman.client.asynchronous",
    "AsyncRun": "dragoman.client.runs.run",
    "AsyncStream": "dragoman.client.streaming.streams",
    "Attempt": "dragoman.types",
    "Client": "dragoman.client.synchronous",
    "Embeddings": "dragoman.client.embed",
    "ModelFacts": "dragoman.discovery.model_facts",
    "Run": "dragoman.client.runs.run",
    "Stream": "dragoman.client.streaming.streams",
    "StreamedCall": "dragoman.client.streaming.streams",
    "ToolFinished": "dragoman.client.runs.state",
    "ToolStarted": "dragoman.client.runs.state",
}


def __getattr__(name: str) -> object:
    """Import the public clients at their first use: the gateway needs the exchange alone."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
