"""Log probabilities of an answer's tokens, in the forms of the protocols.

OpenAI and Ollama have the same entries in different places, Gemini two parallel lists. Sources: the vendors' API
references (read 2026-11-23).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

import msgspec

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.json_fields import Fields, read, read_fields, read_items

#: What every form tells of a token.
_TOKEN, _ODDS, _OTHERS = "token", "logprob", "top_logprobs"
_BYTES: Final = "bytes"


@final
class OddsForm(msgspec.Struct, frozen=True):
    """A protocol's form of log probabilities. `render`: entries as OpenAI writes them → a field and its value.

    `within`: the list that contains the field's object, "" for the answer itself. `of_text`: each text has its own.
    `has_bytes`: it gives the bytes of a token.
    """

    render: Callable[[list[dict[str, Json]]], dict[str, Json]]
    within: str = ""
    of_text: bool = False
    has_bytes: bool = True


@final
class Odds(msgspec.Struct, frozen=True):
    """The entries of native fields, the fields without them, and paths of what the entries say besides."""

    entries: list[dict[str, Json]]
    rest: Fields
    besides: tuple[str, ...] = ()


def take_odds(fields: Fields, form: OddsForm) -> Odds:
    """Return the log probabilities among the native fields of a text or an answer's end. What is no list stays."""
    for within, read_odds in (("", _of_answer), ("choices", _of_choice), ("candidates", _of_candidate)):
        if not within:
            found = read_odds(fields)
            if found is not None:
                return _without_bytes(found, "", form)
            continue
        items = read_items(fields.get(within)) or []
        inner = read_fields(items[0]) if len(items) == 1 else None
        found = None if inner is None else read_odds(inner)
        if found is not None:
            rest = {**fields, within: _json.raw([found.rest])}
            taken = Odds(found.entries, rest, tuple(f"{within}[0].{path}" for path in found.besides))
            return _without_bytes(taken, f"{within}[0].", form)
    return Odds([], fields)


def _of_answer(fields: Fields) -> Odds | None:
    entries = _entries(read(fields.get("logprobs")))
    return None if entries is None else Odds(entries, _but(fields, "logprobs"))


def _of_choice(choice: Fields) -> Odds | None:
    told = read_fields(choice.get("logprobs")) or {}
    entries = _entries(read(told.get("content")))
    if entries is None:
        return None
    rest, left = _but(choice, "logprobs"), _but(told, "content")
    return Odds(entries, {**rest, "logprobs": _json.raw(left)} if left else rest)


def _of_candidate(candidate: Fields) -> Odds | None:
    told = read(candidate.get("logprobsResult"))
    chosen = told.get("chosenCandidates") if isinstance(told, dict) else None
    if not isinstance(told, dict) or not isinstance(chosen, list) or not chosen:
        return None
    tops = told.get("topCandidates") or []
    others: list[list[Json]] = []
    for each in tops if isinstance(tops, list) else [None]:
        some = each.get("candidates") or [] if isinstance(each, dict) else None
        if not isinstance(some, list):
            return None
        others.append(some)
    if len(others) not in (0, len(chosen)):
        return None
    entries = [_of_gemini(each) for each in chosen]
    alike = [[_of_gemini(each) for each in some] for some in others] or [[] for _ in chosen]
    if None in entries or any(None in some for some in alike):
        return None
    whole = [{**entry, _OTHERS: some} for entry, some in zip(entries, alike, strict=True) if entry is not None]
    tokens = [*chosen, *(each for some in others for each in some)]
    besides = {f"chosenCandidates[].{key}" for each in tokens for key in each if key not in (_TOKEN, "logProbability")}
    besides |= {key for key in told if key not in ("chosenCandidates", "topCandidates")}
    return Odds(whole, _but(candidate, "logprobsResult"), tuple(f"logprobsResult.{path}" for path in sorted(besides)))


def _of_gemini(entry: Json) -> dict[str, Json] | None:
    if not isinstance(entry, dict):
        return None
    token, odds = entry.get(_TOKEN), entry.get("logProbability")
    return {_TOKEN: token, _ODDS: odds} if _is_token(token, odds) else None


def _is_token(token: Json, odds: Json) -> bool:
    return isinstance(token, str) and isinstance(odds, int | float) and not isinstance(odds, bool)


def _entries(value: Json) -> list[dict[str, Json]] | None:
    if not isinstance(value, list) or not value:
        return None
    found: list[dict[str, Json]] = []
    for entry in value:
        others = (entry.get(_OTHERS) or []) if isinstance(entry, dict) else None
        if not isinstance(others, list):
            return None
        each = [entry, *others]
        if not all(isinstance(one, dict) and _is_token(one.get(_TOKEN), one.get(_ODDS)) for one in each):
            return None
        found.append(entry)
    return found


def _without_bytes(found: Odds, where: str, form: OddsForm) -> Odds:
    """Add what a form cannot express of the entries to the rest. The bytes of a whole character say nothing new."""
    if form.has_bytes:
        return found
    tokens = [one for entry in found.entries for one in (entry, *(entry.get(_OTHERS) or ()))]
    known = (_TOKEN, _ODDS, _OTHERS, _BYTES)
    besides = {key for one in tokens for key, value in one.items() if key not in known and value is not None}
    if any(one.get(_BYTES) not in (None, [], list(one[_TOKEN].encode())) for one in tokens):
        besides.add(_BYTES)
    paths = tuple(f"{where}logprobs[].{key}" for key in sorted(besides))
    return Odds(found.entries, found.rest, (*found.besides, *paths))


def _but(fields: Fields, name: str) -> Fields:
    return {key: value for key, value in fields.items() if key != name}


def _whole(entry: dict[str, Json]) -> dict[str, Json]:
    """Return an entry with everything that OpenAI's clients require."""
    tops = [_with_bytes(one) for one in entry.get(_OTHERS) or ()]
    return {**_with_bytes(entry), _OTHERS: tops}


def _with_bytes(entry: dict[str, Json]) -> dict[str, Json]:
    token = entry[_TOKEN]
    known = entry.get(_BYTES)
    return {**entry, _BYTES: list(token.encode("utf-8", "replace")) if known is None else known}


def render_entries(entries: list[dict[str, Json]]) -> dict[str, Json]:
    """Render as a separate list: Responses and Ollama."""
    return {"logprobs": [_whole(entry) for entry in entries]}


def render_choice(entries: list[dict[str, Json]]) -> dict[str, Json]:
    """Render as a choice of chat has them."""
    return {"logprobs": {"content": [_whole(entry) for entry in entries], "refusal": None}}


def render_candidate(entries: list[dict[str, Json]]) -> dict[str, Json]:
    """Render as a candidate of Gemini has them."""

    def told(entry: dict[str, Json]) -> dict[str, Json]:
        return {_TOKEN: entry[_TOKEN], "logProbability": entry[_ODDS]}

    tops = [{"candidates": [told(one) for one in entry.get(_OTHERS) or ()]} for entry in entries]
    chosen: list[Json] = [told(entry) for entry in entries]
    has_tops = any(each["candidates"] for each in tops)
    return {"logprobsResult": {"chosenCandidates": chosen, **({"topCandidates": tops} if has_tops else {})}}


#: The forms, by what a protocol's own type is.
OF_ANSWER: Final = OddsForm(render_entries)
OF_TEXT: Final = OddsForm(render_entries, of_text=True)
OF_CHOICE: Final = OddsForm(render_choice, "choices")
OF_CANDIDATE: Final = OddsForm(render_candidate, "candidates", has_bytes=False)
