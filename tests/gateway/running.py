"""A gateway that runs beside the tests, and a provider of all five protocols behind it."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from cases import counter
from dragoman.config import Config, load_config
from dragoman.events import Event, Reply, unfold
from dragoman.gateway.process.gateway import Gateway, new_event_loop
from dragoman.protocols import PROTOCOLS
from scripted import Scripted, Step, serving, streamed, whole

CREATED = 1_750_000_000
#: The provider's base URL in each protocol, after its address.
_BASE = {
    "ollama-chat": "",
    "openai-chat": "/v1",
    "openai-responses": "/v1",
    "anthropic-messages": "",
    "gemini-generate": "/v1beta",
}


class Running(NamedTuple):
    """A gateway, and the one server behind all its providers. Their names are those of the protocols."""

    url: str
    provider: Scripted
    gateway: Gateway
    loop: asyncio.AbstractEventLoop

    def answer(self, *replies: list[Step]) -> None:
        """What the provider answers from now on; requests that came before are forgotten."""
        self.provider.replies[:] = replies
        self.provider.requests.clear()
        self.provider.client_gone.clear()

    def request(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a request without any SDK."""
        connection = http.client.HTTPConnection("127.0.0.1", self.gateway.port, timeout=20)
        try:
            connection.request(method, path, body or None, headers or {})
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return response.status, found, response.read()
        finally:
            connection.close()

    def run(self, coroutine: Any) -> Any:
        """Run a coroutine in the gateway's event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20)


def write_providers(folder: Path, url: str, more: str = "") -> Path:
    """A configuration with a provider for each protocol, all at one address, and a route for each; nothing is tried
    twice."""
    tables = [
        f'[providers."{name}"]\nprotocol = "{name}"\nbase_url = "{url}{base}"\n'
        f'[routes.via-{name}]\ntargets = ["{name}/model-1"]'
        for name, base in _BASE.items()
    ]
    file = folder / "dragoman.toml"
    once = "" if "[http]" in more else "[http]\nretries = 0"
    file.write_text("\n".join([more, once, *tables]), encoding="utf-8")
    return file


def provider_config(folder: Path, url: str, more: str = "") -> Config:
    """The same, read."""
    return load_config(write_providers(folder, url, more), environ={}, home=folder)


@contextmanager
def gateway(folder: Path, more: str = "", **options: Any) -> Iterator[Running]:
    """Run a gateway until the block ends.

    `more`: lines of configuration, or `config` in place of all. `options`: `loop`, and those of `Gateway.open`.
    """
    with serving([]) as provider:
        config = options.pop("config", None) or provider_config(folder, provider.url, more)
        loop: asyncio.AbstractEventLoop = options.pop("loop", new_event_loop)()
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        options = {"host": "127.0.0.1", "port": 0} | options
        opened = asyncio.run_coroutine_threadsafe(Gateway.open(config, **options), loop).result(10)
        try:
            yield Running(opened.url, provider, opened, loop)
        finally:
            asyncio.run_coroutine_threadsafe(opened.drain(2), loop).result(10)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(5)
            loop.close()


def wire(protocol: str, reply: Reply | list[Event]) -> bytes:
    """A streamed response in a protocol."""
    encoder = PROTOCOLS[protocol].encoder(new_id=counter(), model="model-1", created=CREATED)
    return encoder.encode(unfold(reply) if isinstance(reply, Reply) else reply)


def stream_of(protocol: str, reply: Reply | list[Event]) -> list[Step]:
    """A streamed response of a provider, in two pieces."""
    data = wire(protocol, reply)
    half = len(data) // 2
    return streamed(data[:half], data[half:], content_type=PROTOCOLS[protocol].stream_type)


def whole_of(protocol: str, reply: Reply) -> list[Step]:
    """A response of a provider in one piece."""
    body = PROTOCOLS[protocol].render_response(reply, new_id=counter(), model="model-1", created=CREATED)
    return whole(body)
