"""Compute the bound and the likely usage of an attempt from the bytes that are sent. No I/O.

A token has at least one byte. The answer's limit stands in the request under the names of the five protocols.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Final

from dragoman import _json
from dragoman._json import Raw
from dragoman.codec.cost import apart_of, tier_of
from dragoman.codec.patterns import rare_pattern
from dragoman.codec.repeated_keys import repeats_key
from dragoman.types import Usage

#: Tokens that a provider may add of its own: what tells the model of tools, and marks between messages.
_ADDED: Final = 4_096
#: Tokens of a picture or another medium, whose bytes say little of them; and how requests of the five protocols begin
#: one. No model is known that takes more for one than gpt-4o-mini, 48,169, of which its requests have two such names.
_MEDIUM: Final = 24_576
_MEDIA: Final = rare_pattern(rb'"i(?:mages?(?:_url)?|n(?:put_(?:image|audio)|line_?[dD]ata))"')
#: How requests name an input that stands elsewhere, or whose bytes say nothing of its tokens (pages, films): what was
#: said before, a stored prompt, a file. All of it has room in what the model reads at once. In a text the quotes are
#: escaped, and in the schema of a tool such a name has no text. A request has fifty quotes and more: one look at the
#: first letter passes over most of them, and no letter is looked at by two of the ways that follow.
_ELSEWHERE: Final = rare_pattern(
    rb'"(?=[acfpt])(?:audio"\s*:\s*\{\s*"id"|type"\s*:\s*"(?=[adfiv])'
    rb'(?:audio_url|i(?:nput_(?:file|video)|tem_reference)|(?:document|file|video)(?:_url)?)"|'
    rb'c(?:onversation"\s*:\s*(?:"|\{\s*"(?:id|version|variables)")|ached_?[cC]ontent"\s*:\s*")|'
    rb'file_?(?:id|[uU]ri|url|[dD]ata)"\s*:\s*"|'
    rb'pr(?:evious_response_id"\s*:\s*"|ompt"\s*:\s*\{\s*"(?:id|version|variables)"))'
)
#: Beside such a name: its bytes are pages, sound or a film, of which a few may be hours.
_UNSEEN: Final = rare_pattern(
    rb'"(?:data:(?:application|audio|video)/|mime_?[tT]ype"\s*:\s*"(?!image/|text/|application/json"))'
)
#: A list of Ollama's pictures, and how many of them are counted apart.
_MOST_LISTS: Final = 4_096
_PICTURES: Final = rare_pattern(rb'"images"\s*:\s*\[')
#: How each of both begins: most requests have none of them, so one look takes the place of two.
_SPECIAL: Final = re.compile(
    rb'"(?:file|i(?:mage|tem_ref|n(?:put_|line))|c(?:onversation"|ached)|document(?:_url)?"|video|audio(?:_url)?"|'
    rb'pr(?:evious_response_id"|ompt"))'
)
#: How requests name sound that is heard, as no text and no name of a tool does; an answer in sound; and for how long a
#: provider keeps a part of the prompt, if not for five minutes.
_HEARD: Final = rare_pattern(
    rb'"(?:audio"\s*:\s*\{\s*"id"|(?:input_audio|audio_url)"|(?:data:|mime_?[tT]ype"\s*:\s*")[aA][uU][dD][iI][oO]/)'
)
_SOUND: Final = re.compile(rb"[aA](?:udio|UDIO)")
_KEPT: Final = b'"ttl"'
_LONG: Final = rare_pattern(rb'"ttl"\s*:\s*"(?!5m")')
#: The fields that choose a service tier, the speed, and the region of the computers.
_TIERS: Final = frozenset(("service_tier", "serviceTier", "speed", "inference_geo"))
_NOTHING: Final = Raw(b"")
#: Tokens that a model reads at once where the catalogue does not say it: no model is known that reads more.
_WIDEST: Final = 2_097_152
#: What such a key has. An expression finds several bytes faster than the methods of `bytes`, which find one faster.
_ESCAPE: Final = re.compile(rb"\\u00")
#: A number: `in` tries bytes as one first, and drops the error, which takes eight times as long.
_BACKSLASH: Final = ord("\\")
#: A key, or the name of a part's type, in which a letter is written as an escape: only who hides it from a look at the
#: bytes writes so.
_HIDDEN: Final = rare_pattern(rb'(?<!\\)"[^"\\]{0,64}\\u00[2-7][^"]{0,64}"\s*:|"type"\s*:\s*"[^"\\]{0,64}\\u00[2-7]')
#: The longest answer where neither the request nor the catalogue says one: no model is known that says more.
_LONGEST: Final = 131_072
#: How paths end at which texts are turned into vectors.
_EMBEDDINGS: Final = ("/embeddings", "/embed", ":embedcontent", ":batchembedcontents")
#: Bytes of a token of usual text, and tokens of a usual answer.
_PER_TOKEN: Final = 4
_USUAL: Final = 1_024
_COPIES: Final = frozenset(("n", "best_of", "candidateCount", "candidate_count"))
#: Tables in which they stand.
_INSIDE: Final = frozenset(("generationConfig", "generation_config", "options"))
#: Texts to continue: a server answers each one of a list.
_PROMPT: Final = "prompt"
_NAMED: Final = _COPIES | _INSIDE | {_PROMPT}
#: Fields that may ask for what is billed apart.
_APART: Final = _TIERS | _INSIDE | {"audio", "modalities"}
#: Names of a request's own fields of which the body needs a further look: these, and what `_SPECIAL` finds of names.
_TELLING: Final = _NAMED.union(
    ("audio", "audio_url", "image", "images", "image_url", "input_image", "input_audio", "conversation"),
    ("previous_response_id",),
    [f"inline{mark}{data}" for mark in ("", "_") for data in ("data", "Data")],
    [f"cached{mark}{content}" for mark in ("", "_") for content in ("content", "Content")],
    [f"file{mark}{what}" for mark in ("", "_") for what in ("id", "uri", "Uri", "url", "data", "Data")],
)
#: Names of Gemini's in both of their spellings.
_TWINS: Final = (
    ("generationConfig", "generation_config"), ("maxOutputTokens", "max_output_tokens"),
    ("candidateCount", "candidate_count"),
)  # fmt: skip
#: Names that decide how long the answer may be, as they are written and in small letters alone.
_SPELLED: Final = _NAMED.union(
    ("max_tokens", "max_completion_tokens", "num_predict", "images"), [name for names in _TWINS for name in names]
)
_FOLDED: Final = frozenset(name.casefold() for name in _SPELLED)
#: The least bytes of a value in which `_SPECIAL` finds something: `"file"`.
_LEAST: Final = 6
#: What a program offers with each of its requests; the most bytes of it that are kept, and how many.
_TOOLS: Final = "tools"
_LARGEST_KEPT: Final = 128 * 1024
_MOST_KEPT: Final = 16
_MOST_COPIES: Final = 1_024
_MOST_DIGITS: Final = 12
_members: Final = _json.typed_decoder(dict[str, Raw])
_items: Final = _json.typed_decoder(list[Raw])


def bound_of(
    body: bytes,
    limits: Sequence[Sequence[str]],
    *,
    max_output: int | None,
    context: int | None = None,
    answers: bool = True,
    fields: Mapping[str, Raw] | None = None,
    marks_cache: bool = False,
) -> Usage:
    """Return the most that a request can use.

    Args:
        limits: where it limits the answer's length (`Protocol.output_limits`).
        max_output, context: the model's limits in tokens, or None.
        answers: a text comes back; for embeddings none does.
        fields: as of `Outgoing`.
        marks_cache: the request may say how long a part of it is kept.
    """
    read = _members(body) if fields is None else fields
    members: Mapping[str, Raw] = {} if isinstance(read, _json.Malformed) else read
    is_special = _SPECIAL.search(body) is not None if fields is None else not _are_plain(fields)
    is_hidden = _BACKSLASH in body and _ESCAPE.search(body) is not None and _HIDDEN.search(body) is not None
    media = _media(body) if is_special else 0
    is_elsewhere = is_hidden or (is_special and _stands_elsewhere(body))
    size = len(body) + _ADDED + media * _MEDIUM
    if is_elsewhere:
        size += context or _WIDEST
    is_heard = is_hidden or (is_special and _HEARD.search(body) is not None)
    if is_hidden or members is not read:
        output = _longest(max_output) * _MOST_COPIES
    else:
        output = _output(body, limits, max_output, members, is_once=fields is not None)
    is_long = marks_cache and (is_hidden or (body.find(_KEPT) >= 0 and _LONG.search(body) is not None))
    apart = None
    if is_long or is_heard or not _APART.isdisjoint(members):  # nearly no request has one of them
        apart = apart_of(
            asked_tier(body, members),
            cache_write_long=size * is_long,
            input_audio=size * is_heard,
            output_audio=output * _says_sound(members),
        )
    return Usage(size, output if answers else 0, apart=apart)


def asked_tier(body: bytes, fields: Mapping[str, Raw] | None) -> str:
    """Return the service tier that a request names, "" for the standard one."""
    if fields is None:
        found = _members(body)  # faster than a search for each name
        fields = found if type(found) is dict else {}
    if _TIERS.isdisjoint(fields):
        return ""
    return tier_of(*[_json.decode(fields[name]) for name in _TIERS if name in fields])


def _says_sound(fields: Mapping[str, Raw]) -> bool:
    """Return whether a request asks for an answer in sound."""
    if bytes(fields.get("audio", b"null")) != b"null" or _SOUND.search(fields.get("modalities", _NOTHING)) is not None:
        return True
    inner = [fields[name] for name in _INSIDE.intersection(fields)]
    return any(b"odalities" in bytes(text) and _SOUND.search(text) is not None for text in inner)


def expected_of(body: bytes, bound: Usage) -> Usage:
    """Return what a request will likely use."""
    input, output = min(-(-len(body) // _PER_TOKEN), bound.input or 0), min(_USUAL, bound.output or 0)
    return Usage(input=input, output=output, apart=bound.apart)


def has_text(url: str) -> bool:
    """Return whether the answer from an address is a text. Vectors are none; a model's name may begin with the word."""
    return "embed" not in (lower := url.lower()) or not lower.partition("?")[0].endswith(_EMBEDDINGS)


def _media(body: bytes) -> int:
    """Return how many media a request has, or more. Each byte is looked at by one list at most."""
    count, end = len(_MEDIA.findall(body)), 0
    for _ in range(_MOST_LISTS):
        found = _PICTURES.search(body, end)
        if found is None:
            return count
        start = found.end()
        end = body.find(b"]", start) % (len(body) + 1)
        count += max(body.count(b'"', start, end) // 2 - 1, 0)
    return count + body.count(b'"', end)


def _stands_elsewhere(body: bytes) -> bool:
    return _ELSEWHERE.search(body) is not None or (_MEDIA.search(body) is not None and _UNSEEN.search(body) is not None)


def _longest(max_output: int | None) -> int:
    return _LONGEST if max_output is None else max_output


def _are_plain(fields: Mapping[str, Raw]) -> bool:
    """Return whether fields have no name of an input that the bytes do not show. False says nothing."""
    if not _TELLING.isdisjoint(fields):
        return False
    for name, value in fields.items():
        size = len(value)
        if size < _LEAST:
            continue
        if name == _TOOLS and size <= _LARGEST_KEPT:
            if not _is_plain(bytes(value)):
                return False
        elif _SPECIAL.search(value) is not None:
            return False
    return True


@lru_cache(maxsize=_MOST_KEPT)
def _is_plain(text: bytes) -> bool:
    return _SPECIAL.search(text) is None


def _output(
    body: bytes, limits: Sequence[Sequence[str]], max_output: int | None, fields: Mapping[str, Raw], *, is_once: bool
) -> int:
    """Return the answer's limit. A repeated name is read differently by servers, so then no limit counts."""
    longest = _longest(max_output)
    if _is_spelled_otherwise(fields):
        return longest * _MOST_COPIES
    copies = 1
    if not _NAMED.isdisjoint(fields):
        tables = [fields]
        for name in _INSIDE.intersection(fields):
            inner = _members(fields[name])
            if not _is_once(body, name):
                return longest * _MOST_COPIES
            if type(inner) is dict:
                if _is_spelled_otherwise(inner):
                    return longest * _MOST_COPIES
                tables.append(inner)
        for table in tables:
            copies = max([copies, *[_copies(body, name, table[name]) for name in _COPIES.intersection(table)]])
        if _PROMPT in fields:
            copies *= _prompts(body, fields[_PROMPT])
    return (_limit(body, limits, fields, is_once=is_once) or longest) * copies


def _is_spelled_otherwise(fields: Mapping[str, Raw]) -> bool:
    """Return whether a server may read a name that is not looked for: programs in Go take capitals for small letters,
    and those that read protocol buffers know two spellings of each name, of which either may count.
    """
    for one, other in _TWINS:
        if one in fields and other in fields:
            return True
    for name in fields:
        if not (name.islower() and name.isascii()) and name not in _SPELLED and name.casefold() in _FOLDED:
            return True
    return False


def _limit(body: bytes, limits: Sequence[Sequence[str]], fields: Mapping[str, Raw], *, is_once: bool) -> int:
    """Return the answer's limit in the request, the larger of two; 0 if there is none. `is_once`: no field is
    repeated.
    """
    most = 0
    for way in limits:
        found = fields.get(way[0])
        if found is None:
            continue
        for name in way[1:]:
            inner = None if found is None else _members(found)
            found = inner.get(name) if type(inner) is dict else None
        if found is None:
            continue
        if not (is_once and len(way) == 1) and not _is_once(body, way[-1]):
            return 0
        text = bytes(found)
        if not text.isdigit() or len(text) > _MOST_DIGITS:
            if text == b"null":
                continue
            return 0
        count = int(text)
        if not count:
            return 0
        if count > most:
            most = count
    return most


@cache
def _quoted(name: str) -> bytes:
    return b'"%b"' % name.encode()


def _is_once(body: bytes, name: str) -> bool:
    """Return whether no object repeats the name."""
    return body.count(_quoted(name)) <= 1 or not repeats_key(body)


def _copies(body: bytes, name: str, text: Raw) -> int:
    """Return how many answers are requested; the maximum for a number that servers read differently."""
    digits = bytes(text)
    if not _is_once(body, name):
        return _MOST_COPIES
    if digits == b"null":
        return 1
    return min(int(digits) or _MOST_COPIES, _MOST_COPIES) if digits.isdigit() and len(digits) < 5 else _MOST_COPIES


def _prompts(body: bytes, text: Raw) -> int:
    """Return how many prompts are to be continued; the most that there may be where a server may read another value."""
    if not _is_once(body, _PROMPT):
        return body.count(b",") + 1
    items = _items(text)
    if type(items) is not list:
        return 1
    return max(1, sum([not bytes(item)[:1].isdigit() for item in items]))  # numbers are the tokens of one
