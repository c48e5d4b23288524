"""How much one answer may hold: `AnswerBounds`. Everything that a provider's words make grow ends at one of these."""

from __future__ import annotations

from typing import Final, final

import msgspec

_MIB: Final = 1024 * 1024


@final
class AnswerBounds(msgspec.Struct, frozen=True, gc=False):
    """Bounds of one answer. Sizes in bytes. An answer that breaks one fails with the setting's name.

    Attributes:
        parts: parts and calls; a long answer of an agent has some dozens.
        calls: calls among them.
        arguments: characters of one call's arguments.
        frame: of one frame, or of a whole JSON body; a picture is one frame.
        answer: in all, unpacked, and so of all its text: half a million chunks.
        whole: of an answer that is held to be given in one piece.
        apart: of a frame, or a call that is read as a whole, beyond which a thread reads.
        frame_values: JSON values of a frame that is larger than 256 KiB, an empty list or object for two; log
            probabilities of a whole answer have 200 a token.
    """

    parts: int = 4_096
    calls: int = 4_096
    arguments: int = 8 * _MIB
    frame: int = 16 * _MIB
    answer: int = 128 * _MIB
    whole: int = 32 * _MIB
    apart: int = 16 * 1024
    frame_values: int = 1_000_000

    def overrun(self, *, parts: int, calls: int) -> str:
        """What an answer of so many parts, and of so many calls among them, breaks, in words; "" for nothing."""
        if parts > self.parts:
            return exceeded(f"a response of at most {self.parts} parts", "parts", f"{parts} or more")
        if calls > self.calls:
            return exceeded(f"a response of at most {self.calls} calls", "calls", f"{calls} or more")
        return ""


USUAL_BOUNDS: Final = AnswerBounds()


def exceeded(what: str, setting: str, seen: str) -> str:
    """The words for an answer that breaks a bound: what was expected, which setting says so, what was seen."""
    return f"expected {what} (setting server.limits.{setting}), got {seen}"
