"""PyPI anthropic: its stream helper."""

import os

import anthropic

from recording import QUESTION, SCHEMA, finish, record

client = anthropic.Anthropic(max_retries=0)
tool = {"name": "record", "description": "Record.", "input_schema": SCHEMA}
messages = [{"role": "user", "content": QUESTION}]
while True:
    with client.messages.stream(
        model=os.environ["MODEL"], max_tokens=20_000, messages=messages, tools=[tool], system="Be exact."
    ) as events:
        message = events.get_final_message()
    messages.append({"role": "assistant", "content": message.content})
    calls = [block for block in message.content if block.type == "tool_use"]
    if not calls:
        break
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": record(**call.input)} for call in calls]
    messages.append({"role": "user", "content": results})
finish("".join(block.text for block in message.content if block.type == "text"))
