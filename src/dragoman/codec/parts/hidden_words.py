"""What may be the words of an answer of which nothing was read: its words have another type, or stand elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.parts.call_shapes import is_call, plain
from dragoman.deviations import clip

#: Where the words of an answer stand: the last steps of places.
_PLACES: Final = frozenset({"content", "output", "parts", "text"})
#: Keys under which servers write words of an answer, in small letters without `_` and `-`.
_KEYS: Final = frozenset({
    "answer", "completion", "content", "contents", "delta", "generatedtext", "output", "outputtext", "parts",
    "refusal", "reply", "response", "result", "text", "value",
})  # fmt: skip
#: Keys of what is told of an answer or its request, and of objects with words of others.
_OTHERS: Final = frozenset({
    "annotations", "citations", "contentfilterresults", "contentfilters", "documents", "error", "executedtools",
    "format", "groundingattributions", "groundingmetadata", "incompletedetails", "input", "instructions", "logprobs",
    "messages", "metadata", "prompt", "promptfeedback", "promptfilterresults", "request", "safetyratings",
    "searchresults", "stopdetails", "stopsequence", "tools", "usage", "warnings", "websearch",
})  # fmt: skip
#: Where the answers of the protocols stand.
_HOLDERS: Final = ("candidates", "choices", "content", "message", "output")
#: Types of parts whose words stand beside it.
_WORDY: Final = ("output_text", "text", "thinking")
_DEEPEST: Final = 16


def hidden_words(reported: Iterable[tuple[str, str]], body: bytes) -> str:
    """What of an answer that says nothing may be its words; "" when it is an ordinary empty answer.

    Args:
        reported: the codes of deviations and their places.
        body: its JSON; b"" when it is not known.
    """
    odd = sorted(where for code, where in reported if code == "wrong-type")
    for where in odd:
        if where.rpartition(".")[2] in _PLACES:
            return f"another type at {where}"
    said = _json.decode_lenient(body) if body else None
    if found := _words_in(said, ""):
        return f"what may be the answer at {clip(found)}"
    told = [said.get(key) for key in _HOLDERS] if isinstance(said, dict) else []
    return "what looks like a call" if is_call("", told) else ""


def says_nothing(value: Json, depth: int = 0) -> bool:
    """Whether a value in place of words is empty, or parts of text that are."""
    if depth >= _DEEPEST:
        return False
    if isinstance(value, list):
        return all(says_nothing(one, depth + 1) for one in value)
    if isinstance(value, dict):
        return all(inner in _WORDY if key == "type" else says_nothing(inner, depth + 1) for key, inner in value.items())
    return value is None or value == ""


def _words_in(value: Json, path: str, *, is_said: bool = False, depth: int = 0) -> str:
    """The path of the first text under a key of words; "" when there is none. `is_said`: such a key is around it."""
    if isinstance(value, str):
        return path if is_said and value.strip() else ""
    if depth < _DEEPEST and isinstance(value, list):
        found = (_words_in(one, f"{path}[{at}]", is_said=is_said, depth=depth + 1) for at, one in enumerate(value))
        return next(filter(None, found), "")
    for key, inner in value.items() if depth < _DEEPEST and isinstance(value, dict) else ():
        name = plain(key)
        if name not in _OTHERS and (
            found_at := _words_in(inner, f"{path}.{key}".lstrip("."), is_said=name in _KEYS, depth=depth + 1)
        ):
            return found_at
    return ""
