"""PyPI openai-agents: an Agent run as a stream. PROVIDER: chat or responses."""

import asyncio
import os

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from recording import QUESTION, finish, record

set_tracing_disabled(True)
kind = OpenAIChatCompletionsModel if os.environ["PROVIDER"] == "chat" else OpenAIResponsesModel
model = kind(os.environ["MODEL"], AsyncOpenAI(base_url=os.environ["BASE_URL"] + "/v1", api_key="any", max_retries=0))
agent = Agent(name="recorder", instructions="Be exact.", tools=[function_tool(record)], model=model)


async def main() -> str:
    run = Runner.run_streamed(agent, QUESTION)
    async for _ in run.stream_events():
        pass
    return run.final_output


finish(asyncio.run(main()))
