"""The events of one response (`steps`), and their sum (`reply`)."""

from __future__ import annotations

from dragoman.events.reply import Fold, Reply, fold, unfold
from dragoman.events.steps import (
    EVERY_KIND,
    GROWTH,
    SEMANTIC,
    CallFailureKind,
    Deviation,
    Event,
    Failure,
    Finish,
    NativeEvent,
    PartEvent,
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
    settle_reason,
)
from dragoman.types import FailureKind

__all__ = [
    "Start", "TextStart", "TextDelta", "TextEnd", "ThinkingStart", "ThinkingDelta", "ThinkingEnd", "ToolCallStart",
    "ToolCallDelta", "ToolCallEnd", "ToolCallFailed", "PartEvent", "NativeEvent", "UsageUpdate", "Finish",
    "Failure", "Deviation", "Event", "EVERY_KIND", "SEMANTIC", "GROWTH", "settle_reason", "Severity",
    "CallFailureKind", "FailureKind", "Fold", "Reply", "fold", "unfold",
]  # fmt: skip
