"""Fallback: two servers in code, the first is down; a route by name and a list; what was tried."""

from __future__ import annotations

import dragoman
from dragoman.testing import FakeModel, error

down = FakeModel(*[error(500, "on fire")] * 9)
well = FakeModel("Answered.", "Answered again.", "And again.")
with down.serve() as first, well.serve() as second:
    client = dragoman.Client(
        providers={
            "down": {"base_url": first.url + "/v1", "protocol": "openai-chat"},
            "well": {"base_url": second.url, "protocol": "ollama-chat"},
        },
        routes={"fast": ["down/a", "well/b"], "careful": {"targets": ["well/b"], "retries": 0}},
        retries=0,
    )
    reply = client.reply("fast", "hi")
    print(reply, [(attempt.target, attempt.outcome, attempt.kind, attempt.status) for attempt in reply.attempts])
    print(client.reply(["down/a", "well/b"], "hi").attempts[-1].target)
    with client.stream("careful", "hi") as stream:
        print("".join(stream.text_stream), [attempt.outcome for attempt in stream.attempts])
    try:
        client.reply("fasst", "hi")
    except dragoman.UsageError as wrong:
        print("usage:", wrong)
    except dragoman.ConfigError as wrong:
        print("config:", wrong)
