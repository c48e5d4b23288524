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
    """Bounds. A request or an answer that exceeds one is refused with the setting's name.

    Attributes:
        body_mib: a request's body, compressed and decompressed.
        depth: lists and objects around a value.
        values: JSON values of a request.
        members: members of one object, of a request or an answer's event larger than 256 KiB; fields of
            a chat, Ollama or Gemini answer beside the usual ones.
        messages: messages, contents, or items of an input.
        tools: tools of a request.
        media_mib: one image or file.
        parts: parts of an answer, calls included; `calls`: the calls among them.
        arguments_mib: characters of one call's arguments, in units of 2^20.
        argument_values: JSON values of one call's arguments.
        frame_mib: one event, or a whole JSON body.
        frame_values: JSON values of a frame larger than 256 KiB.
        answer_mib: an answer, decompressed, and so its text.
        whole_mib: what is held of an answer that is delivered whole.
        embeddings_mib: an answer with embeddings of few texts; `embedding_kib`: of each text, where there are many.
        apart_kib: a frame, or a call that must be read as a whole, above which a thread reads it.
    """

    body_mib: Positive = 32
    depth: Positive = 128
    values: Positive = 250_000
    members: Positive = 32_768
    messages: Positive = 50_000
    tools: Positive = 512
    media_mib: Positive = 20
    parts: Positive = 4_096
    calls: Positive = 4_096
    arguments_mib: Positive = 8
    argument_values: Positive = 65_536
    frame_mib: Positive = 16
    frame_values: Positive = 1_000_000
    answer_mib: Positive = 128
    whole_mib: Positive = 32
    embeddings_mib: Positive = 64
    embedding_kib: Positive = 96
    apart_kib: Positive = 16

    def answers(self) -> AnswerBounds:
        """Return the bounds of an answer."""
        return AnswerBounds(
            self.parts,
            self.calls,
            self.arguments_mib * _MIB,
            self.frame_mib * _MIB,
            self.answer_mib * _MIB,
            self.whole_mib * _MIB,
            self.apart_kib * _KIB,
            self.frame_values,
            self.argument_values,
            self.members,
            self.embeddings_mib * _MIB,
            self.embedding_kib * _KIB,
        )
