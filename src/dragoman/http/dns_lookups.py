"""Look up host names, each host in its own thread, and cache the addresses.

The event loop's own look-ups share four threads: a name server that does not answer for one provider would stop
connections to all. Here a waiting host holds only its own thread, and one at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final

#: Seconds that addresses are remembered; the system's resolver tells us no time to live.
_REMEMBERED_SECONDS: Final = 30.0
_REMEMBERED: Final = 256
#: Hosts that may wait for their addresses at once.
_WAITING: Final = 64


class DnsLookups:
    """Looks names up. Used in one event loop."""

    __slots__ = ("_found", "_waiting")

    def __init__(self) -> None:
        self._found: dict[str, tuple[float, list[str]]] = {}
        self._waiting: dict[str, asyncio.Future[list[str]]] = {}

    async def addresses(self, host: str) -> list[str]:
        """Return the host's addresses, families alternating, the system's first choice first.

        Raises:
            socket.gaierror: there are none, or too many other hosts wait.
        """
        loop = asyncio.get_running_loop()
        expires, found = self._found.get(host, (0.0, []))
        if expires > loop.time():
            return found
        waiting = self._waiting.get(host)
        if waiting is None:
            if len(self._waiting) >= _WAITING:
                raise socket.gaierror(socket.EAI_AGAIN, "too many names are being looked up")
            waiting = self._waiting[host] = loop.create_future()
            look_up = threading.Thread(
                target=self._look_up, args=(host, loop), name=f"look-up {host[:60]}", daemon=True
            )
            try:
                look_up.start()
            except RuntimeError:  # the main thread has ended: Python 3.12 starts no further one
                self._look_up(host, loop)
        return await asyncio.shield(waiting)

    def forget(self, host: str) -> None:
        """Forget addresses that do not answer, so that the next call looks them up again."""
        self._found.pop(host, None)

    def _look_up(self, host: str, loop: asyncio.AbstractEventLoop) -> None:
        """Run in the thread. A host that never answers holds it until the process ends, which does not wait for it."""
        outcome: list[str] | OSError
        try:
            outcome = _in_turns(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as problem:
            outcome = problem if isinstance(problem, OSError) else socket.gaierror(socket.EAI_NONAME, "no host name")
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._take, host, outcome)

    def _take(self, host: str, outcome: list[str] | OSError) -> None:
        waiting = self._waiting.pop(host)
        if isinstance(outcome, list):
            if len(self._found) >= _REMEMBERED:
                self._found.clear()
            self._found[host] = waiting.get_loop().time() + _REMEMBERED_SECONDS, outcome
            waiting.set_result(outcome)
        else:
            waiting.set_exception(outcome)
            waiting.exception()  # nobody may wait any more


def _in_turns(found: Iterable[Sequence[Any]]) -> list[str]:
    """Return the addresses of `getaddrinfo`'s rows, families alternating."""
    families: dict[int, list[str]] = {}
    for family, _, _, _, address in found:
        families.setdefault(family, []).append(str(address[0]))
    rows = list(families.values())
    return [row[turn] for turn in range(max(map(len, rows), default=0)) for row in rows if turn < len(row)]
