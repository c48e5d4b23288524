"""What the API works on: the ledger's folder, and what the configuration says of keys and quotas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Final, final

import msgspec

from dragoman.config import Quota
from dragoman.gateway.administration.requests import AdminRefusal, Asked
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Refused, StoreAway
from dragoman.ledger.keys import KeyBook, VirtualKey
from dragoman.ledger.limits.quotas import QuotaBook

#: Seconds that a store may take to answer: of one who waits here, none of whose requests goes on meanwhile.
PATIENCE: Final = 10.0


@final
class Desk(msgspec.Struct, frozen=True):
    """`file_keys`, `file_quotas`: those of the configuration that is in force, which nobody changes here."""

    folder: LedgerFolder
    file_keys: Callable[[], Sequence[VirtualKey]]
    file_quotas: Callable[[], Sequence[Quota]]

    @contextmanager
    def keys(self, asked: Asked) -> Iterator[KeyBook]:
        """The store's keys, for the one who asks: another's are none of its own, and one beyond its bounds stays.

        Raises:
            AdminRefusal: the store refuses, or is away.
        """

        def may(key: VirtualKey) -> None:
            if not asked.granter.sees(key):
                raise no_such("key", key.name)
            refuse_excess(asked, key)

        with closing(KeyBook(self.folder, actor=actor(asked), may=may)) as book, told():
            yield book

    @contextmanager
    def quotas(self, asked: Asked) -> Iterator[QuotaBook]:
        """The store's quotas. Raises AdminRefusal."""
        with closing(QuotaBook(self.folder, actor=actor(asked))) as book, told():
            yield book


@contextmanager
def told() -> Iterator[None]:
    """What the ledger says, as an `AdminRefusal`."""
    try:
        yield
    except Refused as problem:
        raise AdminRefusal(409, "conflict", str(problem)) from None
    except (StoreAway, OSError):
        raise AdminRefusal(503, "ledger_away", "the ledger cannot be read or written now") from None


def actor(asked: Asked) -> str:
    """Who asks, for the audit."""
    return f"{asked.granter.name} (admin key)"


def no_such(what: str, name: str) -> AdminRefusal:
    """The same words for what is not there and for what is another's."""
    return AdminRefusal(404, "not_found", f"there is no {what} {name[:80]}")


def refuse_excess(asked: Asked, key: VirtualKey) -> None:
    """Raises AdminRefusal: the key is beyond the bounds of the one who asks."""
    if excess := asked.granter.excess(key):
        raise AdminRefusal(403, "beyond_bounds", f"key {key.name}: {excess}")
