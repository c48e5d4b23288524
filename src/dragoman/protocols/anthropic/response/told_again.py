"""Compare the content of a message that is told whole with what its blocks said: a client reads one of both."""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Raw
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.settled_arguments import contradicts, is_placeholder, is_same
from dragoman.codec.parts.unread_arguments import tell_unread
from dragoman.protocols.anthropic.response.block import Block
from dragoman.protocols.anthropic.response.lenient import OF_MESSAGE
from dragoman.protocols.anthropic.wire import UNSET, read_fields, read_items, read_name, read_text

_NOTHING: Final = (b"", b"[]", b"null", b'""')
_OF_CALL: Final = {"type", "id", "name", "input"}


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


def compare_message(message: dict[str, Raw], assembly: Assembly) -> None:
    """Compare the whole message that the last event of Anthropic's SDK tells."""
    assembly.deviate("duplicate-final", "message_stop.message")
    content = message.get("content", UNSET)
    if bytes(memoryview(content)) not in _NOTHING:
        compare(content, assembly)
    tell_unread(assembly, {key: message[key] for key in message.keys() - OF_MESSAGE}, "message_stop.message")


def is_call_again(block: Block | None, content: Raw, assembly: Assembly) -> bool:
    """Return whether the end of a block tells its call once more, as the events of Anthropic's SDK do.

    What it tells beside the call is looked at as in a start.
    """
    call, fields = block.call if block is not None else None, read_fields(content) or {}
    if block is None or call is None or "input" not in fields or read_text(fields.get("id")) not in ("", call.id):
        return False
    arguments = call.text.raw().strip() or block.told or "{}"  # a call without any has no pieces
    is_again = (
        read_text(fields.get("type")) in ("", "tool_use")
        and read_name(fields) == call.name
        and is_same(arguments, _json.raw_text(fields["input"]))
    )
    if is_again:
        beside = {key: value for key, value in fields.items() if key not in _OF_CALL}
        tell_unread(assembly, beside, "content_block_stop")
    return is_again
