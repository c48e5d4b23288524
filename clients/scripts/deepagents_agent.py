"""PyPI deepagents: an agent with its own tools (files, plans, helpers) beside ours. PROVIDER names the protocol."""

import os

from deepagents import create_deep_agent
from langchain_core.tools import tool

from recording import QUESTION, finish, record

base, name = os.environ["BASE_URL"], os.environ["MODEL"]
match os.environ["PROVIDER"]:
    case "ollama":
        from langchain_ollama import ChatOllama

        model = ChatOllama(model=name, base_url=base)
    case "chat":
        from langchain_openai import ChatOpenAI

        model = ChatOpenAI(model=name, base_url=f"{base}/v1", api_key="any")
    case "anthropic":
        from langchain_anthropic import ChatAnthropic

        model = ChatAnthropic(model=name, base_url=base, api_key="any", max_tokens=20_000)
    case "google":
        from langchain_google_genai import ChatGoogleGenerativeAI

        model = ChatGoogleGenerativeAI(model=name, base_url=base, api_key="any")

agent = create_deep_agent(model=model, tools=[tool(record)], system_prompt="Be exact.")
last = ""
for mode, value in agent.stream(
    {"messages": [{"role": "user", "content": QUESTION}]}, stream_mode=["messages", "values"]
):
    if mode == "values":
        last = value["messages"][-1].text
finish(last if isinstance(last, str) else last())
