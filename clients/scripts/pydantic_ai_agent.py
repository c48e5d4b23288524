"""PyPI pydantic-ai-slim: an agent run as a stream. PROVIDER names the protocol."""

import asyncio
import os

from pydantic_ai import Agent

from recording import QUESTION, finish, record

base, name = os.environ["BASE_URL"], os.environ["MODEL"]
match os.environ["PROVIDER"]:
    case "chat" | "responses" as which:
        from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        kind = OpenAIChatModel if which == "chat" else OpenAIResponsesModel
        model = kind(name, provider=OpenAIProvider(base_url=f"{base}/v1", api_key="any"))
    case "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        model = AnthropicModel(name, provider=AnthropicProvider(base_url=base, api_key="any"))
    case "google":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        model = GoogleModel(name, provider=GoogleProvider(base_url=base, api_key="any"))

agent = Agent(model, tools=[record], instructions="Be exact.")


async def drain(context: object, events: object) -> None:
    """With a handler of events a run streams its requests; `run_stream` takes the text beside a call for the end."""
    async for _ in events:
        pass


async def main() -> str:
    return (await agent.run(QUESTION, event_stream_handler=drain)).output


finish(asyncio.run(main()))
