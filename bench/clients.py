"""One client library reading streams over a socket; run by the Python of its own environment.

    python bench/clients.py --client openai --url http://127.0.0.1:PORT --streams openai-chat.text.2000 --repeats 5

Prints one line of JSON for each stream: CPU seconds of each repetition after one that warms up, and how many events
came. Each adapter uses its library as that library's README says.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

MESSAGES = [{"role": "user", "content": "hi"}]
EMPTY = {"type": "object", "properties": {}}
NAMES = ("get_weather", "edit_file")
CHAT_TOOLS = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": EMPTY}} for name in NAMES
]
RESPONSES_TOOLS: list[Any] = [
    {"type": "function", "name": name, "description": name, "parameters": EMPTY, "strict": False} for name in NAMES
]
MESSAGES_TOOLS: list[Any] = [{"name": name, "description": name, "input_schema": EMPTY} for name in NAMES]
GEMINI_TOOLS: list[Any] = [
    {"function_declarations": [{"name": name, "description": name, "parameters_json_schema": EMPTY} for name in NAMES]}
]

#: Reads one stream from (base URL, protocol) and gives the number of its events.
Read = Callable[[str, str], Awaitable[int]]


async def count(events: AsyncIterator[Any]) -> int:
    number = 0
    async for _ in events:
        number += 1
    return number


# ---------------------------------------------------------------- ours


def read_dragoman() -> Read:
    import dragoman
    from dragoman.config import load_config

    clients: dict[str, Any] = {}

    def client_of(url: str, protocol: str) -> Any:
        if url not in clients:
            base = url + {"openai-chat": "/v1", "openai-responses": "/v1", "gemini-generate": "/v1beta"}.get(
                protocol, ""
            )
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "dragoman.toml"
                file.write_text(f'[providers.lab]\nprotocol = "{protocol}"\nbase_url = "{base}"\napi_key = "env:KEY"\n')
                clients[url] = dragoman.AsyncClient(load_config(file, environ={"KEY": "k"}, home=Path(folder)))
        return clients[url]

    async def read(url: str, protocol: str) -> int:
        async with client_of(url, protocol).stream("lab/m", "hi", tools=CHAT_TOOLS) as stream:
            number = await count(stream)
        assert stream.reply.error is None, stream.reply.error
        return number

    return read


# ---------------------------------------------------------------- the floor: a socket, no client


def read_nothing() -> Read:
    """An asyncio protocol that drops the bytes it is given."""

    class Floor(asyncio.Protocol):
        def __init__(self, path: str) -> None:
            self.path = path
            self.end = asyncio.get_running_loop().create_future()

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            transport.write(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n" % self.path.encode())

        def data_received(self, data: bytes) -> None:
            if data.endswith(b"0\r\n\r\n") and not self.end.done():
                self.end.set_result(None)

    async def read(url: str, protocol: str) -> int:
        place, _, path = url.removeprefix("http://").partition("/")
        host, _, port = place.partition(":")
        loop = asyncio.get_running_loop()
        transport, protocol_object = await loop.create_connection(lambda: Floor(f"/{path}/"), host, int(port))
        await protocol_object.end
        transport.abort()
        return 0

    return read


# ---------------------------------------------------------------- official SDKs


def read_openai() -> Read:
    """`create(stream=True)`; the accumulation of pieces is left to the caller, as in the vendor's examples."""
    import openai

    client = openai.AsyncOpenAI(api_key="k", base_url="http://127.0.0.1", max_retries=0)

    async def read(url: str, protocol: str) -> int:
        here = client.with_options(base_url=url + "/v1")
        if protocol == "openai-responses":
            asked: Any = here.responses.create(model="m", input="hi", tools=RESPONSES_TOOLS, stream=True)
            return await count(await asked)
        asked = here.chat.completions.create(model="m", messages=MESSAGES, tools=CHAT_TOOLS, stream=True)  # type: ignore[call-overload]
        return await count(await asked)

    return read


def read_openai_stream() -> Read:
    """`.stream()`, the helper that accumulates."""
    import openai

    client = openai.AsyncOpenAI(api_key="k", base_url="http://127.0.0.1", max_retries=0)

    async def read(url: str, protocol: str) -> int:
        here: Any = client.with_options(base_url=url + "/v1")
        if protocol == "openai-responses":
            manager = here.responses.stream(model="m", input="hi", tools=RESPONSES_TOOLS)
        else:
            manager = here.chat.completions.stream(model="m", messages=MESSAGES, tools=CHAT_TOOLS)
        async with manager as stream:
            return await count(stream)

    return read


def read_anthropic() -> Read:
    """`create(stream=True)`."""
    import anthropic

    client = anthropic.AsyncAnthropic(api_key="k", base_url="http://127.0.0.1", max_retries=0)

    async def read(url: str, protocol: str) -> int:
        here: Any = client.with_options(base_url=url)
        asked = here.messages.create(model="m", max_tokens=99, messages=MESSAGES, tools=MESSAGES_TOOLS, stream=True)
        return await count(await asked)

    return read


def read_anthropic_stream() -> Read:
    """`.stream()`, the helper that accumulates."""
    import anthropic

    client = anthropic.AsyncAnthropic(api_key="k", base_url="http://127.0.0.1", max_retries=0)

    async def read(url: str, protocol: str) -> int:
        here: Any = client.with_options(base_url=url)
        async with here.messages.stream(model="m", max_tokens=99, messages=MESSAGES, tools=MESSAGES_TOOLS) as stream:
            return await count(stream)

    return read


def read_ollama() -> Read:
    import ollama

    clients: dict[str, Any] = {}

    async def read(url: str, protocol: str) -> int:
        client = clients.setdefault(url, ollama.AsyncClient(host=url))
        return await count(await client.chat(model="m", messages=MESSAGES, tools=CHAT_TOOLS, stream=True))

    return read


def read_genai() -> Read:
    from google import genai

    clients: dict[str, Any] = {}

    async def read(url: str, protocol: str) -> int:
        if url not in clients:
            clients[url] = genai.Client(api_key="k", http_options={"base_url": url})
        config: Any = {"tools": GEMINI_TOOLS, "automatic_function_calling": {"disable": True}}
        models = clients[url].aio.models
        return await count(await models.generate_content_stream(model="m", contents="hi", config=config))

    return read


# ---------------------------------------------------------------- libraries for several providers


def read_pi_ai_python() -> Read:
    from pi_ai.compat import stream
    from pi_ai.types import Context, Model, Tool, UserMessage

    names = {
        "openai-chat": ("openai-completions", "/v1"), "openai-responses": ("openai-responses", "/v1"),
        "anthropic-messages": ("anthropic-messages", ""), "gemini-generate": ("google-generative-ai", "/v1beta"),
    }  # fmt: skip
    models: dict[str, Any] = {}

    async def read(url: str, protocol: str) -> int:
        name, suffix = names[protocol]
        if url not in models:
            models[url] = Model(id="m", api=name, provider="mock", base_url=url + suffix, max_tokens=99)
        context = Context(messages=[UserMessage("hi")], tools=[Tool(tool, tool, EMPTY) for tool in NAMES])
        return await count(stream(models[url], context, {"api_key": "k"}))

    return read


def read_langchain() -> Read:
    models: dict[str, Any] = {}

    def model_of(url: str, protocol: str) -> Any:
        if protocol == "ollama-chat":
            from langchain_ollama import ChatOllama

            return ChatOllama(model="m", base_url=url)
        if protocol == "anthropic-messages":
            from langchain_anthropic import ChatAnthropic

            return ChatAnthropic(model="m", base_url=url, api_key="k", max_retries=0, max_tokens=99)
        from langchain_openai import ChatOpenAI

        is_responses = protocol == "openai-responses"
        return ChatOpenAI(model="m", base_url=url + "/v1", api_key="k", max_retries=0, use_responses_api=is_responses)

    async def read(url: str, protocol: str) -> int:
        if url not in models:
            models[url] = model_of(url, protocol).bind_tools(CHAT_TOOLS)
        number, whole = 0, None
        async for chunk in models[url].astream("hi"):
            whole = chunk if whole is None else whole + chunk
            number += 1
        return number

    return read


def read_pydantic_ai() -> Read:
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    tools = [ToolDefinition(name=name, description=name, parameters_json_schema=EMPTY) for name in NAMES]
    parameters = ModelRequestParameters(function_tools=tools)
    models: dict[str, Any] = {}

    def model_of(url: str, protocol: str) -> Any:
        if protocol == "anthropic-messages":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel("m", provider=AnthropicProvider(api_key="k", base_url=url))
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        kind = OpenAIResponsesModel if protocol == "openai-responses" else OpenAIChatModel
        return kind("m", provider=OpenAIProvider(api_key="k", base_url=url + "/v1"))

    async def read(url: str, protocol: str) -> int:
        if url not in models:
            models[url] = model_of(url, protocol)
        prompt = [ModelRequest.user_text_prompt("hi")]
        async with model_request_stream(models[url], prompt, model_request_parameters=parameters) as stream:
            return await count(stream)

    return read


#: Name → (module that is imported, adapter).
CLIENTS: dict[str, tuple[str, Callable[[], Read]]] = {
    "floor": ("asyncio", read_nothing),
    "dragoman": ("dragoman", read_dragoman),
    "openai": ("openai", read_openai),
    "openai .stream()": ("openai", read_openai_stream),
    "anthropic": ("anthropic", read_anthropic),
    "anthropic .stream()": ("anthropic", read_anthropic_stream),
    "ollama": ("ollama", read_ollama),
    "google-genai": ("google.genai", read_genai),
    "pi-ai-python": ("pi_ai", read_pi_ai_python),
    "langchain": ("langchain_openai", read_langchain),
    "pydantic-ai": ("pydantic_ai.models.openai", read_pydantic_ai),
}


# ---------------------------------------------------------------- what is measured


async def measure(read: Read, url: str, stream: str, repeats: int) -> dict[str, Any]:
    protocol, kind, _, *packets = stream.split(".")
    seconds: list[float] = []
    events = 0
    await read("/".join([url, "s", ".".join([protocol, kind, "50", *packets])]), protocol)
    for _ in range(repeats):
        before = time.process_time()
        events = await read(f"{url}/s/{stream}", protocol)
        seconds.append(time.process_time() - before)
    return {"stream": stream, "seconds": seconds, "events": events}


async def measure_all(options: argparse.Namespace) -> None:
    read = CLIENTS[options.client][1]()
    for stream in options.streams.split(","):
        try:
            found = await measure(read, options.url, stream, options.repeats)
        except Exception as problem:
            found = {"stream": stream, "problem": f"{type(problem).__name__}: {problem}"[:200]}
        print(json.dumps(found), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="One client library over a socket.")
    parser.add_argument("--client", required=True, choices=list(CLIENTS))
    parser.add_argument("--url")
    parser.add_argument("--streams", default="")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    asyncio.run(measure_all(options))


if __name__ == "__main__":
    main()
