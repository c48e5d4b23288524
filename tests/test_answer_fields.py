"""Nothing of an answer is lost without a word: every field of the vendors' answer types, in its own protocol and in
each other one."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from anthropic.types.beta import BetaStopReason
from google.genai.types import FinishReason

import dragoman
from dragoman.events import Deviation, Failure, Reply, unfold
from dragoman.protocols import PROTOCOLS
from field_fates import is_named, is_written
from vendor_answers import LEAST, cases
from vendor_types import Case

NAMES = list(LEAST)
RULES: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "fields.toml").read_text())["answer"]


def ids() -> str:
    return "0" * 24


def written(reply: Reply, target: str) -> tuple[str, str, list[Deviation]]:
    """An answer whole and as a stream, and what neither could say."""
    protocol, lost = PROTOCOLS[target], list(reply.deviations)
    whole = protocol.render_response(reply, new_id=ids, model="m", created=1, lost=lost)
    encoder = protocol.encoder(new_id=ids, model="m", created=1)
    stream = encoder.encode(unfold(reply))
    return whole.decode(), stream.decode(), [*lost, *encoder.lost]


@cache
def silent(source: str, target: str) -> list[tuple[str, str]]:
    """The fields that are neither written nor named: their paths, and in which form."""
    found = []
    for case in cases(source):
        reply = dragoman.decode(json.dumps(case.body).encode(), source)
        if isinstance(reply.error, Failure) or reply.failed_calls:
            continue  # an error has no fields; what failed is not written
        whole, stream, lost = written(reply, target)
        for form, text in (("whole", whole), ("stream", stream)):
            if not is_written(case, text) and not any(is_named(said, case) for said in lost):
                found.append((case.path, form))
    return found


def excused(source: str, path: str) -> list[dict[str, Any]]:
    return [rule for rule in RULES if source in rule["protocols"] and re.fullmatch(rule["path"], path)]


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_every_field_is_written_or_named(source: str, target: str) -> None:
    assert [(path, form) for path, form in silent(source, target) if not excused(source, path)] == []


@pytest.mark.parametrize("name", NAMES)
def test_no_part_of_the_vendors_own_types_is_unknown(name: str) -> None:
    unknown = {
        (said.code, said.seen)
        for case in cases(name)
        for said in dragoman.decode(json.dumps(case.body).encode(), name).deviations
        if said.code in ("unknown-part", "unknown-event")
    }
    assert unknown == set()


@pytest.mark.parametrize(
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
        if reply.error is None:
            whole, stream, _ = written(reply, name)
            if word != "tool_use":  # without a call it is another word
                assert f'"{word}"' in whole
                assert f'"{word}"' in stream


def test_each_excuse_is_needed() -> None:
    used = {
        id(rule)
        for source in NAMES
        for target in NAMES
        for path, _ in silent(source, target)
        for rule in excused(source, path)
    }
    assert [rule["path"] for rule in RULES if id(rule) not in used] == []


def test_what_no_decoder_models_is_told_apart() -> None:
    """The test itself sees what is lost."""
    case = Case("neverHeardOf", {}, {}, "neverHeardOf", ("mark9999",), True)
    assert not is_written(case, '{"a":"mark99990"}')
    assert is_written(case, '{"a":"mark9999"}')
    assert not is_named(Deviation("untranslated", "other"), case)
    assert is_named(Deviation("untranslated", "parts[0].neverHeardOf"), case)
