"""What a client may know of its own key: `GET /v1/key`, in the manner of OpenRouter's page of that name.

`usage` counts US dollars; `usage_nano` says the same exactly, and `unpriced` how many attempts are not in it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final, get_args

from dragoman import _json
from dragoman.events import Failure
from dragoman.gateway.endpoint import Call, Endpoint, Refused
from dragoman.gateway.messages import Answer
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import StoreAway
from dragoman.ledger.keys import VirtualKey
from dragoman.ledger.usage import Used, read_usage
from dragoman.types import ProtocolName

_ANONYMOUS: Final = VirtualKey(name="")


class KeyPage:
    """The endpoint of one gateway."""

    __slots__ = ("_folder",)

    def __init__(self, folder: LedgerFolder | None) -> None:
        """`folder` None: there is no ledger."""
        self._folder = folder

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Its path."""
        return tuple(Endpoint(name, ("GET",), "/v1/key", self._serve) for name in get_args(ProtocolName))

    async def _serve(self, call: Call) -> None:
        if self._folder is None:
            raise Refused(Failure("not_found", "this gateway keeps no ledger", 404))
        name = call.record.key_name
        try:
            days = await asyncio.to_thread(read_usage, self._folder, ("day",), key=name)
        except StoreAway:
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
            "limit": None,
            "limit_remaining": None,
        }
        call.answer(Answer(200, _json.encode({"data": data})))


def _dollars(used: list[Used]) -> float:
    return sum(each.nano for each in used) / 1_000_000_000
