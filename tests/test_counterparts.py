"""What has a counterpart in another protocol is said there, at the vendor's own host; elsewhere it is named as lost."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import msgspec

from answer_fates import write
from dragoman._json import Raw
from dragoman.codec.counterparts import OF_BODY, OF_PART, Counterpart
from dragoman.protocol import PLAIN, Dialect
from dragoman.protocols import PROTOCOLS
from dragoman.types import Media, Message, Native, Opaque, ProtocolName, Request, Text
from field_fates import DIALECTS
from for_each import for_each
from vendor_answers import LEAST as ANSWERS
from vendor_types import GEMINI_PATH, LEAST

PAIRS = [
    (counterpart, source, target)
    for counterpart in OF_BODY
    for source, target in permutations(counterpart.paths, 2)
]  # fmt: skip


def at(body: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def with_value(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for name in reversed(path):
        value = {name: value}
    return value


def merged(body: Any, more: Any) -> Any:
    """Two bodies as one; fields within objects side by side."""
    if not (isinstance(body, dict) and isinstance(more, dict)):
        return more
    return body | {key: merged(body[key], value) if key in body else value for key, value in more.items()}


def beside(counterpart: Counterpart, source: ProtocolName) -> Any:
    """A field that another one needs, with a value that every protocol has."""
    assert counterpart.words is not None
    return with_value(counterpart.paths[source], json.loads(next(iter(counterpart.words[source]))))


def send(body: Any, source: str, target: str, dialect: Dialect) -> tuple[Any, list[str]]:
    path = GEMINI_PATH if source == "gemini-generate" else ""
    parsed = PROTOCOLS[source].parse_request(json.dumps(body).encode(), path=path)
    rendered = PROTOCOLS[target].render_request(parsed.request, dialect=dialect)
    return json.loads(rendered.http.body), [said.where for said in rendered.deviations]


@for_each(("counterpart", "source", "target"), PAIRS)
def test_a_field_goes_to_its_counterpart(counterpart: Counterpart, source: ProtocolName, target: ProtocolName) -> None:
    words = counterpart.words
    pairs = [(b'"word"', "word")] if words is None else [
        (here.encode(), json.loads(there)) for here, meant in words[source].items()
        for there, also in words[target].items() if meant == also
    ]  # fmt: skip
    if words is not None:
        assert pairs
    here, there = counterpart.paths[source], counterpart.paths[target]
    for value, expected in pairs:
        asked = LEAST[source] | with_value(here, json.loads(value))
        if counterpart.beside is not None:
            _, named = send(asked, source, target, DIALECTS.get(target, PLAIN))
            assert ".".join(here) in named
            asked = merged(asked, beside(counterpart.beside, source))
        if here[0] == "prompt_cache_retention":
            asked[here[0]], expected = "in_memory", "in_memory"
        if here[0] == "store":
            asked[here[0]], expected = True, True
        body, named = send(asked, source, target, DIALECTS.get(target, PLAIN))
        assert at(body, there) == expected
        assert ".".join(here) not in named
        if target in counterpart.everywhere:
            continue
        body, named = send(asked, source, target, PLAIN)
        assert at(body, there) is None
        assert ".".join(here) in named


def test_what_is_too_long_or_has_no_word_is_named() -> None:
    asked = LEAST["anthropic-messages"] | {"metadata": {"user_id": "u" * 65}, "service_tier": "auto"}
    body, named = send(asked, "anthropic-messages", "openai-chat", DIALECTS["openai-chat"])
    assert "safety_identifier" not in body
    assert "metadata.user_id" in named
    asked = LEAST["openai-chat"] | {"service_tier": "scale"}
    body, named = send(asked, "openai-chat", "gemini-generate", DIALECTS["gemini-generate"])
    assert "serviceTier" not in body
    assert "service_tier" in named


def test_every_counterpart_of_a_part_is_of_two_protocols_or_more() -> None:
    assert all(len(counterpart.paths) > 1 for counterpart in (*OF_BODY, *OF_PART))


def test_an_image_keeps_its_detail_and_a_refusal_its_kind() -> None:
    image = Media("image", url="https://x.test/a.png", native=Native("openai-responses", {"detail": Raw(b'"low"')}))
    refusal = Text("No.", native=Native("openai-responses", {"type": Raw(b'"refusal"')}))
    request = Request("m", (Message("user", (image,)), Message("assistant", (refusal,))))
    rendered = PROTOCOLS["openai-chat"].render_request(request, dialect=DIALECTS["openai-chat"])
    user, assistant = json.loads(rendered.http.body)["messages"]
    assert user["content"][0]["image_url"] == {"url": "https://x.test/a.png", "detail": "low"}
    assert assistant["refusal"] == "No."


@for_each("target", [name for name in LEAST if name != "anthropic-messages"])
def test_what_only_anthropic_knows_is_read_as_text(target: str) -> None:
    blocks = [
        {"type": "compaction", "content": "So far: mark1", "encrypted_content": "sealed"},
        {"type": "search_result", "title": "mark2", "source": "mark3", "content": [{"type": "text", "text": "mark4"}]},
        {"type": "document", "source": {"type": "content", "content": "mark5"}},
        {"type": "compaction", "content": None},
    ]
    asked = LEAST["anthropic-messages"] | {"messages": [{"role": "user", "content": blocks}]}
    body, named = send(asked, "anthropic-messages", target, PLAIN)
    text = json.dumps(body)
    assert all(f"mark{number}" in text for number in range(1, 6))
    assert "sealed" not in text
    assert "messages[0].parts[0].<compaction>.encrypted_content" in named
    assert "messages[0].parts[3].<compaction>" in named


def test_what_stands_beside_the_texts_of_a_document_is_named() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    content = [{"type": "text", "text": "mark1", "cache_control": {"type": "ephemeral"}}, image]
    document = {"type": "document", "source": {"type": "content", "content": content}}
    asked = LEAST["anthropic-messages"] | {"messages": [{"role": "user", "content": [document]}]}
    for target in ("openai-chat", "openai-responses", "gemini-generate", "ollama-chat"):
        _, named = send(asked, "anthropic-messages", target, PLAIN)
        at = "messages[0].parts[0].<document>.source.content"
        assert {f"{at}[0].cache_control", f"{at}[1].<image>"} <= set(named)


@for_each("target", list(LEAST))
@for_each("part", [Opaque("other", Raw(b'{"type":"web_search_call"}')), Media("image", "image/png", "iVBORw0KGgo=")])
def test_a_turn_of_the_model_of_which_nothing_can_be_said_is_left_out(target: str, part: Opaque | Media) -> None:
    """An empty one is not what the model said, and some servers refuse it."""
    turns = (Message("user", (Text("ask"),)), Message("assistant", (part,)), Message("user", (Text("more"),)))
    rendered = PROTOCOLS[target].render_request(Request("m", turns))
    body = json.loads(rendered.http.body)
    [sent] = [body[name] for name in ("messages", "input", "contents") if name in body]
    spoken = [turn for turn in sent if turn.get("role") in ("assistant", "model")]
    assert all("iVBORw0KGgo=" in json.dumps(turn) for turn in spoken)
    assert spoken or any(each.where.startswith("messages[1].parts[0]") for each in rendered.deviations)


@for_each("scheme", ["https:", "HTTPS:", "Http:"])
def test_the_scheme_of_an_address_may_be_in_capitals(scheme: str) -> None:
    for target in ("openai-responses", "anthropic-messages"):
        for kind in ("image", "document"):
            media = Media(kind, url=f"{scheme}//e.org/a")
            rendered = PROTOCOLS[target].render_request(Request("m", (Message("user", (media,)),)))
            body = rendered.http.body
            assert f"{scheme}//e.org/a".encode() in body and b"file_id" not in body, (target, kind)


def test_an_address_of_another_scheme_is_no_id_of_a_file() -> None:
    for url in ("gs://b/a.png", "file:///a.png", "s3://b/a.png"):
        for kind in ("image", "document"):
            rendered = PROTOCOLS["openai-responses"].render_request(
                Request("m", (Message("user", (Media(kind, url=url),)),))
            )
            assert b"file_id" not in rendered.http.body and url.encode() in rendered.http.body, (url, kind)


@for_each("head", ["data:image/png;base64,", "DATA:image/png;BASE64,", "Data:image/png;charset=x;Base64,"])
def test_the_scheme_of_data_may_be_in_capitals(head: str) -> None:
    url = f"{head}iVBORw0KGgo="
    asked = {
        "openai-chat": {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]},
        "openai-responses": {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]},
        "ollama-chat": {"messages": [{"role": "user", "content": "", "images": [url]}]},
    }
    for source, fields in asked.items():
        [message] = PROTOCOLS[source].parse_request(json.dumps({"model": "m", **fields}).encode()).request.messages
        assert [part for part in message.parts if isinstance(part, Media)] == [
            Media("image", "image/png", "iVBORw0KGgo=")
        ], source


def test_the_detail_of_a_file_is_none_of_an_image() -> None:
    """OpenAI's chat has a detail for images alone."""
    asked = {
        "model": "m",
        "input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f", "detail": "high"}]}],
    }
    body, named = send(asked, "openai-responses", "openai-chat", DIALECTS["openai-chat"])
    assert body["messages"][0]["content"] == [{"type": "file", "file": {"file_id": "f"}}]
    assert named == ["messages[0].parts[0].detail"]


@for_each("syntax", ["lark", "regex"])
def test_the_grammar_of_a_free_text_goes_both_ways(syntax: str) -> None:
    inner = {"syntax": syntax, "definition": "start: x"}
    chat = {"type": "custom", "custom": {"name": "g", "format": {"type": "grammar", "grammar": inner}}}
    responses = {"type": "custom", "name": "g", "format": {"type": "grammar", **inner}}
    for source, tool, target, there in (
        ("openai-chat", chat, "openai-responses", responses),
        ("openai-responses", responses, "openai-chat", chat),
    ):
        for dialect in (DIALECTS[target], Dialect(only_functions=False)):  # who takes such a tool takes its grammar
            body, named = send(LEAST[source] | {"tools": [tool]}, source, target, dialect)
            assert body["tools"] == [there]
            assert not any("format" in each for each in named)


@for_each("target", [name for name in LEAST if name != "gemini-generate"])
@for_each("answer", [{"output": {"mark1": 1}}, {"mark1": 21, "unit": "C"}, {"result": ["mark1"]}])
def test_a_result_of_gemini_that_is_said_whole_is_not_named(target: str, answer: dict[str, Any]) -> None:
    call = {"functionCall": {"name": "f", "args": {}}}
    result = {"functionResponse": {"name": "f", "response": answer}}
    contents = [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    body, named = send(LEAST["gemini-generate"] | {"contents": contents}, "gemini-generate", target, PLAIN)
    assert "mark1" in json.dumps(body)
    assert not any("response" in each for each in named)


@for_each("target", ["openai-chat", "openai-responses"])
@for_each(("mime", "form"), [("audio/mpeg", "mp3"), ("audio/x-wav", "wav"), ("audio/wav", "wav")])
def test_a_sound_has_the_name_that_openai_takes(target: str, mime: str, form: str) -> None:
    contents = [{"role": "user", "parts": [{"inlineData": {"mimeType": mime, "data": "aGk="}}]}]
    body, _ = send(LEAST["gemini-generate"] | {"contents": contents}, "gemini-generate", target, DIALECTS[target])
    assert f'"format": "{form}"' in json.dumps(body)


def test_a_part_in_a_result_is_read_too() -> None:
    content = [{"type": "search_result", "title": "t", "source": "s", "content": [{"type": "text", "text": "found"}]}]
    asked = LEAST["anthropic-messages"] | {
        "messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": content}]},
        ]
    }
    body, _ = send(asked, "anthropic-messages", "openai-chat", PLAIN)
    assert body["messages"][1]["content"] == "t\ns\nfound"


def test_what_stands_in_many_messages_is_named_once() -> None:
    foreign = Opaque("gemini-generate", Raw(b'{"executableCode":{}}'))
    request = Request("m", tuple(Message("user", (Text("hi"), foreign)) for _ in range(50)))
    rendered = PROTOCOLS["openai-chat"].render_request(request)
    assert [(said.where, said.seen, said.severity) for said in rendered.deviations] == [
        ("messages[0].parts[1].<executableCode>", "gemini-generate's own, 50 times", "note")
    ]


_MARK: dict[str, Any] = {"type": "ephemeral", "ttl": "1h"}
_MARKED: dict[str, dict[str, Any]] = {
    "anthropic-messages": {
        "system": [{"type": "text", "text": "mark1", "cache_control": _MARK}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "mark2", "cache_control": _MARK}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "mark3", "cache_control": _MARK}]},
        ],
    },
    "openai-chat": {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "mark1", "cache_control": _MARK}]},
            {"role": "user", "content": [{"type": "text", "text": "mark2", "cache_control": _MARK}]},
            {"role": "assistant", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": [
                {"type": "text", "text": "mark3", "cache_control": _MARK}]},
        ],
    },
}  # fmt: skip


def marked(value: Any, outer: tuple[str, ...] = ()) -> list[str]:
    """The texts that a cache marker stands beside or around."""
    if isinstance(value, list):
        return [text for each in value for text in marked(each, outer)]
    if not isinstance(value, dict):
        return []
    found = [str(value.get("text", value.get("content")))] if value.get("cache_control") == _MARK else []
    return found + [text for each in value.values() for text in marked(each)]


@for_each(("source", "target"), list(permutations(_MARKED, 2)))
def test_cache_markers_cross_where_the_server_knows_them(source: str, target: str) -> None:
    asked = LEAST[source] | _MARKED[source]
    body, named = send(asked, source, target, Dialect(supports_cache_control=True))
    assert marked(body) == ["mark1", "mark2", "mark3"]
    assert not [where for where in named if "cache_control" in where]
    body, named = send(asked, source, target, PLAIN)
    assert marked(body) == []
    assert [where for where in named if "cache_control" in where]


def test_a_marker_of_a_call_has_no_place_in_chat() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "f", "input": {}, "cache_control": _MARK}
    asked = LEAST["anthropic-messages"] | {"messages": [{"role": "assistant", "content": [call]}]}
    body, named = send(asked, "anthropic-messages", "openai-chat", Dialect(supports_cache_control=True))
    assert marked(body) == []
    assert "messages[0].parts[0].cache_control.type" in named


def test_a_marker_of_an_empty_result_is_named() -> None:
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": [], "cache_control": _MARK}
    call = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    messages = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    asked = LEAST["anthropic-messages"] | {"messages": messages}
    body, named = send(asked, "anthropic-messages", "openai-chat", Dialect(supports_cache_control=True))
    assert marked(body) == []
    assert "messages[1].parts[0].cache_control" in named


@for_each("cache", ["short", "long", "none"])
def test_the_routes_markers_stand_where_the_client_set_none(cache: Any) -> None:
    asked = LEAST["anthropic-messages"] | _MARKED["anthropic-messages"]
    parsed = PROTOCOLS["anthropic-messages"].parse_request(json.dumps(asked).encode()).request
    request = msgspec.structs.replace(parsed, params=msgspec.structs.replace(parsed.params, cache=cache))
    rendered = PROTOCOLS["openai-chat"].render_request(request, dialect=Dialect(supports_cache_control=True))
    text = rendered.http.body.decode()
    assert text.count("cache_control") == (0 if cache == "none" else 3)


_TIERS = {"openai-chat": "default", "openai-responses": "default", "anthropic-messages": "standard"}


@for_each("form", ["whole", "unfolded"])
@for_each(("source", "target"), list(permutations(_TIERS, 2)))
def test_an_answer_tells_its_tier_in_each_protocols_word(source: str, target: str, form: str) -> None:
    for mine, theirs in ((_TIERS[source], _TIERS[target]), ("priority", "priority")):
        told: dict[str, Any] = {"service_tier": mine}
        answer = merged(ANSWERS[source], {"usage": told} if source == "anthropic-messages" else told)
        written = write(json.dumps(answer), source, target, form)
        assert written is not None
        assert f'"service_tier":"{theirs}"' in written.text
        assert not [said for said in written.lost if "service_tier" in said.where]


def test_a_tier_that_openai_does_not_have_is_named() -> None:
    answer = merged(ANSWERS["openai-chat"], {"service_tier": "on_demand"})
    written = write(json.dumps(answer), "openai-chat", "openai-responses", "whole")
    assert written is not None
    assert "service_tier" in {said.where for said in written.lost}
    assert "on_demand" not in written.text


def test_a_tier_without_a_word_is_named() -> None:
    answer = merged(ANSWERS["anthropic-messages"], {"usage": {"service_tier": "batch"}})
    written = write(json.dumps(answer), "anthropic-messages", "openai-chat", "whole")
    assert written is not None
    assert "usage.service_tier" in {said.where for said in written.lost}
    assert "service_tier" not in written.text


@for_each("target", list(PROTOCOLS))
def test_an_address_of_data_with_half_a_character_is_written(target: ProtocolName) -> None:
    for url in ("data:,Zoë \ud800", "data:image/svg+xml;utf8,%3Csvg%3E\ude00"):
        request = Request("m", (Message("user", (Media("image", url=url), Text("Look."))),))
        assert b"Look." in PROTOCOLS[target].render_request(request).http.body
