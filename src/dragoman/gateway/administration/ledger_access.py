"""The API's access to the ledger's folder and to the configuration's keys and quotas."""

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
from dragoman.ledger.limits.quotas import QuotaBook, merged

#: Seconds that a store may take to answer: of one who waits here, none of whose requests goes on meanwhile.
PATIENCE: Final = 10.0


@final
class Desk(msgspec.Struct, frozen=True):
    """The ledger, and the keys and quotas of the configuration in force, which the API does not change."""

    folder: LedgerFolder
    file_keys: Callable[[], Sequence[VirtualKey]]
    file_quotas: Callable[[], Sequence[Quota]]

    @contextmanager
    def keys(self, asked: Asked) -> Iterator[KeyBook]:
        """Open the store's keys for a granter. Another team's keys do not exist for it, and one beyond its bounds
        stays.

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
        """Open the store's quotas. Raises AdminRefusal."""
        with closing(QuotaBook(self.folder, actor=actor(asked))) as book, told():
            yield book

    def all_quotas(self, asked: Asked) -> tuple[Quota, ...]:
        """Return the quotas of the file and of the store. Raises AdminRefusal."""
        with self.quotas(asked) as book:
            return merged(self.file_quotas(), (*book.list(), *book.of_machine()))


@contextmanager
def told() -> Iterator[None]:
    """Turn the ledger's exceptions into `AdminRefusal`."""
    try:
        yield
    except Refused as problem:
        raise AdminRefusal(409, "conflict", str(problem)) from None
    except (StoreAway, OSError):
        raise AdminRefusal(503, "ledger_away", "the ledger cannot be read or written now") from None


def actor(asked: Asked) -> str:
    """Return the granter's name for the audit."""
    return f"{asked.granter.name} (admin key)"


def no_such(what: str, name: str) -> AdminRefusal:
    """Return the same refusal for a missing thing and for another team's."""
    return AdminRefusal(404, "not_found", f"there is no {what} {name[:80]}")


def refuse_excess(asked: Asked, key: VirtualKey) -> None:
    """Check that a key is within the granter's bounds. Raises AdminRefusal."""
    if excess := asked.granter.excess(key):
        raise AdminRefusal(403, "beyond_bounds", f"key {key.name}: {excess}")
