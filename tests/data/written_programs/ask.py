"""Ask: a file summarised on one line, with thinking and cost, and a clear end when the key is wrong."""

from __future__ import annotations

import sys

import dragoman
from dragoman.testing import FakeModel, error, thinking


def summarise(text: str, target: str) -> str:
    try:
        reply = dragoman.reply(
            target,
            f"Summarise:\n{text}",
            system="One line.",
            max_tokens=60,
            temperature=0.2,
            reasoning="low",
            timeout=30,
        )
    except dragoman.CallFailed as failed:
        return f"failed: {failed.failure.kind} {failed.status} retry after {failed.retry_after}"
    tokens = reply.usage.output if reply.usage.output is not None else -1
    return f"{reply} | thought {reply.thinking!r} | stop {reply.stop_reason} | {tokens} tokens | cost {reply.cost}"


with FakeModel([thinking("short"), "It is about rivers."], error(401, "no such key")) as fake:
    print(summarise("The Rhine is a river.", "anthropic/claude-sonnet-4-6"))
    print(summarise("The Rhine is a river.", "openai/gpt-5"))
    request = fake.requests[0]
    assert request.messages[0].text == "One line.", request.messages
    assert request.params.max_tokens == 60
    sys.exit(0)
