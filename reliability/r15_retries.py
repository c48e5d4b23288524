"""R15: tries again are safe and bounded: by budget, by the provider's word, and never for what they cannot mend."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from conversations import reply
from dragoman.events import Failure
from dragoman.routing.retry import MOST_ATTEMPTS, WINDOW
from reliability.caller import ask, spoken
from reliability.process import Gateway, providers
from reliability.provider import Provider, Step, streamed, whole, wire
from reliability.row import Result, Scale, milliseconds
from simulated import make_chain, simulate

RATE = 200
#: (headers, body's words, status) of what is never tried again.
NEVER = [
    ("retry-after: 61", "slow down", 429),
    ("retry-after: 0", "Your prompt is too long: 9000 tokens > 8192 maximum", 503),
    ("retry-after: 0", "pay", 402),
    ("retry-after: 0", "no such option", 400),
    ("x-should-retry: false", "slow down", 429),
]


def measure(scale: Scale) -> Iterator[Result]:
    """The budget by a simulated clock, the rest on a real gateway."""
    yield from budget(scale)
    yield from asyncio.run(words(scale))


def budget(scale: Scale) -> Iterator[Result]:
    """A lone provider that fails every other request, 200 of them a second."""
    seconds = scale.pick(600, 60)

    def failing(target: str, now: float, dice: Random) -> tuple[Failure | None, float]:
        return (Failure("overloaded", "busy", 503) if dice.random() < 0.5 else None), 0.001

    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        seen = simulate(make_chain(Path(folder), "a"), failing, seconds=seconds, rate=RATE)
    most = seen.most_within(WINDOW, until=float(seconds)) / (RATE * WINDOW)
    yield Result("R15", "requests ≤ 1.2 × in any 10 s", f"{most:.3f} × over {seconds} s simulated", most <= 1.2)
    tries = max(Counter(number for _, number, _ in seen.sent).values())
    yield Result("R15", f"≤ {MOST_ATTEMPTS} for one request", str(tries), tries <= MOST_ATTEMPTS)


async def words(scale: Scale) -> list[Result]:
    late = []
    repeats = scale.pick(10, 3)
    with Provider() as provider, Gateway(providers(provider.url)) as gateway:
        for seconds, header in ((0.0, "retry-after: 0"), (1.0, "retry-after: 1"), (0.25, "retry-after-ms: 250")):
            for _ in range(repeats):
                late.append(abs(await waited(provider, gateway, header) - seconds))
        sent = []
        for header, said, status in NEVER:
            provider.forget()
            script = provider.script(refusal(header, said, status))
            answer = await ask(gateway.port, *spoken("openai-chat", f"openai-chat/{script}"))
            assert answer.status == status or status == 503, answer.body
            sent.append(len(provider.asked))
        provider.forget()
        script = provider.script(refusal("retry-after-ms: 1", "slow down", 429))
        answer = await ask(gateway.port, *spoken("anthropic-messages", f"openai-chat/{script}"))
        told = answer.headers.get("x-should-retry")
    return [
        Result(
            "R15", "a wait is kept to ± 50 ms", f"most {milliseconds(max(late))} off, of {len(late)}", max(late) <= 0.05
        ),
        Result(
            "R15",
            "a wait over 60 s, 400, 402, overflow, the provider's no: never tried again",
            f"{sent} requests",
            sent == [1] * len(NEVER),
        ),
        Result("R15", "the last failure says x-should-retry: false", str(told), told == "false"),
    ]


async def waited(provider: Provider, gateway: Gateway, header: str) -> float:
    """Seconds between a refusal and the next try."""
    provider.forget()
    healthy = streamed("openai-chat", wire("openai-chat", reply("text")))
    replies = iter([refusal(header, "slow down", 429), healthy])
    script = provider.script(lambda: next(replies))
    answer = await ask(gateway.port, *spoken("openai-chat", f"openai-chat/{script}"))
    assert answer.status == 200, answer.body
    first, second = provider.asked
    return second.began - first.began


def refusal(header: str, said: str, status: int) -> list[Step]:
    return whole(b'{"error":{"message":"%b"}}' % said.encode(), status, "application/json", header)
