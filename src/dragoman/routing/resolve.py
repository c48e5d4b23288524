"""Resolve the name of a target or a route into its `Chain` of targets."""

from __future__ import annotations

from typing import Final, NoReturn

import msgspec

from dragoman.config import Config, ModelConfig, ProviderConfig, RouteConfig, ToolsMode
from dragoman.errors import ConfigError, UsageError
from dragoman.protocol import Strictness
from dragoman.protocols import PROTOCOLS
from dragoman.providers.catalog import Provider, nearest, refuse_address, split_target
from dragoman.response_stages import Policy
from dragoman.routing.target import Chain, Target
from dragoman.secret import Secret
from dragoman.types import Request

_NO_MODEL_CONFIG: Final = ModelConfig()
_NO_PROVIDER_CONFIG: Final = ProviderConfig()
_NO_ROUTE: Final = RouteConfig(targets=())
#: What of `Params` is not asked for.
_UNSET: Final = (None, ())
#: Routes that a message about an unknown name tells.
_MOST_SHOWN: Final = 12
#: The route of every name that is no other route's.
EVERY_OTHER: Final = "*"


def resolve_chain(
    name: str | tuple[str, ...],
    config: Config,
    *,
    strict: Strictness | None = None,
    tools: ToolsMode | None = None,
    retries: int | None = None,
) -> Chain:
    """Return the targets that answer to a name: `provider/model`, or a route.

    Args:
        name: as the caller has it; may be a route's alias. The route `"*"` answers to every name without "/" that no
            other route has. Several names are tried in their order.
        strict: whether the first deviation fails; None uses the configuration's setting.
        tools: how tools are requested; None uses the configuration's setting.
        retries: how often a target is asked again; None uses the configuration's setting.

    Raises:
        UsageError: no such provider or route; names the nearest.
        ConfigError: the key of its target, or the keys of all its targets, cannot be read.
    """
    if isinstance(name, tuple):
        route = RouteConfig(targets=tuple(target for one in name for target in _targets_of(one, config)))
        name = ", ".join(name)
    else:
        name = _named(name, config)
        if "/" in name:
            target = _target(name, _NO_ROUTE, config, strict=strict, tools=tools)
            return Chain(name, (target,), retries=config.http.retries if retries is None else retries)
        route = _route(name, config)
    targets, unusable = _targets(route, config, strict=strict, tools=tools)
    if retries is None:
        retries = config.http.retries if route.retries is None else route.retries
    return Chain(
        name,
        targets,
        unusable,
        order=route.order,
        only_validated=route.only_validated,
        allow_one_unvalidated=route.allow_one_unvalidated,
        retries=retries,
    )


def _targets(
    route: RouteConfig, config: Config, *, strict: Strictness | None, tools: ToolsMode | None
) -> tuple[tuple[Target, ...], tuple[tuple[str, str], ...]]:
    """Return the usable targets of a route, and the name and reason of each other one.

    Raises:
        ConfigError: none is usable.
    """
    targets: list[Target] = []
    problems: list[ConfigError] = []
    unusable: list[tuple[str, str]] = []
    for name in dict.fromkeys(route.targets):
        try:
            targets.append(_target(name, route, config, strict=strict, tools=tools))
        except ConfigError as problem:
            problems.append(problem)
            unusable.append((name, str(problem)))
    if not targets:
        raise problems[0]
    return tuple(targets), tuple(unusable)


def _named(name: str, config: Config) -> str:
    """Return the route or `provider/model` that a name stands for. With a single server it may be a model's name."""
    if config.only_provider and not name.startswith(f"{config.only_provider}/"):
        return f"{config.only_provider}/{name}"
    return config.aliases.get(name, name)


def _route(name: str, config: Config) -> RouteConfig:
    route = config.routes.get(name) or config.routes.get(EVERY_OTHER)
    if route is None:
        refuse_name(name, config)
    return route


def refuse_name(name: str, config: Config) -> NoReturn:
    """Raise UsageError for a name that is neither a target's nor a route's. It names the nearest."""
    refuse_address(name)
    providers = config.catalog.providers
    near = f", a provider; say {name}/MODEL" if name in providers else nearest(name, (*config.routes, *providers))
    if not near and config.routes:
        near = f"; there are the routes {', '.join(sorted(config.routes)[:_MOST_SHOWN])}"
    raise UsageError(f"expected provider/model or the name of a route, got {name[:80]!r}{near}")


def _targets_of(name: str, config: Config) -> tuple[str, ...]:
    name = _named(name, config)
    return (name,) if "/" in name else _route(name, config).targets


def resolve(name: str, config: Config, *, strict: Strictness | None = None, tools: ToolsMode | None = None) -> Target:
    """Return the target of that name, or the first usable one of a route. Arguments and errors as `resolve_chain`."""
    return resolve_chain(name, config, strict=strict, tools=tools).targets[0]


def _target(
    name: str, route: RouteConfig, config: Config, *, strict: Strictness | None, tools: ToolsMode | None
) -> Target:
    """Return a target with the settings of a route."""
    provider_name, model_id = split_target(name)
    provider = config.catalog.provider(provider_name)
    model = config.model(name) or _NO_MODEL_CONFIG
    theirs = config.providers.get(provider_name, _NO_PROVIDER_CONFIG)
    key = config.key(provider_name)
    if key is None and (problem := config.missing_key(provider)):
        raise ConfigError(problem)
    if strict is None:
        strict = model.strict
    if strict is None:
        strict = theirs.strict if theirs.strict == "notes" else route.strict or theirs.strict
    required = model.tools_required if model.tools_required is not None else route.tools_required
    way = tools or model.tools or route.tools
    known = config.catalog.model(name)
    options = msgspec.structs.replace(model.options, cache=model.options.cache or route.cache)
    bounds = config.server.limits.answers()
    most = bounds.argument_values
    return Target(
        provider=provider,
        protocol=PROTOCOLS[provider.protocol],
        model=model_id,
        dialect=msgspec.structs.replace(provider.dialect, **model.dialect) if model.dialect else provider.dialect,
        limits=known.limits(),
        key=key,
        policy=Policy(rescue=route.rescue, arguments=route.arguments, strict=strict, argument_values=most),
        options={name: option for name, option in msgspec.structs.asdict(options).items() if option not in _UNSET},
        tools=way,
        tools_required=required,
        refuses_tools=way == "auto" and known.tools is False,
        thinking=model.thinking or route.thinking,
        client_login=theirs.client_login,
        bounds=bounds,
        tool_policy={**route.tool_policy, **model.tool_policy} if model.tool_policy else route.tool_policy,
    )


def with_defaults(request: Request, target: Target) -> Request:
    """Return the request with the target's options where it sets none of its own."""
    params = request.params
    changes = {name: option for name, option in target.options.items() if getattr(params, name) in _UNSET}
    if changes:
        params = msgspec.structs.replace(params, **changes)
    return msgspec.structs.replace(request, model=target.model, params=params)


def at_address(target: Target, base_url: str, key: Secret | None) -> Target:
    """Return the target at the address of a server that was started for it."""
    provider: Provider = msgspec.structs.replace(target.provider, base_url=base_url)
    return msgspec.structs.replace(target, provider=provider, key=key)
