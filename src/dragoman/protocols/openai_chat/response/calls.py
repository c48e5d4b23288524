"""The calls of deltas and messages, in every form of every server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.parts import torn_frames
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.call_matching import OUTSIDE, CallSlots
from dragoman.codec.parts.open_parts import OpenCall
from dragoman.codec.parts.response_end import SECOND, AnswerId
from dragoman.codec.parts.settled_arguments import is_placeholder, is_same, told_once
from dragoman.codec.parts.unread_arguments import mark_unread, note_late, noted, refuse_unread
from dragoman.codec.repeated_keys import SHORT, tell_twice, without_value
from dragoman.protocols.openai_chat.response.frame_look import FrameLook, may_repeat
from dragoman.protocols.openai_chat.wire import (
    NAME,
    NOTHING,
    CallPiece,
    Chunk,
    Delta,
    FunctionPiece,
    PlainCall,
    arguments_in,
    legacy_call,
    parts_of,
    read_id,
    signature_of,
    unread_in,
    unread_legacy,
)
from dragoman.secret import name_alone
from dragoman.types import Native

_FEW: Final = 8
_MOST_FRAMES: Final = 64  # that are kept for a look at what stands beside their calls


class CallReader(msgspec.Struct, eq=False):
    """Reads the calls of one response. `is_watching`: a call may lack arguments: each chunk is searched for some."""

    _assembly: Assembly
    _slots: CallSlots
    _look: FrameLook = msgspec.field(default_factory=FrameLook)
    _answer: AnswerId = msgspec.field(default_factory=AnswerId)
    is_watching: bool = False
    _frames: list[bytes] = []  # those in which calls began since, which have not been looked at
    _has_legacy: bool = False  # a call came in the older form
    _is_refused: bool = False  # both forms came, and do not say the same
    _elsewhere: set[int | None] = set()  # other choices in which calls began
    _mirrored: list[tuple[str, str]] = []  # what the older form told behind calls of the newer one

    __repr__ = name_alone

    def fails_by_id(
        self, id: str | None, frame: bytes, index: int | None = None, call: str = "", name: str = ""
    ) -> bool:
        """Take the id of a chunk. Return whether the answer failed: the chunk begins a call of another answer.

        Args:
            index: that of the first piece of a call in it that has a name; `call` and `name`: its id and name.
        """
        calls, is_over = self._assembly.opened_calls, self._assembly.calls.end is not None
        begins = bool(name) and (id == self._answer.id or not self._follows(index, call, name))
        if not self._answer.is_another(id, frame, begins_call=begins, is_called=calls > 0, is_over=is_over):
            return False
        self.close(is_ended=False)
        self._assembly.fail(*SECOND)
        return True

    def _follows(self, index: int | None, id: str, name: str) -> bool:
        """Return whether a piece goes on with an open call, or begins the next one right behind the last: no other
        answer begins so, as each counts its calls from the start.
        """
        at = -1 if index is None else index
        before, call = self._slots.by_index.get(at - 1), self._slots.by_index.get(at)
        if call is None and before is not None and before.index + 1 == self._assembly.next_index:
            return True
        call = self._assembly.calls.call_of(id) if id else call
        return (
            call is not None
            and call.name == name
            and call.is_open()
            and not (call.text.is_whole() or call.text.is_over())
        )

    def read_many(self, pieces: list[CallPiece], frame: bytes) -> None:
        """Take the pieces of one delta."""
        if self._look.repeats_key(frame):
            return self._refuse(pieces, frame)
        first = next((one for one in pieces if parts_of(one)[0]), None)
        if first is not None and self.fails_by_id(
            read_id(frame), frame, first.index, first.id or "", parts_of(first)[0]
        ):
            return
        if any(self._is_unlabelled(piece) for piece in pieces):
            self._slots.tear()
        self._slots.twice = twice = _twice(pieces)
        for piece in pieces:
            if piece.index in twice and piece.id and not parts_of(piece)[0]:
                self._slots.crowd(piece.index)
        for piece in pieces:
            self.read(piece, frame, is_told_once=True)
        self._slots.twice = ()

    def read(self, piece: CallPiece, frame: bytes = b"", *, is_told_once: bool = False) -> None:
        """Take a piece of a call from a delta. `frame`: what it stands in; `is_told_once`: no key of it is repeated."""
        function = piece.function
        if (
            not is_told_once
            and (function is not None and function.arguments)
            and function.parameters is NOTHING
            and not (piece.id or function.name or piece.name or piece.arguments or piece.extra_content or piece.rest)
            and not may_repeat(frame)
            and frame.count(b'_calls"') < 2
            and frame.count(b'"function"') < (3 if piece.type else 2)
            and (len(self._slots.by_index) < 2 or frame.count(b'"index"') < 3)
            and self._slots.grow(piece.index, function.arguments)
        ):
            return  # the usual delta
        if not is_told_once and self._look.repeats_key(frame):
            return self._refuse([piece], frame)
        name, arguments, kind = parts_of(piece)
        if name and not is_told_once and self.fails_by_id(read_id(frame), frame, piece.index, piece.id or "", name):
            return
        has_key = function is not None and function.arguments is not None
        if not arguments and self._look.count_arguments(frame) > has_key:
            self._look.note_astray(frame, self._assembly)
            self.tell_beside(frame)
        unread = unread_in(piece)
        if unread and not (piece.id or name or arguments or piece.index is not None):
            return self._lose(unread)
        if not (unread or piece.id or name or arguments or piece.type == "custom" or piece.extra_content is not None):
            self._slots.pass_over(piece.index)
            self.tell_beside(frame)
            return  # an entry that says nothing
        if self._has_legacy or self._is_refused:
            if name or (arguments.strip() and not self._is_refused):
                self._refuse_both([name])
            return
        if not name and (other := noted(piece.unread_name)) and self._slots.misname(piece.index, piece.id or "", other):
            return
        self._let_go()
        call = self._slots.fragment(piece.index, piece.id or "", name, arguments, kind=kind)
        if self.is_watching or call.text.phase == "held":
            self._watch(frame)
        mark_unread(call, unread, is_missing=not arguments)
        call.is_torn = call.is_torn or bool(unread and call.kind == "custom")  # free text shows no gap
        if unread and (call.text.is_closed() or not call.is_open()):
            self._lose(unread)  # behind its end
        if not self._is_told_once(piece, name) or (arguments and kind != call.kind):
            self._assembly.contradict(call, f"call {call.index}")
        if name and not piece.type:
            self._assembly.deviate("missing-type", f"call {call.index}")
        self._take_beside(piece, call)

    def read_plain(self, pieces: Sequence[PlainCall], frame: bytes) -> None:
        """Take pieces with all their labels and nothing else, in a frame that has nothing else."""
        if len(pieces) > 1:
            self._slots.twice = _twice(pieces)
        for piece in pieces:
            function = piece.function
            name, arguments = function.name, function.arguments
            if self._has_legacy or self._is_refused:
                told = CallPiece(piece.index, FunctionPiece(arguments, name), piece.id, "function")
                self.read(told, frame, is_told_once=True)
                continue
            if self._frames:
                self._let_go()
            call = self._slots.begin(piece.index, piece.id, name, arguments)
            if self.is_watching or call.text.phase == "held":
                self._watch(frame)
            if arguments and call.kind != "function":
                self._assembly.contradict(call, f"call {call.index}")
        self._slots.twice = ()

    def _is_told_once(self, piece: CallPiece, name: str) -> bool:
        """Return whether no key of a piece has other arguments, or the name of another offered tool."""
        other = noted(piece.unread_name)
        is_another = bool(name) and other not in ("", name) and other in self._assembly.calls.offered_names
        return not is_another and _is_one(piece)

    def _take_beside(self, piece: CallPiece, call: OpenCall) -> None:
        """Take what a piece has beside its name and arguments."""
        self._tell_siblings(piece, call.index)
        call.signature = signature_of(piece) or call.signature
        call.native = native_of_call(piece, call.native)

    def _tell_siblings(self, piece: CallPiece, whose: object) -> None:
        """Report fields that are read here, but not by strict clients of this protocol."""
        function = piece.function
        if function is None:
            if piece.name:
                self._assembly.deviate("sibling-key", f"call {whose}", "no function object")
        elif function.parameters is not NOTHING and bytes(function.parameters) != b"null":
            self._assembly.deviate("sibling-key", f"call {whose}.function", "parameters")
        elif piece.arguments or (piece.name and not function.name):
            self._assembly.deviate("sibling-key", f"call {whose}", "beside the function object")

    def note_plain(self, frame: bytes) -> None:
        """Take a frame of which it is known that no key of it is repeated."""
        self._look.note_plain(frame)

    def judge(self, said: Delta, frame: bytes, arguments: Raw = NOTHING) -> None:
        """Fail the calls of a frame with a repeated key: their owner, and their content, have two readings.

        Args:
            arguments: of the first call, as they stand in the frame, if that is known.
        """
        if frame.find(b"_call") >= 0 and self._look.repeats_key(frame, _around_arguments(said, frame, arguments)):
            self._refuse(said.tool_calls or [CallPiece()], frame)
            said.tool_calls = said.function_call = None

    def tell_end_twice(self, frame: bytes) -> None:
        """Report keys of the end of an answer that a frame tells twice."""
        if not self._look.has_plain_keys(frame):
            tell_twice(frame, (b'"finish_reason"', b'"usage"'), self._assembly.deviate)

    def find_hidden(self, chunk: Chunk, frame: bytes) -> None:
        """Report a call in a frame that names one and was not read."""
        said = [one for choice in chunk.choices or () for one in (choice.delta, choice.message) if one is not None]
        if not any(one.tool_calls or one.function_call for one in said) and torn_frames.hides_call(frame):
            self._refuse([CallPiece()], frame)
        self.tell_beside(frame)

    def tell_beside(self, frame: bytes) -> None:
        """Name what stands in a frame beside empty choices."""
        self._look.tell_beside(frame, self._assembly)

    def _watch(self, frame: bytes) -> None:
        """Keep a frame: a call of it, or of an earlier one, has no arguments yet."""
        self.is_watching = True
        if not self._frames or frame is not self._frames[-1]:
            self._frames.append(frame)
        if len(self._frames) > _MOST_FRAMES:
            self.look_around()

    def _let_go(self) -> None:
        """Drop the kept frames if all calls have arguments: nothing there is theirs. Skipped if many are open."""
        calls = self._assembly.calls
        if self._frames and len(calls.by_index) < _FEW and not calls.may_lack():
            self.is_watching = False
            self._frames.clear()

    def look_around(self, frame: bytes = b"") -> None:
        """Record what stands beside calls, and in this frame, while one has no arguments: they may be its own.

        Call it before the calls are settled.
        """
        self.is_watching = self._assembly.calls.may_lack()
        if self.is_watching:
            for told in filter(None, (*self._frames, frame)):
                self.tell_beside(told)
        self._frames.clear()

    def _refuse(self, pieces: list[CallPiece], frame: bytes) -> None:
        self._slots.tear()
        for piece in pieces:
            torn_frames.refuse(self._assembly, "tool_calls", frame, parts_of(piece)[0])

    def _lose(self, key: str) -> None:
        """Take a value in place of calls that is none: it may be the open ones, or further ones."""
        self._slots.tear()
        refuse_unread(self._assembly, None, None, key)

    def pass_over(self, choice: int | None, said: Delta) -> None:
        """Take the calls of a choice that is not read. A piece of a call that did not begin there may be one of ours,
        under a wrong index: then ours lack it.
        """
        function = said.function_call
        pieces = [(*parts_of(piece)[:2], piece.id) for piece in said.tool_calls or ()]
        pieces += [] if function is None else [(function.name or "", function.arguments or "", None)]
        if any(name or (id and self._assembly.calls.call_of(id) is None) for name, _, id in pieces):
            self._elsewhere.add(choice)
        elif choice not in self._elsewhere and any(arguments for _, arguments, _ in pieces):
            torn_frames.lose_open_calls(self._assembly, "choices", "a piece of a call stands in another choice")
            self.drop_empty()

    def read_late(self, chunk: Chunk) -> None:
        """Take the pieces of calls behind the end."""
        for choice in chunk.choices or ():
            for piece in (choice.delta and choice.delta.tool_calls) or ():
                name, arguments, _ = parts_of(piece)
                note_late(self._assembly, "" if name else arguments)

    def _is_unlabelled(self, piece: CallPiece) -> bool:
        """Return whether a piece has arguments, and nothing that names their call."""
        if piece.index is not None or (piece.id and self._assembly.calls.call_of(piece.id) is not None):
            return False
        name, arguments, _ = parts_of(piece)
        return not name and bool(arguments.strip())

    def read_whole(self, piece: CallPiece) -> None:
        """Take a call of a whole message."""
        name, arguments, kind = parts_of(piece)
        if is_placeholder(arguments) and (unread := unread_in(piece)):
            refuse_unread(self._assembly, piece.id, name, unread)
            return
        if self._has_legacy or self._is_refused:
            self._again(name, arguments)
            return
        if not piece.type:
            self._assembly.deviate("missing-type", f"call {name}")
        self._tell_siblings(piece, name)
        if not self._is_told_once(piece, name):
            return self._assembly.contradict(self._assembly.open_call(piece.id, name, wait=True), f"call {name}")
        native, signature = native_of_call(piece), signature_of(piece)
        self._slots.whole(piece.id or "", name, arguments, kind=kind, signature=signature, native=native)

    def read_legacy(self, delta: Delta) -> None:
        """Take a piece of the older `function_call`."""
        name, arguments = legacy_call(delta)
        unread = unread_legacy(delta)
        if unread and (not name or not is_placeholder(arguments)):
            self._lose(unread)
        elif (name or arguments) and not self._is_mirrored(name, arguments):
            call = self._slots.fragment(OUTSIDE, "", name, arguments, where="function_call")
            mark_unread(call, unread, is_missing=not arguments)

    def read_whole_legacy(self, message: Delta) -> None:
        """Take the older `function_call` of a whole message."""
        name, arguments = legacy_call(message)
        if unread := unread_legacy(message):
            refuse_unread(self._assembly, None, name, unread)
        elif (name or arguments) and not self._is_mirrored(name, arguments):
            self._slots.whole("", name, arguments)

    def _is_mirrored(self, name: str, arguments: str) -> bool:
        """Return whether calls came in the newer form before this piece of the older one.

        No server makes calls in both, so it repeats one of them, or there are two readings; the end decides.
        """
        self._assembly.deviate("legacy-function-call", "function_call")
        if not self._is_refused and (self._has_legacy or not self._assembly.opened_calls):
            self._has_legacy = True
            return False
        self._mirrored.append((name, arguments))
        return True

    def _compare_mirrored(self) -> None:
        if self._mirrored:
            name, arguments = ("".join(texts) for texts in zip(*self._mirrored, strict=True))
            self._mirrored.clear()
            self._again(name, arguments)

    def _again(self, name: str, arguments: str) -> None:
        """Take a call in the other form. It is the same if it adds and changes nothing."""
        told = [] if self._is_refused else [(call.name, call.text.raw() or call.arguments) for call in self._calls()]
        if _is_told_among(name, arguments, told):
            self._assembly.deviate("duplicate-call", "function_call")
        else:
            self._refuse_both([name])

    def _refuse_both(self, names: Iterable[str]) -> None:
        """Fail calls in both forms that differ: a client runs those of the form that it knows.

        `names`: of the calls that come now. Earlier ones are looked at once: none is delivered from then on.
        """
        before, self._is_refused = [] if self._is_refused else self._calls(), True
        for call in (*(self._assembly.open_call(None, name) for name in dict.fromkeys(names)), *before):
            self._assembly.contradict(call, "function_call")

    def _calls(self) -> list[OpenCall]:
        """Return the calls at an index, whose ids may be missing, and those with ids, which may have no index."""
        return list(dict.fromkeys([*self._slots.by_index.values(), *self._assembly.calls.by_id.values()]))

    def compare_forms(self, said: Delta) -> None:
        """Compare both forms before the calls are read: the older one must repeat an entry of the newer one.

        Else the calls are removed and fail: a client runs those of the form that it knows.
        """
        function = said.function_call
        if function is None or not said.tool_calls or not (function.name or function.arguments):
            return
        name, arguments = function.name or "", function.arguments or ""
        told = [parts_of(piece)[:2] for piece in said.tool_calls]
        if not _is_told_among(name, arguments, told):
            self._refuse_both([name, *(other for other, _ in told if other)])
            said.tool_calls = said.function_call = None

    def drop_empty(self) -> None:
        """Fail the calls without arguments: these may have gone elsewhere."""
        for call in list(self._assembly.calls.by_index.values()):
            if call.kind == "function" and call.text.is_empty():
                words = f"tool call {call.name or '(no name)'}: its choice did not end, and another one came"
                self._assembly.drop_call(call, "lost", words)

    def close(self, *, is_ended: bool) -> None:
        """End all calls. `is_ended`: the response ended, so only its reason may say it was cut."""
        if self._assembly.phase == "open":
            self.look_around()
            self._compare_mirrored()
            self._slots.compare()
            self._slots.close(is_good=is_ended and self._assembly.ending.reason not in ("length", "content_filter"))


def _twice(pieces: Sequence[CallPiece | PlainCall]) -> list[int | None]:
    """Return the indices that several pieces have."""
    return [index for index, count in Counter(piece.index for piece in pieces).items() if count > 1]


def _is_told_among(name: str, arguments: str, told: Iterable[tuple[str, str]]) -> bool:
    """Return whether a call of the newer form repeats the older form, and none may have its arguments instead.

    `told`: their names and arguments.
    """
    texts = [text for other, text in told if name in ("", other) or not other]
    is_unsaid = not is_placeholder(arguments) and any(is_placeholder(text) for text in texts)
    return not is_unsaid and any(_adds_nothing(arguments, text) for text in texts)


def _adds_nothing(arguments: str, told: str) -> bool:
    """Return whether arguments of a call add nothing to the earlier ones."""
    return is_placeholder(arguments) or is_same(arguments.strip(), told.strip())


def _around_arguments(said: Delta, frame: bytes, arguments: Raw) -> bytes:
    """Return a frame without the long text of its first call's arguments, which cannot repeat a key."""
    function = said.tool_calls[0].function if said.tool_calls else None
    text = function.arguments if function is not None else None
    if not text or len(frame) <= SHORT:
        return frame
    return without_value(frame, b'"arguments":', arguments or _json.encode_text(text))


def _is_one(piece: CallPiece) -> bool:
    """Return whether the keys for a name and arguments do not contradict each other."""
    function = piece.function
    name = (function.name if function is not None else None) or piece.name
    # A `custom` of empty texts is the frame that some servers write around every kind of call.
    if name and ((piece.name or name) != name or (isinstance(piece.custom, dict) and any(piece.custom.values()))):
        return False
    if function is None or (function.parameters is NOTHING and not piece.arguments):
        return True
    return told_once(arguments_in(piece))[1]


def native_of_call(piece: CallPiece, earlier: Native | None = None) -> Native | None:
    """Return the unmodelled fields of a call, over those of earlier pieces."""
    rest: Json = piece.rest
    if not rest:
        return earlier
    said = {key: _json.raw(value) for key, value in rest.items()}
    return Native(NAME, said if earlier is None else earlier.fields | said)
