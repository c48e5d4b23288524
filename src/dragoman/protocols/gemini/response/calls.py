"""The calls of one Gemini response: whole ones, and those whose arguments come piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Malformed, Raw
from dragoman.codec.framing.body import TooLarge
from dragoman.codec.framing.large_frames import look_for_few
from dragoman.codec.json_fields import read
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.open_parts import OpenCall
from dragoman.codec.parts.response_end import SECOND, AnswerId
from dragoman.codec.parts.settled_arguments import is_placeholder, is_plain_object, told_once
from dragoman.codec.parts.torn_frames import lose_open_calls
from dragoman.codec.parts.unread_arguments import fields_at, noted, refuse_unread
from dragoman.codec.repeated_keys import has_plain_parts
from dragoman.deviations import clip
from dragoman.protocols.gemini.response.lenient import read_call_leniently, read_pieces_leniently
from dragoman.protocols.gemini.response.streamed_arguments import PartialArguments
from dragoman.protocols.gemini.wire import (
    NOTHING,
    CallChunk,
    Candidate,
    Chunk,
    FunctionCall,
    Part,
    decode_call,
    decode_call_chunk,
    decode_pieces,
    is_whole,
    note_unread,
)
from dragoman.secret import name_alone
from dragoman.types import Native

#: A request can ask for 8 (https://ai.google.dev/api/generate-content, read 2026-11-26).
_MOST_CANDIDATES: Final = 128
#: At a large chunk, before all its candidates are read.
few_candidates: Final = look_for_few(_MOST_CANDIDATES, "candidates")
#: Why a call with streamed arguments ends: its own end came, another call begins, or the response is over.
_Proof: TypeAlias = Literal["ended", "next", "over"]


class _PartialCall(msgspec.Struct, eq=False):
    """A call whose arguments are streamed."""

    call: OpenCall
    arguments: PartialArguments


def are_plain(calls: list[FunctionCall], chunk: Chunk, frame: bytes) -> bool:
    """Return whether all calls of a chunk have their arguments under `args` alone, as objects, and no key is repeated.

    `frame`: the chunk's text.
    """
    is_usual = chunk.error is chunk.response is chunk.usage_metadata is chunk.prompt_feedback is NOTHING
    return is_usual and has_plain_parts(frame, chunk, [call.args for call in calls]) and all(map(is_whole, calls))


def numbered(candidates: list[Candidate]) -> list[Candidate]:
    """Return candidates of one chunk with their indices.

    Those without an index are one answer in parts; but if several have calls, each is another answer.

    Raises:
        TooLarge: there are more than a request can ask for. Each is judged by all of the chunk.
    """
    if len(candidates) > _MOST_CANDIDATES:
        raise TooLarge(f"expected at most {_MOST_CANDIDATES} candidates at once, got {len(candidates)}")
    if len(candidates) > 1:
        contents = [candidate.content for candidate in candidates]
        told = [any(part.functionCall is not None for part in (one and one.parts) or ()) for one in contents]
        if sum(told) > 1:
            for place, candidate in enumerate(candidates):
                candidate.index = place if candidate.index is None else candidate.index
    return candidates


class CallReader(msgspec.Struct, eq=False):
    """Reads the calls of one response; remembers the one whose arguments are coming."""

    _assembly: Assembly
    _bare: OpenCall | None = None  # the last one without arguments: they may come behind it, without its name
    _before: _PartialCall | None = None  # one of the same name, which had no end of its own
    _elsewhere: set[int | None] = set()  # candidates that are not read, in which a call began
    _is_torn: bool = False  # pieces came that name no call
    _last: OpenCall | None = None  # the call that was read last
    _partial: _PartialCall | None = None
    _answer: AnswerId = msgspec.field(default_factory=AnswerId)
    _pieced: set[str] = set()  # ids of calls whose arguments came piece by piece

    __repr__ = name_alone

    def fails_by_id(self, id: object, frame: bytes, calls: Sequence[FunctionCall]) -> bool:
        """Take the id of a chunk and its calls. Return whether the answer failed: these are of another answer."""
        if self._answer.is_again(id, frame):
            return False
        begins, is_called = any(call.name for call in calls), self._assembly.opened_calls > 0
        is_over = self._assembly.calls.end is not None
        if not self._answer.is_another(id, frame, begins_call=begins, is_called=is_called, is_over=is_over):
            return False
        self._assembly.fail(*SECOND)
        return True

    def takes(self, part: Part) -> bool:
        """Take the call of a part if it is a whole one and the part has nothing else.

        Args:
            part: one without text. Its call is plain (see `are_plain`).
        """
        call = part.functionCall
        if call is None or not call.name or part.thought_signature or self._partial is not None or self._pieced:
            return False
        text = _json.raw_text(call.args)
        if '"' not in text:  # it has no arguments
            return False
        signature = part.thoughtSignature or None
        self._last = self._assembly.whole_call(call.id, call.name, text, signature=signature, is_plain=True)
        return True

    def takes_frame(self, frame: bytes, candidate: int | None) -> Any:
        """Take a `CallChunk` of this candidate, if no key is repeated. Return None, with nothing done, or the chunk."""
        chunk = decode_call_chunk(frame)
        if type(chunk) is not CallChunk or (chunk.candidates[0].index or 0) != candidate:
            return None
        (part,) = chunk.candidates[0].content.parts
        call = part.functionCall
        if not has_plain_parts(frame, chunk, (call.args,)):
            return None
        return chunk if self.fails_by_id(chunk.responseId, frame, (call,)) or self.takes(part) else None

    def read(self, call: FunctionCall, signature: str, native: Native | None = None) -> None:
        """Take the call of one part. `signature`: "" if it has none. `native`: further fields of the part."""
        assembly = self._assembly
        is_usual = call.name and self._partial is None and not self._pieced and is_whole(call)
        if is_usual and is_plain_object(text := _json.raw_text(call.args)):
            self._last = assembly.whole_call(
                call.id, call.name, text, native=native, signature=signature or None, is_plain=True
            )
            return
        call.name = assembly.calls.without_blanks(call.name or "", assembly)
        if call.partial_args is not NOTHING or call.will_continue is not NOTHING:
            self._read_siblings(call)
        if self._is_misread(call):
            return
        partial = self._partial
        if partial is not None and (not call.name or (call.id and call.id == partial.call.id)):
            if call.id and partial.call.id and call.id != partial.call.id:
                self._refuse(call.id)
                return
            self._grow(partial, call)
            return
        if partial is not None:
            is_named_again = call.name == partial.call.name and not (call.id and partial.call.id)
            if is_named_again and (call.partialArgs or call.willContinue) and self._before is None:
                self._before = partial  # its start again, or another call: their pieces tell
            else:
                self._end(partial, "next")
        elif not call.name and call.id and (call.partialArgs or call.willContinue):
            self._refuse(call.id)
            return
        if call.partialArgs or call.willContinue:
            if not call.name:
                self._tear()
            opened = self._last = assembly.open_call(call.id, call.name, native=native)
            opened.signature = signature or None
            if call.id:
                self._pieced.add(call.id)
            self._partial = _PartialCall(opened, PartialArguments())
            self._grow(self._partial, call)
            return
        if not call.name and self._ends_known(call):
            return
        self._last = self._read_whole(call, signature, native)

    def pass_over(self, candidate: int | None, calls: list[FunctionCall]) -> None:
        """Take the calls of a candidate that is not read. Pieces of a call that did not begin there may be those of
        ours, under a wrong index: then ours lacks them.
        """
        if any(call.name for call in calls):
            self._elsewhere.add(candidate)
        elif candidate not in self._elsewhere and any(
            call.partialArgs or call.partial_args is not NOTHING or not is_placeholder(_json.raw_text(call.args))
            for call in calls
        ):
            lose_open_calls(self._assembly, "candidates", "a piece of a call stands in another candidate")

    def _read_siblings(self, call: FunctionCall) -> None:
        """Return pieces of arguments, and whether more come, from under the keys in snake case."""
        deviate = self._assembly.deviate
        deviate("sibling-key", "functionCall", "partial_args, will_continue")
        pieces = decode_pieces(_json.encode(read_pieces_leniently(read(call.partial_args), deviate)))
        call.partialArgs = pieces if pieces and not isinstance(pieces, Malformed) else call.partialArgs
        call.willContinue = call.willContinue or read(call.will_continue) is True

    def _read_whole(self, call: FunctionCall, signature: str, native: Native | None) -> OpenCall:
        """Take a whole call. See `read`."""
        assembly = self._assembly
        arguments, is_one = self._arguments_of(call)
        if not is_one:
            opened = assembly.open_call(call.id, call.name, native=native)
            assembly.contradict(opened, "functionCall")
            return opened
        if call.name and is_placeholder(arguments):
            self._bare = opened = assembly.open_call(call.id, call.name, native=native)
            opened.signature = signature or None
            assembly.add_arguments(opened, arguments)
            assembly.calls.ripe[opened.index] = opened
            return opened
        return assembly.whole_call(call.id, call.name, arguments, native=native, signature=signature or None)

    def _is_misread(self, call: FunctionCall) -> bool:
        """Return whether a call is refused, because name or arguments stand elsewhere, or its id is another's."""
        if (name := noted(call.unread_name)) and self._is_misnamed(name):
            return True
        if (key := noted(call.unread)) and self._is_unread(call, key):
            return True
        return call.id in self._pieced and self._is_renamed(call)

    def _is_unread(self, call: FunctionCall, key: str) -> bool:
        """Return whether a call's only arguments stand under an unknown key: then it fails, and so does the one that it
        may continue.
        """
        if call.partialArgs or not is_placeholder(self._arguments_of(call)[0]):
            return False
        partial, self._partial = self._partial, None
        if partial is not None:
            self._settle_unread(partial.call, key)
        refuse_unread(self._assembly, None if partial else call.id, call.name, key)
        return True

    def _is_misnamed(self, name: str) -> bool:
        """Return whether a call has a name where none is read, not that of the call that it may continue: both fail."""
        partial = self._partial
        if partial is not None and partial.call.name == name:
            return False
        before, self._before, self._partial = self._before, None, None
        for one in (before, partial):
            if one is not None:
                self._settle_unread(one.call, "functionCall")
        self._last = self._assembly.open_call(None, None)
        self._assembly.drop_call(self._last, "nameless", f"a tool call has its name, {clip(name)}, in another place")
        return True

    def _settle_unread(self, call: OpenCall, key: str) -> None:
        message = f"tool call {call.name}: what may be its arguments came under {key!r}"
        self._assembly.drop_call(call, "unreadable", message)

    def _ends_known(self, call: FunctionCall) -> bool:
        """Return whether a call without a name belongs to one that ended: its end again, or what goes on behind it."""
        self._assembly.deviate("missing-name", "functionCall")
        if self._goes_on(call):
            return True
        known = self._assembly.calls.call_of(call.id) if call.id else None
        if call.args is call.arguments is call.parameters is NOTHING:
            return known is not None or not call.id
        if known is not None:
            self._assembly.contradict(known, "functionCall")
        return known is not None

    def _goes_on(self, call: FunctionCall) -> bool:
        """Return whether a call without a name has the arguments of the last one, which came without any."""
        bare = self._bare
        if bare is None or not bare.is_open() or bare is not self._last or (call.id and call.id != bare.id):
            return False
        arguments, is_one = self._arguments_of(call)
        if not is_one:
            self._assembly.contradict(bare, "functionCall")
        elif not is_placeholder(arguments):
            self._assembly.add_arguments(bare, arguments)
            self._assembly.end_call(bare)
        return True

    def _is_renamed(self, call: FunctionCall) -> bool:
        """Return whether a call has the id of one that came in pieces, under another name: both are refused."""
        earlier = self._assembly.calls.call_of(call.id or "")
        if earlier is None or not call.name or call.name == earlier.name:
            return False
        if self._partial is not None and self._partial.call is earlier:
            self._partial = None
        refused = self._assembly.open_call(None, call.name)
        for one in (earlier, refused):
            self._assembly.contradict(one, "functionCall.name")
        return True

    def _tear(self) -> None:
        """Take pieces that name no call while none was open: they may be of the one before, or one behind them."""
        self._is_torn = True
        if self._last is not None:
            self._assembly.contradict(self._last, "functionCall.partialArgs")

    def _refuse(self, id: str) -> None:
        """Refuse two calls: pieces came for another call than the open one, so that their owner is unknown."""
        partial, self._partial = self._partial, None
        self._assembly.deviate("lost-arguments", "functionCall")
        why = "arguments came that do not say which call they belong to"
        named = self._assembly.calls.call_of(id)
        before, self._before = self._before, None
        for call in (*(one.call for one in (before, partial) if one is not None), named):
            if call is not None:
                self._assembly.drop_call(call, "lost", f"tool call {call.name}: {why}")
        if named is None or named.state == "whole":
            lost = self._assembly.open_call(None, None)
            self._assembly.drop_call(lost, "lost", f"tool call (no name): {why}")

    def _arguments_of(self, call: FunctionCall) -> tuple[str, bool]:
        """Return the arguments of a whole call, and whether all its keys agree. Proto JSON omits an empty object."""
        text, is_one = self._argument_text(call.args), True
        if call.arguments is not NOTHING or call.parameters is not NOTHING:
            # quirk: args-under-a-sibling-key
            self._assembly.deviate("sibling-key", "functionCall", "arguments, parameters")
            siblings = (self._argument_text(raw) for raw in (call.arguments, call.parameters))
            text, is_one = told_once([text, *siblings])
        if text == "null":
            self._assembly.deviate("missing-arguments", "functionCall.args", "null")
        return "{}" if text in ("", "null") else text, is_one

    def _argument_text(self, given: Raw) -> str:
        text = _json.raw_text(given)
        if text[:1] != '"':
            return text
        self._assembly.deviate("arguments-type", "functionCall.args", "a string")
        inner = _json.decode_lenient(bytes(given))
        return inner if isinstance(inner, str) else ""

    def _grow(self, partial: _PartialCall, call: FunctionCall) -> None:
        for piece in call.partialArgs or ():
            partial.arguments.add(piece)
        if call.args is not NOTHING or call.arguments is not NOTHING or call.parameters is not NOTHING:
            told, is_one = self._arguments_of(call)
            partial.arguments.tell_whole(told, is_one=is_one)
        if not call.willContinue:
            self._end(partial, "ended")

    def _end(self, partial: _PartialCall, proof: _Proof) -> None:
        """Settle a call with streamed arguments.

        Without its own end it is complete if its last value was, and if another call began. At the end of a response
        that announced more of it, any parameter may be missing.
        """
        before, self._before, self._partial = self._before, None, None
        if before is not None:
            is_torn = self._is_torn
            self._is_torn = is_torn or not before.arguments.tells_again(partial.arguments)
            self._settle(before, "next")
            self._settle(partial, proof)
            self._is_torn = is_torn
        else:
            self._settle(partial, proof)

    def _settle(self, partial: _PartialCall, proof: _Proof) -> None:
        assembly, call, arguments = self._assembly, partial.call, partial.arguments
        is_cut = proof == "over" or (arguments.announces_more() if proof == "ended" else arguments.is_cut())
        text = arguments.text()
        if not call.is_open():
            return  # it has failed
        if self._is_torn:
            message = "pieces of arguments came that may be its own or another call's"
            assembly.drop_call(call, "lost", f"tool call {call.name or '(no name)'}: {message}")
        elif arguments.problem:
            assembly.drop_call(call, "unreadable", f"tool call {call.name}: {arguments.problem}")
        elif is_cut:
            assembly.drop_call(call, "cut", f"tool call {call.name}: its arguments end before they are whole")
        else:
            if proof != "ended":
                # quirk: gem-partial-args-missing-terminal
                assembly.deviate("part-not-closed", f"call {call.index}")
            assembly.add_arguments(call, text)
            assembly.end_call(call)

    def read_sibling(self, raw: Raw, signature: str) -> None:
        """Take a call under `function_call`."""
        frame = bytes(raw)
        call = decode_call(frame)
        if isinstance(call, Malformed):
            value = _json.decode_lenient(frame)
            loose = read_call_leniently(value if isinstance(value, dict) else {}, self._assembly.deviate)
            frame = _json.encode(loose)
            call = decode_call(frame)
        if not isinstance(call, Malformed):
            note_unread(call, fields_at(frame))
            self.read(call, signature)

    def close(self) -> None:
        """Settle the open call: nothing more comes."""
        if self._partial is not None:
            self._end(self._partial, "over")
