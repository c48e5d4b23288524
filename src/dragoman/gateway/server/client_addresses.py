"""State by client address: open connections, and wrong client keys.

An address is an IPv4 address or the first 64 bits of an IPv6 one, which one machine has to itself.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

import msgspec

from dragoman.events import Failure
from dragoman.gateway.auth import shown_keys
from dragoman.gateway.messages import Answer, Head
from dragoman.providers.address import is_loopback

#: Wrong keys of an address that are answered at once, and for how many seconds without one they are remembered.
_FREE: Final = 10
_FORGOTTEN_SECONDS: Final = 60.0
#: The first pause, in seconds; each further wrong key doubles it.
_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
#: ClientAddresses whose wrong keys are remembered; the one that was quiet for longest is forgotten first.
_REMEMBERED: Final = 4_096


class ClientAddresses:
    """Counts by address. The tables are bounded by the open connections and by `_REMEMBERED`."""

    __slots__ = ("_most", "_open", "_trusted", "_wrong")

    def __init__(self, *, most: int, trusted: Iterable[str] = ()) -> None:
        """Create it. `most`: connections of one address. `trusted`: proxies that carry many clients."""
        self._open: dict[str, int] = {}
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self.reconfigure(most=most, trusted=trusted)

    def reconfigure(self, *, most: int, trusted: Iterable[str]) -> None:
        """Use these from now on; open connections stay."""
        self._most = most
        self._trusted = frozenset(map(network, trusted))

    def enter(self, address: str) -> bool:
        """Count a new connection. Return whether it may stay; then call `leave` at its end."""
        count = self._open.get(address, 0)
        if count >= self._most and not is_loopback(address) and address not in self._trusted:
            return False
        self._open[address] = count + 1
        return True

    def leave(self, address: str) -> None:
        """Count the end of a connection."""
        count = self._open[address] - 1
        if count:
            self._open[address] = count
        else:
            del self._open[address]

    def pause(self, address: str, *, now: float) -> float:
        """Count a wrong client key. Return the seconds until it is answered. `now`: a clock's seconds."""
        count, last = self._wrong.pop(address, (0, now))
        count = 1 if now - last > _FORGOTTEN_SECONDS else count + 1
        self._wrong[address] = count, now
        if len(self._wrong) > _REMEMBERED:
            self._wrong.popitem(last=False)
        return min(_PAUSE * 2.0 ** min(count - _FREE - 1, 10), LONGEST_PAUSE) if count > _FREE else 0.0

    def slowed(self, answer: Answer, head: Head, failure: Failure) -> Answer:
        """Return a refusal, with a pause if it is for a wrong key. A missing key is no guess."""
        if failure.kind != "auth" or not shown_keys(head):
            return answer
        return msgspec.structs.replace(answer, pause=self.pause(head.address, now=time.monotonic()))


def network(address: str) -> str:
    """Return what counts as one address."""
    if ":" not in address:
        return address
    try:
        parsed = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(parsed) if parsed.is_loopback else str(ipaddress.IPv6Network((int(parsed) >> 64 << 64, 64)))
