"""Grade an answer: events to a verdict with its reason in one line. Pure.

A wrong answer never passes. `not-used`: the server did without an optional feature. `unsupported`: it or its protocol
lacks the feature. An `error` says nothing about the model (no connection, no key, no time).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, final

import msgspec

from dragoman import _json
from dragoman.codec.errors.unsupported_tools import refuses_tools
from dragoman.events import Deviation, Event, Failure, FailureKind, Reply, TextDelta
from dragoman.proofs import Verdict
from dragoman.types import ToolCall
from dragoman.validate.compare_json import difference, is_equal, one_line
from dragoman.validate.probe import Expect, ExpectedCall, Probe, Turn

#: Failures that say nothing of what the model can do.
_SAYS_NOTHING: Final[frozenset[FailureKind]] = frozenset(
    {"auth", "permission", "quota", "rate", "overloaded", "timeout", "connection", "internal", "not_found", "context"}
)
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*")
_ANNOUNCED: Final = re.compile(
    r"\b(?:answer|result|total|sum)\b[^\d\n]{0,24}?(-?\d+(?:[.,]\d+)*)|=\s*+\**+\s*+(-?\d+(?:[.,]\d+)*)", re.IGNORECASE
)
#: Reported prompt tokens may differ from our estimate by this factor, in either direction.
_PLAUSIBLE: Final = 4.0


@final
class Seen(msgspec.Struct, frozen=True):
    """One answer. `estimate`: tokens of the request by our own count; `is_left`: we closed the connection."""

    events: tuple[Event, ...]
    reply: Reply
    estimate: int
    is_left: bool = False


@final
class Grade(msgspec.Struct, frozen=True):
    """A verdict and its reason."""

    verdict: Verdict
    reason: str


def grade(probe: Probe, turn: Turn, seen: Seen) -> Grade:
    """Return the verdict on one turn of a probe."""
    expect, reply = turn.expect, seen.reply
    if isinstance(reply.error, Failure) and not seen.is_left:
        return _on_failure(probe, expect, reply.error)
    if expect.failure:
        return _allowed(probe, "answer", "answered, where it should have refused", _said(reply))
    unsaid = next((event for event in reply.deviations if _is_unsaid(event, probe)), None)
    if unsaid is not None:
        return Grade("unsupported", f"{unsaid.where} cannot be said: {unsaid.seen}")
    if reply.failed_calls:
        failed = reply.failed_calls[0]
        return Grade("failed", f"a call of {failed.name or 'an unnamed tool'} failed: {failed.message}")
    fault = next(_faults(probe, expect, seen), None)
    if fault is None:
        return Grade("passed", _praise(expect, reply))
    if reply.stop_reason == "length" and expect.stop != "length":
        return Grade(fault.verdict, f"{fault.reason} (the answer was cut at its most tokens)")
    return fault


def _on_failure(probe: Probe, expect: Expect, failure: Failure) -> Grade:
    said = f"{failure.kind}: {one_line(failure.message)}"
    if failure.kind in expect.failure:
        return Grade("passed", f"refused ({said})")
    if refuses_tools(failure) or failure.status == 501:
        return Grade("unsupported", f"refused: {said}")
    if failure.kind in ("bad_request", "too_large") and probe.uses:
        return Grade("unsupported", f"refused: {said}")
    if failure.kind in _SAYS_NOTHING:
        return Grade("error", said)
    return Grade("failed", said)


def _is_unsaid(deviation: Deviation, probe: Probe) -> bool:
    return deviation.code == "dropped" and deviation.where in probe.uses


def _faults(probe: Probe, expect: Expect, seen: Seen) -> Iterator[Grade]:
    """Yield the expectations that were not met, the most serious first."""
    yield from _call_faults(probe, expect, seen.reply)
    yield from _text_faults(probe, expect, seen)
    yield from _count_faults(probe, expect, seen)


def _allowed(probe: Probe, name: str, otherwise: str, seen: str = "") -> Grade:
    """Return `not-used`, in the probe's words, if it says that a server may do this; else a failure."""
    words = probe.may.get(name)
    return Grade("not-used" if words else "failed", (words or otherwise) + (f": {seen}" if seen else ""))


# ---------------------------------------------------------------- calls


def _call_faults(probe: Probe, expect: Expect, reply: Reply) -> Iterator[Grade]:
    calls = reply.tool_calls
    if expect.no_calls and calls:
        names = ", ".join(call.name for call in calls)
        yield _allowed(probe, "more_calls", "made a call where none is right", one_line(names))
    if (expect.calls or expect.called) and not calls:
        yield _allowed(probe, "no_call", "no call", _said(reply))
    if expect.called and Counter(call.name for call in calls) != Counter(expect.called):
        made = ", ".join(call.name for call in calls)
        yield Grade("failed", f"expected one call of {', '.join(expect.called)}, got {one_line(made)}")
    if expect.calls:
        yield from _misfits(probe, expect.calls, calls)


def _misfits(probe: Probe, expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> Iterator[Grade]:
    missing, surplus = list(expected), []
    for call in calls:
        right = next((one for one in missing if one.name == call.name and is_equal(call.values(), one.arguments)), None)
        if right is None:
            surplus.append(call)
        else:
            missing.remove(right)
    if surplus:
        call = surplus[0]
        wanted = next((one for one in missing if one.name == call.name), None)
        if wanted is not None:
            yield Grade("failed", f"{call.name}: {difference(call.values(), wanted.arguments)}")
        elif any(one.name == call.name for one in expected):
            yield Grade("failed", f"one call of {call.name} too many")
        else:
            names = ", ".join(one.name for one in expected)
            yield Grade("failed", f"expected a call of {names}, got {one_line(call.name)}")
    if missing:
        yield _allowed(probe, "fewer_calls", "too few calls", f"{len(calls)} of {len(expected)}")


# ---------------------------------------------------------------- text


def _text_faults(probe: Probe, expect: Expect, seen: Seen) -> Iterator[Grade]:
    reply, text = seen.reply, seen.reply.text
    has_words = bool(text.strip())
    if (expect.text or (expect.text_has and not expect.calls)) and not has_words:
        yield Grade("failed", "no text")
    if expect.text_has and expect.calls and not has_words and "no_text" in probe.may:
        yield Grade("not-used", probe.may["no_text"])
    missing = [str(word) for word in expect.text_has if not _has(text, str(word))]
    if missing:
        yield Grade("failed", f"expected {', '.join(missing)} in the text, got {_said(reply)}")
    found = [str(word) for word in expect.text_lacks if _has(text, str(word))]
    if found:
        yield Grade("failed", f"expected no {', '.join(found)} in the text, got {_said(reply)}")
    if expect.answer is not None and not gives_number(text, str(expect.answer)):
        yield Grade("failed", f"expected {expect.answer}, got {_said(reply)}")
    if expect.json is not None:
        yield from _json_faults(expect.json, reply)
    pieces = sum(type(event) is TextDelta for event in seen.events)
    if pieces < expect.deltas and not seen.is_left:
        yield Grade("failed", f"expected the text in pieces, got {pieces}")
    if expect.stop is not None and reply.stop_reason != expect.stop:
        yield Grade("failed", f"expected stop reason {expect.stop}, got {reply.stop_reason}")
    if expect.thinking and not reply.thinking and not reply.usage.reasoning:
        yield _allowed(probe, "no_thinking", "no thinking")


def _has(text: str, word: str) -> bool:
    """Return whether a word stands by itself in a text: "14" does not contain "4"."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def gives_number(text: str, answer: str) -> bool:
    """Return whether a text gives this number as its answer, and no other.

    The last number that is announced ("the answer is", "=") counts. Without one, the text or its last line must contain
    this number alone.
    """
    announced = [_plain_number(first or second) for first, second in _ANNOUNCED.findall(text)]
    if announced:
        return announced[-1] == answer
    lines = [line for line in text.splitlines() if _NUMBER.search(line)]
    found = {_plain_number(number) for number in _NUMBER.findall(text)}
    last = {_plain_number(number) for number in _NUMBER.findall(lines[-1])} if lines else set()
    return answer in found and answer in last and len(last) == 1


def _plain_number(text: str) -> str:
    """Return a number without separators: 1,234.00 becomes 1234."""
    text = re.sub(r",(?=\d{3}(?!\d))", "", text).replace(",", ".")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _json_faults(wanted: dict[str, Any], reply: Reply) -> Iterator[Grade]:
    value = _json.decode(reply.text)
    if isinstance(value, _json.Malformed) or not isinstance(value, dict):
        yield Grade("failed", f"expected a JSON object, got {_said(reply)}")
    elif not is_equal(value, wanted):
        yield Grade("failed", difference(value, wanted))


# ---------------------------------------------------------------- counts


def _count_faults(probe: Probe, expect: Expect, seen: Seen) -> Iterator[Grade]:
    usage = seen.reply.usage
    if (expect.usage or expect.prompt_read is not None) and usage.input is None:
        yield Grade(
            "not-used" if "no_usage" in probe.may else "failed", probe.may.get("no_usage", "no tokens reported")
        )
    if expect.usage and usage.input is not None:
        if not seen.estimate / _PLAUSIBLE <= usage.input <= seen.estimate * _PLAUSIBLE + 64:
            yield Grade("failed", f"{usage.input} prompt tokens reported, about {seen.estimate} sent")
        if not usage.output or usage.output < len(seen.reply.text.split()) / 2:
            yield Grade("failed", f"{usage.output} output tokens reported for {len(seen.reply.text.split())} words")
    if expect.prompt_read is not None and usage.input is not None and usage.input < expect.prompt_read * seen.estimate:
        yield Grade("failed", f"{usage.input} prompt tokens reported, about {seen.estimate} sent: not all was read")
    if expect.most_output is not None and usage.output is not None and usage.output > expect.most_output:
        yield Grade("failed", f"expected {expect.most_output} output tokens at most, got {usage.output}")
    if expect.cached and not usage.cache_read:
        yield _allowed(probe, "no_cache", "no cached tokens reported")


# ---------------------------------------------------------------- words


def _praise(expect: Expect, reply: Reply) -> str:
    rescued = sum(event.code == "rescued-call" for event in reply.deviations)
    if expect.calls or expect.called:
        how = " (written as text, rescued)" if rescued else ""
        return f"{len(reply.tool_calls)} call{'s' * (len(reply.tool_calls) > 1)}, as asked{how}"
    if expect.prompt_read is not None:
        return f"{reply.usage.input:,} prompt tokens reported"
    if expect.cached:
        return f"{reply.usage.cache_read:,} tokens read from the cache"
    return _said(reply) if reply.text.strip() else "as asked"


def _said(reply: Reply) -> str:
    text = reply.text.strip()
    if text:
        return f"“{one_line(text)}”"
    return "thinking only" if reply.thinking else "nothing"
