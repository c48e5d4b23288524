"""What stands behind a call that its own brackets closed: words, another call, or the rest of its arguments.

Such a call may have closed too early: `{"command": "ls"}, "timeout": 5}`. Then what was meant is a longer body, a few
brackets were written into it, and behind them comes the rest of that body, up to the call's own closing tag, another
call or the end. So a text behind a call has one reading, "the call was whole, and then come words", unless it is

- the **rest of an object**: a bracket closes there that nothing opened. The body's rest ends with the brackets that
  closed too early, so that this holds for every rest that is not cut itself. It is looked for twice: as if the body was
  left between two values, and, where its last value is a text, as if it was left inside of it, so that the first
  quotation mark ends that text. A bracket of quoted text ("}") is none of this. Of Python's calls a `)` counts only
  where it ends a value: words have faces and numbered lists.
- a **member**: a key and its colon, whose brackets may be missing. A quoted key right behind the call is one, whatever
  it is called, and so is any key behind a comma. Elsewhere it must be an argument of the tool that the call does not
  have, quoted, at the beginning of a line or in the call's own line. An object that follows counts with any key of the
  tool.
- **in its tags**: words, and then the call's own closing tag.

Closing tags of other families, tokens and fences in between are **closing residue** and say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, Literal, NamedTuple, TypeAlias

from dragoman.stages.rescue.behind.brackets import Brackets
from dragoman.stages.rescue.json_calls import CALL_BEGINS

Kind: TypeAlias = Literal["nothing", "words", "another call", "rest of an object", "a member", "in its tags"]
#: What has two readings.
GOES_ON: Final[frozenset[Kind]] = frozenset({"rest of an object", "a member", "in its tags"})
#: Characters behind a call in which all of this is told. From there on brackets alone are looked at.
AHEAD: Final = 200

_SEPARATORS: Final = re.compile(r"[\s,;]*+")
#: Closing tags and tokens, of whatever family.
_CLOSINGS: Final = re.compile(r"(?:\s*+(?:</[^<>\s]{1,80}+>|<[|｜][^<>\"\n]{1,80}+>|```))++")
#: A call of Python's form.
_PYTHON_BEGINS: Final = re.compile(r"[\w.]{1,200}+\(")
#: Keys, with their quotation marks or without.
_QUOTED: Final = re.compile(r"[\"'“”‘’]([\w.-]{1,64}+)[\"'“”‘’]\s{0,8}:(?!-?[()])")
_BARE: Final = re.compile(r"(?<![\w.-])([\w.-]{1,64}+)[\"']?\s{0,8}(?:(=)(?!=)|:)")
#: A brace behind which no object begins.
_NO_OBJECT: Final = re.compile(r"\{\s{0,8}(?:\d|[^\s\w\"'“”‘’{}])")
_LINE: Final = re.compile(r"\n[ \t,;]{0,16}([\w.-]{1,64}+)\s{0,8}(?:=(?!=)|:)")


class Facts(NamedTuple):
    """What is known of the call. `closes`: its last bracket. `ends_in_text`: whether its last value is a text. `keys`:
    all of its tool's arguments, in whatever depth; `missing`: those that it does not have; `roots`: those of them that
    are no part of another. `ends`: what closes such a call, as it begins."""

    closes: str
    ends_in_text: bool
    keys: Collection[str]
    missing: Collection[str]
    roots: Collection[str]
    tags: tuple[tuple[str, str], ...]

    def brackets(self) -> Brackets:
        """A reader of what follows."""
        return Brackets(self.closes, self.tags, ends_in_text=self.ends_in_text)


def kind_of(text: str, facts: Facts, *, is_closed: bool) -> Kind:
    """What a text behind a call is, from its brackets on. `is_closed`: its own closing tag follows."""
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
    if _is_member(words, facts, has_comma=has_comma, in_line="\n" not in text[:place]):
        return "a member"
    return "in its tags" if is_closed else "words"


def _is_member(words: str, facts: Facts, *, has_comma: bool, in_line: bool) -> bool:
    """Whether what stands behind a call names an argument of it. `in_line`: it begins in the call's own line."""
    first = _BARE.match(words)
    if (
        _QUOTED.match(words)
        or _NO_OBJECT.match(words)
        or (first is not None and (has_comma or (first[2] and facts.closes == ")")))
    ):
        return True
    quoted = _QUOTED.findall(words)
    if any(key in facts.missing for key in quoted) or (words[0] == "{" and any(key in facts.keys for key in quoted)):
        return True
    line, _, rest = words.partition("\n")
    bare = [key for key, _ in _BARE.findall(line)] if in_line else _LINE.findall("\n" + line)
    return any(key in facts.roots for key in (*bare, *_LINE.findall("\n" + rest)))
