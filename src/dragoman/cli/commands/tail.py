"""Watch the running gateway: a line for each request, as it ends, with what was mended.

Listens at the admin address of the configuration, else at the gateway's own, or at --url. Where keys are set one is
needed: the first of the configuration that can be read, or the one in the variable that --key-env names. A client key
shows the requests of that key alone, an admin key those of all. At the end it prints the sums of what it showed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from dragoman import _json
from dragoman.cli.body_input import write
from dragoman.cli.log_lines import render_line
from dragoman.cli.main import DONE, complain
from dragoman.cli.option_values import reachable, read_url
from dragoman.cli.settings import add_config, load_settings
from dragoman.cli.tail_filter import Filter, Totals, add_filter, read_filter
from dragoman.cli.terminal import hint, paint_for, say
from dragoman.config import Config, read_secret
from dragoman.errors import ConfigError, DragomanError, UsageError

EXAMPLE = "  dragoman tail\n  dragoman tail --failed --model granite"

_CONNECT_SECONDS: Final = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "--url", type=read_url, metavar="URL", help="where the gateway listens (default: as the configuration says)"
    )
    parser.add_argument("--key-env", metavar="VAR", help="the environment variable that holds the key")
    add_filter(parser)
    parser.add_argument("--json", action="store_true", help="print each line as the JSON object that it is")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Watch until the gateway ends."""
    config = load_settings(options)
    url = (options.url or _url(config)).rstrip("/")
    key = _key(options, config)
    totals = Totals()
    try:
        return asyncio.run(_watch(url, key, read_filter(options), totals, as_json=options.json))
    except DragomanError as problem:
        return complain(str(problem))
    finally:
        hint(totals.render())


async def _watch(url: str, key: str | None, wanted: Filter, totals: Totals, *, as_json: bool) -> int:
    paint = paint_for(sys.stdout)
    async for line in _lines(url, key):
        entry = _json.decode(line)
        if not isinstance(entry, dict) or not wanted.takes(entry):
            continue
        totals.add(entry)
        if as_json:
            write(line + b"\n")
        else:
            say(render_line(entry, paint))
    return DONE


async def _lines(url: str, key: str | None) -> AsyncIterator[bytes]:
    """Yield the gateway's lines until it ends. Raises `UsageError`: nothing listens there, or it is no gateway."""
    from dragoman.http.timeouts import Timeouts
    from dragoman.http.transport import Transport, TransportFailed
    from dragoman.providers.endpoint import Outgoing

    headers = {"authorization": f"Bearer {key}"} if key else {}
    transport = Transport(timeouts=Timeouts(connect=_CONNECT_SECONDS))
    rest = b""
    try:
        response = await transport.open(Outgoing("GET", f"{url}/tail", headers, b""))
        if response.status != 200:
            raise UsageError(_refusal(url, response.status))
        hint(f"watching {url}; Ctrl-C ends it\n")
        while data := await response.read():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line:
                    yield line
    except TransportFailed as problem:
        raise UsageError(f"no gateway answers at {url}: {problem.failure.message}; start one: dragoman serve") from None
    finally:
        with contextlib.suppress(Exception):
            await transport.close()


def _refusal(url: str, status: int) -> str:
    if status == 401:
        return f"the gateway at {url} wants a key: name its variable with --key-env"
    return f"expected a gateway of dragoman at {url}, got status {status}"


def _url(config: Config) -> str:
    host, port = reachable(config.admin.address or config.server.address)
    return f"http://{host}:{port}"


def _key(options: argparse.Namespace, config: Config) -> str | None:
    if options.key_env is not None:
        value = os.environ.get(options.key_env, "").strip()
        if not value:
            raise ConfigError(f"--key-env: the environment variable {options.key_env} is not set")
        return value
    folder = (config.path or Path.home()).absolute().parent
    is_admin = config.admin.address is not None and options.url is None
    for reference in config.admin.references() if is_admin else config.server.keys:
        with contextlib.suppress(ConfigError):
            return read_secret(reference, "keys", environ=os.environ, home=Path.home(), folder=folder).reveal()
    return None
