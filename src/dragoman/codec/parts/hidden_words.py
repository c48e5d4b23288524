"""Find what may be the words of an answer of which nothing was read: of another type, or at another place."""

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
    "messages", "metadata", "moderation", "prompt", "promptfeedback", "promptfilterresults", "request", "safetyratings",
    "searchresults", "stopdetails", "stopsequence", "timings", "tools", "usage", "warnings", "websearch",
})  # fmt: skip
#: Where the answers of the protocols stand.
_HOLDERS: Final = ("candidates", "choices", "content", "message", "output")
#: Keys that texts of any kind have.
_VAGUE: Final = frozenset({"delta", "parts", "result", "text", "value"})
#: Names of what is around an answer. Where one stands in its place, a text under a vague key beside it may be more of
#: it only under these, and under keys of words.
_AROUND: Final = frozenset(
    {*_HOLDERS, "body", "candidate", "choice", "data", "deltas", "event", "item", "items", "payload"}
)
_DEEPEST: Final = 16


def hidden_words(reported: Iterable[tuple[str, str]], body: bytes, frames: Iterable[bytes] = ()) -> str:
    """Return what of an empty answer may be its words; "" if it is an ordinary empty answer.

    Args:
        reported: the codes of deviations and their places.
        body: its JSON; b"" if it is unknown.
        frames: those of a stream with unknown content.
    """
    odd = sorted(where for code, where in reported if code == "wrong-type")
    for where in odd:
        if where.rpartition(".")[2] in _PLACES:
            return f"another type at {where}"
    said = _json.decode_lenient(body) if body else None
    told = [_hidden_in(said), *(_hidden_in(_json.decode_lenient(frame), is_frame=True) for frame in frames)]
    if found := next(filter(None, told), ""):
        return f"what may be the answer at {clip(found)}"
    held = [said.get(key) for key in _HOLDERS] if isinstance(said, dict) else []
    return "what looks like a call" if is_call("", held) else ""


def _hidden_in(said: Json, *, is_frame: bool = False) -> str:
    """Return the path of the first text that may be the answer.

    `is_frame`: `said` is one frame of several, which may contain anything else.
    """
    if not isinstance(said, dict) or (said.keys().isdisjoint(_HOLDERS) and not is_frame):
        return _words_in(said, "")
    own = {key: _first_of(value) for key, value in said.items() if plain(key) in _KEYS | _AROUND}
    beside = {key: value for key, value in said.items() if key not in own}
    return _words_in(own, "") or _words_in(beside, "", keys=_KEYS - _VAGUE)


def _first_of(answers: Json) -> Json:
    """Return the first one of answers that have an index: a deviation reports the others, which are not read."""
    first = answers[0] if isinstance(answers, list) and answers else None
    index = first.get("index") if isinstance(first, dict) else None
    if not isinstance(answers, list) or index is None:
        return answers
    return [one for one in answers if not isinstance(one, dict) or one.get("index", index) == index]


def _words_in(value: Json, path: str, *, keys: frozenset[str] = _KEYS, is_said: bool = False, depth: int = 0) -> str:
    """Return the path of the first text under a key of words; "" if there is none.

    Args:
        keys: those.
        is_said: one is around the value.
    """
    if isinstance(value, str):
        return path if is_said and value.strip() else ""
    if depth < _DEEPEST and isinstance(value, list):
        found = (
            _words_in(one, f"{path}[{at}]", keys=keys, is_said=is_said, depth=depth + 1) for at, one in enumerate(value)
        )
        return next(filter(None, found), "")
    for key, inner in value.items() if depth < _DEEPEST and isinstance(value, dict) else ():
        name = plain(key)
        if name not in _OTHERS and (
            found_at := _words_in(inner, f"{path}.{key}".lstrip("."), keys=keys, is_said=name in keys, depth=depth + 1)
        ):
            return found_at
    return ""
