"""Find out what a target claims before it is asked: context window, tools, and the digest of its weights."""

from __future__ import annotations

import msgspec

from dragoman.discovery.query_server import look
from dragoman.embedded import EMBEDDED
from dragoman.providers.catalog import Model
from dragoman.routing.target import Target
from dragoman.validate.ask import Asker


async def identify(asker: Asker, target: Target) -> Model:
    """Return what is known of a target's model: by its server, else by the catalogue; None for the unknown."""
    if target.name == EMBEDDED.target:
        return EMBEDDED
    listed = asker.config.catalog.model(target.name)
    if not target.provider.base_url or not (target.provider.local or listed.context is None):
        return listed
    found = await look(asker.transport(local=target.provider.local), target.provider, key=target.key)
    told = next((row for row in found.models if row.id in (target.model, f"{target.model}:latest")), None)
    if told is None:
        return listed
    known = {field: value for field, value in msgspec.structs.asdict(told).items() if value is not None}
    return msgspec.structs.replace(listed, **known | {"id": target.model})
