"""Render a request of the gateway as one line for people: client, target, result, what was mended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dragoman._json import Json
from dragoman.cli.terminal import Colour, Paint, clip

_LONGEST: Final = 300  # characters of one word
_COLOURS: Final[dict[str, Colour]] = {"done": "green", "cancelled": "yellow", "refused": "yellow"}


def render_line(entry: Mapping[str, Json], paint: Paint) -> str:
    """Render an entry of the gateway's log, with its line end. Control characters are removed before it is coloured."""
    kind = entry.get("kind")
    if kind == "request":
        words = _request(entry, paint)
    elif kind == "refused":
        words = paint("yellow", f"refused at the door: {entry.get('status')} {_word(entry.get('error'))}")
    elif kind == "left-out":
        words = paint("yellow", f"{entry.get('count')} more of: {_word(entry.get('of'))}")
    else:
        words = f"{_word(kind)}: {_word(entry.get('text'))}"
    return f"{paint('dim', _word(entry.get('time'))[11:19])} {words}\n"


def _word(value: Json) -> str:
    return clip(str(value or ""), _LONGEST)


def _plain_number(value: Json) -> str:
    """Return a number without an exponent, to nano-dollars."""
    return f"{value:.9f}".rstrip("0").rstrip(".") if isinstance(value, float) else _word(value)


def _request(entry: Mapping[str, Json], paint: Paint) -> str:
    outcome = _word(entry.get("outcome"))
    asked = entry.get("target") or entry.get("page") or "-"
    parts = [f"{_word(entry.get('client')) or '-'} → {_word(asked)}"]
    said = [_word(entry.get("status")), _word(entry.get("stop") or entry.get("error"))]
    if outcome not in ("done", "refused"):
        said.insert(0, outcome)
    parts.append(paint(_COLOURS.get(outcome, "red"), " ".join(word for word in said if word)))
    usage = entry.get("usage")
    if isinstance(usage, dict):
        parts.append(f"{usage.get('input', '?')} in {usage.get('output', '?')} out")
    if entry.get("cost_usd"):
        parts.append(f"${_plain_number(entry['cost_usd'])}")
    parts.append(_times(entry))
    attempts = entry.get("attempts")
    if isinstance(attempts, list) and len(attempts) > 1:
        parts.append(f"{len(attempts)} tries")
    mended = entry.get("deviations")
    if isinstance(mended, dict) and mended:
        codes = ", ".join(_word(code) if count == 1 else f"{_word(code)} ×{count}" for code, count in mended.items())
        parts.append(paint("cyan", f"mended: {codes}"))
    return "  ".join(part for part in parts if part)


def _times(entry: Mapping[str, Json]) -> str:
    first, total = entry.get("first_ms"), entry.get("total_ms")
    if not isinstance(total, int | float):
        return ""
    seconds = f"{total / 1000:.2f} s"
    return f"{first / 1000:.2f}/{seconds}" if isinstance(first, int | float) else seconds
