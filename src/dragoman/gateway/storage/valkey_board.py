"""The board of circuit breakers in the Valkey that counts limits: a sorted set, by the server's time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from dragoman.gateway.storage.breaker_board import MOST_OPENINGS, NEWS_SECONDS, Opening
from dragoman.gateway.storage.sqlite import StoreUnreachable
from dragoman.ledger.counters.valkey import ValkeyPlace
from dragoman.ledger.interfaces import CountersAway

_NAME: Final = "dragoman:breakers"
#: Seconds for which an opening stands there, and after which all of them are gone where nobody writes.
_KEPT: Final = 60
_FORGOTTEN: Final = 3_600


class ValkeyBoard:
    """A `Board` in Valkey."""

    __slots__ = ("_executor", "_place")

    def __init__(self, place: ValkeyPlace) -> None:
        self._place = place
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="dragoman-breakers")

    async def exchange(self, worker: str, opened: dict[str, int], keys: Sequence[str]) -> list[Opening]:
        def work(client: Any) -> list[Opening]:
            seconds, micros = client.time()
            now = seconds + micros / 1_000_000
            pipeline = client.pipeline(transaction=False)
            if opened:
                # What stands there already keeps its time.
                pipeline.zadd(_NAME, {f"{key} {worker} {number}": now for key, number in opened.items()}, nx=True)
            pipeline.zremrangebyscore(_NAME, "-inf", now - _KEPT)
            pipeline.expire(_NAME, _FORGOTTEN)
            pipeline.zrevrangebyscore(_NAME, "+inf", now - NEWS_SECONDS, start=0, num=MOST_OPENINGS, withscores=True)
            return _read(pipeline.execute()[-1], worker, keys, now)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, self._place.do, work)
        except CountersAway as problem:
            raise StoreUnreachable(str(problem)) from None

    def close(self) -> None:
        self._executor.submit(self._place.close)
        self._executor.shutdown()


def _read(rows: Sequence[tuple[str, float]], worker: str, keys: Sequence[str], now: float) -> list[Opening]:
    known = set(keys)
    found = []
    for text, at in rows:
        key, _, rest = text.partition(" ")
        who, _, number = rest.partition(" ")
        if key in known and who != worker and number.isascii() and number.isdigit() and len(number) < 19:
            found.append(Opening(key, who, int(number), now - at))
    return found
