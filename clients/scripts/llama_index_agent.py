"""PyPI llama-index: a FunctionAgent, streamed. PROVIDER names the protocol's package."""

import asyncio
import os

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool

from recording import QUESTION, finish, record

base, name = os.environ["BASE_URL"], os.environ["MODEL"]
match os.environ["PROVIDER"]:
    case "ollama":
        from llama_index.llms.ollama import Ollama

        model = Ollama(model=name, base_url=base, context_window=100_000, request_timeout=60)
    case "chat":
        from llama_index.llms.openai_like import OpenAILike

        model = OpenAILike(
            model=name, api_base=f"{base}/v1", api_key="any", is_chat_model=True, is_function_calling_model=True
        )
    case "google":
        from google.genai import types
        from llama_index.llms.google_genai import GoogleGenAI

        model = GoogleGenAI(
            model=name, api_key="any", http_options=types.HttpOptions(base_url=base), context_window=100_000,
            max_tokens=20_000,
        )  # fmt: skip


async def record_in_order(text: str, tags: list[str], count: int) -> str:
    """Record a text; without a thread, since Ollama's results come back without ids, in the order in which they end."""
    return record(text, tags, count)


async def main() -> str:
    tool = FunctionTool.from_defaults(record_in_order, name="record")
    agent = FunctionAgent(tools=[tool], llm=model, system_prompt="Be exact.", streaming=True)
    return str(await agent.run(QUESTION))


finish(asyncio.run(main()))
