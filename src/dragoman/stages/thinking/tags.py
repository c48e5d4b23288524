"""The tags that models put around their thinking, and which of them stand alone.

Sources (read 2026-11): the chat templates of DeepSeek-R1 and Qwen3 (`<think>`), Seed-OSS (`<seed:think>`), Magistral
(`[THINK]`), Command A (`<|START_THINKING|>`), Gemma 4 (`<|channel>thought`), MiniMax M3 (`<mm:think>`), Apertus
(`<|inner_prefix|>`), Gemini's OpenAI endpoint (`<thought>`), Kimi K3 (`<|open|>think<|sep|>`) and Muse Glimmer
(`to=self<|message|>`); OpenAI's harmony format (channels); vLLM's and SGLang's reasoning parsers for K2 Horizon
(`<ifm|think>`), Hy 4 (`<think:opensource>`), LongCat, Solar Open 2 (`<|think:start|>`), PLaMo 3, openPangu
(`[unused16]`), Kimi VL (`◁think▷`) and Inkling (`<|content_thinking|>`); Apriel's template (`[BEGIN FINAL RESPONSE]`,
which opens nothing).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from dragoman.codec.patterns import rare_pattern
from dragoman.gathered import GatheredText
from dragoman.stages.rescue.code import Code
from dragoman.stages.thinking.pairs import PAIRS, TO_USER, Pair

#: Characters of text in which a lone closing tag is looked for.
WATCHED: Final = 400_000

#: A quotation mark that opens; in a text of JSON a backslash stands before it.
_QUOTED: Final = rare_pattern(r"(?:^|[\s(\[{:=,\\])([\"'“‘«„])$")
_QUOTE_ENDS: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“"}


#: How DeepSeek V3 ends the fence of a call's arguments, and how that ends for all others.
_FENCED: Final = "```<｜tool▁call▁end｜>"
_FENCE: Final = "```\n"


#: Who speaks in harmony; LLM-jp writes a space behind each token.
_ASSISTANT: Final = ("<|start|>assistant", "<|start|> assistant")
#: What stands before a channel: the model may begin a note to itself, and another header in it.
_HEADERS: Final = tuple(
    f"{start}{note}" for start in ("", *_ASSISTANT) for note in ("", "<|channel|>commentary to=assistant")
)
HARMONY: Final = Pair(
    tuple(f"{header}<|channel|>{gap}analysis<|message|>" for header in _HEADERS for gap in ("", " ")),
    ("<|end|>", "<|return|>"),
    (*_ASSISTANT, "<|channel|>"),
)
#: Muse Glimmer's, which says to whom a message goes: its prompt may end with who speaks. What ends a message ends turns
#: of others too, and shows nothing where it stands alone.
MUSE: Final = Pair(("to=self<|message|>", "<|start|>assistant to=self<|message|>"), ("<|eom|>", "<|eot|>"), _ASSISTANT)
#: Inkling's, whose messages of all kinds end alike.
INKLING: Final = Pair(
    ("<|content_thinking|>", "<|message_model|><|content_thinking|>"),
    ("<|end_message|>", "<|content_model_end_sampling|>"),
    ("<|message_model|>", "<|content_invoke_tool_json|>"),
)
#: Those of one form for all messages, whose closing tags show nothing where they stand alone.
FRAMED: Final = (HARMONY, MUSE, INKLING)
STOPS: Final = frozenset(stop for pair in FRAMED for stop in pair.stops)
#: What opens harmony's text for the user.
HARMONY_TEXT: Final = tuple(
    f"{header}<|channel|>{gap}{channel}<|message|>"
    for header in _HEADERS
    for gap in ("", " ")
    for channel in ("final", f"final <|constrain|>{gap}json", "commentary")
)
#: Harmony as a whole message with its tokens taken away: how it begins, and what ends its analysis.
UNMARKED: Final = re.compile(r"(?:assistant)?analysis(?=[^\W\d_]|[\"'“])")
UNMARKED_END: Final = rare_pattern(r"(?<![\s\"'`“])assistant(?:final|(?=commentary to=functions\.))")
#: A name in code begins in the same way.
UNMARKED_NAME: Final = rare_pattern(r"(?:assistant)?analysis\w{0,64}\s{0,8}[=(\[{]")
#: What ends a text that is only shown: what follows is a part of its own.
SHOWN_ENDS: Final = (*MUSE.closers, *MUSE.stops)
_COHERE_END: Final = "<|END_OF_TURN_TOKEN|>"
#: What opens a text for the user, and what ends it.
TEXTS: Final = {
    **dict.fromkeys(HARMONY_TEXT, HARMONY.closers),
    "<|open|>response<|sep|>": ("<|close|>response<|sep|>",),
    **dict.fromkeys(TO_USER, SHOWN_ENDS),
    "<|content_text|>": INKLING.closers,
    "<|message_model|><|content_text|>": INKLING.closers,
    "<|START_TEXT|>": ("<|END_TEXT|>", _COHERE_END),
    "<|START_RESPONSE|>": ("<|END_RESPONSE|>", _COHERE_END),
}
#: What ends a turn behind such a text; alone, it is text.
TURN_ENDS: Final = (INKLING.closers[1], _COHERE_END, "<|close|>message<|sep|>")
_UNMARKED_WORD: Final = "assistantanalysis"
#: What may become the end, at the end of a text.
UNMARKED_HELD: Final = len("xassistantcommentary to=functions.")


def may_be_unmarked(text: str) -> bool:
    """Return whether more text may show that a message is harmony without its tokens.

    It may from its first letter on, so that the cut of the text does not matter.
    """
    return _UNMARKED_WORD.startswith(text) or "analysis".startswith(text)


_LONG: Final = 256  # characters


def _beginning(mark: str, literals: Iterable[str]) -> str:
    """Return a pattern of a literal's first character, and of its second one if that has come."""
    seconds = {literal[1:2] for literal in literals if literal[0] == mark}
    return rf"{re.escape(mark)}(?:{'|'.join(map(re.escape, sorted(seconds)))}|\Z)"


class Marks:
    """Literals to find in text that comes in pieces."""

    __slots__ = ("_begun", "_longest", "_marks", "_partial", "pattern")

    def __init__(self, literals: Iterable[str]) -> None:
        ordered = sorted(literals, key=len, reverse=True)
        self.pattern = rare_pattern("|".join(map(re.escape, ordered)))
        self._marks = sorted({literal[0] for literal in ordered})
        # Every alternative begins with a letter of its own: so the search skips all others at once.
        self._begun = re.compile("|".join(_beginning(mark, ordered) for mark in self._marks)).search
        self._longest = len(ordered[0])
        self._partial = frozenset(literal[:size] for literal in ordered for size in range(1, len(literal)))

    def first(self, text: str, position: int = 0) -> re.Match[str] | None:
        """Return where one may begin, or None."""
        if len(text) > _LONG and not any(mark in text for mark in self._marks):  # a hundred times as fast
            return None
        return self._begun(text, position)

    def half(self, text: str) -> int:
        """Return the number of characters at the end of the text with which one may have begun."""
        if self.first(text, max(0, len(text) - self._longest)) is None:
            return 0
        for size in range(min(self._longest - 1, len(text)), 0, -1):
            if text[-size:] in self._partial:
                return size
        return 0


class Tags:
    """The patterns made of the pairs."""

    __slots__ = ("closers", "known", "pairs", "start")

    def __init__(self, pairs: tuple[Pair, ...]) -> None:
        self.pairs = pairs
        self.known = {opener: pair for pair in (*reversed(pairs), *FRAMED) for opener in pair.openers}
        closers = [closer for pair in pairs for closer in pair.closers]
        self.closers = Marks(closers)
        self.start = Marks([*self.known, *closers, *TEXTS, *TURN_ENDS])


KNOWN: Final = Tags(PAIRS)


class Watch:
    """Tracks the text so far to tell whether a closing tag in it stands alone."""

    __slots__ = ("_code", "_last", "_passed", "_size", "_unclosed")

    def __init__(self) -> None:
        self._code = Code()
        self._passed = GatheredText()  # text that was not looked at yet
        self._size = 0
        self._last = ""  # the characters before
        self._unclosed: set[Pair] = set()  # their opening tag stands in the text

    def add(self, text: str) -> bool:
        """Take text that passed. Return False if there is too much of it to be thinking."""
        self._passed.add(text)
        self._size += len(text)
        return self._size <= WATCHED

    def is_quoted(self) -> bool:
        """Return whether what comes next stands right behind an opening quotation mark."""
        return _QUOTED.search((self._last + self._passed.last_two())[-2:]) is not None

    def is_alone(self, closer: str, following: str, pairs: Sequence[Pair]) -> bool | None:
        """Return whether the next closing tag closes nothing and stands in no code, quotation marks or sentence.

        In a sentence it has white space of its line on both sides. None until enough is known of what follows.
        """
        before = _QUOTED.search((self._last + self._passed.last_two())[-2:])
        if before is not None:
            end = following[:2].removeprefix("\\")
            if not end:
                return None
            if end[0] == _QUOTE_ENDS[before[1]]:
                return False
        text = self._passed.take()
        if not self._last and text.lstrip()[:1] == "{":
            self._unclosed.update(pairs)  # a JSON answer
        self._unclosed.update(one for one in pairs if any(opener in text for opener in one.openers))
        self._code.feed(text.replace(_FENCED, _FENCE))
        self._last = (self._last + text)[-2:]
        if self._code.is_behind_space():
            behind = following.lstrip(" \t")
            if not behind:
                return None
            if behind[0] not in "\r\n" and len(behind) < len(following):
                return False
        pair = next(pair for pair in pairs if closer in pair.closers)
        return pair not in self._unclosed and not self._code.is_inside()
