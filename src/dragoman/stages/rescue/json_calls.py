"""Calls written as JSON objects: `{"name": …, "arguments": {…}}` under each of the keys in use."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from dragoman import _json
from dragoman._json import Json, Malformed
from dragoman.codec.patterns import rare_pattern
from dragoman.stages.offered_tools import Tools
from dragoman.stages.rescue.cursor import BODY, MORE, Action, Close, Cursor, NotACall, Open, Parser, Piece
from dragoman.stages.rescue.heads import begun
from dragoman.stages.rescue.quoted import Begun

_NAME_KEYS: Final = frozenset({"name", "tool_name", "function", "tool", "recipient_name", "function_name"})
#: Under which the arguments stand.
ARGUMENT_KEYS: Final = frozenset({"arguments", "parameters", "args", "input", "tool_input", "action_input", "kwargs"})
_ID_KEYS: Final = frozenset({"id", "tool_call_id", "call_id"})
#: Keys that may stand before the name.
_OTHER_KEYS: Final = frozenset({"type", "index", "status", "thought", "thoughts", "reasoning"})
_ALL_KEYS: Final = _NAME_KEYS | ARGUMENT_KEYS | _ID_KEYS | _OTHER_KEYS
_KEY: Final = rare_pattern(r"[\w.-]+")
#: Characters of a name or an id.
_LONGEST: Final = 150
#: The head of nearly every call, up to its arguments.
_HEAD: Final = rare_pattern(
    rf"\"name\":\s{{0,8}}(\"[^\"\\]{{1,{_LONGEST}}}\"),\s{{0,8}}\"(?:arguments|parameters)\":\s{{0,8}}(?=\{{)"
)
_TAG_NAME: Final = rare_pattern(r"[^<>]+")
#: Quotation marks around keys and names, with those that close them.
_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "„": "“”", "‘": "’", "«": "»"}
#: The name in an object that may be a call.
_NAMED: Final = rare_pattern(
    rf"\b(?:{'|'.join(sorted(_NAME_KEYS))})[\"']?\s{{0,40}}:\s{{0,40}}[\"']([^\"']{{1,{_LONGEST}}})[\"']"
)
#: How a call object begins: at its name, or at an id or the like before it.
CALL_BEGINS: Final = rare_pattern(
    rf"\{{\s{{0,8}}(?:[\"'](?:{'|'.join(sorted(_ID_KEYS | _OTHER_KEYS))})[\"']\s{{0,8}}:\s{{0,8}}"
    rf"[^\s,{{}}\[\]]{{1,40}}+,\s{{0,8}})?"
    rf"[\"'](?:{'|'.join(sorted(_NAME_KEYS))})[\"']\s{{0,8}}:\s{{0,8}}[\"'{{]"
)
#: Why a call is refused whose arguments are another one.
IS_CALL: Final = "its arguments are a call themselves: it may have been broken off before them"
#: Why a call is refused that has a brace too many.
BRACED: Final = "one of its braces is too many, which may be any of them: two readings"
#: What a call has skipped that lacks the brace around its name and its arguments.
UNCLOSED: Final = "{"
#: Characters of arguments in which a name is looked for, to see whether they are a call themselves.
_LONGEST_CALL: Final = 1 << 16
#: Objects around the name and the arguments, as in `{"function": {"name": …, "arguments": …}}`.
_MOST_WRAPPED: Final = 4


class NotOffered(NotACall):
    """It names a tool that was not offered."""


def call_object(cursor: Cursor, tools: Tools, *, is_message: bool = False) -> Parser:
    """Parse one call object from behind its brace on: live once its name is known, else held until it is.

    `is_message`: no marker stands before it, so that the first key that no call has makes it none. Its braces may be
    doubled, as in a template that the model copied, and one may be too many.
    """
    is_doubled = (yield from cursor.take("{")) != ""
    yield from _CallObject(cursor, tools, is_message=is_message).read()
    if is_doubled or not cursor.is_broken:
        yield from cursor.closing("}")  # one too many, now and then


class _CallObject:
    """Reads one call object."""

    __slots__ = (
        "_cursor",
        "_depth",
        "_held",
        "_id",
        "_is_begun",
        "_is_mended",
        "_is_message",
        "_name",
        "_named_by",
        "_opened",
        "_problem",
        "_tools",
        "_unread",
    )

    def __init__(self, cursor: Cursor, tools: Tools, *, is_message: bool) -> None:
        self._cursor = cursor
        self._is_message = is_message
        self._tools = tools
        self._depth = 1  # braces that are open
        self._name = self._named_by = self._id = ""
        self._held = ""  # arguments that came before the name
        self._opened = self._is_begun = False
        self._is_mended = False  # something of the object is not as in JSON
        self._unread = ""  # a key that is no part of a call
        self._problem = ""

    def read(self) -> Parser:
        """Read members up to the last closing brace."""
        cursor, comma = self._cursor, ""
        while self._depth:
            yield from cursor.space()
            if (yield from cursor.take("}")):
                self._is_mended = self._is_mended or bool(comma)
                self._depth -= 1
                if self._depth:
                    comma = yield from self._comma()
                continue
            if cursor.ended and not cursor.rest():
                break
            cut = yield from self._member()
            if cut:
                yield Close("")
                return
            if self._name and not (self._is_begun or self._opened):
                self._is_begun = True
                yield Begun(self._name, is_body=True)
            comma = yield from self._comma()
            if not comma and (yield from cursor.peek()) != "}":
                self._is_mended = True
                if self._opened:
                    break
        if not self._name:
            raise NotACall
        yield from self._end()

    def _comma(self) -> Generator[Action, None, str]:
        yield from self._cursor.space()
        return (yield from self._cursor.take(","))

    def _member(self) -> Generator[Action, None, bool]:
        """Read one member, or those of the usual head at once. Return whether the text ended in the arguments."""
        cursor = self._cursor
        head = None if self._name or self._held else cursor.finds(_HEAD)
        if head is not None:
            cursor.skip(head.end(1) - head.start())
            self._note("name", head[1])
            self._is_begun = True
            yield Begun(self._name, is_body=True)
            cursor.skip(head.end() - head.end(1))
            return (yield from self._arguments("{"))
        self._is_mended = self._is_mended or (yield from cursor.peek()) != '"'
        key = yield from _key(cursor)
        if not key:
            if self._name and not self._opened and cursor.ended and not cursor.rest():
                return False  # cut behind its name
            raise NotACall
        yield from cursor.space()
        first = yield from cursor.peek()
        if self._is_message:
            yield from self._check(key, first)
        if key in ARGUMENT_KEYS and self._name and not (self._opened or self._held):
            return (yield from self._arguments(first))
        if key in _NAME_KEYS and first == "{" and not self._name and self._depth < _MOST_WRAPPED:
            cursor.skip(1)
            self._depth += 1
            yield from cursor.space()
            return False
        if not self._name and key not in _ALL_KEYS:
            raise NotACall
        value = yield from cursor.json()
        self._note(key, value)
        if cursor.ended and not cursor.rest() and not self._name:
            raise NotACall
        return False

    def _arguments(self, first: str) -> Generator[Action, None, bool]:
        """Read the arguments of a named call. Return whether the text ended in them."""
        cursor = self._cursor
        if first == "<" or (first == "{" and not (yield from cursor.object_begins())):
            raise NotACall
        yield Open(self._name, self._id)
        self._opened = True
        return not (yield from cursor.json_pieces())

    def _check(self, key: str, first: str) -> Parser:
        """Check a member of what may be an answer in JSON: no call has such a key, or such a value."""
        cursor = self._cursor
        if key not in _ALL_KEYS:
            raise NotACall
        if key in ARGUMENT_KEYS:
            begun = (yield from cursor.peek(2)) if first == '"' else ""
            if first not in ("{", '"', "'", "n", "") or begun[1:] not in ("{", '"', "\\", " ", ""):
                raise NotACall
        elif key in _NAME_KEYS or key in _ID_KEYS:
            while '"' not in cursor.rest()[1:] and first == '"' and not cursor.ended:
                if len(cursor.rest()) > _LONGEST:
                    raise NotACall
                yield MORE

    def _note(self, key: str, value: str) -> None:
        """Take a member that is not the arguments of a known tool."""
        if self._name and key not in ARGUMENT_KEYS and self._holds_call(key, value):
            self._problem = f"it holds another call, under {key!r}"
        elif key in _NAME_KEYS and not self._name:
            self._name, self._named_by = _name(value, self._tools), key
            self._is_mended = self._is_mended or value[:1] != '"'
        elif key in _NAME_KEYS:
            named = self._tools.offered(_text(value))
            if named != self._name and (named is not None or key == self._named_by):
                self._problem = f"it names two tools, the second under {key!r}"
        elif key in ARGUMENT_KEYS:
            if self._opened or self._held:
                self._problem = f"it has arguments twice, under {key!r} the second time"
            self._held = self._held or value
        elif key in _ID_KEYS:
            self._id = value.strip('"')
        elif key not in _ALL_KEYS:
            self._unread = self._unread or key
            if self._tools.schema(self._name).has_member(key):
                self._problem = f"{key!r} stands beside the arguments"

    def _holds_call(self, key: str, value: str) -> bool:
        """Return whether a member that is not the arguments may be a separate call."""
        if value[:1] not in ("{", "["):
            return False
        return key in _NAME_KEYS or any(self._tools.offered(found[1]) for found in _NAMED.finditer(value))

    def _end(self) -> Parser:
        """End the object: it is complete, or its text went on as something else, or ended."""
        cursor = self._cursor
        closed_by, passed = BODY, ""
        if self._depth:  # a brace that is missing before the closing marker takes nothing from whole arguments
            is_told = bool(self._opened or self._held)
            closed_by, passed = BODY if is_told and (yield from cursor.sees(*cursor.stops)) else "", UNCLOSED
        if not self._opened:
            yield Open(self._name, self._id)
            if self._held:
                yield Piece(self._held)
            elif self._unread and not self._problem:
                self._problem = f"it has {self._unread!r} and no arguments"
            elif self._is_mended and not self._problem and not self._tools.fits(self._name, "{}"):
                self._problem = "it is no JSON and has no arguments, which its tool requires"
        yield Close("" if self._problem else closed_by, self._problem, passed=passed)


def takes_null(cursor: Cursor, ends: tuple[str, ...]) -> Generator[Action, None, bool]:
    """Skip a `null` that stands in place of arguments. Return whether one stood there, before one of the ends."""
    is_null = yield from cursor.sees(*(f"null{space}{end}" for space in ("", "\n", " ") for end in ends))
    return is_null and (yield from cursor.closing("null")) != ""


def named_call(
    cursor: Cursor, name: str, call_id: str = "", *, wrapper: str = "", ends: tuple[str, ...] = ()
) -> Parser:
    """Parse the call of a known tool whose arguments follow as a JSON object, live from its first key on.

    `wrapper`: what must follow the arguments for the call to be complete, such as the brace of an object around them.
    `ends`:
    markers that close the call, so that it has no arguments if one of them follows at once, or behind a `null`.
    """
    if ends and ((yield from cursor.sees(*ends)) or (yield from takes_null(cursor, ends))):
        yield Open(name, call_id)
        yield Piece("{}")
        yield Close(BODY)
        return
    if not (yield from cursor.object_begins()):
        raise NotACall
    yield Open(name, call_id)
    is_whole = bool(cursor.rest()) and (yield from cursor.json_pieces())
    if is_whole and wrapper:
        yield from cursor.space()
        is_whole = (yield from cursor.take(wrapper)) != ""
    yield Close(BODY if is_whole else "")
    if is_whole:
        yield from cursor.closing("}")  # one too many


def tagged_call(cursor: Cursor, tools: Tools, tag: str, end: str) -> Parser:
    """Parse a call from behind the tag of its name on; its arguments stand in a tag too, as a JSON object. `end`: what
    closes the call.
    """
    name = yield from begun(tools, (yield from cursor.word(_TAG_NAME)).strip())
    yield from cursor.expect(f"</{tag}>")
    yield Begun(name)
    yield from cursor.closing("<arguments>", "<parameters>")
    yield from cursor.space()
    cursor.stops = ("</arguments>", "</parameters>", end)
    yield from named_call(cursor, name, ends=cursor.stops)
    yield from cursor.closing("</arguments>", "</parameters>")


def is_call(arguments: str, name: str, tools: Tools) -> bool:
    """Return whether the arguments of an offered tool are themselves a call object.

    It has keys that a call has and this tool's schema lacks, one of which names an offered tool. Then the call was
    broken off before its arguments, and another one followed.
    """
    if not any(tools.offered(found[1]) for found in _NAMED.finditer(arguments, 0, _LONGEST_CALL)):
        return False
    value = tools.read(name, arguments)
    if value is None or not _ALL_KEYS.issuperset(value) or any(map(tools.schema(name).has_member, value)):
        return False
    return any(isinstance(value[key], str) and tools.offered(value[key]) for key in _NAME_KEYS & value.keys())


def closes_before_its_end(value: Json) -> bool:
    """Return whether an object in a value ends before its last member does: one brace too many may belong to it."""
    while isinstance(value, dict | list) and value:
        *before, value = value.values() if isinstance(value, dict) else value
        if any(isinstance(inner, dict) or (isinstance(inner, list) and "{" in str(inner)) for inner in before):
            return True
    return False


def _key(cursor: Cursor) -> Generator[Action, None, str]:
    quote = yield from cursor.take(*_QUOTES)
    key = yield from cursor.word(_KEY, 64)
    if quote:
        yield from cursor.take(*_QUOTES[quote])
    yield from cursor.space()
    colon = yield from cursor.take(":")
    return key if colon else ""


def _name(value: str, tools: Tools) -> str:
    name = tools.called(_text(value))
    if name is None:
        raise NotOffered
    return name


def _text(value: str) -> str:
    """Return the text that a JSON text is; "" if it is none."""
    decoded = _json.decode(value)
    if isinstance(decoded, Malformed) and value[1:] and value[-1] in _QUOTES.get(value[0], ""):
        decoded = value[1:-1]
    return decoded if isinstance(decoded, str) else ""


def call_objects(cursor: Cursor, tools: Tools, *ends: str, is_message: bool = False) -> Parser:
    """Parse one call object, a list of them, or several in a row, and one of the `ends`. `is_message`: as in
    `call_object`.
    """
    cursor.stops = ends or cursor.stops
    yield from cursor.space()
    listed = yield from cursor.take("[")
    if listed:
        yield from cursor.space()
    count, opener = 0, (yield from cursor.take("{"))
    while opener:
        yield from call_object(cursor, tools, is_message=is_message)
        count += 1
        opener = yield from cursor.closing(",", ";", "{")
        if opener in (",", ";"):
            opener = yield from cursor.closing("{")  # white space behind the last call is none of it
    if listed:
        yield from cursor.closing("]")
    if not count:
        raise NotACall
    if ends:
        yield from cursor.closing(*ends)
