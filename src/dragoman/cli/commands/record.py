"""Record what a server really sends: a proxy on this machine that keeps each exchange as a case.

Point your client at the address that is printed. Each exchange becomes a folder: the exact bytes of the answer in
`wire`, the request in `request.json`, and what dragoman makes of both in `case.json`. Keys are taken out: only listed
headers are kept, and what is a key by its name or shape becomes ***. Prompts and answers stay: look through a recording
before you send it to anybody. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import threading
from pathlib import Path
from typing import Final

from dragoman.agent.safe_text import counted
from dragoman.cli.main import DONE, complain
from dragoman.cli.option_values import read_port
from dragoman.cli.settings import add_config, load_settings
from dragoman.cli.terminal import clip, hint, say
from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.events import Reply
from dragoman.providers.address import whole_address
from dragoman.recording.case import Exchange, check_folder, next_number, write_case
from dragoman.recording.redact import Redactor
from dragoman.recording.upstream import Upstream, upstream_at, upstream_of

EXAMPLE = "  dragoman record ollama\n  dragoman record http://10.0.0.5:8000/v1 --to broken"

_FOLDER: Final = "recordings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("server", metavar="SERVER", help="a provider, or the address of a server")
    parser.add_argument(
        "--to", type=Path, default=Path(_FOLDER), metavar="FOLDER", help=f"where cases are written (default: {_FOLDER})"
    )
    parser.add_argument(
        "--port", type=read_port, default=0, metavar="N", help="port to listen on (default: a free one)"
    )
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Record until Ctrl-C."""
    check_folder(options.to)
    config = load_settings(options)
    upstream = _upstream(options.server, config)
    from dragoman.http.timeouts import read_clocks
    from dragoman.recording.proxy import LoopThread, Recorder, serve

    cases = _Cases(options.to)
    known = [key.reveal() for key in config.keys.values()]
    proxy, ca_file = config.http.proxy, config.http.ca_file
    loop = LoopThread(
        read_clocks(config.http),
        proxy=None if proxy is None else proxy.reveal(),
        ca_file=None if ca_file is None else str(ca_file),
    )
    recorder = Recorder(upstream, loop, Redactor(known), cases.keep)
    try:
        with serve(recorder.answer, options.port) as served:
            say(f"listening on {served.url}\n")
            hint(
                f"requests go to {upstream.title}\n"
                f"point your client at {served.url} ({served.url}/v1 for OpenAI's clients); Ctrl-C ends the recording\n"
            )
            threading.Event().wait()
    except KeyboardInterrupt:
        recorder.close()
    finally:
        loop.close()
    return cases.end()


def _upstream(server: str, config: Config) -> Upstream:
    if server not in config.catalog.providers and ("://" in server or whole_address(server) is not None):
        return upstream_at(server)
    return upstream_of(config.catalog.provider(server), config.key(server))


class _Cases:
    """Writes exchanges, and prints a line for each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._number = next_number(folder)
        self._written: list[Path] = []
        self._problem = ""

    def keep(self, exchange: Exchange) -> None:
        """Write one exchange."""
        with self._lock:
            try:
                place, reply = write_case(exchange, self._folder, self._number)
            except ConfigError as problem:
                self._problem = str(problem)
                hint(f"not recorded: {problem}\n")
                return
            self._number += 1
            self._written.append(place)
            hint(f"{place}  {clip(exchange.path.partition('?')[0], 60)}  {exchange.status}{_told(exchange, reply)}\n")

    def end(self) -> int:
        """Print what was recorded. Return the exit status."""
        if self._problem:
            return complain(self._problem)
        answers = [place for place in self._written if (place / "wire").exists() and place.parent.name != "other"]
        if not answers:
            hint("no answer of a model was recorded\n")
            return DONE
        place = answers[-1]
        hint(
            f"{counted(len(answers), 'answer')} recorded in {self._folder}; see what dragoman makes of one:\n"
            f"  dragoman decode --result --protocol {place.parent.name} --request {place / 'request.json'} "
            f"{place / 'wire'}\n"
            "look through the folder for private text, then send it with what you expected\n"
        )
        return DONE


def _told(exchange: Exchange, reply: Reply | None) -> str:
    """Describe an answer in a line, without a word of its content."""
    if exchange.withheld:
        return f"  the answer is not written: {exchange.withheld}"
    if reply is None:
        return ""
    codes = ", ".join(dict.fromkeys(one.code for one in reply.deviations))
    words = [
        f"{calls} call{'s' if calls > 1 else ''}" if (calls := len(reply.tool_calls)) else "",
        "cut" if exchange.is_cut else "",
        f"error: {clip(reply.error.message, 100)}" if reply.error is not None else "",
        f"mended: {codes}" if codes else "",
    ]
    return "".join(f"  {word}" for word in words if word)
