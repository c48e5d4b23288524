"""Serve clients of all five protocols on one port, in front of any provider.

Clients ask for a route of the configuration, or for provider/model. With --provider and --model no configuration is
needed: that model answers to every name. Without client keys only this machine is served. At a terminal it shows base
URLs, the lines that point a client here, and each request; elsewhere its log is JSON lines on standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import socket
import sys
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman import _json
from dragoman.cli.local_servers import find_all, render_found
from dragoman.cli.log_lines import render_line
from dragoman.cli.main import DONE
from dragoman.cli.option_values import read_count, read_host, read_port
from dragoman.cli.presets import Preset, find_preset, render_preset, values_for
from dragoman.cli.serve_banner import render_banner
from dragoman.cli.settings import add_config, load_settings, say_open_keys, settings_file
from dragoman.cli.terminal import hint, paint_for, say
from dragoman.client.started_servers import check_target
from dragoman.config import Config, RouteConfig, ServerConfig
from dragoman.errors import ConfigError, UsageError
from dragoman.protocols.recognize import SHORT_NAMES
from dragoman.providers.catalog import Model, Provider, split_target
from dragoman.secret import Secret
from dragoman.types import ProtocolName

if TYPE_CHECKING:
    from dragoman.gateway.telemetry.log import Render

EXAMPLE = "  dragoman serve --provider zhipu --model glm-4.6 --api-key-env ZHIPU_API_KEY"

_OLLAMA_PORT: Final = 11434


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_config(parser)
    where = "address to listen on (default: the configuration's, 127.0.0.1)"
    parser.add_argument("--host", type=read_host, metavar="H", help=where)
    parser.add_argument(
        "--port", type=read_port, metavar="N", help="port, 0 for a free one (default: the configuration's, 4141)"
    )
    parser.add_argument(
        "--protocols", metavar="all|P,…", help=f"what clients may speak: {', '.join(SHORT_NAMES)} (default: all)"
    )
    parser.add_argument("--provider", metavar="NAME", help="with --model: the one model that answers to every name")
    parser.add_argument("--model", metavar="NAME", help="its name at that provider")
    parser.add_argument("--api-key-env", metavar="VAR", help="the environment variable that holds the provider's key")
    parser.add_argument(
        "--workers", type=read_count, default=1, metavar="N", help="processes that share the port (default: 1)"
    )
    parser.add_argument("--allow-open", action="store_true", help="let a changed configuration remove the client keys")
    parser.add_argument("--app", metavar="NAME", help="for this client: its port, and what to paste into it (apps)")
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="a readable line for each request, with what was mended (default: at a terminal)",
    )
    parser.add_argument("--llm-api-key", metavar="KEY", help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal ends it."""
    if options.llm_api_key is not None:
        raise UsageError("--llm-api-key would show the key in the process list; set a variable, name it: --api-key-env")
    preset = find_preset(options.app) if options.app is not None else None
    config = read_settings(options)
    protocols = read_protocols(options.protocols, config)
    host, _, _ = config.server.address.rpartition(":")
    host = (options.host or host).strip("[]")

    from dragoman.gateway.process.main import Serving
    from dragoman.gateway.process.main import run as serve

    def ready(url: str) -> None:
        say(f"listening on {url}\n")
        if is_watched and preset is None:
            hint(render_banner(url, protocols, config, models, paint_for(sys.stderr)))
        if preset is not None:
            hint(f"\n{preset.title}:\n{render_preset(preset, values_for(config, url=url, model=first))}\n")

    is_watched = sys.stderr.isatty()
    models = [] if config.routes else say_what_is_there(config)
    first = next(iter(models), None)
    say_missing_keys(config)
    say_open_keys(config)
    serve(
        Serving(
            config=config,
            load=lambda: read_settings(options),
            file=settings_file(options),
            host=host,
            port=pick_port(options.port, preset, config, host=host),
            protocols=protocols,
            only_routes=options.provider is not None,
            look=look_at,
            ready=ready,
            render=render_for_people() if options.verbose or is_watched else None,
            workers=options.workers,
            allow_open=options.allow_open,
        )
    )
    if is_watched:
        hint("\nthe gateway has ended\n")  # behind the terminal's own ^C
    return DONE


def say_missing_keys(config: Config) -> None:
    """Print the targets of routes that cannot be asked because their key is not set."""
    targets = [target for route in config.routes.values() for target in route.targets]
    for name in dict.fromkeys(split_target(target)[0] for target in targets):
        if problem := config.missing_key(config.catalog.provider(name)):
            hint(f"{problem}; until then every request to it fails\n")


def say_what_is_there(config: Config) -> list[str]:
    """Print which servers and keys were found. Return the targets of their models."""
    found, keyed = asyncio.run(find_all(config, look_at))
    hint(render_found(found, keyed, config, os.environ))
    return [model.target for models in found.values() for model in models]


def pick_port(named: int | None, preset: Preset | None, config: Config, *, host: str) -> int:
    """Return the port to listen on.

    Only with --app, which prints the address to paste, a port that dragoman chose is replaced by a free one if it is
    taken. It says so.

    Raises:
        ConfigError: the port is taken.
    """
    _, _, configured = config.server.address.rpartition(":")
    if named is None and preset is not None and config.server.address == ServerConfig().address:
        for port in dict.fromkeys(port for port in (preset.port, int(configured)) if port is not None):
            if is_free(host, port) or is_ending(host, port):
                return port
            other = "Ollama may run there; " if port == _OLLAMA_PORT else ""
            hint(f"port {port} is taken: {other}another is used, so the client must be told\n")
        return 0
    fixed = preset.port if named is None and preset is not None and preset.port is not None else None
    port = named if named is not None else fixed if fixed is not None else int(configured)
    if port and not is_free(host, port) and not is_ending(host, port):
        raise ConfigError(f"port {port} is taken by {_who_listens(host, port)}; --port 0 takes a free one")
    return port


def _who_listens(host: str, port: int) -> str:
    """Describe what answers at a taken port, as far as it identifies itself."""
    import http.client  # loads what reads mail; most ports are free

    connection = http.client.HTTPConnection(host, port, timeout=1)
    try:
        connection.request("GET", "/")
        answer = connection.getresponse().read(64)
        connection.request("GET", "/livez")
        alive = connection.getresponse()
        if alive.status == 200 and alive.read(8) == b"ok\n":
            return "another dragoman"
        return "Ollama" if answer == b"Ollama is running" else "another program"
    except (OSError, http.client.HTTPException):
        return "another program"
    finally:
        connection.close()


def is_free(host: str, port: int) -> bool:
    """Return whether nothing listens there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen(1)
        except OSError as problem:
            return problem.errno != errno.EADDRINUSE
        return True


def is_ending(host: str, port: int) -> bool:
    """Return whether a gateway listens there that is about to end, and shares its port with the next."""
    from dragoman.gateway.process.listening import drains

    return asyncio.run(drains(host, port))


def render_for_people() -> Render:
    """Return a renderer of log lines as --verbose prints them, for standard error."""
    paint = paint_for(sys.stderr)

    def render(line: bytes) -> bytes:
        entry = _json.decode(line)
        return render_line(entry, paint).encode("utf-8", "replace") if isinstance(entry, dict) else line

    return render


def read_settings(options: argparse.Namespace) -> Config:
    """Return the configuration with the one model that the options name.

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
    """Return the models of a server; none if it does not answer."""
    from dragoman.discovery.query_server import LOCAL_SECONDS, look, make_transport

    transport = make_transport(seconds=LOCAL_SECONDS)
    try:
        return (await look(transport, provider, key=key)).models
    finally:
        await transport.close()


def with_one_model(config: Config, provider: str | None, model: str | None, *, variable: str | None) -> Config:
    """Return the configuration in which one model answers to every name.

    Raises:
        UsageError: half of the model's name is missing, or there is no such provider or embedded model.
        ConfigError: the variable is not set.
    """
    if not provider or not model:
        raise UsageError("expected both --provider NAME and --model NAME")
    target = f"{provider}/{model}"
    check_target(target, config)
    keys = dict(config.keys)
    if variable is not None:
        value = os.environ.get(variable, "").strip()
        if not value:
            raise ConfigError(f"--api-key-env: the environment variable {variable} is not set")
        keys[provider] = Secret(value)
    return msgspec.structs.replace(
        config,
        models={name: table for name, table in config.models.items() if name == target or "*" in name},
        routes={"*": RouteConfig(targets=(target,))},
        aliases={},
        keys=keys,
        unread_keys={} if variable is not None else config.unread_keys,
    )


def read_protocols(words: str | None, config: Config) -> tuple[ProtocolName, ...]:
    """Return the protocols to serve: the option's, else the configuration's.

    Raises:
        UsageError: there is no protocol of that name.
    """
    everything = tuple(SHORT_NAMES.values())
    if words is None:
        return everything if config.server.protocols == "all" else tuple(config.server.protocols)
    found = []
    for word in words.split(","):
        word = word.strip()
        if word == "all":
            return everything
        name = SHORT_NAMES.get(word) or next((name for name in everything if name == word), None)
        if name is None:
            raise UsageError(f"--protocols: expected all or some of {', '.join(SHORT_NAMES)}, got {word[:40]!r}")
        found.append(name)
    return tuple(dict.fromkeys(found))
