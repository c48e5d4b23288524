"""R1: however and wherever a stream is cut, no cut call is delivered and no end is invented.

Streams of every protocol and shape, and the corpus, are cut at every byte offset and ended well or by a reset.
`make test` takes every 23rd offset; `make soak` takes all and prints the count.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cases import counter, load_cases
from conversations import SHAPES, reply
from cut_reference import is_subsequence
from dragoman.events import Event, Failure, Finish, Reply, fold, unfold
from dragoman.protocol import PLAIN, Dialect
from dragoman.protocols import PROTOCOLS
from for_each import for_each
from grammar import check

#: Streams whose stop reason stands before their last parts: there a clean end of the body is no sign of a cut.
REASON_FIRST = frozenset({"gemini-generate:reason-before-parts"})
RESET = Failure("connection", "reset by peer")


def written(protocol: str, shape: str) -> bytes:
    """A stream in small deltas, as our encoder writes it."""
    encoder = PROTOCOLS[protocol].encoder(new_id=counter(), model="model-1", created=1_750_000_000)
    return encoder.encode(in_small_deltas(unfold(reply(shape))))


def in_small_deltas(events: list[Event]) -> Iterator[Event]:
    for event in events:
        text = getattr(event, "text", None)
        if text is None:
            yield event
        else:
            for start in range(0, len(text), 9):
                yield type(event)(event.index, text[start : start + 9])


def streams() -> dict[str, tuple[str, bytes, frozenset[str], Dialect]]:
    found = {
        f"{protocol}:{shape}": (protocol, written(protocol, shape), frozenset[str](), PLAIN)
        for protocol in PROTOCOLS
        for shape in SHAPES
    }
    for case in load_cases():
        if case.status == 200 and case.expect.get("tool_calls") and not case.expect.get("error"):
            names = frozenset(tool["name"] for tool in case.tools)
            found[f"{case.protocol}:{case.name}"] = (case.protocol, case.wire, names, case.dialect)
    return found


STREAMS = streams()


def decode(name: str, wire: bytes, *, reset: bool) -> list[Event]:
    protocol, _, names, dialect = STREAMS[name]
    decoder = PROTOCOLS[protocol].decoder(new_id=counter(), offered_names=names, dialect=dialect)
    events = decoder.feed(wire)
    return check([*events, *(decoder.fail(RESET) if reset else decoder.close())])


def violations(name: str, cut: int, whole: Reply, *, reset: bool) -> list[str]:
    """What of a cut stream is not true of the whole one."""
    wire = STREAMS[name][1]
    events = decode(name, wire[:cut], reset=reset)
    seen = fold(events)
    found = []
    all_calls = [(call.name, call.arguments) for call in whole.tool_calls]
    calls = [(call.name, call.arguments) for call in seen.tool_calls]
    if not is_subsequence(calls, all_calls):
        found.append(f"delivered {calls}, of {all_calls}")
    if not whole.text.startswith(seen.text):
        found.append(f"text {seen.text!r}")
    if name in REASON_FIRST and not reset:
        return found
    if isinstance(events[-1], Finish) and (calls, events[-1].reason) != (all_calls, whole.stop_reason):
        found.append(f"finished as {events[-1].reason} with {len(calls)} of {len(all_calls)} calls")
    if isinstance(events[-1], Finish) and seen.text != whole.text:
        found.append("finished before the text did")
    return [f"cut at {cut} of {len(wire)}, reset={reset}: {problem}" for problem in found]


def play(name: str, step: int) -> int:
    whole = fold(decode(name, STREAMS[name][1], reset=False))
    assert whole.error is None
    count = 0
    for cut in range(0, len(STREAMS[name][1]), step):
        for reset in (False, True):
            assert violations(name, cut, whole, reset=reset) == []
            count += 1
    return count


def test_there_are_enough_streams():
    assert len(STREAMS) >= 40
    assert {protocol for protocol, *_ in STREAMS.values()} == set(PROTOCOLS)


@for_each("name", STREAMS)
def test_no_cut_invents_anything(name: str):
    assert play(name, 71) > 0


@pytest.mark.soak
def test_every_cut(capsys):
    count = sum(play(name, 1) for name in STREAMS)
    with capsys.disabled():
        print(f"\n{count} cut streams of {len(STREAMS)}, no violation")
    assert count >= 200_000
