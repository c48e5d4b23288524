"""Entries of `tool_calls`, in deltas and in whole messages, on their way to the call that they belong to."""

from __future__ import annotations

from dragoman.assembly import Assembly
from dragoman.calls import CallSlots
from dragoman.protocols.openai_chat.wire import CallPiece, parts_of, signature_of


def read_piece(piece: CallPiece, slots: CallSlots, assembly: Assembly) -> None:
    """Take an entry of a delta."""
    function = piece.function
    if (
        function is not None
        and function.arguments
        and not (piece.id or function.name or piece.name or piece.extra_content)
        and slots.grow(piece.index, function.arguments)
    ):
        return  # the usual delta
    name, arguments, kind = parts_of(piece)
    if not (piece.id or name or arguments or piece.type == "custom" or piece.extra_content is not None):
        return  # an entry that says nothing
    call = slots.fragment(piece.index, piece.id or "", name, arguments, kind=kind)
    if name and not piece.type:
        assembly.deviate("missing-type", f"call {call.index}")
    if piece.function is None and piece.name:
        assembly.deviate("sibling-key", f"call {call.index}", "no function object")
    call.signature = signature_of(piece) or call.signature


def read_whole(piece: CallPiece, slots: CallSlots, assembly: Assembly) -> None:
    """Take an entry of a whole message."""
    name, arguments, kind = parts_of(piece)
    if not piece.type:
        assembly.deviate("missing-type", f"call {name}")
    if piece.function is None and piece.name:
        assembly.deviate("sibling-key", f"call {name}", "no function object")
    slots.whole(piece.id or "", name, arguments, kind=kind, signature=signature_of(piece))
