"""R20: no bytes of a client or a provider break the gateway, and how they are cut into packets changes nothing."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Iterator
from contextlib import suppress

import dragoman
from cases import load_cases
from dragoman.protocols import PROTOCOLS
from reliability.caller import Caller, ask, rendered, spoken
from reliability.process import BASE, Gateway, providers
from reliability.provider import END, Provider, Step, chunk, head
from reliability.r01_truncation import SHAPES, wire
from reliability.row import Result, Scale
from reliability.shim import Shim, Toxics

_AT_ONCE = 8
_SETTINGS = "[http]\nfirst_event_seconds = 2\nsilence_seconds = 1\nretries = 0\n"
#: What tends to break readers.
_NASTY = (
    b"\x00", b"\xff", b"\xed\xa0\x80", b"\r", b"\n", b"\r\n", b"\n\n", b'"', b"\\", b"\\u", b"\\ud800", b"{", b"}",
    b"[", b"]", b":", b",", b"null", b"true", b"-", b"1e999", b"9" * 40, b"NaN", b"data:", b"event:", b"[DONE]",
    b"[" * 200, b'{"a":' * 150, b"\xef\xbb\xbf", b"\xf0\x9f", b" ", b"content-length: 5\r\n", b"0\r\n\r\n", b"chunked",
)  # fmt: skip


def measure(scale: Scale) -> Iterator[Result]:
    """Half of the time clients send nonsense, half of the time a provider does; then slices."""
    yield from asyncio.run(_measure(scale))


async def _measure(scale: Scale) -> list[Result]:
    seconds = scale.pick(150, 10)
    chance = random.Random(time.time_ns())
    with Provider() as provider, Gateway(providers(provider.url, _SETTINGS)) as gateway:
        sent = await for_a_while(seconds / 2, lambda: nonsense(gateway.port, chance))
        answered = await for_a_while(seconds / 2, lambda: babble(gateway, provider, chance))
        broken = [line for line in gateway.log_text().splitlines() if "answering" in line or "Traceback" in line]
        unanswered = [what for what in sent + answered if what]
        alive = gateway.is_running
    for line in [*dict.fromkeys(broken), *dict.fromkeys(unanswered)][:10]:
        print("   ", line[:300])
    measured = (
        f"{len(sent)} broken requests and {len(answered)} broken responses: {len(broken)} uncaught, "
        f"{len(unanswered)} without an HTTP answer, the gateway {'runs' if alive else 'DIED'} ({seconds} s; the "
        "readers alone are fuzzed by `make soak`)"
    )
    differing, total = await sliced(scale.pick(300, 40), chance)
    for line in differing[:10]:
        print("   ", line[:300])
    return [
        Result("R20", "0 uncaught", measured, not broken and not unanswered and alive),
        Result("R20", "0 split differences", f"{len(differing)} of {total} streams cut otherwise", not differing),
    ]


async def for_a_while(seconds: float, trial: object) -> list[str]:
    """Trials side by side; gives what each has to say."""
    found: list[str] = []
    deadline = time.monotonic() + seconds

    async def work() -> None:
        while time.monotonic() < deadline:
            found.append(await trial())  # type: ignore[operator]

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
    return found


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A few changes somewhere."""
    out = bytearray(data)
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(len(out) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            out[place:place] = chance.choice(_NASTY)
        elif kind == 1:
            del out[place : place + chance.randrange(1, 20)]
        elif kind == 2:
            other = chance.randrange(len(out) + 1)
            out[place:place] = out[other : other + chance.randrange(1, 200)]
        elif kind == 3 and place < len(out):
            out[place] = chance.randrange(256)
        else:
            del out[place:]
    return bytes(out)


async def nonsense(port: int, chance: random.Random) -> str:
    """A request that was broken: only its body, or all of it. Any HTTP answer, or a close, is right."""
    client = chance.choice(list(BASE))
    path, body = spoken(client, f"{client}/model-1", stream=chance.random() < 0.5)
    whole_one = chance.random() < 0.3
    data = mutated(rendered(path, body), chance) if whole_one else rendered(path, mutated(body, chance))
    with suppress(OSError):
        caller = await Caller.connect(port)
        await caller.send(data)
        caller.writer.write_eof()
        received = await asyncio.wait_for(caller.reader.read(-1), 20)
        caller.close()
        if received and not re.match(rb"HTTP/1\.1 [2-5]\d\d ", received):
            return f"{data[:200]!r}: {received[:100]!r}"
        if b"an error in the gateway" in received:
            return f"{data[:400]!r}: {received[-200:]!r}"
    return ""


async def babble(gateway: Gateway, provider: Provider, chance: random.Random) -> str:
    """A response that was broken. The client gets an HTTP answer that ends."""
    name = chance.choice(list(BASE))
    client = chance.choice(list(BASE))
    case = chance.choice(_CASES[name])
    data = mutated(case, chance)
    pieces = [data[place : place + 700] for place in range(0, len(data), 700)]
    said: list[Step] = [head(200, PROTOCOLS[name].stream_type), *map(chunk, filter(None, pieces)), END]
    if chance.random() < 0.2:
        said = [mutated(b"".join(step for step in said if isinstance(step, bytes)), chance), "close"]
    script = provider.script(said)
    answer = await asyncio.wait_for(ask(gateway.port, *spoken(client, f"{name}/{script}")), 20)
    if not 200 <= answer.status < 600 or b"an error in the gateway" in answer.body:
        return f"{client} ← {name}: {answer.status} {answer.body[-200:]!r} for {data[:300]!r}"
    return ""


_CASES = {
    name: [*(wire(name, shape) for shape in SHAPES), *(case.wire for case in load_cases() if case.protocol == name)]
    for name in BASE
}


async def sliced(count: int, chance: random.Random) -> tuple[list[str], int]:
    """The same streams through a shim that cuts them into packets of a few bytes."""
    wrong = []
    with Provider() as provider, Shim(provider.port) as shim, Gateway(
        providers(provider.url) + providers(shim.url, suffix="-sliced")
    ) as gateway:  # fmt: skip
        for number in range(count):
            name, client = chance.choice(list(BASE)), chance.choice(list(BASE))
            data = chance.choice(_CASES[name])
            script = provider.script([head(200, PROTOCOLS[name].stream_type), chunk(data), END])
            shim.toxics = Toxics(slice=chance.choice((1, 2, 3, 7, 50)))
            read = []
            for suffix in ("", "-sliced"):
                answer = await ask(gateway.port, *spoken(client, f"{name}{suffix}/{script}"))
                status = answer.status if answer.status >= 400 else 200
                found = dragoman.decode(answer.body, client, status=status)  # type: ignore[arg-type]
                calls = [(call.name, call.values()) for call in found.tool_calls]
                read.append((answer.status, answer.whole, calls, found.text, found.thinking, found.stop_reason))
            if read[0] != read[1]:
                wrong.append(f"{number}: {client} ← {name}: {read[0]!r:.140} and {read[1]!r:.140}")
    return wrong, count
