"""PyPI smolagents: a ToolCallingAgent, which sends results as text and ends by a tool of its own."""

import os

from smolagents import OpenAIModel, ToolCallingAgent, tool

from recording import QUESTION, finish, record

model = OpenAIModel(os.environ["MODEL"], api_base=os.environ["BASE_URL"] + "/v1", api_key="any")
agent = ToolCallingAgent([tool(record)], model, verbosity_level=0, stream_outputs=True)
finish(str(agent.run(QUESTION)))
