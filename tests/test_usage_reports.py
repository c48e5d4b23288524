"""What a provider says that an answer used: reports are of all so far, and what cannot be true is not known.

Generated reports of the five protocols; the reference asks only which figures were told, in their order.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wires
from dragoman.decoding import decode
from dragoman.money import MOST_TOKENS
from dragoman.types import TOKEN_KINDS, Usage
from for_each import for_each
from wires import Frame

Report = tuple[int | None, int | None]
TEXT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}


def counts(report: Report, *names: str) -> dict[str, int]:
    return {name: count for name, count in zip(names, report, strict=True) if count is not None}


def chat(reports: list[Report]) -> bytes:
    told = [counts(report, "prompt_tokens", "completion_tokens") for report in reports]
    chunks = [wires.chat_chunk({"content": "x"}), wires.chat_chunk({}, "stop")]
    return wires.body_of("openai-chat", [*chunks, *({"choices": [], "usage": usage} for usage in told)])


def responses(reports: list[Report]) -> bytes:
    told = [counts(report, "input_tokens", "output_tokens") for report in reports]
    kinds = ["created", *["in_progress"] * len(told[1:-1])]
    frames = [
        {"type": f"response.{kind}", "response": {"id": "r", "output": [], "usage": usage}}
        for kind, usage in zip(kinds, told, strict=False)
    ]
    end = {"type": "response.completed", "response": wires.responses_answer(TEXT, usage=told[-1])}
    return wires.body_of("openai-responses", [*frames, end])


def messages(reports: list[Report]) -> bytes:
    told = [counts(report, "input_tokens", "output_tokens") for report in reports]
    start, *frames, _, end = wires.messages_stream(*wires.block_of({"type": "text", "text": "x"}))
    start["message"]["usage"] = told[0]
    frames += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage} for usage in told[1:]]
    return wires.body_of("anthropic-messages", [start, *frames, end])


def gemini(reports: list[Report]) -> bytes:
    told = [counts(report, "promptTokenCount", "candidatesTokenCount") for report in reports]
    return wires.body_of("gemini-generate", gemini_rows(told))


def gemini_rows(told: list[dict[str, int]]) -> list[Frame]:
    rows = [{**wires.gemini_chunk({"text": "x"}), "usageMetadata": usage} for usage in told]
    rows[-1]["candidates"][0]["finishReason"] = "STOP"
    return rows


def ollama(reports: list[Report]) -> bytes:
    told = [counts(report, "prompt_eval_count", "eval_count") for report in reports]
    reasons = [*[""] * (len(told) - 1), "stop"]
    lines = [wires.ollama_line(content="x", reason=reason) for reason in reasons]
    return wires.body_of("ollama-chat", [line | usage for line, usage in zip(lines, told, strict=True)])


WAYS: dict[str, Callable[[list[Report]], bytes]] = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic-messages": messages,
    "gemini-generate": gemini,
    "ollama-chat": ollama,
}
FIGURE = (
    st.none()
    | st.sampled_from([-30, 0, 1, 34, 120, MOST_TOKENS - 1, MOST_TOKENS, 2**53, 2**62])
    | st.integers(-(2**62), 2**62)
)


def meant(figures: list[int | None]) -> list[int]:
    """Those that can be meant."""
    return [figure for figure in figures if figure is not None and 0 <= figure < MOST_TOKENS]


@pytest.mark.parametrize("protocol", WAYS)
@given(st.lists(st.tuples(FIGURE, FIGURE), min_size=2, max_size=4))
def test_a_report_takes_nothing_back_and_what_cannot_be_meant_is_unknown(protocol: str, reports: list[Report]) -> None:
    usage = decode(WAYS[protocol](reports), protocol).usage
    inputs, outputs = (meant([report[place] for report in reports]) for place in (0, 1))
    assert usage.input == next((figure for figure in reversed(inputs) if figure), inputs[0] if inputs else None)
    assert usage.output == max(outputs, default=None)


@given(st.lists(st.tuples(FIGURE, FIGURE), min_size=1, max_size=4))
def test_geminis_thoughts_are_never_subtracted_and_stand_where_they_are_left_out(told: list[Report]) -> None:
    names = ("candidatesTokenCount", "thoughtsTokenCount")
    rows = [counts(report, *names) for report in told]
    usage = decode(wires.body_of("gemini-generate", gemini_rows(rows)), "gemini-generate").usage
    answers, thoughts = (meant([report[place] for report in told]) for place in (0, 1))
    whole = max(answers, default=0) + max(thoughts, default=0)
    if whole < MOST_TOKENS:
        assert usage.output == (whole if answers or thoughts else None)
        assert usage.reasoning == max(thoughts, default=None)
    assert usage.output is None or usage.output >= 0


USAGE = st.builds(Usage, *[st.none() | st.integers(0, MOST_TOKENS - 1)] * 5)


@given(USAGE, USAGE)
def test_what_is_merged_is_told_by_one_of_both_and_output_grows(one: Usage, other: Usage) -> None:
    merged = one.merged(other)
    for name in TOKEN_KINDS:
        first, second, found = (getattr(usage, name) for usage in (one, other, merged))
        assert found in (first, second)
        assert (found is None) == (first is None and second is None)
        assert bool(found) == bool(first or second)
        if name in ("output", "reasoning") and found is not None:
            assert found == max(first or 0, second or 0)


#: A whole answer of each protocol, `@` in its usage.
ANSWERS = {
    "openai-chat": {
        "id": "x", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "cost": "@"},
    },
    "openai-responses": {
        "id": "r", "object": "response", "model": "m", "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}],
        "usage": {"input_tokens": 5, "output_tokens": 2, "cost": "@"},
    },
    "anthropic-messages": {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn", "usage": {"input_tokens": 5, "output_tokens": 2, "cost": "@"},
    },
    "gemini-generate": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "cost": "@"},
    },
    "ollama-chat": {
        "model": "m", "created_at": "2026-11-23T00:00:00Z", "message": {"role": "assistant", "content": "hi"},
        "done": True, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 2, "total_duration": "@",
    },
}  # fmt: skip


@for_each("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "-1", "0.10", "1" * 400])
@for_each("protocol", ANSWERS)
def test_a_number_that_is_none_costs_nothing_beside_it(protocol: str, number: str):
    body = json.dumps(ANSWERS[protocol]).replace('"@"', number).encode()
    reply = decode(body, protocol=protocol)
    assert (reply.text, reply.usage.input, reply.usage.output, reply.error) == ("hi", 5, 2, None)
