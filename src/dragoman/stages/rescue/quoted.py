"""Markers that begin no readable call.

Those in quotation marks cover text. Others begin a call that cannot be read. It
also decides which of several markers begins a text.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Final, final

import msgspec

from dragoman.codec.patterns import rare_pattern

#: Quotation marks that open, with what closes each.
QUOTE_ENDS: Final = {
    '"': '"', "'": "'", "“": "”", "”": "”", "‘": "’", "«": "»", "»": "«", "„": "“", "‹": "›", "「": "」", "『": "』",
    "《": "》",
}  # fmt: skip
#: What opens one wherever no word stands before it: no apostrophe.
_OPENING: Final = frozenset(QUOTE_ENDS) - set("'‘”")
#: What closes one of them, and is an apostrophe within a word.
_SINGLE: Final = rare_pattern(r"(['’])(?=\W)")
_APOSTROPHES: Final = ("'", "’")
#: The first character of the scripts of East Asia, which have no blank before a quotation mark.
_NO_BLANKS: Final = "\u2e80"
#: What may stand right before the quotation mark of a literal.
_PREFIX: Final = rare_pattern(r"(?:^|[^\w])(?:[fFrRbBuU]{1,2}|u8R?|LR?)$")
_PARAGRAPH_END: Final = r"\n[ \t\r]{0,80}\n"
#: An element's name, of words perhaps, before an attribute: `<｜DSML｜ invoke name="`.
_TAG: Final = rare_pattern(r"<(?!\|)([^=>]+?)(?:\s+\w+(?==))?(?:[=>]|\Z)(?!.*<)")
#: What begins a call in Harmony's form, which ends with a token of its own.
_HARMONY: Final = ("<|start|>assistant", "<|channel|>")


def opens(before: str, mark: str) -> bool:
    """Return whether a mark opens a quotation behind a text; in Swedish and Finnish it is the one that closes it."""
    last = before[-1:]
    if mark == "”":
        return last.isspace() or last in "([:="
    return mark in _OPENING and (not last.isalnum() or last >= _NO_BLANKS or _PREFIX.search(before) is not None)


def closes_single(text: str, quote: str) -> bool:
    """Return whether a quotation between single marks ends in a text that goes on behind it."""
    return quote in _APOSTROPHES and any(found[1] == quote for found in _SINGLE.finditer(text))


@functools.lru_cache(maxsize=512)
def closing_of(opener: str) -> str:
    """Return how the closing marker of an opener begins; "" if it has no distinct one."""
    if opener.startswith(_HARMONY):
        return "<|call|>"
    for begin, end in (("begin", "end"), ("start", "end"), ("START", "END"), ("prefix", "suffix")):
        if begin in opener:
            return opener.replace(begin, end)
    if opener.startswith("<|open|>"):
        return re.sub(r"<\|open\|>(\w+).*", r"<|close|>\1", opener)
    if opener.startswith("<|"):
        name = opener.strip("<|>")
        return f"<|/{name}|>" if opener.endswith("|>") else f"<{name}|>"
    tag = _TAG.search(opener)
    if tag is not None:
        return f"</{tag[1]}"
    return f"[/{opener[1:]}" if opener[:1] == "[" and opener[-1] == "]" else ""


def first_of(text: str, literals: tuple[str, ...]) -> tuple[str, bool]:
    """Return the longest literal that begins a text, or "", and whether more text cannot change it."""
    found = max(filter(text.startswith, literals), key=len) if text.startswith(literals) else ""
    if len(text) >= _longest(literals):
        return found, True
    if len(text) <= _MOST_CUT:
        return found, text not in _beginnings(literals)
    return found, not any(len(one) > len(text) and one.startswith(text) for one in literals)


@functools.lru_cache(maxsize=128)
def _longest(literals: tuple[str, ...]) -> int:
    return max(map(len, literals), default=0)


@functools.lru_cache(maxsize=128)
def _beginnings(literals: tuple[str, ...]) -> frozenset[str]:
    """Return the proper beginnings of literals that are looked for: memory is linear in a literal."""
    return frozenset(literal[:size] for literal in literals for size in range(min(len(literal), _MOST_CUT + 1)))


_MOST_HEAD: Final = 256
#: Characters of a text that is looked up among the beginnings of literals.
_MOST_CUT: Final = 256


@functools.lru_cache(maxsize=256)
def _ends(opener: str) -> re.Pattern[str]:
    """Return what ends the text that a marker covers, what may become such an end, and what tells texts of JSON."""
    closing = closing_of(opener)
    whole = f"{re.escape(closing)}|{_PARAGRAPH_END}" if closing else _PARAGRAPH_END
    begun = "".join(f"(?:{re.escape(character)}" for character in closing) + ")?" * len(closing)
    ends = (
        rf"(?P<end>{whole})|(?P<begun>\\\Z|\n[ \t\r]{{0,80}}\Z|(?!\Z){begun}\Z)"
        r"|\\[^\n]|(?P<quote>[\"“”«»‹›」』》])|(?P<open>[{\[(])|(?P<close>[}\])])"
    )
    return re.compile(ends)


class Cover:
    """A quoted marker and what it covers: itself if the quotation mark closes at once, else all up to its closing
    marker outside of the texts of its JSON.

    It never covers text past an empty line.

    Attributes:
        still_open: what closes the quotation, if the covered text ended inside of it.
    """

    __slots__ = ("_depth", "_end", "_in_string", "_is_fresh", "_is_open", "_quote", "_tail", "still_open")

    def __init__(self, opener: str, quote: str) -> None:
        self._end = _ends(opener)
        self._quote = quote
        self._is_fresh = True
        self._depth = 0  # of brackets
        self._is_open = True  # the quotation
        self._in_string = False  # in a text between them
        self._tail = ""  # what came last: an end may begin in it
        self.still_open = ""

    def end(self, text: str) -> int:
        """Return where in the next text the covered one ends; -1 if it goes on."""
        if not text:
            return -1
        if self._is_fresh and text[0] == self._quote:
            self.still_open = self._quote
            return 0
        self._is_fresh = False
        read, size, self._tail = self._tail + text, len(self._tail), ""
        for found in self._end.finditer(read):
            kind = found.lastgroup
            if kind == "begun":
                self._tail = found.group()
                break
            if kind == "end" and (not self._in_string or found.group()[0] == "\n"):
                self.still_open = self._quote if self._is_open and found.group()[0] != "\n" else ""
                return found.end() - size
            if kind == "quote" and not self._depth:
                self._is_open = self._is_open != (found.group() == self._quote)
            elif found.group() == '"':
                self._in_string = not self._in_string
            elif kind in ("open", "close") and not self._in_string:
                self._depth = max(self._depth + (1 if kind == "open" else -1), 0)
        return -1


# ------------------------------------------------------------ calls that are begun and cannot be read

# A marker and an offered name stand there, and no family reads on. Such a call is told as one that failed. Words behind
# a name are no call: a sentence may name a marker and a tool. Nor is what shows how a call is written, with dots in
# place of its arguments.


def _is_shown_behind(text: str, end: int) -> bool:
    """Return whether a placeholder for arguments stands behind a name, up to an end, or an object that shows one."""
    brace = text.find("{", 0, _MOST_HEAD)
    if brace >= 0 and _SHOWN_OBJECT.match(text, brace) is not None:
        return True
    bare = _BARE.match(text, 0, end)
    assert bare is not None
    return _SHOWN_ELEMENT.match(text, 0, end) is not None or _SHOWN.search(bare.group()) is not None


def is_shown(text: str, *, is_ended: bool) -> bool | None:
    """Return whether an object only shows how one is written; None while that is unknown."""
    if _SHOWN_OBJECT.match(text) is not None:
        return True
    return None if not is_ended and _MAY_BE_SHOWN.fullmatch(text) is not None else False


def names_place(key: str) -> bool:
    """Return whether a key is a placeholder of a template, and no name."""
    return key.startswith(("{", "…", ".."))


@final
class Begun(msgspec.Struct, frozen=True, gc=False):
    """A marker and the name of this offered tool were read, and nothing of its arguments.

    `is_body`: its object is open, so that no words follow.
    """

    name: str
    is_body: bool = False


#: Characters behind the name in which it is told.
_AHEAD: Final = 200
_BLANK_LINE: Final = rare_pattern(r"\n[ \t\r]*\n")
#: What ends the tag in which the name stands.
_HEAD_END: Final = rare_pattern(r"(?:[\"']?\s*+/?>)?\s*+")
#: What stands in place of arguments where somebody shows how a call is written: dots, a word in braces, a template's
#: expression or tag, a word in angle brackets.
DOTS: Final = ("...", "…")
_DOTS: Final = r"(?:\.\.\.|…)"
_WORD: Final = r"\{\s{0,8}[A-Za-z][\w -]{0,60}+\}"
_TEMPLATE: Final = rf"\{{\s*+{_DOTS}|\{{%|\{{\{{-?\s*+[A-Za-z_][^{{}}\"':]{{0,80}}+\}}\}}"
_ELEMENT: Final = (
    r"<(?!arg_|param|tool|func|invoke)[A-Za-z][A-Za-z_ -]{0,40}+>"
    r"(?=\s*+(?:\Z|</|<[|｜]|[}.,;\]`]|\[/)|\s++\w[^<\"{}\[\]:=]*+\Z)"  # what closes the call, or words
)
#: The same right behind a name: an ellipsis in parentheses, the groups and classes of a regular expression, an element
#: that describes a function.
_SHOWN: Final = rare_pattern(
    rf"{_WORD}|{_TEMPLATE}|\(\s*+(?:\w{{1,40}}=)?{_DOTS}\s*+\)|\(\?[:P<]|\(\.[*+]|\.[*+]\?|\\(?:\{{|[swdSWD][*+])|\[\\?[\w^]\S{{0,20}}\][*+]"
    rf"|>\s*+{_DOTS}\s*+(?:</|\Z)|<(?:description|summary|documentation)>"
)
#: A word in angle brackets behind the marks that stand behind a name.
_SHOWN_ELEMENT: Final = rare_pattern(
    rf"[\"']?(?:[\s>\]:.\d]|\[[A-Z_]{{2,20}}\]\w{{0,40}}|<[|｜][^<>\n]{{1,60}}>|json|```)*+{_ELEMENT}"
)
#: Behind a name, up to a quotation mark.
_BARE: Final = rare_pattern(r"[\"']?[^\"'“]*+")
#: The same in an object that is open: in place of all arguments, or of the first value.
_VALUE: Final = rf"(?:{_DOTS}|<[A-Za-z][\w -]{{0,40}}+>(?=\s*+[}},]))"
_KEY: Final = r"[\"'“]?[\w.-]{1,64}+[\"'”]?\s{0,8}:\s{0,8}"
_SHOWN_INSIDE: Final = rare_pattern(
    rf"(?:[^{{}}:]{{0,80}}+:)?\s*+(?:{_VALUE}|{_WORD}(?=\s*+[}},])|{_TEMPLATE}|\{{\s*+{_KEY}{_VALUE})"
)
#: An object of one, and what may become such.
_SHOWN_OBJECT: Final = rare_pattern(rf"{_WORD}|{_TEMPLATE}|\{{\s{{0,8}}{_KEY}{_VALUE}")
_MAY_BE_SHOWN: Final = rare_pattern(
    r"\{\s{0,8}(?:[A-Za-z][\w -]{0,60}+"
    r"|[\"'“]?[\w.-]{0,64}+[\"'”]?\s{0,8}(?::\s{0,8}(?:\.{0,2}|<(?:[A-Za-z][\w -]{0,40}+(?:>\s{0,8})?)?))?)"
)
#: Special tokens of a form behind the name, perhaps a word before one, and then words alone: they are no call either.
_TOKENS: Final = rare_pattern(
    r"(?:\s*+(?:\w{1,20}(?=<[|｜]))?(?:<[|｜][^<>|｜\s]{1,60}[|｜]>|\[[A-Z_]{2,20}\]))++[,.;:]?\s++\w[^<>\[\]{}|｜\"]*\Z"
)
#: What begins arguments, and no words do.
_FIRST: Final = rare_pattern(r"[{\[\"“„«]|[|｜](?=[\w>])|\]+[<\w]|<(?!/)|```")
#: The same further on: an object, a list, and a key of the tool's. Sentences name tags.
_LATER: Final = rare_pattern(
    r"\{\s{0,8}[\"'“{\[:,]|\[\s{0,8}[\"'{]|\([\"'{]|(?<![<\w])([\w.-]{1,64})[\"']?\s{0,8}[:=]\s?[\"'“\d]"
)


def is_begun(
    text: str, ends: tuple[str, ...], has_member: Callable[[str], bool], *, is_body: bool, is_ended: bool
) -> bool | None:
    """Return whether unreadable text is a call; None while too little of it has come.

    Args:
        text: what stands behind the name.
        ends: what closes the call, and what begins another.
        has_member: whether the tool has an argument of this name.
        is_body: its object is open, so that no words follow.
        is_ended: no more comes.
    """
    ahead = text[:_AHEAD]
    paragraph = _BLANK_LINE.search(ahead)
    if paragraph is not None:
        ahead = ahead[: paragraph.start()]
    elif not is_ended and len(text) < _AHEAD:
        return None
    if is_body:
        return (_SHOWN_OBJECT if ahead[:1] == "{" else _SHOWN_INSIDE).match(ahead) is None
    head = _HEAD_END.match(ahead)
    assert head is not None
    begin = head.end()
    places = [place for end in ends if (place := ahead.find(end)) >= 0]
    end = max(min(places, default=len(ahead)), begin)
    if _is_shown_behind(ahead, end):
        return False
    body = ahead[begin:end]
    if not body.strip():  # an element that holds a name is XML, a token behind one ends a call
        return bool(places) and ahead[min(places) : min(places) + 2] != "</"
    if _TOKENS.match(body):
        return False
    if _FIRST.match(body) or (body[0] == "(" and not begin):
        return True
    return any(found[1] is None or has_member(found[1]) for found in _LATER.finditer(body))
