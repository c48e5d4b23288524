"""PyPI litellm: completion() as a stream, put together by its stream_chunk_builder. PREFIX names the protocol."""

import json
import os

import litellm

from recording import QUESTION, SCHEMA, finish, record

prefix, base = os.environ["PREFIX"], os.environ["BASE_URL"] + os.environ.get("BASE_PATH", "")
tool = {"type": "function", "function": {"name": "record", "description": "Record.", "parameters": SCHEMA}}
messages = [{"role": "system", "content": "Be exact."}, {"role": "user", "content": QUESTION}]
while True:
    stream = litellm.completion(
        model=f"{prefix}/{os.environ['MODEL']}", api_base=base, api_key="any", messages=messages, tools=[tool],
        stream=True, max_tokens=20_000,
    )  # fmt: skip
    message = litellm.stream_chunk_builder(list(stream), messages=messages).choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    if not message.tool_calls:
        break
    for call in message.tool_calls:
        result = record(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "name": call.function.name, "content": result})
finish(message.content)
