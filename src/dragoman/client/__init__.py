"""Asking models over HTTP: `AsyncClient`, `Client`, and the exchange beneath them."""

from dragoman.client.client import AsyncClient, Client
from dragoman.client.run import Answer
from dragoman.client.stream import AsyncStream, Stream

__all__ = ["Answer", "AsyncClient", "AsyncStream", "Client", "Stream"]
