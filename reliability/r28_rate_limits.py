"""R28: what a provider says of its limits reaches the client, in its words and in one set; and when to come back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

from dragoman.protocols import PROTOCOLS
from reliability.caller import ask, spoken
from reliability.process import BASE, Gateway, providers
from reliability.provider import END, Provider, Step, chunk, head, whole
from reliability.r01_truncation import wire
from reliability.row import Result, Scale

#: Headers as two families of providers send them → the set that is the same for all.
FAMILIES = {
    "openai": (
        {
            "x-ratelimit-limit-requests": "500", "x-ratelimit-remaining-requests": "499",
            "x-ratelimit-reset-requests": "120ms", "x-ratelimit-limit-tokens": "30000",
            "x-ratelimit-remaining-tokens": "29000", "x-ratelimit-reset-tokens": "2s",
        },
        {"x-dragoman-limit-tokens": "30000", "x-dragoman-remaining-tokens": "29000",
         "x-dragoman-remaining-requests": "499"},
    ),
    "anthropic": (
        {
            "anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-remaining": "49",
            "anthropic-ratelimit-tokens-limit": "40000", "anthropic-ratelimit-tokens-remaining": "39000",
            "anthropic-ratelimit-tokens-reset": "2030-01-01T00:00:00Z",
        },
        {"x-dragoman-limit-tokens": "40000", "x-dragoman-remaining-tokens": "39000",
         "x-dragoman-remaining-requests": "49"},
    ),
}  # fmt: skip


def measure(scale: Scale) -> Iterator[Result]:
    """Both families to clients of every protocol, streamed and whole; refusals with and without `Retry-After`."""
    yield from asyncio.run(_measure())


async def _measure() -> list[Result]:
    lost, missing, total, refusals = [], [], 0, 0
    with Provider() as provider, Gateway(providers(provider.url, "[http]\nretries = 0\n")) as gateway:
        for family, (native, one_set) in FAMILIES.items():
            lines = [f"{name}: {value}" for name, value in native.items()]
            for client in BASE:
                said = [head(200, PROTOCOLS[client].stream_type, *lines), chunk(wire(client, "text")), END]
                for stream in (True, False):
                    path, body = spoken(client, f"{client}/{provider.script(said)}", stream=stream)
                    answer = await ask(gateway.port, path, body)
                    expected = native | one_set
                    total += len(expected)
                    lost += [
                        f"{family} to {client}: {name} is {answer.headers.get(name)!r}"
                        for name, value in expected.items()
                        if answer.headers.get(name) != value
                    ]
        for status in (429, 503, 529):
            for client in BASE:
                for given in ("7", None):
                    refusals += 1
                    error = json.dumps({"error": {"message": "slow down", "type": "x"}}).encode()
                    extra = (f"retry-after: {given}",) if given else ()
                    steps: list[Step] = whole(error, status, "application/json", *extra)
                    path, body = spoken(client, f"openai-chat/{provider.script(steps)}")
                    answer = await ask(gateway.port, path, body)
                    found = answer.headers.get("retry-after")
                    if found is None or not found.isdigit() or (given and found != given):
                        missing.append(f"{status} to {client}: {answer.status}, retry-after {found!r} for {given!r}")
    for line in dict.fromkeys([*lost, *missing]):
        print("   ", line)
    return [
        Result("R28", "native headers and one set of them", f"{len(lost)} of {total} lost", not lost),
        Result("R28", "Retry-After always on 429, 503, 529", f"{len(missing)} of {refusals} without", not missing),
    ]
