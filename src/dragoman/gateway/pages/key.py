"""A client's view of its own key: `GET /v1/key`, like OpenRouter's page of that name.

`usage` counts US dollars, `limit` those of the budget with the least left; `usage_nano` is the exact usage, and
`unpriced` the number of attempts that it does not include.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final, get_args

from dragoman import _json
from dragoman.config import Quota
from dragoman.events import Failure
from dragoman.gateway.endpoint import Call, Endpoint, Refused
from dragoman.gateway.messages import Answer
from dragoman.gateway.telemetry.record import Record
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.keys import VirtualKey
from dragoman.ledger.limits.accounts import Scopes
from dragoman.ledger.limits.quotas import merged, read_stored
from dragoman.ledger.reports.usage import Used, read_usage
from dragoman.ledger.standing import Standing, read_standings
from dragoman.types import ProtocolName

_NANO: Final = 1_000_000_000
_ANONYMOUS: Final = VirtualKey(name="")


class KeyPage:
    """The endpoint of one gateway."""

    __slots__ = ("_folder", "_quotas", "_reading")

    def __init__(self, folder: LedgerFolder | None, quotas: Callable[[], Sequence[Quota]]) -> None:
        """Create it. `folder` None: there is no ledger. `quotas`: those of the configuration in force."""
        self._folder = folder
        self._quotas = quotas
        self._reading = asyncio.Lock()

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return its path."""
        return tuple(Endpoint(name, ("GET",), "/v1/key", self._serve) for name in get_args(ProtocolName))

    async def _serve(self, call: Call) -> None:
        if self._folder is None:
            raise Refused(Failure("not_found", "this gateway keeps no ledger", 404))
        name = call.record.key_name
        try:
            async with self._reading:  # one at a time: the threads are those in which large bodies are read
                days = await asyncio.to_thread(read_usage, self._folder, ("day",), key=name)
                tightest = await asyncio.to_thread(tightest_of, self._folder, self._quotas(), call.record)
        except (StoreAway, OSError):
            raise Refused(Failure("overloaded", "the ledger cannot be read now", 503)) from None
        key = call.record.virtual_key or _ANONYMOUS
        today = time.strftime("%Y-%m-%d", time.gmtime())
        daily = [used for used in days if used.group[0] == today]
        monthly = [used for used in days if used.group[0][:7] == today[:7]]
        data = {
            "label": name,
            "owner": key.owner,
            "team": key.team,
            "labels": key.labels,
            "models": list(key.models),
            "routes": list(key.routes),
            "expires_at": key.expires,
            "usage": _dollars(days),
            "usage_daily": _dollars(daily),
            "usage_monthly": _dollars(monthly),
            "usage_nano": sum(used.nano for used in days),
            "unpriced": sum(used.unpriced for used in days),
            "limit": None if tightest is None else tightest.charge.limit / _NANO,
            "limit_remaining": None if tightest is None else (tightest.left or 0) / _NANO,
        }
        call.answer(Answer(200, _json.encode({"data": data})))


def tightest_of(folder: LedgerFolder, of_file: Sequence[Quota], record: Record) -> Standing | None:
    """Return the dollar budget with the least left for a request's client, or None if none applies to all its requests.

    Raises:
        StoreAway, OSError: the ledger cannot be read.
    """
    key = record.virtual_key or _ANONYMOUS
    scopes = Scopes(record.key_name, key.owner, key.team, key.labels)
    quotas = [quota for quota in merged(of_file, read_stored(folder)) if quota.unit == "usd" and quota.is_recorded]
    standings = read_standings(folder, quotas, scopes, now=time.time())
    return min(standings, key=lambda standing: standing.left or 0, default=None)


def _dollars(used: list[Used]) -> float:
    return sum(each.nano for each in used) / 1_000_000_000
