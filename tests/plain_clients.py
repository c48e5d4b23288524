"""Clients as they are: each reads the documented form of its protocol, as the vendors' libraries do, and nothing else.

What they cannot read is a `ValueError`. They share no code with the decoders.
"""

from __future__ import annotations

from collections.abc import Iterator
from json import loads
from typing import Any

#: A call as a client would run it.
Call = tuple[Any, Any]


def events(body: bytes) -> Iterator[dict[str, Any]]:
    """The objects of an event stream, up to its `[DONE]`."""
    for block in body.decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n\n"):
        data = [line[5:].lstrip() for line in block.split("\n") if line.startswith("data:")]
        if data:
            text = "\n".join(data)
            yield {"done": True} if text == "[DONE]" else _object(loads(text))


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, got {value!r:.60}")
    if value.get("error") or value.get("type") == "error":
        raise ValueError("the answer failed")
    return value


def chat(body: bytes, *, is_whole: bool) -> list[Call]:
    if is_whole:
        [choice] = _object(loads(body))["choices"]
        told = [call["function"] for call in choice["message"].get("tool_calls") or ()]
        return [_called(function["name"], function["arguments"]) for function in told]
    calls: dict[int, list[str]] = {}
    reason = is_done = None
    for chunk in events(body):
        is_done = chunk.get("done") or is_done
        for choice in chunk.get("choices") or ():
            reason = choice.get("finish_reason") or reason
            for piece in (choice.get("delta") or {}).get("tool_calls") or ():
                function = piece.get("function") or {}
                call = calls.setdefault(piece["index"], ["", ""])
                call[0] += function.get("name") or ""
                call[1] += function.get("arguments") or ""
    _ended(reason and is_done)
    return [_called(*call) for call in calls.values()]


def messages(body: bytes, *, is_whole: bool) -> list[Call]:
    if is_whole:
        blocks = _object(loads(body))["content"]
        return [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
    begun: dict[int, tuple[dict[str, Any], list[str]]] = {}
    is_done = False
    for event in events(body):
        match event["type"]:
            case "content_block_start":
                begun[event["index"]] = (event["content_block"], [])
            case "content_block_delta" if event["delta"]["type"] == "input_json_delta":
                begun[event["index"]][1].append(event["delta"]["partial_json"])
            case "message_stop":
                is_done = True
    _ended(is_done)
    return [
        _called(block["name"], "".join(pieces)) if any(pieces) else (block["name"], block["input"])
        for block, pieces in begun.values()
        if block["type"] == "tool_use"
    ]


def responses(body: bytes, *, is_whole: bool) -> list[Call]:
    if is_whole:
        return _items(_object(loads(body))["output"])
    ended: list[dict[str, Any]] = []
    final: list[dict[str, Any]] | None = None
    for event in events(body):
        if event["type"] == "response.output_item.done":
            ended.append(event["item"])
        elif event["type"] == "response.completed":
            final = event["response"].get("output") or []
    _ended(final is not None)
    by_events, by_end = _items(ended), _items(final or [])
    if by_end and by_events != by_end:
        raise ValueError("the events and the final list tell different calls")
    return by_events


def _items(items: list[dict[str, Any]]) -> list[Call]:
    return [_called(item["name"], item["arguments"]) for item in items if item["type"] == "function_call"]


def gemini(body: bytes, *, is_whole: bool) -> list[Call]:
    calls: list[Call] = []
    reason = None
    going_on: Call | None = None
    for answer in [_object(loads(body))] if is_whole else events(body):
        for candidate in (answer.get("candidates") or ())[:1]:
            reason = candidate.get("finishReason") or reason
            for part in candidate.get("content", {}).get("parts") or ():
                call = part.get("functionCall")
                if call is None:
                    continue
                told = call.get("args") or {}
                if going_on is None:
                    going_on = (call["name"], told)
                for piece in call.get("partialArgs") or ():
                    [value] = [value for key, value in piece.items() if key.endswith("Value")]
                    going_on[1][piece["jsonPath"].removeprefix("$.")] = value
                if call.get("willContinue") not in (None, False, True):
                    raise ValueError("willContinue is a boolean")
                if not call.get("willContinue"):
                    calls.append(going_on)
                    going_on = None
    _ended(reason and reason != "MALFORMED_FUNCTION_CALL" and going_on is None)
    return calls


def ollama(body: bytes, *, is_whole: bool) -> list[Call]:
    lines = [_object(loads(line)) for line in body.split(b"\n") if line.strip()]
    told = [call["function"] for line in lines for call in line["message"].get("tool_calls") or ()]
    _ended(lines[-1]["done"])
    return [(function["name"], function["arguments"]) for function in told]


def _ended(mark: object) -> None:
    if not mark:
        raise ValueError("the answer did not end")


def _called(name: Any, text: str) -> Call:
    if not isinstance(name, str) or not name:
        raise ValueError("a call has no name")
    return name, loads(text or "{}")


CLIENTS = {
    "openai-chat": chat, "anthropic-messages": messages, "openai-responses": responses, "gemini-generate": gemini,
    "ollama-chat": ollama,
}  # fmt: skip


def run_by(wire: str, body: bytes) -> list[Call] | str:
    """The calls that a client runs, or why it runs none. `wire`: a protocol, and behind a comma its form; one that ends
    with "whole" is not streamed."""
    try:
        return CLIENTS[wire.partition(",")[0]](body, is_whole=wire.endswith("whole"))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as problem:
        return f"{type(problem).__name__}: {problem}"
