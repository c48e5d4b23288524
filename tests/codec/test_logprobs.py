"""The odds of tokens cross the protocols: asked for in each one's words, told in each one's form."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from answer_fates import write
from dragoman._json import Raw
from dragoman.codec.json_fields import read_fields
from dragoman.codec.logprobs import OF_ANSWER, OF_CANDIDATE, OF_CHOICE, OF_TEXT, take_odds
from vendor_answers import LEAST

#: Where an answer tells odds in each protocol.
_FORMS = {
    "openai-chat": OF_CHOICE, "openai-responses": OF_TEXT, "gemini-generate": OF_CANDIDATE, "ollama-chat": OF_ANSWER,
}  # fmt: skip
_ODDS = st.floats(-20, 0, allow_nan=False)


@st.composite
def _entries(draw: st.DrawFn) -> list[dict[str, Any]]:
    def token() -> dict[str, Any]:
        text = draw(st.sampled_from(["Noah", " the", "é", "東", "\n", '"', ""]))
        return {"token": text, "logprob": draw(_ODDS), "bytes": draw(st.sampled_from([None, list(text.encode())]))}

    tops = draw(st.booleans())
    number = range(draw(st.integers(1, 4)))
    return [{**token(), "top_logprobs": [token() for _ in range(2 if tops else 0)]} for _ in number]


def _answer(protocol: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The least answer of a protocol, with these odds as it tells them."""
    form, body = _FORMS[protocol], json.loads(json.dumps(LEAST[protocol]))
    place = body["output"][0]["content"][0] if form.of_text else body[form.within][0] if form.within else body
    place |= form.render(entries)
    return dict(body)


def _told(protocol: str, body: dict[str, Any]) -> list[tuple[Any, ...]]:
    """What an answer tells of its tokens."""
    form = _FORMS[protocol]
    place = body["output"][0]["content"][0] if form.of_text else body
    taken = take_odds(read_fields(Raw(json.dumps(place).encode())) or {}, form)
    return [_plain(entry) + tuple(_plain(one) for one in entry["top_logprobs"]) for entry in taken.entries]


def _plain(entry: dict[str, Any]) -> tuple[Any, ...]:
    return entry["token"], entry["logprob"]


@pytest.mark.parametrize(("source", "target"), list(permutations(_FORMS, 2)))
@given(entries=_entries())
def test_odds_of_a_whole_answer_come_in_the_others_form(
    source: str, target: str, entries: list[dict[str, Any]]
) -> None:
    body = _answer(source, entries)
    written = write(json.dumps(body), source, target, "whole")
    assert written is not None
    assert _told(target, json.loads(written.text)) == _told(source, body)
    assert [said.where for said in written.lost if "logprob" in said.where] == []


@pytest.mark.parametrize("source", list(_FORMS))
def test_a_protocol_without_odds_names_them(source: str) -> None:
    body = _answer(source, [{"token": "a", "logprob": -1.0, "bytes": None, "top_logprobs": []}])
    written = write(json.dumps(body), source, "anthropic-messages", "whole")
    assert written is not None
    assert any("logprobs" in said.where for said in written.lost)


@pytest.mark.parametrize(("source", "target"), list(permutations(_FORMS, 2)))
def test_odds_of_an_answer_that_is_streamed_on_are_told(source: str, target: str) -> None:
    entries = [{"token": "hello", "logprob": -0.1, "bytes": None, "top_logprobs": []}]
    body = _answer(source, entries)
    written = write(json.dumps(body), source, target, "unfolded")
    assert written is not None
    assert "-0.1" in written.text


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_the_vendors_client_takes_odds_without_bytes(target: str) -> None:
    body = _answer("gemini-generate", [{"token": "é", "logprob": -1.0, "top_logprobs": []}])
    written = write(json.dumps(body), "gemini-generate", target, "whole")
    assert written is not None
    kind = ChatCompletion if target == "openai-chat" else Response
    kind.model_validate_json(written.text)
    assert '"bytes":[195,169]' in written.text


def test_what_gemini_cannot_say_of_a_token_is_named() -> None:
    entries = [{"token": "�", "logprob": -1.0, "bytes": [195], "top_logprobs": [], "kind": "part"}]
    written = write(json.dumps(_answer("openai-chat", entries)), "openai-chat", "gemini-generate", "whole")
    assert written is not None
    assert {"choices[0].logprobs[].bytes", "choices[0].logprobs[].kind"} <= {said.where for said in written.lost}


@pytest.mark.parametrize("odd", ["words", [1], [{"token": 1, "logprob": -1}], [{"token": "a", "logprob": True}], {}])
def test_what_is_no_list_of_odds_stays_where_it_is(odd: Any) -> None:
    for body in ({"logprobs": odd}, {"choices": [{"logprobs": {"content": odd}}]},
                 {"candidates": [{"logprobsResult": {"chosenCandidates": odd}}]}):  # fmt: skip
        fields = read_fields(Raw(json.dumps(body).encode())) or {}
        assert take_odds(fields, OF_ANSWER).entries == []
        assert take_odds(fields, OF_ANSWER).rest == fields
