"""A body has room for more words that its target does not know than anybody can be told: what is told has an end."""

from __future__ import annotations

import json
from pathlib import Path

from dragoman.client.exchange import Exchange
from dragoman.config import load_config
from dragoman.events import Deviation, Failure
from dragoman.protocols import PROTOCOLS
from dragoman.routing.resolve import resolve, with_defaults

_FIELDS = 20_000


def test_what_a_request_loses_is_told_in_few_words_and_counted_whole(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text("")
    target = resolve("gemini/m", load_config(file, environ={"GEMINI_API_KEY": "k"}, home=tmp_path))
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]} | {f"word{n}": 1 for n in range(_FIELDS)}
    parsed = PROTOCOLS["openai-chat"].parse_request(json.dumps(body).encode())
    exchange = Exchange(target, with_defaults(parsed.request, target), new_id=lambda: "0" * 24)
    told = [event for event in exchange.fail(Failure("connection", "no")) if type(event) is Deviation]
    assert len(told) < _FIELDS / 50
    last = told[-1]
    assert (last.code, last.where, last.severity) == ("untranslated", "", "note")
    assert int(last.seen.removesuffix(" further places")) + len(told) - 1 == _FIELDS
