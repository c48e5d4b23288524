"""Backslashes of paths in arguments that are no JSON: read where one reading is left, else the call fails."""

from __future__ import annotations

import itertools
import json
import random

import pytest

from dragoman.decoding import decode
from near_json_reference import meanings
from test_failed_calls import PROVIDERS

TOOLS = [{"name": "open", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}]
SEGMENTS = [
    "Users",
    "Program Files",
    "new",
    "tmp",
    "bin",
    "repo",
    "file.txt",
    "users",
    "u00e9",
    "data",
    "1",
    "\\srv",
    'x\\"y',
]


def read(text: str, size: int) -> list[dict[str, str]]:
    """The calls of arguments that come in pieces of this size."""
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    chunks = [
        {
            "index": 0,
            **({"id": "c", "type": "function"} if not at else {}),
            "function": {"name": "open" * (not at), "arguments": piece},
        }
        for at, piece in enumerate(pieces)
    ]
    data = [{"choices": [{"index": 0, "delta": {"tool_calls": [chunk]}, "finish_reason": None}]} for chunk in chunks]
    data.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    wire = b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in data) + b"data: [DONE]\n\n"
    return [call.values() for call in decode(wire, "openai-chat", tools=TOOLS).tool_calls]


def test_one_reading_or_none():
    dice = random.Random(4)
    fared = {"read": 0, "refused": 0}
    for _ in range(400):
        path = "C:" + "".join("\\" + dice.choice(SEGMENTS) for _ in range(dice.randrange(1, 5)))
        text = '{"path": "' + path + '"' + dice.choice(["}", ",}"])
        try:
            meant = [json.loads(text)["path"]]
        except ValueError:
            meant = meanings(path, '"')
        for size in (1, 5, len(text)):
            assert read(text, size) == ([{"path": meant[0]}] if len(meant) == 1 else []), text
        fared["read" if len(meant) == 1 else "refused"] += 1
    assert min(fared.values()) > 50


@pytest.mark.parametrize("protocol", PROVIDERS)
@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(["\\Users", "\\new"])))
def test_valid_json_is_left_alone_and_two_readings_are_refused(protocol: str, first: str, second: str):
    doubled = json.dumps({"path": f"C:{first}{second}"})
    for text, meant in (
        (doubled, [f"C:{first}{second}"]),
        (f'{{"path": "C:{first}{second}"}}', []),
        (f'{{"path": "C:{first}", "note": "{second}"}}', []),
        ('{"path": "C:\\Users\\Public\\data"}', ["C:\\Users\\Public\\data"]),
    ):
        reply = decode(PROVIDERS[protocol]([("open", text)], "stop"), protocol, tools=TOOLS)
        if "note" in text:  # each text has its own reading
            meant = ["C:" + json.loads(f'"{first}"' if first == "\\new" else json.dumps(first))]
        assert [call.values()["path"] for call in reply.tool_calls] == meant, text
