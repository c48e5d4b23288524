"""Three streams that real servers send and that programs fail on: the bytes, and what dragoman makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman.cli.terminal import Paint, clip
from dragoman.events import Reply, fold
from dragoman.ids import new_id
from dragoman.protocols import PROTOCOLS
from dragoman.types import ProtocolName

_FOLDER: Final = Path(__file__).with_name("demo_streams")
#: Where the interesting part of a line begins, the first that is there.
WIRE_MARKS: Final = ('"tool_calls":', '"content_block":', '"delta":', '"item":', '"message":', '"response":', '"type":')


@final
class BrokenStream(msgspec.Struct, frozen=True):
    """One stream: its bytes in `demo_streams`, what is broken, and what a client that trusts it does.

    `telling` is where the broken part begins, in one of its lines.
    """

    file: str
    protocol: ProtocolName
    title: str
    telling: str
    trusting: str

    def body(self) -> bytes:
        """Return the bytes."""
        return (_FOLDER / self.file).read_bytes()

    def decoded(self) -> Reply:
        """Return what dragoman makes of them."""
        decoder = PROTOCOLS[self.protocol].decoder(new_id=new_id)
        return fold([*decoder.feed(self.body()), *decoder.close()])


BROKEN_STREAMS: Final = (
    BrokenStream(
        "glued.sse",
        "openai-chat",
        "two calls, both at index 0",
        '{"index":0,"id":"call_b2"',
        'one broken call: get_weather({"city": "Paris"}{"city": "Rome"})',
    ),
    BrokenStream(
        "bare.ndjson",
        "ollama-chat",
        "a call without id or arguments",
        '"function":',
        "no id to answer to, and no arguments to read: it raises",
    ),
    BrokenStream(
        "text_arguments.ndjson",
        "ollama-chat",
        "arguments as text, not as an object",
        '"function":',
        "its tool gets one long string, or it raises",
    ),
)


def render_mended(stream: BrokenStream, paint: Paint, *, width: int) -> str:
    """Render a stream in a few lines: what is broken, the bytes, what it is taken for, and its calls."""
    reply = stream.decoded()
    line = next(line for line in stream.body().decode().splitlines() if stream.telling in line)
    codes = ", ".join(deviation.code for deviation in reply.deviations)
    lines = [
        f"{paint('bold', stream.title)}  {paint('yellow', codes)}",
        f"  {paint('dim', 'came in  ')} {excerpt(line, width - 12, marks=(stream.telling,))}",
        f"  {paint('dim', 'trusted  ')} {paint('red', stream.trusting)}",
    ]
    label = "dragoman "
    for call in reply.tool_calls:
        lines.append(f"  {paint('dim', label)} {paint('green', clip(f'{call.name}({call.arguments})', width - 12))}")
        label = " " * len(label)
    return "\n".join(lines) + "\n"


def render_broken(stream: BrokenStream, paint: Paint, *, width: int) -> str:
    """Render all bytes of a stream and its mending, for a terminal of that many columns."""
    lines = [f"{paint('bold', stream.title)} {paint('dim', f'({stream.protocol})')}", paint("dim", "  what came in")]
    for line in stream.body().decode().splitlines():
        if line:
            lines.append("    " + excerpt(line, width - 4))
    lines.append(paint("dim", "  what a client makes of it that trusts it\n    ") + paint("red", stream.trusting))
    lines.append(paint("dim", "  what dragoman delivers"))
    reply = stream.decoded()
    for call in reply.tool_calls:
        lines.append(paint("green", f"    {call.name}({call.arguments})") + paint("dim", f"  id {call.id}"))
    for deviation in reply.deviations:
        lines.append(paint("yellow", f"    {deviation.code}") + paint("dim", f"  at {deviation.where or 'the stream'}"))
    if reply.error is not None:
        lines.append(paint("red", f"    {reply.error.kind}: {reply.error.message}"))
    return "\n".join(lines) + "\n"


def excerpt(line: str, width: int, *, marks: Sequence[str] = WIRE_MARKS) -> str:
    """Return a line of a wire cut to `width`: from its beginning, or from where it becomes interesting."""
    if len(line) <= width:
        return clip(line, width)
    start = next((found for mark in marks if (found := line.find(mark)) > 0), 0)
    field = "data: " if line.startswith("data: ") else ""
    if start <= len(field):
        return clip(line, width)
    return clip(f"{field}…{line[start:]}", width)
