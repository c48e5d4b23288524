"""Asking models over HTTP: `AsyncClient`, `Client`, and the exchange beneath them."""

from dragoman.client.client import AsyncClient
from dragoman.client.stream import AsyncStream
from dragoman.client.synchronous import Client, Stream
from dragoman.client.tool_loop import Answer
from dragoman.discovery.model_facts import ModelFacts
from dragoman.types import Attempt

__all__ = ["Answer", "AsyncClient", "AsyncStream", "Attempt", "Client", "ModelFacts", "Stream"]
