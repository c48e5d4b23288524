"""What an attempt may use at most: no server reads more out of a request than the bound, however it reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import _json
from dragoman.gateway import attempt_bounds
from dragoman.gateway.attempt_bounds import bound_of, has_text
from dragoman.protocols import PROTOCOLS
from profiles import examples

LONGEST = 4_000
COPIES = ("n", "best_of", "candidateCount", "candidate_count")
TABLES = ("options", "generationConfig", "generation_config")
#: Names as servers in Go and those with protocol buffers take them.
FOLDED = {name.casefold(): name for name in ("max_tokens", "max_completion_tokens", "num_predict", "n", "options")}
CAMEL = {
    "generation_config": "generationConfig",
    "max_output_tokens": "maxOutputTokens",
    "candidate_count": "candidateCount",
}
NAMES = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxOutputTokens",
    "num_predict",
    "prompt",
    *COPIES,
    "MAX_TOKENS",
    "Num_Predict",
    "max_to\u212aens",
    "N",
)

LISTS = ('["a","b","c"]', "[1,2,3]", "[[1,2],[3]]")
values = st.sampled_from(
    ["1", "7", "250", "0", "null", "-1", "1.5", "1e3", "true", '"9"', "[]", "1000000000000000000", *LISTS]
)
members = st.lists(st.tuples(st.sampled_from(NAMES), values), max_size=5)
tables = st.lists(
    st.tuples(st.sampled_from((*TABLES, "Options")), st.one_of(members.map(lambda found: written(found)), values)),
    max_size=3,
)


def written(found: list[tuple[str, str]]) -> str:
    return "{%s}" % ",".join(f'"{name}":{value}' for name, value in found)


def written_again(body: str) -> tuple[bytes, dict[str, _json.Raw]]:
    """A body written from its fields, which are told with it."""
    fields = attempt_bounds._members(body.encode())
    assert isinstance(fields, dict)
    return _json.encode_members(fields), fields


def first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))


def merged(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """As readers of protocol buffers do with messages."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        before = found.get(name)
        found[name] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return found


def folded(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """As programs in Go read objects."""
    return merged([(FOLDED.get(name.casefold(), name), value) for name, value in pairs])


def camel(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """As readers of protocol buffers take names; the last one of an object counts, as a whole."""
    return {CAMEL.get(name, name): value for name, value in pairs}


def camel_merged(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return merged([(CAMEL.get(name, name), value) for name, value in pairs])


def count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def used(request: dict[str, Any], limits: tuple[tuple[str, ...], ...]) -> int:
    """Tokens that a server may say, no more than its model can: it takes what is no number for nothing."""
    said = []
    for way in limits:
        found: Any = request
        for name in way:
            found = found.get(name) if isinstance(found, dict) else None
        said.append(count(found))
    places = [request, *(request[name] for name in TABLES if isinstance(request.get(name), dict))]
    copies = max([1, *(count(place.get(name)) or 1 for place in places for name in COPIES)])
    told = [number for number in said if number is not None]
    prompt = request.get("prompt")
    prompts = sum(not isinstance(item, int) for item in prompt) if isinstance(prompt, list) else 0
    return min(max(told, default=LONGEST), LONGEST) * min(copies, 1_024) * max(prompts, 1)


@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
@settings(max_examples=examples(300), deadline=None)
@given(outer=members, inner=tables, seed=st.randoms(use_true_random=False))
def test_no_server_reads_more_than_the_bound(
    protocol: str, outer: list[tuple[str, str]], inner: list[tuple[str, str]], seed: Any
) -> None:
    limits = PROTOCOLS[protocol].output_limits
    pairs = [*outer, *inner]
    seed.shuffle(pairs)
    body = written(pairs)
    bound = bound_of(body.encode(), limits, max_output=LONGEST)
    again, fields = written_again(body)
    bound_again = bound_of(again, limits, max_output=LONGEST, fields=fields)
    for reads in (dict, first, merged, *((camel, camel_merged) if protocol == "gemini-generate" else (folded,))):
        assert used(json.loads(body, object_pairs_hook=reads), limits) <= (bound.output or 0), body
        assert used(json.loads(again, object_pairs_hook=reads), limits) <= (bound_again.output or 0), again


def test_what_is_said_once_bounds() -> None:
    limits = PROTOCOLS["gemini-generate"].output_limits
    body = (
        b'{"generationConfig":{"maxOutputTokens":50,"candidateCount":2},"contents":[{"text":"\\"maxOutputTokens\\""}]}'
    )
    assert bound_of(body, limits, max_output=LONGEST).output == 100


def test_a_limit_that_is_told_twice_bounds_nothing() -> None:
    """Servers take the first or the last of two. What was written from fields may still have two in a table."""
    for protocol, parts in sorted(PROTOCOLS.items()):
        for *around, name in parts.output_limits:
            twice = f'{{"{name}":250,"{name}":1}}'
            for table in reversed(around):
                twice = f'{{"{table}":{twice}}}'
            bounds = [bound_of(twice.encode(), parts.output_limits, max_output=LONGEST)]
            if around:
                body, fields = written_again(twice)
                bounds.append(bound_of(body, parts.output_limits, max_output=LONGEST, fields=fields))
            assert [bound.output for bound in bounds] == [LONGEST] * len(bounds), (protocol, twice)


def test_a_name_in_another_spelling_bounds_nothing() -> None:
    """A server may read it too: capitals, the Kelvin sign, long s, and both spellings of Gemini's names."""
    for protocol, body in (
        ("openai-chat", '{"max_tokens":5,"Max_Tokens":250}'),
        ("openai-chat", '{"max_tokens":5,"max_to\u212aens":250}'),
        ("openai-chat", '{"max_tokens":5,"max_token\u017f":250}'),
        ("openai-chat", '{"max_tokens":5,"N":50}'),
        ("ollama-chat", '{"options":{"num_predict":5},"OPTIONS":{"num_predict":250}}'),
        ("ollama-chat", '{"options":{"num_predict":5,"Num_predict":250}}'),
        ("gemini-generate", '{"generationConfig":{"maxOutputTokens":5,"max_output_tokens":250}}'),
        ("gemini-generate", '{"generationConfig":{"maxOutputTokens":5},"generation_config":{"maxOutputTokens":250}}'),
        ("gemini-generate", '{"generationConfig":{"maxOutputTokens":5},"generation_config":{"temperature":1}}'),
        ("gemini-generate", '{"generationConfig":{"maxOutputTokens":5,"candidateCount":1,"candidate_count":8}}'),
    ):
        limits = PROTOCOLS[protocol].output_limits
        again, fields = written_again(body)
        for bound in (
            bound_of(body.encode(), limits, max_output=LONGEST),
            bound_of(again, limits, max_output=LONGEST, fields=fields),
        ):
            assert (bound.output or 0) >= LONGEST, body


def test_each_picture_of_a_list_counts() -> None:
    """Ollama's stand in a list: a hundred tiny ones have a hundred times the tokens of one."""
    request = '{"messages":[{"role":"user","images":[%s]},{"role":"user","images" : [%s], "content":"a"}]}'
    for count in (1, 2, 50):
        pictures = " , ".join(['"AA=="'] * count)
        body = (request % (pictures, pictures)).encode()
        for fields in (None, written_again(body.decode())[1]):
            bound = bound_of(body, (), max_output=9, fields=fields)
            assert (bound.input or 0) >= 2 * count * 24_576, count
    many = b'{"messages":[%s]}' % b",".join([b'{"images":["AA==","AA=="]}'] * 5_000)
    assert (bound_of(many, (), max_output=9).input or 0) >= 10_000 * 24_576


def test_pages_sound_and_films_in_a_request_read_all_that_the_model_can() -> None:
    """Their bytes say little: an hour of silence has a few thousand. Pictures and texts count as they did."""
    for kind, is_all in (
        ("application/pdf", True), ("audio/flac", True), ("video/mp4", True), ("image/png", False), ("text/csv", False),
    ):  # fmt: skip
        for part in (
            '{"inlineData":{"data":"AA==","mimeType":"%s"}}',
            '{"inline_data":{"mime_type" : "%s","data":"AA=="}}',
            '{"type":"image_url","image_url":{"url":"data:%s;base64,AA=="}}',
        ):
            body = (f'{{"contents":[{part}],"text":{{"mimeType":"application/json"}}}}' % kind).encode()
            bound = bound_of(body, (), max_output=9, context=1_000_000)
            assert ((bound.input or 0) >= 1_000_000) is is_all, body
    named = b'{"functionCall":{"args":{"mimeType":"application/pdf"}}}'
    assert (bound_of(named, (), max_output=9, context=1_000_000).input or 0) < 10_000


def test_each_prompt_of_a_list_has_an_answer() -> None:
    """A list of numbers is one prompt, in tokens."""
    limits = PROTOCOLS["openai-chat"].output_limits
    for prompt, times in (('["a","b","c"]', 3), ("[1,2,3]", 1), ("[[1,2],[3]]", 2), ('"a"', 1), ("[]", 1), ("null", 1)):
        for more, copies in (("", 1), (',"best_of":4,"n":2', 4)):
            body = f'{{"prompt":{prompt},"max_tokens":100{more}}}'.encode()
            assert bound_of(body, limits, max_output=LONGEST).output == 100 * times * copies, body


def test_a_picture_takes_what_the_dearest_model_takes_of_one() -> None:
    """One of gpt-4o-mini has 2,833 + 8 × 5,667 tokens, in a request of a hundred bytes."""
    for part in (
        '{"type":"image_url","image_url":{"url":"https://a"}}',
        '{"type":"input_image","image_url":"https://a"}',
    ):
        request = '{"max_tokens":5,"messages":[{"role":"user","content":[%s]}]}'
        one, three = (
            bound_of((request % part).encode(), (), max_output=9).input for part in (part, ",".join([part] * 3))
        )
        assert (three or 0) - (one or 0) >= 2 * (2_833 + 8 * 5_667)


def test_a_models_name_does_not_make_its_answers_vectors() -> None:
    for url, is_text in (
        ("https://a/v1beta/models/embedder-2:generateContent", True),
        ("https://a/openai/deployments/my-embeddings/chat/completions?api-version=1", True),
        ("https://a/v1/chat/completions?from=/embeddings", True),
        ("https://a/v1beta/models/m:batchEmbedContents", False),
        ("https://a/v1/embeddings?api-version=1", False),
        ("http://embedded/api/embed", False),
    ):
        assert has_text(url) is is_text, url


def test_a_hidden_name_bounds_nothing() -> None:
    """A letter of a key may be written as an escape: it may name an earlier answer, or how many there shall be."""
    limits = PROTOCOLS["openai-chat"].output_limits
    usual = bound_of(b'{"max_tokens":5}', limits, max_output=LONGEST, context=1_000_000)
    for key in ("previ\\u006fus_response_id", "\\u006e", "max\\u005ftokens"):
        body = b'{"max_tokens":5,"%b":"3"}' % key.encode()
        bound = bound_of(body, limits, max_output=LONGEST, context=1_000_000)
        assert (bound.input or 0) - len(body) >= 1_000_000 > (usual.input or 0), key
        assert (bound.output or 0) >= 1_024 * LONGEST, key


def test_a_part_with_a_hidden_type_reads_all_that_the_model_can() -> None:
    """A letter of a type may be written as an escape too: pages behind an address have no byte in the request."""
    limits = PROTOCOLS["anthropic-messages"].output_limits
    plain = ("document", "document_url", "file_url", "video_url", "audio_url", "input_video", "item_reference")
    for kind in (*plain, "\\u0064ocument", "doc\\u0075ment", "im\\u0061ge", "input\\u005ffile"):
        body = b'{"max_tokens":5,"messages":[{"type" : "%b","source":{"type":"url","url":"a"}}]}' % kind.encode()
        bound = bound_of(body, limits, max_output=LONGEST, context=1_000_000)
        assert (bound.input or 0) - len(body) >= 1_000_000, kind
    usual = b'{"max_tokens":5,"messages":[{"type":"text","text":"a\\u0062\\u0026"}]}'
    assert bound_of(usual, limits, max_output=LONGEST, context=1_000_000).input < 1_000_000  # type: ignore[operator]


PIECES = (
    '"', "image", "image_url", "images", "input_", "input_audio", "inline_data", "inlineData", "file", "file_id", "_id",
    "document", "video_url", "video", "conversation", "cached_content", "cachedContent", "previous_response_id",
    "prompt", "type", ":", " ", "{", "id", "version", "n", "text", "document_url",
    "audio_url", "item_reference",
)  # fmt: skip


@settings(max_examples=examples(2_000), deadline=None)
@given(st.lists(st.one_of(st.sampled_from(PIECES), st.sampled_from(PIECES).map('"{}"'.format)), max_size=8))
def test_the_first_look_passes_over_nothing(pieces: list[str]) -> None:
    body = "".join(pieces).encode()
    if attempt_bounds._MEDIA.search(body) or attempt_bounds._ELSEWHERE.search(body):
        assert attempt_bounds._SPECIAL.search(body), body


#: Names with all that the first look knows them by, and what stands under them.
words = st.sampled_from(
    [piece for piece in PIECES if piece.strip(' ":{')] + ["tools", "messages", "inlineData", "fileUri", "n"]
)
texts = st.one_of(words, words.map('"{}'.format), words.map(r"\"{}\": \"".format), st.just("\\u0066ile_id"))
inputs = st.recursive(
    st.one_of(texts, st.integers(0, 9), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


@settings(max_examples=examples(2_000), deadline=None)
@given(st.dictionaries(words, inputs, max_size=4), st.sampled_from(sorted(PROTOCOLS)))
def test_fields_that_were_written_bound_as_much_as_their_bytes(request: dict[str, Any], protocol: str) -> None:
    body, fields = written_again(json.dumps(request))
    limits = PROTOCOLS[protocol].output_limits
    assert bound_of(body, limits, max_output=LONGEST, fields=fields) == bound_of(body, limits, max_output=LONGEST), body
