"""Calls in frames that nobody can read are seen at their marks as a search of the whole frame would see them."""

from __future__ import annotations

import itertools

from dragoman.codec.parts import torn_frames

_TOKENS = (
    *(b'tool_calls"', b'function_call"', b'functionCall"', b"function", b'_call"', b'"type"', b'"tool_use"', b'"args"'),
    *(b":", b" ", b"[", b"]", b"{", b'"', b"x"),
)


def test_calls_are_seen_at_their_marks() -> None:
    for length in (1, 2, 3):
        for tokens in itertools.product(_TOKENS, repeat=length):
            frame = b"".join(tokens)
            assert torn_frames._shows_call(frame) == (torn_frames._CALL.search(frame) is not None), frame
            is_typed = torn_frames._stands(torn_frames._TYPE, torn_frames._TYPE_MARKS, frame)
            assert is_typed == (torn_frames._TYPE.search(frame) is not None), frame
