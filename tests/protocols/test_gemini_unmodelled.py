"""What a Gemini answer says beside its parts comes back, streamed and whole, with Google's enums by name."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from cases import counter
from dragoman import _json
from dragoman.events import Event, Failure, Finish, Start, TextDelta, ThinkingEnd, ThinkingStart, fold, unfold
from dragoman.protocols.gemini.protocol import PROTOCOL
from dragoman.protocols.gemini.wire import parse_seal, render_seal
from dragoman.types import ToolCall
from grammar import check

GROUNDING = {
    "webSearchQueries": ["rain"],
    "groundingChunks": [{"web": {"uri": "https://example.org", "title": "Rain"}}],
    "groundingSupports": [{"segment": {"endIndex": 3, "text": "wet"}, "groundingChunkIndices": [0]}],
    "searchEntryPoint": {"renderedContent": "<b>rain</b>"},
}
CANDIDATE = {
    "groundingMetadata": GROUNDING,
    "citationMetadata": {"citationSources": [{"startIndex": 1, "endIndex": 3, "uri": "https://example.org"}]},
    "urlContextMetadata": {
        "urlMetadata": [{"retrievedUrl": "u", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"}]
    },
    "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "LOW"}],
    "logprobsResult": {"chosenCandidates": [{"token": "wet", "tokenId": 7, "logProbability": -0.25}]},
    "avgLogprobs": -0.25,
    "finishMessage": "done",
    "somethingNew": {"a": [1, 2.50]},
}
COUNTS = {
    "promptTokenCount": 5,
    "candidatesTokenCount": 2,
    "totalTokenCount": 10,
    "toolUsePromptTokenCount": 3,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 5}],
    "trafficType": "ON_DEMAND",
}
BESIDE = {"createTime": "2026-01-01T00:00:00Z", "modelStatus": {"stage": "STABLE"}}


LEVELS = ["NEGLIGIBLE", "LOW", "MEDIUM", "HIGH"]


def chunk(*parts: Any, finish: Any = None, **candidate: Any) -> dict[str, Any]:
    entry = {"content": {"role": "model", "parts": list(parts)}, "index": 0} | candidate
    return {"candidates": [entry | ({"finishReason": finish} if finish is not None else {})], "responseId": "r"}


def stream(*chunks: dict[str, Any]) -> bytes:
    return b"".join(b"data: %b\n\n" % _json.encode(one) for one in chunks)


def read(wire: bytes) -> list[Event]:
    decoder = PROTOCOL.decoder(new_id=counter())
    return check([*decoder.feed(wire), *decoder.close()])


def written(events: list[Event]) -> list[dict[str, Any]]:
    """The answer whole, and the last chunks of the streams of the events and of their reply."""
    reply = fold(events)
    whole = _json.decode(PROTOCOL.render_response(reply, new_id=counter(), model="m", created=1))
    found = [whole]
    for said in (events, unfold(reply)):
        wire = PROTOCOL.encoder(new_id=counter(), model="m", created=1).encode(said)
        found.append(_json.decode(wire.split(b"data: ")[-1]))
    for one in found:
        types.GenerateContentResponse._from_response(response=copy.deepcopy(one), kwargs={})
    return found


WHOLE = chunk({"text": "wet"}, finish="STOP", **CANDIDATE) | {"usageMetadata": COUNTS} | BESIDE


@pytest.mark.parametrize(
    "wire",
    [
        _json.encode(WHOLE),
        stream(chunk({"text": "we"}) | BESIDE, WHOLE | {"candidates": [WHOLE["candidates"][0] | {"content": {}}]}),
        stream(WHOLE, chunk(finish="STOP")),
        _json.encode([chunk({"text": "we"}), WHOLE]),
        stream({"response": WHOLE}),
        _json.encode(WHOLE | {"responseId": 5}),  # read field by field
    ],
    ids=["whole", "at-the-end", "at-the-start", "array", "envelope", "odd"],
)
def test_what_stands_beside_the_content_comes_back(wire: bytes) -> None:
    events = read(wire)
    native = fold(events).native
    assert native is not None
    assert _json.decode(bytes(native.fields["candidates"])) == [CANDIDATE]
    for one in written(events):
        candidate = one["candidates"][0]
        assert {key: candidate.get(key) for key in CANDIDATE} == CANDIDATE
        assert one["usageMetadata"] == COUNTS
        assert {key: one.get(key) for key in BESIDE} == BESIDE
        assert candidate["finishReason"] == "STOP"


def test_chunks_go_on_or_say_again() -> None:
    tokens = [{"token": str(number), "logProbability": -1.0} for number in range(4)]
    wire = stream(
        *(
            chunk(
                {"text": str(number)},
                logprobsResult={"chosenCandidates": [tokens[number]]},
                safetyRatings=[{"category": "HARM_CATEGORY_HARASSMENT", "probability": LEVELS[number]}],
                groundingMetadata=GROUNDING | {"webSearchQueries": ["a", "b", "c", "d"][: number + 1]},
            )
            for number in range(4)
        ),
        chunk(finish="STOP", groundingMetadata={}),
    )
    candidate = written(read(wire))[0]["candidates"][0]
    assert candidate["logprobsResult"] == {"chosenCandidates": tokens}
    assert candidate["safetyRatings"] == [{"category": "HARM_CATEGORY_HARASSMENT", "probability": LEVELS[3]}]
    assert candidate["groundingMetadata"] == GROUNDING | {"webSearchQueries": ["a", "b", "c", "d"]}
    assert "".join(event.text for event in read(wire) if type(event) is TextDelta) == "0123"


@pytest.mark.parametrize("is_stream", [False, True])
def test_fields_of_parts_come_back(is_stream: bool) -> None:
    parts = [
        {"text": "a"},
        {"text": "b", "partMetadata": {"k": 1}},
        {"text": "c", "thought": True, "partMetadata": {"k": 2}},
        {"functionCall": {"name": "f", "args": {"x": 1}, "id": "1"}, "partMetadata": {"k": 3}},
    ]
    body = chunk(*parts, finish="STOP")
    events = read(stream(body) if is_stream else _json.encode(body))
    whole = written(events)[0]
    assert whole["candidates"][0]["content"]["parts"] == parts
    assert fold(events).deviations == ()
    wire = PROTOCOL.encoder(new_id=counter(), model="m", created=1).encode(events)
    again = [
        part for one in wire.split(b"data: ")[1:] for part in _json.decode(one)["candidates"][0]["content"]["parts"]
    ]
    assert again[:-1] == parts


def test_a_failed_turn_keeps_its_message() -> None:
    reply = fold(read(_json.encode(chunk(finish="MALFORMED_FUNCTION_CALL", finishMessage="Malformed: f(1"))))
    assert type(reply.error) is Failure
    assert reply.native is not None
    assert b"Malformed: f(1" in bytes(reply.native.fields["candidates"])
    assert "f(1" not in reply.error.message


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER", 4])
def test_a_blocked_prompt_has_no_candidates(reason: Any) -> None:
    body = {
        "promptFeedback": {"blockReason": reason, "blockReasonMessage": "no"},
        "usageMetadata": {"promptTokenCount": 3},
    }
    events = read(_json.encode(body))
    assert fold(events).stop_reason == "content_filter"
    assert fold(events).error is None
    for one in written(events):
        assert "candidates" not in one
        assert one["promptFeedback"]["blockReasonMessage"] == "no"
        assert isinstance(one["promptFeedback"]["blockReason"], str)


@pytest.mark.parametrize(
    ("number", "name", "reason"),
    [(1, "STOP", "stop"), (2, "MAX_TOKENS", "length"), (3, "SAFETY", "content_filter"),
     (4, "RECITATION", "content_filter"), (8, "PROHIBITED_CONTENT", "content_filter"), (5, "OTHER", "other")],
)  # fmt: skip
def test_enums_as_numbers(number: int, name: str, reason: str) -> None:
    ratings = [{"category": 7, "probability": 1, "blocked": False}]
    body = chunk({"text": "a"}, finish=number, safetyRatings=ratings) | {
        "usageMetadata": {"promptTokenCount": 3, "promptTokensDetails": [{"modality": 1, "tokenCount": 3}]}
    }
    for wire in (_json.encode(body), stream(body)):
        events = read(wire)
        reply = fold(events)
        assert (reply.stop_reason, reply.native_reason, reply.deviations) == (reason, str(number), ())
        for one in written(events):
            assert one["candidates"][0]["finishReason"] == name
            rating = {"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE", "blocked": False}
            assert one["candidates"][0]["safetyRatings"] == [rating]
            assert one["usageMetadata"]["promptTokensDetails"] == [{"modality": "TEXT", "tokenCount": 3}]


def test_an_unpublished_number_is_told() -> None:
    reply = fold(read(_json.encode(chunk({"text": "a"}, finish=99))))
    assert (reply.stop_reason, [found.code for found in reply.deviations]) == ("other", ["stop-reason"])


@pytest.mark.parametrize("number", [10, 12])
def test_failed_turns_as_numbers(number: int) -> None:
    assert type(fold(read(_json.encode(chunk({"text": "a"}, finish=number)))).error) is Failure


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: base64.b64encode(data).decode()))
def test_every_seal_is_base64_and_comes_back(seal: str) -> None:
    sealed = render_seal(seal)
    assert base64.b64encode(base64.b64decode(sealed, validate=True))
    assert parse_seal(sealed) == seal.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("seal", ["tco_abc-1", "tco_7e8e81c2-66a", "rsn_x", "RjR=", "CiQBEU0yD1hCYiUo"])
def test_foreign_seals_go_out_and_return(seal: str) -> None:
    events = [Start(), ThinkingStart(0), ThinkingEnd(0, seal), Finish("stop")]
    wire = PROTOCOL.encoder(new_id=counter(), model="m", created=1).encode(events)
    part = _json.decode(wire.split(b"data: ")[1])["candidates"][0]["content"]["parts"][0]
    base64.b64decode(part["thoughtSignature"], validate=True)
    call = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": part["thoughtSignature"]}
    body = {"contents": [{"role": "model", "parts": [call]}]}
    request = PROTOCOL.parse_request(_json.encode(body), path="/v1beta/models/m:generateContent").request
    (found,) = request.messages[0].parts
    assert type(found) is ToolCall
    assert found.signature == seal
