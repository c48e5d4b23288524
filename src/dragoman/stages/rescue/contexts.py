"""Contexts that show text nobody says now: markup elements, comments, tool results, other speakers' turns, tables,
diffs, logs.

Calls in them are quoted, so they stay text. This is the one place that names such contexts; `code.py` follows them.
Sources:
HTML (elements whose text is shown as it is), CommonMark 0.31 and GitHub's tables, unified diffs, and the chat templates
of the families of this package (read 2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from dragoman.codec.patterns import rare_pattern

#: Elements whose text is an example, a quotation or what a program or somebody else said.
_ELEMENTS: Final = frozenset({
        "pre", "code", "samp", "kbd", "tt", "xmp", "listing", "textarea", "blockquote", "q", "cite", "script",
        "style", "template", "noscript", "del", "ins", "result", "results", "output", "outputs", "observation",
        "observations", "stdout", "stderr", "log", "logs", "document", "documents", "history", "conversation",
        "transcript", "human", "toolresponse", "toolresult", "tooloutput", "functionresponse", "functionresult",
        "nowiki", "syntaxhighlight", "details",
})  # fmt: skip
#: The same for a word of a name: `<bad_example>`, `<sample-call>`.
_WORDS: Final = frozenset({
        "example", "examples", "sample", "samples", "snippet", "snippets", "quote", "quoted", "quotation",
        "transcript", "excerpt",
})  # fmt: skip
#: The same for the last word of a name of several: `<tool_response>`, `<function_results>`.
_ENDINGS: Final = frozenset({
        "response", "responses", "result", "results", "output", "outputs", "observation", "observations", "query",
        "prompt", "reminder",
})  # fmt: skip
_WORD: Final = rare_pattern(r"[a-z]+")
#: Those that sentences name too: they show their text where they begin their line.
_ON_A_LINE: Final = frozenset({"details"})
COMMENT: Final = "--"
#: What ends a section of XML in which nothing is markup.
SECTION_END: Final = "]]>"
_SECTION: Final = "<![CDATA["
#: Those in which nothing but their closing tag is markup.
_FLAT: Final = frozenset({"pre", "code", "textarea", "xmp", "listing", "script", "style", COMMENT, SECTION_END})
#: What ends a comment of C.
COMMENT_END: Final = "*/"
#: Tokens that say who speaks next, in the words behind them.
_SPEAKERS: Final = (
    "<|im_start|>", "<|start|>", "<|start_header_id|>", "<|start_of_role|>", "<start_of_turn>", "<|turn>",
    "<seed:bos>",
)  # fmt: skip
_ASSISTANTS: Final = ("assistant", "model")
#: Who asks, behind the same tokens.
_ASKERS: Final = ("user", "human", "system", "developer")
#: All others that speak, behind the same tokens, and what ends their names.
_OTHER_SPEAKERS: Final = rare_pattern(
    rf"(?:{'|'.join(map(re.escape, _SPEAKERS))})\s?"
    r"(?:user|system|developer|human|tools?|functions?|ipython|observation)(?:[ \t]*+\r?\n|<\||\.\w|[ \t]to=)"
)
#: Tokens that say that somebody asks, that a tool answers, and that the assistant speaks.
_ASKING: Final = (
    "<|user|>", "<|system|>", "<|im_user|>", "<|im_system|>", "<|USER_TOKEN|>", "<|SYSTEM_TOKEN|>", "<｜User｜>",
    "[INST]", "<｜hy_User｜>", "<role>HUMAN</role>", "<role>SYSTEM</role>", "[|user|]", "[|system|]", "<|user_start|>",
    "<|system_start|>", "<|userprompt|>", "<|prompter|>", "<SPECIAL_11>User",
    *(speaker + word for speaker in (*_SPEAKERS, "<|header_start|>", "<|begin|>") for word in _ASKERS),
)  # fmt: skip
_OTHERS: Final = (*_ASKING, "<|observation|>", "<|tool|>")
_OWN: Final = tuple(speaker + word for speaker in _SPEAKERS for word in _ASSISTANTS)
_TURN_ENDS: Final = (
    "<|im_end|>", "<|end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<turn|>", "<seed:eos>", "<|end_of_text|>",
    "<|endoftext|>", "<|END_OF_TURN_TOKEN|>", "<|assistant|>", "<|im_assistant|>", "<|CHATBOT_TOKEN|>",
    "<｜Assistant｜>", "[/INST]",
)  # fmt: skip
TURN: Final = "turn"
#: What nothing ends: a turn of who asks, with the answer to it, is made up.
ASKED: Final = "asked"
TURNS: Final = (TURN, ASKED)
#: The same in words: a line begins with who speaks, or is a heading of it.
_WHO: Final = (
    r"[ \ufffc]{0,3}(?:(#{1,6} {1,3})|\[Round \d{1,3}\] )?[*_\[(]{0,3}(?:%s)[\])*_]{0,3} ?(?:[:：]|(?(1)\s*+\Z|(?!)))"
)
_ASKER: Final = rare_pattern(
    _WHO % "(?i:user|human|usuario|usuário|utilisateur|benutzer|nutzer|пользователь)|用户|ユーザー|사용자"
    "|(?(1)Instruction|(?!))" + r"|\]~b\](?:user|system)"
)
#: The turn of Anthropic's prompts: what follows answers one that is made up. A heading or a bold word is a document's.
_HUMAN: Final = rare_pattern(r"Human:(?:\s|\Z)")
#: A turn and its answer on one line, as Vicuna's template has them.
_ROUND: Final = rare_pattern(r"(?:(?!USER:).)*+USER: .*ASSISTANT:")
#: A field that names a model or a program: nobody speaks.
_FIELD: Final = (
    r"(?![^:：]{0,16}(?i:model|agent)\W{0,3}[:：][*_]{0,3} {0,3}[`\"']?[^\W\d][^\s\d/_]*+[\d/_]\S*+\s*+(?:\(|\Z))"
)
_ANSWERER: Final = rare_pattern(
    _FIELD
    + _WHO
    % "(?i:(?:ai[ -]?)?assistant|ai|model|bot|chatbot|chatgpt|claude|gemini|gpt|llama|qwen|agent|asistente"
    "|assistente|assistent|ассистент)|助手|アシスタント|어시스턴트|(?(1)Response|(?!))" + r"|\]~b\]ai"
)
#: Tokens around what a tool gave or what is offered, and what closes them.
_RESULTS: Final = {
    "[TOOL_RESULTS]": "[/TOOL_RESULTS]",
    "[AVAILABLE_TOOLS]": "[/AVAILABLE_TOOLS]",
    "<|tool_response>": "<tool_response|>",
    "<|tool_response|>": "<|/tool_response|>",
    "<|tool_response_start|>": "<|tool_response_end|>",
    "<start_function_response>": "<end_function_response>",
    "<|START_TOOL_RESULT|>": "<|END_TOOL_RESULT|>",
    "<｜tool▁outputs▁begin｜>": "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>": "<｜tool▁output▁end｜>",
}
#: Marks around what other markup than HTML shows as it is, and what closes them: BBCode, LaTeX, Org, MediaWiki.
_SHOWING: Final = {
    "<source lang=": "</source>",
    **{f"[{name}{end}": f"[/{name}]" for name in ("code", "quote", "noparse") for end in ("]", "=")},
    **{
        f"\\begin{{{name}}}": f"\\end{{{name}}}"
        for name in ("verbatim", "Verbatim", "lstlisting", "minted", "alltt", "listing", "comment")
    },
    **{
        f"#+{begin}_{name}": f"#+{end}_{name}"
        for begin, end, names in (
            ("BEGIN", "END", ("SRC", "EXAMPLE", "QUOTE")),
            ("begin", "end", ("src", "example", "quote")),
        )
        for name in names
    },
}
_PAIRED: Final = {**_RESULTS, **_SHOWING}


def _behind(first: str, literals: Iterable[str]) -> str:
    """Return a pattern of those literals that begin with a character, behind it."""
    ends = sorted((one[1:] for one in literals if one[0] == first), key=len, reverse=True)
    bars = [end[1:] for end in ends if end[0] == "|"]
    told = [re.escape(end) for end in ends if end[0] != "|"] + (
        [rf"\|(?:{'|'.join(map(re.escape, bars))})"] if bars else []
    )
    return rf"(?<={re.escape(first)})(?:{'|'.join(told)})"


_BACKSLASH: Final = chr(92)  # no f-string holds one before Python 3.12
_OPENING, _CLOSING = (*_OTHERS, *_PAIRED), (*_TURN_ENDS, *_PAIRED.values())
#: Every mark of a context and of quoting: its first character, then a named group for each kind.
MARK: Final = rare_pattern(
    r"[`\"“”„«»‹›「」『』《》<\[\]\\#-](?:"
    r"(?P<ticks>(?<=`)`*+)|(?P<quote>(?<=[\"“”„«»‹›「」『』《》]))|(?P<comment_end>(?<=-)->|(?<=\])\]>)"
    rf"|(?P<speaker>{_behind('<', _SPEAKERS)}(?:{'|'.join((*_ASSISTANTS, *_ASKERS))})?)"
    rf"|(?P<other>{'|'.join(_behind(first, _OPENING) for first in '<[#' + _BACKSLASH)})"
    rf"|(?P<turn_end>{'|'.join(_behind(first, _CLOSING) for first in '<[#' + _BACKSLASH)})"
    r"|(?P<comment>(?<=<)!(?:--|\[CDATA\[))"
    r"|(?P<end>(?<=<)/(?P<end_name>[A-Za-z][\w.:-]{0,63})\s*+>)"
    r"|(?P<begin>(?<=<)(?P<name>[A-Za-z][\w.:-]{0,63})(?:[\s/][^<>`]*+)?>))"
)
_TOKENS: Final = (*_OPENING, *_CLOSING, "<!--", "-->", _SECTION)
#: What one of them may begin with: all but elements.
_PARTIAL: Final = frozenset(token[:size] for token in (*_TOKENS, *_OWN) for size in range(1, len(token)))
_TAG_BEGUN: Final = rare_pattern(r"</?(?:[A-Za-z][\w.:-]{0,63})?\s?$")
_OPEN_TAG: Final = rare_pattern(r"<([A-Za-z][\w.:-]{0,63})(?:\s[^<>`]*+)?$")
#: Characters at the end of a text in which a mark may have begun.
_LONGEST: Final = 1000
_LONGEST_TOKEN: Final = 40


def begun(text: str) -> str:
    """Return the end of a text with which a mark may have begun, or ""."""
    place = text.rfind(_SECTION[:2], -len(_SECTION))
    if place >= 0 and _SECTION.startswith(text[place:]):
        return text[place:] if text[place:] != _SECTION else ""
    start = max(0, len(text) - _LONGEST)
    place = max(text.rfind("<", start), text.rfind("[", start), text.rfind("\\", start), text.rfind("#", start))
    if place >= 0:
        tail = text[place:]
        if len(tail) <= _LONGEST_TOKEN and may_go_on(tail):
            return tail
        if ">" not in tail and (_TAG_BEGUN.match(tail) is not None or _tag(tail)):
            return tail
    size = len(text) - len(text.rstrip("-")) if text[-1:] == "-" and not text.endswith("<!--") else 0
    return "--"[:size]


def may_go_on(mark: str) -> bool:
    """Return whether a mark may be the beginning of a longer one."""
    return mark in _PARTIAL


def opened_by(text: str) -> str:
    """Return the name of the context that is open behind a whole token, or a begun tag at the end of its line, or
    "".
    """
    if text in _PAIRED:
        return _PAIRED[text]
    if text in _ASKING:
        return ASKED
    if text in _OTHERS or (text.startswith(_SPEAKERS) and not text.startswith(_OWN)):
        return TURN
    return _tag(text)


def others_begin(text: str) -> int:
    """Return where in a text a tool's answer, an example or another speaker's turn begins; its length if none does."""
    for mark in MARK.finditer(text):
        name, token = mark["name"], mark.group()
        if name is not None and shown_by(name):
            return mark.start()
        if mark["other"] is not None and token not in _SHOWING:
            return mark.start()
        if mark["speaker"] is not None and _OTHER_SPEAKERS.match(text, mark.start()):
            return mark.start()
    return len(text)


def _tag(text: str) -> str:
    """Return the name of the context that is open behind a tag that has begun, and goes on."""
    found = _OPEN_TAG.match(text)
    return shown_by(found[1]) if found is not None else ""


def shown_by(name: str) -> str:
    """Return the lower-case name of an element if it shows its text, or ""."""
    name = name.lower()
    words = _WORD.findall(name)
    is_shown = name in _ELEMENTS or not _WORDS.isdisjoint(words) or (len(words) > 1 and words[-1] in _ENDINGS)
    return name if is_shown else ""


def shows_on_a_line(name: str) -> bool:
    """Return whether an element shows its text only if it begins its line."""
    return name in _ON_A_LINE


def is_named_too(mark: str) -> bool:
    """Return whether sentences may name a mark that opens a context: one of other markup than the models' own."""
    return mark in _SHOWING


def ends_turn(token: str) -> bool:
    """Return whether a speaker's turn ends with a token, or the assistant's begins."""
    return token in _TURN_ENDS or token.startswith(_SPEAKERS)


def nests(name: str) -> bool:
    """Return whether an element of the same name inside it has its own closing tag."""
    return name not in _FLAT


# ------------------------------------------------------------ lines

#: A quoted line, a row of a table, or a comment of code that stands in no fence.
#: It, a line of what a search or a pager prints (`a.py:12:`, `12|`), or one with the colours of a terminal.
_SHOWN_LINE: Final = rare_pattern(
    r"(?:[\w/\\-]|\.(?!\w{1,8}:\d))++\.\w{1,8}:\d{1,6}[:-]|\s*+\d{1,6} ?[|│→\t]|\x1b\[[\d;]{0,12}m"
    r"| {0,3}[>|]|\s*+(?://|/\*|#(?![\w#])|(?:--|;{1,4}|%{1,3}|REM)[ \t])"
)
#: A line of a log, with a time of day and how grave it is.
_LOG_LINE: Final = rare_pattern(
    r"(?=.{0,80}?\d\d:\d\d:\d\d(?!\d)).{0,80}?\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)\b"
)
#: A line that says that those behind it, further in, are text: YAML's scalars, directives and literals of
#: reStructuredText.
_ANNOUNCES: Final = rare_pattern(
    r"\s*+(?:(?:- )*+[\w.\"'-]++:\s*+[|>][+-]?\d?[+-]?\s*+$"
    r"|\.\. [\w+-]++(?::[\w+-]++)*+::|[^\s:](?:[^:]|:(?!:\s*+$))*+::\s*+$)"
)
#: What such a line may end with, a directive's beside.
_ANNOUNCING: Final = frozenset("|>:+-0123456789 \t\r")
#: A line that opens what another one closes: blocks of AsciiDoc, here-documents, texts of Python and TOML in three
#: quotation marks, templates of JavaScript, listings of Texinfo, roff and Jira.
_DELIMITER: Final = rare_pattern(r"([.+/])\1{3,}+\s*+$")
_LISTING: Final = rare_pattern(r"([-=.+_*])\1{3,}+\s*+$")
_HERE: Final = rare_pattern(r".{0,400}?<<[-~]?\s?([\"']?)([A-Z_]{2,20})\1(?=\s*+$|[ \t]*+[|>&)])")
_ATTRIBUTES: Final = rare_pattern(r"\[(?:source|listing|literal|example|quote|verse|,|%)[^\]\n]{0,200}\]\s*+$")
_LISTED: Final = rare_pattern(r"@(example|verbatim|smallexample|lisp)\s*+$|\{(code|noformat)(?::[^}\n]{0,80})?\}\s*+$")
_QUOTES: Final = ('"""', "'''")
#: What stands between quotation marks on a line, or behind one that is open at its end; an apostrophe opens none.
_SPAN: Final = rare_pattern(
    r"(?<!\w)(?:[frbu]{1,2}|-\w)?(?P<mark>[\"']|`+)(?:(?!(?P=mark))[^\\]|\\.|(?<=[^\W\d])'(?=[^\W\d]))*+(?P<end>(?P=mark)?)"
)
#: A quotation between single marks begins, and no word that lacks its first letters.
_SINGLE: Final = rare_pattern(
    r"(?:(?<!\S)'|(?<=[(\[{:=,])'(?=\S))(?!(?i:em|til|tis|twas|cause|bout|round|[a-z]|\d\ds)\b)"
)
#: Characters of a text that stand before its mark.
_LONGEST_PREFIX: Final = 2
#: What stands before a text of code: it is assigned, given to a function, or one of a list.
_BEFORE_TEXT: Final = rare_pattern(r"(?:(?:[\w(\[]|=\s?)\(|[=\[{])\s{0,2}$")
_DIFF_HEAD: Final = rare_pattern(r"@@ |diff --git |\+\+\+ |--- [^|\s]|index [0-9a-f]{4}")
_FIRST: Final = frozenset("@di+-")
_CHANGED: Final = rare_pattern(r"\+|-(?![\s-])")


def is_shown_line(line: str, kind: str) -> bool:
    """Return whether a line, as far as it has come, is a block quote, a table row, a diff line or a comment of code.

    `kind`: what the lines before it are.
    """
    if _SHOWN_LINE.match(line) is not None or kind == "rows":
        return True
    return line == "-" or _CHANGED.match(line) is not None or (kind == "diff" and line[:1] in ("-", " ", "@", "\\"))


def announces(line: str) -> bool:
    """Return whether the deeper lines behind this one are shown text."""
    return (line[-1:] in _ANNOUNCING or line.lstrip()[:3] == ".. ") and _ANNOUNCES.match(line) is not None


def has_attributes(line: str) -> bool:
    """Return whether a line describes the AsciiDoc block behind it."""
    return line[:1] == "[" and _ATTRIBUTES.match(line) is not None


def block_end(line: str, *, is_listing: bool, is_paragraph: bool) -> str:
    """Return the line that closes what this one opens or, behind a space, what closes it anywhere, or "".

    `is_listing`: the line before announces a listing; `is_paragraph`: it may go on in this one.
    """
    if (is_listing and _LISTING.match(line)) or (not is_paragraph and _DELIMITER.match(line)):
        return line.rstrip()
    for quotes in _QUOTES:
        if line.rstrip().endswith(quotes) and line.count(quotes) % 2:
            return f" {quotes}"
    if line[-1:] in ("'", '"') and line[:-1].rstrip()[-1:] in ("=", "(") and open_text(line)[0] == line[-1]:
        return f" {line[-1]}"
    listed = _LISTED.match(line) if line[:1] in "@{" else None
    if listed is not None:
        return f"@end {listed[1]}" if listed[1] else f"{{{listed[2]}}}"
    here = _HERE.match(line) if "<<" in line else None
    return here[2] if here is not None else ".fi" if line.rstrip() == ".nf" else ""


def open_text(line: str, last: int = 0, start: int = 0) -> tuple[str, int, int]:
    """Return the quotation mark of a text of code that is open at the end of a line, as far as it has come, or "".

    `last`: where the last text ends that is closed on the line; `start`: where to look on. Both are returned too, for
    more of the line.
    """
    for span in _SPAN.finditer(line, max(last, start)):
        start, is_next = span.start(), last > 0 and line[last : span.start()].strip() in (",", ":")
        if not span["end"]:
            is_code = is_next or _BEFORE_TEXT.search(line, max(start - 6, last), start) is not None
            is_text = is_code or _SINGLE.match(line, start) is not None
            return (span["mark"] if is_text else ""), last, start
        if span["end"] == "'" and span.end() == len(line):  # an apostrophe if a word goes on
            return "", last, start
        last = span.end()
    return "", last, max(len(line) - _LONGEST_PREFIX, 0)


def begins_comment(line: str) -> bool:
    """Return whether a line begins a comment of C, which lasts to the end of the line with `COMMENT_END`."""
    return line.lstrip()[:2] == "/*"


def is_logged(line: str) -> bool:
    """Return whether a line is a log's: what begins in it may go on in the lines behind it."""
    return ":" in line and _LOG_LINE.match(line) is not None


def turn_of(line: str, *, is_asked: bool) -> str:
    """Return what a line opens by its first word: `TURN` if somebody asks, up to the end of its paragraph; `ASKED` if
    a human does, or the assistant answers what was asked before; else "".
    """
    if _ASKER.match(line) is not None:
        return ASKED if _HUMAN.match(line) is not None else TURN
    is_round = "ASSISTANT:" in line and _ROUND.match(line) is not None
    return ASKED if is_round or (is_asked and _ANSWERER.match(line) is not None) else ""


def kind_behind(line: str, kind: str) -> str:
    """Return what the lines behind this one may be: "rows" of a table without bars at its edge, "diff", or ""."""
    if not kind and line[:1] not in _FIRST and "|" not in line:
        return ""
    if line.strip() == "":
        return kind if kind == "diff" and line == " " else ""  # an empty line that did not change
    if _DIFF_HEAD.match(line) is not None or _CHANGED.match(line) is not None:
        return "diff"
    if kind == "diff" and line[0] not in "- \\":
        kind = ""
    if kind == "" and "|" in line and line.lstrip()[0] != "|" and "-" in line and not line.strip("|:- \t\r"):
        return "rows"
    return kind
