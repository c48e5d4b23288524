"""S19: however many members one list or object of a request or an answer has, nobody else waits for it.

The places are those of `tests/many_items.py`: every list and object of the vendors' types, and every name that our own
Structs know, in each object, as a list of each small member.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dragoman.protocols import PROTOCOLS
from many_items import Many, answers, requests, stream_of, streams
from reliability.caller import Answer, ask, spoken
from reliability.h04_bounds import processor_seconds
from reliability.process import Gateway, providers
from reliability.provider import END, Provider, chunk, head, whole
from reliability.r13_reload import _ANSWER
from reliability.r18_loop import HOLDING
from reliability.row import Result, Scale, milliseconds
from test_many_items import picked

_MIB = 1024 * 1024
#: What one place may take, in seconds of processor: 30 µs a byte, of an answer that is read, mended and written.
_MOST_SECONDS = 30
#: Members that are within the bounds, so that all are read, and about 1 MiB of them.
_FEW = 4_000
#: Seconds after an answer: what the gateway lets go of then is this body's too.
_REST = 0.2


class Body(NamedTuple):
    """A body of many members. `kind`: whose it is."""

    kind: str
    protocol: str
    name: str
    data: bytes


def measure(scale: Scale) -> Iterator[Result]:
    """A real gateway, each body alone, and how long the interpreter was held."""
    yield from asyncio.run(_measure(scale))


async def _measure(scale: Scale) -> list[Result]:
    results = []
    for kind in ("requests", "answers", "streams"):
        bodies = list(_bodies(kind, scale.pick(40, 6)))
        with (
            tempfile.NamedTemporaryFile() as file,
            Provider(whole(_ANSWER)) as provider,
            Gateway(providers(provider.url), command=(*HOLDING, file.name)) as gateway,
        ):
            await ask(gateway.port, *spoken("openai-chat", "openai-chat/m", stream=False))  # what is made once
            Path(file.name).write_text("0", encoding="ascii")
            held, longest = (0.0, ""), (0.0, "")
            wrong = []
            for body in bodies:
                what, before = f"{body.protocol}, {body.name}", processor_seconds(gateway.pid)
                answer = await _asked(gateway, provider, body)
                await asyncio.sleep(_REST)
                longest = max(longest, (processor_seconds(gateway.pid) - before, what))
                held = max(held, (float(Path(file.name).read_text(encoding="ascii") or "0"), what))
                Path(file.name).write_text("0", encoding="ascii")
                is_ours = answer.status == 500 and provider.url.encode() not in answer.body  # else the provider's error
                if not answer.status or is_ours or not answer.whole:
                    wrong.append((what, answer.status))
            failed = [line for line in gateway.log_text().splitlines() if "failed:" in line]
        results += _results(kind, len(bodies), held, longest, [*wrong, *failed])
    return results


def _results(
    kind: str, count: int, held: tuple[float, str], longest: tuple[float, str], wrong: list[object]
) -> list[Result]:
    for each in wrong[:5]:
        print("   ", each)
    told = f"most {longest[0]:.1f} s ({longest[1]})"
    return [
        Result("S19", f"{kind} of many members, 4,000 and 1 MiB: the interpreter is held ≤ 50 ms at once",
               f"{milliseconds(held[0])} at most ({held[1]}); {count} bodies", held[0] <= 0.05),
        Result("S19", f"{kind}: ≤ {_MOST_SECONDS} s of processor each", told, longest[0] <= _MOST_SECONDS),
        Result("S19", f"{kind}: each is answered once and whole, none by a 500 of ours, 0 uncaught",
               f"{len(wrong)} of {count} are not", not wrong),
    ]  # fmt: skip


def _bodies(kind: str, count: int) -> Iterator[Body]:
    """So many bodies of each protocol, every second one of 1 MiB."""
    for protocol in PROTOCOLS:
        make = {"requests": requests, "answers": answers, "streams": streams}[kind]
        found = list(make(protocol))
        step = max(1, len(found) // count)
        for number, many in enumerate(itertools.islice(picked(iter(found), step, protocol), count)):
            members = _MIB // (len(many.unit) + 1) if number % 2 else _FEW
            if kind == "requests" and isinstance(many.body, dict) and isinstance(many.body.get("model"), str):
                many = many._replace(body=many.body | {"model": f"{_other(protocol)}/m"})
            yield Body(kind, protocol, many.name, _data(kind, protocol, many, members))


def _data(kind: str, protocol: str, many: Many, members: int) -> bytes:
    return stream_of(many, protocol, members) if kind == "streams" else many.text(members).encode()


def _other(protocol: str) -> str:
    return "anthropic-messages" if protocol != "anthropic-messages" else "openai-chat"


async def _asked(gateway: Gateway, provider: Provider, body: Body) -> Answer:
    """Send a request as it is, or ask for an answer in another protocol."""
    if body.kind == "requests":
        path, _ = spoken(body.protocol, f"{_other(body.protocol)}/m", stream=False)
        return await ask(gateway.port, path, body.data)
    is_stream = body.kind == "streams"
    media = "text/event-stream" if is_stream and body.protocol != "ollama-chat" else "application/json"
    provider.forget()
    script = provider.script([head(200, media), chunk(body.data), END])
    return await ask(gateway.port, *spoken(_other(body.protocol), f"{body.protocol}/{script}", stream=is_stream))
