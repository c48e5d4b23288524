"""PyPI openai, Chat Completions: its stream helper."""

import json
import os

import openai

from recording import QUESTION, SCHEMA, finish, record

client = openai.OpenAI(max_retries=0)
tool = {"type": "function", "function": {"name": "record", "description": "Record.", "parameters": SCHEMA}}
messages = [{"role": "system", "content": "Be exact."}, {"role": "user", "content": QUESTION}]
while True:
    with client.chat.completions.stream(
        model=os.environ["MODEL"], messages=messages, tools=[tool], stream_options={"include_usage": True}
    ) as events:
        completion = events.get_final_completion()
    message = completion.choices[0].message
    assert completion.usage is not None and completion.usage.prompt_tokens > 60, completion.usage
    messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        result = record(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
finish(message.content)
