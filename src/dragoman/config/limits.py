"""`[server.limits]`: the bounds of one request and of its answer."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias, final

import msgspec

from dragoman.bounds import AnswerBounds

Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
_KIB: Final = 1024
_MIB: Final = 1024 * 1024


@final
class LimitsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds; a request or an answer that breaks one is refused with the setting's name.

    Of a request: `body_mib`: its body, packed and unpacked; `depth`: lists and objects around a value; `values`: JSON
    values; `messages` (or contents, or items of an input); `tools`; `media_mib`: one image or file.
    Of an answer: `parts` and calls; `calls` among them; `arguments_mib`: millions (2^20) of characters of one call;
    `frame_mib`: one event, or a whole JSON body; `frame_values`: JSON values of one that is larger than 256 KiB;
    `answer_mib`: all of it, unpacked, and so its text; `whole_mib`: what is held of one that is given in one piece.
    `apart_kib`: a frame, or a call that must be read as a whole, beyond which a thread reads.
    """

    body_mib: Positive = 32
    depth: Positive = 128
    values: Positive = 250_000
    messages: Positive = 50_000
    tools: Positive = 512
    media_mib: Positive = 20
    parts: Positive = 4_096
    calls: Positive = 4_096
    arguments_mib: Positive = 8
    frame_mib: Positive = 16
    frame_values: Positive = 1_000_000
    answer_mib: Positive = 128
    whole_mib: Positive = 32
    apart_kib: Positive = 16

    def answers(self) -> AnswerBounds:
        """Those of an answer."""
        return AnswerBounds(
            self.parts,
            self.calls,
            self.arguments_mib * _MIB,
            self.frame_mib * _MIB,
            self.answer_mib * _MIB,
            self.whole_mib * _MIB,
            self.apart_kib * _KIB,
            self.frame_values,
        )
