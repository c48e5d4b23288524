"""Compare the content of a message that is told whole with what its blocks said: a client reads one of both."""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Raw
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.open_parts import OpenCall, OpenPart
from dragoman.codec.parts.settled_arguments import contradicts, is_placeholder, is_same
from dragoman.codec.parts.unread_arguments import tell_unread
from dragoman.protocols.anthropic.response.block import Block
from dragoman.protocols.anthropic.response.lenient import OF_MESSAGE, unread_beside
from dragoman.protocols.anthropic.wire import UNSET, StreamEvent, read_fields, read_items, read_name, read_text

#: Bytes of a first or a last event beside its message, as it usually is.
_LONGEST_EDGE: Final = 64
_NOTHING: Final = (b"", b"[]", b"null", b'""')
_TYPES: Final = {"text": "text", "thinking": "thinking", "call": "tool_use"}
_OF_BLOCK: Final = {
    "text": {"type", "text", "citations"},
    "thinking": {"type", "thinking", "signature"},
    "call": {"type", "id", "name", "input"},
}


def compare(content: Raw | None, assembly: Assembly, *, is_start: bool = False) -> None:
    """Compare content that came beside the blocks. `is_start`: it came first, so that it may have no arguments yet."""
    blocks = [read_fields(item) or {"text": item} for item in read_items(content) or ([content] if content else [])]
    calls = {
        read_text(block.get("id")): (read_name(block), _json.raw_text(block["input"]))
        for block in blocks
        if read_text(block.get("type")) == "tool_use" and "input" in block
    }
    texts = [read_text(block.get("text")) for block in blocks if read_text(block.get("type")) in ("text", "")]
    if any(texts):
        assembly.tell_again("".join(texts))
    if is_start or not blocks:
        return
    for call in [*assembly.calls.by_id.values()]:
        if call.state == "failed":
            continue
        name, values = calls.pop(call.id, ("", ""))
        text = call.arguments or call.text.raw()
        if name != call.name or contradicts(text, values) or (is_placeholder(text) and not is_placeholder(values)):
            assembly.contradict(call, "message.content")
    for id, (name, _) in calls.items():  # that no block has said
        assembly.contradict(assembly.open_call(id, name), "message.content")


def look_at_edge(kind: str, event: StreamEvent, frame: bytes, assembly: Assembly) -> None:
    """Compare the message that the last event tells, and name the unread fields beside it, or beside that of the first
    event: they may be calls, or a proxy's copy of the answer.
    """
    if kind == "message_stop" and (message := read_fields(event.message)) is not None:
        event.message = UNSET
        _compare_message(message, assembly)
    if len(frame) - len(event.message) > _LONGEST_EDGE:
        tell_unread(assembly, unread_beside(frame), kind)


def _compare_message(message: dict[str, Raw], assembly: Assembly) -> None:
    """Compare the whole message that the last event of Anthropic's SDK tells."""
    assembly.deviate("duplicate-final", "message_stop.message")
    content = message.get("content", UNSET)
    if bytes(memoryview(content)) not in _NOTHING:
        compare(content, assembly)
        if not (assembly.has_said or assembly.calls.by_id):  # it is the answer, and no repetition
            tell_unread(assembly, {"message": content}, "message_stop")
    tell_unread(assembly, {key: message[key] for key in message.keys() - OF_MESSAGE}, "message_stop.message")


class ToldBlocks:
    """Compares the blocks that their ends tell whole, as the events of Anthropic's SDK do."""

    __slots__ = ("_assembly",)

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def has(self, block: Block | None, content: Raw) -> bool:
        """Return whether the end of a block tells it once more. What it tells beside is looked at as in a start."""
        fields = read_fields(content) or {}
        if block is None or read_text(fields.get("type")) not in ("", _TYPES.get(block.kind)):
            return False
        if block.call is not None:
            is_again = self._is_call(block, block.call, fields)
        else:
            is_again = block.part is not None and self._is_text(block, block.part, fields)
        if is_again:
            beside = {key: value for key, value in fields.items() if key not in _OF_BLOCK[block.kind]}
            tell_unread(self._assembly, beside, "content_block_stop")
        return is_again

    def _is_call(self, block: Block, call: OpenCall, fields: dict[str, Raw]) -> bool:
        if "input" not in fields or read_text(fields.get("id")) not in ("", call.id) or read_name(fields) != call.name:
            return False
        arguments = call.text.raw().strip() or block.told or "{}"  # a call without any has no pieces
        told = _json.raw_text(fields["input"])
        return told == "null" or is_same(arguments, told)

    def _is_text(self, block: Block, part: OpenPart, fields: dict[str, Raw]) -> bool:
        """Compare a text. One that nothing else said is read here, and thinking."""
        text = read_text(fields.get(block.kind))
        if block.kind != "text":
            part.signature = part.signature or read_text(fields.get("signature")) or None
        if bytes(memoryview(fields.get(block.kind, UNSET))) in _NOTHING:
            return True  # the block as it began
        if not part.has_said:
            self._assembly.deviate("final-differs", "content_block_stop")
            self._assembly.add(part, text)
            return True
        if block.kind != "text":
            self._assembly.deviate("duplicate-final", "content_block_stop", "thinking", severity="note")
            return True
        said = self._assembly.said.plus(block.opening[: block.again])
        is_same = part.before is not None and said == part.before.plus(text)
        self._assembly.deviate("duplicate-final" if is_same else "final-differs", "content_block_stop")
        if not is_same:
            self._assembly.tell_again(text)
        return True
