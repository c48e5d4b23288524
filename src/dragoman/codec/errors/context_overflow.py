"""Recognise a prompt that does not fit the model's context, by the words and figures of the error.

Servers share no code for it, many have none, and an error about tokens may as well be a rate limit.
`tests/codec/errors/test_context_overflow.py` holds the wordings, with their sources.
"""

from __future__ import annotations

import re
from typing import Final, final

import msgspec

from dragoman.codec.patterns import rare_pattern

#: What is exceeded.
_CONTEXT: Final = (
    r"(?:context[ _-]?(?:length|window|size|limit)|max(?:imum)? context|max_(?:model|seq|num)_(?:len|tokens)"
    r"|max(?:imum)? (?:model|prompt|input|sequence|message|allowed)(?: input)? (?:length|tokens)|model token limit)"
)
#: How it is said to be; within a sentence or two of the other.
_EXCEEDED: Final = (
    r"(?:exceed|too (?:long|large)|larger than|longer than|greater than|overflow|not enough|reached|is only"
    r"|but the request|but the configured|however)"
)
_SAYS: Final = rare_pattern(
    rf"{_EXCEEDED}.{{0,100}}{_CONTEXT}|{_CONTEXT}.{{0,100}}{_EXCEEDED}"
    r"|maximum context length is \d|context length is only \d"
    r"|(?:prompt|input|conversation|request|messages?) (?:is|are|was) too long(?!\w)|prompt too (?:long|large)"
    r"|input tokens? (?:count )?.{0,20}exceed|tokens exceed the configured limit"
    r"|token count of [\d,]+ exceeds|(?:prompt|input) exceeds? (?:the )?max(?:imum)? length"
    r"|reduce (?:the length of )?(?:the |your )(?:messages|prompt|input|conversation)"
    r"|range of input length should be"
    r"|(?:tokens in the prompt|of prompt length).{0,40}(?:cannot|not) exceed"
    r"|`?inputs`? (?:tokens \+ `?max_new_tokens`? must be <=|must have less than)"
    r"|token limit exceeded|too many (?:input |prompt )?tokens|exceed max message tokens"
    r"|prompt ?超长|(?:超出|超过).{0,12}上下文|上下文.{0,12}(?:超出|超过|超限)",
    re.IGNORECASE | re.DOTALL,
)
#: What also speaks of tokens and limits: rates, money, memory, the answer's own length, one field's.
_ELSE: Final = rare_pattern(
    r"rate.?limit|too many requests|per[ -](?:min|sec|hour|day)|\b(?:tpm|tpd|rpm)\b|throttl|please wait|quota"
    r"|try again in \d|request limit reached"
    r"|window too small|\bmemory\b|\bvram\b|kv.?cache"
    r"|at most [\d,]+ (?:completion|output) tokens|maximum allowed number of output tokens"
    r"|(?:array|string) too long|range of max_tokens",
    re.IGNORECASE,
)

_NUMBER: Final = rare_pattern(r"(?<![\w.\-])\d{1,3}(?:,\d{3})+|(?<![\w.\-])\d+")
_LIMIT: Final = rare_pattern(
    r"(?:(?:max(?:imum)?|configured)[ _](?!output|tokens)(?:\w+[ _]){0,3}?|context[ _-]|model token )"
    r"(?:length|window|size|limit|len|tokens)(?: limit)?(?: allowed)?(?: of| is|:)?(?: only)?[ (]*(?P<after>\d[\d,]*)"
    r"|should be \[1, (?P<range>\d+)\]|n_ctx: ?(?P<n_ctx>\d+)|(?<![\d,])(?P<before>\d[\d,]*+) max(?:imum)?\b"
    r"|(?:limit(?: of| is)|cannot exceed|must be <=|less than|[^=]>) (?P<bound>\d[\d,]*)",
    re.IGNORECASE,
)
_SUM: Final = rare_pattern(r"(?<!\d)(\d++) \+ (\d++) > (\d+)")
#: No context is longer, in tokens: what is above is an id or a time.
_MOST: Final = 20_000_000
#: Characters of a figure; what is longer counts as more than `_MOST`.
_LONGEST: Final = 40
_LEAST: Final = 256


@final
class Overflow(msgspec.Struct, frozen=True):
    """The figures of an overflow, in tokens: the limit, and the request's. None: not stated."""

    limit: int | None = None
    asked: int | None = None


def says_overflow(message: str) -> bool:
    """Return whether an error's message says that the prompt does not fit the context."""
    return _SAYS.search(message) is not None and _ELSE.search(message) is None


def read_overflow(message: str) -> Overflow:
    """Return the figures in the message of an overflow."""
    added = _SUM.search(message)
    if added is not None:
        return Overflow(_figure(added[3]), _figure(added[1]) + _figure(added[2]))
    limits = (_figure(next(filter(None, found.groups()))) for found in _LIMIT.finditer(message))
    limit = next((figure for figure in limits if _LEAST <= figure <= _MOST), None)
    if limit is None:
        return Overflow()
    figures = (_figure(found[0]) for found in _NUMBER.finditer(message))
    return Overflow(limit, max((figure for figure in figures if limit < figure <= _MOST), default=None))


def _figure(digits: str) -> int:
    return int(digits.replace(",", "")) if len(digits) <= _LONGEST else _MOST + 1
