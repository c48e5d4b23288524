"""R4: a client that goes takes its provider's connection with it, in every phase, whether it says goodbye or not."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

from conversations import reply
from dragoman.protocols import PROTOCOLS
from reliability.caller import Caller, rendered, spoken
from reliability.process import Gateway, providers
from reliability.provider import Asked, Provider, Script, chunk, head, wire
from reliability.row import Result, Scale, milliseconds, percentile

_AT_ONCE = 10


def opening(protocol: str) -> bytes:
    """A stream up to its first words."""
    data = wire(protocol, reply("text"))
    return data[: data.index(b"\n", data.index(b"Hello")) + 1] + b"\n"


#: Phase → (whether the answer is streamed, what the provider does).
PHASES: dict[str, tuple[bool, Callable[[str], Script]]] = {
    "sending the request": (True, lambda protocol: ["hold"]),
    "waiting for the head": (True, lambda protocol: ["hold"]),
    "preamble": (True, lambda protocol: [head(200, PROTOCOLS[protocol].stream_type), "hold"]),
    "mid-stream": (
        True,
        lambda protocol: [head(200, PROTOCOLS[protocol].stream_type), chunk(opening(protocol)), "hold"],
    ),
    "not streamed": (False, lambda protocol: ["hold"]),
}


def measure(scale: Scale) -> Iterator[Result]:
    """Five phases with the five protocols, each left by FIN and by RST; and two where no provider ever reads."""
    yield from asyncio.run(_measure(scale))


async def _measure(scale: Scale) -> list[Result]:
    count = scale.pick(100, 10)
    with Provider() as provider, Hole() as hole:
        more = f'[providers.hole]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:{hole.port}/v1"\n'
        with Gateway(providers(provider.url, more)) as gateway:
            late: list[float] = []
            unclosed = 0
            phases = [(phase, client, way) for phase in PHASES for client in PROTOCOLS for way in ("FIN", "RST")]
            for phase, client, way in phases:
                left = await repeated(count, lambda: leave(gateway, provider, client, phase=phase, way=way))  # noqa: B023
                late += [seconds for seconds in left if seconds is not None]
                unclosed += left.count(None)
                if None in left or max(late[-count:]) > 0.25:
                    print(f"    {client}, {phase}, {way}: {left.count(None)} never, slowest {max(late[-count:]):.3f} s")
            connecting = await repeated(count // 5, lambda: leave_connecting(gateway, hole), at_once=1)
            again = sum(asked.head.startswith(b"POST") for asked in provider.asked)
            expected = count * len(phases) - count * len(PROTOCOLS) * 2
            return results(late, unclosed, connecting, again - expected, gateway)


def results(
    late: list[float], unclosed: int, connecting: list[float | None], further: int, gateway: Gateway
) -> list[Result]:
    goal = "close seen ≤ 250 ms p99, ≤ 1 s at most, in 100 %"
    total = len(late) + unclosed
    measured = (
        f"p50 {milliseconds(percentile(late, 0.5))}, p99 {milliseconds(percentile(late, 0.99))}, "
        f"most {milliseconds(max(late))}, never {unclosed} of {total} (5 phases × 5 protocols × FIN, RST)"
    )
    passed = not unclosed and percentile(late, 0.99) <= 0.25 and max(late) <= 1
    found = [seconds for seconds in connecting if seconds is not None]
    never = len(connecting) - len(found)
    given_up = (
        f"p99 {milliseconds(percentile(found, 0.99))}, most {milliseconds(percentile(found, 1))}, never {never} of "
        f"{len(connecting)}"
    )
    return [
        Result("R4", goal, measured, passed and gateway.is_running),
        Result("R4", "the same while connecting: SYN given up", given_up, not never and percentile(found, 1) <= 1),
        Result("R4", "0 further attempts", str(further), not further),
    ]


async def repeated(
    count: int, trial: Callable[[], Awaitable[float | None]], *, at_once: int = _AT_ONCE
) -> list[float | None]:
    """So many trials, a few side by side."""
    slots = asyncio.Semaphore(at_once)

    async def one() -> float | None:
        async with slots:
            return await trial()

    return list(await asyncio.gather(*(one() for _ in range(count))))


async def leave(gateway: Gateway, provider: Provider, client: str, *, phase: str, way: str) -> float | None:
    """Seconds from our leaving to the close that the provider sees; None when it does not within 3 s."""
    stream, script = PHASES[phase]
    name = provider.script(script(client))
    path, body = spoken(client, f"{client}/{name}", stream=stream)
    caller = await Caller.connect(gateway.port)
    data = rendered(path, body)
    if phase == "sending the request":  # nothing may be asked at all
        await caller.send(data[:-10])
        await asyncio.sleep(0.01)
        caller.close() if way == "FIN" else caller.reset()
        await asyncio.sleep(0.01)
        return 0.0 if provider.of(name) is None else None
    await caller.send(data)
    asked = await arrived(provider, name)
    if asked is None:
        return None
    if phase == "mid-stream":
        await caller.reader.read(1)
    else:
        await asyncio.sleep(0.01)
    began = time.monotonic()
    caller.close() if way == "FIN" else caller.reset()
    deadline = began + 3
    while asked.closed is None and time.monotonic() < deadline:
        await asyncio.sleep(0.002)
    return None if asked.closed is None else max(0.0, asked.closed - began)


async def arrived(provider: Provider, name: str, seconds: float = 5.0) -> Asked | None:
    """The request with this script, when it is there."""
    deadline = time.monotonic() + seconds
    while (asked := provider.of(name)) is None and time.monotonic() < deadline:
        await asyncio.sleep(0.001)
    return asked


class Hole:
    """An address that answers no SYN: its backlog is full. Linux only."""

    def __enter__(self) -> Hole:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        self.port: int = self._listener.getsockname()[1]
        self._fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            with suppress(BlockingIOError):
                filler.connect(("127.0.0.1", self.port))
            self._fillers.append(filler)
        time.sleep(0.1)
        self._own = self.knocking()
        return self

    def __exit__(self, *_: object) -> None:
        for filler in (*self._fillers, self._listener):
            filler.close()

    def knocking(self) -> set[str]:
        """The local ends of connections that are being tried (state SYN_SENT)."""
        lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
        fields = [line.split() for line in lines]
        return {found[1] for found in fields if found[3] == "02" and found[2].endswith(f":{self.port:04X}")}

    def foreign(self) -> set[str]:
        """Those that are not our own fillers'."""
        return self.knocking() - self._own


async def leave_connecting(gateway: Gateway, hole: Hole) -> float | None:
    """Seconds from our leaving to the end of the gateway's attempt to connect: then it has as few files as before."""
    files = gateway.files()
    path, body = spoken("openai-chat", "hole/model")
    caller = await Caller.connect(gateway.port)
    await caller.send(rendered(path, body))
    deadline = time.monotonic() + 3
    while not hole.foreign() and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    if not hole.foreign():
        return None
    began = time.monotonic()
    caller.reset()
    # Both: files of connections that were closed just before may still have counted when this began.
    while gateway.files() > files or hole.foreign():
        if time.monotonic() > began + 3:
            return None
        await asyncio.sleep(0.002)
    return time.monotonic() - began
