"""Share with other workers and machines which circuit breakers opened.

Advisory: a worker that hears of an opening still probes on its own, and one that hears nothing learns by itself.
Targets on this machine itself are not shared, and a target at another address is a different one.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from dragoman.config import Config
from dragoman.errors import DragomanError
from dragoman.gateway.storage.breaker_board import NEWS_SECONDS, Board, Opening
from dragoman.gateway.storage.sqlite import StoreFailed
from dragoman.providers.address import is_loopback
from dragoman.routing.resolve import resolve
from dragoman.routing.target_health import HealthTable

_LOG: Final = logging.getLogger("dragoman.gateway")
#: Seconds between two exchanges, and after the last request for which they go on.
_EVERY: Final = 0.25
_GOES_ON: Final = 2.0
#: Openings that are remembered as heard.
_HEARD: Final = 4_096


class BreakerGossip:
    """One worker's exchange, in its event loop."""

    __slots__ = ("_board", "_config", "_health_table", "_heard", "_keys", "_keys_of", "_looks", "_until", "_worker")

    def __init__(self, board: Board, config: Callable[[], Config], health_table: HealthTable) -> None:
        self._board = board
        self._config = config
        self._health_table = health_table
        self._worker = secrets.token_hex(8)
        self._keys: dict[str, str] = {}  # by key, the target
        self._keys_of: Config | None = None
        self._heard: dict[tuple[str, str], int] = {}  # by key and worker, the last opening
        self._looks = 0
        self._until = 0.0

    async def run(self) -> None:
        """Run until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_EVERY)
            if self._is_needed(loop.time()):
                try:
                    await self.exchange(loop.time)
                except StoreFailed:
                    continue

    async def exchange(self, clock: Callable[[], float]) -> None:
        """Exchange once. Raises StoreFailed."""
        keys = self._targets()
        if not keys:
            return
        opened = {key: count for key, target in keys.items() if (count := self._health_table.openings(target))}
        for opening in await self._board.exchange(self._worker, opened, list(keys)):
            self._hear(opening, keys, clock())

    def close(self) -> None:
        """Stop."""
        self._board.close()

    # ------------------------------------------------------------ inside

    def _is_needed(self, now: float) -> bool:
        """Return whether a target was used lately: an idle worker exchanges nothing."""
        looks, self._looks = self._looks, self._health_table.looks
        if looks != self._looks:
            self._until = now + _GOES_ON
        return now < self._until

    def _hear(self, opening: Opening, keys: dict[str, str], now: float) -> None:
        """Take another worker's opening. Each opening counts once; a repeated or late report does nothing."""
        who = (opening.key, opening.worker)
        target = keys.get(opening.key)
        if target is None or opening.age > NEWS_SECONDS or opening.number <= self._heard.get(who, 0):
            return
        if len(self._heard) >= _HEARD:
            del self._heard[next(iter(self._heard))]
        self._heard[who] = opening.number
        if self._health_table.of(target).breaker.told_open(now, age=max(0.0, opening.age)):
            _LOG.info("%s: its circuit breaker opened elsewhere: it is passed over where there is another", target)

    def _targets(self) -> dict[str, str]:
        """Return the targets of routes that other machines reach too, by key."""
        config = self._config()
        if config is not self._keys_of:
            self._keys, self._keys_of = {}, config
            for name in sorted({target for route in config.routes.values() for target in route.targets}):
                try:
                    address = resolve(name, config).provider.base_url
                    host = urlsplit(address).hostname
                except (DragomanError, ValueError):
                    continue
                if host and not is_loopback(host):
                    self._keys[_key(name, address)] = name
        return self._keys


def _key(target: str, address: str) -> str:
    return hashlib.sha256(f"{target}\0{address}".encode()).hexdigest()[:32]
