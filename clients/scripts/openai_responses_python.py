"""PyPI openai, Responses: its stream helper, the whole conversation sent each time."""

import json
import os

import openai

from recording import QUESTION, SCHEMA, finish, record

client = openai.OpenAI(max_retries=0)
tool = {"type": "function", "name": "record", "description": "Record.", "parameters": SCHEMA, "strict": False}
items = [{"role": "user", "content": QUESTION}]
while True:
    with client.responses.stream(model=os.environ["MODEL"], input=items, tools=[tool], store=False) as events:
        response = events.get_final_response()
    items += [item.model_dump(exclude_none=True) for item in response.output]
    calls = [item for item in response.output if item.type == "function_call"]
    if not calls:
        break
    for call in calls:
        result = record(**json.loads(call.arguments))
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
finish(response.output_text)
