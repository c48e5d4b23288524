"""Asking models: `AsyncClient`, `Client`, and the exchange beneath them."""

from dragoman.client.asynchronous import AsyncClient
from dragoman.client.embed import Embeddings
from dragoman.client.runs import AsyncRun, Run
from dragoman.client.streams import AsyncStream, Stream, StreamedCall
from dragoman.client.synchronous import Client
from dragoman.client.tool_loop import Answer
from dragoman.client.tool_run import ToolFinished, ToolStarted
from dragoman.discovery.model_facts import ModelFacts
from dragoman.types import Attempt

__all__ = [
    "Answer", "AsyncClient", "AsyncRun", "AsyncStream", "Attempt", "Client", "Embeddings", "ModelFacts", "Run",
    "Stream", "StreamedCall", "ToolFinished", "ToolStarted",
]  # fmt: skip
