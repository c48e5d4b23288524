"""OpenAI Chat: requests both ways and in every dialect, what its streams alone have, and its limits."""

from __future__ import annotations

import json
import re
from typing import Any, get_args, get_type_hints

import pytest

from cases import counter
from dragoman import _json
from dragoman._json import Raw
from dragoman.bounds import USUAL_BOUNDS, AnswerBounds
from dragoman.errors import WireError
from dragoman.events import (
    Deviation,
    Event,
    Failure,
    Finish,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    UsageUpdate,
    fold,
    unfold,
)
from dragoman.protocol import PLAIN, Dialect, ReplyStyle
from dragoman.protocols.openai_chat import wire
from dragoman.protocols.openai_chat.protocol import PROTOCOL
from dragoman.types import (
    Media,
    Message,
    Named,
    Native,
    Opaque,
    Params,
    Reasoning,
    Request,
    ResponseSchema,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from for_each import for_each
from grammar import check

VENDOR = Dialect(
    max_tokens_field="max_completion_tokens",
    system_role="developer",
    supports_store=True,
    supports_prompt_cache_key=True,
    supports_prompt_cache_retention=True,
    strict_tools=True,
)
LOOK = Tool("look", "Look at it.", Raw(b'{"type":"object","properties":{"at":{"type":"string"}}}'))
PING = Tool("ping")
QUESTION = Message("user", (Text("What is there?"),))


def parse(**fields: Any) -> Request:
    return PROTOCOL.parse_request(
        json.dumps({"model": "m", "messages": [{"role": "user", "content": "?"}], **fields}).encode()
    ).request


def render(request: Request, dialect: Dialect = PLAIN) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The body, and the deviations as (code, where)."""
    rendered = PROTOCOL.render_request(request, dialect=dialect)
    assert rendered.http.path == "/chat/completions"
    assert rendered.http.headers["content-type"] == "application/json"
    return json.loads(rendered.http.body), [(found.code, found.where) for found in rendered.deviations]


def asked(*messages: Message, **fields: Any) -> Request:
    return Request("m", messages or (QUESTION,), **fields)


def decode(*pieces: bytes, offered: frozenset[str] = frozenset(), bounds: AnswerBounds = USUAL_BOUNDS) -> list[Event]:
    decoder = PROTOCOL.decoder(new_id=counter(), offered_names=offered, bounds=bounds)
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return check([*events, *decoder.close()])


def chunk(delta: dict[str, Any], finish: str | None = None, **beside: Any) -> bytes:
    body = {
        "id": "chatcmpl-1",
        "model": "m",
        "created": 5,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return b"data: %b\n\n" % json.dumps({**body, **beside}).encode()


USUAL = ReplyStyle()


def encoder(style: ReplyStyle = USUAL):
    return PROTOCOL.encoder(new_id=counter(), model="m", created=7, style=style)


def chunks_of(wire: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in wire.split(b"\n\n") if line[:7] == b"data: {"]


# ---------------------------------------------------------------- requests, read


def test_a_full_request_is_read() -> None:
    parsed = PROTOCOL.parse_request(
        json.dumps(
            {
                "model": "m",
                "messages": [
                    {"role": "developer", "content": "Be brief."},
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "See:", "cache_control": {"type": "ephemeral"}},
                            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
                            {"type": "image_url", "image_url": {"url": "https://x.test/a.jpg"}},
                            {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
                            {
                                "type": "file",
                                "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,CC"},
                            },
                            {"type": "file", "file": {"file_id": "file-1"}},
                            {"type": "video_url", "video_url": {"url": "https://x.test/v.mp4"}},
                            {"type": "hologram", "data": 1},
                        ],
                    },
                    {
                        "role": "assistant",
                        "content": None,
                        "refusal": None,
                        "reasoning_content": "Hm.",
                        "tool_calls": [
                            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":1.50}'}},
                            {"id": "c2", "type": "custom", "custom": {"name": "patch", "input": "+ x"}},
                        ],
                    },
                    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "done"}]},
                    {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "nothing"},
                ],
                "tools": [
                    {
                        "type": "function",
                        "function": {"name": "look", "parameters": {"type": "object"}, "strict": True},
                    },
                    {
                        "type": "custom",
                        "custom": {"name": "patch", "description": "Apply.", "format": {"type": "text"}},
                    },
                    {"type": "web_search", "user_location": None},
                ],
                "tool_choice": {"type": "function", "function": {"name": "look"}},
                "parallel_tool_calls": False,
                "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": True}},
                "max_completion_tokens": 50,
                "temperature": 0.5,
                "top_p": 0.9,
                "stop": ["a", "b"],
                "seed": 3,
                "presence_penalty": 0.1,
                "frequency_penalty": 0.2,
                "reasoning_effort": "xhigh",
                "prompt_cache_key": "talk-1",
                "prompt_cache_retention": "24h",
                "user": "u",
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        ).encode()
    )
    request = parsed.request
    own = {"protocol": "openai-chat"}
    assert request.messages[0] == Message("system", (Text("Be brief."),))
    assert request.messages[1].parts == (
        Text("See:", native=Native(**own, fields={"cache_control": Raw(b'{"type": "ephemeral"}')})),
        Media("image", "image/png", "AAAA", native=Native(**own, fields={"image_url": Raw(b'{"detail":"low"}')})),
        Media("image", url="https://x.test/a.jpg"),
        Media("audio", "audio/mp3", "BBBB"),
        Media("document", "application/pdf", "CC", native=Native(**own, fields={"filename": Raw(b'"a.pdf"')})),
        Media("document", url="file-1", native=Native("openai-chat", {})),
        Media("video", url="https://x.test/v.mp4"),
        Opaque("openai-chat", Raw(b'{"type": "hologram", "data": 1}')),
    )
    assert request.messages[2].parts == (
        Thinking("Hm."),
        ToolCall("c1", "look", '{"at":1.50}'),
        ToolCall("c2", "patch", "+ x", "custom"),
    )
    assert [message.parts for message in request.messages[3:]] == [
        (ToolResult("c2", "patch", (Text("done"),)),),
        (ToolResult("c1", "look", (Text("nothing"),)),),
    ]
    assert [(tool.name, tool.kind, tool.description) for tool in request.tools] == [
        ("look", "function", ""),
        ("patch", "custom", "Apply."),
    ]
    assert request.tool_choice == Named("look")
    assert request.params == Params(
        max_tokens=50,
        temperature=0.5,
        top_p=0.9,
        stop=("a", "b"),
        seed=3,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        reasoning=Reasoning("xhigh"),
        response_schema=ResponseSchema(Raw(b"{}"), "n", True),
        parallel_tools=False,
        cache="long",
    )
    assert (request.session_id, request.stream, parsed.style.include_usage) == ("talk-1", True, True)
    assert request.native is not None
    assert request.native.fields.keys() == {"user", "tools"}
    assert [found.code for found in parsed.deviations] == ["unknown-part"]
    dialect = Dialect(
        supports_cache_control=True,
        replay_reasoning=True,
        strict_tools=True,
        supports_prompt_cache_key=True,
        supports_prompt_cache_retention=True,
    )
    rendered = PROTOCOL.render_request(request, dialect=dialect)
    again = PROTOCOL.parse_request(rendered.http.body).request
    marked = again.messages[-1].parts[0]
    assert isinstance(marked, ToolResult)
    assert marked.text == "nothing"
    assert again.tools == request.tools
    assert again.params == request.params
    assert again.messages[:1] == request.messages[:1] or again.messages[0].text == "Be brief."
    assert again.native == request.native


@for_each(
    ("body", "path"),
    [
        (b"[]", ""),
        (b"{", ""),
        (b'{"messages":[{"role":"user","content":"x"}]}', "model"),
        (b'{"model":"m"}', "messages"),
        (b'{"model":"m","messages":{}}', "messages"),
        (b'{"model":"m","messages":[]}', "messages"),
        (b'{"model":"m","messages":["x"]}', "messages[0]"),
        (b'{"model":"m","messages":[{"role":"robot"}]}', "messages[0].role"),
        (b'{"model":"m","messages":[{"role":"user","content":[1]}]}', "messages[0].content[0]"),
        (
            b'{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a"}]}]}',
            "messages[0].tool_calls[0].function.name",
        ),
        (b'{"model":"m","messages":[{"role":"user"}],"tools":[1]}', "tools[0]"),
        (
            b'{"model":"m","messages":[{"role":"user"}],"tools":[{"type":"function","function":{}}]}',
            "tools[0].function.name",
        ),
    ],
)
def test_what_is_no_request(body: bytes, path: str) -> None:
    with pytest.raises(WireError) as raised:
        PROTOCOL.parse_request(body)
    assert raised.value.path == path
    assert raised.value.status == 400


@for_each(
    ("fields", "reasoning"),
    [
        ({"reasoning_effort": "none"}, Reasoning("none")),
        ({"reasoning_effort": "high"}, Reasoning("high")),
        ({"reasoning": {"effort": "low"}}, Reasoning("low")),
        ({"reasoning": {"max_tokens": 900}}, Reasoning(None, 900)),
        ({"reasoning": {"enabled": True}}, Reasoning()),
        ({"reasoning": {"enabled": False}}, Reasoning("none")),
        ({"thinking": {"type": "enabled", "budget_tokens": 700}}, Reasoning(None, 700)),
        ({"thinking": {"type": "disabled"}}, Reasoning("none")),
        ({"enable_thinking": True, "thinking_budget": 5}, Reasoning(None, 5)),
        ({"enable_thinking": False}, Reasoning("none")),
        ({"think": True}, Reasoning()),
        ({"think": "medium"}, Reasoning("medium")),
        ({"think": "very"}, None),
        ({}, None),
    ],
)
def test_how_much_to_think_in_any_words(fields: dict[str, Any], reasoning: Reasoning | None) -> None:
    assert parse(**fields).params.reasoning == reasoning


@for_each(
    "field",
    [{"reasoning_effort": "ultra"}, {"think": "ultra"}, {"thinking": True}, {"enable_thinking": "yes"}],
    ids=lambda field: next(iter(field)),
)
def test_an_effort_that_is_not_known_is_kept_for_its_own_protocol(field: dict[str, Any]) -> None:
    native = parse(**field).native
    assert native is not None and {key: json.loads(bytes(value)) for key, value in native.fields.items()} == field
    assert parse(reasoning_effort=None, think=None).native is None


#: Further fields of the objects that say how much to think, and the style whose vendors have the object.
FURTHER = [
    ({"reasoning": {"effort": "low", "exclude": True}}, "openrouter"),
    ({"reasoning": {"exclude": True, "summary": "auto"}}, "openrouter"),
    ({"reasoning": {"max_tokens": 9, "exclude": False}}, "openrouter"),
    ({"thinking": {"type": "enabled", "clear_thinking": False}}, "thinking-type"),
    ({"thinking": {"type": "disabled", "keep": "all"}}, "thinking-type"),
]


@for_each("style", get_args(get_type_hints(Dialect)["reasoning_style"]))
@for_each(("fields", "home"), FURTHER)
def test_a_field_of_how_to_think_goes_to_the_vendor_that_has_it_and_is_named_elsewhere(
    fields: dict[str, Any], home: str, style: Any
) -> None:
    body, found = render(parse(**fields), Dialect(reasoning_style=style))
    ((name, said),) = fields.items()
    further = {key: value for key, value in said.items() if key not in ("effort", "max_tokens", "type")}
    named = {where for _, where in found if where.startswith(f"{name}.")}
    if style == home:
        assert further.items() <= body[name].items()
        assert not named
    else:
        assert further.keys().isdisjoint(body.get(name, {}))
        assert named == {f"{name}.{key}" for key in further}


def test_what_says_how_much_to_think_twice_alike_is_not_named() -> None:
    fields = {"reasoning": {"enabled": True, "max_tokens": 9}, "thinking": {"type": "enabled", "budget_tokens": 9}}
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}], **fields}).encode()
    assert PROTOCOL.parse_request(body).deviations == ()


@for_each(
    ("choice", "expected"),
    [
        ("none", "none"),
        ("auto", "auto"),
        ("required", "any"),
        ("any", "any"),
        ({"type": "function", "function": {"name": "look"}}, Named("look")),
        ({"type": "function", "name": "look"}, Named("look")),
        ({"type": "custom", "custom": {"name": "look"}}, Named("look")),
        ({"type": "auto"}, "auto"),
        (7, "auto"),
    ],
)
def test_tool_choice(choice: Any, expected: Any) -> None:
    assert parse(tool_choice=choice).tool_choice == expected


def test_allowed_tools_are_the_tools() -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("look", "ping")]
    inner = {"mode": "required", "tools": [{"type": "function", "function": {"name": "ping"}}]}
    request = parse(tools=tools, tool_choice={"type": "allowed_tools", "allowed_tools": inner})
    assert [tool.name for tool in request.tools] == ["ping"]
    assert request.tool_choice == "any"


def test_older_and_odd_clients() -> None:
    messages = [
        {"role": "user", "content": {"type": "text", "text": "one part"}},
        {"role": "assistant", "content": "", "function_call": {"name": "look", "arguments": ""}},
        {"role": "function", "name": "look", "content": 21},
        {
            "role": "assistant",
            "tool_calls": [
                {"function": {"name": "ping", "arguments": {"a": 1.0}}},
                {"function": {"name": "ping", "arguments": "no json"}},
            ],
        },
        {"role": "tool", "content": None},
        {"role": "tool", "content": "second"},
    ]
    parsed = PROTOCOL.parse_request(
        json.dumps({"model": "m", "messages": messages, "functions": [{"name": "look"}], "n": 2}).encode()
    )
    request = parsed.request
    assert request.messages[0].parts == (Text("one part"),)
    first, second, third = (call for message in request.messages for call in message.tool_calls)
    assert len({first.id, second.id, third.id}) == 3
    assert (first.name, first.arguments) == ("look", "{}")
    assert second.arguments.replace(" ", "") == '{"a":1.0}'
    assert third.values() == {"input": "no json"}
    results = [part for message in request.messages if message.role == "tool" for part in message.parts]
    assert results == [
        ToolResult(first.id, "look", (Text("21"),)),
        ToolResult(second.id, "ping", ()),
        ToolResult(third.id, "ping", (Text("second"),)),
    ]
    assert [tool.name for tool in request.tools] == ["look"]
    assert {"legacy-function-call", "arguments-type", "dropped"} <= {found.code for found in parsed.deviations}
    assert request.stream is False


def test_seals_of_thinking_come_back() -> None:
    details = [
        {"type": "reasoning.text", "text": "Hm.", "signature": "S", "format": "f", "index": 0},
        {"type": "reasoning.encrypted", "data": "D", "id": "x"},
    ]
    call = {
        "id": "a",
        "type": "function",
        "function": {"name": "ping", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "G"}},
    }
    request = parse(
        messages=[{"role": "assistant", "content": "Yes", "reasoning_details": details, "tool_calls": [call]}]
    )
    thinking, sealed, _, called = request.messages[0].parts
    assert isinstance(thinking, Thinking)
    assert isinstance(sealed, Thinking)
    assert isinstance(called, ToolCall)
    assert (thinking.text, thinking.signature, sealed.redacted, called.signature) == ("Hm.", "S", "D", "G")
    body, found = render(request, Dialect(reasoning_style="openrouter"))
    message = body["messages"][0]
    assert [{**detail} for detail in message["reasoning_details"]] == details
    assert message["tool_calls"] == [call]
    assert found == []


def test_thinking_that_the_seals_beside_it_do_not_say_is_named() -> None:
    words = {"type": "reasoning.text", "text": "First this.\nThen that."}
    sealed = {"type": "reasoning.encrypted", "data": "D"}
    for details, text, is_lost in (
        ([words], "First this. Then that.", False), ([sealed, words], "First this.", False), ([sealed], "Why.", True),
        ([words], "Why.", True), ([{"type": "reasoning.text"}], "Why.", False), ([], "Why.", False),
    ):  # fmt: skip
        for key in ("reasoning", "reasoning_content", "thinking"):
            turn = {"role": "assistant", "content": "Yes", "reasoning_details": details, key: text}
            said = PROTOCOL.parse_request(json.dumps({"model": "m", "messages": [turn]}).encode()).deviations
            assert [each.where for each in said] == ([f"messages[0].{key}"] if is_lost else [])


# ---------------------------------------------------------------- requests, written


def test_the_least_request() -> None:
    body, found = render(asked(stream=False))
    assert body == {"model": "m", "messages": [{"role": "user", "content": "What is there?"}], "stream": False}
    assert found == []


def test_no_tools_no_keys_of_tools() -> None:
    body, _ = render(asked(tool_choice="any", params=Params(parallel_tools=False)))
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & body.keys()


def test_the_vendors_own_host() -> None:
    request = asked(
        Message("system", (Text("S"),)),
        QUESTION,
        session_id="talk",
        params=Params(max_tokens=9, cache="long", reasoning=Reasoning("max")),
    )
    body, found = render(request, VENDOR)
    assert body["messages"][0] == {"role": "developer", "content": "S"}
    assert body["max_completion_tokens"] == 9
    assert "max_tokens" not in body
    assert body["store"] is False
    assert (body["prompt_cache_key"], body["prompt_cache_retention"]) == ("talk", "24h")
    assert body["reasoning_effort"] == "xhigh"
    assert body["stream_options"] == {"include_usage": True}
    assert found == [("changed", "params.reasoning.effort")]
    kept = render(parse(store=True), VENDOR)[0]
    assert kept["store"] is True


def test_no_cache_sends_no_key_and_no_marker() -> None:
    request = asked(session_id="talk", params=Params(cache="none"))
    body, found = render(request, VENDOR)
    assert not {"prompt_cache_key", "prompt_cache_retention"} & body.keys()
    assert found == []
    assert render(request, Dialect(supports_cache_control=True))[0]["messages"][0]["content"] == "What is there?"


def test_cache_markers() -> None:
    request = asked(Message("system", (Text("S"),)), QUESTION, params=Params(cache="long"))
    body, _ = render(request, Dialect(supports_cache_control=True, supports_prompt_cache_retention=True))
    mark = {"type": "ephemeral", "ttl": "1h"}
    assert [message["content"][-1]["cache_control"] for message in body["messages"]] == [mark, mark]


def test_what_the_protocol_cannot_say() -> None:
    params = Params(top_k=4, num_ctx=4096, stop=tuple("abcdef"), cache="long", reasoning=Reasoning(None, 5_000))
    body, found = render(asked(params=params, session_id="talk"))
    assert body["stop"] == ["a", "b", "c", "d"]
    assert body["reasoning_effort"] == "medium"
    assert "top_k" not in body
    assert set(found) == {
        ("dropped", "params.top_k"),
        ("dropped", "params.num_ctx"),
        ("changed", "params.stop"),
        ("changed", "params.cache"),
        ("changed", "params.reasoning.budget"),
        ("dropped", "session_id"),
    }
    assert render(asked(params=Params(top_k=4)), Dialect(supports_top_k=True))[0]["top_k"] == 4


@for_each(
    ("style", "reasoning", "fields", "codes"),
    [
        ("effort", Reasoning("low"), {"reasoning_effort": "low"}, []),
        ("effort", Reasoning(), {}, ["dropped"]),
        ("effort", Reasoning(None, 0), {"reasoning_effort": "none"}, ["changed"]),
        ("openrouter", Reasoning("max"), {"reasoning": {"effort": "xhigh"}}, ["changed"]),
        ("openrouter", Reasoning(None, 800), {"reasoning": {"max_tokens": 800}}, []),
        ("openrouter", Reasoning(), {"reasoning": {"enabled": True}}, []),
        ("thinking-type", Reasoning("none"), {"thinking": {"type": "disabled"}}, []),
        ("thinking-type", Reasoning("high"), {"thinking": {"type": "enabled"}}, ["changed"]),
        ("enable-thinking", Reasoning(None, 800), {"enable_thinking": True, "thinking_budget": 800}, []),
        ("enable-thinking", Reasoning("none"), {"enable_thinking": False}, []),
        ("think", Reasoning("high"), {"think": "high"}, []),
        ("think", Reasoning(), {"think": True}, []),
        ("none", Reasoning("high"), {}, ["dropped"]),
    ],
)
def test_how_much_to_think_in_each_style(
    style: Any, reasoning: Reasoning, fields: dict[str, Any], codes: list[str]
) -> None:
    body, found = render(asked(params=Params(reasoning=reasoning)), Dialect(reasoning_style=style))
    names = {"reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget", "think"}
    assert {key: value for key, value in body.items() if key in names} == fields
    assert [code for code, _ in found] == codes


def test_tools_and_choices_that_a_dialect_has_not() -> None:
    request = asked(tools=(LOOK, PING), tool_choice=Named("ping"), params=Params(parallel_tools=False))
    body, found = render(request)
    assert body["tool_choice"] == {"type": "function", "function": {"name": "ping"}}
    assert body["parallel_tool_calls"] is False
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "look", "description": "Look at it.", "parameters": LOOK.schema_object()},
        },
        {"type": "function", "function": {"name": "ping"}},
    ]
    assert found == []
    weak = Dialect(supports_named_tool_choice=False, supports_parallel_tool_calls=False)
    body, found = render(request, weak)
    assert [tool["function"]["name"] for tool in body["tools"]] == ["ping"]
    assert body["tool_choice"] == "required"
    assert found == [("changed", "tool_choice"), ("dropped", "params.parallel_tools")]
    body, found = render(asked(tools=(LOOK,), tool_choice="any"), Dialect(supports_tool_choice=False))
    assert "tool_choice" not in body
    assert found == [("dropped", "tool_choice")]
    body, found = render(asked(tools=(LOOK,), tool_choice="none"), Dialect(supports_tool_choice=False))
    assert "tools" not in body
    assert found == [("changed", "tool_choice")]


def test_a_forced_call_is_opened_for_the_model() -> None:
    dialect = Dialect(force_call_by_prefill=True)
    body, found = render(asked(tools=(LOOK, PING), tool_choice=Named("ping"), params=Params(stop=("x",))), dialect)
    assert body["messages"][-1] == {"role": "assistant", "content": "<tool_call>\n"}
    assert [tool["function"]["name"] for tool in body["tools"]] == ["ping"]
    assert body["tool_choice"] == "required"
    assert body["stop"] == ["</tool_call>", "x"]
    assert found == [("changed", "tool_choice")]
    body, _ = render(asked(tools=(LOOK, PING)), dialect)
    assert len(body["messages"]) == 1
    assert "stop" not in body


def test_results_with_images_and_errors() -> None:
    picture = Media("image", "image/png", "AAAA")
    request = asked(
        Message("assistant", (ToolCall("a", "look", "{}"), ToolCall("b", "look", "{}"))),
        Message(
            "tool",
            (ToolResult("a", "look", (Text("see"), picture)), ToolResult("b", "look", (Text("no"),), is_error=True)),
        ),
        QUESTION,
    )
    body, found = render(request, Dialect(tool_name_in_result=True))
    assert body["messages"][1:] == [
        {"role": "tool", "tool_call_id": "a", "content": "see", "name": "look"},
        {"role": "tool", "tool_call_id": "b", "content": "Error: no", "name": "look"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Media of the tool result above:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        },
        {"role": "user", "content": "What is there?"},
    ]
    assert found == [("moved", "messages[1].parts[0].parts[1]"), ("changed", "messages[1].parts[1].is_error")]


def test_ids_of_nine_letters_or_digits() -> None:
    calls = (ToolCall("call_" + "x" * 24, "look", "{}"), ToolCall("abcDEF123", "look", "{}"))
    results = tuple(ToolResult(call.id, "look", (Text("y"),)) for call in calls)
    body, _ = render(asked(Message("assistant", calls), Message("tool", results)), Dialect(id_form="alphanumeric-9"))
    asked_ids = [call["id"] for call in body["messages"][0]["tool_calls"]]
    assert asked_ids == [message["tool_call_id"] for message in body["messages"][1:]]
    assert asked_ids[1] == "abcDEF123"
    assert asked_ids[0] != asked_ids[1]
    assert all(len(id) == 9 and id.isalnum() and id.isascii() for id in asked_ids)


def test_media_in_every_form() -> None:
    parts = (
        Media("image", url="https://x.test/a.png"),
        Media("video", url="https://x.test/v.mp4"),
        Media("audio", "audio/mp3", "BB"),
        Media("audio", url="https://x.test/a.mp3"),
        Media("document", "application/pdf", "CC"),
        Media("document", url="file-1"),
        Opaque("gemini-generate", Raw(b"{}")),
        Opaque("openai-chat", Raw(b'{"type":"hologram"}')),
    )
    body, found = render(asked(Message("user", parts)))
    assert body["messages"][0]["content"] == [
        {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
        {"type": "video_url", "video_url": {"url": "https://x.test/v.mp4"}},
        {"type": "input_audio", "input_audio": {"data": "BB", "format": "mp3"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,CC"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "hologram"},
    ]
    assert found == [("dropped", "messages[0].parts[3]"), ("untranslated", "messages[0].parts[6].<part>")]
    body, found = render(asked(Message("user", parts[:1])), Dialect(supports_image_url=False))
    assert body["messages"][0]["content"] == ""
    assert found == [("dropped", "messages[0].parts[0]")]


def test_earlier_thinking_goes_back_only_where_it_is_wanted() -> None:
    turn = Message("assistant", (Thinking("Hm.", "seal"), Text("Yes.")))
    body, found = render(asked(turn))
    assert body["messages"][0] == {"role": "assistant", "content": "Yes."}
    assert found == [("dropped", "messages[0].parts[0]")]
    body, found = render(asked(turn), Dialect(replay_reasoning=True))
    assert body["messages"][0]["reasoning_content"] == "Hm."
    assert found == [("dropped", "messages[0].parts[0].signature")]


def test_structured_output() -> None:
    form = ResponseSchema(Raw(b'{"type":"object"}'), "book", True, "A book.")
    body, found = render(asked(params=Params(response_schema=form)))
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "book", "schema": {"type": "object"}, "description": "A book.", "strict": True},
    }
    assert found == []
    body, found = render(asked(params=Params(response_schema=form)), Dialect(supports_response_schema=False))
    assert body["response_format"] == {"type": "json_object"}
    assert found == [("changed", "params.response_schema")]
    words = 'Answer with one JSON value only, and nothing around it. It must fit this JSON schema:\n{"type":"object"}'
    assert body["messages"][0] == {"role": "system", "content": words}
    prompt = Text("Be short."), Text("So.", native=Native("openai-chat", {"x": Raw(b"1")}))
    for parts, wanted in ((prompt[:1], f"Be short.\n\n{words}"), (prompt, words)):
        given = asked(Message("system", parts), Message("user", (Text("Hi"),)), params=Params(response_schema=form))
        body, _ = render(given, Dialect(supports_response_schema=False))
        said = body["messages"][0]["content"]
        assert (said if isinstance(said, str) else said[-1]["text"]) == wanted
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
    any_json = ResponseSchema(written_for="openai-chat")
    assert parse(response_format={"type": "json_object"}).params.response_schema == any_json
    assert parse(response_format={"type": "text"}).params.response_schema is None


def test_temperature_is_bounded() -> None:
    body, found = render(asked(params=Params(temperature=1.7)), Dialect(temperature_max=1.0))
    assert body["temperature"] == 1.0
    assert found == [("changed", "params.temperature")]


def test_strict_and_markers_only_where_they_are_known() -> None:
    request = parse(
        messages=[{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}],
        tools=[{"type": "function", "function": {"name": "look", "strict": True}}],
    )
    body, found = render(request)
    assert body["messages"][0]["content"] == "x"
    assert body["tools"][0]["function"] == {"name": "look"}
    assert found == [("dropped", "messages[0].parts[0].cache_control"), ("dropped", "tools[0].strict")]


# ---------------------------------------------------------------- streams, read


def test_the_opening_is_read_once() -> None:
    first = decode(
        chunk({"role": "assistant", "content": ""}, system_fingerprint="fp", provider="P")
        + chunk({"content": "Hi"}, "stop")
    )[0]
    assert isinstance(first, Start)
    assert (first.id, first.model, first.created) == ("chatcmpl-1", "m", 5)
    assert first.native is not None
    assert first.native.fields.keys() == {"system_fingerprint", "provider"}


def test_usage_after_the_end_counts_and_parts_do_not() -> None:
    late = b'data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2}}\n\n'
    events = decode(chunk({"content": "Hi"}, "stop"), b"data: [DONE]\n\n", chunk({"content": "late"}), late)
    answer = fold(events)
    assert answer.text == "Hi"
    assert answer.usage == Usage(4, 2)
    assert "after-end" in {found.code for found in answer.deviations}


def test_parts_after_a_stop_reason_count() -> None:
    answer = fold(decode(chunk({"content": "Hi"}, "stop"), chunk({"content": " you"}), b"data: [DONE]\n\n"))
    assert (answer.text, answer.stop_reason) == ("Hi you", "stop")


def test_of_several_reasons_the_last_wins_but_stop_replaces_none() -> None:
    assert fold(decode(chunk({"content": "x"}, "length"), chunk({}, "stop"))).stop_reason == "length"
    assert fold(decode(chunk({"content": "x"}, "stop"), chunk({}, "length"))).stop_reason == "length"


def test_refusals_annotations_images_and_sound() -> None:
    note = [{"type": "url_citation", "url_citation": {"url": "https://x.test"}}]
    answer = fold(
        decode(
            chunk({"content": "See.", "annotations": note}),
            chunk({"images": [{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]}),
            chunk({"audio": {"id": "s", "data": "AA", "transcript": "Du"}}),
            chunk({"audio": {"data": "BB", "transcript": "ne"}}),
            chunk({"refusal": "No "}),
            chunk({"refusal": "more."}),
            chunk({}, "stop"),
        )
    )
    text, image, refusal, sound = answer.parts
    assert isinstance(text, Text)
    assert isinstance(sound, Media)
    assert text.native is not None
    assert json.loads(bytes(text.native.fields["annotations"])) == note
    assert image == Media("image", url="https://x.test/a.png")
    assert (sound.kind, sound.data) == ("audio", "AABB")
    assert isinstance(refusal, Text)
    assert (refusal.text, answer.stop_reason) == ("No more.", "content_filter")
    again = fold(decode(encoder().encode(unfold(answer))))
    assert again.parts == answer.parts
    body = json.loads(PROTOCOL.render_response(answer, new_id=counter(), model="m", created=1))
    message = body["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == ("See.", "No more.")
    assert message["audio"]["data"] == "AABB"
    assert message["images"] == [{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]


@for_each("many", [1, 40])
def test_what_stands_beside_a_text_is_kept(many: int) -> None:
    image = [{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]
    chunks = [chunk({"content": "See"}), *[chunk({"content": "it", "images": image})] * many]
    answer = fold(decode(b"".join([*chunks, chunk({}, "stop")])))
    media = [part for part in answer.parts if isinstance(part, Media)]
    assert (answer.text, media) == ("See" + "it" * many, [Media("image", url="https://x.test/a.png")] * many)
    sealed = fold(decode(chunk({"content": "See"}), chunk({"content": "it", "reasoning_opaque": "S"}, "stop")))
    assert [part.signature for part in sealed.parts if isinstance(part, Thinking)] == ["S"]


def test_seals_of_thinking_survive_a_stream() -> None:
    details = (
        [{"type": "reasoning.text", "signature": "S", "format": "f", "index": 0}],
        [{"type": "reasoning.encrypted", "data": "D", "index": 1}],
    )
    answer = fold(
        decode(
            chunk({"reasoning": "Hm."}),
            *(chunk({"reasoning_details": detail}) for detail in details),
            chunk({"content": "Yes."}, "stop"),
        )
    )
    first, second, _ = answer.parts
    assert isinstance(first, Thinking)
    assert isinstance(second, Thinking)
    assert (first.text, first.signature, second.text, second.redacted) == ("Hm.", "S", "", "D")
    assert fold(decode(encoder().encode(unfold(answer)))).parts == answer.parts


def test_a_frame_over_the_limit_ends_the_answer() -> None:
    events = decode(
        chunk({"content": "Hi"}),
        b"data: {" + b"x" * 5_000,
        chunk({"content": "late"}),
        bounds=AnswerBounds(frame=1_000),
    )
    answer = fold(events)
    assert answer.text == "Hi"
    assert isinstance(events[-1], Failure)
    assert events[-1].kind == "answer_too_large"


@for_each(
    ("body", "words"),
    [
        (b"<html><title>Sign in</title></html>", "Sign in"),
        (b"no healthy upstream", "no healthy upstream"),
        (b"", "an empty body"),
        (b'{"choices":', "expected a response"),
        (b"null", "expected a response"),
    ],
)
def test_bodies_that_are_no_response(body: bytes, words: str) -> None:
    (*_, last) = decode(body)
    assert isinstance(last, Failure)
    assert last.kind == "wire"
    assert words in last.message


def test_hostile_nesting_ends_in_one_failure() -> None:
    for body in (
        b"[" * 900 + b"]" * 900,
        b'{"data":' * 300 + b"{}" + b"}" * 300,
        b'{"error":' * 300 + b"1" + b"}" * 300,
    ):
        assert isinstance(decode(body)[-1], Failure)
        assert isinstance(decode(b"data: " + body + b"\n\n")[-1], Failure)
    deep = b'{"choices":[{"delta":{"content":' + b"[" * 400 + b"]" * 400 + b"}}]}"
    assert fold(decode(b"data: " + deep + b"\n\n" + chunk({}, "stop"))).text == ""


def test_a_connection_that_breaks() -> None:
    decoder = PROTOCOL.decoder(new_id=counter())
    events = decoder.feed(chunk({"content": "Hi"}))
    check([*events, *decoder.fail(Failure("connection", "reset"))])
    decoder = PROTOCOL.decoder(new_id=counter())
    events = decoder.feed(chunk({"content": "Hi"}, "stop") + b"data: [DONE]\n\n")
    assert decoder.ended
    assert isinstance(check([*events, *decoder.fail(Failure("connection", "reset"))])[-1], Finish)


# ---------------------------------------------------------------- streams, written


def test_the_shape_of_a_stream() -> None:
    call = ToolCall("call_1", "look", '{"at":"x"}', signature="G")
    events: list[Event] = [
        Start("resp_1", "other", 1),
        TextStart(0),
        TextDelta(0, "Hé"),
        TextEnd(0),
        Deviation("missing-id"),
        ToolCallStart(1, "call_1", "look"),
        ToolCallDelta(1, '{"at":'),
        ToolCallDelta(1, '"x"}'),
        ToolCallEnd(1, call),
        UsageUpdate(Usage(10, 2)),
        Finish("tool_use", usage=Usage(10, 5, 4, None, 1)),
    ]
    machine = encoder()
    wire = b"".join(machine.encode([event]) for event in events)
    rows = chunks_of(wire)
    assert {row["id"] for row in rows} == {"chatcmpl-000000000000000000000000"} or len({row["id"] for row in rows}) == 1
    assert {(row["object"], row["created"], row["model"]) for row in rows} == {("chat.completion.chunk", 7, "m")}
    deltas = [row["choices"][0]["delta"] for row in rows[:-1]]
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"content": "Hé"},
        {
            "tool_calls": [
                {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at":'}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '"x"}'}}]},
        {
            "tool_calls": [
                {"index": 0, "function": {"arguments": ""}, "extra_content": {"google": {"thought_signature": "G"}}}
            ]
        },
        {},
    ]
    assert [row["choices"][0]["finish_reason"] for row in rows[:-1]] == [None] * 5 + ["tool_calls"]
    assert rows[-1]["choices"] == []
    assert rows[-1]["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 1},
    }
    assert wire.endswith(b"data: [DONE]\n\n")
    assert machine.keepalive() == b""
    assert not machine.aborted


def test_the_name_of_the_thinking_field_and_keepalive() -> None:
    answer = Reply("chatcmpl-9", None, None, (Thinking("Hm."),), "stop", None, Usage(), None, None, (), ())
    machine = encoder(ReplyStyle(reasoning_field="reasoning"))
    assert machine.keepalive() == b": keep-alive\n\n"
    rows = chunks_of(machine.encode(unfold(answer)))
    assert rows[1]["choices"][0]["delta"] == {"reasoning": "Hm."}
    assert {row["id"] for row in rows} == {"chatcmpl-9"}
    assert all("usage" not in row for row in rows)


def test_a_failed_call_of_which_nothing_left_is_an_error() -> None:
    failed = ToolCallFailed(0, "call_1", "look", "unreadable", "tool call look: the arguments are no object", "[1]")
    nameless = ToolCallFailed(0, "", "", "nameless", "a tool call has no name")
    for events in ([ToolCallStart(0, "call_1", "look"), failed], [nameless]):
        machine = encoder()
        wire = machine.encode([Start(), *events, Finish("other")])
        answer = fold(decode(wire))
        assert (answer.text, answer.tool_calls, answer.stop_reason) == ("", [], "error")
        assert answer.error is not None and answer.error.message == events[-1].message
        assert not machine.aborted and b"[DONE]" not in wire


def test_a_failed_call_of_which_some_left_aborts_at_the_end() -> None:
    machine = encoder()
    failed = ToolCallFailed(0, "call_1", "look", "cut", "cut off")
    good = ToolCall("call_2", "look", '{"far":1}')
    rest = [ToolCallStart(1, "call_2", "look"), ToolCallDelta(1, good.arguments), ToolCallEnd(1, good)]
    wire = machine.encode([Start(), ToolCallStart(0, "call_1", "look"), ToolCallDelta(0, "{"), failed, *rest])
    assert not machine.aborted
    wire += machine.encode([Finish("tool_use")])
    assert machine.aborted
    answer = fold(decode(wire))
    assert (answer.tool_calls, answer.stop_reason) == ([good], "error")
    assert machine.encode([TextStart(2), TextDelta(2, "more"), TextEnd(2), Finish("stop")]) == b""


def test_native_fields_of_many_lines_stay_in_one_event() -> None:
    native = Native("openai-chat", {"system_fingerprint": Raw(b'{\n  "a": 1\n}')})
    wire = encoder().encode([Start(native=native), Finish("stop")])
    assert chunks_of(wire)[0]["system_fingerprint"] == {"a": 1}
    assert fold(decode(wire)).native is not None


def test_errors_in_the_clients_form() -> None:
    status, body = PROTOCOL.render_error(Failure("rate", "slow down", status=429, code="tpm"))
    assert status == 429
    assert json.loads(body) == {
        "error": {"message": "slow down", "type": "rate_limit_error", "param": None, "code": "tpm"}
    }


# ---------------------------------------------------------------- errors without the form of one

BARE_USAGE = {"object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}


@for_each(
    ("frame", "words"),
    [
        ({"object": "error", "message": "no such model", "code": 404}, "no such model"),
        (
            {"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}},
            "insufficient balance",
        ),
        ({"choices": [], "detail": "gone"}, "gone"),
        ({"success": False, "data": {"reason": "limit"}}, "limit"),
        ({"error_msg": "too many"}, "error_msg: too many"),
        ({"errors": [{"message": "bad"}]}, "bad"),
        ({**BARE_USAGE, "error": {"message": "overloaded"}}, "overloaded"),
        ({**BARE_USAGE, "error": "overloaded"}, "overloaded"),
        ({**BARE_USAGE, "errors": [{"message": "bad"}]}, "bad"),
    ],
)
def test_errors_of_any_form_in_a_stream(frame: dict[str, Any], words: str) -> None:
    events = decode(chunk({"content": "Hi"}), b"data: %b\n\n" % json.dumps(frame).encode(), b"data: [DONE]\n\n")
    last = events[-1]
    assert isinstance(last, Failure)
    assert words in last.message
    assert fold(events).text == "Hi"


def test_what_follows_the_end_is_no_error() -> None:
    after = b'data: {"error":{"message":"late"}}\n\ndata: {broken\n\n'
    answer = fold(decode(chunk({"content": "Hi"}, "stop"), b'data: "[DONE]"\n\n', after))
    assert (answer.text, answer.error) == ("Hi", None)
    assert "after-end" in {found.code for found in answer.deviations}


def test_entries_of_calls_that_say_nothing_are_no_calls() -> None:
    empty = [{}, {"index": 1, "type": "function", "function": {"name": "", "arguments": ""}}, {"index": 0, "id": None}]
    answer = fold(decode(chunk({"content": "Hi", "tool_calls": empty}), chunk({"tool_calls": []}, "stop")))
    assert (answer.text, answer.error, answer.stop_reason) == ("Hi", None, "stop")


@for_each("legacy", [{}, {"name": "", "arguments": ""}, {"name": None}, {"name": "look", "arguments": "{}"}])
def test_an_older_call_beside_a_call_or_empty_is_none(legacy: dict[str, Any]) -> None:
    entry = {"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    answer = fold(decode(chunk({"tool_calls": [entry], "function_call": legacy}), chunk({}, "tool_calls")))
    assert [call.id for call in answer.tool_calls] == ["a"]
    message = {"role": "assistant", "content": "Hi", "tool_calls": [entry], "function_call": legacy}
    whole = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    assert [call.id for call in fold(decode(whole)).tool_calls] == ["a"]
    if not legacy.get("name"):
        empty = fold(decode(chunk({"content": "Hi", "function_call": legacy}, "stop")))
        assert (empty.text, empty.error) == ("Hi", None)


@for_each("kind", ["message", "delta"])
@for_each("is_numbered", [True, False])
def test_a_chunk_of_more_choices_than_can_be_asked_for_is_refused(kind: str, *, is_numbered: bool) -> None:
    """Each is judged by all of the chunk: 1,000 of them, with a key told twice, took 4.4 seconds."""
    for count in (128, 129, 2_000):
        choices = [{"index": number * is_numbered, kind: {"content": "x"}} for number in range(count)]
        body = b'{"id":"c","id":"d","_call":1,"choices":%b}' % json.dumps(choices).encode()
        decoder = PROTOCOL.decoder(new_id=counter())
        data = body if kind == "message" else b"data: %b\n\ndata: [DONE]\n\n" % body
        failed = [event for event in [*decoder.feed(data), *decoder.close()] if type(event) is Failure]
        words = f"expected at most 128 choices at once, got {count}"
        assert [(event.kind, event.message) for event in failed if event.kind == "answer_too_large"] == (
            [("answer_too_large", words)] if count > 128 else []
        )


#: Values of any type, where a head has a field.
VALUES: list[Any] = [
    None,
    True,
    0,
    1,
    -1,
    1.5,
    10**11,
    10**30,
    "",
    "a",
    "\u2028",
    [],
    [1],
    {},
    {"a": "b"},
    {"a": [1, None]},
]
HEADS: list[dict[str, Any]] = [
    {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [], "usage": {"a": 1}},
    *({"id": "a", "choices": [], key: value} for value in VALUES for key in (
        "id", "object", "created", "model", "choices", "usage", "error", "service_tier", "system_fingerprint", "x_groq",
        "other",
    )),
    {"service_tier": "a", "system_fingerprint": "b", "created": 5},
]  # fmt: skip


@for_each("head", HEADS, ids=str)
def test_a_head_read_at_once_is_the_head_read_field_by_field(head: dict[str, Any]) -> None:
    for data in (json.dumps(head).encode(), json.dumps(head, indent=1).encode(), _json.encode(head)):
        quick = wire.read_head(data)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(wire, "_decode_head", lambda _: None)
            assert wire.read_head(data)[:4] == quick[:4]


@for_each("text", ['{"a": 1}', "", '"', "\\", "\u2028 \u00e4", '{"arguments":"x"}', "x" * 2000])
@for_each("indent", [None, 2])
def test_arguments_that_are_seen_with_the_head_are_those_of_the_first_call(text: str, indent: int | None) -> None:
    calls = [{"function": {"name": "f", "arguments": each}} for each in (text, "other")]
    body = json.dumps({"id": "a", "choices": [{"message": {"tool_calls": calls}}]}, indent=indent).encode()
    *_, arguments, _ = wire.read_head(body)
    assert json.loads(bytes(arguments)) == text
    assert body.index(bytes(arguments)) == body.index(b'"arguments": ') + len(b'"arguments": ')


def test_a_head_is_known_to_have_each_key_once_only_if_it_has() -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call, call]}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "tool_calls"}
    head = {"id": "a", "object": "x", "created": 1, "model": "m", "choices": [choice], "usage": {"a": {"b": 1}},
            "service_tier": "s", "system_fingerprint": None}  # fmt: skip
    for body in (json.dumps(head).encode(), json.dumps(head, indent=1).encode(), _json.encode(head)):
        assert wire.read_head(body)[5]
        for key in re.finditer(rb'"\w+":', body):
            again = b"%b%b{}," % (body[: key.start()], key[0])
            for twice in (again + body[key.start() :], again.replace(b"{}", b'"s"') + body[key.start() :]):
                assert not wire.read_head(twice)[5]
    for verbatim in ("service_tier", "system_fingerprint"):
        assert not wire.read_head(_json.encode({**head, verbatim: {"a": 1}}).replace(b'"a":1}', b'"a":1,"a":2}'))[5]
    body = _json.encode(head).replace(rb'"{\"a\":1}"', b'{"a":1,"a":2}', 1)
    assert b'"a":2}' in body and not wire.read_head(body)[5]
