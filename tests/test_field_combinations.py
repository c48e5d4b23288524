"""Several fields of a request at once: none makes another vanish without a word, and what a provider is sent is valid.

`test_fields.py` tries each field alone. Here two to four stand in one request, drawn at random, the same each time.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from functools import cache
from typing import NamedTuple

import pytest
from anthropic.types.beta.message_create_params import MessageCreateParamsStreaming as MessagesParams
from google.genai.types import Content, GenerationConfig, SafetySetting
from google.genai.types import Tool as GeminiTool
from ollama._types import ChatRequest
from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming as ChatParams
from openai.types.responses.response_create_params import ResponseCreateParamsStreaming as ResponsesParams
from pydantic import ValidationError

from dragoman.events import Deviation
from field_fates import Sent, fate, is_named, leaves_of, places_of, send
from for_each import for_each
from profiles import IS_SOAK
from test_fields import NAMES, excusing
from test_history import adapter, exhaust
from vendor_types import LEAST, Case, Json, cases

REQUESTS = 3000 if IS_SOAK else 40
#: What is said where tools are left out of the list, with all that stands in them.
_FEWER = ("offered", "another tool has this name", "left out")
#: What stands in required fields only because something must.
_PLAIN = ("plain", "https://example.test/plain", 7)
_OF_TOOLS = ("tool", "functions", "mcp_servers", "input")


class Clash(Exception):
    """Two fields that cannot stand in one request."""


@cache
def by_root(source: str) -> dict[str, list[Case]]:
    """The fields of a protocol's requests, by the field of the body that they stand in."""
    found: dict[str, list[Case]] = defaultdict(list)
    for case in cases(source):
        found[case.path.partition(".")[0].partition("[")[0].partition("<")[0]].append(case)
    return found


def merged(least: Json, one: Json, other: Json, *, is_within: bool) -> Json:
    """Two bodies as one. `is_within`: what stands in lists of one entry is one entry; else the one list goes on with
    the other."""
    if one == other or other in (least, *_PLAIN):
        return one
    if one in (least, *_PLAIN):
        return other
    if isinstance(one, dict) and isinstance(other, dict):
        known = least if isinstance(least, dict) else {}
        both = {
            key: merged(known.get(key), one[key], other[key], is_within=is_within) for key in one.keys() & other.keys()
        }
        return one | other | both
    if isinstance(one, list) and isinstance(other, list):
        if is_within and len(one) == len(other) == 1:
            return [merged(None, one[0], other[0], is_within=True)]
        return one + other
    raise Clash


def body_of(source: str, *bodies: Json, is_within: bool) -> Json:
    body = LEAST[source]
    for each in bodies:
        body = merged(LEAST[source], body, each, is_within=is_within)
    return body


class Drawn(NamedTuple):
    """Fields that can stand together, and the request with them."""

    fields: list[Case]
    body: Json
    is_within: bool


def drawn(dice: random.Random, source: str) -> Drawn:
    roots = by_root(source)
    while True:
        fields = [dice.choice(roots[dice.choice(list(roots))]) for _ in range(dice.choice((2, 2, 3, 4)))]
        try:
            is_within = dice.random() < 0.5
            return Drawn(fields, body_of(source, *[case.body for case in fields], is_within=is_within), is_within)
        except Clash:
            continue


def is_silent(case: Case, asked: Drawn, sent: Sent, source: str, target: str) -> bool:
    """Whether a field leaves no trace in what is sent, nor a word about it."""
    if any(excusing("same", source, case)) or fate(case, source, target).kind in ("silent", "refused"):
        return False
    if any(is_named(said, case) or is_left_out(said, case) for said in sent.deviations):
        return False
    if case.is_marked:
        return not places_of(case, sent.body)
    bodies = [case.base if other is case else other.body for other in asked.fields]
    try:
        bare = body_of(source, *bodies, is_within=asked.is_within)
    except Clash:
        return False
    without = send(json.dumps(bare), source, target)
    said_anyway = set(fate(case, source, target).words) & {path for path, _ in leaves_of(sent.body)}
    if bare == asked.body or isinstance(without, str) or said_anyway:
        return False
    is_same = Counter(leaves_of(sent.body)) == Counter(leaves_of(without.body))
    return is_same and Counter(sent.deviations) == Counter(without.deviations)


def is_left_out(said: Deviation, case: Case) -> bool:
    return case.path.startswith(_OF_TOOLS) and any(word in said.seen for word in _FEWER)


@for_each("source", NAMES)
@for_each("target", NAMES)
def test_no_field_makes_another_vanish(source: str, target: str) -> None:
    dice = random.Random(f"{source} {target}")
    tried = 0
    silent = []
    for _ in range(REQUESTS):
        asked = drawn(dice, source)
        sent = send(json.dumps(asked.body), source, target)
        if isinstance(sent, str):  # a field that is refused alone is refused here
            assert any(fate(case, source, target).kind == "refused" for case in asked.fields), (sent, asked.body)
            continue
        tried += 1
        for case in asked.fields:
            if is_silent(case, asked, sent, source, target):
                silent.append((case.path, [other.path for other in asked.fields if other is not case]))
    assert silent == []
    assert tried > REQUESTS * 0.9


# ---------------------------------------------------------------- what the vendors' types say of what is sent

#: The reference says that it is "auto" without a word, the type that it is required.
_IMAGE = '"type": "input_image", "detail": "auto"'
#: What the smallest request has in place of a file is none.
_BASE64 = "valid base64"
TYPES = {
    "openai-chat": ChatParams,
    "openai-responses": ResponsesParams,
    "anthropic-messages": MessagesParams,
    "ollama-chat": ChatRequest,
}


GEMINI_LISTS = {
    "contents": list[Content],
    "tools": list[GeminiTool],
    "safetySettings": list[SafetySetting],
}
#: What the vendors' types take and their servers do not: system instructions that are no text, schemas of what is no
#: object; and sound, which Responses' types do not have yet.
_NOT_TRIED = ("systemInstruction.parts[].", ".parameters.type", ".parameters.enum", "<input_audio>", "refusal")


def problems_of(target: str, body: Json) -> list[str]:
    """What the vendor's SDK says against a request of its protocol."""
    try:
        if target == "gemini-generate":
            for field, kind in GEMINI_LISTS.items():
                adapter(kind).validate_python(body.get(field, []))
            GenerationConfig.model_validate(body.get("generationConfig", {}))
        else:
            text = json.dumps({**body, "stream": True}).replace('"type": "input_image"', _IMAGE)
            exhaust(adapter(TYPES[target]).validate_python(json.loads(text)))
    except ValidationError as problem:
        return [
            f"{'.'.join(map(str, each['loc']))}: {each['msg']}"
            for each in problem.errors()[:3]
            if _BASE64 not in each["msg"]
        ]
    return []


@pytest.mark.filterwarnings("ignore:.*is not a valid")
@for_each("source", NAMES)
@for_each("target", NAMES)
def test_what_is_sent_is_valid(source: str, target: str) -> None:
    """A request that its own vendor's types take is one that the target's types take."""
    dice = random.Random(f"valid {source} {target}")
    found = {}
    for _ in range(REQUESTS):
        asked = drawn(dice, source)
        if problems_of(source, asked.body) or any(word in case.path for case in asked.fields for word in _NOT_TRIED):
            continue
        sent = send(json.dumps(asked.body), source, target)
        if not isinstance(sent, str) and (said := problems_of(target, sent.body)):
            found[tuple(case.path for case in asked.fields)] = said
    assert found == {}


# ---------------------------------------------------------------- values that are none

_NUMBERS = {
    "openai-chat": ["temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "presence_penalty",
                    "frequency_penalty"],
    "openai-responses": ["temperature", "top_p", "max_output_tokens"],
    "anthropic-messages": ["temperature", "top_p", "top_k", "max_tokens"],
    "gemini-generate": [f"generationConfig.{name}" for name in (
        "temperature", "topP", "topK", "maxOutputTokens", "seed", "presencePenalty", "frequencyPenalty",
        "thinkingConfig.thinkingBudget")],
    "ollama-chat": [f"options.{name}" for name in (
        "temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty", "num_ctx", "num_predict")],
}  # fmt: skip


@for_each("value", ["many", [7], {"n": 7}, False], ids=repr)
@for_each("target", NAMES)
@for_each(("source", "path"), [(source, path) for source, paths in _NUMBERS.items() for path in paths])
def test_a_number_that_is_none_is_named(source: str, path: str, target: str, value: Json) -> None:
    given = value
    for name in reversed(path.split(".")):
        given = {name: given}
    sent = send(json.dumps({**LEAST[source], **given}), source, target)
    assert not isinstance(sent, str)
    last = path.rpartition(".")[2]
    is_kept = json.dumps({last: value})[1:-1] in json.dumps(sent.body)
    assert is_kept or any(last in said.where for said in sent.deviations)


def test_no_limit_needs_no_word() -> None:
    for target in NAMES:
        sent = send(json.dumps({**LEAST["openai-chat"], "max_tokens": -1}), "openai-chat", target)
        assert not isinstance(sent, str)
        assert sent == send(json.dumps(LEAST["openai-chat"]), "openai-chat", target)
