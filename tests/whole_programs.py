"""Whole programs, each in a process of its own with a time limit, and the chat answers that a provider gives them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from warm_programs import run

LIMIT_SECONDS = 30


def said(*words: str) -> list[bytes]:
    """An `openai-chat` answer in these words, event by event."""
    return [*(_event({"content": word}) for word in words), _event({}, "stop"), b"data: [DONE]\n\n"]


def called(name: str, arguments: str) -> list[bytes]:
    """An `openai-chat` answer that calls one tool."""
    function = {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return [_event({"tool_calls": [function]}), _event({}, "tool_calls"), b"data: [DONE]\n\n"]


def _event(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "chatcmpl-9", "model": "m", "choices": [choice]}).encode() + b"\n\n"


def configure(folder: Path, url: str, *providers: str, more: str = "") -> Path:
    """Write a configuration in which these providers speak `openai-chat` at this address."""
    tables = [f'[providers.{name}]\nprotocol = "openai-chat"\nbase_url = "{url}/v1"\n' for name in providers or ["lab"]]
    file = folder / "dragoman.toml"
    file.write_text("\n".join([*tables, more]), encoding="utf-8")
    return file


def ended(program: str, *, config: Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The Python program after its end. All warnings are shown, those too that most people never see.

    Raises:
        subprocess.TimeoutExpired: it does not end.
    """
    return run(
        [sys.executable, "-W", "default", "-c", program],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(config.parent), "DRAGOMAN_CONFIG": str(config)},
        text=True,
        timeout=LIMIT_SECONDS,
    )
