"""Asking models over HTTP: `AsyncClient`, `Client`, and the exchange beneath them."""

from dragoman.client.capability import ModelFacts
from dragoman.client.client import AsyncClient
from dragoman.client.fallback import Attempt
from dragoman.client.run import Answer
from dragoman.client.stream import AsyncStream
from dragoman.client.synchronous import Client, Stream

__all__ = ["Answer", "AsyncClient", "AsyncStream", "Attempt", "Client", "ModelFacts", "Stream"]
