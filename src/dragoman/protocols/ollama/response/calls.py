"""The calls of one Ollama response: most come whole, those of some models with their arguments in later lines.

An entry with a name begins a call. One without a name continues the call of its id or index, else the last one, while
that call's arguments are empty or incomplete. A call with arguments leaves when it is complete; one without is held
until the end, because what comes later may be its arguments. If an entry may belong to several calls, or to none that
waits, every call that it may belong to fails.
"""

from __future__ import annotations

from typing import NamedTuple

from dragoman import _json
from dragoman._json import Raw
from dragoman.codec.parts.argument_text import ArgumentText
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.open_calls import MOST_WAITING
from dragoman.codec.parts.open_parts import OpenCall
from dragoman.codec.parts.settled_arguments import is_placeholder, is_plain_object, is_same, says_something, told_once
from dragoman.codec.parts.unread_arguments import noted, refuse_unread
from dragoman.codec.repeated_keys import has_plain_parts
from dragoman.protocols.ollama.wire import NOTHING, Call, CallLine, Function, decode_call_line


class Entry(NamedTuple):
    """An entry of `tool_calls` in any form; "" for missing fields. `number` is its index.

    `is_one` is False if two of its keys have different arguments.
    """

    id: str
    name: str
    arguments: str
    number: int | None
    is_object: bool
    where: str
    is_one: bool


class _Held(NamedTuple):
    """A call that waits for arguments. `number` is the index of its entry."""

    call: OpenCall
    number: int | None

    def waits(self) -> bool:
        """Return whether more of it may come."""
        return self.call.is_open() and not self.call.text.is_closed()


def whole_calls(calls: list[Call]) -> list[Function]:
    """Return the functions of calls, if each has a name, and its arguments in their place alone. Else return none."""
    functions: list[Function] = []
    for call in calls:
        function = call.function
        if function is None or not function.name or (call.name and call.name != function.name):
            return []
        if not (function.parameters is call.arguments is call.parameters is NOTHING):
            return []
        functions.append(function)
    return functions


class CallReader:
    """Reads the calls of one response."""

    __slots__ = ("_assembly", "_held", "_last", "_next", "_noted")

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._held: list[_Held] = []
        self._last: _Held | None = None  # the last call that an entry named, when it was not whole
        self._noted: set[int] = set()  # places of whole calls that have no type
        self._next = 0  # no call began at this index, nor at a higher one

    def takes_line(self, frame: bytes) -> bool:
        """Take a `CallLine`, if no key is repeated. Else return False, with nothing done."""
        line = decode_call_line(frame)
        if type(line) is not CallLine or line.done:
            return False
        (call,) = line.message.tool_calls
        function = call.function
        text = _json.raw_text(function.arguments)
        if not (function.name and self._last is None and says_something(text)):
            return False
        if not has_plain_parts(frame, line, (function.arguments,)):
            return False
        self._note(call, function.index, 0)
        self._assembly.whole_call(call.id, function.name, text, is_plain=True)
        return True

    def take_all(self, calls: list[Call], functions: list[Function]) -> bool:
        """Take the calls of a line if each has arguments. Else return False, with nothing done.

        Args:
            functions: theirs (see `whole_calls`); no key of the frame is repeated.
        """
        texts = [_json.raw_text(function.arguments) for function in functions]
        if self._last is not None or not all(map(says_something, texts)):
            return False
        for number, (call, function, text) in enumerate(zip(calls, functions, texts, strict=True)):
            self._note(call, function.index, number)
            self._assembly.whole_call(call.id, function.name, text, is_plain=True)
        return True

    def repeats_all(self, calls: list[Call], *, is_sure: bool) -> bool:
        """Return whether the calls of the last line are all those before it once more. `is_sure`: so is its text; else
        one call may be another like the first.
        """
        told = [("", function.name or "", _json.raw_text(function.arguments)) for function in whole_calls(calls)]
        if is_again := (is_sure or len(told) > 1) and self._assembly.calls.are_all(told):
            self._assembly.deviate("duplicate-final", "message.tool_calls")
        return is_again

    def takes(self, call: Call, number: int) -> bool:
        """Take the next entry if it is a usual one: a whole call. `number`: its place among the entries of its line."""
        if self._last is not None or not (functions := whole_calls([call])):
            return False
        (function,) = functions
        text = _json.raw_text(function.arguments)
        if not is_plain_object(text):
            return False
        self._note(call, function.index, number)
        self._assembly.whole_call(call.id, function.name, text, is_plain=True)
        return True

    def _note(self, call: Call, index: int | None, number: int) -> None:
        self._note_index(index)
        if not call.id and not call.type and number not in self._noted:
            self._noted.add(number)
            self._assembly.deviate("missing-type", f"message.tool_calls[{number}]", severity="note")

    def _note_index(self, index: int | None) -> None:
        """Report an index that leaves out others: the calls there are lost."""
        if index is None or index < self._next:
            return
        if index > self._next:
            self._assembly.deviate("odd-index", "message.tool_calls", f"{index} behind {self._next} calls")
        self._next = index + 1

    def read(self, call: Call, where: str) -> None:
        """Take the next entry."""
        entry = self._entry_of(call, where)
        if (unread := noted(call.unread)) and is_placeholder(entry.arguments):
            if not entry.name:
                self._refuse(entry, [held for held in self._held if held.call.is_open()])
            refuse_unread(self._assembly, entry.id, entry.name, unread)
            return
        last = self._last.call.name if self._last is not None else ""
        if not entry.name and noted(call.unread_name) not in ("", last):
            self._refuse(entry, [held for held in self._held if held.call.is_open()])
            return
        if not entry.is_one:
            opened = self._assembly.open_call(entry.id, entry.name)
            self._assembly.contradict(opened, where)
            if not entry.name:
                self._refuse(entry, [held for held in self._held if held.call.is_open()])
            return
        if entry.name:
            self._begin(entry)
            return
        self._assembly.deviate("missing-name", where)
        if self._held:
            self._continue(entry)
        else:
            self._assembly.whole_call(entry.id, "", entry.arguments)

    def _entry_of(self, call: Call, where: str) -> Entry:
        assembly, function, is_one = self._assembly, call.function, True
        siblings = [call.parameters]
        if not call.id and not call.type:  # Ollama itself leaves out the type where it sends an id
            assembly.deviate("missing-type", where, severity="note")
        if function is None:
            assembly.deviate("missing-field", f"{where}.function")
            name, arguments, index = call.name, call.arguments, call.index
        else:
            name = function.name or call.name
            if call.name and not function.name:
                assembly.deviate("sibling-key", where, "the name beside the function object")
            is_one = (call.name or name) == name
            index = call.index if function.index is None else function.index
            arguments = function.arguments
            siblings += [function.parameters, call.arguments]
        if any(map(_is_said, siblings)):
            assembly.deviate("sibling-key", f"{where}.function")
            told = (arguments, *siblings)
            chosen, is_same_twice = told_once([_argument_text(raw) for raw in told])
            is_one = is_one and is_same_twice
            arguments = next(raw for raw in (*told, NOTHING) if _argument_text(raw) == chosen)
        text = _argument_text(arguments)
        is_text = bytes(arguments)[:1] == b'"'
        if is_text:
            assembly.deviate("arguments-type", f"{where}.function.arguments", "a string")
        name = assembly.calls.without_blanks(name or "", assembly)
        if name:
            self._note_index(index)
        return Entry(call.id or "", name, text, index, not is_text and bool(text.strip()), where, is_one)

    def _begin(self, entry: Entry) -> None:
        """Take an entry with a name: a new call, unless it only repeats the name of the last one."""
        last, arguments = self._last, entry.arguments
        if last is not None and self._is_repeated(last, entry):
            self._assembly.deviate("repeated-name", entry.where)
            self._grow(last, entry)
            return
        if entry.id and (earlier := self._waiting_with(entry)) is not None:
            self._assembly.deviate("repeated-name", entry.where)
            self._grow(earlier, entry)
            return
        if last is not None and last.call.is_open():  # it leaves first, whatever comes of it
            self._assembly.calls.announce(last.call, self._assembly)
        named = self._assembly.calls.call_of(entry.id) if entry.id else None
        if named is not None and not named.name and is_placeholder(arguments):  # its arguments came without its name
            self._refuse_begun(entry)
        elif (is_plain := is_plain_object(arguments)) or _is_over(arguments):
            self._last = None
            self._assembly.whole_call(entry.id, entry.name, arguments, is_plain=is_plain)
        else:
            call = self._assembly.open_call(entry.id, entry.name, wait=True)
            self._last = _Held(call, entry.number)
            self._hold(self._last, entry)
            self._assembly.add_arguments(call, arguments)

    def _waiting_with(self, entry: Entry) -> _Held | None:
        """Return the waiting call with the entry's id and name."""
        named = self._assembly.calls.call_of(entry.id)
        if named is None or named.name != entry.name:
            return None
        return next((held for held in self._held if held.call is named and held.waits()), None)

    def _refuse_begun(self, entry: Entry) -> None:
        message = f"tool call {entry.name}: arguments came before it under its id, without a name"
        self._assembly.drop_call(self._assembly.open_call(None, entry.name, wait=True), "lost", message)

    def _hold(self, begun: _Held, entry: Entry) -> None:
        """Record a waiting call. If many wait, an entry without a name may belong to any of them: they are lost."""
        if len(self._held) >= MOST_WAITING:
            self._held = [held for held in self._held if held.call.is_open()]
            surplus = self._held[: -MOST_WAITING // 2]
            if surplus:
                self._lose(entry, surplus)
                del self._held[: len(surplus)]
        self._held.append(begun)

    def _is_repeated(self, last: _Held, entry: Entry) -> bool:
        call = last.call
        if not last.waits() or call.name != entry.name or last.number != entry.number:
            return False
        if entry.id and entry.id != call.id:
            return False
        if entry.id and entry.id == call.id:
            return True
        if call.text.is_blank() or call.text.is_whole():
            return not self._assembly.calls.takes_nothing(call.name)
        # a placeholder is no piece of a text: it begins another call
        return not _is_over(entry.arguments) and not (entry.arguments.strip() and is_placeholder(entry.arguments))

    def _continue(self, entry: Entry) -> None:
        """Take an entry without a name."""
        if not entry.arguments:
            return
        named = [held for held in self._held if entry.id and held.call.id == entry.id]
        if not named and entry.number is not None:
            named = [held for held in self._held if held.number == entry.number and held.call.is_open()]
            if not named:
                waiting = [held for held in self._held if held.waits()]
                named = [held for held in waiting if held.number is None] if len(waiting) == 1 else []
        elif not named and self._last is not None and not (entry.id and self._last.call.id):
            named = [held for held in self._held if held is self._last or self._lacks(held)]
        waiting = [held for held in named if held.waits()]
        if len(waiting) == 1:
            self._grow(waiting[0], entry)
        elif not waiting and len(named) == 1 and is_same(named[0].call.text.raw(), entry.arguments):
            self._assembly.deviate("repeated-arguments", entry.where)
        elif entry.arguments.strip():
            self._refuse(entry, named if waiting else [held for held in self._held if held.call.is_open()])

    def _lacks(self, held: _Held) -> bool:
        """Return whether arguments of a call must still come."""
        text = held.call.text
        is_enough = text.is_empty() and self._assembly.calls.takes_nothing(held.call.name)
        return held.waits() and not (text.is_whole() or is_enough)

    def _grow(self, held: _Held, entry: Entry) -> None:
        call = held.call
        if entry.is_object and call.text.is_started():
            self._refuse(entry, [held])  # an object is no piece of a text
            return
        self._assembly.add_arguments(call, entry.arguments)
        if call.text.is_started() or call.text.is_closed():
            self._assembly.calls.announce(call, self._assembly)

    def _refuse(self, entry: Entry, owners: list[_Held]) -> None:
        """Fail these calls: arguments came that may belong to each of them, or to none."""
        self._lose(entry, owners)
        self._assembly.whole_call(None, "", entry.arguments)

    def _lose(self, entry: Entry, owners: list[_Held]) -> None:
        self._assembly.deviate("lost-arguments", entry.where, f"{len(owners)} calls may have them")
        for held in owners:
            call = held.call
            message = f"tool call {call.name}: arguments came that do not say which call they belong to"
            self._assembly.drop_call(call, "lost", message)


def _is_said(raw: Raw) -> bool:
    return bytes(raw) not in (b"", b"null")


def _argument_text(raw: Raw) -> str:
    """Return arguments as text, from an object or a text."""
    return (text_of(raw) or "") if bytes(raw)[:1] == b'"' else _json.raw_text(raw)


def text_of(raw: Raw) -> str | None:
    """Return the text of a JSON string."""
    value = _json.decode_lenient(bytes(raw))
    return value if isinstance(value, str) else None


def _is_over(arguments: str) -> bool:
    """Return whether nothing can follow this text: it is a non-empty object, or no object at all."""
    text = ArgumentText()
    text.add(arguments)
    return text.phase in ("closed", "odd")
