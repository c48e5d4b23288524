"""Nothing that a client asks for is lost without a word: every field of the vendors' request types, to each protocol.

The types are those of the SDKs that are installed, so that a field which a new version brings is tried too.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from field_fates import Fate, fate, fates, send
from for_each import for_each
from vendor_types import LEAST, Case

PROJECT = Path(__file__).resolve().parent.parent
NAMES = list(LEAST)
RULES = tomllib.loads((Path(__file__).parent / "fields.toml").read_text())


def excusing(kind: str, source: str, case: Case) -> Iterator[dict[str, Any]]:
    """The rules of `fields.toml` that hold for a field."""
    for rule in RULES[kind]:
        words = rule.get("values", ["*"])
        is_meant = source in rule["protocols"] and re.fullmatch(rule["path"], case.path) is not None
        if is_meant and ("*" in words or case.values[0] in words):
            yield rule


@for_each("source", NAMES)
@for_each("target", NAMES)
def test_every_field_is_seen_or_named(source: str, target: str) -> None:
    silent = [
        (case.path, case.values)
        for case, found in fates(source, target)
        if found.kind == "silent" and not any(excusing("same", source, case))
    ]
    assert silent == []


@for_each("name", NAMES)
def test_a_protocol_keeps_what_is_its_own(name: str) -> None:
    lost = [
        (case.path, case.values, found)
        for case, found in fates(name, name)
        if found.kind == "named" and not any(excusing("own", name, case))
    ]
    assert lost == []


@for_each("name", NAMES)
def test_hardly_a_field_is_refused(name: str) -> None:
    """A request that is refused tries nothing: only a word that the protocol does not have is."""
    refused = [case.path for case, found in fates(name, name) if found.kind == "refused"]
    assert all(path.rpartition(".")[2] in ("role", "name", "model") for path in refused), refused
    assert len(refused) < 10


def test_the_page_of_fields_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, and not with the other generated pages: what becomes of each field is found out once."""
    monkeypatch.syspath_prepend(str(PROJECT / "scripts"))
    from generate_reference import stale_pages

    assert stale_pages(["docs/reference/fields.md"]) == [], "run `make docs`"


def test_each_excuse_is_needed() -> None:
    used = {
        id(rule)
        for source in NAMES
        for target in NAMES
        for case, found in fates(source, target)
        for kind, fault in (("same", "silent"), ("own", "named"))
        if found.kind == fault and (kind == "same" or source == target)
        for rule in excusing(kind, source, case)
    }
    assert [rule["path"] for kind in ("same", "own") for rule in RULES[kind] if id(rule) not in used] == []


@for_each("name", NAMES)
def test_a_field_that_is_not_known_is_named(name: str) -> None:
    """The test itself sees what is lost: a field that no parser reads is named everywhere but at home."""
    body = {**LEAST[name], "neverHeardOf": {"inner": "mark9999"}}
    case = Case("neverHeardOf.inner", body, LEAST[name], "inner", ("mark9999",), True)
    for target in NAMES:
        expected = Fate("kept") if target == name else Fate("named", ("neverHeardOf.inner",))
        assert fate(case, name, target) == expected


_CHAT_TOOL = {"type": "function", "function": {"name": "f"}}
#: By protocol, places in objects that parsers read whole: (the field of the body, where MORE stands for a field more).
_MORE: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [
        {"response_format": {"type": "json_object", "MORE": 1}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "MORE": 1}}},
        {"tools": [_CHAT_TOOL], "tool_choice": {"type": "function", "function": {"name": "f", "MORE": 1}}},
        {"tools": [_CHAT_TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}, "MORE": 1}},
        {"functions": [{"name": "f", "MORE": 1}]},
        {"messages": [{"role": "user", "content": [
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav", "MORE": 1}}]}]},
        {"messages": [{"role": "assistant", "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}", "MORE": 1}}]}]},
        {"messages": [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No.", "MORE": 1}]}]},
    ],
    "openai-responses": [
        {"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "function", "name": "f", "MORE": 1}},
    ],
    "anthropic-messages": [
        {"tools": [{"name": "f", "input_schema": {"type": "object"}}], "tool_choice": {"type": "any", "MORE": 1}},
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
                      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}], "MORE": 1}]},
        {"messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png", "MORE": 1}}]}]},
        {"messages": [{"role": "user", "content": [
            {"type": "document", "source": {"type": "text", "data": "x", "media_type": "text/plain", "MORE": 1}}]}]},
    ],
    "gemini-generate": [
        {"systemInstruction": {"parts": [{"text": "x"}], "MORE": 1}},
        {"contents": [{"role": "user", "parts": [
            {"inlineData": {"mimeType": "image/png", "data": "AAAA", "MORE": 1}}]}]},
        {"contents": [{"role": "user", "parts": [
            {"functionResponse": {"name": "f", "response": {"result": "x"}}, "MORE": 1}]}]},
    ],
    "ollama-chat": [
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}, "MORE": 1}}]}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}, "MORE": 1}]}]},
    ],
}  # fmt: skip


@for_each("target", NAMES)
@for_each(("source", "fields"), [(source, fields) for source, places in _MORE.items() for fields in places])
def test_a_field_that_is_not_known_is_named_wherever_it_stands(
    source: str, fields: dict[str, Any], target: str
) -> None:
    for word in ("neverHeardOf", "description"):  # the second is a field of other objects, and no parser's here
        body = json.loads(json.dumps({**LEAST[source], **fields}).replace('"MORE": 1', f'"{word}": "mark9999"'))
        sent = send(json.dumps(body), source, target)
        assert not isinstance(sent, str), sent
        named = [said for said in sent.deviations if said.where.endswith(word)]
        assert "mark9999" in json.dumps(sent.body) or named
