"""Short words for requests and for what is expected of what is sent."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from asked.asking import Sent
from dragoman.types import ProtocolName

PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
PDF: Final = "JVBERi0xLjQKJSVFT0YK"
PNG_URL: Final = f"data:image/png;base64,{PIXEL}"
CITY: Final[dict[str, Any]] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ASK: Final = {"role": "user", "content": "Weather in Rome?"}


class Absent:
    """No such place in the body."""


GONE: Final = Absent()


class Says(NamedTuple):
    """A deviation whose place or words have this."""

    word: str


class Refused(NamedTuple):
    """The client gets an error whose text has this."""

    word: str


#: By a path of the body: the value there, or `GONE`.
Wanted = dict[str, Any] | Says | Refused
EVERYWHERE: Final = ("openai-chat", "openai-responses", "anthropic-messages", "gemini-generate", "ollama-chat")


class Case(NamedTuple):
    """A request, and what is expected of it by protocol (its vendor) or by `provider/model`."""

    name: str
    client: ProtocolName
    body: dict[str, Any]
    wanted: dict[str, tuple[Wanted, ...]]


def case(name: str, client: ProtocolName, body: dict[str, Any], /, **wanted: Wanted | tuple[Wanted, ...]) -> Case:
    """`wanted`: `chat`, `responses`, `messages`, `gemini`, `ollama` or another provider's name; `each`: all five."""
    found: dict[str, tuple[Wanted, ...]] = {}
    for key, given in wanted.items():
        several = given if isinstance(given, tuple) and not isinstance(given, Says | Refused) else (given,)
        for target in EVERYWHERE if key == "each" else (SHORT.get(key, key),):
            found[target] = (*found.get(target, ()), *several)
    return Case(name, client, body, found)


SHORT: Final = {
    "chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic-messages",
    "gemini": "gemini-generate", "ollama": "ollama-chat", "deepseek": "deepseek/deepseek-v4", "vllm": "vllm/qwen3.6",
    "mistral": "mistral/devstral", "moonshot": "moonshot/kimi-k2.5", "llamacpp": "llamacpp/qwen3.6",
    "minimax": "minimax/m3", "gemini2": "gemini/gemini-2.5-pro", "sonnet": "anthropic/claude-sonnet-4-5",
    "groq": "groq/m", "openrouter": "openrouter/m", "chat54": "openai-chat/gpt-5.4", "chat41": "openai-chat/gpt-4.1",
    "chat5": "openai-chat/gpt-5-mini", "gpt51": "openai/gpt-5.1", "gpt52": "openai/gpt-5.2", "gpt54": "openai/gpt-5.4",
    "gpt56": "openai/gpt-5.6-terra", "plain": "openai/gpt-5-chat-latest", "gpt41": "openai/gpt-4.1",
    "chat56": "openai-chat/gpt-5.6-terra", "opus46": "anthropic/claude-opus-4-6", "haiku": "anthropic/claude-haiku-4-5",
    "gemini3": "gemini/gemini-3-pro-preview", "flash3": "gemini/gemini-3-flash",
}  # fmt: skip


def at(body: Any, path: str) -> Any:
    """What stands at a path such as `messages[1].content`; `[-1]` is the last."""
    for key, number in re.findall(r"([^.\[\]]+)|\[(-?\d+)\]", path):
        try:
            body = body[int(number)] if number else body[key]
        except (KeyError, IndexError, TypeError):
            return GONE
    return body


def faults(sent: Sent, wanted: tuple[Wanted, ...]) -> list[str]:
    """What is not as it is wanted."""
    found = []
    for each in wanted:
        if isinstance(each, Refused):
            found += [] if each.word in sent.refused else [f"expected an error with {each.word!r}: {sent.refused!r}"]
        elif isinstance(each, Says):
            found += [] if sent.says(each.word) else [f"nothing says {each.word!r}: {sent.deviations}"]
        else:
            for path, value in each.items():
                seen = at(sent.body, path)
                if seen != value:
                    found.append(f"{path}: expected {value!r}, got {seen!r}")
    if sent.refused and not any(isinstance(each, Refused) for each in wanted):
        found.append(f"refused: {sent.refused}")
    return found


def chat(*messages: dict[str, Any], tools: Any = None, **more: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"model": "m", "messages": list(messages) or [ASK], **more}
    return body if tools is None else body | {"tools": tools}


def messages(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 100, "messages": list(turns) or [ASK], **more}


def responses(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "input": list(items) or [{"role": "user", "content": "Weather in Rome?"}], **more}


def gemini(*contents: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"contents": list(contents) or [{"role": "user", "parts": [{"text": "Weather in Rome?"}]}], **more}


def ollama(*turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(turns) or [ASK], **more}


def function(name: str = "look", schema: Any = CITY, **more: Any) -> dict[str, Any]:
    """A tool of Chat."""
    return {"type": "function", "function": {"name": name, "parameters": schema, **more}}


def tool(name: str = "look", schema: Any = CITY, **more: Any) -> dict[str, Any]:
    """A tool of Messages."""
    return {"name": name, "input_schema": schema, **more}


def called(id: str = "call_1", name: str = "look", arguments: str = '{"city":"Rome"}') -> dict[str, Any]:
    """A turn of Chat that calls."""
    return {"role": "assistant", "content": None, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}]}  # fmt: skip


def answered(id: str = "call_1", content: Any = "rain") -> dict[str, Any]:
    """A result of Chat."""
    return {"role": "tool", "tool_call_id": id, "content": content}


def used(id: str = "toolu_1", name: str = "look", input: Any = None) -> dict[str, Any]:
    """A call of Messages."""
    return {"type": "tool_use", "id": id, "name": name, "input": {"city": "Rome"} if input is None else input}


def result(id: str = "toolu_1", content: Any = "rain", **more: Any) -> dict[str, Any]:
    """A result of Messages."""
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def says(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def tells(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}
