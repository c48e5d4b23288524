# ruff: noqa: E501 - requests, which a line end would tear
"""Conversations made up at random in each protocol: what its page allows, and what clients send besides."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from asked.writing import CITY, PIXEL, PNG_URL, chat, function, gemini, messages, ollama, responses, tool
from dragoman.types import ProtocolName

IDS: Final = ("call_1", "toolu_01AbCdEf", "functions.look:0", "chatcmpl-tool-" + "7" * 60, "call_0", "a b|c", "é")
_TURNS: Final = 7


class Talk:
    """A conversation in the making. `words`: the marks of all that was said, each with the place that it has."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.words: list[str] = []
        self.calls: list[list[str]] = []  # ids of each turn that called

    def word(self, kind: str) -> str:
        """A text unlike any other."""
        self.words.append(f"{kind}{len(self.words):03d}q")
        return self.words[-1]

    def ids(self) -> list[str]:
        """Ids of one to three calls, no two the same."""
        number = self.dice.randint(1, 3)
        found = self.dice.sample(IDS, number) if self.dice.random() < 0.5 else [
            f"call_{len(self.calls)}_{place}" for place in range(number)]  # fmt: skip
        self.calls.append(found)
        return found

    def roles(self) -> list[str]:
        return [self.dice.choice(("user", "user", "answer", "calls", "calls", "system")) for _ in range(_TURNS)]


def talk(dice: Random, protocol: ProtocolName) -> tuple[dict[str, Any], list[str]]:
    """A request, and the words in it that must not be lost in silence."""
    made = Talk(dice)
    if protocol == "openai-chat":
        turns: list[dict[str, Any]] = [{"role": "system", "content": made.word("s")}] if dice.random() < 0.5 else []
        for role in made.roles():
            turns += _chat(made, role)
        return chat(*turns, {"role": "user", "content": made.word("u")}, tools=[function()]), made.words
    if protocol == "openai-responses":
        items = [item for role in made.roles() for item in _responses(made, role)]
        tools = [{"type": "function", "name": "look", "parameters": CITY}]
        return responses(*items, {"role": "user", "content": made.word("u")}, tools=tools), made.words
    if protocol == "anthropic-messages":
        turns = [turn for role in made.roles() for turn in _messages(made, role)]
        return messages(*turns, {"role": "user", "content": made.word("u")}, tools=[tool()]), made.words
    if protocol == "gemini-generate":
        contents = [content for role in made.roles() for content in _gemini(made, role)]
        contents.append({"role": "user", "parts": [{"text": made.word("u")}]})
        return gemini(*contents, tools=[{"functionDeclarations": [{"name": "look"}]}]), made.words
    turns = [turn for role in made.roles() for turn in _ollama(made, role)]
    return ollama(*turns, {"role": "user", "content": made.word("u")}, tools=[function()]), made.words


def _some(dice: Random, entries: list[Any]) -> list[Any]:
    """All of them mostly; else one is missing, or they come in another order."""
    kind = dice.random()
    if kind < 0.15:
        return entries[1:]
    return dice.sample(entries, len(entries)) if kind < 0.4 else entries


def _chat(made: Talk, role: str) -> list[dict[str, Any]]:
    dice = made.dice
    if role == "system":
        return [{"role": dice.choice(("system", "developer")), "content": made.word("s")}]
    if role == "user":
        text = made.word("u")
        image = {"type": "image_url", "image_url": {"url": PNG_URL}}
        parts = [{"type": "text", "text": text}, *([image] if dice.random() < 0.3 else [])]
        return [{"role": "user", "content": dice.choice((text, parts))}]
    if role == "answer":
        return [{"role": "assistant", "content": dice.choice((made.word("a"), "", " "))}]
    ids = made.ids()
    calls = [{"id": id, "type": "function", "function": {"name": "look", "arguments": json.dumps({"city": made.word("c")})}}
             for id in ids]  # fmt: skip
    turn = {"role": "assistant", "content": dice.choice((None, "", made.word("a"))), "tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": id, "content": dice.choice((made.word("r"), "",
                [{"type": "text", "text": made.word("r")}]))} for id in ids]  # fmt: skip
    return [turn, *_some(dice, results)]


def _responses(made: Talk, role: str) -> list[dict[str, Any]]:
    dice = made.dice
    if role == "system":
        return [{"role": "developer", "content": made.word("s")}]
    if role == "user":
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": made.word("u")}]}]
    if role == "answer":
        content = [{"type": "output_text", "text": made.word("a"), "annotations": []}]
        return [{"type": "message", "role": "assistant", "content": content}]
    ids = made.ids()
    calls = [{"type": "function_call", "call_id": id, "name": "look", "arguments": json.dumps({"city": made.word("c")})}
             for id in ids]  # fmt: skip
    outputs = [{"type": "function_call_output", "call_id": id, "output": dice.choice((made.word("r"),
                [{"type": "input_text", "text": made.word("r")}, {"type": "input_image", "image_url": PNG_URL}]))}
               for id in ids]  # fmt: skip
    if dice.random() < 0.3:
        return [item for pair in zip(calls, outputs, strict=True) for item in pair]
    return [*calls, *_some(dice, outputs)]


def _messages(made: Talk, role: str) -> list[dict[str, Any]]:
    dice = made.dice
    if role == "system":
        return [{"role": "system", "content": made.word("s")}]
    if role == "user":
        return [{"role": "user", "content": dice.choice((made.word("u"), [{"type": "text", "text": made.word("u")}]))}]
    if role == "answer":
        return [{"role": "assistant", "content": made.word("a")}]
    ids = made.ids()
    thought = [{"type": "thinking", "thinking": "Hm.", "signature": "c2VhbA=="}] if dice.random() < 0.3 else []
    text = [{"type": "text", "text": made.word("a")}] if dice.random() < 0.4 else []
    calls = [{"type": "tool_use", "id": id, "name": "look", "input": {"city": made.word("c")}} for id in ids]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    results = [{"type": "tool_result", "tool_use_id": id, "is_error": dice.random() < 0.2,
                "content": dice.choice((made.word("r"), "", [{"type": "text", "text": made.word("r")}, image], [image]))}
               for id in ids]  # fmt: skip
    after = [{"type": "text", "text": made.word("u")}] if dice.random() < 0.3 else []
    found = [*_some(dice, results), *after]
    return [
        {"role": "assistant", "content": [*thought, *text, *calls]},
        *([{"role": "user", "content": found}] if found else []),
    ]


def _gemini(made: Talk, role: str) -> list[dict[str, Any]]:
    dice = made.dice
    if role in ("user", "system"):
        return [{"role": "user", "parts": [{"text": made.word("u")}]}]
    if role == "answer":
        return [{"role": "model", "parts": [{"text": made.word("a")}]}]
    count = len(made.ids())
    calls = [{"functionCall": {"name": "look", "args": {"city": made.word("c")}}} for _ in range(count)]
    found = [{"functionResponse": {"name": "look", "response": dice.choice((
        {"result": made.word("r")}, {"error": made.word("r")}, {"any": made.word("r"), "n": 1}))}} for _ in range(count)]  # fmt: skip
    return [{"role": "model", "parts": calls}, {"role": "user", "parts": found}]


def _ollama(made: Talk, role: str) -> list[dict[str, Any]]:
    dice = made.dice
    if role == "system":
        return [{"role": "system", "content": made.word("s")}]
    if role == "user":
        return [{"role": "user", "content": made.word("u"), **({"images": [PIXEL]} if dice.random() < 0.2 else {})}]
    if role == "answer":
        return [{"role": "assistant", "content": made.word("a")}]
    count = len(made.ids())
    calls = [{"function": {"name": "look", "arguments": {"city": made.word("c")}}} for _ in range(count)]
    results = [{"role": "tool", "tool_name": "look", "content": made.word("r")} for _ in range(count)]
    return [{"role": "assistant", "content": "", "tool_calls": calls}, *results]
