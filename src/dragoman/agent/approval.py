"""Decide which actions need approval: all but reading, unless the user's rule or an earlier yes to the same covers
them.

A rule is `TOOL` or `TOOL:PATTERN`. The pattern is compared with the action word by word: a command's words, a path's
components, an address and its path. `*` alone matches any word, inside a word any characters but "/", and `**` any
number of words. In commands no wildcard matches an option (a word that begins with "-"), because many programs run
other programs by option. The beginning of a text never allows the rest.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Final, final

import msgspec

from dragoman.agent.safe_text import hidden_character
from dragoman.agent.tool_plan import Plan, Taint
from dragoman.errors import UsageError

#: Tools whose pattern is a path, and those whose pattern is a command or an address.
_PATH_TOOLS: Final = frozenset({"read", "list", "search", "edit", "write"})
_NAME: Final = re.compile(r"[A-Za-z_][\w.-]*")


#: A rule that says something, by tool.
_EXAMPLES: Final = {
    "run": "run:make test",
    "fetch": "fetch:https://docs.python.org/3/**",
    "edit": "edit:src/**",
    "write": "write:src/**",
    "read": "read:src/**",
}
_EXAMPLE: Final = "TOOL:PATTERN"


@final
class Rule(msgspec.Struct, frozen=True):
    """A rule of the user. `words` None: it covers every call of the tool."""

    tool: str
    words: tuple[str, ...] | None
    text: str


def parse_rule(text: str) -> Rule:
    """Parse `TOOL[:PATTERN]`.

    Raises:
        UsageError: the text is not a rule, or allows everything of a tool that may do anything.
    """
    tool, separator, pattern = text.partition(":")
    if not _NAME.fullmatch(tool) or hidden_character(text) is not None:
        raise UsageError(f"expected TOOL or TOOL:PATTERN, got {text[:80]!r}")
    if tool == "shell":
        if not pattern:
            raise UsageError("expected shell:SCRIPT with the whole script: a shell may do anything")
        return Rule(tool, (pattern,), text)
    if not separator:
        return Rule(tool, None, text)
    try:
        words = words_of(tool, pattern)
    except ValueError as problem:
        raise UsageError(f"expected a command after run:, got {pattern[:80]!r}: {problem}") from None
    if not words or all(set(word) == {"*"} for word in words):
        raise UsageError(f"{text[:80]!r} would allow everything of {tool}; name what: {_EXAMPLES.get(tool, _EXAMPLE)}")
    return Rule(tool, words, text)


def words_of(tool: str, pattern: str) -> tuple[str, ...]:
    """Return a pattern's words. Raises ValueError for a command with an open quote."""
    if tool == "run":
        return tuple(shlex.split(pattern))
    if tool == "fetch":
        return address_words(pattern)
    if tool in _PATH_TOOLS:
        return tuple(part for part in pattern.split("/") if part not in ("", "."))
    return (pattern,)


def address_words(url: str) -> tuple[str, ...]:
    """Return an address as words: scheme and host, each component of the path, then the query with its "?"."""
    scheme, _, rest = url.partition("://")
    path, mark, query = rest.partition("?")
    host, *parts = path.split("/")
    return (f"{scheme.lower()}://{host.lower()}", *(part for part in parts if part), *([f"?{query}"] if mark else ()))


@final
class Approvals:
    """The approvals of this session. A grant covers identical actions, and ends with the session."""

    __slots__ = ("_granted", "_rules", "is_confined")

    def __init__(self, rules: Iterable[Rule] = (), *, is_confined: bool = False) -> None:
        """Create it. `is_confined`: commands run in a sandbox without network, so `run` may be allowed as a whole."""
        self._rules = tuple(rules)
        self._granted: set[str] = set()
        self.is_confined = is_confined

    @property
    def rules(self) -> tuple[str, ...]:
        """Return the rules in force, as the user wrote them."""
        return tuple(rule.text for rule in self._rules)

    def covers(self, plan: Plan, *, taint: Taint = "none") -> bool:
        """Return whether the action may be done without asking.

        Args:
            taint: which foreign text has entered the conversation since the user last spoke. After text of files and
                commands, an action that reaches outside needs a rule that names its host. After text from outside only
                rules with a pattern apply: they name the action, whoever had the idea.
        """
        if plan.asks == "never":
            return True
        if plan.asks == "always":
            return False
        if taint != "outside" and plan.identity in self._granted:
            return True
        return any(self._rule_covers(rule, plan, taint=taint) for rule in self._rules)

    def withheld(self, plan: Plan, *, taint: Taint) -> str | None:
        """Return the rule that would cover the action without the foreign text, or None."""
        if plan.asks != "unless-ruled" or taint == "none":
            return None
        return next((rule.text for rule in self._rules if self._rule_covers(rule, plan, taint="none")), None)

    def grant(self, plan: Plan) -> None:
        """Allow identical actions for the rest of the session."""
        if plan.asks != "always":
            self._granted.add(plan.identity)

    def _rule_covers(self, rule: Rule, plan: Plan, *, taint: Taint) -> bool:
        if rule.tool != plan.tool:
            return False
        if rule.words is None:
            # Who names a tool of theirs, or of a server, names with whom it speaks; a command runs in a sandbox.
            holds = taint == "none" or (taint == "folder" and plan.kind != "network")
            return holds and (plan.kind != "run" or self.is_confined)
        if plan.tool == "shell":
            return rule.words == plan.subject
        if taint != "none" and plan.kind == "network" and "*" in rule.words[0]:
            return False  # it names no host
        return _fits(rule.words, plan.subject, options=plan.kind != "run")


def _fits(pattern: tuple[str, ...], words: tuple[str, ...], *, options: bool) -> bool:
    """Return whether words match a pattern. `options`: a wildcard may match a word that begins with "-"."""
    reached = {0}  # how many words may have been taken, after each word of the pattern
    for wanted in pattern:
        if wanted == "**":
            for place, word in enumerate(words):
                if place in reached and (options or not word.startswith("-")):
                    reached.add(place + 1)
        else:
            reached = {start + 1 for start in reached if start < len(words) and _is(wanted, words[start], options)}
    return len(words) in reached


def _is(wanted: str, word: str, options: bool) -> bool:
    if "*" not in wanted:
        return wanted == word
    if word.startswith("-") and not wanted.startswith("-") and not options:
        return False
    return wanted == "*" or _is_like(wanted, word)


def _is_like(wanted: str, word: str) -> bool:
    """Return whether a word matches one with `*` in it, in linear time.

    The first match of each piece is the right one: a later match would only widen a gap, across the "/" that ends it.
    """
    first, *middle, last = wanted.split("*")
    if not word.startswith(first) or not word.endswith(last) or len(word) < len(first) + len(last):
        return False
    place, end = len(first), len(word) - len(last)
    for piece in middle:
        found = word.find(piece, place, end)
        if found < 0 or "/" in word[place:found]:
            return False
        place = found + len(piece)
    return "/" not in word[place:end]
