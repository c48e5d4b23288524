"""R3: a provider that dies after its first words is an honest error in the client's form, and nothing is spliced on."""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Iterator
from typing import NamedTuple

from conversations import NESTED
from dragoman.events import Failure, Finish, TextDelta, ToolCallEnd
from dragoman.protocols import PROTOCOLS
from reliability.caller import Answer, ask, spoken
from reliability.process import BASE, Gateway, providers
from reliability.provider import Asked, Provider, Step, chunk, head
from reliability.r01_truncation import wire
from reliability.row import Result, Scale, milliseconds, percentile

SHAPE = "text-call"
#: A reply whose events come this far apart, so that each point has words of the answer before it.
_PAUSE = 0.005


class Death(NamedTuple):
    client: str
    provider: str
    answer: Answer
    asked: Asked | None


def dying(protocol: str, chance: random.Random) -> list[Step]:
    """A stream that is reset at a random place after its first text."""
    data = wire(protocol, SHAPE)
    first = data.index(b"Let me look.") + len(b"Let me look.")
    first = re.compile(rb"\n\n|\n").search(data, first).end()  # type: ignore[union-attr]
    place = chance.randrange(first, len(data) - 1)
    pieces = [data[:first], data[first:place]]
    said = (step for piece in pieces if piece for step in (chunk(piece), _PAUSE))
    return [head(200, PROTOCOLS[protocol].stream_type), *said, "reset"]


def measure(scale: Scale) -> Iterator[Result]:
    """Each pair of client and provider, each with a second target behind the first on a route."""
    yield from asyncio.run(_measure(scale))


async def _measure(scale: Scale) -> list[Result]:
    count = scale.pick(20, 4)
    deaths: list[Death] = []
    with Provider() as provider, Provider() as second:
        # A first target of its own for each death: a circuit breaker would soon pass over one that keeps dying.
        routes = "".join(
            f'[routes."{client}-{name}-{number}"]\ntargets = ["{name}/{client}-{number}", "{name}-second/model-2"]\n'
            for client in PROTOCOLS
            for name in BASE
            for number in range(count)
        )
        config = "\n".join([providers(provider.url), providers(second.url, suffix="-second"), routes])
        with Gateway(config) as gateway:
            for client in PROTOCOLS:
                for name in PROTOCOLS:
                    chance = random.Random(f"{client} {name}")
                    for number in range(count):
                        script = provider.script(dying(name, chance))
                        path, body = spoken(client, f"{client}-{name}-{number}", text=f"{script}, the weather please")
                        answer = await ask(gateway.port, path, body)
                        deaths.append(Death(client, name, answer, provider.of(script)))
            spliced = sum(asked.head.startswith(b"POST") for asked in second.asked)
    return judged(deaths, spliced)


def judged(deaths: list[Death], spliced: int) -> list[Result]:
    late, invented, unsaid = [], [], []
    for death in deaths:
        asked, answer = death.asked, death.answer
        assert asked is not None and asked.broke is not None and answer.ended_at is not None, death
        late.append(answer.ended_at - asked.broke)
        decoder = PROTOCOLS[death.client].decoder(new_id=lambda: "id")
        events = decoder.feed(answer.body)  # without `close`: what a reader makes of a missing end is no word of ours
        where = f"{death.client} ← {death.provider}"
        if any(is_invented(event) for event in events):
            invented.append(where)
        if not events or type(events[-1]) is not Failure:
            unsaid.append(f"{where}: {events[-1:]!r:.200}")
        if not any(type(event) is TextDelta for event in events):
            unsaid.append(f"{where}: the first words are missing")
    for line in dict.fromkeys(unsaid):
        print("   ", line)
    slow = percentile(late, 1.0)
    total = len(deaths)
    return [
        Result("R3", "a typed error in the client's form in 100 %", f"{total - len(unsaid)} of {total}", not unsaid),
        Result(
            "R3",
            "≤ 100 ms after the death, in 100 %",
            f"p50 {milliseconds(percentile(late, 0.5))}, p99 {milliseconds(percentile(late, 0.99))}, "
            f"most {milliseconds(slow)} of {total}",
            slow <= 0.1,
        ),
        Result("R3", "0 invented ends", f"{len(invented)} of {total}", not invented),
        Result("R3", "0 requests to a second model", f"{spliced} of {total}", not spliced),
    ]


def is_invented(event: object) -> bool:
    """An end of the answer, or a call that is not all that the provider had said."""
    if type(event) is ToolCallEnd:
        return event.call.values() != json.loads(NESTED)
    return type(event) is Finish
