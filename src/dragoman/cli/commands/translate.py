"""Turn the response bytes of one protocol into the response bytes of another, as they come.

Exit status 1 when the response failed; when a tool call that had begun to leave cannot be finished, the output stops
in the middle, as the connection of a client would.
"""

from __future__ import annotations

import argparse
import time

from dragoman.cli.body_input import add_file, add_protocol, add_tools, error_object, load_tools, open_body, write
from dragoman.cli.main import DONE, complain
from dragoman.events import Event, Failure, Fold, Start
from dragoman.ids import new_id
from dragoman.pipe import Reader
from dragoman.protocol import Encoder, Protocol
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, nothing_fits, stages_for

EXAMPLE = "  dragoman translate --to anthropic-messages body.ndjson"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_protocol(parser, "--from")
    add_protocol(parser, "--to", is_output=True)
    add_tools(parser)
    parser.add_argument(
        "--model", default="", metavar="NAME", help="the model's name in the output (default: as it came in)"
    )
    add_file(parser)


def run(options: argparse.Namespace) -> int:
    """Translate the body."""
    source, chunks = open_body(options.file, options.protocol)
    tools = load_tools(options.tools)
    names = frozenset(tool.name for tool in tools)
    stages = stages_for(tools, Policy(sequential=True), new_id=new_id)
    decoder = source.decoder(new_id=new_id, offered_names=names, takes_nothing=nothing_fits(tools))
    reader = Reader(decoder, stages)
    output = _Output(PROTOCOLS[options.target], options.model)
    for chunk in chunks:
        write(output.encode(reader.feed(chunk)))
        if output.aborted:
            break
    else:
        write(output.encode(reader.close()))
    if output.lost:
        complain(f"{options.target} has no place for {', '.join(output.lost)}")
    error = error_object(output.folded.reply().error)
    if error is not None:
        return complain(f"{error['kind']}: {error['message']}")
    return complain("the output had to stop in the middle of a tool call") if output.aborted else DONE


class _Output:
    """Encodes events. The encoder is created with the response's first event, which may name the model."""

    def __init__(self, protocol: Protocol, model: str) -> None:
        self.folded = Fold()
        self._protocol = protocol
        self._model = model
        self._encoder: Encoder | None = None

    @property
    def aborted(self) -> bool:
        """Whether nothing more may be written."""
        return self._encoder is not None and self._encoder.aborted

    @property
    def lost(self) -> list[str]:
        """The paths of what could not be expressed."""
        return [] if self._encoder is None else [deviation.where for deviation in self._encoder.lost]

    def encode(self, events: list[Event]) -> bytes:
        """Return the bytes for these events."""
        for event in events:
            self.folded.add(event)
        if self._encoder is None:
            first = next((event for event in events if isinstance(event, Start | Failure)), None)
            if first is None:
                return b""  # deviations, which no encoder writes
            model = self._model or (isinstance(first, Start) and first.model) or ""
            self._encoder = self._protocol.encoder(new_id=new_id, model=model, created=int(time.time()))
        return self._encoder.encode(events)
