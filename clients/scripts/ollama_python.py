"""PyPI ollama: the streaming chat of its own client, results by the tool's name."""

import os

import ollama

from recording import QUESTION, SCHEMA, finish, record

client = ollama.Client()
tool = {"type": "function", "function": {"name": "record", "description": "Record.", "parameters": SCHEMA}}
messages = [{"role": "user", "content": QUESTION}]
while True:
    calls, text, last = [], "", None
    for last in client.chat(os.environ["MODEL"], messages=messages, tools=[tool], stream=True):
        text += last.message.content or ""
        calls += last.message.tool_calls or []
    assert last is not None and last.done, "the stream ends early"
    messages.append(ollama.Message(role="assistant", content=text, tool_calls=calls or None))
    if not calls:
        break
    for call in calls:
        messages.append({"role": "tool", "content": record(**call.function.arguments), "tool_name": call.function.name})
finish(text)
