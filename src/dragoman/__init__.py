"""dragoman stands between programs that call tools through a language model and every model that can be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.errors import CallFailed, ConfigError, DragomanError, StepLimit, UsageError, WireError
from dragoman.events import (
    Deviation,
    Event,
    Failure,
    Finish,
    PartEvent,
    Reply,
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
    Cost,
    Media,
    Message,
    Named,
    Opaque,
    Params,
    Reasoning,
    Request,
    ResponseSchema,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)

if TYPE_CHECKING:
    from dragoman.client import Answer, AsyncClient, AsyncStream, Attempt, Client, ModelFacts, Stream
    from dragoman.decoding import decode

__all__ = [
    "Answer", "AsyncClient", "AsyncStream", "Attempt", "CallFailed", "Client", "ConfigError", "Cost", "Deviation",
    "DragomanError", "Event", "Failure", "Finish", "Media", "Message", "ModelFacts", "Named", "Opaque", "Params",
    "PartEvent", "Reasoning", "Reply", "Request", "ResponseSchema", "Start", "StepLimit", "Stream", "Text",
    "TextDelta", "TextEnd", "TextStart", "Thinking", "ThinkingDelta", "ThinkingEnd", "ThinkingStart", "Tool",
    "ToolCall", "ToolCallDelta", "ToolCallEnd", "ToolCallFailed", "ToolCallStart", "ToolResult", "Usage", "UsageError",
    "UsageUpdate", "WireError", "decode", "fold", "unfold",
]  # fmt: skip

_OF_CLIENT = frozenset({"Answer", "AsyncClient", "AsyncStream", "Attempt", "Client", "ModelFacts", "Stream"})


def __getattr__(name: str) -> object:
    """What reads bytes, and the client with its HTTP library, are loaded at their first use: importing costs little."""
    if name == "decode":
        from dragoman.decoding import decode

        return decode
    if name in _OF_CLIENT:
        from dragoman import client

        return getattr(client, name)
    raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
