"""PyPI strands-agents: an Agent, which streams. PROVIDER names the protocol."""

import os

from strands import Agent, tool

from recording import QUESTION, finish, record

base, name = os.environ["BASE_URL"], os.environ["MODEL"]
match os.environ["PROVIDER"]:
    case "ollama":
        from strands.models.ollama import OllamaModel

        model = OllamaModel(base, model_id=name)
    case "chat":
        from strands.models.openai import OpenAIModel

        model = OpenAIModel(client_args={"base_url": f"{base}/v1", "api_key": "any"}, model_id=name)
    case "anthropic":
        from strands.models.anthropic import AnthropicModel

        model = AnthropicModel(client_args={"base_url": base, "api_key": "any"}, model_id=name, max_tokens=20_000)
    case "google":
        from strands.models.gemini import GeminiModel

        model = GeminiModel(client_args={"api_key": "any", "http_options": {"base_url": base}}, model_id=name)

agent = Agent(model=model, tools=[tool(record)], system_prompt="Be exact.", callback_handler=None)
finish(str(agent(QUESTION)).removesuffix("\n"))
