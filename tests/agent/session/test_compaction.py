"""Long conversations: told in short in time, sound, without losing the task or a fact of the first turn."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.faces import Bench, check_sound
from agent.playing import call, script
from dragoman.agent.limits import Limits
from dragoman.agent.session.compaction import INSTRUCTION, next_fold, sent_messages
from dragoman.agent.session.records import Folded
from dragoman.token_estimate import estimate_tokens
from dragoman.types import Message, Part, Request, Text, ToolCall, ToolResult

FACT = "the launch code is 4711-zebra"


class Forgetful:
    """A model that reads file after file, sums up without any fact, and knows only what stands in its prompt."""

    def __init__(self, steps: int, *, summary: str = "They talked and files were read.") -> None:
        self.steps = steps
        self.summary = summary
        self.numbers = itertools.count(1)
        self.prompts: list[int] = []
        self.summaries = 0

    def __call__(self, request: Request) -> list[Part]:
        text = "\n".join(part.text for message in request.messages for part in message.parts if isinstance(part, Text))
        if INSTRUCTION[:40] in text:
            self.summaries += 1
            return [Text(self.summary)] if self.summary else []
        self.prompts.append(estimate_tokens(request))
        _check_pairs(request.messages)
        if "launch code?" in request.messages[-1].text:
            return [Text("It is 4711-zebra." if FACT in text else "I do not know.")]
        self.steps -= 1
        if self.steps < 0:
            return [Text("read them all")]
        number = next(self.numbers)
        return [ToolCall(f"call_{number:04}", "read", f'{{"path": "big", "first": {number}}}')]


def _check_pairs(messages: tuple[Message, ...]) -> None:
    open_calls: list[str] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                open_calls.append(part.id)
            if isinstance(part, ToolResult):
                assert part.call_id in open_calls, "a result without its call"
                open_calls.remove(part.call_id)
    assert open_calls == [], "a call without its result"


def long_bench(tmp_path: Path, brain: Forgetful, *, window: int = 8_000) -> Bench:
    bench = Bench(tmp_path, brain, window=window, limits=Limits(steps=500))
    (bench.place / "big").write_text("".join(f"line {number} of the big file\n" for number in range(400)))
    return bench


def test_a_fact_of_the_first_turn_is_answered_after_it(tmp_path: Path) -> None:
    brain = Forgetful(12)
    bench = long_bench(tmp_path, brain)
    assert asyncio.run(bench.agent.run(f"Remember: {FACT}. Then read the big file in pieces.")) == "answered"
    assert len(bench.face.shortened) >= 2
    assert max(brain.prompts) <= 8_000
    assert asyncio.run(bench.agent.run("What was the launch code?")) == "answered"
    assert bench.session.messages[-1].text == "It is 4711-zebra."
    check_sound(bench.session)


def test_a_fact_of_a_later_prompt_is_answered_after_it(tmp_path: Path) -> None:
    brain = Forgetful(0)
    bench = long_bench(tmp_path, brain)
    asyncio.run(bench.agent.run("Hello"))
    asyncio.run(bench.agent.run(f"Remember: {FACT}."))
    brain.steps = 12
    asyncio.run(bench.agent.run("Now read the big file."))
    assert bench.face.shortened
    asyncio.run(bench.agent.run("What was the launch code?"))
    assert bench.session.messages[-1].text == "It is 4711-zebra."


def test_what_left_is_shown_and_can_be_taken_back(tmp_path: Path) -> None:
    bench = long_bench(tmp_path, Forgetful(12, summary="The summary of the model."))
    asyncio.run(bench.agent.run("go"))
    shown = bench.face.shortened[0]
    assert shown.messages > 2 and shown.after < shown.before
    assert shown.summary == "The summary of the model." and shown.by_model
    before = bench.agent.prompt_tokens()
    while bench.session.unfold():
        pass
    assert bench.agent.prompt_tokens() > before
    assert list(bench.agent.request().messages[1:]) == bench.session.messages


def test_without_a_summary_of_the_model_it_is_told_plainly(tmp_path: Path) -> None:
    bench = long_bench(tmp_path, Forgetful(12, summary=""))
    assert asyncio.run(bench.agent.run(f"{FACT}. go")) == "answered"
    assert bench.face.shortened and not bench.face.shortened[0].by_model
    assert "assistant calls read" in bench.face.shortened[0].summary


def test_a_model_that_says_its_prompt_is_too_long_gets_a_shorter_one(tmp_path: Path) -> None:
    too_long = (
        b'data: {"error": {"message": "This model\'s maximum context length is 4096 tokens. However, your messages '
        b'resulted in 9000 tokens.", "type": "invalid_request_error", "code": "context_length_exceeded"}}\n\n'
    )
    reads: list[object] = [[call("read", path="big", first=number)] for number in range(1, 8)]
    bench = Bench(tmp_path, script(*reads, too_long, "a summary", "fine"))  # type: ignore[arg-type]
    (bench.place / "big").write_text("".join(f"line {number} of the big file\n" for number in range(400)))
    assert asyncio.run(bench.agent.run("go")) == "answered"
    assert len(bench.face.shortened) == 1
    check_sound(bench.session)


def test_one_result_never_takes_the_whole_window(tmp_path: Path) -> None:
    bench = long_bench(tmp_path, Forgetful(1), window=2_000)
    asyncio.run(bench.agent.run("go"))
    [(_, text, _)] = bench.results()
    assert len(text) < 2_500 and "characters left out" in text


@given(
    turns=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 400), st.booleans()), min_size=1, max_size=25),
    window=st.integers(200, 4_000),
)
def test_no_folding_ever_tears_a_call_from_its_result(turns: list[tuple[int, int, bool]], window: int) -> None:
    messages = [Message("user", (Text("the task"),))]
    for place, (calls, size, asks) in enumerate(turns):
        made = tuple(ToolCall(f"c{place}.{number}", "read", "{}") for number in range(calls))
        messages.append(Message("assistant", (Text("w" * size), *made)))
        if made:
            messages.append(Message("tool", tuple(ToolResult(each.id, "read", (Text("r" * size),)) for each in made)))
        if asks:
            messages.append(Message("user", (Text(f"question {place}"),)))
    foldings: list[Folded] = []
    for _ in range(4):
        fold = next_fold(messages, foldings, window=window)
        if fold is None:
            break
        assert fold.kept > (foldings[-1].kept if foldings else 1)
        foldings.append(Folded(fold.first, fold.kept, "summary"))
        sent = sent_messages(messages, foldings, window=window)
        _check_pairs(tuple(sent))
        assert sent[0].role == "user" and sent[0].text.startswith("the task")
        assert sent[-1] is messages[-1]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_short_conversation_has_nothing_to_leave_out(count: int) -> None:
    assert next_fold([Message("user", (Text("x"),))] * count, [], window=10) is None
