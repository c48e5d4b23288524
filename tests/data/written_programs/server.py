"""Your own server: an address and a key in code, its models, embeddings, the failure of a wrong address."""

from __future__ import annotations

import dragoman
from dragoman.testing import FakeModel

model = FakeModel("Hello from the lab.", "Hello from the same.")
with model.serve() as server:
    lab = dragoman.Client(base_url=server.url + "/v1", api_key="secret", protocol="openai-chat")
    print(lab.reply("qwen3", "hi"))
    claude = dragoman.Client(base_url=server.url, api_key="secret", protocol="anthropic-messages")
    print(claude.reply("qwen3", "hi", max_tokens=5))
    vectors = lab.embed("qwen3", ["one", "two"]).vectors
    print(len(vectors))
    print([facts.target for facts in lab.models()])
try:
    dragoman.Client(base_url="http://127.0.0.1:9/v1", retries=0).reply("qwen3", "hi")
except dragoman.CallFailed as failed:
    print(failed.failure.kind, failed)
try:
    dragoman.Client(base_url="127.0.0.1:9").reply("qwen3", "hi")
except (dragoman.UsageError, dragoman.ConfigError) as wrong:
    print(type(wrong).__name__, wrong)
