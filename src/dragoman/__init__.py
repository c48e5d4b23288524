"""dragoman lets any tool-calling program use any language model."""

from __future__ import annotations

import importlib

# Not from `typing`: as long as Python imports this file, Ctrl-C ends `dragoman` with a traceback.
TYPE_CHECKING = False
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
    from dragoman.inputs.saved_messages import dump_messages, load_messages
    from dragoman.types import (
        Attempt,
        BilledApart,
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

    _shared = Client()
    reply = _shared.reply
    stream = _shared.stream
    run = _shared.run
    run_stream = _shared.run_stream
    embed = _shared.embed

__all__ = [
    "Answer", "AsyncClient", "AsyncRun", "AsyncStream", "Attempt", "BilledApart", "CallFailed", "CallFailureKind",
    "Client", "ConfigError", "Cost", "Deviation", "DragomanError", "Effort", "Embeddings", "Event", "Failure",
    "FailureKind", "Finish", "McpFailed", "Media", "Message", "MissingExtra", "ModelFacts", "Named", "Native",
    "NativeEvent", "Opaque", "Origin", "Outcome", "OutputInvalid", "Params", "Part", "PartEvent", "ProtocolName",
    "Reasoning", "Reply", "Request", "ResponseSchema", "Role", "Run", "Severity", "Start", "StepLimit",
    "StopReason", "Stream", "StreamedCall", "Text", "TextDelta", "TextEnd", "TextStart", "Thinking",
    "ThinkingDelta", "ThinkingEnd", "ThinkingStart", "Tool", "ToolCall", "ToolCallDelta", "ToolCallEnd",
    "ToolCallFailed", "ToolCallStart", "ToolFinished", "ToolResult", "ToolStarted", "Usage", "UsageError",
    "UsageUpdate", "WireError", "decode", "dump_messages", "embed", "fold", "load_messages", "reply", "run",
    "run_stream", "stream", "unfold",
]  # fmt: skip

#: Modules that hold the names of `__all__`, in the order in which they are looked for.
_PLACES = ("errors", "events", "types", "decoding", "inputs.saved_messages", "client")
_SHARED = frozenset({"embed", "reply", "run", "run_stream", "stream"})


def __getattr__(name: str) -> object:
    """Import what is asked for at its first use: importing dragoman costs nothing, and asking a model costs no more."""
    if name in _SHARED:
        from dragoman.client.shared import shared_method

        return shared_method(name)
    if name in _PLACES:
        return importlib.import_module(f"dragoman.{name}")
    for place in _PLACES if name in __all__ else ():
        module = importlib.import_module(f"dragoman.{place}")
        if hasattr(module, name):
            return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module 'dragoman' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List all public names, imported or not."""
    return sorted({*globals(), *__all__})
