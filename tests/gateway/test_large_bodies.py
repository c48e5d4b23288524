"""What is done with a large body in a thread lets the event loop in: no call of C looks at all of it several times."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from dragoman import _json
from dragoman.client.request.splicing import splice_sized
from dragoman.codec import json_fields
from dragoman.gateway.request_bodies import check_shape
from dragoman.protocols import PROTOCOLS

_SIZE = 4 * 1024 * 1024
_MANY = [{"role": "user", "content": "word " * 400} for _ in range(_SIZE // 2_100)]
BODIES = {
    "one text": [{"role": "user", "content": "word " * (_SIZE // 5)}],
    "many messages": _MANY,
    "a picture": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "A" * _SIZE}}]}],
}


def longest_call(work: Callable[[], object]) -> float:
    """Seconds of processor of the longest call of C; Python lets other threads in between two of them."""
    longest = begun = 0.0
    depth = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal longest, begun, depth
        if event == "c_call":
            depth += 1
            begun = time.thread_time() if depth == 1 else begun
        elif event in ("c_return", "c_exception") and depth:
            depth -= 1
            longest = max(longest, time.thread_time() - begun) if not depth else longest

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return longest


@pytest.mark.parametrize("kind", BODIES)
def test_no_call_takes_longer_than_to_read_the_body_once(kind: str) -> None:
    body = json.dumps({"model": "m", "messages": BODIES[kind]}).encode()
    decode = _json.typed_decoder(dict[str, _json.Raw])
    fields = decode(body)
    assert isinstance(fields, dict)
    once = min(longest_call(lambda: decode(body)) for _ in range(5))
    for work in (
        lambda: check_shape(body),
        lambda: PROTOCOLS["openai-chat"].peek(body, path="/v1/chat/completions"),
        lambda: splice_sized(len(body), fields, {"model": "other"}),
    ):
        assert min(longest_call(work) for _ in range(5)) <= 2 * once + 0.0005


_PATHS = {
    "openai-chat": "/v1/chat/completions",
    "anthropic-messages": "/v1/messages",
    "gemini-generate": "/v1beta/models/m:generateContent",
    "ollama-chat": "/api/chat",
}


@pytest.mark.parametrize("protocol", _PATHS)
def test_a_long_list_of_messages_is_read_item_by_item_and_alike(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No call of C makes all texts at once: their memory is new, and whoever touches it first waits for the system."""
    text = "word " * 400
    turns: list[Any] = [
        {"role": role, "content": text} for _ in range(_SIZE // 4_200) for role in ("user", "assistant")
    ]
    fields: dict[str, Any] = {"model": "m", "max_tokens": 1, "messages": turns}
    if protocol == "gemini-generate":
        fields = {"contents": [{"role": "user", "parts": [{"text": text}]}] * (_SIZE // 2_100)}
    body = json.dumps(fields).encode()
    assert len(body) > json_fields.LONG
    parsed = PROTOCOLS[protocol].parse_request(body, path=_PATHS[protocol])
    monkeypatch.setattr(json_fields, "LONG", 2 * len(body))
    assert PROTOCOLS[protocol].parse_request(body, path=_PATHS[protocol]) == parsed
