"""The markers that begin the calls of families, as one pattern for all of them."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from dragoman.codec.counterparts import is_refusal
from dragoman.codec.patterns import rare_pattern
from dragoman.events import TextStart, ThinkingStart
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.code import Code
from dragoman.stages.rescue.cursor import Family
from dragoman.stages.rescue.quoted import closing_of
from dragoman.stages.rescue.xml_values import SECTION, SECTION_END
from dragoman.stages.thinking.pairs import PAIRS, TO_USER, Pair
from dragoman.stages.tool_names import may_be_prefixed

#: Letters that tell a marker from ordinary words.
_WORD_HEAD: Final = 10
#: Characters between a marker and the name of the tool that it calls.
_HEAD: Final = 200

#: A pattern that finds nothing: of no families.
_NOTHING: Final = "(?!)"
#: Messages that begin with different tools' names whose openers are kept.
_MOST_KEPT: Final = 64
#: How the tag that begins a value is written, beside the one that ends it.
_BEGINS: Final = (("</", "<"), ("<|close|>", "<|open|>"), (":end|>", ":start|>"), (SECTION_END, SECTION))

#: Why a call is refused that stands behind tags of values of its family.
_MOVED: Final = "an argument of it, or a part of one, stands before it"
#: Why one is refused behind the tag that begins a value, of whichever family.
_INSIDE: Final = "it stands in an argument of another call, which cannot be read"

#: Behind a tag that begins an argument and names none: what goes on as a sentence does behind an element, and what may.
_IN_SENTENCE: Final = rare_pattern(r">(?:[ \t]{1,8}\w|[.,;:!?)]{1,8}(?:\s|\Z))")
_MAY_BE: Final = rare_pattern(r"(?:>(?:[ \t]{0,8}|[.,;:!?)]{0,8}))?")

#: The tags around thinking, each with its pair.
THOUGHTS: Final = {tag: pair for pair in PAIRS for tag in (*pair.openers, *pair.closers)}


def value_begins(ends: tuple[str, ...]) -> tuple[str, ...]:
    """Return how the tags begin that open values, derived from those that end them."""
    begins = []
    for end in ends:
        for closing, opening in _BEGINS:
            if closing in end:
                begins.append(end.replace(closing, opening).removesuffix("<|sep|>").rstrip(">|"))
                break
    return tuple(begins)


def parameter_begins(ends: tuple[str, ...]) -> frozenset[str]:
    """Return how the tags begin that open parameters, those of keys too, derived from what ends their values."""
    begins = value_begins(ends)
    return frozenset((*begins, *(begin.replace("arg_value", "arg_key") for begin in begins))) - {SECTION}


@functools.lru_cache(maxsize=256)
def value_tags(family: Family) -> frozenset[str]:
    """Return what begins and ends a family's values. Before a call such a tag shows that the call lacks something."""
    return parameter_begins(family.value_ends).union(family.value_ends) - {SECTION_END}


@functools.lru_cache(maxsize=256)
def closings(family: Family) -> tuple[tuple[str, str], ...]:
    """Return what begins a family's calls and has an end of its own, each with that end."""
    ends = ((opener, closing_of(opener)) for opener in family.openers)
    return tuple((opener, end) for opener, end in ends if end and end not in family.openers)


class Markers:
    """The markers of some families, with everything that does not depend on a text.

    Attributes:
        openers: finds a whole marker or tag, the longest one at a place.
        first: finds where a marker may begin.
        partial: all proper beginnings of markers.
        partial_on_line: those of them that count only at the start of a line.
        longest: the length of the longest marker.
        repeated: a marker that follows itself, many times.
        tags: those that begin or end values or thinking, and no call.
        ends: those of them that end values.
    """

    __slots__ = (
        "_on_line", "_prompted", "_within", "ends", "first", "longest", "openers", "partial", "partial_on_line",
        "repeated", "tags",
    )  # fmt: skip

    def __init__(self, families: Sequence[Family]) -> None:
        openers = sorted({opener for family in families for opener in family.openers}, key=len, reverse=True)
        anywhere = {opener for family in families if family.where != "line" for opener in family.openers}
        any_of_them = "|".join(map(re.escape, openers)) or _NOTHING
        self.tags = frozenset(THOUGHTS).union(*map(value_tags, families)).difference(openers)
        self.ends = frozenset().union(*(family.value_ends for family in families))
        marks = sorted((*openers, *self.tags), key=len, reverse=True)
        self.openers = re.compile("|".join(map(re.escape, marks)) or _NOTHING)
        self.partial = frozenset(mark[:size] for mark in marks for size in range(1, len(mark)))
        self.partial_on_line = self.partial - {
            mark[:size] for mark in (*anywhere, *self.tags) for size in range(1, len(mark))
        }
        self.longest = max(map(len, marks), default=0)
        self._prompted = [family.prompted for family in families if family.prompted is not None]
        self.repeated = re.compile(rf"({any_of_them})(?:\s*+\1){{3,}}+")
        self._on_line = {opener: _begun(opener, families, on_line=True) for opener in openers}
        self._within = {opener: _begun(opener, families, on_line=False) for opener in openers}
        self.first = re.compile("|".join(sorted({_beginning(mark) for mark in marks})) or _NOTHING)

    def call_begins(self, text: str) -> int:
        """Return where in a text a marker begins a call; its length if none does."""
        begun = (found.start() for found in self.openers.finditer(text) if found.group() not in self.tags)
        return next(begun, len(text))

    def called(self, text: str, names: Collection[str]) -> str:
        """Return which of these tools a marker in a text may call, "" if none: its name stands near behind it, and
        behind no word, as in a sentence.
        """
        ends = [found.end() for found in self.openers.finditer(text) if found.group() not in self.tags]
        if not ends:
            return ""
        known = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or _NOTHING
        named = re.compile(rf"(?<!\w)(?<!\w )(?:{known})(?!\w)").finditer(text, ends[0])
        near = (one.group() for one in named if one.start() - ends[bisect_right(ends, one.start()) - 1] <= _HEAD)
        return next(near, "")

    def held(self, text: str) -> int:
        """Return where, at the end of a text, a marker may have begun; its length if none may."""
        start = max(0, len(text) - self.longest)
        return next((place for place in range(start, len(text)) if text[place:] in self.partial), len(text))

    def begun(self, opener: str, *, is_line_start: Callable[[], bool]) -> list[tuple[Family, str]]:
        """Return the families that a whole marker begins, each with its longest one that counts at this place."""
        within = self._within.get(opener, [])
        on_line = self._on_line.get(opener, [])
        return within if within == on_line or not is_line_start() else on_line

    def on_line(self, opener: str) -> list[tuple[Family, str]]:
        """Return the same of a marker that begins its line."""
        return self._on_line.get(opener, [])

    def header(self, message: str, tools: Tools) -> str | None:
        """Return the marker with which the prompt ended, "" if with none, None while more of the message must come: the
        message goes on behind it, with a name. One that no tool has is not waited for.
        """
        for header, before, behind in self._prompted:
            if before.startswith(message):
                return None
            rest = message[len(before) :] if message.startswith(before) else ""
            written = "" if before else tools.first_name(rest)  # as it may be spelt where it stands bare
            for name in filter(None, (*tools.names_at(rest), written) if rest else ()):
                whole = f"{before}{name}{behind}"
                if message.startswith(whole):
                    return header
                if whole.startswith(message) and (
                    rest != name or may_be_prefixed(name) or tools.offered(name.rstrip(":"))
                ):
                    return None
        return ""


def is_cut(tag: str, behind: str) -> bool:
    """Return whether a tag, with the little that has come behind it, may still turn out to stand in a sentence."""
    return not behind.strip(" \t") if tag in THOUGHTS else _is_element(tag) and _MAY_BE.fullmatch(behind) is not None


def _is_element(tag: str) -> bool:
    """Return whether a tag begins an argument, whose name stands in it too, and is an element's name in any XML."""
    return tag[0] == "<" and tag[1:].isalpha()


class SeenTags:
    """The tags of values and of thinking that came as text: the calls beside one of values lack something.

    Attributes:
        moved: those of values since the last call.
    """

    __slots__ = ("_is_in_value", "_is_shown", "_thoughts", "moved")

    def __init__(self) -> None:
        self.moved: set[str] = set()
        self._is_in_value = False  # the last one began a value
        self._thoughts: set[Pair] = set()  # those whose opening tag stands in the text
        self._is_shown = False  # one that begins a value was quoted: the next one ends what it shows

    def doubt(self, family: Family) -> str:
        """Return why a call of a family that begins here is refused, or ""."""
        if self._is_in_value:
            return _INSIDE
        return "" if self.moved.isdisjoint(value_tags(family)) else _MOVED

    def see(self, found: re.Match[str], code: Code, markers: Markers, *, is_within: bool) -> str:
        """Take a tag found in a text. Return it if it tells something of the calls before it, else "".

        `is_within`: it stands in a quotation.

        A quoted tag, one that a sentence names, the end of one, and one of a call whose tool was not offered tell
        nothing.
        """
        tag, text = found.group(), found.string
        if _is_element(tag) and code.is_behind_space() and _IN_SENTENCE.match(text, found.end()):
            return ""
        is_quoted = is_within and not (code.is_line_start() or code.is_attribute())
        if (pair := THOUGHTS.get(tag)) is not None:
            behind = text[found.end() :]
            is_apart = behind[:1] in (" ", "\t") and behind.lstrip(" \t")[:1] not in ("", "\r", "\n")
            in_sentence = is_apart and code.is_behind_space()
            is_named = is_quoted or pair in self._thoughts or tag in pair.openers or in_sentence
            self._thoughts.update([pair] if tag in pair.openers else [])
            return "" if is_named else tag
        is_shown, is_end = is_quoted or self._is_shown, tag in markers.ends
        self._is_shown = is_quoted and not is_end
        if not is_shown and (is_end or not code.is_in_words()):  # a sentence names one
            self._is_in_value = not is_end
        if is_shown or tag.endswith("</"):  # which ends calls too
            return ""
        self.moved.add(tag)
        return tag


def _begun(opener: str, families: Sequence[Family], *, on_line: bool) -> list[tuple[Family, str]]:
    """Return the families that a marker begins on a line or within one, each with its longest marker."""
    fitting = [
        (family, [one for one in family.openers if opener.startswith(one) and (on_line or _is_anywhere(one, family))])
        for family in families
    ]
    return [(family, max(those, key=len)) for family, those in fitting if those]


def _is_anywhere(opener: str, family: Family) -> bool:
    """Return whether a marker counts within a line too."""
    return family.where != "line" and opener not in family.line_openers


def _beginning(opener: str) -> str:
    """Return a pattern of a marker's beginning; of a word, as much of its head as has come, because its first letters
    are common.
    """
    if not opener[0].isalnum():
        return re.escape(opener[0])
    head = opener[:_WORD_HEAD]
    pattern = re.escape(head[-1])
    for letter in reversed(head[:-1]):
        pattern = rf"{re.escape(letter)}(?:{pattern}|\Z)"
    return pattern


def shows_calls(start: TextStart | ThinkingStart) -> bool:
    """Return whether no marker counts in a part: a model quotes what it refuses, or shows it to the user."""
    return is_refusal(start.native) or (isinstance(start, TextStart) and start.behind in TO_USER)


@functools.lru_cache(maxsize=4)
def sort_families(families: tuple[Family, ...]) -> tuple[list[Family], list[Family], Markers]:
    """Return families that are found in the text, those that are the whole message, and the markers of the former."""
    found = [family for family in families if family.where != "message"]
    return found, [family for family in families if family.where == "message"], Markers(found)


@functools.lru_cache(maxsize=64)
def value_marks(families: tuple[Family, ...], name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what ends a value of a family, and what stands around its texts, by the family's name."""
    return next(((family.value_ends, family.quotes) for family in families if family.name == name), ((), ()))


class MessageOpeners(NamedTuple):
    """What begins a message of some families.

    Attributes:
        openers: each alone, and with what must follow it.
        whole: the latter.
        cut: what may become one of them.
        unnamed: the openers of families that are `named`, without a name.
    """

    openers: list[tuple[Family, str, str]]
    whole: tuple[str, ...]
    cut: frozenset[str]
    unnamed: list[tuple[Family, str, str]]

    def begun(self, message: str) -> list[tuple[Family, str]]:
        """Return the families that read a message with this beginning, each with its opener."""
        if not message.startswith(self.whole):
            return []
        return [(family, opener) for family, opener, whole in self.openers if message.startswith(whole)]

    def begun_behind(self, name: str, message: str) -> list[tuple[Family, str]]:
        """Return the same of a message that begins with the name of another tool."""
        size = len(name)
        return [(family, name + opener) for family, opener, whole in self.unnamed if message.startswith(whole, size)]


@functools.lru_cache(maxsize=_MOST_KEPT)
def message_openers(families: tuple[Family, ...], names: tuple[str, ...]) -> MessageOpeners:
    """Return what begins a message of these families. `names`: the tools that it may name."""
    unnamed = [each for family in families if family.named for each in _of(family, "")]
    openers = [each for family in families for name in (names if family.named else ("",)) for each in _of(family, name)]
    cut = {whole[:size] for _, _, whole in openers for size in range(1, len(whole))}
    return MessageOpeners(openers, tuple(whole for _, _, whole in openers), frozenset(cut), unnamed)


def _of(family: Family, name: str) -> list[tuple[Family, str, str]]:
    """Return a family's openers behind a name, alone and with what must follow."""
    return [
        (family, f"{name}{opener}", f"{name}{opener}{following}")
        for opener in family.openers
        for following in family.followed_by
    ]
