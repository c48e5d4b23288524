"""What an attempt may use at most, and what is expected of it: from the bytes that are sent. No I/O.

A token has at least one byte. What an answer may have stands in the request under the names of the five protocols.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from dragoman import _json
from dragoman._json import Raw
from dragoman.codec.json_fields import Fields, read_fields
from dragoman.codec.repeated_keys import repeats_key
from dragoman.types import Usage

#: Tokens that a provider may add of its own: what tells the model of tools, and marks between messages.
_ADDED: Final = 4_096
#: Tokens of a picture or another medium, whose bytes say little of them; and how requests of the five protocols begin
#: one.
_MEDIUM: Final = 8_192
_MEDIA: Final = re.compile(rb'"i(?:mages?(?:_url)?|n(?:put_(?:image|audio)|line_?[dD]ata))"')
#: How requests name an input that stands elsewhere, or whose bytes say nothing of its tokens (pages, films): what was
#: said before, a stored prompt, a file. All of it has room in what the model reads at once. In a text the quotes are
#: escaped, and in the schema of a tool such a name has no text.
_ELSEWHERE: Final = re.compile(
    rb'"(?:(?:previous_response_id|conversation|cached_?[cC]ontent|file_?(?:id|[uU]ri|url|[dD]ata))"\s*:\s*"|'
    rb'(?:prompt|conversation)"\s*:\s*\{\s*"(?:id|version|variables)"|'
    rb'type"\s*:\s*"(?:document|input_file|file|video|video_url)")'
)
#: Tokens that a model reads at once where the catalogue does not say it: no model is known that reads more.
_WIDEST: Final = 2_097_152
#: A key in which a letter is written as an escape: only who hides it from a look at the bytes writes so.
_HIDDEN: Final = re.compile(rb'(?<!\\)"[^"\\]{0,64}\\u00[2-7][^"]{0,64}"\s*:')
#: The longest answer where neither the request nor the catalogue says one: no model is known that says more.
_LONGEST: Final = 131_072
#: Bytes of a token of usual text, and tokens of a usual answer.
_PER_TOKEN: Final = 4
_USUAL: Final = 1_024
_COPIES: Final = frozenset(("n", "best_of", "candidateCount", "candidate_count"))
#: Tables in which they stand.
_INSIDE: Final = frozenset(("generationConfig", "generation_config", "options"))
_MOST_COPIES: Final = 1_024


def bound_of(
    body: bytes,
    limits: Sequence[Sequence[str]],
    *,
    max_output: int | None,
    context: int | None = None,
    answers: bool = True,
) -> Usage:
    """The most that a request can use.

    Args:
        limits: where it says how long its answer may be (`Protocol.output_limits`).
        max_output, context: tokens that the model says at most and reads at once, None: unknown.
        answers: a text comes back; to embeddings none does.
    """
    media = len(_MEDIA.findall(body))
    is_hidden = b"\\u00" in body and _HIDDEN.search(body) is not None
    size = len(body) + _ADDED + media * _MEDIUM
    if is_hidden or _ELSEWHERE.search(body) is not None:
        size += context or _WIDEST
    output = _longest(max_output) * _MOST_COPIES if is_hidden else _output(body, limits, max_output)
    return Usage(input=size, output=output if answers else 0)


def expected_of(body: bytes, bound: Usage) -> Usage:
    """What a request will likely use."""
    return Usage(input=min(-(-len(body) // _PER_TOKEN), bound.input or 0), output=min(_USUAL, bound.output or 0))


def _longest(max_output: int | None) -> int:
    return _LONGEST if max_output is None else max_output


def _output(body: bytes, limits: Sequence[Sequence[str]], max_output: int | None) -> int:
    fields = read_fields(Raw(body))
    longest = _longest(max_output)
    if fields is None:
        return longest * _MOST_COPIES
    tables = [fields]
    if not _INSIDE.isdisjoint(fields):
        tables += [inner for name in _INSIDE if (inner := read_fields(fields.get(name))) is not None]
    copies = 1
    for table in tables:
        if not _COPIES.isdisjoint(table):
            named = [name for name in _COPIES if name in table]
            is_plain = all(_is_once(body, name) for name in named)
            copies = max(copies, *(_copies(table[name]) for name in named)) if is_plain else _MOST_COPIES
    said = [_count(found) for way in limits if (found := _at(fields, way)) is not None]
    # A name that is told twice is read by every server in its own way; of two names the larger number may hold.
    is_plain = all(_is_once(body, way[-1]) for way in limits)
    most = max((count for count in said if count), default=0) if is_plain and all(said) else 0
    return (most or longest) * max(1, min(copies, _MOST_COPIES))


def _is_once(body: bytes, name: str) -> bool:
    """Whether no object tells the name twice."""
    return body.count(b'"%b"' % name.encode()) <= 1 or not repeats_key(body)


def _copies(text: Raw) -> int:
    """How many answers are asked for, the most where it is no number that all servers read alike."""
    value = _json.decode(bytes(text))
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST_COPIES:
        return value
    return _MOST_COPIES


def _at(fields: Fields, way: Sequence[str]) -> Raw | None:
    for name in way[:-1]:
        inner = read_fields(fields.get(name))
        if inner is None:
            return None
        fields = inner
    return fields.get(way[-1])


def _count(text: Raw) -> int:
    """A whole number above 0; 0 for anything else."""
    value = _json.decode(bytes(text))
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40 else 0
