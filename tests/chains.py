"""A healthy provider and broken ones, in every protocol, for tests of routes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dragoman
from cases import counter
from conversations import reply
from dragoman.client import Attempt
from dragoman.config import Config, load_config
from dragoman.events import Event, unfold
from dragoman.protocols import PROTOCOLS
from failing import breaking_tls, closed_port, speaking_plain
from scripted import Scripted, Step, serving, streamed

BASE = {
    "ollama-chat": "",
    "openai-chat": "/v1",
    "openai-responses": "/v1",
    "anthropic-messages": "",
    "gemini-generate": "/v1beta",
}
#: Nobody waits long for a stalled answer; a busy machine may need this long for a healthy one, so only where it counts.
CLOCKS = "\n".join(f"{name}first_event_seconds = 0.5" for name in ("", "reasoning_", "local_"))


class Bench:
    """Servers of kind "good", "plain", "closed", "https" and "tls"; each is a provider `KIND-PROTOCOL`."""

    def __init__(
        self, folder: Path, *, good: Scripted, plain: Scripted, tls: Scripted, closed: str, https: str
    ) -> None:
        self.folder = folder
        self.good = good
        self.plain = plain
        self.tls = tls
        self._urls = {"good": good.url, "plain": plain.url, "tls": tls.url, "closed": closed, "https": https}

    def text(self, more: str, *, http: str = "", lines: str = "") -> str:
        """The configuration: `lines` in each provider's table, `http` in that of all, `more` after them."""
        tables = [
            f'[providers."{kind}-{name}"]\nprotocol = "{name}"\nbase_url = "{url}{base}"\n{lines}'
            for kind, url in self._urls.items()
            for name, base in BASE.items()
        ]
        return "\n".join([*tables, f'[http]\nca_file = "tls.pem"\n{http}', more])

    def config(self, more: str, *, http: str = "", lines: str = "") -> Config:
        """The configuration, loaded."""
        file = self.folder / "dragoman.toml"
        file.write_text(self.text(more, http=http, lines=lines))
        return load_config(file, environ={}, home=self.folder)

    def answer(self, kind: str, *replies: Sequence[Step]) -> None:
        """What a server answers from now on."""
        server: Scripted = getattr(self, kind)
        server.replies[:] = replies
        server.requests.clear()


@contextmanager
def running_bench(folder: Path) -> Iterator[Bench]:
    """All servers until the block ends."""
    with (
        serving([]) as good,
        serving([]) as plain,
        breaking_tls(folder / "tls.pem") as tls,
        closed_port() as closed,
        speaking_plain() as https,
    ):
        yield Bench(folder, good=good, plain=plain, tls=tls, closed=closed, https=https)


def stream_of(protocol: str, shape: str = "text-call") -> list[Step]:
    """A healthy answer, in two pieces."""
    encoder = PROTOCOLS[protocol].encoder(new_id=counter(), model="model-1", created=1_750_000_000)
    data = encoder.encode(unfold(reply(shape)))
    half = len(data) // 2
    return streamed(data[:half], data[half:], content_type=PROTOCOLS[protocol].stream_type)


def busy(*headers: str, status: int = 429, words: str = "slow down") -> list[Step]:
    """A refusal."""
    body = b'{"error":{"message":"%b"}}' % words.encode()
    lines = [f"HTTP/1.1 {status} Something", f"content-length: {len(body)}", *headers]
    return ["\r\n".join([*lines, "", ""]).encode() + body]


def ask(config: Config, name: str, **options: Any) -> tuple[list[Event], tuple[Attempt, ...]]:
    """All events of one turn, and what came of the targets. `options` are the client's."""

    async def run() -> tuple[list[Event], tuple[Attempt, ...]]:
        async with dragoman.AsyncClient(config, **options) as client:
            async with client.stream(name, "Hi") as stream:
                events: list[Event] = []
                while batch := await stream.next_batch():
                    events += batch
            return events, stream.attempts

    return asyncio.run(run())
