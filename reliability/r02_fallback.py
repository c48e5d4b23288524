"""R2: a failure before the first word is invisible: another target answers, as if it had been asked first."""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from conversations import reply
from dragoman.events import Start
from dragoman.protocols import PROTOCOLS
from failing import BROKEN, Broken, breaking_tls, closed_port, speaking_plain, steps
from reliability.caller import Answer, ask, spoken
from reliability.process import BASE, Gateway, providers
from reliability.provider import Provider, Step, streamed, wire
from reliability.row import Result, Scale, milliseconds, percentile
from scripted import Scripted

#: How long a stalled answer is waited for, in seconds.
PATIENCE = 0.5
CLOCKS = "[http]\nca_file = {ca!r}\n" + "".join(
    f"{name}first_event_seconds = {PATIENCE}\n" for name in ("", "reasoning_", "local_")
)


class Played(NamedTuple):
    broken: Broken
    problem: str
    added: float | None  # seconds from the failure to the request to the second target


def measure(scale: Scale) -> Iterator[Result]:
    """Nine failures at three places, by five client protocols."""
    played = asyncio.run(_measure(scale.pick(3, 1)))
    wrong = [f"{one.broken}: {one.problem}" for one in played if one.problem]
    for line in wrong[:10]:
        print("   ", line)
    slowest = sorted((one for one in played if one.added is not None), key=lambda one: -(one.added or 0))
    for one in slowest[:3]:
        print("    slowest:", one.broken, milliseconds(one.added or 0))
    added = [one.added for one in slowest if one.added is not None]
    slow = percentile(added, 0.99)
    goal = "135 of 135 cases: an answer, one start, the bytes of a direct run"
    cases = len({one.broken for one in played} - {one.broken for one in played if one.problem})
    yield Result("R2", goal, f"{cases} of {len(BROKEN)}, {len(played) - len(wrong)} of {len(played)} runs", not wrong)
    yield Result(
        "R2",
        "≤ 5 ms p99 from the failure to the second target",
        f"p50 {milliseconds(percentile(added, 0.5))}, p99 {milliseconds(slow)} of {len(added)}",
        slow <= 0.005,
    )


async def _measure(repeats: int) -> list[Played]:
    played = []
    with (
        tempfile.TemporaryDirectory(prefix="dragoman-") as folder,
        Provider() as good,
        Provider() as plain,
        closed_port() as closed,
        speaking_plain() as https,
        breaking_tls(Path(folder) / "tls.pem") as tls,
    ):
        names: dict[Broken, str] = {}
        times: dict[Broken, float] = {}
        routes = []
        for number, broken in enumerate(BROKEN):
            names[broken] = plain.script(timed(broken, times)) if broken.server == "plain" else f"model-{number}"
            targets = f'"{broken.protocol}-{broken.server}/{names[broken]}", "{broken.protocol}/model-1"'
            routes.append(f'[routes."to-{broken}"]\ntargets = [{targets}]\n')
        routes += [f'[routes."direct-{name}"]\ntargets = ["{name}/model-1"]\n' for name in BASE]
        config = [CLOCKS.format(ca=str(Path(folder) / "tls.pem")), providers(good.url)]
        urls = {"plain": plain.url, "closed": closed, "tls": tls.url, "https": https}
        config += [providers(url, suffix=f"-{kind}") for kind, url in urls.items()]
        with Gateway("\n".join([*config, *routes])) as gateway:
            for broken in BROKEN * repeats:
                played.append(await play(broken, gateway, good, tls, times))
    return played


async def play(broken: Broken, gateway: Gateway, good: Provider, tls: Scripted, times: dict[Broken, float]) -> Played:
    """One case, beside a direct run."""
    name = broken.protocol
    good.default = streamed(name, wire(name, reply("text-call")))
    good.forget()
    began = time.monotonic()
    direct = await ask(gateway.port, *spoken(name, f"direct-{name}"))
    usual = good.asked[0].began - began
    if broken.server == "tls":
        tls.replies[:] = [steps(broken)]
    good.forget()
    times.pop(broken, None)
    began = time.monotonic()
    answer = await ask(gateway.port, *spoken(name, f"to-{broken}"))
    problem = difference(broken, answer, direct)
    if len(good.asked) != 1:
        return Played(broken, problem or f"{len(good.asked)} requests to the second target", None)
    return Played(broken, problem, added(broken, good.asked[0].began, times, from_there=began + usual))


def difference(broken: Broken, answer: Answer, direct: Answer) -> str:
    """How an answer differs from a direct run; "" when it does not."""
    if answer.status != 200 or answer.problem:
        return f"status {answer.status}, {answer.problem}"
    if plain(answer.body, f"to-{broken}") != plain(direct.body, f"direct-{broken.protocol}"):
        return "other bytes than a direct run"
    decoder = PROTOCOLS[broken.protocol].decoder(new_id=lambda: "id")
    starts = sum(type(event) is Start for event in [*decoder.feed(answer.body), *decoder.close()])
    return "" if starts == 1 else f"{starts} starts"


def plain(body: bytes, name: str) -> bytes:
    """Without the name that was asked for, and the ids that the gateway makes up for each answer."""
    body = re.sub(rb"\b(resp|call|msg|fc|rs)_\w{20,}", rb"\1_ID", body.replace(name.encode(), b"NAME"))
    return re.sub(rb'"created(_at)?": ?("[^"]*"|\d+)', b"CREATED", body)


def added(broken: Broken, second: float, times: dict[Broken, float], *, from_there: float) -> float | None:
    """Seconds that the failure cost beyond its own: to the second target's request. `from_there`: when that would have
    come without it."""
    if broken.failure == "stall":
        return second - from_there - PATIENCE
    if broken.server in ("closed", "https"):
        return second - from_there  # with the attempt itself in it
    return second - times[broken] if broken in times else None


def timed(broken: Broken, times: dict[Broken, float]) -> Callable[[], Iterator[Step]]:
    """The script of a failure that notes when its last bytes were written."""

    def script() -> Iterator[Step]:
        for step in steps(broken):
            if isinstance(step, bytes):
                yield step
                times[broken] = time.monotonic()
            else:
                times[broken] = time.monotonic() + (step if isinstance(step, float) else 0.0)
                yield step

    return script
