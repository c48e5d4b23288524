"""The steps of one response.

A response is a list of parts; each part opens, grows, closes. Whole (non-streamed) responses are the same events,
all at once. Grammar of a decoder's output (part indices may interleave)::

    response := Start (part | Deviation | UsageUpdate)* (Finish | Failure)   |   Deviation* Failure
    part(i)  := TextStart TextDelta* TextEnd  |  ThinkingStart ThinkingDelta* ThinkingEnd
              | ToolCallStart ToolCallDelta* (ToolCallEnd | ToolCallFailed)  |  PartEvent

`Deviation` may stand anywhere, before `Start` too, and `NativeEvent` anywhere behind it. Every part is ended or failed
before `Finish` (not before `Failure`); nothing follows the terminal event. Encoders take the same with one part open at
a time (`dragoman.pipe` puts interleaved parts in order).
"""

from __future__ import annotations

from typing import Literal, TypeAlias, final, get_args

import msgspec

from dragoman._json import Raw
from dragoman.types import NO_USAGE, Cost, Media, Native, Opaque, Origin, ProtocolName, StopReason, ToolCall, Usage
from dragoman.types import FailureKind as FailureKind

Severity: TypeAlias = Literal["fault", "note"]
CallFailureKind: TypeAlias = Literal["cut", "unreadable", "lost", "nameless", "refused", "contradicted"]


@final
class Start(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The response has begun. `created` is in Unix seconds; what the wire did not say is None.

    `origin`: who was asked; only the caller knows it.
    """

    id: str | None = None
    model: str | None = None
    created: int | None = None
    native: Native | None = None
    origin: Origin | None = None


@final
class TextStart(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A text part opens.

    `behind` stood before it and is no text: a lone closing tag of thinking, with white space, or a header that says
    that the text is for the user.
    """

    index: int
    native: Native | None = None
    behind: str | None = None


@final
class TextDelta(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """A text part grows by `text` (never empty)."""

    index: int
    text: str


@final
class TextEnd(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A text part closes. `was_thinking`: a lone closing tag showed that it was thinking; `fold` moves it there.

    `native` are fields that only the part's end has; they override those of its start.
    """

    index: int
    was_thinking: bool = False
    signature: str | None = None
    native: Native | None = None


@final
class ThinkingStart(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A thinking part opens."""

    index: int
    native: Native | None = None


@final
class ThinkingDelta(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """A thinking part grows by `text` (never empty)."""

    index: int
    text: str


@final
class ThinkingEnd(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A thinking part closes, with the provider's signature and, if its text was withheld, its encrypted data.

    `native` are fields that only the part's end has; they override those of its start.
    """

    index: int
    signature: str | None = None
    redacted: str | None = None
    native: Native | None = None


@final
class ToolCallStart(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A tool call opens: its id (generated if the wire had none) and its complete name are known."""

    index: int
    id: str
    name: str
    kind: Literal["function", "custom"] = "function"
    native: Native | None = None


@final
class ToolCallDelta(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """The argument text of a call grows by `text` (never empty)."""

    index: int
    text: str


@final
class ToolCallEnd(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A tool call is complete: `call.arguments` is closed JSON, equal to all its deltas."""

    index: int
    call: ToolCall


@final
class ToolCallFailed(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A tool call that cannot be delivered, in place of `ToolCallEnd`; the response goes on.

    `kind`: "cut" (arguments end before they are closed), "unreadable" (not a JSON object), "lost" (more of it may have
    been in a frame that could not be read, or behind the end of the text it was written in), "nameless", "refused" (the
    provider withdrew it, or its text is not of its format), "contradicted" (it came in two ways). `arguments` is the
    raw text that came; `message` never contains it. A nameless call has no `ToolCallStart`.
    """

    index: int
    id: str
    name: str
    kind: CallFailureKind
    message: str
    arguments: str = ""


@final
class PartEvent(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """A part that comes whole: media, or one that only its protocol knows."""

    index: int
    part: Media | Opaque


@final
class NativeEvent(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """An event that only its protocol has, as its JSON text: the progress of a tool that the provider runs.

    It is written again in the same protocol; others, and a `Reply`, have no place for it. `of_part`: it belongs to a
    part that comes whole as a `PartEvent`, which counts; another event is named when it is lost.
    """

    protocol: ProtocolName
    raw: Raw
    of_part: bool = False


@final
class UsageUpdate(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Tokens so far, cumulative, at each report of the wire."""

    usage: Usage
    cost: Cost | None = None


@final
class Finish(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The response ended as its protocol says. `native_reason` is the wire's own word; None if it had none.

    `native` are fields of the response that its end has; they override those of `Start`. Nested fields keep their path:
    `{"choices": [{"logprobs": …}]}`, `{"candidates": [{"groundingMetadata": …}]}`.
    """

    reason: StopReason
    native_reason: str | None = None
    usage: Usage = NO_USAGE
    cost: Cost | None = None
    native: Native | None = None


@final
class Failure(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The response cannot go on. `status` is HTTP's or None, `retry_after` in seconds, `native` as in `Finish`."""

    kind: FailureKind
    message: str
    status: int | None = None
    retry_after: float | None = None
    usage: Usage = NO_USAGE
    cost: Cost | None = None
    code: str | None = None
    native: Native | None = None


@final
class Deviation(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """The wire broke its specification, and dragoman went on. `code` is one of `dragoman.deviations`.

    `where` is a JSON path or a place in words; `seen` is clipped to 200 bytes and never contains argument values.
    `severity` "note": what the protocol's usual servers leave out without harm; no reason to call a wire unclean.
    `texts`, from a decoder to its stages alone: what the pieces of a text said (None: not known), and what another
    event told in whole.
    """

    code: str
    where: str = ""
    seen: str = ""
    severity: Severity = "fault"
    texts: tuple[str | None, str] | None = None


Event: TypeAlias = (
    Start
    | TextStart | TextDelta | TextEnd
    | ThinkingStart | ThinkingDelta | ThinkingEnd
    | ToolCallStart | ToolCallDelta | ToolCallEnd | ToolCallFailed
    | PartEvent | NativeEvent | UsageUpdate | Finish | Failure | Deviation
)  # fmt: skip

EVERY_KIND: frozenset[type] = frozenset(get_args(Event))

#: Events that carry something of the answer; the first one commits a fallback (architecture: the commit point).
SEMANTIC: frozenset[type] = frozenset(
    {TextDelta, ThinkingDelta, ToolCallStart, ToolCallDelta, ToolCallEnd, ToolCallFailed, PartEvent, NativeEvent,
     Finish}
)  # fmt: skip
#: Events that only let a text or a call grow: none of them opens, ends or marks anything.
GROWTH: frozenset[type] = frozenset({TextDelta, ToolCallDelta})


def settle_reason(wire: StopReason | None, *, usable_calls: int, failed_calls: int) -> StopReason:
    """Return the stop reason of a response that reached its end, from the wire's word and its calls.

    length and content_filter are kept; else a usable call makes it tool_use; a claim of tool use without any call is a
    plain stop; a response whose only calls failed is "other" (`fold` reports "error").
    """
    if wire == "length" or wire == "content_filter":
        return wire
    if usable_calls:
        return "tool_use"
    if failed_calls:
        return "other"
    return "stop" if wire is None or wire == "tool_use" else wire
