"""Streams as the five protocols write them, well-formed: one frame of bytes for each event.

    frames("openai-chat", "text", 2000)

Kinds: `text` (n deltas of 7 characters), `arguments` (one call, n deltas of 10 characters, nested JSON with escapes),
`string` (the same, but one long string), `parallel` (n calls in one response). Ollama and Gemini send a call whole,
so that `arguments` and `string` are one event there.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

PROTOCOLS = ("openai-chat", "openai-responses", "anthropic-messages", "gemini-generate", "ollama-chat")
#: Those that let the arguments of a call grow.
GROWING = PROTOCOLS[:3]
WEATHER = '{"city":"Paris","days":3,"units":"metric"}'
WIDTH = 10

Frames = list[bytes]
Calls = Iterable[tuple[str, list[str]]]


def frames(protocol: str, kind: str, count: int) -> Frames:
    """The frames of one response."""
    write: Callable[[list[str], Calls], Frames] = WRITERS[protocol]
    if kind == "text":
        return write([f" tok{number % 1000:03d}" for number in range(count)], [])
    if kind == "parallel":
        return write([], [("get_weather", cut(WEATHER, 5))] * count)
    text = nested_arguments(count) if kind == "arguments" else long_string(count)
    return write([], [("edit_file", cut(text, WIDTH))])


def deltas(protocol: str, kind: str, count: int) -> int:
    """How many deltas (or whole calls, where a call comes whole) such a response has."""
    if kind != "parallel":
        return count
    return count * len(cut(WEATHER, 5)) if protocol in GROWING else count


def payloads(protocol: str, written: Frames) -> list[bytes]:
    """The JSON of each frame: what a decoder that knows where its events end would read."""
    found = []
    for frame in written:
        line = frame.rstrip() if protocol == "ollama-chat" else frame.partition(b"data: ")[2].rstrip()
        if line != b"[DONE]":
            found.append(line)
    return found


def blocks(written: Frames, size: int = 65536) -> Frames:
    """The same bytes in large pieces."""
    body = b"".join(written)
    return [body[start : start + size] for start in range(0, len(body), size)]


def cut(text: str, width: int) -> list[str]:
    return [text[start : start + width] for start in range(0, len(text), width)]


def nested_arguments(count: int) -> str:
    """Valid JSON of `count` × 10 characters: nested edits with escapes, as a file-editing tool gets them."""
    total = count * WIDTH
    written = ['{"path":"src/package/module.py","edits":[']
    size = len(written[0])
    number = 0
    while True:
        edit = {
            "line": number * 7,
            "old": f"def f{number}(a, b):\n    return a + b\n",
            "new": f'def f{number}(a: int, b: int) -> int:\n    """Add."""\n    return a + b  # é\n',
            "keep": number % 2 == 0,
        }
        item = ("," if number else "") + json.dumps(edit, ensure_ascii=False)
        if size + len(item) + 40 > total:
            break
        written.append(item)
        size += len(item)
        number += 1
    tail = '],"note":"'
    return "".join(written) + tail + "x" * (total - size - len(tail) - 2) + '"}'


def long_string(count: int) -> str:
    """Valid JSON of `count` × 10 characters whose size is in one string."""
    head, tail = '{"path":"a.py","content":"', '"}'
    room = count * WIDTH - len(head) - len(tail)
    line = "line of code = value + 1\\n"
    return head + line * (room // len(line)) + "x" * (room % len(line)) + tail


# ---------------------------------------------------------------- one writer a protocol


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def event(value: Any, name: str = "") -> bytes:
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + compact(value) + b"\n\n"


def write_chat(words: list[str], calls: Calls) -> Frames:
    head = {
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m",
        "system_fingerprint": "fp_1",
    }  # fmt: skip

    def chunk(delta: Any, finish: str | None = None) -> bytes:
        return event({**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]})

    def call(index: int, function: Any, **more: str) -> bytes:
        return chunk({"tool_calls": [{"index": index, **more, "function": function}]})

    calls = list(calls)
    out = [chunk({"role": "assistant", "content": None if calls else "", "refusal": None})]
    out += [chunk({"content": word}) for word in words]
    for index, (name, pieces) in enumerate(calls):
        out.append(call(index, {"name": name, "arguments": ""}, id=f"call_{index}", type="function"))
        out += [call(index, {"arguments": piece}) for piece in pieces]
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    return [*out, chunk({}, "tool_calls" if calls else "stop"), event({**head, "choices": [], "usage": usage}),
            b"data: [DONE]\n\n"]  # fmt: skip


def write_messages(words: list[str], calls: Calls) -> Frames:
    def typed(kind: str, **fields: Any) -> bytes:
        return event({"type": kind, **fields}, kind)

    def block(index: int, opened: Any, grown: list[Any]) -> Frames:
        return [
            typed("content_block_start", index=index, content_block=opened),
            *(typed("content_block_delta", index=index, delta=delta) for delta in grown),
            typed("content_block_stop", index=index),
        ]

    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 1},
    }  # fmt: skip
    calls = list(calls)
    out = [typed("message_start", message=message)]
    if words:
        out += block(0, {"type": "text", "text": ""}, [{"type": "text_delta", "text": word} for word in words])
    for index, (name, pieces) in enumerate(calls):
        grown = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        out += block(index, {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}, grown)
    ending = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    return [*out, typed("message_delta", delta=ending, usage={"output_tokens": 7}), typed("message_stop")]


def write_responses(words: list[str], calls: Calls) -> Frames:
    numbers = iter(range(10**9))

    def typed(kind: str, **fields: Any) -> bytes:
        return event({"type": kind, "sequence_number": next(numbers), **fields}, kind)

    def response(status: str, output: list[Any]) -> Any:
        usage = {
            "input_tokens": 5, "output_tokens": 7, "total_tokens": 12,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
        }  # fmt: skip
        return {
            "id": "resp_1", "object": "response", "created_at": 1700000000, "status": status, "error": None,
            "incomplete_details": None, "instructions": None, "max_output_tokens": None, "model": "m",
            "output": output, "parallel_tool_calls": True, "previous_response_id": None, "temperature": 1.0,
            "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": 1.0,
            "truncation": "disabled", "metadata": {}, "usage": usage if status == "completed" else None,
        }  # fmt: skip

    out = [typed("response.created", response=response("in_progress", []))]
    out.append(typed("response.in_progress", response=response("in_progress", [])))
    items: list[Any] = []
    if words:
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        text = "".join(words)
        empty = {"type": "output_text", "text": "", "annotations": []}
        message = {"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
        items.append({**message, "status": "completed", "content": [{**empty, "text": text}]})
        out.append(typed("response.output_item.added", output_index=0, item=message))
        out.append(typed("response.content_part.added", **place, part=empty))
        out += [typed("response.output_text.delta", **place, delta=word, logprobs=[]) for word in words]
        out.append(typed("response.output_text.done", **place, text=text, logprobs=[]))
        out.append(typed("response.content_part.done", **place, part={**empty, "text": text}))
        out.append(typed("response.output_item.done", output_index=0, item=items[0]))
    for index, (name, pieces) in enumerate(calls):
        arguments = "".join(pieces)
        opened = {
            "id": f"fc_{index}", "type": "function_call", "status": "in_progress", "call_id": f"call_{index}",
            "name": name, "arguments": "",
        }  # fmt: skip
        items.append({**opened, "status": "completed", "arguments": arguments})
        place = {"item_id": f"fc_{index}", "output_index": index}
        out.append(typed("response.output_item.added", output_index=index, item=opened))
        out += [typed("response.function_call_arguments.delta", **place, delta=piece) for piece in pieces]
        out.append(typed("response.function_call_arguments.done", **place, arguments=arguments, name=name))
        out.append(typed("response.output_item.done", output_index=index, item=items[-1]))
    return [*out, typed("response.completed", response=response("completed", items))]


def write_gemini(words: list[str], calls: Calls) -> Frames:
    def chunk(part: Any, **ending: str) -> bytes:
        usage = {"promptTokenCount": 5, "candidatesTokenCount": 7, "totalTokenCount": 12}
        candidate = {"content": {"parts": [part], "role": "model"}, "index": 0, **ending}
        value = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "r1"}
        return b"data: " + compact(value) + b"\r\n\r\n"

    called = [{"functionCall": {"name": name, "args": json.loads("".join(pieces))}} for name, pieces in calls]
    parts: list[Any] = [{"text": word} for word in words] + called
    return [*map(chunk, parts), chunk({"text": ""}, finishReason="STOP")]


def write_ollama(words: list[str], calls: Calls) -> Frames:
    def line(message: Any, **ending: Any) -> bytes:
        message = {"role": "assistant", "content": "", **message}
        value = {"model": "m", "created_at": "2026-01-01T00:00:00.000000Z", "message": message, "done": bool(ending)}
        return compact({**value, **ending}) + b"\n"

    functions = [{"name": name, "arguments": json.loads("".join(pieces))} for name, pieces in calls]
    messages: list[Any] = [{"content": word} for word in words]
    messages += [{"tool_calls": [{"function": function}]} for function in functions]
    counts = {"prompt_eval_count": 5, "prompt_eval_duration": 1, "eval_count": 7, "eval_duration": 1}
    return [*map(line, messages), line({}, done_reason="stop", total_duration=1, load_duration=1, **counts)]


WRITERS: dict[str, Callable[[list[str], Calls], Frames]] = {
    "openai-chat": write_chat,
    "openai-responses": write_responses,
    "anthropic-messages": write_messages,
    "gemini-generate": write_gemini,
    "ollama-chat": write_ollama,
}
