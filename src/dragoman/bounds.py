"""The bounds of one answer: `AnswerBounds`. Everything that a provider can make grow ends at one of these."""

from __future__ import annotations

from typing import Final, final

import msgspec

_MIB: Final = 1024 * 1024


@final
class AnswerBounds(msgspec.Struct, frozen=True, gc=False):
    """Bounds of one answer. Sizes in bytes. An answer that exceeds one fails with the setting's name.

    Attributes:
        parts: parts and calls; a long answer of an agent has some dozens.
        calls: calls among them.
        arguments: characters of one call's arguments.
        argument_values: JSON values of one call's arguments, an empty list or object for two: what reads them at once
            holds the interpreter meanwhile.
        frame: one frame, or a whole JSON body; a picture is one frame.
        answer: the whole answer, decompressed, and so all its text: half a million chunks.
        whole: an answer that is held until it is complete.
        apart: a frame, or a call that is read as a whole, above which a thread reads it.
        frame_values: JSON values of a frame that is larger than 256 KiB, an empty list or object for two; log
            probabilities of a whole answer have 200 per token.
        members: members of one object of such a frame: no step of ours comes between two that are read at once, so
            nobody else's either; fields of an answer beside the usual ones, outside lists.
        embeddings: an answer with the vectors of few texts.
        embedding: of each text, where there are many: 4,096 numbers, each on a line of its own.
    """

    parts: int = 4_096
    calls: int = 4_096
    arguments: int = 8 * _MIB
    frame: int = 16 * _MIB
    answer: int = 128 * _MIB
    whole: int = 32 * _MIB
    apart: int = 16 * 1024
    frame_values: int = 1_000_000
    argument_values: int = 65_536
    members: int = 32_768
    embeddings: int = 64 * _MIB
    embedding: int = 96 * 1024

    def of_embeddings(self, texts: int) -> int:
        """Return how large an answer with the vectors of so many texts may be."""
        return max(self.embeddings, texts * self.embedding)

    def overrun(self, *, parts: int, calls: int) -> str:
        """Describe the bound that an answer of so many parts and calls exceeds; "" if none."""
        if parts > self.parts:
            return exceeded(f"a response of at most {self.parts} parts", "parts", f"{parts} or more")
        if calls > self.calls:
            return exceeded(f"a response of at most {self.calls} calls", "calls", f"{calls} or more")
        return ""


USUAL_BOUNDS: Final = AnswerBounds()


def exceeded(what: str, setting: str, seen: str) -> str:
    """Return the message for an answer that exceeds a bound: what was expected, which setting, what was seen."""
    return f"expected {what} (setting server.limits.{setting}), got {seen}"
