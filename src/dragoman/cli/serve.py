"""Serve clients of all five protocols on one port, in front of any provider.

Clients ask for a route of the configuration, or for provider/model. With --provider and --model no configuration is
needed: that model answers to every name. Without client keys only this machine is served.
"""

from __future__ import annotations

import argparse
import os
from typing import Final

import msgspec

from dragoman.cli.main import DONE
from dragoman.cli.settings import add_config, load_settings, settings_file
from dragoman.cli.terminal import hint, say
from dragoman.config import Config, RouteConfig
from dragoman.errors import ConfigError, UsageError
from dragoman.providers import Model, Provider
from dragoman.secret import Secret
from dragoman.types import ProtocolName

EXAMPLE = "  dragoman serve --provider zhipu --model glm-4.6 --api-key-env ZHIPU_API_KEY"

_SHORT_NAMES: Final[dict[str, ProtocolName]] = {
    "ollama": "ollama-chat",
    "openai": "openai-chat",
    "responses": "openai-responses",
    "anthropic": "anthropic-messages",
    "gemini": "gemini-generate",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_config(parser)
    parser.add_argument("--host", metavar="H", help="address to listen on (default: the configuration's, 127.0.0.1)")
    parser.add_argument(
        "--port", type=int, metavar="N", help="port, 0 for a free one (default: the configuration's, 4141)"
    )
    parser.add_argument(
        "--protocols", metavar="all|P,…", help=f"what clients may speak: {', '.join(_SHORT_NAMES)} (default: all)"
    )
    parser.add_argument("--provider", metavar="NAME", help="with --model: the one model that answers to every name")
    parser.add_argument("--model", metavar="NAME", help="its name at that provider")
    parser.add_argument("--api-key-env", metavar="VAR", help="the environment variable that holds the provider's key")
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="processes that share the port (default: 1)"
    )
    parser.add_argument("--llm-api-key", metavar="KEY", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal ends it."""
    if options.llm_api_key is not None:
        raise UsageError("--llm-api-key would show the key in the process list; set a variable, name it: --api-key-env")
    config = read_settings(options)
    protocols = read_protocols(options.protocols, config)
    host, _, port = config.server.address.rpartition(":")
    if options.workers < 1:
        raise UsageError(f"--workers: expected at least 1, got {options.workers}")

    from dragoman.gateway.process import Serving
    from dragoman.gateway.process import run as serve

    if not config.routes:
        hint("no routes are configured: clients ask for provider/model (dragoman serve --help shows the short way)\n")
    serve(
        Serving(
            config=config,
            load=lambda: read_settings(options),
            file=settings_file(options),
            host=(options.host or host).strip("[]"),
            port=int(port) if options.port is None else options.port,
            protocols=protocols,
            only_routes=options.provider is not None,
            look=look_at,
            ready=lambda url: say(f"listening on {url}\n"),
            workers=options.workers,
        )
    )
    return DONE


def read_settings(options: argparse.Namespace) -> Config:
    """The configuration, with the one model that the options name.

    Raises:
        UsageError, ConfigError: as `load_settings` and `with_one_model`.
    """
    config = load_settings(options)
    if options.provider is not None or options.model is not None:
        return with_one_model(config, options.provider, options.model, variable=options.api_key_env)
    if options.api_key_env is not None:
        raise UsageError("--api-key-env is the key of --provider; name that and --model too")
    return config


async def look_at(provider: Provider, key: Secret | None) -> tuple[Model, ...]:
    """The models of a server; none when it does not answer."""
    from dragoman.client.probing import LOCAL_SECONDS, look, make_transport

    transport = make_transport(seconds=LOCAL_SECONDS)
    try:
        return (await look(transport, provider, key=key)).models
    finally:
        await transport.close()


def with_one_model(config: Config, provider: str | None, model: str | None, *, variable: str | None) -> Config:
    """The configuration in which one model answers to every name.

    Raises:
        UsageError: half of the model's name is missing, or there is no such provider.
        ConfigError: the variable is not set.
    """
    if not provider or not model:
        raise UsageError("expected both --provider NAME and --model NAME")
    config.catalog.provider(provider)
    keys = dict(config.keys)
    if variable is not None:
        value = os.environ.get(variable, "").strip()
        if not value:
            raise ConfigError(f"--api-key-env: the environment variable {variable} is not set")
        keys[provider] = Secret(value)
    target = f"{provider}/{model}"
    return msgspec.structs.replace(
        config,
        models={name: table for name, table in config.models.items() if name == target},
        routes={"*": RouteConfig(targets=(target,))},
        keys=keys,
        unread_keys={} if variable is not None else config.unread_keys,
    )


def read_protocols(words: str | None, config: Config) -> tuple[ProtocolName, ...]:
    """The protocols to serve: the option's, else the configuration's.

    Raises:
        UsageError: a name that is none.
    """
    everything = tuple(_SHORT_NAMES.values())
    if words is None:
        return everything if config.server.protocols == "all" else tuple(config.server.protocols)
    found = []
    for word in words.split(","):
        word = word.strip()
        if word == "all":
            return everything
        name = _SHORT_NAMES.get(word) or next((name for name in everything if name == word), None)
        if name is None:
            raise UsageError(f"--protocols: expected all or some of {', '.join(_SHORT_NAMES)}, got {word[:40]!r}")
        found.append(name)
    return tuple(dict.fromkeys(found))
