"""Print the settings that connect a client to the gateway: its variables, its file, or what to click.

The address is that of the gateway which runs here, else the one where `dragoman serve --app CLIENT` would listen.
"""

from __future__ import annotations

import argparse
import http.client

from dragoman import _json
from dragoman.cli.body_input import write_json
from dragoman.cli.main import DONE, complain
from dragoman.cli.option_values import reachable, read_url
from dragoman.cli.presets import Preset, fill, find_preset, render_preset, values_for
from dragoman.cli.settings import add_config, load_settings
from dragoman.cli.terminal import hint, say
from dragoman.config import Config

EXAMPLE = "  dragoman env claude-code"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("client", metavar="CLIENT", help="a name that `dragoman apps` lists")
    parser.add_argument("--url", type=read_url, metavar="URL", help="where the gateway listens")
    parser.add_argument("--model", metavar="NAME", help="the model's name (default: the first of the configuration)")
    parser.add_argument("--shell", action="store_true", help="print the variables alone, as `export` lines")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Print it."""
    preset = find_preset(options.client)
    exports = [line for line in preset.shell if line.startswith("export ")]
    if options.shell and not exports:
        return complain(f"{preset.title} takes no variables; say: dragoman env {options.client}")
    config = load_settings(options)
    url = (options.url or _running(preset, config) or _usual(options.client, preset, config)).rstrip("/")
    values = values_for(config, url=url, model=options.model)
    if options.json:
        write_json(_plain(preset, values))
    elif options.shell:
        say("".join(f"{fill(line, values)}\n" for line in exports))
    else:
        say(render_preset(preset, values))
    return DONE


def _plain(preset: Preset, values: dict[str, str]) -> dict[str, _json.Json]:
    return {
        "title": preset.title,
        "speaks": list(preset.speaks),
        "url": values["url"],
        "shell": [fill(line, values) for line in preset.shell],
        "file": preset.file,
        "text": fill(preset.text.strip("\n"), values),
        "steps": [fill(step, values) for step in preset.steps],
        "note": fill(preset.note, values),
    }


def _usual(name: str, preset: Preset, config: Config) -> str:
    hint(f"no gateway runs here; start one: dragoman serve --app {name}\n")
    host, port = reachable(config.server.address)
    return f"http://{host}:{preset.port or port}"


def _running(preset: Preset, config: Config) -> str | None:
    """Return the address of a gateway that answers now: where the client looks, else where the configuration says."""
    host, port = reachable(config.server.address)
    for candidate in (preset.port, port):
        if candidate is not None and _is_gateway(host.strip("[]"), candidate):
            return f"http://{host}:{candidate}"
    return None


def _is_gateway(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=1)
    try:
        connection.request("GET", "/livez")
        response = connection.getresponse()
        return response.status == 200 and response.read(8) == b"ok\n"
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
