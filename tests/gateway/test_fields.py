"""A sample of the fields of all requests through the running gateway: the provider sees it, or the metrics count it."""

from __future__ import annotations

import json
import re
from itertools import islice

import pytest

from conversations import reply
from field_fates import is_written
from gateway.running import Running, whole_of
from vendor_types import LEAST, Case, Json, cases

#: Requests of each pair.
_SAMPLE = 12
_PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic-messages": "/v1/messages",
    "gemini-generate": "/v1beta/models/{model}:generateContent",
    "ollama-chat": "/api/chat",
}
#: Fields that the gateway reads itself.
_OWN = frozenset({"model", "stream", "store", "previous_response_id", "conversation", "background", "prompt_cache_key"})


def sample(source: str) -> list[Case]:
    """Fields from all over a request, each with a value that is found again."""
    marked = [case for case in cases(source) if case.is_marked and not _OWN & set(re.split(r"\W+", case.path))]
    return list(islice(marked, 0, None, max(1, len(marked) // _SAMPLE)))


def send(running: Running, source: str, target: str, body: Json) -> int:
    model = f"via-{target}"
    path = _PATHS[source].format(model=model)
    asked = {**body, "model": model, "stream": False}
    if source == "gemini-generate":
        asked = body
    if source == "openai-responses":
        asked["store"] = False
    headers = {"content-type": "application/json"}
    return running.request("POST", path, json.dumps(asked).encode(), headers)[0]


def told(running: Running) -> float:
    """How many deviations were counted so far."""
    status, _, page = running.request("GET", "/metrics")
    assert status == 200
    rows = re.findall(rb"^dragoman_deviations_total\{[^}]*\} (\S+)", page, re.MULTILINE)
    return sum(map(float, rows))


@pytest.mark.parametrize("source", list(LEAST))
@pytest.mark.parametrize("target", list(LEAST))
def test_a_field_reaches_the_provider_or_is_counted(running: Running, source: str, target: str) -> None:
    silent, asked = [], sample(source)
    assert len(asked) >= _SAMPLE
    for case in asked:
        running.answer(whole_of(target, reply("text")))
        before = told(running)
        status = send(running, source, target, case.body)
        if status == 400:
            continue  # refused in words
        assert status == 200, case.path
        sent = running.provider.requests[-1]
        if not is_written(case, sent.body.decode()) and told(running) <= before:
            silent.append(case.path)
    assert silent == []
