"""Shorten a conversation before it outgrows the model's window: what is kept, summarised and sent.

The session keeps every message. A folding only changes what is sent, so it can be undone. Kept are the system text, the
first message (the task) and the newest stretch, cut where no call loses its result. The user's words in between stay
word for word, up to a limit, beside the model's summary, so that a bad summary loses no fact that they contain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

import msgspec

from dragoman.agent.session.records import Folded
from dragoman.token_estimate import estimate_tokens
from dragoman.types import Message, Request, Text, ToolCall, ToolResult

#: Share of the window at which the conversation is shortened, and what of it the newest stretch may take then.
FULL: Final = 0.8
_KEPT: Final = 0.3
_CHARACTERS_PER_TOKEN: Final = 4
_USER_LIMIT: Final = 2_000  # characters of one message of the user
_USERS_SHARE: Final = 0.1  # of the window, for all that the user said
_RESULT_LIMIT: Final = 1_500  # characters of a result in what the model sums up
_CALL_LIMIT: Final = 600
_MOST_SUMMARY: Final = 1_500  # tokens

INSTRUCTION: Final = (
    "Below is the first part of a conversation between a user and an assistant that works with tools. Write a summary "
    "for the assistant, who goes on without having seen it. Keep every fact, name, number and decision, which files "
    "were read or changed and how, what was tried and failed, and what is still to do. Only the summary, no preamble."
)
_HEADING: Final = "[The conversation so far is told in short, to save room.]"


@final
class Fold(msgspec.Struct, frozen=True):
    """The messages to shorten, from `first` up to `kept` (excluded)."""

    first: int
    kept: int


def sent_messages(messages: Sequence[Message], foldings: Sequence[Folded], *, window: int | None) -> list[Message]:
    """Return the messages that the model gets. `window`: its context in tokens, or None."""
    if not foldings:
        return list(messages)
    last = foldings[-1]
    words = [_HEADING, "Summary:", last.summary.strip()]
    users = _said_by_user(messages[last.first : last.kept], window)
    if users:
        words += ["What the user said meanwhile, word for word:", *users]
    told = Text("\n\n".join(words))
    task = messages[0]
    return [Message(task.role, (*task.parts, told), task.native), *messages[last.kept :]]


def tokens_of(messages: Sequence[Message]) -> int:
    """Estimate the tokens of messages."""
    return estimate_tokens(Request("", tuple(messages)))


def next_fold(messages: Sequence[Message], foldings: Sequence[Folded], *, window: int) -> Fold | None:
    """Return what to shorten so that the rest takes about a third of the window, or None if nothing can be."""
    already = foldings[-1].kept if foldings else 1
    budget = int(window * _KEPT)
    kept = len(messages)
    size = 0
    for place in range(len(messages) - 1, already, -1):
        size += tokens_of(messages[place : place + 1])
        if size > budget and kept < len(messages):
            break
        if messages[place].role != "tool":
            kept = place
    kept = _before_results(messages, kept)
    return Fold(1, kept) if already < kept < len(messages) else None


def _before_results(messages: Sequence[Message], kept: int) -> int:
    """Return the same place, moved back until no result stands without its call."""
    while kept < len(messages) and kept > 0 and messages[kept].role == "tool":
        kept -= 1
    if kept == len(messages) and messages and messages[-1].role == "tool":
        kept -= 2
    return kept


def summary_request(
    messages: Sequence[Message], foldings: Sequence[Folded], fold: Fold, *, window: int
) -> tuple[Message, int]:
    """Return the request for a summary, and how many tokens its answer may have."""
    most = max(min(_MOST_SUMMARY, window // 5), 64)
    room = max((window - most) * _CHARACTERS_PER_TOKEN * 7 // 10 - len(INSTRUCTION), 500)
    lines = [f"user: {messages[0].text[:_USER_LIMIT]}"]
    start = fold.first
    if foldings:
        lines.append(f"summary of what came then: {foldings[-1].summary}")
        start = foldings[-1].kept
    lines += [line for message in messages[start : fold.kept] for line in _lines(message)]
    text = "\n".join(lines)
    if len(text) > room:
        half = room // 2
        text = f"{text[:half]}\n[…]\n{text[-half:]}"
    return Message("user", (Text(f"{INSTRUCTION}\n\n<conversation>\n{text}\n</conversation>"),)), most


def plain_summary(messages: Sequence[Message], fold: Fold, *, window: int) -> str:
    """Return a summary made without the model: the calls, and the first words of each message."""
    lines = [line[:200] for message in messages[fold.first : fold.kept] for line in _lines(message)]
    room = window * _CHARACTERS_PER_TOKEN // 10
    while len(lines) > 1 and sum(map(len, lines)) > room:
        del lines[len(lines) // 2]
    return "\n".join(lines)


def _lines(message: Message) -> list[str]:
    out = []
    for part in message.parts:
        match part:
            case Text(text) if text.strip():
                out.append(f"{message.role}: {text.strip()}")
            case ToolCall(_, name, arguments):
                out.append(f"assistant calls {name} {_cut(arguments, _CALL_LIMIT)}")
            case ToolResult(_, name):
                out.append(f"result of {name}{' (failed)' if part.is_error else ''}: {_cut(part.text, _RESULT_LIMIT)}")
            case _:
                pass
    return out


def _said_by_user(messages: Sequence[Message], window: int | None) -> list[str]:
    """Return the user's words in their order; only the newest if there are too many."""
    room = int((window or 100_000) * _USERS_SHARE) * _CHARACTERS_PER_TOKEN
    kept: list[str] = []
    for message in reversed(messages):
        if message.role == "user" and message.text.strip():
            words = _cut(message.text.strip(), _USER_LIMIT)
            room -= len(words)
            if room < 0 and kept:
                break
            kept.append(words)
    return kept[::-1]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit * 2 // 3]} […] {text[-limit // 3 :]}"
