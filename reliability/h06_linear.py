"""H6: what repeats without end holds nobody up: bodies, arguments, conversations, depth. By processor time."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from cases import counter
from dragoman import _json
from dragoman.client.streaming.threaded_reading import LONGEST
from dragoman.errors import DragomanError
from dragoman.events import Start, TextDelta, TextStart
from dragoman.gateway.request_bodies import check_shape
from dragoman.history import fit
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.stages.rescue.families import FAMILIES
from dragoman.types import Message, Request, Tool
from places import BEGINNINGS, PLACES, called, reader_of
from reliability.row import Result, Scale, milliseconds
from test_linear_time import TOKENS, slow_texts, try_texts
from test_many_calls import CONVERSATIONS

_MIB = 1024 * 1024
_TOOLS = (Tool("f", "", _json.raw({"type": "object", "properties": {"a": {"type": "string"}}})),)
#: Frames of few bytes.
_FRAMES = [
    "#,", "1,", "{},", "[],", "None,", "x\n", "{}\n", '{"a":1}\n', "data: x\n\n", "data: {}\n\n", "data: {\n\n",
    "data:\n", ":\n", "event: x\n\n", 'data: {"choices":[{}]}\n\n', 'data: {"error":1}\n\n', "\r",
]  # fmt: skip
#: Bytes that are read at once.
_READ = 64 * 1024


def measure(scale: Scale) -> Iterator[Result]:
    """The longest that one body, one read of arguments, one conversation takes; then depth and made-up texts."""
    gc.freeze()  # what was imported is no work of a body
    slowest, what = most((spent(lambda body=body: _check(body)), name) for name, body in bodies())
    yield Result("C1", "a body of 1 MiB: ≤ 50 ms", f"{milliseconds(slowest)} ({what!r})", slowest <= 0.05)
    tokens = TOKENS[:: 1 if not scale.quick else 5]
    slowest, what = most((longest_read(first + token * (_MIB // len(token))), f"{first}{token}")
                         for first in ('{"a":"', "```json\n{", "{") for token in tokens)  # fmt: skip
    goal = "arguments of 1 MiB, read by 64 KiB: each read ≤ 50 ms"
    yield Result("C2", goal, f"most {milliseconds(slowest)} ({what!r}), {3 * len(tokens)} kinds", slowest <= 0.05)
    slowest, what = most(longest_slices(tokens))
    goal = f"{LONGEST // 1024} KiB of any frames or text, what the loop reads between two looks at the clock: ≤ 50 ms"
    yield Result("C2", goal, f"most {milliseconds(slowest)} ({what})", slowest <= 0.05)
    count = scale.pick(20_000, 2_000)
    slowest, what = most(
        (spent(lambda messages=messages, name=name: _converse(messages, name)), f"{made.__name__}, {name}")
        for made in CONVERSATIONS
        for messages in [_of_calls(made, count)]
        for name in PROTOCOLS
    )
    goal = "20,000 calls, whatever their ids: fitted, written and read ≤ 1 s"
    yield Result("H6", goal, f"{count:,} calls: most {slowest:.2f} s ({what})", slowest <= 1)
    broken = [place for place in PLACES for token in ("[", '{"a":', "<a>", "f(") if _breaks(place, token)]
    yield Result("H7", "depth 100,000: 0 RecursionError", f"{len(broken)} of {len(PLACES)} readers", not broken)
    yield made_up_texts(scale.pick(300, 20))


def made_up_texts(count: int) -> Result:
    """What `make fuzz` measures, with fewer texts."""
    tried, over, wrong = 0, 0, []
    for place in PLACES:
        made = try_texts(place, range(count), seconds=120)
        slow = slow_texts(place, made)
        tried, over = tried + len(made), over + len(slow)
        wrong += [f"{place}: {each}" for each in slow if each.is_at_fault]
    for line in wrong:
        print("   ", line)
    measured = f"{over} of {tried:,} texts of 1 to 64 KiB ({len(PLACES)} readers), {len(wrong)} grow or are dear"
    return Result("C1", "texts over 20 × the median time of a byte: 0 that grow or are dear", measured, not wrong)


def most(measured: Iterator[tuple[float, str]]) -> tuple[float, str]:
    return max(measured)


def spent(run: Callable[[], object]) -> float:
    """Processor seconds, the best of three."""
    times = []
    for _ in range(3):
        begun = time.process_time()
        run()
        times.append(time.process_time() - begun)
    return min(times)


def bodies() -> Iterator[tuple[str, bytes]]:
    for first in ("", "{" * 130 + '"', "[" * 130, '{"a":"'):
        for token in TOKENS:
            yield first[-2:] + token, (first + token * (_MIB // len(token))).encode("utf-8", "replace")


def _check(body: bytes) -> None:
    with suppress(DragomanError):
        check_shape(body)


def longest_read(text: str) -> float:
    """Of a call with these arguments: the longest that one read takes all stages, or its end."""
    stages = stages_for(_TOOLS, Policy(sequential=True), new_id=lambda: "X" * 24)
    slowest = 0.0
    for events in called(text, size=_READ):
        begun = time.process_time()
        for stage in stages:
            events = stage.feed(events)
        slowest = max(slowest, time.process_time() - begun)
    return slowest


def longest_slices(tokens: list[str]) -> Iterator[tuple[float, str]]:
    """Bytes of all five protocols as they may come at once: frames of few bytes, and texts that begin again and again
    what might be a call."""
    units = [*_FRAMES, *tokens]
    openers = [opener for family in FAMILIES for opener in family.openers if opener]
    for name, protocol in PROTOCOLS.items():
        for first in ("", "[", '{"a":1}\n'):
            for unit in units:
                data = (first + unit * (LONGEST // len(unit) + 1)).encode("utf-8", "replace")[:LONGEST]
                yield spent(lambda data=data, name=name: reader_of(name).feed(data)), f"{name}, {first}{unit!r}"  # type: ignore[misc]
        for text in (*openers, *tokens):
            encoder = protocol.encoder(new_id=counter(), model="m", created=1)
            said = encoder.encode([Start("r", "m", 1), TextStart(0), TextDelta(0, text * (LONGEST // len(text)))])
            data = said[:LONGEST] + b"\n\n"
            yield spent(lambda data=data, name=name: reader_of(name).feed(data)), f"{name}, says {text!r}"  # type: ignore[misc]


def _of_calls(made: Callable[[int], list[Message]], count: int) -> list[Message]:
    """A conversation with so many calls, however many a turn has."""
    return made(count // len(made(1)[0].parts))


def _converse(messages: list[Message], name: str) -> None:
    wire = PROTOCOLS[name]
    fitted, _ = fit(Request("m", tuple(messages)), protocol=wire.name)
    wire.parse_request(wire.render_request(fitted).http.body, path="/v1beta/models/m:generateContent")


def _breaks(place: str, token: str) -> bool:
    try:
        for first in BEGINNINGS.get(place, ("",)):
            PLACES[place](first + token * (100_000 // len(token)))
    except RecursionError:
        return True
    return False
