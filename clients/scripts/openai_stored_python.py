"""PyPI openai, Responses: each turn goes on from the one before it, which the server keeps."""

import json
import os

import openai

from recording import QUESTION, SCHEMA, finish, record

client = openai.OpenAI(max_retries=0)
tool = {"type": "function", "name": "record", "description": "Record.", "parameters": SCHEMA, "strict": False}
items, before = [{"role": "user", "content": QUESTION}], None
while True:
    with client.responses.stream(
        model=os.environ["MODEL"], input=items, tools=[tool], previous_response_id=before
    ) as events:
        response = events.get_final_response()
    before = response.id
    calls = [item for item in response.output if item.type == "function_call"]
    if not calls:
        break
    items = [
        {"type": "function_call_output", "call_id": call.call_id, "output": record(**json.loads(call.arguments))}
        for call in calls
    ]
finish(response.output_text)
