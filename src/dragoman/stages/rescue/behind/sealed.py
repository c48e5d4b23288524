"""Judge the text behind a call that its closing tag ended: words, or arguments that the call lacks.

A call whose closing tag came too early has lost what follows it: `{}</tool_call>{"zone": "Rome"}</tool_call>`. A tool
with optional arguments alone would run without them. So the text right behind such a call is checked: an object or a
member that names an argument of the tool which the call lacks is the rest of it. Tokens and tags in between say
nothing. Words begin with none of that, so that nothing waits for more than the first of them. A key and a colon may
begin words too: on a line of their own, or behind spaces, they are a member if something closes behind them that
nothing opened there. The caller ends the text where a tool's answer or another speaker's turn begins.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from dragoman.codec.patterns import rare_pattern
from dragoman.stages.rescue.behind.kinds import VALUE
from dragoman.stages.rescue.stop_tokens import STOP_TOKENS

#: Characters behind a call in which its rest begins.
AHEAD: Final = 200
#: What closes a call or a value, separators, and tags and tokens, perhaps with a word before them: `analysis <|…|>`.
_LEAD: Final = rare_pattern(
    r"(?:[\s,;)}\]>]|```|[a-z]{2,8}+(?=\s{1,2}\{)|(?:\w{1,16}+\s{0,2})?(?:<[|｜/][^<>\"\n]{1,80}>|<[a-z_]{1,30}>))*+"
)
#: What may become one of these.
_TAG_BEGINS: Final = rare_pattern(r"(?:\w{1,16}+\s{0,2})?<[^<>\n]{0,80}\Z|\w{0,16}+\s{0,2}\Z|`{1,2}\Z")
_QUOTED: Final = rare_pattern(r"(\{\s{0,8})?[\"'“”‘’]([\w.-]{1,64}+)[\"'“”‘’]\s{0,8}[:=]")
_QUOTED_BEGINS: Final = rare_pattern(r"\{\s{0,8}\Z|(?:\{\s{0,8})?[\"'“”‘’][\w.-]{0,64}+(?:[\"'“”‘’]\s{0,8})?\Z")
_BARE: Final = rare_pattern(r"(\{\s{0,8})?([\w.-]{1,64}+)\s{0,8}(?:=(?!=)|:(?!//))")
_BARE_BEGINS: Final = rare_pattern(r"(?:\{\s{0,8})?([\w.-]{1,64}+)\s{0,8}\Z")
_VALUE: Final = rare_pattern(VALUE)
#: Characters behind a colon in which a value begins.
_VALUE_AHEAD: Final = 8
#: Those in which it is told that a sign behind a bare key is a comparison, or of an address.
_SIGN_AHEAD: Final = 2
#: A tag that names a key.
_NAMED: Final = rare_pattern(r"<([^<>=]{1,60})=\s?[\"']?([\w.-]{1,64}+)[\"']?[^<>]{0,40}>")
#: Elements of HTML: words hold such.
_HTML: Final = rare_pattern(
    r"(?:abbr|a|br|button|b|code|div|em|form|h[1-6r]|img|input|i|label|link|li|meta|ol|option|pre|p|section|select|small|"
    r"span|strong|sub|sup|s|t(?:able|body|d|extarea|head|h|r)|ul|u)(?![\w:-])",
    re.IGNORECASE,
)
#: Inline code, and numbers of lists.
_SHOWN: Final = rare_pattern(r"`[^`\n]++`|(?:\A|(?<=\s))(?:\d{1,3}|[a-z])\)(?=\s|\Z)")
#: Inline code that may go on.
_CODE_BEGUN: Final = rare_pattern(r"(?<!`)`[^`\n]*+\Z")
#: A closing tag or a token that may go on, or whose speaker follows.
_MARK_BEGUN: Final = rare_pattern(r"<(?:/\w*|[|｜][^<>\s]{0,40}(?:>[\w ]{0,20})?)?\Z")
#: How a value ends that is no word.
_VALUE_ENDS: Final = ('"', "'", "]", "}")
#: What opens or closes something, behind a member apart from the call. No token at which models stop closes a call.
_MARKS: Final = rare_pattern(
    rf"(?P<opens>[({{\[])|(?P<closes>[)}}\]])|{'|'.join(map(re.escape, STOP_TOKENS))}|</(\w*)|<[|｜]"
)


def goes_on(text: str, keys: Collection[str], *, is_whole: bool) -> bool | None:
    """Return whether a text begins with the rest of a call's arguments; None while that is unknown.

    Args:
        text: what stands behind the call's closing tag, up to the next call.
        keys: of the arguments that the call lacks.
        is_whole: no more of it comes.
    """
    is_sure = is_whole or len(text) >= AHEAD
    lead = _LEAD.match(text)
    assert lead is not None
    words = text[lead.end() :]
    if not is_sure and (not words or _TAG_BEGINS.match(words)):
        return None
    quoted = _QUOTED.match(words)
    found = quoted or _BARE.match(words)
    if found is not None and found[2] in keys:
        if quoted is not None and not quoted[1]:
            if not is_sure and len(words) - found.end() < _VALUE_AHEAD:
                return None
            value = _VALUE.match(words, found.end())
            return value is not None and value["value"] is not None  # else words: `"zone": that is the key I left out`
        if not is_sure and len(words) - found.end() < _SIGN_AHEAD:
            return None
        is_apart = "\n" in lead.group() or lead.group().isspace()
        rest = _SHOWN.sub(" ", words[found.end() :])
        rest = rest if is_sure else _MARK_BEGUN.sub("", _CODE_BEGUN.sub("", rest))
        if found[1] or not is_apart or _is_closed(rest, by_bracket=found.group()[-1] == "="):
            return True
        return False if is_sure else None
    tag = _NAMED.match(words)
    if tag is not None:
        return tag[2] in keys and _HTML.match(tag[1].strip()) is None
    if is_sure:
        return False
    begun = _BARE_BEGINS.match(words)
    if begun is not None:
        return None if any(key.startswith(begun[1]) for key in keys) else False
    return None if _QUOTED_BEGINS.match(words) or words[0] == "<" else False


def _is_closed(text: str, *, by_bracket: bool) -> bool:
    """Return whether something closes in a text that did not open there.

    `by_bracket`: a `)` behind a value counts, for Python's calls; else it belongs to words, or a smiley.
    """
    depth = 0
    for mark in _MARKS.finditer(text):
        if mark["opens"]:
            depth += 1
        elif mark["closes"]:
            depth -= 1
            end = text[: mark.start()].rstrip()[-1:]
            is_value = end in _VALUE_ENDS or (by_bracket and end.isalnum())
            if depth < 0 and (mark.group() != ")" or is_value):
                return True
            depth = max(depth, 0)
        elif mark.group() not in STOP_TOKENS and not _is_own(mark[3], text[: mark.start()]):
            return True
    return False


def _is_own(name: str | None, before: str) -> bool:
    """Return whether a closing tag belongs to words: its element opened there, or is one of HTML."""
    return bool(name) and (f"<{name}" in before or _HTML.match(name or "") is not None)
