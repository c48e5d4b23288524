"""R1: no truncated tool call is ever shown as complete. The vendors' SDKs read cut streams through the gateway."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import httpx
import ollama
import openai
from google.genai import errors

from conversations import reply
from dragoman.events import Event, ToolCallDelta, unfold
from dragoman.protocols import PROTOCOLS
from dragoman.types import ToolCall
from gateway.sdks import SDKS, Sdk
from reliability.process import Gateway, providers
from reliability.provider import END, Provider, Step, cut, streamed
from reliability.row import Result, Scale

#: What an SDK raises when a response is broken.
BROKEN = (
    openai.APIError, anthropic.APIError, ollama.ResponseError, errors.APIError, httpx.HTTPError, EOFError,
    RuntimeError,  # the Responses helper of `openai`: "Didn't receive a `response.completed` event."
)  # fmt: skip
SHAPES = ("text-call", "parallel", "long", "thinking-call", "empty", "unicode")
#: Every 49th stream falls silent, so that the gateway's clock has to end it.
STALLED = 49
SETTINGS = """[server]
store_responses = false
[http]
retries = 0
silence_seconds = 0.5
first_event_seconds = 0.5
reasoning_first_event_seconds = 0.5
"""
LIE = "the last piece of the arguments is missing, the end is not"
_PIECE = 11


def wire(protocol: str, shape: str) -> bytes:
    """A streamed response whose arguments come in small pieces."""
    events: list[Event] = []
    for event in unfold(reply(shape)):
        if type(event) is ToolCallDelta:
            text = event.text
            pieces = [text[place : place + _PIECE] for place in range(0, len(text), _PIECE)]
            events += [ToolCallDelta(event.index, piece) for piece in pieces]
        else:
            events.append(event)
    ids = iter(f"id_{number:024d}" for number in range(1000))
    encoder = PROTOCOLS[protocol].encoder(new_id=lambda: next(ids), model="model-1", created=1_750_000_000)
    return b"".join(encoder.encode([event]) for event in events)


def scripts(protocol: str, count: int, chance: random.Random) -> Iterator[tuple[str, str, list[Step]]]:
    """(shape, what was done, the script): every place of each shape in turn, each with another end."""
    wires = {shape: wire(protocol, shape) for shape in SHAPES}
    ends: list[tuple[str, Step]] = [("clean end", END), ("reset", "reset"), ("close", "close")]
    for number in range(count):
        shape = SHAPES[number % len(SHAPES)]
        data = wires[shape]
        place = chance.randrange(1, len(data))
        word, end = ("stall", "hold") if number % STALLED == STALLED - 1 else ends[number // len(SHAPES) % 3]
        yield shape, f"{word} at byte {place} of {len(data)}", cut(protocol, data[:place], end)
    for shape in SHAPES:
        lie = without_last_piece(protocol, shape)
        if lie is not None:
            yield shape, LIE, streamed(protocol, lie)


def without_last_piece(protocol: str, shape: str) -> bytes | None:
    """A whole stream that lacks the last piece of its last call's arguments; None where they come in one piece."""
    if protocol not in ("openai-chat", "anthropic-messages"):
        return None
    text = next((part.arguments for part in reversed(reply(shape).parts) if isinstance(part, ToolCall)), "")
    last = json.dumps(text[(len(text) - 1) // _PIECE * _PIECE :], ensure_ascii=False).encode()
    frames = wire(protocol, shape).split(b"\n\n")
    places = [place for place, frame in enumerate(frames) if b":" + last in frame.replace(b": ", b":")]
    if len(text) <= _PIECE or not places:
        return None
    return b"\n\n".join(frames[: places[-1]] + frames[places[-1] + 1 :])


def verdict(asking: Sdk, model: str, shape: str, *, lies: bool) -> str:
    """ "raised", "whole", or what is wrong.

    A stream that `lies` about its end may be told in words by protocols without an error in the stream; what comes
    with them are calls that were whole.
    """
    asking.begin(model)
    try:
        calls, _ = asking.ask(stream=True)
    except BROKEN:
        return "raised"
    except Exception as problem:
        return f"raised {type(problem).__name__}: {str(problem)[:200]}"
    expected = [(part.name, part.values()) for part in reply(shape).parts if isinstance(part, ToolCall)]
    if lies and calls == expected[: len(calls)] and len(calls) < len(expected):
        return "raised"
    return "whole" if calls == expected else f"calls {str(calls)[:300]}"


def measure(scale: Scale) -> Iterator[Result]:
    """25 pairs of client and provider, translated; those of one protocol with a clean provider, passed through."""
    count = scale.pick(1000, 60)
    ways = (("", ""), ("-clean", "clean = true\n"))
    with Provider() as provider:
        config = SETTINGS + "".join(
            "\n" + providers(provider.url, suffix=suffix, lines=lines) for suffix, lines in ways
        )
        with Gateway(config) as gateway:
            for suffix, _ in ways:
                pairs = [
                    (client, name) for client in SDKS for name in PROTOCOLS if not suffix or client == name
                ]  # what is not the client's protocol cannot pass through
                yield pairs_result(gateway, provider, pairs, suffix, count=count)


def pairs_result(
    gateway: Gateway, provider: Provider, pairs: list[tuple[str, str]], suffix: str, *, count: int
) -> Result:
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    for client, name in pairs:
        provider.forget()
        jobs = [
            (f"{name}{suffix}/{provider.script(steps)}", shape, what)
            for shape, what, steps in scripts(name, count, random.Random(f"{client} {name}"))
        ]
        for (_, shape, what), outcome in zip(jobs, played(client, gateway.url, jobs), strict=True):
            seen[outcome if outcome in ("raised", "whole") else "wrong"] += 1
            if outcome not in ("raised", "whole"):
                wrong.append(f"{client} ← {name}, {shape}, {what}: {outcome}")
    way = "passed through" if suffix else "translated"
    total = sum(seen.values())
    for line in wrong[:20]:
        print("   ", line)
    measured = (
        f"{len(wrong)} violations in {total} cuts of {len(pairs)} pairs, {way}: the SDK raised in {seen['raised']}, "
        f"had the whole of it in {seen['whole']}; the gateway {'runs' if gateway.is_running else 'DIED'}"
    )
    passed = not wrong and gateway.is_running and seen["raised"] > total * 0.7
    return Result("R1", "0 truncated calls shown as complete; ≥ 1,000 cuts a pair", measured, passed)


def played(client: str, url: str, jobs: list[tuple[str, str, str]]) -> list[str]:
    """The verdicts, by a few SDK clients side by side: a stream that stalls holds only one of them up."""
    clients: list[Any] = [SDKS[client](url) for _ in range(4)]

    def play(number: int) -> list[str]:
        return [
            verdict(clients[number], model, shape, lies=what is LIE)
            for model, shape, what in jobs[number :: len(clients)]
        ]

    with ThreadPoolExecutor(len(clients)) as pool:
        parts = list(pool.map(play, range(len(clients))))
    for asking in clients:
        asking.close()
    return [parts[number % len(clients)][number // len(clients)] for number in range(len(jobs))]
