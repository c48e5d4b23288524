"""One live leg of the demo: the model streams a tool call in one protocol, and you see it grow, or every byte of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Final, final

import msgspec

from dragoman.cli.demo_broken import WIRE_MARKS, excerpt
from dragoman.cli.terminal import Paint, clip, harmless, say
from dragoman.client.exchange import Exchange
from dragoman.embedded import EmbeddedServer
from dragoman.events import (
    Deviation,
    Event,
    Failure,
    Finish,
    Fold,
    Reply,
    Start,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    UsageUpdate,
)
from dragoman.http.transport import Transport, TransportFailed
from dragoman.ids import new_id
from dragoman.inputs.functions import FunctionTool, tool_of
from dragoman.protocol import PLAIN, ModelLimits
from dragoman.protocols import PROTOCOLS
from dragoman.providers.catalog import Provider
from dragoman.routing.target import Target
from dragoman.secret import Secret
from dragoman.types import Message, Params, ProtocolName, Request, Text, ToolCall, ToolResult

_CALL_TOKENS: Final = 96
_ANSWER_TOKENS: Final = 40

# So small a model calls a tool only when it must, and `tool_choice` alone does not make it: the grammar lets it write
# prose first. The beginning of a call, written for it as its own last words, leaves it nothing else; a stop sequence
# ends its answer after one call.
_OPENING: Final = "<tool_call>\n"
_STOP: Final[dict[ProtocolName, dict[str, Any]]] = {
    "openai-chat": {"stop": ["</tool_call>"]},
    "anthropic-messages": {"stop_sequences": ["</tool_call>"]},
    "openai-responses": {"stop": ["</tool_call>"]},
}
_MARKS: Final = ('"function":{', '"partial_json":', *WIRE_MARKS)
_SAY_IT: Final = Message("user", (Text("Say the result as a sentence."),))  # without it, the model echoes
_BASE_PATH: Final[dict[ProtocolName, str]] = {"openai-chat": "/v1", "anthropic-messages": "", "openai-responses": "/v1"}


def add(a: int, b: int) -> str:
    """Add two numbers."""
    return f"{a} + {b} = {a + b}"


def get_weather(city: Annotated[str, msgspec.Meta(max_length=40)]) -> str:
    """Get the current weather of a city."""
    return "21 °C, clear sky"


def set_timer(minutes: Annotated[int, msgspec.Meta(ge=1, le=180)]) -> str:
    """Set a timer."""
    return f"Timer set for {minutes} minutes."


TOOLS: Final = {tool.tool.name: tool for tool in (tool_of(add), tool_of(get_weather), tool_of(set_timer))}


@final
class Leg(msgspec.Struct, frozen=True):
    """A question and the protocol in which it is asked."""

    protocol: ProtocolName
    prompt: str


LEGS: Final = (
    Leg("openai-chat", "Add 2 and 3"),
    Leg("anthropic-messages", "What is the weather in Paris?"),
    Leg("openai-responses", "Set a timer for 10 minutes"),
)


def target_of(server: EmbeddedServer, protocol: ProtocolName) -> Target:
    """Return the embedded server as a target in one of its protocols."""
    provider = Provider(
        name="embedded", protocol=protocol, base_url=server.url + _BASE_PATH[protocol], local=True, body=_STOP[protocol]
    )
    return Target(provider, PROTOCOLS[protocol], server.model, PLAIN, ModelLimits(context=2048), Secret(server.api_key))


@final
class GrowingCall:
    """Prints a tool call while it comes, on one line of limited width."""

    __slots__ = ("_paint", "_width", "_column")

    def __init__(self, paint: Paint, *, width: int) -> None:
        self._paint = paint
        self._width = width
        self._column = 0  # 0: nothing stands on the line

    def show(self, seconds: float, data: bytes, events: Sequence[Event]) -> None:
        """Print what these events add."""
        for event in events:
            match event:
                case ToolCallStart(name=name):
                    self.end_line()
                    self._write(f"  {seconds:4.1f} s  {name}(")
                case ToolCallDelta(text=text):
                    self._write(text)
                case ToolCallEnd():
                    self._write(")")
                case _:
                    pass

    def _write(self, text: str) -> None:
        room = self._width - self._column
        text = harmless(text).replace("\n", " ")
        if room > 0:
            say(self._paint("green", text if len(text) <= room else text[: room - 1] + "…"))
        self._column += len(text)

    def end_line(self) -> None:
        """Go to the next line if this one is not empty."""
        if self._column:
            say("\n")
        self._column = 0


@final
class BytesBesideEvents:
    """Prints every data line as it arrives, and beside it the events that it became."""

    __slots__ = ("_paint", "_width")

    def __init__(self, paint: Paint, *, width: int) -> None:
        self._paint = paint
        self._width = width
        say(paint("dim", f"{'arrived':>9} {'bytes, by data line':{_left(width)}}  events") + "\n")

    def show(self, seconds: float, data: bytes, events: Sequence[Event]) -> None:
        """Print a step."""
        say(render_step(seconds, data, events, self._paint, width=self._width))

    def end_line(self) -> None:
        """Do nothing: each step ends its lines."""


async def play(
    leg: Leg, target: Target, transport: Transport, paint: Paint, *, width: int, with_bytes: bool = False
) -> bool:
    """Ask, show the call while it comes, run the tool, show its result and the model's answer.

    Args:
        leg: the question.
        target: the model.
        transport: the HTTP transport.
        paint: the colours.
        width: columns.
        with_bytes: show every byte and event too.

    Returns:
        Whether the model called a tool, and the call came whole.
    """
    question = Message("user", (Text(leg.prompt),))
    say(f"{paint('bold', leg.protocol)}  {leg.prompt!r}\n")
    view = BytesBesideEvents(paint, width=width) if with_bytes else GrowingCall(paint, width=width)
    asked = Request(
        target.model,
        (question, Message("assistant", (Text(_OPENING),))),
        tuple(tool.tool for tool in TOOLS.values()),
        "any",
        Params(max_tokens=_CALL_TOKENS, temperature=0.0),
    )
    reply = await _stream(target, asked, transport, view.show)
    view.end_line()
    calls = reply.tool_calls
    if isinstance(reply.error, Failure) or not calls:
        reason = reply.error.message if reply.error is not None else f"the model said {reply.text[:60]!r}"
        say(paint("red", f"  no tool call: {clip(reason, width - 16)}") + "\n\n")
        return False
    results = tuple(_run(TOOLS.get(call.name), call) for call in calls)
    for call, result in zip(calls, results, strict=True):
        if with_bytes:
            say(f"  {paint('green', clip(f'{call.name}({call.arguments})', width - 2))}\n")
        say(f"  {paint('dim', 'the tool says  ')} {paint('bold', clip(result.text, width - 18))}\n")
    told = Request(
        target.model,
        (question, Message("assistant", tuple(calls)), Message("tool", results), _SAY_IT),
        params=Params(max_tokens=_ANSWER_TOKENS, temperature=0.0),
    )
    answer = await _stream(target, told, transport, None)
    said = answer.error.message if answer.error is not None else answer.text
    say(f"  {paint('dim', 'the model says ')} {clip(said, width - 18)}\n\n")
    return True


def _run(tool: FunctionTool | None, call: ToolCall) -> ToolResult:
    """Return a tool's result. An error goes to the model."""
    try:
        if tool is None:
            raise ValueError(f"there is no tool {call.name[:80]!r}")
        return ToolResult(call.id, call.name, (Text(str(tool.call(call))),))
    except Exception as problem:
        return ToolResult(call.id, call.name, (Text(f"failed: {problem}"),), is_error=True)


async def _stream(
    target: Target, request: Request, transport: Transport, show: Callable[[float, bytes, Sequence[Event]], None] | None
) -> Reply:
    """Return one response. `show` gets its bytes and events as they come, with the seconds since the request."""
    exchange = Exchange(target, request, new_id=new_id)
    folded, start = Fold(), time.monotonic()

    def take(data: bytes, events: Sequence[Event]) -> None:
        for event in events:
            folded.add(event)
        if show is not None:
            show(time.monotonic() - start, data, events)

    try:
        response = await transport.open(exchange.outgoing)
        try:
            exchange.head(response.status, response.headers)
            while data := await response.read():
                take(data, exchange.feed(data))
        finally:
            response.close()
        take(b"", exchange.close())
    except TransportFailed as problem:
        take(b"", exchange.fail(problem.failure))
    return folded.reply()


def render_step(seconds: float, data: bytes, events: Sequence[Event], paint: Paint, *, width: int) -> str:
    """Render bytes that arrived together beside the events decoded from them."""
    left = _left(width)
    # An `event:` line only repeats the type that its data names.
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip() and line[:6] != "event:"]
    if not data:
        lines = ["(the end of the body)"]
    rows = itertools.zip_longest(
        (excerpt(line, left, marks=_MARKS) for line in lines), _say_events(events, width - left - 13)
    )
    out, at = [], f"{seconds:7.3f} s"
    for raw, event in rows:
        out.append(
            f"{paint('dim', at)} {paint('blue', (raw or '').ljust(left))}  {paint('cyan', event or '')}".rstrip()
        )
        at = " " * len(at)
    return "".join(f"{line}\n" for line in out)


def _left(width: int) -> int:
    """Return the columns for the bytes."""
    return max(width * 11 // 20 - 10, 20)


def _say_events(events: Sequence[Event], width: int) -> Iterator[str]:
    for event in events:
        words = _say_event(event)
        if words:
            yield clip(words, width)


def _say_event(event: Event) -> str:
    match event:
        case Start():
            return "Start"
        case ToolCallStart(_, id, name):
            return f"ToolCallStart {name} {id}"
        case ToolCallDelta(_, text) | TextDelta(_, text) | ThinkingDelta(_, text):
            return f"{type(event).__name__} {text!r}"
        case ToolCallEnd(_, call):
            return f"ToolCallEnd {call.name}({call.arguments})"
        case ToolCallFailed(_, _, name, _, message):
            return f"ToolCallFailed {name}: {message}"
        case UsageUpdate(usage):
            return f"UsageUpdate {usage.input} in, {usage.output} out"
        case Finish(reason):
            return f"Finish {reason}"
        case Failure(kind, message):
            return f"Failure {kind}: {message}"
        case Deviation(code, where):
            return f"Deviation {code} {where}"
        case _:
            return type(event).__name__
