"""Turn the response bytes of one protocol into the response bytes of another, as they come.

Exit status 1 when the response failed; when a tool call that had begun to leave cannot be finished, the output stops
in the middle, as the connection of a client would.
"""

from __future__ import annotations

import argparse
import time

from dragoman.cli.bodies import add_file, add_tools, error_object, load_tools, read_chunks, write
from dragoman.cli.main import DONE, complain
from dragoman.events import Event, Fold
from dragoman.identifiers import new_id
from dragoman.pipe import Pipe, Reader
from dragoman.protocols import PROTOCOLS
from dragoman.stages import Policy, stages_for

EXAMPLE = "  dragoman translate --from ollama-chat --to anthropic-messages body.ndjson"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    names = list(PROTOCOLS)
    parser.add_argument("--from", dest="source", required=True, choices=names, help="the language of the input")
    parser.add_argument("--to", dest="target", required=True, choices=names, help="the language of the output")
    add_tools(parser)
    parser.add_argument("--model", default="", metavar="NAME", help="the model's name in the output")
    add_file(parser)


def run(options: argparse.Namespace) -> int:
    """Translate the body."""
    source, target = PROTOCOLS[options.source], PROTOCOLS[options.target]
    tools = load_tools(options.tools)
    names = frozenset(tool.name for tool in tools)
    stages = stages_for(tools, Policy(sequential=True), new_id=new_id)
    reader = Reader(source.decoder(new_id=new_id, offered_names=names), stages)
    pipe = Pipe(reader, target.encoder(new_id=new_id, model=options.model, created=int(time.time())))
    folded = Fold()
    for chunk in read_chunks(options.file):
        write(pipe.feed(chunk))
        _add(folded, pipe.tap)
        if pipe.aborted:
            break
    else:
        write(pipe.close())
        _add(folded, pipe.tap)
    error = error_object(folded.reply().error)
    if error is not None:
        return complain(f"{error['kind']}: {error['message']}")
    return complain("the output had to stop in the middle of a tool call") if pipe.aborted else DONE


def _add(folded: Fold, events: list[Event]) -> None:
    for event in events:
        folded.add(event)
