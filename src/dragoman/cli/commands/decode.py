"""Read the body of one recorded HTTP response, streamed or whole, and print what it says.

One JSON object per event and line; with --result only their sum, one JSON object. Exit status 1 when the response
holds an error: what was received before it stays in the result.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from dragoman.cli.body_input import (
    add_file,
    add_tools,
    error_object,
    load_tools,
    read_chunks,
    render_events,
    render_result,
    write,
)
from dragoman.cli.main import DONE, complain
from dragoman.decoding import read_request
from dragoman.events import Event, Fold
from dragoman.ids import new_id
from dragoman.pipe import Reader
from dragoman.protocol import NOTHING_EXPECTED, Protocol
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, nothing_fits, stages_for

EXAMPLE = "  dragoman decode --protocol openai-chat --tools tools.json --result body.sse"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--protocol", required=True, choices=list(PROTOCOLS), help="the language of the body")
    add_tools(parser)
    parser.add_argument("--request", metavar="FILE", help="the body of the request, in the same protocol")
    parser.add_argument("--status", type=int, default=200, metavar="N", help="the HTTP status (default: 200)")
    parser.add_argument("--content-type", default="", metavar="T", help="the response's content type")
    parser.add_argument(
        "--strict",
        nargs="?",
        const=True,
        default=False,
        metavar="notes",
        help="the first deviation is a failure; with the word notes, the first note too",
    )
    parser.add_argument("--result", action="store_true", help="print only the sum of the events")
    add_file(parser)


def run(options: argparse.Namespace) -> int:
    """Decode the body."""
    if options.strict not in (True, False, "notes"):  # what follows may be the file
        options.strict, options.file = True, options.strict
    folded = Fold()
    for events in decode(PROTOCOLS[options.protocol], options):
        for event in events:
            folded.add(event)
        if not options.result:
            write(render_events(events))
    reply = folded.reply()
    if options.result:
        write(render_result(reply) + b"\n")
    error = error_object(reply.error)
    return DONE if error is None else complain(f"{error['kind']}: {error['message']}")


def decode(protocol: Protocol, options: argparse.Namespace) -> Iterator[list[Event]]:
    """The events of the body, as its bytes come."""
    tools = load_tools(options.tools)
    if options.status >= 400:
        body = b"".join(read_chunks(options.file))
        headers = {"content-type": options.content_type} if options.content_type else {}
        yield [protocol.parse_error(options.status, body, headers=headers)]
        return
    expectation = NOTHING_EXPECTED
    if options.request:
        asked, expectation = read_request(b"".join(read_chunks(options.request)), protocol)
        tools = (*tools, *asked)
    names = frozenset(tool.name for tool in tools) | expectation.tools
    stages = stages_for(tools, Policy(strict=options.strict), new_id=new_id, expectation=expectation)
    decoder = protocol.decoder(new_id=new_id, offered_names=names, takes_nothing=nothing_fits(tools))
    reader = Reader(decoder, stages)
    for chunk in read_chunks(options.file):
        yield reader.feed(chunk)
    yield reader.close()
