"""A client may name a new model in each request: nothing that lives as long as the gateway grows with them."""

from __future__ import annotations

import gc
import http.client
import json
from contextlib import closing
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from gateway.running import gateway
from scripted import chunk, head

#: What is remembered by a name holds at most 1,024 of them.
NAMES, MOST = 1_200, 1_100
_NOT_OURS = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, FrameType)
#: An answer that deviates, so that whatever counts or judges its target is asked: two ends, words behind them.
_LINES = b'{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true,"done_reason":"stop"}\nnonsense\n'


def sizes(root: object) -> dict[int, tuple[int, object]]:
    """Each container that can be reached from here: how much it holds."""
    found: dict[int, tuple[int, object]] = {}
    waiting, seen = [root], {id(root)}
    while waiting:
        here: Any = waiting.pop()
        if hasattr(here, "__len__") and not isinstance(here, str | bytes):
            found[id(here)] = (len(here), here)
        for inner in gc.get_referents(here):
            if id(inner) not in seen and not isinstance(inner, _NOT_OURS):
                seen.add(id(inner))
                waiting.append(inner)
    return found


def test_nothing_grows_with_the_names_of_models(tmp_path: Path) -> None:
    with (
        gateway(tmp_path) as running,
        closing(http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)) as connection,
    ):

        def ask(number: int) -> None:
            running.answer([head(200, content_type="application/x-ndjson"), chunk(_LINES), b"0\r\n\r\n"])
            model = f"ollama-chat/made-up-{number}"
            body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "stream": number % 2 == 0}
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            assert connection.getresponse().read()

        ask(0)
        before = sizes(running.gateway)
        for number in range(1, NAMES):
            ask(number)
        after = sizes(running.gateway)
    assert any(size >= 1_024 for size, _ in after.values()), "the walk found nothing that remembers names"
    grown = [what for key, (size, what) in after.items() if size - before.get(key, (0, None))[0] > MOST]
    assert not grown, [str(what)[:200] for what in grown]


def test_addresses_with_made_up_names_are_few(tmp_path: Path) -> None:
    """Of addresses with the model in them, as in Gemini's protocol, a pool remembers some, and drops them singly."""
    seen = []
    with (
        gateway(tmp_path) as running,
        closing(http.client.HTTPConnection("127.0.0.1", running.gateway.port, timeout=20)) as connection,
    ):
        for number in range(160):
            running.answer([head(200, content_type="text/event-stream"), b"0\r\n\r\n"])
            body = {"model": f"gemini-generate/made-up-{number}", "messages": [{"role": "user", "content": "Hi"}]}
            connection.request("POST", "/v1/chat/completions", json.dumps(body))
            assert connection.getresponse().read()
            if number > 130 and number % 10 == 0:
                kept = [what for _, what in sizes(running.gateway).values() if isinstance(what, dict)]
                seen += [sum("/made-up-" in str(key) and "://" in str(key) for key in each) for each in kept]
    assert {count for count in seen if count} == {128}
