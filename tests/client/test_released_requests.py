"""A request leaves the memory when its answer begins: answers stream for minutes, and requests are large."""

from __future__ import annotations

import sys
from pathlib import Path

from dragoman.client.exchange import Exchange
from dragoman.config import load_config
from dragoman.routing.resolve import resolve, with_defaults
from dragoman.types import Message, Request, Text
from for_each import for_each


@for_each("stream", [True, False])
def test_no_exchange_holds_a_released_request(stream: bool, tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text("")
    target = resolve("deepseek/m", load_config(file, environ={"DEEPSEEK_API_KEY": "k"}, home=tmp_path))
    messages = (Message("user", (Text("Hi"),)),)
    before = sys.getrefcount(messages)
    exchange = Exchange(target, with_defaults(Request("m", messages, stream=stream), target), new_id=lambda: "0" * 24)
    assert sys.getrefcount(messages) > before
    exchange.release()
    assert sys.getrefcount(messages) == before
