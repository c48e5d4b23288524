"""A target's name, or a route's, → a `Target`."""

from __future__ import annotations

import msgspec

from dragoman.client.target import Target
from dragoman.config import Config, ModelConfig
from dragoman.contract import ModelLimits
from dragoman.errors import UsageError
from dragoman.protocols import PROTOCOLS
from dragoman.providers import Provider, nearest, split_target
from dragoman.secret import Secret
from dragoman.types import Params, Request

_NO_MODEL_CONFIG = ModelConfig()


def resolve(name: str, config: Config) -> Target:
    """The target of that name: `provider/model`, or the first target of a route.

    Raises:
        UsageError: no such provider or route; names the nearest.
        ConfigError: its key cannot be read.
    """
    if "/" not in name:
        route = config.routes.get(name)
        if route is None:
            near = nearest(name, (*config.routes, *config.catalog.providers))
            raise UsageError(f"expected provider/model or the name of a route, got {name[:80]!r}{near}")
        name = route.targets[0]
    provider_name, model_id = split_target(name)
    provider = config.catalog.provider(provider_name)
    known = config.catalog.model(name)
    mine = config.models.get(name, _NO_MODEL_CONFIG)
    return Target(
        provider=provider,
        protocol=PROTOCOLS[provider.protocol],
        model=model_id,
        dialect=msgspec.structs.replace(provider.dialect, **mine.dialect) if mine.dialect else provider.dialect,
        limits=ModelLimits(known.context, known.max_output),
        key=config.key(provider_name),
        strict=bool(mine.strict),
    )


def with_defaults(request: Request, target: Target, config: Config) -> Request:
    """A request with the model's configured options where it names none of its own."""
    options = config.models.get(target.name, _NO_MODEL_CONFIG).options
    changes = {
        field: getattr(options, field)
        for field in Params.__struct_fields__
        if getattr(request.params, field) in (None, ()) and getattr(options, field) not in (None, ())
    }
    params = msgspec.structs.replace(request.params, **changes) if changes else request.params
    return msgspec.structs.replace(request, model=target.model, params=params)


def at_address(target: Target, base_url: str, key: Secret | None) -> Target:
    """The same target at a server that was started for it."""
    provider: Provider = msgspec.structs.replace(target.provider, base_url=base_url)
    return msgspec.structs.replace(target, provider=provider, key=key)
