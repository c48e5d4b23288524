"""PyPI agno: an Agent run as a stream. PROVIDER names the protocol."""

import os

from agno.agent import Agent

from recording import QUESTION, finish, record

base, name = os.environ["BASE_URL"], os.environ["MODEL"]
match os.environ["PROVIDER"]:
    case "ollama":
        from agno.models.ollama import Ollama

        model = Ollama(id=name, host=base)
    case "chat":
        from agno.models.openai import OpenAIChat

        model = OpenAIChat(id=name, base_url=f"{base}/v1", api_key="any")
    case "responses":
        from agno.models.openai import OpenAIResponses

        model = OpenAIResponses(id=name, base_url=f"{base}/v1", api_key="any")
    case "anthropic":
        from agno.models.anthropic import Claude

        model = Claude(id=name, api_key="any", client_params={"base_url": base}, max_tokens=20_000)
    case "google":
        from agno.models.google import Gemini

        model = Gemini(id=name, api_key="any", client_params={"http_options": {"base_url": base}})

agent = Agent(model=model, tools=[record], instructions="Be exact.", telemetry=False)
text = ""
for event in agent.run(QUESTION, stream=True):
    content = getattr(event, "content", None)
    if event.event == "RunContent" and isinstance(content, str):
        text += content
finish(text)
