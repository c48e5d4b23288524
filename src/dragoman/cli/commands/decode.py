"""Read the body of one recorded HTTP response, streamed or whole, and print what it says.

It prints one JSON object per event and line, or with --result only their sum. The exit status is 1 when the response
holds an error; the result keeps what came before it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Final

from dragoman.cli.body_input import (
    add_file,
    add_protocol,
    add_tools,
    error_object,
    explain_protocol,
    load_tools,
    open_body,
    read_whole,
    render_events,
    render_result,
    write,
)
from dragoman.cli.main import DONE, complain
from dragoman.cli.option_values import read_status
from dragoman.cli.terminal import clip
from dragoman.decoding import read_request
from dragoman.events import Event, Fold
from dragoman.ids import new_id
from dragoman.pipe import Reader
from dragoman.protocol import NOTHING_EXPECTED, Protocol
from dragoman.response_stages import Policy, nothing_fits, stages_for

_KEPT: Final = 65_536  # bytes of the body's beginning
_WIDTH: Final = 200  # characters of what is said of an error

EXAMPLE = "  dragoman decode --tools tools.json --result body.sse"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    add_protocol(parser, "--protocol")
    add_tools(parser)
    parser.add_argument("--request", metavar="FILE", help="the body of the request, in the same protocol")
    parser.add_argument("--status", type=read_status, default=200, metavar="N", help="the HTTP status (default: 200)")
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
    protocol, chunks = open_body(options.file, options.protocol)
    begin = _Beginning(chunks)
    for events in decode(protocol, options, begin.passed()):
        for event in events:
            folded.add(event)
        if not options.result:
            write(render_events(events))
    reply = folded.reply()
    if options.result:
        write(render_result(reply) + b"\n")
    error = error_object(reply.error)
    if error is None:
        return DONE
    other = explain_protocol(reply, begin.seen, protocol)
    return complain(clip(f"{error['kind']}: {error['message']}", _WIDTH) + other)


class _Beginning:
    """Passes chunks on and keeps the first ones, to describe a body that could not be read."""

    __slots__ = ("_chunks", "seen")

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self.seen = b""

    def passed(self) -> Iterator[bytes]:
        """Yield the chunks."""
        for chunk in self._chunks:
            if len(self.seen) < _KEPT:
                self.seen += chunk[:_KEPT]
            yield chunk


def decode(protocol: Protocol, options: argparse.Namespace, chunks: Iterator[bytes]) -> Iterator[list[Event]]:
    """Yield the events of the body as its bytes come."""
    tools = load_tools(options.tools)
    if options.status >= 400:
        body = b"".join(chunks)
        headers = {"content-type": options.content_type} if options.content_type else {}
        yield [protocol.parse_error(options.status, body, headers=headers)]
        return
    expectation = NOTHING_EXPECTED
    if options.request:
        asked, expectation = read_request(read_whole(options.request), protocol)
        tools = (*tools, *asked)
    names = frozenset(tool.name for tool in tools) | expectation.tools
    stages = stages_for(tools, Policy(strict=options.strict), new_id=new_id, expectation=expectation)
    decoder = protocol.decoder(new_id=new_id, offered_names=names, takes_nothing=nothing_fits(tools))
    reader = Reader(decoder, stages)
    for chunk in chunks:
        yield reader.feed(chunk)
    yield reader.close()
