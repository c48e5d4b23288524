"""The content blocks of one answer, identified by index.

They are never identified by which one is "current": servers overlap blocks, omit starts and stops, use an index twice,
and put a call's arguments into its start.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman import _json
from dragoman._json import Malformed, Raw
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.call_shapes import CALL_TYPES
from dragoman.codec.parts.open_calls import MOST_WAITING
from dragoman.codec.parts.open_parts import OpenCall
from dragoman.codec.parts.response_end import SECOND
from dragoman.codec.parts.settled_arguments import contradicts, is_placeholder, is_same, told_once
from dragoman.codec.parts.unread_arguments import (
    lose_unread,
    note_missing,
    note_unread,
    refuse_unread,
    tell_unread,
    unread_arguments,
    unread_words,
)
from dragoman.events import TextStart, ThinkingStart
from dragoman.protocols.anthropic.response.block import TAKES, Block
from dragoman.protocols.anthropic.response.lenient import delta_kind, joined_seal, loose_text, note_piece, unread_beside
from dragoman.protocols.anthropic.wire import (
    BLOCK,
    NAME,
    OWN_BLOCKS,
    SIBLING_INPUTS,
    UNSET,
    Delta,
    StreamEvent,
    delta_fields,
    keep,
    read,
    read_items,
    read_name,
    read_object,
    read_text,
    rest_of,
)
from dragoman.secret import name_alone
from dragoman.types import Native, Opaque


class Blocks(msgspec.Struct, eq=False):
    """Opens, grows and ends the blocks of one response. `by_index`: the last opened there; `open_calls`: unfinished."""

    _assembly: Assembly
    _last: int = -1  # the index that was named last
    _highest: int = -1
    _first: int = 0  # no block of this answer begins below: a call did before the answer's own start
    open_calls: dict[int, Block] = {}  # by the identity of the block
    by_index: dict[int, Block] = {}

    __repr__ = name_alone

    def start(self, event: StreamEvent, frame: bytes, *, is_usual: bool = False) -> Block | None:
        """Take `content_block_start`, and return its block. `is_usual`: nothing stands beside the block."""
        fields = read_object(event.content_block, BLOCK, "content_block", self._assembly.deviate)
        if fields is None:
            self._assembly.deviate("missing-field", "content_block_start.content_block")
            return None
        index = event.index
        if index < 0:
            self._assembly.deviate("missing-index", "content_block_start")
            index = self._highest + 1
        if index < self._first:
            self._assembly.fail(*SECOND)
            return None
        earlier = self.by_index.get(index)
        if earlier is not None and earlier.call is not None and self._is_same_call(earlier, earlier.call, fields):
            self._assembly.deviate("duplicate-start", f"content_block {index}")
            self._say_again(earlier, earlier.call, fields)
            return earlier
        if earlier is not None:
            self._assembly.deviate("reused-index", f"content_block {index}")
            rivals, rival = [*earlier.rivals], earlier.told
            is_cut = not earlier.is_ended and earlier.call is not None and earlier.call.text.is_started()
            if earlier.is_ended or earlier.call is None or earlier.told or not self._may_gain(earlier.call):
                self.stop(index)
            else:
                rivals.append(earlier)
            self.open(index, fields)
            self._crowd(self.by_index[index], rivals, rival)
            if is_cut and (call := self.by_index[index].call) is not None:  # what comes may go on with the other one
                self._drop_lost(call)
        else:
            self.open(index, fields)
        block = self.by_index[index]
        if not is_usual and block.call is not None and not block.told:
            note_unread(block.call, unread_beside(frame))
        return block

    def go_on(self) -> None:
        """Take the answer's start behind its first blocks: if calls are among them, none begins in their place."""
        if self._assembly.opened_calls:
            self._first = self._highest + 1

    def _may_gain(self, call: OpenCall) -> bool:
        """Return whether arguments may still come for a call: none did, or `{}` where its tool takes more."""
        is_said = not call.text.is_blank() and self._assembly.calls.takes_nothing(call.name)
        return call.text.is_empty() and not is_said

    def _crowd(self, block: Block, rivals: list[Block], rival: str) -> None:
        """Record that a block has the index of others without an end, and without arguments beyond their starts."""
        block.rivals, block.rival = [one for one in rivals if one.call is not None and one.call.is_open()], rival
        if block.rivals and block.call is not None:
            block.takes = ""  # each delta is looked at
            if len(block.rivals) > MOST_WAITING:
                self._lose_to_rivals(block)

    def _lose_to_rivals(self, block: Block) -> bool:
        """Return whether arguments may belong to several calls at one index: then each of them fails."""
        if block.call is None:
            return False
        owners = [one for one in (*block.rivals, block) if one.call is not None]
        block.rivals = []
        self._assembly.deviate("lost-arguments", "content_block_delta", f"{len(owners)} calls may have them")
        for one in owners:
            if one.call is not None:
                one.is_ended = True
                self._drop_lost(one.call)
        return True

    def _drop_lost(self, call: OpenCall) -> None:
        message = f"tool call {call.name}: arguments came that do not say which call they belong to"
        self._assembly.drop_call(call, "lost", message)

    def _is_same_call(self, block: Block, call: OpenCall, fields: dict[str, Raw]) -> bool:
        """Return whether a second start at an index is that of the call there: it has its id, or gives its name."""
        if call.state == "whole" or not read_name(fields) or read_text(fields.get("type")) not in ("", "tool_use"):
            return False
        if not call.name:
            return call.is_open()
        return not block.is_ended and bool(call.id) and call.id == read_text(fields.get("id"))

    def _say_again(self, block: Block, call: OpenCall, fields: dict[str, Raw]) -> None:
        block.is_ended = False
        if call.name and call.name != read_name(fields):
            self._assembly.contradict(call, "tool_use.name")
            return
        if not call.name:
            call.name = read_name(fields)
            if not call.id and (id := read_text(fields.get("id"))):
                call.id = id
                self._assembly.calls.register(call)
            self._assembly.calls.announce(call, self._assembly)
        self._read_input(block, call, fields)

    def open(self, index: int, fields: dict[str, Raw]) -> None:
        """Open a block with its start's content (of a whole message: all of it)."""
        self._last, self._highest = index, max(self._highest, index)
        kind = read_text(fields.get("type")) or self._tell_block(fields)
        if kind == "text":
            block = self._open_text(fields)
        elif kind == "thinking" or kind == "redacted_thinking":
            block = self._open_thinking(fields)
        elif kind == "tool_use":
            block = self._open_call(fields)
            self.open_calls[id(block)] = block
        else:
            if not kind.endswith(OWN_BLOCKS):
                self._assembly.deviate("unknown-part", f"content_block {index}", kind)
                if kind in CALL_TYPES:
                    refuse_unread(self._assembly, read_text(fields.get("id")), read_name(fields) or None, kind)
                else:
                    tell_unread(self._assembly, {"block": _json.raw(fields)}, f"content_block {index}")
            block = Block("opaque")
            block.fields = {key: keep(value) for key, value in fields.items()}
        self.by_index[index] = block

    def _tell_block(self, fields: dict[str, Raw]) -> str:
        self._assembly.deviate("missing-type", "content_block")
        if "name" in fields or "input" in fields:
            return "server_tool_use" if read_text(fields.get("id")).startswith("srvtoolu_") else "tool_use"
        tell_unread(
            self._assembly, {key: value for key, value in fields.items() if bytes(value)[:1] == b"{"}, "content_block"
        )
        return "thinking" if "thinking" in fields else "redacted_thinking" if "data" in fields else "text"

    def _open_text(self, fields: dict[str, Raw]) -> Block:
        block = Block("text")
        block.part = self._assembly.open_part(TextStart, native=rest_of(fields, "type", "text", "citations"))
        if bytes(memoryview(fields.get("text", UNSET))[:1]) != b'"' and len(fields) > 1:
            is_said = read(fields.get("text")) is not None
            self._assembly.deviate("wrong-type" if is_said else "missing-field", "content_block.text")
        if "citations" in fields:
            block.citations = [keep(item) for item in read_items(fields["citations"]) or ()]
        said = read(fields.get("text"))
        if text := loose_text(said, "content_block.text", self._assembly):
            self._assembly.add(block.part, self._assembly.lenient_text(text))
            block.takes, block.opening = "", text  # the first delta is looked at: it may say that again
        else:
            block.unread = unread_words(fields, "type", "citations") or ("a text of another type" if said else "")
            block.takes = "" if block.unread else block.takes  # each delta is looked at
        return block

    def _open_thinking(self, fields: dict[str, Raw]) -> Block:
        block, key = Block("thinking"), "thinking"
        if read_text(fields.get("text")) and not read_text(fields.get(key)):
            # quirk: thinking-block-with-text
            self._assembly.deviate("sibling-key", "content_block.text", "thinking")
            key = "text"
        native = rest_of(fields, "type", key, "signature", "data")
        block.part = self._assembly.open_part(ThinkingStart, native=native)
        block.sealed = read_text(fields.get("signature"))
        block.part.signature = block.sealed or None
        block.part.redacted = read_text(fields.get("data")) or None
        if text := read_text(fields.get(key)):
            self._assembly.add(block.part, self._assembly.lenient_text(text))
            block.takes, block.opening = "", text
        return block

    def _open_call(self, fields: dict[str, Raw]) -> Block:
        block = Block("call")
        native = rest_of(fields, "type", "id", "name", "input", *SIBLING_INPUTS)
        call = self._assembly.open_call(read_text(fields.get("id")), read_name(fields), native=native, wait=True)
        block.call, call.unread = call, unread_arguments(native.fields) if native is not None else ""
        self._read_input(block, call, fields)
        if not block.told:  # which its deltas may contradict
            self._assembly.calls.announce(call, self._assembly)
            block.takes = "input_json_delta"
        return block

    def _read_input(self, block: Block, call: OpenCall, fields: dict[str, Raw]) -> None:
        """Take the whole arguments of a start, from each key that may have them."""
        told = [block.told, self._input_text(fields.get("input", UNSET))]
        siblings = [key for key in SIBLING_INPUTS if key in fields]
        if siblings:
            # quirk: input-under-a-sibling-key
            self._assembly.deviate("sibling-key", "tool_use", siblings[0])
            told += [self._input_text(fields[key]) for key in siblings]
        chosen, is_one = told_once(told)
        block.has_input = block.has_input or bool(chosen)
        block.told = "" if is_placeholder(chosen) else chosen
        if block.told:
            block.takes = ""  # each delta is compared with it
        if not is_one:
            self._assembly.contradict(call, "tool_use.input")
        else:
            self._compare(block, call)

    def _input_text(self, value: Raw) -> str:
        text = _json.raw_text(value).strip()
        if text[:1] == '"':
            # quirk: input-as-text
            text = self._assembly.lenient_text(read_text(value)).strip()
            if text:
                self._assembly.deviate("arguments-type", "tool_use.input", "a string")
        return "" if text == "null" else text

    def _compare(self, block: Block, call: OpenCall) -> None:
        """Compare a call's deltas with the whole arguments of its start."""
        said = call.text.raw()
        if block.told and call.text.is_closed() and not said.startswith(block.told) and contradicts(said, block.told):
            self._assembly.contradict(call, "tool_use.input")

    def stop(self, index: int) -> None:
        """Take `content_block_stop`."""
        block = self.by_index.get(index if index >= 0 else self._last)
        if block is None:
            self._assembly.deviate("part-not-opened", f"content_block {index}")
            return
        if not block.is_ended:
            self._end_block(block)

    def _end_block(self, block: Block) -> None:
        block.is_ended = True
        block.takes = ""
        self.open_calls.pop(id(block), None)
        if block.part is not None:
            self._assembly.add(block.part, block.opening[: block.again])  # that was no repetition
            if block.citations:
                block.part.native = Native(NAME, {"citations": _json.raw(block.citations)})
            self._assembly.end_part(block.part)
            if block.unread:  # quirk: text-under-another-key
                words = f"expected a text, got a block without one that has {block.unread}"
                self._assembly.ending.contradiction = self._assembly.ending.contradiction or words
        elif block.call is not None:
            self._end_call(block, block.call)
        else:
            self._assembly.whole_part(Opaque(NAME, _json.raw(block.joined())))

    def _end_call(self, block: Block, call: OpenCall) -> None:
        is_blank = call.text.is_blank()
        self._compare_rival(block, call)
        self._add_told(block, call)
        if call.text.phase not in ("odd", "closed") and call.text.is_started() and not call.text.is_over():
            return  # the rest may come behind this
        self._assembly.end_call(call)
        if is_blank and block.has_input and call.is_open() and not self._assembly.calls.has_strays:
            # `{}` without deltas is a call without arguments, unless a length limit turns out to have cut it
            self._assembly.add_arguments(call, "{}")
        block.has_input = False

    def _compare_rival(self, block: Block, call: OpenCall) -> None:
        """Judge deltas that repeat the start of another call at the index: they may be that call's, in part too."""
        said = call.text.raw() if block.rival else ""
        if said and (is_same(said, block.rival) or isinstance(_json.decode_object(said), Malformed)):
            self._drop_lost(call)

    def _add_told(self, block: Block, call: OpenCall) -> None:
        """Use the start's arguments if no delta had any."""
        if block.told and is_placeholder(call.text.raw()):
            self._assembly.add_arguments(call, block.told)
        block.told = ""

    def finish(self, *, is_good: bool) -> None:
        """End the blocks that were not stopped. A start's arguments count at a good end only: deltas may be lost."""
        for index, block in [(at, one) for at, last in self.by_index.items() for one in (*last.rivals, last)]:
            if block.is_ended:
                continue
            if is_good:
                self._assembly.deviate("part-not-closed", f"content_block {index}")
            if block.call is not None:
                self._compare_rival(block, block.call)
                if not is_good and block.call.kind == "function" and block.call.text.is_empty():
                    words = f"tool call {block.call.name or '(no name)'}: neither its end came nor a stop reason"
                    self._assembly.drop_call(block.call, "cut", words)
                elif is_good and block.told:
                    self._add_told(block, block.call)
                elif is_good and block.has_input and block.call.text.is_blank() and not self._assembly.calls.has_strays:
                    self._assembly.add_arguments(block.call, "{}")
                block.is_ended = True
                block.takes = ""
            elif is_good or block.part is not None:
                self._end_block(block)

    # ------------------------------------------------------------ deltas out of the usual

    def grow(self, event: StreamEvent, frame: bytes) -> None:
        """Take a `content_block_delta` that is not what its block takes."""
        index = event.index
        if index < 0:
            self._assembly.deviate("missing-index", "content_block_delta")
            if event.delta is not None and event.delta.partial_json and self._is_nobodys():
                return
            index = self._last
        self._last, self._highest = index, max(self._highest, index)
        delta = event.delta
        if delta is None:
            self._assembly.deviate("missing-field", "content_block_delta.delta")
            note_missing(self._assembly, "content_block_delta.delta")
            if (block := self.by_index.get(index)) is not None and block.call is not None:
                self._drop_lost(block.call)
            return
        block = self.by_index.get(index)
        kind = delta_kind(delta, TAKES.get(block.kind, "input_json_delta") if block else "", self._assembly)
        if block is not None and block.call is not None:
            note_piece(block.call, delta, frame)
        if block is not None and block.kind == "opaque":
            self._grow_opaque(block, delta, frame)
        elif kind == "text_delta":
            self._grow_part(index, block, "text", delta.text or delta.thinking)
        elif kind == "thinking_delta":
            self._grow_part(index, block, "thinking", delta.thinking or delta.text)
        elif kind == "input_json_delta":
            self._grow_call(index, block, delta.partial_json)
        elif kind == "signature_delta" and block is not None and block.part is not None:
            block.part.signature = joined_seal(block.part.signature, delta.signature, at_start=block.sealed)
        elif kind == "citations_delta" and block is not None:
            citation = delta_fields(frame).get("citation")
            if citation is not None:
                block.cite(keep(citation), self._assembly.bounds)
        else:
            self._assembly.deviate("unknown-event", "content_block_delta", kind)
            if unread_arguments(delta_fields(frame), "type"):
                lose_unread(self._assembly, "content_block_delta")

    def _is_nobodys(self) -> bool:
        """Return whether arguments without an index may belong to several calls: then each of them fails."""
        waiting = [call for block in self.open_calls.values() if (call := block.call) is not None and call.is_open()]
        if len(waiting) < 2:
            return False
        self.open_calls.clear()
        self._assembly.deviate("lost-arguments", "content_block_delta", f"{len(waiting)} calls may have them")
        for call in waiting:
            self._drop_lost(call)
        return True

    def _grow_part(self, index: int, block: Block | None, kind: Literal["text", "thinking"], text: str) -> None:
        if not text:
            return
        if block is None or block.is_ended:
            self._assembly.deviate("part-not-opened", f"content_block {index}")
            block = self.by_index[index] = Block(kind)
            block.part = self._assembly.open_part(TextStart if kind == "text" else ThinkingStart)
        if block.kind == kind and block.part is not None:
            if block.opening:
                text, is_again = block.beyond_opening(text)
                if is_again:  # quirk: text-in-start-and-again
                    self._assembly.deviate("duplicate-final", f"content_block {index}", "the text of its start")
                if block.opening:
                    return
            block.unread = ""
            block.takes = "" if self._assembly.calls.may_lack() else TAKES[kind]  # "": a delta may have what one lacks
            return self._assembly.add(block.part, text)
        self._assembly.deviate("wrong-type", f"content_block {index}", f"{kind}_delta")
        (self._assembly.text if kind == "text" else self._assembly.thinking)(text)

    def _grow_call(self, index: int, block: Block | None, text: str) -> None:
        if not text.strip() and (block is None or block.takes != "input_json_delta"):
            return
        if block is not None and block.rivals and self._lose_to_rivals(block):
            return
        call = block.call if block is not None else None
        if block is not None and call is None and len(self.open_calls) == 1:
            # quirk: arguments-at-the-index-of-a-text
            self._assembly.deviate("odd-index", f"content_block {index}", "arguments for a block that is no call")
            (block,) = self.open_calls.values()
            call = block.call
        if block is None or call is None:
            block = self.by_index[index] = Block("call")
            call = block.call = self._assembly.open_call(None, None)
            block.is_ended = True
            if self._assembly.ending.is_torn:
                self._assembly.drop_call(call, "lost", "tool call (no name): its start could not be read")
        if block.is_ended:
            self._assembly.deviate("part-not-opened", f"content_block {index}")
            if block.rival:
                self._drop_lost(call)
            if call.state == "whole" and text not in call.arguments and not is_placeholder(text):
                self._assembly.contradict(call, "tool_use.input")  # it goes on behind its end
        elif not block.told:
            block.takes = "input_json_delta"
        elif not is_placeholder(text):
            # quirk: input-in-start-and-again
            self._assembly.deviate("repeated-arguments", f"content_block {index}")
        self._assembly.add_arguments(call, text)
        if block.told:
            self._compare(block, call)

    def _grow_opaque(self, block: Block, delta: Delta, frame: bytes) -> None:
        if delta.type == "input_json_delta":
            block.gains.setdefault("input", []).append(delta.partial_json)
            return
        for key, value in delta_fields(frame).items():
            if key == "citation":
                block.gains.setdefault("citations", []).append([read(value)])
            elif key != "type":
                block.gains.setdefault(key, []).append(read(value))
