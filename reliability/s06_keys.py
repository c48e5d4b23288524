# ruff: noqa: E501 - tables and words of results, which a line end would tear
"""S6: a client key cannot be guessed, timed or kept after it is taken back."""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
import socket
import time
from collections.abc import Iterator

from dragoman.gateway.auth import Guard
from dragoman.gateway.messages import Head
from dragoman.secret import Secret
from reliability.caller import Answer, Caller, rendered
from reliability.process import Gateway, providers
from reliability.row import Result, Scale, milliseconds, percentile

KEY, OTHER = "dk-0123456789abcdef0123456789abcdef", "dk-fedcba9876543210fedcba9876543210"
#: Under 22 characters, or fewer than ten different ones.
WEAK = ("k", "secret", "dk-0123456789abcdef01", "a" * 64, "dk-" + "0123" * 16, "abcdefghi" * 7)
STRONG = (KEY, "abcdefghij" * 3, "dk-0123456789abcdef012")
_TABLE = '[server]\naddress = "{address}:0"\nkeys = ["env:CLIENT_KEY"]\n'
#: Keys in a row from one address; the first ten are answered at once, mistakes are made.
_FREE, _WRONG = 10, 15


def measure(scale: Scale) -> Iterator[Result]:
    """Start with weak keys, try wrong ones, take one back, and time the comparison."""
    yield starts()
    with Gateway(
        providers("http://127.0.0.1:9", _TABLE.format(address="127.0.0.1")), environ={"CLIENT_KEY": KEY}
    ) as gateway:
        yield asyncio.run(slowed(gateway.port, scale.pick(400, 100)))
    yield taken_back(scale.pick(20, 5))
    yield timed(scale.pick(100_000, 10_000))


def starts() -> Result:
    """Weak keys: refused where other machines could try them, warned of on this machine."""
    faults, tried = [], 0
    for address, key in [(address, key) for address in ("0.0.0.0", "[::]", "127.0.0.1") for key in (*WEAK, *STRONG)]:
        gateway = Gateway(providers("http://127.0.0.1:9", _TABLE.format(address=address)), environ={"CLIENT_KEY": key})
        tried += 1
        try:
            gateway.start()
            is_refused = False
        except RuntimeError:
            is_refused = True
        gateway.stop()
        is_warned = "expected at least 22 characters" in gateway.log_text()
        is_local = address == "127.0.0.1"
        wanted = (key in WEAK and not is_local, key in WEAK)
        if (is_refused, is_warned) != wanted or (
            key in gateway.log_text().replace("dragoman keys new", "") and len(key) > 6
        ):
            faults.append(f"{address} {len(key)} characters: refused {is_refused}, warned {is_warned}")
        gateway._folder.cleanup()
    for fault in faults:
        print("   ", fault)
    words = f"{len(faults)} wrong of {tried} starts: {len(WEAK)} weak keys and {len(STRONG)} others, three addresses"
    return Result("S6", "weak keys are refused off loopback, warned of on it", words, not faults)


async def slowed(port: int, count: int) -> Result:
    """Wrong keys from one address, and the right one from it and from another one meanwhile."""
    good: list[float] = []
    quiet = [await seconds(port, KEY, "127.0.0.1") for _ in range(count // 4)]
    guessing = asyncio.create_task(guessed(port))
    while not guessing.done() and len(good) < count:
        good += [await seconds(port, KEY, address) for address in ("127.0.0.2", "127.0.0.3")]
        await asyncio.sleep(0.01)
    waits = await guessing
    without = await seconds(port, "", "127.0.0.3")
    more = percentile(good, 0.99) - percentile(quiet, 0.99)
    words = f"after {_FREE} wrong keys the next waited {', '.join(f'{each:.1f}' for each in waits[_FREE:])} s; right keys from the same"
    words += f" address meanwhile p99 {milliseconds(percentile(good, 0.99))} ({more * 1000:+.0f} ms), none {milliseconds(without)}"
    passed = waits[-1] >= 8 * waits[_FREE] >= 0.8 and percentile(good, 0.99) < 0.25 and without < 0.25
    return Result("S6", "wrong keys, and only they, are slowed by address", words, passed)


async def guessed(port: int) -> list[float]:
    return [await seconds(port, f"{KEY[:-1]}{number}x", "127.0.0.3") for number in range(_WRONG)]


async def seconds(port: int, key: str, address: str) -> float:
    """How long an answer takes, asked from an address of this machine."""
    began = time.monotonic()
    await status(port, key, address)
    return time.monotonic() - began


async def status(port: int, key: str, address: str = "127.0.0.1") -> int:
    plain = socket.socket()
    plain.bind((address, 0))
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", port))
    caller = Caller(*await asyncio.open_connection(sock=plain))
    await caller.send(rendered("/api/tags", method="GET", headers={"x-api-key": key} if key else {}))
    answer: Answer = await caller.answer()
    caller.close()
    return answer.status


def taken_back(count: int) -> Result:
    """The file names another key: how long the one before is still taken."""
    took: list[float] = []

    def config(key: str) -> str:
        named = f'"sha256:{hashlib.sha256(key.encode()).hexdigest()}"'
        return providers("http://127.0.0.1:9", _TABLE.format(address="127.0.0.1").replace('"env:CLIENT_KEY"', named))

    with Gateway(config(KEY)) as gateway:
        for number in range(count):
            new, old = (KEY, OTHER) if number % 2 else (OTHER, KEY)
            source = f"127.0.1.{number + 1}"  # an address of its own: wrong keys are slowed
            temporary = gateway.file.with_suffix(".new")
            temporary.write_text(config(new), encoding="utf-8")
            temporary.replace(gateway.file)
            began = time.monotonic()
            while asyncio.run(status(gateway.port, new, source)) != 200 and time.monotonic() - began < 5:
                time.sleep(0.05)
            took.append(time.monotonic() - began)
            if asyncio.run(status(gateway.port, old, source)) != 401:
                took.append(math.inf)
    words = f"{count} keys: p50 {milliseconds(percentile(took, 0.5))}, most {milliseconds(max(took))}"
    return Result("S6", "a key that is taken back is refused after ≤ 1 s, a new one taken", words, max(took) <= 1.0)


def timed(pairs: int) -> Result:
    """Welch's t between a key that is wrong from its first character and one that is wrong in its last."""
    guard = Guard(allowed_hosts=(), keys=[Secret(KEY)])
    chosen, hexadecimal = random.Random(7), "0123456789abcdef"
    # Beginnings of both kinds are made in one way and lie among each other, so that memory tells them apart by nothing.
    beginnings = []
    for number in range(2_000):
        letters = list(KEY[:-1]) if number % 2 else chosen.choices(hexadecimal, k=len(KEY) - 1)
        beginnings.append((number % 2, "".join(letters)))
    times: tuple[list[int], list[int]] = ([], [])
    for _ in range(2 * pairs):
        which, beginning = chosen.choice(beginnings)
        head = _head(beginning + chosen.choice(hexadecimal[:-1]))
        began = time.perf_counter_ns()
        guard.judge(head)
        times[which].append(time.perf_counter_ns() - began)
    kept = [sorted(each)[: len(each) * 9 // 10] for each in times]  # without what the machine did meanwhile
    means = [sum(each) / len(each) for each in kept]
    variances = [
        sum((value - mean) ** 2 for value in each) / (len(each) - 1) for each, mean in zip(kept, means, strict=True)
    ]
    spread = math.sqrt(sum(variance / len(each) for variance, each in zip(variances, kept, strict=True)))
    t = (means[0] - means[1]) / spread if spread else 0.0
    words = f"t = {t:.2f} over {pairs:,} pairs, means {means[0]:.0f} and {means[1]:.0f} ns"
    return Result(
        "S6",
        "a comparison tells nothing by time: abs t < 4.5, or less than 1 ns",
        words,
        abs(t) < 4.5 or abs(means[0] - means[1]) < 1,
    )


def _head(key: str) -> Head:
    return Head("GET", "/api/tags", {"host": "127.0.0.1", "x-api-key": key})
