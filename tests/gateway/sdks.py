"""The vendors' SDKs, pointed at a gateway and otherwise unmodified: a round of tools, and what a broken stream gives.

`ask` is one turn: (the calls that the SDK would run, the text). `results` is the turn after it.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

import anthropic
import ollama
import openai
from google import genai
from google.genai import types

Calls = list[tuple[str, dict[str, Any]]]
QUESTION = "Weather in Paris and Rome?"
NAMES = ("get_weather", "write_file", "ping")
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}


class Sdk(Protocol):
    """A client of one protocol. It remembers the conversation."""

    def __init__(self, url: str) -> None: ...

    def begin(self, model: str) -> None:
        """A new conversation, with this model."""
        ...

    def ask(self, *, stream: bool) -> tuple[Calls, str]:
        """The next turn; raises what the SDK raises."""
        ...

    def results(self, texts: list[str]) -> None:
        """The answers to the calls of the last turn, in order."""
        ...

    def close(self) -> None: ...


class Ollama:
    def __init__(self, url: str) -> None:
        self._client = ollama.Client(host=url)

    def begin(self, model: str) -> None:
        self._model = model
        self._messages: list[Any] = [{"role": "user", "content": QUESTION}]
        self._calls: list[Any] = []

    def ask(self, *, stream: bool) -> tuple[Calls, str]:
        tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]
        answer: Any = self._client.chat(model=self._model, messages=self._messages, tools=tools, stream=stream)
        chunks = list(answer) if stream else [answer]
        text = "".join(chunk.message.content or "" for chunk in chunks)
        if not chunks or not chunks[-1].done:
            raise EOFError("the SDK ends without a word; its users look at `done`")
        self._calls = [call for chunk in chunks for call in chunk.message.tool_calls or ()]
        self._messages.append(ollama.Message(role="assistant", content=text, tool_calls=self._calls or None))
        return [(call.function.name, dict(call.function.arguments)) for call in self._calls], text

    def results(self, texts: list[str]) -> None:
        self._messages += [
            {"role": "tool", "content": text, "tool_name": call.function.name}
            for call, text in zip(self._calls, texts, strict=True)
        ]

    def close(self) -> None:
        self._client._client.close()


class OpenAIChat:
    def __init__(self, url: str) -> None:
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)

    def begin(self, model: str) -> None:
        self._model = model
        self._messages: list[Any] = [{"role": "user", "content": QUESTION}]
        self._calls: list[Any] = []

    def ask(self, *, stream: bool) -> tuple[Calls, str]:
        tools: list[Any] = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in NAMES]
        options: dict[str, Any] = {"model": self._model, "messages": self._messages, "tools": tools}
        if stream:
            with self._client.chat.completions.stream(**options) as events:
                message: Any = events.get_final_completion().choices[0].message
        else:
            message = self._client.chat.completions.create(**options).choices[0].message
        self._calls = message.tool_calls or []
        self._messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        return [
            (call.function.name, json.loads(call.function.arguments)) for call in self._calls
        ], message.content or ""

    def results(self, texts: list[str]) -> None:
        self._messages += [
            {"role": "tool", "content": text, "tool_call_id": call.id}
            for call, text in zip(self._calls, texts, strict=True)
        ]

    def close(self) -> None:
        self._client.close()


class OpenAIResponses:
    def __init__(self, url: str) -> None:
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)

    def begin(self, model: str) -> None:
        self._model = model
        self._input: list[Any] = [{"role": "user", "content": QUESTION}]
        self._calls: list[Any] = []

    def ask(self, *, stream: bool) -> tuple[Calls, str]:
        tools: list[Any] = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in NAMES]
        options: dict[str, Any] = {"model": self._model, "input": self._input, "tools": tools}
        if stream:
            with self._client.responses.stream(**options) as events:
                response: Any = events.get_final_response()
        else:
            response = self._client.responses.create(**options)
        self._calls = [item for item in response.output if item.type == "function_call"]
        self._input += [item.model_dump(exclude_none=True) for item in response.output]
        return [(call.name, json.loads(call.arguments)) for call in self._calls], response.output_text

    def results(self, texts: list[str]) -> None:
        self._input += [
            {"type": "function_call_output", "call_id": call.call_id, "output": text}
            for call, text in zip(self._calls, texts, strict=True)
        ]

    def close(self) -> None:
        self._client.close()


class Anthropic:
    def __init__(self, url: str) -> None:
        self._client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)

    def begin(self, model: str) -> None:
        self._model = model
        self._messages: list[Any] = [{"role": "user", "content": QUESTION}]
        self._calls: list[Any] = []

    def ask(self, *, stream: bool) -> tuple[Calls, str]:
        tools: list[Any] = [{"name": name, "input_schema": SCHEMA} for name in NAMES]
        options: dict[str, Any] = {
            "model": self._model, "messages": self._messages, "tools": tools, "max_tokens": 1000,
        }  # fmt: skip
        if stream:
            with self._client.messages.stream(**options) as events:
                message = events.get_final_message()
        else:
            message = self._client.messages.create(**options)
        self._calls = [block for block in message.content if block.type == "tool_use"]
        self._messages.append({"role": "assistant", "content": message.content})
        text = "".join(block.text for block in message.content if block.type == "text")
        return [(call.name, call.input) for call in self._calls], text

    def results(self, texts: list[str]) -> None:
        blocks = [
            {"type": "tool_result", "tool_use_id": call.id, "content": text}
            for call, text in zip(self._calls, texts, strict=True)
        ]
        self._messages.append({"role": "user", "content": blocks})

    def close(self) -> None:
        self._client.close()


class Gemini:
    def __init__(self, url: str) -> None:
        options = types.HttpOptions(base_url=url, retry_options=types.HttpRetryOptions(attempts=1))
        self._client = genai.Client(api_key="k", http_options=options)

    def begin(self, model: str) -> None:
        self._model = model
        self._contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
        self._calls: list[Any] = []

    def ask(self, *, stream: bool) -> tuple[Calls, str]:
        declarations = [types.FunctionDeclaration(name=name, parameters_json_schema=SCHEMA) for name in NAMES]
        config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declarations)])
        options: dict[str, Any] = {"model": self._model, "contents": self._contents, "config": config}
        models = self._client.models
        chunks = list(models.generate_content_stream(**options)) if stream else [models.generate_content(**options)]
        parts = []
        for chunk in chunks:
            content = (chunk.candidates or [types.Candidate()])[0].content
            parts += (content.parts if content is not None else None) or []
        if not chunks or not chunks[-1].candidates or chunks[-1].candidates[0].finish_reason is None:
            raise EOFError("the SDK ends without a word; its users look at `finish_reason`")
        self._calls = [part.function_call for part in parts if part.function_call is not None]
        self._contents.append(types.Content(role="model", parts=parts))
        text = "".join(part.text or "" for part in parts if not part.thought)
        return [(call.name, dict(call.args or {})) for call in self._calls], text

    def results(self, texts: list[str]) -> None:
        parts = []
        for call, text in zip(self._calls, texts, strict=True):
            answer = types.FunctionResponse(id=call.id, name=call.name, response={"output": text})
            parts.append(types.Part(function_response=answer))
        self._contents.append(types.Content(role="user", parts=parts))

    def close(self) -> None:
        self._client.close()


SDKS: dict[str, type[Sdk]] = {
    "ollama-chat": Ollama,
    "openai-chat": OpenAIChat,
    "openai-responses": OpenAIResponses,
    "anthropic-messages": Anthropic,
    "gemini-generate": Gemini,
}
