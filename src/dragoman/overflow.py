"""A prompt that does not fit the model's context: told from the words of the failure, with the figures in them."""

from __future__ import annotations

import re
from typing import Final, final

import msgspec

_CONTEXT: Final = re.compile(
    r"context[ _-]?(?:length|window|size|limit)|maximum context"
    r"|(?:prompt|input|message|request|conversation)s? (?:is|are|was) too long"
    r"|prompt too long|input token count.{0,40}exceed"
    r"|exceeds? the (?:model'?s )?maximum (?:number of )?(?:input )?tokens"
    r"|maximum prompt length|reduce the length of the (?:messages|prompt|input)|exceeded model token limit"
    r"|too many (?:input |prompt )?tokens|token limit exceeded|exceeds the limit of \d+ tokens"
    r"|input length .{0,60}exceed|range of input length",
    re.IGNORECASE,
)
_RATE: Final = re.compile(
    r"rate.?limit|too many requests|per (?:minute|second|hour|day)|throttl|request limit reached", re.IGNORECASE
)


@final
class Overflow(msgspec.Struct, frozen=True):
    """The figures of an overflow, in tokens: the most that fit, and those of the request. None: not printed."""

    limit: int | None = None
    asked: int | None = None


def says_overflow(message: str) -> bool:
    """Whether an error's words say that the prompt does not fit the context."""
    return _CONTEXT.search(message) is not None and _RATE.search(message) is None


def read_overflow(message: str) -> Overflow:
    """The figures in the words of an overflow."""
    return Overflow()
