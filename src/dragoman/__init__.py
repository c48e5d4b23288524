"""dragoman lets any tool-calling program use any language model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.errors import (
    CallFailed,
    ConfigError,
    DragomanError,
    McpFailed,
    MissingExtra,
    OutputInvalid,
    StepLimit,
    UsageError,
    WireError,
)
from dragoman.events import (
    CallFailureKind,
    Deviation,
    Event,
    Failure,
    Finish,
    NativeEvent,
    PartEvent,
    Reply,
    Severity,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    UsageUpdate,
    fold,
    unfold,
)
from dragoman.types import (
    Attempt,
    Cost,
    Effort,
    FailureKind,
    Media,
    Message,
    Named,
    Native,
    Opaque,
    Origin,
    Outcome,
    Params,
    Part,
    ProtocolName,
    Reasoning,
    Request,
    ResponseSchema,
    Role,
    StopReason,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)

if TYPE_CHECKING:
    from dragoman.client import (
        Answer,
        AsyncClient,
        AsyncRun,
        AsyncStream,
        Client,
        Embeddings,
        ModelFacts,
        Run,
        Stream,
        StreamedCall,
        ToolFinished,
        ToolStarted,
    )
    from dragoman.decoding import decode

    _shared = Client()
    reply = _shared.reply
    stream = _shared.stream
    run = _shared.run
    run_stream = _shared.run_stream
    embed = _shared.embed

__all__ = [
    "Answer", "AsyncClient", "AsyncRun", "AsyncStream", "Attempt", "CallFailed", "CallFailureKind", "Client",
    "ConfigError", "Cost", "Deviation", "DragomanError", "Effort", "Embeddings", "Event", "Failure", "FailureKind",
    "Finish", "McpFailed", "Media", "Message", "MissingExtra", "ModelFacts", "Named", "Native", "NativeEvent", "Opaque",
    "Origin", "Outcome", "OutputInvalid", "Params", "Part", "PartEvent", "ProtocolName", "Reasoning", "Reply",
    "Request", "ResponseSchema", "Role", "Run", "Severity", "Start", "StepLimit", "StopReason", "Stream",
    "StreamedCall", "Text", "TextDelta", "TextEnd", "TextStart", "Thinking", "ThinkingDelta", "ThinkingEnd",
    "ThinkingStart", "Tool", "ToolCall", "ToolCallDelta", "ToolCallEnd", "ToolCallFailed", "ToolCallStart",
    "ToolFinished", "ToolResult", "ToolStarted", "Usage", "UsageError", "UsageUpdate", "WireError", "decode", "embed",
    "fold", "reply", "run", "run_stream", "stream", "unfold",
]  # fmt: skip

_OF_CLIENT = frozenset(
    [
        "Answer",
        "AsyncClient",
        "AsyncRun",
        "AsyncStream",
        "Client",
        "Embeddings",
        "ModelFacts",
        "Run",
        "Stream",
        "StreamedCall",
        "ToolFinished",
        "ToolStarted",
    ]
)
_SHARED = frozenset({"embed", "reply", "run", "run_stream", "stream"})


def __getattr__(name: str) -> object:
    """Import decoders and clients, with their HTTP library, at their first use: importing dragoman costs little."""
    if name == "decode":
        from dragoman.decoding import decode

        return decode
    if name in _SHARED:
        from dragoman.client.shared import shared_method

        return shared_method(name)
    if name in _OF_CLIENT:
        from dragoman import client

        return getattr(client, name)
    raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
