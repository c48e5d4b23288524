"""What stands behind a call that its own brackets closed: words, another call, or the rest of its arguments.

Such a call may have closed too early: `{"command": "ls"}, "timeout": 5}`. Then what was meant is a longer body, a few
brackets were written into it, and behind them comes the rest of that body, up to the call's own closing tag, another
call or the end. So a text behind a call has one reading, "the call was whole, and then come words", unless it is

- the **rest of an object**: a bracket closes there that nothing opened. The body's rest ends with the brackets that
  closed too early, so that this holds for every rest that is not cut itself. It is looked for twice: as if the body was
  left between two values, and, where its last value is a text, as if it was left inside of it, so that the first
  quotation mark ends that text. A bracket of quoted text ("}") is none of this. Of Python's calls a `)` counts only
  where it ends a value: words have faces and numbered lists.
- a **member**: a key, its colon and the beginning of a value, whose brackets may be missing. A quoted key right behind
  the call is one, whatever it is called, and so is any key behind a comma. Elsewhere it must be an argument of the tool
  that the call does not have, quoted, at the beginning of a line or in the call's own line. An object that follows
  counts with any key of the tool. What words show as code counts for a call without arguments alone, and there a key
  counts without a value too.
- **in its tags**: words, and then the call's own closing tag.

Closing tags of other families, tokens and fences in between are **closing residue** and say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from dragoman.codec.patterns import rare_pattern
from dragoman.stages.rescue.behind.brackets import Brackets
from dragoman.stages.rescue.json_calls import CALL_BEGINS

Kind: TypeAlias = Literal["nothing", "words", "another call", "rest of an object", "a member", "in its tags"]
#: What has two readings.
GOES_ON: Final[frozenset[Kind]] = frozenset({"rest of an object", "a member", "in its tags"})
#: Characters behind a call in which all of this is told. From there on brackets alone are looked at.
AHEAD: Final = 200

_SEPARATORS: Final = rare_pattern(r"[\s,;]*+")
#: Closing tags and tokens, of whatever family.
_CLOSINGS: Final = rare_pattern(r"(?:\s*+(?:</[^<>\s]{1,80}+>|<[|｜][^<>\"\n]{1,80}+>|```(?!\w)))++")
#: A call of Python's form.
_PYTHON_BEGINS: Final = rare_pattern(r"[\w.]{1,200}+\(")
#: The beginning of a value, of JSON or of Python, or the end of what is looked at; else words.
VALUE: Final = r"(?P<value>\s{0,40}(?:[\"'“‘\[{]|<[|e]|[-+]?\.?\d|(?:true|false|null|True|False|None)\b|\Z))?"
#: Keys, with their quotation marks or without.
_QUOTED: Final = rare_pattern(rf"[\"'“‘]([\w.-]{{1,64}}+)[\"'”’]\s{{0,8}}:(?!-?[()]){VALUE}")
_BARE: Final = rare_pattern(rf"(?<![\w.-])([\w.-]{{1,64}}+)[\"']?\s{{0,8}}(?:=(?![=>])|:){VALUE}")
_LINE: Final = rare_pattern(rf"\n[ \t,;]{{0,16}}([\w.-]{{1,64}}+)\s{{0,8}}(?:=(?![=>])|:){VALUE}")
_ASSIGNED: Final = rare_pattern(r"[\w.-]{1,64}+\s{0,8}=(?![=>])")
#: A brace behind which no object begins, but the rest of one or of a list.
_NO_OBJECT: Final = rare_pattern(r"\{\s{0,8}(?:[,:\]]|[-+]?\d)")
#: A set of numbers or the like, a place in a text to fill in.
_SET: Final = rare_pattern(r"\{[^{}\[\]\"':]*+\}")
#: Code in words: a fence up to its end, or to the end of what is looked at; inline code.
_CODE: Final = rare_pattern(r"\n[ \t]*+```(?:(?!```)[\s\S])*+(?:```)?|`[^`\n]++`")


class Facts(NamedTuple):
    """The facts about a call.

    Attributes:
        closes: its last bracket.
        ends_in_text: its last value is a text.
        is_empty: it has no arguments.
        keys: all arguments of its tool, in whatever depth.
        roots: those that it lacks and that are no part of another.
        tags: what closes such a call, as it begins.
    """

    closes: str
    ends_in_text: bool
    is_empty: bool
    keys: Collection[str]
    roots: Collection[str]
    tags: tuple[tuple[str, str], ...]

    def brackets(self) -> Brackets:
        """Return a reader of what follows."""
        return Brackets(self.closes, self.tags, ends_in_text=self.ends_in_text)


def kind_of(text: str, facts: Facts, *, is_closed: bool) -> Kind:
    """Return the kind of a text behind a call, from its brackets on. `is_closed`: its own closing tag follows."""
    lead = _SEPARATORS.match(text)
    assert lead is not None
    closings = _CLOSINGS.match(text, lead.end())
    place = lead.end() if closings is None else closings.end()
    more = _SEPARATORS.match(text, place)
    assert more is not None
    has_comma = "," in lead.group() + more.group()
    words = text[more.end() :]
    if not words:
        return "nothing"
    brackets = facts.brackets()
    brackets.feed(text, is_end=True)
    if brackets.goes_on:
        return "rest of an object"
    if CALL_BEGINS.match(words) or (has_comma and facts.closes == ")" and _PYTHON_BEGINS.match(words)):
        return "another call"
    if _is_member(words, facts, has_comma=has_comma, lead=text[:place]):
        return "a member"
    return "in its tags" if is_closed else "words"


def _is_member(words: str, facts: Facts, *, has_comma: bool, lead: str) -> bool:
    """Return whether the text behind a call, and behind this lead, names an argument of it."""
    if _NO_OBJECT.match(words) and not (lead and _SET.match(words)):
        return True
    in_line = "\n" not in lead
    is_named = has_comma or (in_line and facts.closes == ")" and _ASSIGNED.match(words))
    if _is_key(_QUOTED.match(words), facts) or (is_named and _is_key(_BARE.match(words), facts)):
        return True
    if words[0] == "{" and any(key in facts.keys for key in _named(_QUOTED, words, facts)):
        return True
    keys = facts.keys if facts.is_empty else facts.roots
    told = words if facts.is_empty else _CODE.sub(" ", words)
    line, _, rest = told.partition("\n")
    bare = _named(_BARE, line, facts) if in_line else _named(_LINE, f"\n{line}", facts)
    return any(key in keys for key in (*_named(_QUOTED, told, facts), *bare, *_named(_LINE, f"\n{rest}", facts)))


def _is_key(found: re.Match[str] | None, facts: Facts) -> bool:
    """Return whether a key and its colon begin an argument, and no words."""
    return found is not None and (found["value"] is not None or facts.is_empty)


def _named(keys: re.Pattern[str], text: str, facts: Facts) -> Iterator[str]:
    return (found[1] for found in keys.finditer(text) if _is_key(found, facts))
