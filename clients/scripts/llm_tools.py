"""PyPI llm: a chain of its Python interface, streamed, or of llm-ollama. PROVIDER: chat or ollama."""

import os

os.environ["OLLAMA_HOST"] = os.environ["BASE_URL"]

import llm  # it reads the host when it loads its plugins

from recording import QUESTION, finish, record

base, name = os.environ["BASE_URL"], os.environ["MODEL"]
if os.environ["PROVIDER"] == "ollama":
    model = llm.get_model(f"ollama/{name}")
else:
    from llm.default_plugins.openai_models import Chat

    model = Chat("any", model_name=name, api_base=f"{base}/v1", can_stream=True, supports_tools=True)
    model.key = "any"
responses = list(model.chain(QUESTION, tools=[record]).responses())
finish(responses[-1].text())
