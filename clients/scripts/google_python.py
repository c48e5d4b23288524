"""PyPI google-genai: its streaming chat, parts sent back as they came."""

import os

from google import genai
from google.genai import types

from recording import QUESTION, SCHEMA, finish, record

client = genai.Client()
tool = types.FunctionDeclaration(name="record", description="Record.", parameters_json_schema=SCHEMA)
config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[tool])], system_instruction="Be exact.")
contents = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
while True:
    parts, last = [], None
    for last in client.models.generate_content_stream(model=os.environ["MODEL"], contents=contents, config=config):
        parts += last.candidates[0].content.parts or []
    assert last is not None and last.candidates[0].finish_reason == "STOP", "the stream ends early"
    contents.append(types.Content(role="model", parts=parts))
    calls = [part.function_call for part in parts if part.function_call is not None]
    if not calls:
        break
    answers = [
        types.FunctionResponse(id=call.id, name=call.name, response={"output": record(**call.args)}) for call in calls
    ]
    contents.append(types.Content(role="user", parts=[types.Part(function_response=answer) for answer in answers]))
finish("".join(part.text or "" for part in parts))
