"""Asking models over HTTP: `AsyncClient`, `Client`, and the exchange beneath them."""

from dragoman.client.client import AsyncClient
from dragoman.client.fallback import Attempt
from dragoman.client.run import Answer
from dragoman.client.stream import AsyncStream, Stream
from dragoman.client.synchronous import Client

__all__ = ["Answer", "Attempt", "AsyncClient", "AsyncStream", "Client", "Stream"]
