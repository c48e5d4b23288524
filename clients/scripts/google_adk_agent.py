"""PyPI google-adk: an agent that a runner streams."""

import asyncio
import os

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types

from recording import QUESTION, finish, record


async def main() -> str:
    agent = LlmAgent(name="recorder", model=Gemini(model=os.environ["MODEL"]), instruction="Be exact.", tools=[record])
    runner = InMemoryRunner(agent=agent, app_name="recording")
    session = await runner.session_service.create_session(app_name="recording", user_id="user")
    asked = types.Content(role="user", parts=[types.Part(text=QUESTION)])
    last = ""
    events = runner.run_async(
        user_id="user", session_id=session.id, new_message=asked, run_config=RunConfig(streaming_mode=StreamingMode.SSE)
    )
    async for event in events:
        if not event.partial and event.content and event.content.parts:
            last = "".join(part.text or "" for part in event.content.parts) or last
    return last


finish(asyncio.run(main()))
