"""Runaways: every loop that a model may fall into ends, one step late at most, with a reason for programs."""

from __future__ import annotations

import asyncio
import itertools
import time
from decimal import Decimal
from pathlib import Path

from agent.faces import LAB, Bench, Watching, check_sound
from agent.playing import call, script
from dragoman.agent.limits import Limits, Meter
from dragoman.agent.tool_plan import Outcome, Plan
from dragoman.agent.tools.toolbox import Planner, other_plan
from dragoman.events import Failure, Finish, TextDelta, TextStart, fold
from dragoman.types import Part, Request, Text, Tool, ToolCall, Usage

PRICE = '[prices."lab/m"]\ninput = 1000\noutput = 1000\n'


def run(bench: Bench) -> str:
    try:
        reason = asyncio.run(bench.agent.run("go"))
        check_sound(bench.session)
        return reason
    finally:
        bench.close()


def test_the_defaults_are_those_that_are_promised() -> None:
    limits = Limits()
    assert (limits.steps, limits.minutes, limits.usd, limits.tokens) == (50, 30.0, Decimal(5), 2_000_000)


def test_the_same_call_three_times_stops_and_asks(tmp_path: Path) -> None:
    bench = Bench(tmp_path, script(call("list")))
    assert run(bench) == "repeated_call"
    assert bench.face.reasons == ["repeated_call"]
    assert len(bench.client.requests) == 3


def test_two_calls_in_turn_are_seen(tmp_path: Path) -> None:
    turns = itertools.cycle([call("list"), call("search", pattern="x")])
    bench = Bench(tmp_path, lambda request: [_numbered(next(turns), request)])
    assert run(bench) == "repeated_call"
    assert len(bench.client.requests) <= 6


def test_two_edits_that_undo_each_other_are_seen(tmp_path: Path) -> None:
    turns = itertools.cycle([call("edit", path="a", old="1", new="2"), call("edit", path="a", old="2", new="1")])
    bench = Bench(tmp_path, lambda request: [_numbered(next(turns), request)])
    (bench.place / "a").write_text("1")
    assert run(bench) == "repeated_call"
    assert len(bench.client.requests) <= 6


def test_the_same_error_three_times_stops_although_the_calls_differ(tmp_path: Path) -> None:
    numbers = itertools.count()
    bench = Bench(tmp_path, lambda request: [_numbered(call("nothing", n=next(numbers)), request)])
    assert run(bench) == "repeated_error"
    assert len(bench.client.requests) == 3


def test_a_read_that_always_fails_stops(tmp_path: Path) -> None:
    bench = Bench(tmp_path, script(call("read", path="gone.txt")))
    assert run(bench) in ("repeated_call", "repeated_error")
    assert len(bench.client.requests) == 3


def test_the_same_check_after_each_change_is_no_circle(tmp_path: Path) -> None:
    answers: list[list[Part]] = []
    for number in range(5):
        answers.append([call("edit", path="a", old=f"<{number}>", new=f"<{number + 1}>")])
        answers.append([call("run", argv=["cat", "a"])])
    bench = Bench(tmp_path, script(*answers, "done"))
    (bench.place / "a").write_text("<0>")
    assert run(bench) == "answered"


def test_new_calls_without_end_stop_at_the_limit_of_steps(tmp_path: Path) -> None:
    numbers = itertools.count()
    bench = Bench(tmp_path, lambda request: [_numbered(call("search", pattern=f"x{next(numbers)}"), request)])
    assert run(bench) == "steps"
    assert len(bench.client.requests) == 50


def test_who_says_go_on_gets_as_many_steps_again(tmp_path: Path) -> None:
    numbers = itertools.count()
    brain = lambda request: [_numbered(call("search", pattern=f"x{next(numbers)}"), request)]  # noqa: E731
    bench = Bench(tmp_path, brain, limits=Limits(steps=4), face=Watching(goes_on=2))
    assert run(bench) == "steps"
    assert bench.face.reasons == ["steps"] * 3
    assert len(bench.client.requests) == 12


def test_money_stops_it(tmp_path: Path) -> None:
    numbers = itertools.count()
    brain = lambda request: [Text("x" * 400), _numbered(call("search", pattern=f"x{next(numbers)}"), request)]  # noqa: E731
    bench = Bench(tmp_path, brain, tables=LAB + PRICE, limits=Limits(usd=Decimal("0.05")))
    bench.client.price_of = lambda target, usage: _cost("0.02")  # type: ignore[attr-defined]
    assert run(bench) == "usd"
    assert len(bench.client.requests) == 3


def test_tokens_stop_it_before_the_call_that_would_pass_the_limit(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "big").write_text("word word word\n" * 20_000)
    numbers = itertools.count(1)
    brain = lambda request: [_numbered(call("read", path="big", first=next(numbers)), request)]  # noqa: E731
    bench = Bench(tmp_path, brain, limits=Limits(tokens=3_000))
    assert run(bench) == "tokens"
    assert bench.agent.meter.input + bench.agent.meter.output <= 3_000


def test_time_stops_a_tool_that_never_ends(tmp_path: Path) -> None:
    def plan(asked: ToolCall) -> Plan:
        async def do() -> Outcome:
            await asyncio.sleep(3600)
            return Outcome("never")

        return other_plan(asked, "wait", do)

    tool, limits = Planner(Tool("wait"), plan), Limits(minutes=0.005)
    bench = Bench(tmp_path, script(call("wait")), tool, rules=["wait"], limits=limits, clock=time.monotonic)
    assert run(bench) == "minutes"
    assert "the time of this run was over" in bench.results()[0][1]


def test_a_fan_of_calls_in_one_answer_is_bounded(tmp_path: Path) -> None:
    started = []

    def plan(asked: ToolCall) -> Plan:
        async def do() -> Outcome:
            started.append(asked.id)
            return Outcome("ok")

        return other_plan(asked, "spawn", do)

    many: list[Part] = [call("spawn", f"call_{number}", n=number) for number in range(500)]
    bench = Bench(tmp_path, script(many, "done"), Planner(Tool("spawn"), plan))
    run(bench)
    assert len(started) == 32


def test_the_next_prompt_begins_with_fresh_limits(tmp_path: Path) -> None:
    bench = Bench(tmp_path, script(call("list"), call("search", pattern="x"), "fine"), limits=Limits(steps=2))
    assert asyncio.run(bench.agent.run("go")) == "steps"
    assert run(bench) == "answered"


def _numbered(part: ToolCall, request: Request) -> ToolCall:
    return ToolCall(f"call_{len(request.messages):03}", part.name, part.arguments)


def _cost(usd: str) -> object:
    from dragoman.types import Cost

    return Cost(Decimal(usd), "user")


def test_tokens_are_told_as_they_were_reported() -> None:
    failed = Failure("connection", "no connection")
    broke = [TextStart(0), TextDelta(0, "half an answer that broke"), failed]
    meter = Meter(Limits(), now=0)
    meter.count_reply(fold([failed]), estimate=700)
    assert (meter.tokens, meter.input) == ("", 700)  # nobody knows whether it was sent; the limit counts it
    meter.count_reply(fold([Finish("stop", usage=Usage(20, 5))]), estimate=700)
    assert meter.tokens == "20 in, 5 out"
    meter.count_reply(fold(broke), estimate=700)
    assert meter.tokens == "about 720 in, 11 out"
