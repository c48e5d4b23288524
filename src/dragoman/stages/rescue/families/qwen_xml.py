"""Qwen3-Coder, Qwen 3.5, Nemotron: `<function=NAME><parameter=KEY>value</parameter></function>`, in `<tool_call>` tags.
The opening tag may be missing."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from dragoman.codec.patterns import rare_pattern
from dragoman.gathered import GatheredText
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import Action, Close, Cursor, Family, NotACall, Parser, Piece
from dragoman.stages.rescue.heads import begun, first_told, is_call_read, is_read
from dragoman.stages.rescue.json_calls import named_call
from dragoman.stages.rescue.typed_tags import first_tag, refused, refused_head, refused_to_the_end
from dragoman.stages.rescue.xml_values import member, value_until

_NAME: Final = rare_pattern(r"[^<>\r\n]+")
#: What begins an argument; the second one as others write it.
_PARAMETERS: Final = ("<parameter=", "<parameter name=")
#: What stands behind the tag of a name.
_BODIES: Final = (*_PARAMETERS, "</function>", "{")
_MARKS: Final = rare_pattern(r"\\\"|[<'`“”‘’«»]")
#: In a value whose closing tag is missing: what may be meant for it.
_END: Final = rare_pattern(r"</|parameter>")
#: The same on a line of its own, where the tag is missing that closes the argument before it.
_UNCLOSED: Final = "\n<parameter="
_STOPS: Final = ("</parameter>", _UNCLOSED, *_PARAMETERS, "<function=", "<invoke name=")


def _parse(cursor: Cursor, tools: Tools, opener: str) -> Parser:
    if opener == "<tool_calls>":
        yield from cursor.space()
        opener = yield from cursor.expect("<tool_call>")
    if opener == "<tool_call>":
        yield from cursor.space()
        yield from cursor.expect("<function=", "<parameter=")  # quirk: Qwen 3.8 writes the one for the other
    yield from function_tag(cursor, tools, end="</tool_call>", is_wrapped=opener == "<tool_call>")
    yield from cursor.closing("</tool_call>")


def function_tag(cursor: Cursor, tools: Tools, *, end: str, is_wrapped: bool = True) -> Parser:
    """Parse the call from behind `<function=` on. `end`: the tag around it, which ends it too, if it is there."""
    name, is_head_read = yield from _head(cursor, tools)
    yield from cursor.space()
    if (yield from cursor.peek()) == "{":  # Llama's custom format
        if not is_wrapped:
            raise NotACall
        if not is_head_read:
            return (yield from refused_head(cursor, name, ("</function>", end)))
        cursor.stops = ("</function>", end)
        yield from named_call(cursor, name)
        yield from cursor.closing("</function>")
        return
    ends, calls = ("</function>", end), ("<function=", end.replace("</", "<"))
    mark = yield from first_tag(
        cursor, name, _PARAMETERS, ("</parameter>",), ends, calls=calls, is_head_read=is_head_read
    )
    if mark is None:
        return
    schema, keys, stop = tools.schema(name), list[str](), ""
    last = f"\n</function>\n{end}"  # ends the last argument too, where the tag is missing that closes it
    while mark in _PARAMETERS:
        written = yield from cursor.word(_NAME)
        closed = yield from _key_end(cursor, is_known=schema.has_member(written))
        key, more = first_told(written, schema.has_member)
        is_next = closed == ">" and schema.has_member(key) and not tools.offered(key) and key not in keys
        if stop == _UNCLOSED and not is_next and (closed or cursor.rest()):
            return (yield from refused_to_the_end(cursor, f"{stop}{written}{closed}"))
        if not closed:
            return (yield Close(""))
        is_head = not schema.has_member(key) and tools.offered(key) is not None  # of a call, told again
        is_lost = closed != ">" and (yield from cursor.sees("</parameter>", *_PARAMETERS, *ends))  # with its bracket
        if key in keys or is_head or is_lost or not is_read(more):  # two readings
            return (yield from refused(cursor, ends))
        yield member(key, keys)
        line, values = GatheredText(), value_until(cursor, tools, name, key, (*_STOPS, last))
        stop, is_plain, has_end = yield from _value(values if closed == ">" else _kept(values, line))
        if not stop:
            return (yield Close(""))
        if _has_bracket(line.text()):
            return (yield from refused(cursor, ends))
        if stop == last and is_plain:
            mark = last
        elif stop == "</parameter>" or (stop == _UNCLOSED and not has_end):
            mark = _PARAMETERS[0] if stop == _UNCLOSED else (yield from cursor.closing(*_PARAMETERS, *ends))
        else:  # `<parameter=` begins a call too, in a slip
            return (yield from refused_to_the_end(cursor, stop))
    if mark:
        yield Piece("}" if keys else "{}")
    yield Close(mark)


def _head(cursor: Cursor, tools: Tools) -> Generator[Action, None, tuple[str, bool]]:
    """Return the tool, and whether its tag has nothing else."""
    written = yield from cursor.word(_NAME)
    if not (yield from cursor.sees(*_BODIES)) and not (yield from _head_end(cursor)):
        raise NotACall  # the tag's own end may be missing before the next tag
    told, more = first_told(written, tools.offered)
    name = yield from begun(tools, told)
    return name, is_call_read(more, tools.schema(name))


def _head_end(cursor: Cursor) -> Generator[Action, None, str]:
    """Read the end of a head's tag, now and then doubled before the end of its line."""
    closed = yield from cursor.take(">")
    if closed and (yield from cursor.peek(2)) in (">\n", ">\r"):
        cursor.skip(1)
    return closed


def _key_end(cursor: Cursor, *, is_known: bool) -> Generator[Action, None, str]:
    """Read the end of a key's tag. At the end of its line it may be missing: return the line's end then."""
    closed = yield from _head_end(cursor)
    if not closed and is_known and not (yield from cursor.sees(">")):
        closed = (yield from cursor.peek()).strip("<")
    return closed


def _value(values: Generator[Action, None, str]) -> Generator[Action, None, tuple[str, bool, bool]]:
    """Yield a value as it comes. Return what ended it, and two facts about its texts.

    They are whether no text contains a quotation mark or a tag (otherwise what follows may be of the value), and
    whether one contains a closing tag, or the rest of one, which may replace the missing one.
    """
    is_plain, has_end, last = True, False, ""
    while True:
        try:
            action = next(values)
        except StopIteration as end:
            return end.value, is_plain, has_end
        if isinstance(action, Piece):
            is_plain = is_plain and not _MARKS.search(action.text)
            last += action.text
            has_end = has_end or _END.search(last) is not None
            last = last[-len("parameter>") :]
        yield action


def _kept(values: Generator[Action, None, str], line: GatheredText) -> Generator[Action, None, str]:
    """Yield a value as it comes, and keep the JSON of it up to the piece in which its first line ends."""
    is_first = True
    while True:
        try:
            action = next(values)
        except StopIteration as end:
            return str(end.value)
        if is_first and isinstance(action, Piece):
            line.add(action.text)
            is_first = "\\n" not in action.text
        yield action


def _has_bracket(written: str) -> bool:
    """Return whether the first line of a JSON text ends with a `>` that no `<` opens: the tag before it may lack it."""
    line = written.replace("\\\\", "").partition("\\n")[0].strip('" ')
    return line.endswith(">") and line.count(">") > line.count("<")


FAMILY = Family(
    name="qwen-xml",
    openers=("<tool_call>", "<function=", "<tool_calls>"),
    parse=_parse,
    source="https://huggingface.co/Qwen/Qwen3-Coder-30B-A3B-Instruct (chat template, read 2026-11-21)",
    residue=("</function>", "</tool_call>", "</tool_calls>", "<|im_end|>", "<|endoftext|>"),
    value_ends=("</parameter>",),
)
