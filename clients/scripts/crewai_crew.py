"""PyPI crewai: a crew of one agent with one task."""

import os

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

from recording import QUESTION, finish, record

model = LLM(model=f"openai/{os.environ['MODEL']}", base_url=f"{os.environ['BASE_URL']}/v1", api_key="any", stream=True)
agent = Agent(role="recorder", goal="Record.", backstory="You are exact.", tools=[tool("record")(record)], llm=model)
task = Task(description=QUESTION, expected_output="A sentence.", agent=agent)
finish(str(Crew(agents=[agent], tasks=[task], verbose=False, tracing=False).kickoff()))
