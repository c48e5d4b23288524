"""`Client.models`: the list, and the error of a server that gives none."""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from dragoman.client.requester import Requester
from dragoman.discovery.model_facts import ModelFacts
from dragoman.discovery.query_server import Found
from dragoman.errors import CallFailed
from dragoman.events import Failure, fold

_LOG: Final = logging.getLogger("dragoman.models")


async def listed_models(requester: Requester, provider: str | None) -> tuple[ModelFacts, ...]:
    """As `Requester.models`, but a failed list is never an empty one.

    Raises:
        UsageError: no such provider.
        CallFailed: this one provider gave no list, and the catalogue has none of it.
    """
    failed: list[tuple[str, Failure]] = []

    def tell(found: Found) -> None:
        if found.failure is not None:
            failed.append((found.provider.name, found.failure))

    facts = await requester.models(provider, tell)
    for name, failure in failed:
        message = f"{name} gives no list of models: {failure.message}"
        if provider is not None and not facts:
            raise CallFailed(msgspec.structs.replace(failure, message=message), fold([]))
        if name in requester.config.providers or name in requester.config.keys:
            _LOG.warning("%s", message)
    return facts
