"""The five protocols as a provider sees and writes them, from the vendors' documents and none of dragoman's code.

A `Wire` reads a request and complains (ValueError) of anything that the vendor would refuse, and writes a turn of the
model, streamed in small pieces or whole; `read` is the number of tokens that the prompt had.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from plan import Call, Page

PIECE = 97  # characters of arguments or text in one event
MODEL = "scripted-1"
CREATED = 1_780_000_000
SIGNATURE = "c2lnbmF0dXJlLW9mLXRoZS1jYWxs"
DUMMY_SIGNATURE = "skip_thought_signature_validator"


@dataclass
class Asked:
    """A request: the tools' names, all calls and results so far, and the rest as text."""

    stream: bool
    tools: list[str] = field(default_factory=list)
    calls: list[tuple[str, str, Any]] = field(default_factory=list)  # (id, name, arguments)
    results: list[tuple[str, str]] = field(default_factory=list)  # (the id of the call, text)
    text: str = ""
    searches: bool = False  # the provider may search the web


Frames = Iterator[bytes]


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _parts(content: Any) -> str:
    """The text of a content in any of its forms."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_parts(part) for part in content)
    if isinstance(content, dict):
        return "".join(
            _parts(content[key]) for key in ("text", "content", "output", "result", "tool_name") if key in content
        )
    return ""


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def _sse(value: Any, event: str = "") -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def _text_of(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False)


# ---------------------------------------------------------------- Ollama


def read_ollama(path: str, body: dict[str, Any]) -> Asked:
    """https://github.com/ollama/ollama/blob/main/docs/api.md"""
    asked = Asked(body.get("stream") is not False)
    asked.tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
    waiting: list[str] = []
    for message in body["messages"]:
        _expect(isinstance(message.get("content", ""), str), "content is a string")
        for call in message.get("tool_calls") or ():
            _expect(isinstance(call["function"]["arguments"], dict), "arguments are an object")
            asked.calls.append(
                (f"position-{len(asked.calls)}", call["function"]["name"], call["function"]["arguments"])
            )
            waiting.append(asked.calls[-1][0])
        if message["role"] == "tool":
            _expect(bool(waiting), "a tool result has a call before it")
            asked.results.append((waiting.pop(0), message["content"]))
        asked.text += message.get("content", "")
    return asked


def write_ollama(
    calls: tuple[Call, ...], text: str, turn: int, stream: bool, read: int, page: Page | None = None
) -> Frames:
    """Lines; a call is whole in one of them."""
    head = {"model": MODEL, "created_at": "2026-11-22T10:00:00.123456789Z"}
    made = [
        {
            "id": f"call_{turn}{number}abcdefg",
            "function": {"index": number, "name": call.name, "arguments": call.arguments},
        }
        for number, call in enumerate(calls)
    ]
    tail = {
        "done": True, "done_reason": "stop", "total_duration": 5_000_000, "load_duration": 1_000,
        "prompt_eval_count": read, "prompt_eval_duration": 2_000, "eval_count": 34, "eval_duration": 3_000,
    }  # fmt: skip
    messages: list[dict[str, Any]] = []
    if stream:
        messages += [{"content": piece} for piece in _pieces(text)]
        messages += [{"content": "", "tool_calls": [call]} for call in made]
        for message in messages:
            yield _line({**head, "message": {"role": "assistant", **message}, "done": False})
        yield _line({**head, "message": {"role": "assistant", "content": ""}, **tail})
        return
    message = {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}
    yield _line({**head, "message": message, **tail})


def _careful(value: Any) -> str:
    """JSON as Go writes it, and so Ollama; Gemini escapes the same characters."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _line(value: Any) -> bytes:
    return _careful(value).encode() + b"\n"


# ---------------------------------------------------------------- OpenAI Chat


def read_chat(path: str, body: dict[str, Any]) -> Asked:
    """https://platform.openai.com/docs/api-reference/chat"""
    asked = Asked(body.get("stream") is True)
    for tool in body.get("tools") or ():
        _expect(tool["type"] == "function", "a tool is a function")
        asked.tools.append(tool["function"]["name"])
    open_calls: list[str] = []
    for message in body["messages"]:
        _expect(not open_calls or message["role"] == "tool", "every call is answered before the next message")
        for call in message.get("tool_calls") or ():
            _expect(call["type"] == "function" and 0 < len(call["id"]) <= 64, "a call has a type and an id")
            asked.calls.append((call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])))
            open_calls.append(call["id"])
        if message["role"] == "tool":
            _expect(message["tool_call_id"] in open_calls, "tool_call_id is that of an open call")
            open_calls.remove(message["tool_call_id"])
            asked.results.append((message["tool_call_id"], _parts(message["content"])))
        asked.text += _parts(message.get("content"))
    return asked


def write_chat(
    calls: tuple[Call, ...], text: str, turn: int, stream: bool, read: int, page: Page | None = None
) -> Frames:
    """Chunks; arguments in fragments, the calls one after the other."""
    usage = {"prompt_tokens": read, "completion_tokens": 34, "total_tokens": read + 34}
    made = [
        {"id": f"call_{turn}{number}ABCdef", "type": "function",
         "function": {"name": call.name, "arguments": _text_of(call.arguments)}}
        for number, call in enumerate(calls)
    ]  # fmt: skip
    end = "tool_calls" if made else "stop"
    head = {"id": f"chatcmpl-{turn}", "created": CREATED, "model": MODEL}
    if not stream:
        message = {
            "role": "assistant",
            "content": text or None,
            "refusal": None,
            **({"tool_calls": made} if made else {}),
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": end}
        yield json.dumps({**head, "object": "chat.completion", "choices": [choice], "usage": usage}).encode()
        return

    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _sse({**head, "object": "chat.completion.chunk", "choices": [choice], "usage": None})

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(text):
        yield chunk({"content": piece})
    for number, call in enumerate(made):
        arguments = call["function"]["arguments"]
        yield chunk({"tool_calls": [{"index": number, **call, "function": {**call["function"], "arguments": ""}}]})
        for piece in _pieces(arguments):
            yield chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield chunk({}, end)
    yield _sse({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


# ---------------------------------------------------------------- OpenAI Responses


def read_responses(path: str, body: dict[str, Any]) -> Asked:
    """https://platform.openai.com/docs/api-reference/responses"""
    asked = Asked(body.get("stream") is True)
    asked.tools = _names_of_responses(body.get("tools") or ())
    asked.searches = any(tool["type"].startswith("web_search") for tool in body.get("tools") or ())
    asked.text = body.get("instructions") or ""
    given = body["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind = item.get("type", "message")
        if kind == "function_call":
            space = f"{item['namespace']}__" if item.get("namespace") else ""
            asked.calls.append((item["call_id"], space + item["name"], json.loads(item["arguments"])))
        elif kind == "custom_tool_call":
            asked.calls.append((item["call_id"], item["name"], {"input": item["input"]}))
        elif kind == "tool_search_call":
            asked.calls.append((item["call_id"], "tool_search", item["arguments"]))
        elif kind in ("tool_search_output", "additional_tools"):
            found = _names_of_responses(item["tools"])
            asked.tools += found
            if kind == "tool_search_output":
                asked.results.append((item["call_id"], ", ".join(found)))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            _expect(item["call_id"] in [call[0] for call in asked.calls], "call_id is that of a call")
            asked.results.append((item["call_id"], _parts(item["output"])))
        elif kind == "message":
            asked.text += _parts(item["content"])
    missing = {call[0] for call in asked.calls} - {result[0] for result in asked.results}
    _expect(not missing, f"no tool output found for function call {missing}")
    return asked


def _names_of_responses(tools: Iterable[dict[str, Any]]) -> list[str]:
    found = [tool["name"] for tool in tools if tool["type"] in ("function", "custom")]
    found += [
        f"{tool['name']}__{one['name']}" for tool in tools if tool["type"] == "namespace" for one in tool["tools"]
    ]
    return found + [tool["type"] for tool in tools if tool["type"] == "tool_search"]


def write_responses(
    calls: tuple[Call, ...], text: str, turn: int, stream: bool, read: int, page: Page | None = None
) -> Frames:
    """Items, each with its events, and the whole at the end."""
    items: list[dict[str, Any]] = []
    if text:
        part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        if page is not None:
            action = {"type": "search", "query": page.query, "sources": [{"type": "url", "url": page.url}]}
            items.append({"id": f"ws_{turn}", "type": "web_search_call", "status": "completed", "action": action})
            cited = {
                "type": "url_citation",
                "url": page.url,
                "title": page.title,
                "start_index": 0,
                "end_index": len(text),
            }
            part["annotations"] = [cited]
        items.append(
            {"id": f"msg_{turn}", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
        )
    items += [_item_of_call(call, f"{turn}{number}") for number, call in enumerate(calls)]
    usage = {
        "input_tokens": read, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 34,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": read + 34,
    }  # fmt: skip
    base = {
        "id": f"resp_{turn}", "object": "response", "created_at": CREATED, "error": None, "incomplete_details": None,
        "instructions": None, "metadata": {}, "model": MODEL, "parallel_tool_calls": True, "temperature": 1.0,
        "tool_choice": "auto", "tools": [], "top_p": 1.0,
    }  # fmt: skip
    done = {**base, "status": "completed", "output": items, "usage": usage}
    if not stream:
        yield json.dumps(done).encode()
        return
    begun = {**base, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(items):
        events += _item_events(item, index)
    events.append({"type": "response.completed", "response": done})
    for number, event in enumerate(events):
        yield _sse({**event, "sequence_number": number}, event["type"])


def _item_of_call(call: Call, place: str) -> dict[str, Any]:
    if call.kind == "tool_search":
        return {"id": f"tsc_{place}", "type": "tool_search_call", "execution": "client", "status": "completed",
                "call_id": f"call_{place}XyZ", "arguments": call.arguments}  # fmt: skip
    if call.kind == "custom":
        return {"id": f"ctc_{place}", "type": "custom_tool_call", "status": "completed",
                "call_id": f"call_{place}XyZ", "name": call.name, "input": call.arguments["input"]}  # fmt: skip
    item = {"id": f"fc_{place}", "type": "function_call", "status": "completed",
            "call_id": f"call_{place}XyZ", "name": call.own_name, "arguments": _text_of(call.arguments)}  # fmt: skip
    return {**item, "namespace": call.namespace} if call.namespace else item


def _item_events(item: dict[str, Any], index: int) -> Iterator[dict[str, Any]]:
    place = {"item_id": item["id"], "output_index": index}
    if item["type"] == "message":
        part, text = item["content"][0], item["content"][0]["text"]
        at = {**place, "content_index": 0}
        opened = {**item, "status": "in_progress", "content": []}
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
        yield {"type": "response.content_part.added", **at, "part": {**part, "text": "", "annotations": []}}
        for piece in _pieces(text):
            yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
        for number, cited in enumerate(part["annotations"]):
            added = {"annotation_index": number, "annotation": cited}
            yield {"type": "response.output_text.annotation.added", **at, **added}
        yield {"type": "response.output_text.done", **at, "text": text, "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}
    elif item["type"] in ("tool_search_call", "web_search_call"):
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "status": "in_progress"}}
    elif item["type"] == "custom_tool_call":
        opened = {**item, "status": "in_progress", "input": ""}
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
        for piece in _pieces(item["input"]):
            yield {"type": "response.custom_tool_call_input.delta", **place, "delta": piece}
        yield {"type": "response.custom_tool_call_input.done", **place, "input": item["input"]}
    else:
        opened = {**item, "status": "in_progress", "arguments": ""}
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
        for piece in _pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
        yield {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


# ---------------------------------------------------------------- Anthropic


def read_anthropic(path: str, body: dict[str, Any]) -> Asked:
    """https://docs.anthropic.com/en/api/messages"""
    asked = Asked(body.get("stream") is True)
    _expect(isinstance(body["max_tokens"], int) and body["max_tokens"] > 0, "max_tokens is required")
    for tool in body.get("tools") or ():
        _expect(
            tool.get("type", "custom") != "custom" or tool["input_schema"]["type"] == "object",
            "input_schema is an object",
        )
        asked.tools.append(tool["name"])
        asked.searches = asked.searches or tool.get("type", "").startswith("web_search")
    asked.text = _parts(body.get("system"))
    open_calls: list[str] = []
    for message in body["messages"]:
        _expect(message["role"] in ("user", "assistant", "system"), "a role is user, assistant or system")
        if message["role"] == "system":
            _expect(not open_calls, "results come before anything else")
            asked.text += _parts(message["content"])
            continue
        blocks = message["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        _expect(sorted(answered) == sorted(open_calls), "the next message answers all calls and no others")
        kinds = [block["type"] == "tool_result" for block in blocks]
        _expect(kinds == sorted(kinds, reverse=True), "results come first")
        open_calls = []
        for block in blocks:
            if block["type"] == "text":
                _expect(block["text"] != "", "text is not empty")
                asked.text += block["text"]
            elif block["type"] == "tool_use":
                _expect(isinstance(block["input"], dict), "input is an object")
                asked.calls.append((block["id"], block["name"], block["input"]))
                open_calls.append(block["id"])
            elif block["type"] == "tool_result":
                asked.results.append((block["tool_use_id"], _parts(block.get("content", ""))))
    _expect(not open_calls, "every call is answered")
    return asked


def write_anthropic(
    calls: tuple[Call, ...], text: str, turn: int, stream: bool, read: int, page: Page | None = None
) -> Frames:
    """Blocks one after the other."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    if page is not None:
        id = f"srvtoolu_{turn}aBc"
        found = {"type": "web_search_result", "url": page.url, "title": page.title, "encrypted_content": "c2VhbA==",
                 "page_age": None}  # fmt: skip
        blocks[:0] = [
            {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": page.query}},
            {"type": "web_search_tool_result", "tool_use_id": id, "content": [found]},
        ]
    blocks += [
        {"type": "tool_use", "id": f"toolu_{turn}{number}AbC", "name": call.name, "input": call.arguments}
        for number, call in enumerate(calls)
    ]
    reason = "tool_use" if calls else "end_turn"
    message = {
        "id": f"msg_{turn}", "type": "message", "role": "assistant", "model": MODEL, "content": blocks,
        "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": read, "output_tokens": 34},
    }  # fmt: skip
    if not stream:
        yield json.dumps(message).encode()
        return
    opened = {**message, "content": [], "stop_reason": None, "usage": {"input_tokens": read, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": opened}, {"type": "ping"}]
    for index, block in enumerate(blocks):
        is_text = block["type"] == "text"
        start = {**block, "text": ""} if is_text else {**block, "input": {}} if "input" in block else block
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        for piece in _pieces(block["text"] if is_text else _text_of(block["input"]) if "input" in block else ""):
            delta = (
                {"type": "text_delta", "text": piece}
                if is_text
                else {"type": "input_json_delta", "partial_json": piece}
            )
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 34}})
    events.append({"type": "message_stop"})
    for event in events:
        yield _sse(event, event["type"])


# ---------------------------------------------------------------- Gemini


def read_gemini(path: str, body: dict[str, Any]) -> Asked:
    """https://ai.google.dev/api/generate-content, and the rules of thought signatures."""
    asked = Asked(":streamGenerateContent" in path)
    for tool in body.get("tools") or ():
        asked.tools += [one["name"] for one in tool.get("functionDeclarations") or ()]
        asked.searches = asked.searches or "googleSearch" in tool
    asked.text = _parts((body.get("systemInstruction") or {}).get("parts"))
    open_calls: list[tuple[str, str]] = []
    for content in body["contents"]:
        _expect(content.get("role", "user") in ("user", "model"), "a role is user or model")
        made = [part for part in content["parts"] if "functionCall" in part]
        answers = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        _expect(len(answers) == len(open_calls), "as many function responses as calls, in the next content")
        for answer in answers:
            number = next((at for at, call in enumerate(open_calls) if call[1] == answer["name"]), None)
            _expect(number is not None, "a function response names a call")
            _expect(isinstance(answer["response"], dict), "a response is an object")
            asked.results.append((open_calls.pop(number or 0)[0], json.dumps(answer["response"])))
        if made:
            signature = made[0].get("thoughtSignature")
            # Strands makes a step of each of two calls that came at once: the second one came without a signature.
            is_second = len(asked.calls) > 1 and signature == DUMMY_SIGNATURE
            _expect(signature == SIGNATURE or is_second, "a step's first call has the thought_signature it came with")
        for part in made:
            _expect(isinstance(part["functionCall"].get("args", {}), dict), "args are an object")
            call = (f"position-{len(asked.calls)}", part["functionCall"]["name"], part["functionCall"].get("args", {}))
            asked.calls.append(call)
            open_calls.append(call[:2])
        asked.text += _parts(content["parts"])
    return asked


def write_gemini(
    calls: tuple[Call, ...], text: str, turn: int, stream: bool, read: int, page: Page | None = None
) -> Frames:
    """Parts; a call is whole in one of them, the first one signed."""
    usage = {"promptTokenCount": read, "candidatesTokenCount": 34, "totalTokenCount": read + 34}
    parts: list[dict[str, Any]] = [{"text": piece} for piece in (_pieces(text) if stream else [text] if text else [])]
    for number, call in enumerate(calls):
        signed = {} if number else {"thoughtSignature": SIGNATURE}
        parts.append({"functionCall": {"name": call.name, "args": call.arguments}, **signed})

    if page is not None:
        web = {"uri": page.url, "title": page.title}
        segment = {"startIndex": 0, "endIndex": len(text.encode()), "text": text}
        grounding = {
            "webSearchQueries": [page.query], "groundingChunks": [{"web": web}],
            "groundingSupports": [{"segment": segment, "groundingChunkIndices": [0]}],
        }  # fmt: skip
    ending = {"finishReason": "STOP"} | ({"groundingMetadata": grounding} if page is not None else {})

    def response(some: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        candidate = {"content": {"role": "model", "parts": some}, "index": 0, **more}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": f"r{turn}"}

    if not stream:
        yield json.dumps(response(parts, **ending)).encode()
        return
    for part in parts[:-1]:
        yield f"data: {_careful(response([part]))}\r\n\r\n".encode()
    yield f"data: {_careful(response(parts[-1:], **ending))}\r\n\r\n".encode()


Read = Callable[[str, dict[str, Any]], Asked]
Write = Callable[[tuple[Call, ...], str, int, bool, int, Page | None], Frames]


@dataclass(frozen=True)
class Wire:
    """A protocol: where its chat requests come (a part of the path), the provider's base URL, how to read and write."""

    path: str
    base: str
    stream_type: str
    read: Read
    write: Write


_SSE = "text/event-stream"
WIRES = {
    "ollama-chat": Wire("/api/chat", "", "application/x-ndjson", read_ollama, write_ollama),
    "openai-chat": Wire("/v1/chat/completions", "/v1", _SSE, read_chat, write_chat),
    "openai-responses": Wire("/v1/responses", "/v1", _SSE, read_responses, write_responses),
    "anthropic-messages": Wire("/v1/messages", "", _SSE, read_anthropic, write_anthropic),
    "gemini-generate": Wire("enerateContent", "/v1beta", _SSE, read_gemini, write_gemini),
}
