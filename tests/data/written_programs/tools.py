"""Tools: a small shop with approval, a tool that fails, a step limit, and a stream of steps."""

from __future__ import annotations

import enum
from typing import Literal

import dragoman
from dragoman.testing import FakeModel, call


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


stock = {"tea": 3}


def order(item: str, amount: int, size: Size, speed: Literal["slow", "fast"] = "slow") -> dict[str, int]:
    """Order something.

    Args:
        item: what to order
        amount: how many pieces
        size: the size of each
        speed: how fast
    """
    if stock[item] < amount:
        raise ValueError(f"only {stock[item]} left")
    stock[item] -= amount
    return stock


def approve(call: dragoman.ToolCall) -> bool | str:
    return "Too many for today." if call.values().get("amount") == 99 else True


client = dragoman.Client()
with FakeModel(
    call("order", item="tea", amount=2, size="small"),
    call("order", item="tea", amount=99, size="large"),
    call("order", item="tea", amount=5, size="large", speed="fast"),
    "Two were ordered.",
) as fake:
    with client.run_stream("lab/any", "Order tea", tools=[order], approve=approve) as run:
        for event in run:
            if isinstance(event, dragoman.ToolStarted):
                print("start", event.call)
            elif isinstance(event, dragoman.ToolFinished):
                print("end", event.result.text, event.result.is_error, event.seconds >= 0)
    answer = run.answer
print(answer.text, answer.steps, answer.usage.input, len(answer.messages), stock)

with FakeModel(*[call("order", item="tea", amount=0, size="small")] * 3):
    try:
        client.run("lab/any", "Order tea", tools=[order], max_steps=2)
    except dragoman.StepLimit as limit:
        print("limit", len(limit.messages))

with FakeModel(call("order", item="coffee", amount=1, size="small")):
    try:
        client.run("lab/any", "Order coffee", tools=[order], on_tool_error="raise")
    except KeyError as missing:
        print("raised", missing)
