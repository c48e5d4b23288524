"""Turn a request with tools into one without: a system text, a schema for the answer, calls and results as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from dragoman import _json
from dragoman._json import Json
from dragoman.events import Deviation
from dragoman.protocol import ToolMode
from dragoman.tool_emulation.answer_schema import answer_schema
from dragoman.tool_emulation.prompt_text import system_words
from dragoman.types import (
    Media,
    Message,
    Named,
    Native,
    Part,
    Request,
    ResponseSchema,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)

#: Wire fields that speak of tools, in any protocol: they would be refused as tools are.
_NATIVE_KEYS: Final = frozenset(
    {"tools", "tool_choice", "toolConfig", "tool_config", "parallel_tool_calls", "functions", "function_call"}
)


def reading_mode(request: Request, way: ToolMode) -> ToolMode:
    """Return how the answer to a request is read: native if it offers no callable tool."""
    if way == "native" or request.tool_choice == "none":
        return "native"
    return way if any(_is_sayable(tool) for tool in request.tools) else "native"


def ask(request: Request, way: ToolMode) -> tuple[Request, tuple[Deviation, ...]]:
    """Return the request in that way, and what it cannot express. `native` changes nothing."""
    if way == "native":
        return request, ()
    has_turns = any(isinstance(part, ToolCall | ToolResult) for message in request.messages for part in message.parts)
    if not (request.tools or has_turns):
        return request, ()
    lost = [
        Deviation("dropped", f"tools[{place}]", "a tool that takes free text can be asked for natively only")
        for place, tool in enumerate(request.tools)
        if not _is_sayable(tool)
    ]
    tools = [tool for tool in request.tools if _is_sayable(tool)]
    params = msgspec.structs.replace(request.params, parallel_tools=None)
    words = ""
    if reading_mode(request, way) == "native":
        words = _NO_CALLS if has_turns else ""
    elif way == "schema":
        words = system_words(request, tools, way)
        schema = answer_schema(
            [tool for tool in tools if Named(tool.name) == request.tool_choice] or tools,
            may_answer=request.tool_choice == "auto",
            answer=params.response_schema,
            most_calls=1 if request.params.parallel_tools is False else None,
        )
        params = msgspec.structs.replace(params, response_schema=ResponseSchema(_json.raw(schema)))
    else:
        words = system_words(request, tools, way)
        if params.response_schema is not None:
            params = msgspec.structs.replace(params, response_schema=None)
            lost.append(Deviation("changed", "params.response_schema", "asked for in words"))
    messages = _with_words(_rewritten(request.messages, way, lost), words)
    return (
        msgspec.structs.replace(
            request,
            messages=messages,
            tools=(),
            tool_choice="auto",
            params=params,
            native=_without_tools(request.native, lost),
        ),
        tuple(lost),
    )


def without_tools(request: Request) -> Request:
    """Return the request without its tools; earlier calls and results become text."""
    return ask(msgspec.structs.replace(request, tool_choice="none"), "prompted")[0]


def _is_sayable(tool: Tool) -> bool:
    return tool.kind == "function"


def _without_tools(native: Native | None, lost: list[Deviation]) -> Native | None:
    if native is None or not _NATIVE_KEYS & native.fields.keys():
        return native
    lost += [
        Deviation("dropped", f"native.{key}", "tools are not sent") for key in native.fields if key in _NATIVE_KEYS
    ]
    return Native(native.protocol, {key: value for key, value in native.fields.items() if key not in _NATIVE_KEYS})


# ---------------------------------------------------------------- the system text

_NO_CALLS: Final = "Earlier messages show calls of tools and their results. No tool can be called now: answer in words."


def _with_words(messages: tuple[Message, ...], words: str) -> tuple[Message, ...]:
    """Append the words to the conversation's own system text, in the same message: many templates take only one."""
    if not words:
        return messages
    first = messages[0] if messages else None
    if first is None or first.role != "system":
        return (Message("system", (Text(words),)), *messages)
    parts = _joined([*first.parts, Text(words)], "\n\n")
    return (msgspec.structs.replace(first, parts=parts), *messages[1:])


# ---------------------------------------------------------------- earlier turns


def _rewritten(messages: Sequence[Message], way: ToolMode, lost: list[Deviation]) -> tuple[Message, ...]:
    """Return the conversation with calls and results as text. A user's words behind a result join its message."""
    out: list[Message] = []
    run: list[Message] = []  # results, which become one message
    places: dict[str, int] = {}  # by call, its place in its turn
    for number, message in enumerate(messages):
        if any(isinstance(part, ToolResult) for part in message.parts):
            parts = _results(message.parts, places, where=f"messages[{number}]", lost=lost)
            run.append(Message("user", parts))
            continue
        is_behind = bool(run) and message.role == "user"
        if run:
            out.append(_merged([*run, message] if is_behind else run))
            run = []
        if is_behind:
            continue
        if any(isinstance(part, ToolCall) for part in message.parts):
            places |= {call.id: place for place, call in enumerate(message.tool_calls)}
            message = msgspec.structs.replace(message, parts=_called(message.parts, way), native=None)
        out.append(message)
    return (*out, _merged(run)) if run else tuple(out)


def _merged(run: Sequence[Message]) -> Message:
    return Message("user", _joined([part for message in run for part in message.parts], "\n"), run[-1].native)


def _called(parts: Sequence[Part], way: ToolMode) -> tuple[Part, ...]:
    """Return an assistant's turn with its calls as text of the requested form."""
    out: list[Part] = []
    calls: list[str] = []
    for part in (*parts, None):
        if isinstance(part, ToolCall):
            calls.append(_call_text(part))
            continue
        if calls:
            if way == "schema":
                out.append(Text(f'{{"tool_calls": [{", ".join(calls)}]}}'))
            else:
                out += [Text(f"<tool_call>{_closed_in(call, 'tool_call')}</tool_call>") for call in calls]
            calls = []
        if part is not None:
            out.append(part)
    return _joined(out, "\n")


def _call_text(call: ToolCall) -> str:
    arguments = call.arguments.strip() or "{}"
    if call.kind == "custom":
        arguments = _json.to_text({"input": call.arguments})
    return f'{{"name": {_json.to_text(call.name)}, "arguments": {arguments}}}'


def _results(
    parts: Sequence[Part], places: Mapping[str, int], *, where: str, lost: list[Deviation]
) -> tuple[Part, ...]:
    """Return results in the order of their calls, and the message's other parts behind them."""
    out: list[Part] = []
    others = [part for part in parts if not isinstance(part, ToolResult)]
    results = [(place, part) for place, part in enumerate(parts) if isinstance(part, ToolResult)]
    for place, result in sorted(results, key=lambda item: places.get(item[1].call_id, len(parts))):
        answer: dict[str, Json] = {"name": result.name} if result.name else {}
        value = _json.decode(result.text)
        answer["error" if result.is_error else "content"] = (
            _json.embed(result.text) if isinstance(value, dict | list) else result.text
        )
        out.append(Text(f"<tool_response>{_closed_in(_json.to_text(answer), 'tool_response')}</tool_response>"))
        for number, inner in enumerate(result.parts):
            if isinstance(inner, Media):
                out.append(inner)
            elif not isinstance(inner, Text):
                lost.append(Deviation("dropped", f"{where}.parts[{place}].parts[{number}]", "not text"))
    return (*out, *others)


def _closed_in(text: str, tag: str) -> str:
    """Return JSON text that cannot contain the closing tag: a slash may be escaped."""
    return text.replace(f"</{tag}>", f"<\\/{tag}>")


def _joined(parts: Iterable[Part], between: str) -> tuple[Part, ...]:
    """Join neighbouring texts, unless one of them has fields of its own."""
    out: list[Part] = []
    run: list[str] = []  # texts that become one
    is_behind_text = False
    for part in parts:
        is_plain = isinstance(part, Text) and not (part.signature or part.native)
        if run and is_plain and isinstance(part, Text):
            run.append(part.text)
            continue
        out += [Text(between.join(run))] if run else []
        run = []
        if isinstance(part, Text) and is_behind_text:
            part = msgspec.structs.replace(part, text=between + part.text)
        is_behind_text = isinstance(part, Text)
        if is_plain and isinstance(part, Text):
            run = [part.text]
        else:
            out.append(part)
    return (*out, Text(between.join(run))) if run else tuple(out)


__all__ = ["ask", "reading_mode", "without_tools"]
