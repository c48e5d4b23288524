"""A request for any JSON object says "JSON": OpenAI refuses it else, and clients of other protocols need not say it."""

from __future__ import annotations

import json
from typing import Any

from dragoman.protocols import PROTOCOLS
from for_each import for_each

WORDS = "Answer with one JSON object only, and nothing around it."
GEMINI = {"generationConfig": {"responseMimeType": "application/json"}}


def sent(source: str, body: dict[str, Any], target: str) -> tuple[dict[str, Any], list[str]]:
    path = "/v1beta/models/m:generateContent" if source == "gemini-generate" else ""
    parsed = PROTOCOLS[source].parse_request(json.dumps(body).encode(), path=path)
    rendered = PROTOCOLS[target].render_request(parsed.request)
    return json.loads(rendered.http.body), [said.where for said in rendered.deviations]


def asked(source: str, words: str, prompt: str = "") -> dict[str, Any]:
    if source == "gemini-generate":
        system = {"systemInstruction": {"parts": [{"text": prompt}]}} if prompt else {}
        return {"contents": [{"role": "user", "parts": [{"text": words}]}], **GEMINI, **system}
    system = [{"role": "system", "content": prompt}] if prompt else []
    form = {"format": "json"} if source == "ollama-chat" else {"response_format": {"type": "json_object"}}
    return {"model": "m", "messages": [*system, {"role": "user", "content": words}], **form}


@for_each("source", ["gemini-generate", "ollama-chat"])
def test_the_word_is_added_where_the_client_need_not_say_it(source: str) -> None:
    for prompt in ("", "Be short."):
        chat, named = sent(source, asked(source, "Hi", prompt), "openai-chat")
        assert chat["messages"][0] == {"role": "system", "content": f"{prompt}\n\n{WORDS}" if prompt else WORDS}
        assert named == ["params.response_schema"]
        responses, named = sent(source, asked(source, "Hi", prompt), "openai-responses")
        assert responses["input"][0]["content"] == [{"type": "input_text", "text": WORDS}]
        assert named == ["params.response_schema"]
    for target in ("openai-chat", "openai-responses"):
        body, named = sent(source, asked(source, "Hi, in JSON"), target)
        assert WORDS not in json.dumps(body) and named == []


def test_a_client_of_openais_says_it_itself_but_the_prompt_does_not_count_in_responses() -> None:
    for words, prompt, target, is_added in (
        ("Hi", "", "openai-chat", False),
        ("Hi", "In JSON.", "openai-chat", False),
        ("Hi, in JSON", "", "openai-responses", False),
        ("Hi", "In JSON.", "openai-responses", True),
    ):
        body, _ = sent("openai-chat", asked("openai-chat", words, prompt), target)
        assert (WORDS in json.dumps(body)) is is_added
