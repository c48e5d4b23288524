"""Append pieces to a call's arguments that open or end them, follow their end, or contain odd characters: a server
splits these, one half of a surrogate pair in one delta, the other half in the next.
"""

from __future__ import annotations

from itertools import repeat
from typing import Final

from dragoman._json import whole_characters
from dragoman.codec.parts.argument_text import without_placeholder
from dragoman.codec.parts.open_calls import Answer
from dragoman.codec.parts.open_parts import OpenCall
from dragoman.codec.parts.settled_arguments import is_placeholder, is_same
from dragoman.events import ToolCallDelta
from dragoman.gathered import GatheredText

_FEW: Final = 8  # fragments that are not worth a look at them all


def join_halves(high: str, text: str) -> str:
    """Join a high surrogate and the non-empty text behind it; alone the surrogate becomes U+FFFD."""
    if "\udc00" <= text[0] <= "\udfff":
        return (high + text[0]).encode("utf-16", "surrogatepass").decode("utf-16") + text[1:]
    return "\ufffd" + text


def cut_half(text: str) -> tuple[str, str]:
    """Return text of whole characters, and the half that waits for what follows it, or ""."""
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return whole_characters(text[: len(text) - len(half)]), half


def grow(call: OpenCall, text: str, answer: Answer) -> None:
    """Append any piece to a call's arguments, within their bound."""
    if call.state == "whole":
        return _go_on(call, text, answer)
    if call.half or not text.isascii():
        text = _whole_characters(call, text, answer)
    if call.kind == "function":
        text = call.text.add(text)
    else:
        call.text.phase = "odd"
        call.text.add(text)
    if call.text.phase == "closed":
        answer.calls.ripe[call.index] = call
    if call.state == "announced":
        if text:
            answer.events.append(ToolCallDelta(call.index, text))
        call.live = call.text.live_pieces() if not call.half else None
    elif text and call.state == "waiting":
        if call.pending is None:
            call.pending = GatheredText()
        call.pending.add(text)


def _go_on(call: OpenCall, text: str, answer: Answer) -> None:
    """Take arguments behind the end of their call, which has left. A client that joins all pieces reads them too."""
    if not text.strip() or answer.is_late():
        return
    where = f"call {call.index}"
    if is_placeholder(text):
        answer.deviate("placeholder-arguments", where, text)
    elif is_same(text, call.arguments):
        answer.deviate("repeated-arguments", where)
    else:
        answer.calls.has_astray = True
        answer.contradict(call, where)


def _grow_at_once(call: OpenCall, texts: list[str], answer: Answer) -> bool:
    """Append non-empty fragments of whole characters that came together.

    Return False, with nothing done, if their object opens or closes before the last of them ends.
    """
    is_first = not call.size and call.state == "announced" and call.kind == "function"
    joined = "".join(texts) if is_first or call.live is not None else ""
    size = call.size + len(joined)
    if not (joined and size <= answer.longest_arguments and call.text.add_many(texts, joined)):
        return False
    index = call.index
    if call.text.phase == "closed":
        answer.calls.ripe[index] = call
    call.size = size
    call.fragments += len(texts)
    answer.events += map(ToolCallDelta, repeat(index), texts)
    return True


def grow_by_many(call: OpenCall, texts: list[str], answer: Answer) -> int:
    """Append non-empty fragments of whole characters that came together."""
    if _grow_at_once(call, texts, answer):
        return len(texts)
    if len(texts) < _FEW:
        for number, text in enumerate(texts):
            if call.text.is_closed():
                return number
            answer.add_arguments(call, text)
        return len(texts)
    middle = len(texts) // 2 if call.live is not None else 1  # the object opens or closes somewhere in them
    taken = grow_by_many(call, texts[:middle], answer)
    return taken if taken < middle else taken + grow_by_many(call, texts[middle:], answer)


def _whole_characters(call: OpenCall, text: str, answer: Answer) -> str:
    """Return arguments without lone surrogates. One at the end waits for its other half."""
    if call.half and text:
        text = join_halves(call.half, text)
        call.half = ""
    clean, half = cut_half(text)
    call.half = half or call.half  # no text is no other half
    if clean != text:
        answer.deviate("lone-surrogate", f"call {call.index}")
    return clean


def tell_whole(call: OpenCall, text: str, where: str, answer: Answer) -> None:
    """Take the whole arguments of a call, after their pieces or in their place: add what the pieces lack.

    If they differ from the pieces, they contradict them.
    """
    said = call.text.choose(text) or call.text.raw() or call.arguments
    if text == said:
        return
    if call.kind == "function":
        text = without_placeholder(text)
    if call.is_open() and text.startswith(said):
        if len(text) > len(said):
            answer.add_arguments(call, text[len(said) :])
    elif call.is_open() and call.kind == "function" and call.text.is_whole() and not call.text.is_closed():
        answer.add_arguments(call, text)  # `{}` was a placeholder
    elif call.kind == "custom" or is_placeholder(text):
        if call.kind == "custom" and text.strip() and text != said:
            answer.contradict(call, where)
    elif not (is_same(text, said) or is_same(text, call.arguments) or _comes_to(call, text)):
        answer.contradict(call, where)


def _comes_to(call: OpenCall, text: str) -> bool:
    """Return whether the pieces of an open call, some of them repeated, amount to these whole arguments."""
    if not (call.is_open() and call.text.is_closed()):
        return False
    settled = call.text.settle(proven=True)
    return settled.text is not None and not settled.more and is_same(text, settled.text)
