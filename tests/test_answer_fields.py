"""Nothing of an answer is lost without a word: every field of the vendors' answer types and of the events of their
streams, in its own protocol and in each other one."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
from anthropic.types.beta import BetaStopReason
from google.genai.types import FinishReason

import dragoman
from answer_fates import FORMS, fates, write
from dragoman.events import Deviation
from field_fates import is_named, is_written
from for_each import for_each
from vendor_answers import LEAST, cases
from vendor_types import Case

NAMES = list(LEAST)
_STOPS = ("finishReason", "done_reason")
RULES: dict[str, list[dict[str, Any]]] = tomllib.loads((Path(__file__).parent / "fields.toml").read_text())


def excusing(case: Case, source: str, target: str, form: str) -> list[dict[str, Any]]:
    """The rules of `fields.toml` that hold for a field that is neither written nor named."""
    return [
        rule
        for rule in RULES["stream" if form == "stream" else "answer"]
        if source in rule["protocols"]
        and re.fullmatch(rule["path"], case.path)
        and case.values[0] in rule.get("values", case.values)
        and (form != "stream" or source != target or rule.get("own"))
    ]


@for_each("form", FORMS)
@for_each("source", NAMES)
@for_each("target", NAMES)
def test_every_field_is_written_or_named(source: str, target: str, form: str) -> None:
    silent = [
        (case.path, case.values[0])
        for case, told in fates(source, target, form)
        if told.kind == "silent" and not excusing(case, source, target, form)
    ]
    assert silent == []


@for_each("form", FORMS)
@for_each("name", NAMES)
def test_a_protocol_loses_nothing_of_its_own(name: str, form: str) -> None:
    lost = [case for case, told in fates(name, name, form) if told.kind == "named"]
    # a stop reason that no protocol has is said to be unknown
    assert [case.path for case in lost if not (case.key in _STOPS or excusing(case, name, name, form))] == []


def test_the_page_of_fields_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, and not with the other generated pages: what becomes of each field is found out once."""
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parent.parent / "scripts"))
    from generate_reference import stale_pages

    assert stale_pages(["docs/reference/answer-fields.md"]) == [], "run `make docs`"


def test_each_excuse_is_needed() -> None:
    used = {
        id(rule)
        for form in FORMS
        for source in NAMES
        for target in NAMES
        for case, told in fates(source, target, form)
        if told.kind == "silent"
        for rule in excusing(case, source, target, form)
    }
    assert [rule["path"] for kind in ("answer", "stream") for rule in RULES[kind] if id(rule) not in used] == []


@for_each("name", NAMES)
def test_no_part_of_the_vendors_own_types_is_unknown(name: str) -> None:
    unknown = {
        (said.code, said.seen)
        for case in cases(name)
        for said in dragoman.decode(json.dumps(case.body).encode(), name).deviations
        if said.code in ("unknown-part", "unknown-event")
    }
    assert unknown == set()


@for_each(
    ("name", "words"),
    [
        ("anthropic-messages", get_args(BetaStopReason)),
        ("gemini-generate", [each.value for each in FinishReason if each.value != "FINISH_REASON_UNSPECIFIED"]),
    ],
)
def test_every_stop_reason_of_the_vendors_own_types_is_known(name: str, words: list[str]) -> None:
    wire = json.dumps(LEAST[name])
    said = "end_turn" if name == "anthropic-messages" else "STOP"
    for word in words:
        reply = dragoman.decode(wire.replace(f'"{said}"', f'"{word}"').encode(), name)
        codes = {each.code for each in reply.deviations if word not in ("tool_use",)}
        assert "stop-reason" not in codes, word
        if reply.error is None and word != "tool_use":  # without a call it is another word
            for form in ("whole", "unfolded"):
                found = write(wire.replace(f'"{said}"', f'"{word}"'), name, name, form)
                assert found is not None
                assert f'"{word}"' in found.text


def test_what_no_decoder_models_is_told_apart() -> None:
    """The test itself sees what is lost."""
    case = Case("neverHeardOf", {}, {}, "neverHeardOf", ("mark9999",), True)
    assert not is_written(case, '{"a":"mark99990"}')
    assert is_written(case, '{"a":"mark9999"}')
    assert not is_named(Deviation("untranslated", "other"), case)
    assert is_named(Deviation("untranslated", "parts[0].neverHeardOf"), case)


@for_each(
    ("source", "word", "targets"),
    [
        ("anthropic-messages", "pause_turn", {"openai-chat", "openai-responses", "gemini-generate", "ollama-chat"}),
        ("anthropic-messages", "refusal", {"ollama-chat"}),
        ("gemini-generate", "LANGUAGE", {"openai-chat", "openai-responses", "anthropic-messages", "ollama-chat"}),
        ("gemini-generate", "SPII", {"openai-chat", "openai-responses", "anthropic-messages", "ollama-chat"}),
        ("gemini-generate", "SAFETY", {"ollama-chat"}),
        ("gemini-generate", "MAX_TOKENS", set()),
    ],
)
def test_a_stop_reason_is_named_where_it_says_more_than_the_others_word(
    source: str, word: str, targets: set[str]
) -> None:
    wire = json.dumps(LEAST[source]).replace('"end_turn"' if source == "anthropic-messages" else '"STOP"', f'"{word}"')
    for form in ("whole", "unfolded"):
        for target in NAMES:
            found = write(wire, source, target, form)
            assert found is not None
            named = [said.seen for said in found.lost if said.where == "stop_reason"]
            assert named == ([word] if target in targets else []), (target, form)


@for_each("word", ["max_messages", "steered"])
@for_each("form", ["whole", "unfolded"])
def test_a_response_that_is_incomplete_is_not_told_as_completed(word: str, form: str) -> None:
    cut = {**LEAST["openai-responses"], "status": "incomplete", "incomplete_details": {"reason": word}}
    found = write(json.dumps(cut), "openai-responses", "openai-responses", form)
    assert found is not None
    assert "response.completed" not in found.text
    assert f'"incomplete_details":{{"reason":"{word}"}}' in found.text
