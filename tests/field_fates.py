"""What becomes of each field of a request in each protocol: kept, said elsewhere, named as lost, or silent."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from json.encoder import encode_basestring_ascii
from typing import Final, NamedTuple

import msgspec

import vendor_types
from dragoman.errors import UsageError, WireError
from dragoman.events import Deviation
from dragoman.offering import Offer, offer
from dragoman.protocol import PLAIN
from dragoman.protocols import PROTOCOLS
from dragoman.providers.catalog import load_catalog
from dragoman.types import Named, Request
from vendor_types import GEMINI_PATH, LEAST, MADE_UP, Case, Json

#: Where our own words differ from the wire's: of a deviation's path → of a field's, both without capitals and dashes.
ALIASES: Final = {
    "tools": {"tool", "functions"},
    "strreplacebasededittool": {"<texteditor>"},
    "strreplaceeditor": {"<texteditor>"},
    "stop": {"stopsequences", "stop"},
    "maxtokens": {"maxtokens", "maxoutputtokens", "numpredict", "maxcompletiontokens"},
    "responseschema": {"responseformat", "format", "outputformat", "responsejsonschema", "responseschema",
                       "responsemimetype", "outputconfig"},
    "reasoning": {"reasoning", "reasoningeffort", "thinking", "think", "thinkingconfig", "effort"},
    "budget": {"budgettokens", "thinkingbudget", "maxtokens"},
    "effort": {"effort", "reasoningeffort", "thinkinglevel", "think"},
    "paralleltools": {"paralleltoolcalls", "disableparalleltooluse"},
    "cache": {"promptcacheretention", "cachecontrol"},
    "sessionid": {"promptcachekey", "userid"},
    "toolchoice": {"toolchoice", "functioncall", "toolconfig", "functioncallingconfig"},
    "signature": {"signature", "encryptedcontent", "thoughtsignature", "data"},
    "redacted": {"data", "encryptedcontent"},
    "iserror": {"iserror", "response"},
    "arguments": {"arguments", "input", "args"},
    "callid": {"callid", "toolcallid", "tooluseid", "id"},
    "stopreason": {"stopreason", "finishreason", "donereason", "status", "reason"},
    "schema": {"inputschema", "parameters", "parametersjsonschema", "schema"},
}  # fmt: skip
_CATALOG: Final = load_catalog().providers
#: Each vendor's own host.
DIALECTS: Final = {
    "openai-chat": _CATALOG["openai"].dialect,
    "openai-responses": _CATALOG["openai"].dialect,
    "anthropic-messages": _CATALOG["anthropic"].dialect,
    "gemini-generate": _CATALOG["gemini"].dialect,
}
_LISTS: Final = re.compile(r"\[\d*\]")
_OURS: Final = frozenset({"messages", "parts", "params", "native", "contents", "input", "output"})


class Fate(NamedTuple):
    """`kind`: kept, becomes, named, refused or silent; `words`: the places it went to, or the paths that name it."""

    kind: str
    words: tuple[str, ...] = ()


class Sent(NamedTuple):
    """What a provider is sent, and what is said of it."""

    body: Json
    deviations: tuple[Deviation, ...]


def fate(case: Case, source: str, target: str) -> Fate:
    """What becomes of a field that a client of `source` sends to a provider of `target`."""
    sent = send(json.dumps(case.body), source, target)
    if isinstance(sent, str):
        return Fate("refused", (sent,))
    gained, gone = ([], []) if case.is_marked else _changed(case, sent, source, target)
    found = places_of(case, sent.body) if case.is_marked else sorted({path for path, _ in gained})
    if found:
        kept = [path for path in found if case.key in _LISTS.sub("", path).split(".")]
        if not case.is_marked:
            kept = [path for path, value in gained if path in kept and value == json.dumps(case.values[0])]
        return Fate("kept") if kept or (source == target and case.is_marked) else Fate("becomes", tuple(found))
    named = sorted({_LISTS.sub("[]", said.where) for said in sent.deviations if is_named(said, case)})
    if named:
        return Fate("named", tuple(named))
    return Fate("becomes", tuple(gone)) if gone else Fate("silent")


def _changed(case: Case, sent: Sent, source: str, target: str) -> tuple[list[tuple[str, str]], list[str]]:
    """What a provider is sent more than without the field, and the places of what it is not sent any more."""
    base = case.base if case.base != case.body else LEAST[source]
    before, after = _leaves_without(json.dumps(base), source, target), Counter(leaves_of(sent.body))
    return list(after - before), sorted({path for path, _ in before - after})


@cache
def _leaves_without(body: str, source: str, target: str) -> Counter[tuple[str, str]]:
    """What a provider is sent of a request without the field: many fields stand in the same one."""
    without = send(body, source, target)
    return Counter() if isinstance(without, str) else Counter(leaves_of(without.body))


@cache
def fates(source: str, target: str) -> list[tuple[Case, Fate]]:
    """Every field of a protocol's requests, and what becomes of it in another."""
    return [(case, fate(case, source, target)) for case in vendor_types.cases(source)]


@cache
def _parsed(body: str, source: str):  # type: ignore[no-untyped-def]
    try:
        return PROTOCOLS[source].parse_request(body.encode(), path=GEMINI_PATH if source == "gemini-generate" else "")
    except WireError as problem:
        return f"{problem}"


@cache
def send(body: str, source: str, target: str) -> Sent | str:
    """What a provider is sent of a request, and what is said of it; a text where it is refused."""
    parsed = _parsed(body, source)
    if isinstance(parsed, str):
        return parsed
    dialect = DIALECTS.get(target, PLAIN)
    made = _offered(parsed.request, source, target)
    rendered = PROTOCOLS[target].render_request(made.request, dialect=dialect)
    sent = json.loads(rendered.http.body)
    if target == "gemini-generate":
        sent["model"] = re.search(r"models/([^:]*)", rendered.http.path)[1]  # type: ignore[index]
        sent["stream"] = rendered.http.path
    return Sent(sent, (*parsed.deviations, *made.deviations, *rendered.deviations))


def _offered(request: Request, source: str, target: str) -> Offer:
    """The request with its tools as the target has them; a tool that alone would be refused is left out and said.

    A choice of a made-up name, which is refused, is played as if it had its tool, so that what is found of it again is
    the choice.
    """
    choice = request.tool_choice
    if isinstance(choice, Named) and MADE_UP.fullmatch(choice.name):
        made = _offered(msgspec.structs.replace(request, tool_choice="auto"), source, target)
        return msgspec.structs.replace(made, request=msgspec.structs.replace(made.request, tool_choice=choice))
    for policies in ({}, {"provider": "drop", "client": "drop"}):
        try:
            return offer(
                request, PROTOCOLS[target], name="lab/m", dialect=DIALECTS.get(target, PLAIN), policies=policies,
                protocols=PROTOCOLS.__getitem__, client=source,
            )  # fmt: skip
        except UsageError as problem:
            refused = problem
    raise refused


def leaves_of(value: Json, path: str = "") -> Iterator[tuple[str, str]]:
    """Each value with nothing in it: its path, lists as `[]`, and its JSON text."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves_of(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from leaves_of(inner, f"{path}[]")
    else:
        yield path, encode_basestring_ascii(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def places_of(case: Case, body: Json) -> list[str]:
    """The places of the marked values."""
    whole = msgspec.json.encode(body).decode()
    words = [word for value in case.values for word in vendor_types.spellings(value) if word in whole]
    found = set()
    for path, text in leaves_of(body) if words else ():
        for word in words:
            is_number = word[0].isdigit()
            if word in text and (not is_number or re.search(rf"(?<![\w.]){re.escape(word)}(?!\d)", text)):
                found.add(path)
            elif word in path:
                found.add(path.partition(word)[0].rstrip("."))
    return sorted(found)


def is_written(case: Case, text: str) -> bool:
    """Whether a marked value stands in a text."""
    words = [word for value in case.values for word in vendor_types.spellings(value)]
    return any(
        re.search(rf"(?<![\w.]){re.escape(word)}(?!\d)", text)
        or (not word[0].isdigit() and re.search(rf"{re.escape(word)}(?!\d)", text))
        for word in words
        if word in text
    )


def is_named(said: Deviation, case: Case) -> bool:
    """Whether a deviation names a field, what it stands in, or what stands in it."""
    keys = _keys(case.path)
    if keys[-1] != _plain(case.key):
        keys.append(_plain(case.key))
    words = _keys(_LISTS.sub("", said.where))
    ours = [word for word in words if word not in _OURS]
    if not ours:
        if words[:1] == ["parts"]:  # of an answer: what kind of part is said beside its place
            return said.code == "untranslated" and any(_is_same(_plain(said.seen), key) for key in keys)
        return said.code in ("dropped", "untranslated") and words[:1] == ["messages"]
    if ours[-1] in ALIASES and ALIASES[ours[-1]] & set(keys):
        return True
    return _is_within(ours, keys) or any(_is_within(ours[:end], keys, to_end=True) for end in range(1, len(ours)))


def _is_within(words: list[str], keys: list[str], *, to_end: bool = False) -> bool:
    """Whether the words come in this order among the keys. `to_end`: the last of them is the last key."""
    rest = iter(keys)
    found = all(any(_is_same(word, key) for key in rest) for word in words)
    return found and (not to_end or next(rest, None) is None)


def _is_same(word: str, key: str) -> bool:
    return word in (key, f"<{key}>") or f"<{word}>" == key or key in ALIASES.get(word, ())


def _keys(path: str) -> list[str]:
    return [_plain(key) for key in re.findall(r"<[^>]*>|[^.<\[\]]+", path)]


@cache
def _plain(word: str) -> str:
    """Without what two spellings of one name differ in, and without the date of a tool's type."""
    return re.sub(r"[_-]", "", re.sub(r"_\d{8}(?=>|$)", "", word)).lower()
