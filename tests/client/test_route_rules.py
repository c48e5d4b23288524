"""Which targets of a route are asked, in which order, how often, and what is said of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dragoman
from chains import Bench, ask, busy, stream_of
from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.events import Deviation, Failure, Finish
from dragoman.proofs import ProbeResult, Proof, ProofStore
from dragoman.protocol import ModelLimits
from dragoman.routing.resolve import resolve_chain
from dragoman.routing.target import Chain
from scripted import Step, streamed

LONE = "plain-openai-chat/m"
OTHER = "good-openai-chat/model-1"
BOTH = f'[routes.r]\ntargets = ["{LONE}", "{OTHER}"]'

# ---------------------------------------------------------------- once more


def test_a_target_that_asks_for_patience_is_asked_again(bench: Bench) -> None:
    bench.answer("plain", busy("retry-after-ms: 30"), busy("retry-after: 0"), stream_of("openai-chat"))
    events, attempts = ask(bench.config(""), LONE)
    assert isinstance(events[-1], Finish)
    assert [one.outcome for one in attempts] == ["failed", "failed", "answered"]
    assert len(bench.plain.requests) == 3


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (busy("retry-after: 61"), "rate"),
        (busy("retry-after: 0", "x-should-retry: false"), "rate"),
        (busy("retry-after: Sun, 22 Nov 2026 03:00:00 GMT", "date: Sun, 22 Nov 2026 02:00:00 GMT"), "rate"),
        (busy("retry-after: Fri, 31 Dec 2066 23:59:59 GMT"), "rate"),
        (busy(words="You have reached your spending limit"), "quota"),
        (busy(status=400, words="no such option"), "bad_request"),
        (busy("retry-after: 0", status=402, words="pay"), "quota"),
        (busy("retry-after: 0", status=401, words="no"), "auth"),
        (busy("retry-after: 0", status=503, words="prompt is too long: 9000 tokens > 8192 maximum"), "context"),
    ],
    ids=["61", "should-not", "date", "date-alone", "money", "400", "402", "401", "overflow"],
)
def test_what_is_not_tried_again_is_told_at_once(answer: list[Step], kind: str, bench: Bench) -> None:
    bench.answer("plain", answer)
    events, attempts = ask(bench.config(""), LONE)
    assert isinstance(events[-1], Failure) and events[-1].kind == kind
    assert (len(bench.plain.requests), len(attempts)) == (1, 1)


def test_tries_end_with_the_third_and_with_the_word_of_the_configuration(bench: Bench) -> None:
    def requests(config: Config, name: str, **options: Any) -> int:
        bench.answer("plain", busy("retry-after-ms: 5"))
        ask(config, name, **options)
        return len(bench.plain.requests)

    assert requests(bench.config(""), LONE) == 3
    assert requests(bench.config(f'[routes.r]\ntargets = ["{LONE}"]\nretries = 1'), "r") == 2
    assert requests(bench.config("", http="retries = 0"), LONE) == 1
    assert requests(bench.config(""), LONE, retries=0) == 1
    with pytest.raises(ConfigError, match=r"routes\.r\.retries: expected"):
        bench.config(f'[routes.r]\ntargets = ["{LONE}"]\nretries = 3')


@pytest.mark.parametrize("leave", ["cancel", "close"])
def test_leaving_while_the_next_try_is_waited_for(leave: str, bench: Bench) -> None:
    bench.answer("plain", busy("retry-after: 50"))
    config = bench.config("")

    async def run() -> None:
        async with dragoman.AsyncClient(config) as client, client.stream(LONE, "Hi") as stream:
            reading = asyncio.create_task(stream.next_batch())
            while not stream.attempts:
                await asyncio.sleep(0.005)
            if leave == "cancel":
                reading.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await reading
            else:
                await stream.close()
                [failure] = await reading
                assert isinstance(failure, Failure) and failure.kind == "rate"

    asyncio.run(asyncio.wait_for(run(), 10))
    assert len(bench.plain.requests) == 1


# ---------------------------------------------------------------- circuit breaker


def outcomes(config: Config, times: int) -> list[tuple[str, ...]]:
    """What comes of a route's targets, request after request of one client."""

    async def run() -> list[tuple[str, ...]]:
        found = []
        async with dragoman.AsyncClient(config) as client:
            for _ in range(times):
                async with client.stream("r", "Hi") as stream:
                    while await stream.next_batch():
                        pass
                found.append(tuple(one.outcome for one in stream.attempts))
        return found

    return asyncio.run(run())


def test_a_target_that_fails_again_and_again_is_passed_over(bench: Bench) -> None:
    bench.answer("plain", busy(status=500))
    bench.answer("good", stream_of("openai-chat"))
    assert outcomes(bench.config(BOTH), 7) == [("failed", "answered")] * 5 + [("skipped", "answered")] * 2


def test_answers_that_break_in_the_middle_count_too(bench: Bench) -> None:
    bench.answer("plain", [*stream_of("openai-chat")[:-2], "close"])
    bench.answer("good", stream_of("openai-chat"))
    assert outcomes(bench.config(BOTH), 6) == [("broken",)] * 5 + [("skipped", "answered")]


def test_a_target_that_asks_for_a_pause_is_passed_over_meanwhile(bench: Bench) -> None:
    bench.answer("plain", busy("retry-after: 30"))
    bench.answer("good", stream_of("openai-chat"))
    assert outcomes(bench.config(BOTH), 2) == [("failed", "answered"), ("skipped", "answered")]


def test_wrong_requests_open_nothing(bench: Bench) -> None:
    bench.answer("plain", busy(status=400))
    assert outcomes(bench.config(BOTH), 8) == [("failed",)] * 8


# ---------------------------------------------------------------- which targets, in which order


def prove(config: Config, target: str, **more: Any) -> None:
    """Put a good proof of a target into the configuration's store."""
    provider = config.catalog.provider(target.partition("/")[0])
    probes = {name: ProbeResult("passed", "") for name in ("toolCall", "result-round-trip")}
    fields: dict[str, Any] = {"suite": "quick", "suite_version": 1, "dragoman": "0", "probes": probes}
    fields |= {"target": target, "protocol": provider.protocol, "endpoint": provider.base_url, "at": int(time.time())}
    assert ProofStore(config.validate.store, clock=time.time).put(Proof(**(fields | more)))


@pytest.fixture
def route(bench: Bench, tmp_path: Path) -> Callable[[str], Config]:
    """Makes a configuration of a route with two healthy targets, and an empty store."""

    def make(more: str) -> Config:
        bench.answer("plain", stream_of("openai-chat", "text"))
        bench.answer("good", stream_of("openai-chat"))
        return bench.config(f'{BOTH}\n{more}\n[validate]\nstore = "{tmp_path}/proofs.db"')

    return make


def test_only_what_is_proven_is_asked(route: Callable[[str], Config]) -> None:
    config = route("only_validated = true")
    prove(config, OTHER)
    events, attempts = ask(config, "r")
    assert isinstance(events[-1], Finish)
    assert [(one.target, one.outcome, one.reason) for one in attempts] == [
        (LONE, "skipped", "not validated"),
        (OTHER, "answered", ""),
    ]


def test_a_route_without_any_proof_says_so(route: Callable[[str], Config]) -> None:
    said = f"route r: none of its targets is validated; say: dragoman validate {LONE} {OTHER}"
    with pytest.raises(ConfigError, match=said):
        ask(route("only_validated = true"), "r")
    events, attempts = ask(route("only_validated = true\nallow_one_unvalidated = true"), "r")
    assert isinstance(events[-1], Finish)
    [deviation] = [event for event in events if isinstance(event, Deviation) and event.code == "unvalidated"]
    assert deviation.where == "routes.r"
    assert [one.target for one in attempts] == [LONE]


@pytest.mark.parametrize(("order", "first"), [("declared", LONE), ("proof", OTHER), ("speed", OTHER), ("price", OTHER)])
def test_the_order_of_a_route(order: str, first: str, route: Callable[[str], Config]) -> None:
    prices = "".join(
        f'\n[prices."{target}"]\ninput = {dollars}\noutput = {dollars}' for target, dollars in ((LONE, 3), (OTHER, 1))
    )
    config = route(f'order = "{order}"{prices}')
    prove(config, OTHER, first_event=0.1, tokens_per_second=90.0)
    _, attempts = ask(config, "r")
    assert [one.target for one in attempts] == [first]


def test_the_way_of_asking_for_tools_is_the_proven_one(route: Callable[[str], Config], bench: Bench) -> None:
    config = route('tools = "auto"')
    prove(config, LONE, ways=("prompted",))

    def ping() -> str:
        """Nothing."""
        return ""

    with dragoman.Client(config) as client:
        client.reply("r", "Hi", tools=[ping])
    assert "tools" not in bench.plain.requests[0].json


def test_a_target_is_clean_while_nothing_speaks_against_it(route: Callable[[str], Config], bench: Bench) -> None:
    config = route("")
    prove(config, LONE)
    pieces = [step.split(b"\r\n", 1)[1][:-2] for step in stream_of("openai-chat")[1:-1] if isinstance(step, bytes)]
    bench.answer("plain", streamed(b"\xef\xbb\xbf", *pieces))

    async def run() -> list[bool]:
        async with dragoman.AsyncClient(config) as client:
            targets = resolve_chain("r", config).targets
            found = [client.target_states.is_clean(target) for target in targets]
            await client.reply("r", "Hi")
            return [*found, client.target_states.is_clean(targets[0])]

    assert asyncio.run(run()) == [True, False, False]


def test_a_longer_prompt_goes_only_to_a_model_with_more_room(bench: Bench) -> None:
    bench.answer("plain", busy(status=400, words="prompt is too long: 9000 tokens > 8192 maximum"))
    bench.answer("good", stream_of("openai-chat"))
    config = bench.config(BOTH)
    chain = resolve_chain("r", config)
    small, large = (msgspec.structs.replace(chain.targets[1], limits=ModelLimits(size)) for size in (8_500, 128_000))

    def run(chain: Chain) -> list[str]:
        async def ask() -> list[str]:
            async with dragoman.AsyncClient(config) as client:
                async with client.requester.open(chain, dragoman.Request("r", (), stream=True)) as stream:
                    while await stream.next_batch():
                        pass
                return [one.outcome for one in stream.attempts]

        return asyncio.run(ask())

    assert run(chain) == ["failed"], "of the other nothing is known"
    assert run(msgspec.structs.replace(chain, targets=(chain.targets[0], small))) == ["failed"]
    assert run(msgspec.structs.replace(chain, targets=(chain.targets[0], large))) == ["failed", "answered"]
    third = msgspec.structs.replace(large, model="model-3")
    passed_over = msgspec.structs.replace(chain, targets=(chain.targets[0], small, third))
    assert run(passed_over) == ["failed", "skipped", "answered"]


def test_a_target_whose_key_is_missing_is_passed_over(bench: Bench) -> None:
    keyed = '[providers.keyed]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9"\napi_key = "env:NOT_SET"'
    bench.answer("good", stream_of("openai-chat"))
    events, attempts = ask(bench.config(f'{keyed}\n[routes.r]\ntargets = ["keyed/m", "{OTHER}"]'), "r")
    assert isinstance(events[-1], Finish)
    assert [one.outcome for one in attempts] == ["skipped", "answered"]
    assert "NOT_SET is not set" in attempts[0].reason
    with pytest.raises(ConfigError, match="NOT_SET is not set"):
        ask(bench.config(f'{keyed}\n[routes.r]\ntargets = ["keyed/m"]'), "r")


def test_every_other_name_is_the_route_of_every_other_name(bench: Bench) -> None:
    bench.answer("good", stream_of("openai-chat"))
    _, attempts = ask(bench.config(f'[routes."*"]\ntargets = ["{OTHER}"]'), "anything")
    assert [one.target for one in attempts] == [OTHER]


def test_each_decision_is_one_line_of_the_log(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.answer("good", stream_of("openai-chat"))
    config = bench.config(f'[routes.r]\ntargets = ["closed-openai-chat/m", "{OTHER}"]')
    with caplog.at_level("INFO", "dragoman.routing"):
        ask(config, "r")
    assert [record.getMessage() for record in caplog.records] == [
        f"r: closed-openai-chat/m: connection; trying {OTHER} next (connection before the answer)"
    ]
