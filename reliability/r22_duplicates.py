"""R22, the gateway's part: however a provider says a call twice, a client gets it once, with an id of its own."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import dragoman
from dragoman.protocols import PROTOCOLS
from reliability.caller import ask, spoken
from reliability.process import BASE, Gateway, providers
from reliability.provider import Provider, Step, streamed, whole
from reliability.r01_truncation import wire
from reliability.row import Result, Scale

#: Where a client sees the id of a new call.
_IDS = {
    "openai-chat": re.compile(rb'"id": ?"(call_\w+)"'),
    "openai-responses": re.compile(rb'"type": ?"response.output_item.added".*?"call_id": ?"(\w+)"'),
    "anthropic-messages": re.compile(rb'"type": ?"tool_use".*?"id": ?"(\w+)"'),
}
_FUNCTION = {"name": "get_weather", "arguments": '{"city":"Oslo"}'}


def repeated(protocol: str, chance: random.Random) -> tuple[bytes, list[dict[str, Any]]]:
    """A stream in which something of a call, or its end, is said twice; and the calls that it holds."""
    data = wire(protocol, "parallel")
    expected = [{"city": f"C{number}"} for number in range(3)]
    separator = next(mark for mark in (b"\r\n\r\n", b"\n\n", b"\n") if mark in data)
    frames = [frame for frame in data.split(separator) if frame]
    way = chance.randrange(4)
    if way == 0:  # the last frames again
        frames += frames[-chance.randrange(1, 3) :]
    elif way == 1 and protocol == "openai-chat":  # a usage chunk with an empty list of calls
        last = json.loads(frames[-2].removeprefix(b"data: "))
        last["choices"] = [{"index": 0, "delta": {"tool_calls": []}, "finish_reason": None}]
        frames.insert(-1, b"data: " + json.dumps(last).encode())
    elif way == 2:  # the end, twice in the middle of the end
        frames.insert(len(frames) - 1, frames[-2])
    else:  # the first frame again
        frames.insert(1, frames[0])
    return separator.join(frames) + separator, expected


def doubled_call(protocol: str) -> list[tuple[str, bytes]]:
    """Hand-written streams in which a whole call comes twice with one id."""
    call = {"id": "call_twice000000000000000001", "type": "function", "function": _FUNCTION}

    def chat(*deltas: Any, finish: int = 1) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices += [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}] * finish
        chunks = [{"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [found]} for found in choices]
        return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"

    if protocol == "openai-chat":
        first = {"tool_calls": [{"index": 0, **call}]}
        return [
            ("the call at two indexes", chat(first, {"tool_calls": [{"index": 1, **call}]})),
            ("the call twice at one index", chat(first, first)),
            ("both in one delta", chat({"tool_calls": [{"index": 0, **call}, {"index": 1, **call}]})),
            ("the finish twice", chat(first, finish=2)),
            ("an empty list after it", chat(first, {"tool_calls": []})),
        ]
    if protocol == "gemini-generate":
        part = {"functionCall": {"id": "call_twice", "name": "get_weather", "args": {"city": "Oslo"}}}
        frame = {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}
        end = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}]}
        lines = [b"data: " + json.dumps(found).encode() + b"\r\n\r\n" for found in (frame, end)]
        return [("the call again in the last chunk", b"".join(lines))]
    return []


def measure(scale: Scale) -> Iterator[Result]:
    """Random repetitions in streams of each protocol, read by clients of each."""
    yield from asyncio.run(_measure(scale))


async def _measure(scale: Scale) -> list[Result]:
    count = scale.pick(40, 8)
    wrong, total = [], 0
    with Provider() as provider, Gateway(providers(provider.url)) as gateway:
        for client in BASE:
            for name in BASE:
                chance = random.Random(f"{client} {name}")
                cases = [("random", *repeated(name, chance)) for _ in range(count)]
                cases += [(what, data, [{"city": "Oslo"}]) for what, data in doubled_call(name)]
                for what, data, expected in cases:
                    total += 1
                    script = provider.script(streamed(name, data))
                    problem = await verdict(gateway, provider, client, f"{name}/{script}", expected)
                    if problem:
                        wrong.append(f"{client} ← {name}, {what}: {problem}")
        total += 1
        again = await fallen_back(gateway, provider)
        wrong += [again] if again else []
    for line in wrong[:20]:
        print("   ", line)
    return [Result("R22", "each call and each id once", f"{len(wrong)} of {total} streams wrong", not wrong)]


async def verdict(gateway: Gateway, provider: Provider, client: str, model: str, expected: list[Any]) -> str:
    answer = await ask(gateway.port, *spoken(client, model))
    seen: Any = dragoman.decode(answer.body, client)  # type: ignore[arg-type]
    calls = [call.values() for call in seen.tool_calls]
    if calls != expected:
        return f"{calls} instead of {expected}"
    if len({call.id for call in seen.tool_calls}) != len(calls):
        return "one id for two calls"
    pattern = _IDS.get(client)
    if pattern is not None:
        ids = Counter(next(filter(None, found.groups())) for found in pattern.finditer(answer.body))
        if any(times > 1 for times in ids.values()):
            return f"ids said again: {ids}"
    asked = provider.of(model.partition("/")[2])
    posts = sum(asked is other for other in provider.asked)
    return "" if posts == 1 else f"asked {posts} times"


async def fallen_back(gateway: Gateway, provider: Provider) -> str:
    """A provider that answers whole though a stream was asked for: the answer is taken, not asked for again."""
    call = {"id": "call_1", "type": "function", "function": _FUNCTION}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    steps: list[Step] = whole(json.dumps(body).encode())
    script = provider.script(steps)
    before = len(provider.asked)
    problem = await verdict(gateway, provider, "anthropic-messages", f"openai-chat/{script}", [{"city": "Oslo"}])
    return problem or ("" if len(provider.asked) == before + 1 else "asked twice")


assert set(_IDS) < set(PROTOCOLS)
