"""Each call is run at most once, whatever ids, repetitions and endings a server's streams have."""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from agent.faces import Bench, Watching, check_sound
from agent.playing import Brain, call, script
from dragoman.agent.interface import Verdict
from dragoman.agent.tool_plan import Outcome, Plan
from dragoman.agent.tools.toolbox import Planner, other_plan
from dragoman.types import Request, Tool, ToolCall

HISTORIES = 200
#: A folder in memory where there is one: the disk's waiting is no part of this.
SHARED = Path("/dev/shm")


def chunk(delta: dict, finish: str | None = None) -> bytes:
    value = {"id": "chatcmpl-1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def block(place: int, id: str, number: int) -> bytes:
    arguments = json.dumps({"number": number})
    function = {"name": "bump", "arguments": arguments}
    return chunk({"tool_calls": [{"index": place, "id": id, "type": "function", "function": function}]})


class Server:
    """A model server with bad habits: it repeats ids, blocks, endings and whole answers."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ids: list[tuple[str, int]] = []
        self.number = 0
        self.steps = self.random.randint(1, 4)
        self.last = b""

    def __call__(self, request: Request) -> bytes:
        self.steps -= 1
        if self.steps < 0:
            return chunk({"content": "done"}) + chunk({}, "stop") + b"data: [DONE]\n\n"
        if self.last and self.random.random() < 0.2:
            return self.last  # a retry behind a proxy: the very same answer again
        blocks, place = [], 0
        for _ in range(self.random.randint(1, 3)):
            id, number = self._call()
            blocks.append(block(place, id, number))
            if self.random.random() < 0.25:
                blocks.append(block(place + self.random.randint(0, 1), id, number))  # the block again
                place += 1
            if self.random.random() < 0.2:
                blocks.append(chunk({"tool_calls": []}))  # a usage frame with an empty list
            place += 1
        end = chunk({}, "tool_calls")
        ends = end * self.random.choice([1, 1, 1, 2]) + b"data: [DONE]\n\n" * self.random.choice([1, 1, 2])
        body = b"".join(blocks) + ends
        if self.random.random() < 0.1:
            body = body[: self.random.randrange(len(body))]  # cut
        self.last = body
        return body

    def _call(self) -> tuple[str, int]:
        habit = self.random.random()
        if self.ids and habit < 0.25:
            return self.random.choice(self.ids)  # an old call under its old id
        if self.ids and habit < 0.4:
            self.number += 1
            return self.random.choice(self.ids)[0], self.number  # an old id for a new call
        self.number += 1
        made = ("", self.number) if habit > 0.9 else (f"call_{self.random.randint(0, 5)}", self.number)
        self.ids.append(made)
        return made


def counting_tool(runs: Counter[tuple[str, str]], ids: Counter[str]) -> Planner:
    def plan(asked: ToolCall) -> Plan:
        async def do() -> Outcome:
            runs[asked.id, asked.arguments] += 1
            ids[asked.id] += 1
            return Outcome("bumped")

        return other_plan(asked, "bump", do)

    schema = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    from dragoman import _json

    return Planner(Tool("bump", "count", _json.raw(schema)), plan)


def play(seed: int, place: Path) -> Counter[str]:
    """One history; gives how often each (run, id) was run."""
    server = Server(seed)
    runs: Counter[tuple[str, str]] = Counter()
    ids: Counter[str] = Counter()
    bench = Bench(place, server, counting_tool(runs, ids), rules=["bump"], face=Watching(lambda plan: Verdict("no")))
    try:
        asyncio.run(bench.agent.run("go"))
        if server.random.random() < 0.3:
            server.steps = 1
            asyncio.run(bench.agent.run("more"))
        check_sound(bench.session)
        # The same call under the same id: once without a word, then only by the user's yes, which is a no here.
        numbers = Counter(arguments for (_, arguments) in runs.elements())
        assert max(numbers.values(), default=0) <= 1 + (bench.session.run - 1) + _odd_ids(server), numbers
    finally:
        bench.close()
    return ids


def _odd_ids(server: Server) -> int:
    """Calls without an id cannot be told from new ones."""
    return 10 if any(not id for id, _ in server.ids) else 0


def histories(count: int, first: int = 0) -> int:
    executions = 0
    with tempfile.TemporaryDirectory(dir=SHARED if SHARED.is_dir() else None) as store:
        for seed in range(first, first + count):
            place = Path(store) / str(seed)
            place.mkdir()
            ids = play(seed, place)
            assert max(ids.values(), default=0) <= 1, f"seed {seed}: {ids}"
            executions += ids.total()
    return executions


def test_no_call_is_run_twice() -> None:
    assert histories(HISTORIES) > HISTORIES


@pytest.mark.soak
def test_no_call_is_run_twice_in_ten_thousand_histories() -> None:
    executions = histories(10_000)
    print(f"10,000 histories, {executions:,} executions, at most one for each (run, id)")


def run_twice(tmp_path: Path, brain: Brain, answer: str, *, face: Watching | None = None) -> tuple[Bench, Counter]:
    runs: Counter[tuple[str, str]] = Counter()
    ids: Counter[str] = Counter()
    face = face or Watching(lambda plan: Verdict(answer))  # type: ignore[arg-type]
    bench = Bench(tmp_path, brain, counting_tool(runs, ids), rules=["bump"], face=face)
    asyncio.run(bench.agent.run("go"))
    check_sound(bench.session)
    return bench, ids


def test_the_same_call_under_the_same_id_again_is_asked_although_a_rule_allows_it(tmp_path: Path) -> None:
    again = call("bump", "call_0", number=1)
    bench, ids = run_twice(tmp_path, script([again], [again], "done"), "once")
    assert len(bench.face.asked) == 1
    assert ids.total() == 2 and max(ids.values()) == 1


def test_another_call_under_an_old_id_is_run_under_a_new_one(tmp_path: Path) -> None:
    first, second = call("bump", "call_0", number=1), call("bump", "call_0", number=2)
    bench, ids = run_twice(tmp_path, script([first], [second], "done"), "no")
    assert bench.face.asked == []
    assert ids.total() == 2 and max(ids.values()) == 1
