"""The Messages API: requests both ways, what the encoder writes, errors. Responses that come: tests/corpus."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import counter
from conversations import SHAPES, call, reply
from dragoman import _json
from dragoman._json import Raw
from dragoman.bounds import AnswerBounds
from dragoman.codec.framing.body import write_event
from dragoman.errors import WireError
from dragoman.events import (
    Event,
    Failure,
    Finish,
    PartEvent,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallFailed,
    ToolCallStart,
    fold,
    unfold,
)
from dragoman.protocol import PLAIN, Dialect, ModelLimits
from dragoman.protocols.anthropic.protocol import PROTOCOL
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
from profiles import examples

SCHEMA = Raw(b'{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}')
CLOSED = _json.raw({**json.loads(bytes(SCHEMA)), "additionalProperties": False})
WEATHER = Tool("get_weather", "Weather in a city", SCHEMA)
HELLO = Message("user", (Text("Hello"),))
PNG = "iVBORw0KGgo="


def asked(*messages: Message, **fields: Any) -> Request:
    return Request("claude-next", messages or (HELLO,), **fields)


def rendered(request: Request, *, dialect: Dialect = PLAIN, limits: ModelLimits | None = None) -> dict[str, Any]:
    http = PROTOCOL.render_request(request, dialect=dialect, limits=limits or ModelLimits()).http
    return json.loads(http.body)


def losses(request: Request, *, dialect: Dialect = PLAIN) -> list[tuple[str, str]]:
    found = PROTOCOL.render_request(request, dialect=dialect).deviations
    return [(deviation.code, deviation.where) for deviation in found]


def parsed(**fields: Any) -> Request:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]} | fields
    return PROTOCOL.parse_request(json.dumps(body).encode()).request


def same(one: Request, other: Request) -> bool:
    """Equal, with raw JSON compared by its values."""
    return bool(json.loads(_json.encode(one)) == json.loads(_json.encode(other)))


# ---------------------------------------------------------------- requests out


def test_the_plain_request():
    http = PROTOCOL.render_request(asked()).http
    assert (http.method, http.path) == ("POST", "/v1/messages")
    assert http.headers == {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "anthropic-version": "2023-06-01",
    }
    assert json.loads(http.body) == {
        "model": "claude-next",
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": True,
    }


@for_each(
    ("params", "most", "expected"),
    [
        (Params(), None, 8192),
        (Params(), 64_000, 21_333),
        (Params(), 200_000, 32_000),
        (Params(max_tokens=5), 64_000, 5),
        (Params(reasoning=Reasoning(budget=10_000)), None, 18_192),
        (Params(reasoning=Reasoning(budget=30_000)), 64_000, 51_333),
        (Params(max_tokens=2000, reasoning=Reasoning(budget=2000)), None, 4000),
        (Params(max_tokens=2001, reasoning=Reasoning(budget=2000)), None, 2001),
        (Params(reasoning=Reasoning(budget=9000)), 8000, 8000),
    ],
)
def test_max_tokens_is_always_said_and_above_the_budget(params: Params, most: int | None, expected: int):
    body = rendered(asked(params=params), limits=ModelLimits(max_output=most))
    assert body["max_tokens"] == expected
    assert body.get("thinking", {}).get("budget_tokens", 0) < expected


@for_each(
    ("reasoning", "thinking", "effort"),
    [
        (Reasoning(), {"type": "adaptive"}, None),
        (Reasoning("none"), {"type": "disabled"}, None),
        (Reasoning("minimal"), {"type": "adaptive"}, "low"),
        (Reasoning("xhigh"), {"type": "adaptive"}, "xhigh"),
        (Reasoning(budget=4096), {"type": "enabled", "budget_tokens": 4096}, None),
        (Reasoning(budget=100), {"type": "enabled", "budget_tokens": 1024}, None),
        (Reasoning("high", 4096), {"type": "enabled", "budget_tokens": 4096}, "high"),
    ],
)
def test_reasoning(reasoning: Reasoning, thinking: dict[str, Any], effort: str | None):
    body = rendered(asked(params=Params(reasoning=reasoning)))
    assert body["thinking"] == thinking
    assert body.get("output_config", {}).get("effort") == effort


def test_reasoning_of_other_hosts():
    request = asked(params=Params(reasoning=Reasoning("high")))
    assert rendered(request, dialect=Dialect(reasoning_style="thinking-type"))["thinking"] == {
        "type": "enabled",
        "budget_tokens": 16_384,
    }
    none = Dialect(reasoning_style="none")
    assert "thinking" not in rendered(request, dialect=none)
    assert losses(request, dialect=none) == [("dropped", "params.reasoning")]


def test_a_forced_call_excludes_thinking():
    request = asked(tools=(WEATHER,), tool_choice="any", params=Params(reasoning=Reasoning("high")))
    assert "thinking" not in rendered(request)
    assert losses(request) == [("dropped", "params.reasoning")]


def test_sampling_beside_thinking_and_out_of_range():
    hot = asked(params=Params(temperature=1.7, top_k=5, top_p=0.5))
    assert rendered(hot)["temperature"] == 1.0
    assert losses(hot) == [("changed", "params.temperature")]
    params = Params(temperature=0.2, top_k=5, top_p=0.5, reasoning=Reasoning())
    assert not {"temperature", "top_k", "top_p"} & set(rendered(asked(params=params)))
    assert losses(asked(params=params)) == [
        ("dropped", "params.temperature"),
        ("dropped", "params.top_p"),
        ("dropped", "params.top_k"),
    ]


def test_any_json_is_asked_for_in_words():
    body = rendered(asked(params=Params(response_schema=ResponseSchema())))
    assert body["system"] == "Answer with one JSON object only, and nothing around it."


def test_what_cannot_be_said_is_told():
    params = Params(seed=1, presence_penalty=0.1, frequency_penalty=0.1, num_ctx=4096, response_schema=ResponseSchema())
    assert losses(asked(params=params, tool_choice="any", session_id="s")) == [
        ("dropped", "tool_choice"),
        ("changed", "params.response_schema"),
        ("dropped", "params.seed"),
        ("dropped", "params.presence_penalty"),
        ("dropped", "params.frequency_penalty"),
        ("dropped", "params.num_ctx"),
        ("dropped", "session_id"),
    ]


@for_each(
    ("choice", "parallel", "expected"),
    [
        ("auto", None, None),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("any", None, {"type": "any"}),
        (Named("get_weather"), False, {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}),
        ("none", None, {"type": "none"}),
    ],
)
def test_tool_choice(choice: Any, parallel: bool | None, expected: dict[str, Any] | None):
    body = rendered(asked(tools=(WEATHER,), tool_choice=choice, params=Params(parallel_tools=parallel)))
    assert body.get("tool_choice") == expected


def test_no_tools_no_key():
    assert not {"tools", "tool_choice"} & set(rendered(asked()))


def test_tools_always_have_a_schema():
    tools = (WEATHER, Tool("ping"), Tool("free", kind="custom"), Tool("odd", schema=Raw(b'{"properties":{}}')))
    body = rendered(asked(tools=tools))
    assert [tool["input_schema"]["type"] for tool in body["tools"]] == ["object"] * 4
    assert body["tools"][0]["input_schema"] == json.loads(bytes(SCHEMA))
    assert losses(asked(tools=tools)) == [("changed", "tools[2]"), ("changed", "tools[3].schema")]


def test_a_forced_call_by_prefill():
    dialect = Dialect(force_call_by_prefill=True)
    request = asked(tools=(WEATHER,), tool_choice="any", params=Params(parallel_tools=False))
    body = rendered(request, dialect=dialect)
    assert body["messages"][-1] == {"role": "assistant", "content": "<tool_call>\n"}
    assert body["stop_sequences"] == ["</tool_call>"]
    assert len(rendered(asked(tools=(WEATHER,)), dialect=dialect)["messages"]) == 1


def test_results_stand_first_in_the_message_after_their_calls():
    messages = (
        HELLO,
        Message("assistant", (call(1, "{}", "a"), call(2, "{}", "b"))),
        Message("tool", (ToolResult(call(1, "{}").id, "a", (Text("one"),)),)),
        Message("user", (Text("and?"),)),
        Message("tool", (ToolResult(call(2, "{}").id, "b", (), is_error=True),)),
    )
    body = rendered(asked(*messages))
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]
    assert [block["type"] for block in body["messages"][2]["content"]] == ["tool_result", "tool_result", "text"]
    assert body["messages"][2]["content"][1] == {
        "type": "tool_result",
        "tool_use_id": call(2, "{}").id,
        "is_error": True,
    }
    assert losses(asked(*messages)) == [("moved", "messages[4]")]


def test_ids_are_reshaped_alike_and_unique():
    messages = (
        Message("assistant", (ToolCall("functions.a:0", "a", "{}"), ToolCall("", "b", "{}"))),
        Message("tool", (ToolResult("functions.a:0", "a", (Text("1"),)),)),
        Message("tool", (ToolResult("", "b", (Text("2"),)),)),
        Message("assistant", (ToolCall("functions.a:0", "a", "{}"),)),
        Message("tool", (ToolResult("functions.a:0", "a", (Text("3"),)),)),
    )
    body = rendered(asked(HELLO, *messages))
    blocks = [block for message in body["messages"][1:] for block in message["content"]]
    sent = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert len(set(sent)) == 3
    assert all(id.replace("_", "").replace("-", "").isalnum() and id.isascii() for id in sent)
    assert [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"] == sent
    assert rendered(asked(HELLO, *messages)) == body


def test_what_the_api_refuses_is_not_sent():
    messages = (
        HELLO,
        Message("assistant", (Thinking("secret", None), Text(""), Text(" \n"), Text("Hi."))),
        Message("user", ()),
        Message("user", (Media("audio", "audio/wav", data="AA=="), Text("go"))),
    )
    body = rendered(asked(*messages))
    assert [message["content"] for message in body["messages"]] == ["Hello", "Hi.", "go"]
    assert losses(asked(*messages)) == [
        ("dropped", "messages[1].parts[0]"),
        ("dropped", "messages[1].parts[2]"),
        ("dropped", "messages[2]"),
        ("dropped", "messages[3].parts[0]"),
    ]


@for_each(
    ("media", "source"),
    [
        (Media("image", "image/gif", data="R0lG"), {"type": "base64", "media_type": "image/gif", "data": "R0lG"}),
        (Media("image", data=PNG), {"type": "base64", "media_type": "image/png", "data": PNG}),
        (Media("document", data="JVBE"), {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}),
        (Media("document", "text/plain", data="w6k="), {"type": "text", "media_type": "text/plain", "data": "é"}),
        (Media("image", url="https://x.org/a.png"), {"type": "url", "url": "https://x.org/a.png"}),
        (
            Media("image", url=f"data:image/png;base64,{PNG}"),
            {"type": "base64", "media_type": "image/png", "data": PNG},
        ),
        (Media("document", url="file_12"), {"type": "file", "file_id": "file_12"}),
    ],
)
def test_media(media: Media, source: dict[str, Any]):
    content = rendered(asked(Message("user", (media,))))["messages"][0]["content"]
    assert content == [{"type": media.kind, "source": source}]


def test_an_image_address_where_only_data_may_be_sent():
    request = asked(Message("user", (Text("see"), Media("image", url="https://x.org/a.png"))))
    assert losses(request, dialect=Dialect(supports_image_url=False)) == [("dropped", "messages[0].parts[1]")]


@for_each(("cache", "marker"), [("short", {"type": "ephemeral"}), ("long", {"type": "ephemeral", "ttl": "1h"})])
def test_cache_breakpoints(cache: Any, marker: dict[str, str]):
    messages = (
        Message("system", (Text("Be"), Text("brief"))),
        HELLO,
        Message("assistant", (Text("Hi"),)),
        HELLO,
        HELLO,
    )
    request = asked(*messages, tools=(WEATHER, Tool("ping")), params=Params(cache=cache))
    body = rendered(request, dialect=Dialect(supports_prompt_cache_retention=True))
    assert [block.get("cache_control") for block in body["system"]] == [None, marker]
    assert [tool.get("cache_control") for tool in body["tools"]] == [None, marker]
    assert [message["content"] for message in body["messages"][:2]] == ["Hello", "Hi"]
    marked = [message["content"][-1]["cache_control"] for message in body["messages"][2:]]
    assert marked == [marker, marker]
    assert json.dumps(body).count('"cache_control"') == 4


def test_a_long_cache_is_asked_of_the_vendors_own_host_only():
    request = asked(HELLO, params=Params(cache="long"))
    assert rendered(request)["messages"][0]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert losses(request) == [("changed", "params.cache")]


def test_no_cache_means_no_marker_not_even_the_clients():
    native = Native("anthropic-messages", {"cache_control": Raw(b'{"type":"ephemeral"}')})
    message = Message("user", (Text("Hello", native=native),))
    assert "cache_control" in json.dumps(rendered(asked(message)))
    assert "cache_control" not in json.dumps(rendered(asked(message, params=Params(cache="none"))))
    both = rendered(asked(message, HELLO, params=Params(cache="long")))
    assert json.dumps(both).count("cache_control") == 1


def test_structured_output():
    request = asked(params=Params(response_schema=ResponseSchema(SCHEMA)))
    assert rendered(request)["output_config"] == {
        "format": {"type": "json_schema", "schema": {**json.loads(bytes(SCHEMA)), "additionalProperties": False}}
    }
    assert losses(request) == []


def test_argument_text_is_sent_as_it_is():
    arguments = '{"b":1.50,"a":[1e3,9007199254740993]}'
    http = PROTOCOL.render_request(asked(HELLO, Message("assistant", (ToolCall("c1", "f", arguments),)))).http
    assert arguments.encode() in http.body


def test_foreign_native_fields_stay_at_home():
    native = Native("openai-chat", {"logprobs": Raw(b"true")})
    foreign = Opaque("openai-chat", Raw(b'{"type":"x"}'))
    request = asked(Message("user", (Text("Hello", native=native), foreign), native), native=native)
    assert rendered(request)["messages"] == [{"role": "user", "content": "Hello"}]
    assert losses(request) == [
        ("untranslated", where)
        for where in ("logprobs", "messages[0].logprobs", "messages[0].parts[0].logprobs", "messages[0].parts[1].<x>")
    ]


# ---------------------------------------------------------------- requests in


def test_a_request_of_an_agent_survives_the_round_trip():
    body = {
        "model": "claude-opus-5",
        "max_tokens": 32000,
        "stream": True,
        "system": [
            {"type": "text", "text": "x-billing: 1"},
            {"type": "text", "text": "Rules", "cache_control": {"type": "ephemeral"}},
        ],
        "metadata": {"user_id": "user_1_account__session_12345678-aaaa-bbbb"},
        "thinking": {"type": "adaptive", "display": "omitted"},
        "output_config": {"effort": "high", "task": 1},
        "context_management": {"edits": [{"type": "clear"}]},
        "tools": [
            {"name": "edit", "description": "d", "input_schema": json.loads(bytes(SCHEMA)), "defer_loading": True},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "messages": [
            {"role": "user", "content": "Hello"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "redacted_thinking", "data": "zz"},
                    {
                        "type": "tool_use",
                        "id": "toolu_1",
                        "name": "edit",
                        "input": {"city": "Bonn"},
                        "caller": {"a": 1},
                    },
                    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"q": "x"}},
                    {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": [
                            {"type": "text", "text": "res"},
                            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                            {"type": "search_result", "source": "x", "title": "t", "content": []},
                        ],
                        "is_error": True,
                        "cache_control": {"type": "ephemeral"},
                    },
                    {"type": "text", "text": "go on"},
                ],
            },
            {"role": "system", "content": "A reminder"},
            {
                "role": "user",
                "content": [
                    {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": "é"},
                        "title": "T",
                    },
                    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
                ],
            },
        ],
    }
    first = PROTOCOL.parse_request(json.dumps(body).encode())
    assert first.deviations == ()
    request = first.request
    assert [message.role for message in request.messages] == [
        "system", "user", "assistant", "tool", "user", "system", "user",
    ]  # fmt: skip
    assert request.session_id == "12345678-aaaa-bbbb"
    assert request.params.reasoning == Reasoning("high")
    assert request.params.parallel_tools is False
    assert [tool.name for tool in request.tools] == ["edit"]
    result = request.messages[3].parts[0]
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.name, result.text, result.is_error) == ("toolu_1", "edit", "res", True)
    again = PROTOCOL.render_request(request)
    assert again.deviations == ()
    assert json.loads(again.http.body) == body
    assert same(PROTOCOL.parse_request(again.http.body).request, request)


@for_each(
    "params",
    [
        Params(max_tokens=7, temperature=0.5, top_p=0.9, top_k=3, stop=("a", "b")),
        Params(max_tokens=7, reasoning=Reasoning("none"), parallel_tools=True),
        Params(max_tokens=9000, reasoning=Reasoning("max", 8000)),
        Params(
            max_tokens=7,
            reasoning=Reasoning("low"),
            response_schema=ResponseSchema(CLOSED, written_for="anthropic-messages"),
        ),
    ],
)
def test_what_is_rendered_is_parsed_again(params: Params):
    messages = (
        Message("system", (Text("Be brief"),)),
        HELLO,
        Message("assistant", (Thinking("t", "sig"), Text("Look:"), call(1, '{"a":1.0}'), call(2, "{}"))),
        Message("tool", (ToolResult(call(1, "{}").id, "write_file", (Text("x"), Media("image", "image/png", PNG))),)),
        Message("tool", (ToolResult(call(2, "{}").id, "write_file", (), is_error=True),)),
        Message("user", (Text("and"), Media("image", url="https://x.org/a.png"))),
    )
    request = asked(*messages, tools=(WEATHER, Tool("ping")), params=params, stream=False)
    out = PROTOCOL.render_request(request)
    assert out.deviations == ()
    assert same(PROTOCOL.parse_request(out.http.body).request, request)


@for_each("thinking", ["on", 1.5, ["enabled"]])
def test_thinking_that_is_no_object_is_not_sent_again(thinking: Any):
    body = rendered(parsed(thinking=thinking, output_config={"effort": "high"}))
    assert body["thinking"] == {"type": "adaptive"}
    assert body["output_config"] == {"effort": "high"}


def test_effort_alone_and_thinking_of_a_new_kind_come_back():
    for fields in (
        {"output_config": {"effort": "medium"}},
        {"output_config": {"effort": "novel"}},
        {"thinking": {"type": "disabled"}, "output_config": {"effort": "low"}},
        {"thinking": {"type": "between_tools"}},
        {"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "omitted"}, "max_tokens": 5000},
    ):
        request = parsed(**fields)
        body = rendered(request)
        assert {key: body.get(key) for key in ("thinking", "output_config") if key in fields or key in body} == {
            key: value for key, value in fields.items() if key != "max_tokens"
        }
    changed = msgspec.structs.replace(parsed(thinking={"type": "between_tools"}), params=Params(reasoning=None))
    assert "thinking" not in rendered(changed)


def test_odd_requests_are_read():
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": ["plain", {"text": "no type"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": '{"a":1}'}]},
            {"role": "user", "content": [{"type": "tool_result", "content": "done"}]},
        ],
        "tools": [{"name": "f"}],
        "tool_choice": "any",
        "temperature": "0.5",
        "stop_sequences": "end",
        "top_p": None,
    }
    found = PROTOCOL.parse_request(json.dumps(body).encode())
    request = found.request
    assert request.messages[0].text == "plainno type"
    (made,) = request.messages[1].tool_calls
    assert made.id
    assert made.arguments == '{"a":1}'
    assert request.messages[2].parts == (ToolResult(made.id, "f", (Text("done"),)),)
    assert request.tools == (Tool("f"),)
    assert request.tool_choice == "any"
    assert (request.params.temperature, request.params.stop, request.params.max_tokens) == (0.5, ("end",), None)
    assert not request.stream
    assert {deviation.code for deviation in found.deviations} == {
        "wrong-type", "missing-type", "missing-id", "arguments-type", "missing-field",
    }  # fmt: skip


@for_each(
    ("body", "path"),
    [
        (b"{", ""),
        (b"[]", ""),
        (b"{}", "model"),
        (b'{"model":"m"}', "messages"),
        (b'{"model":"m","messages":[3]}', "messages[0]"),
        (b'{"model":"m","messages":[{"role":"robot","content":""}]}', "messages[0].role"),
        (b'{"model":"m","messages":[{"role":"user","content":7}]}', "messages[0].content"),
        (
            b'{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use"}]}]}',
            "messages[0].content[0].name",
        ),
        (b'{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{}]}', "tools[0].name"),
    ],
)
def test_a_body_that_is_not_the_protocol(body: bytes, path: str):
    with pytest.raises(WireError) as raised:
        PROTOCOL.parse_request(body)
    assert raised.value.path == path
    assert raised.value.status == 400


def test_half_a_surrogate_pair_in_a_request():
    body = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"cut \\ud83d"}],"metadata":{"a":1}}'
    request = PROTOCOL.parse_request(body).request
    assert rendered(request)["messages"][0]["content"] == "cut \ufffd"


# ---------------------------------------------------------------- what the encoder writes


def encoder():
    return PROTOCOL.encoder(new_id=counter(), model="asked-for", created=1_750_000_000)


def events_of(wire: bytes) -> list[dict[str, Any]]:
    """The events of a stream; each with its event line, which the SDK needs."""
    found = []
    for block in wire.decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found.append(event)
    return found


def read(wire: bytes) -> list[Event]:
    decoder = PROTOCOL.decoder(new_id=counter())
    return check([*decoder.feed(wire), *decoder.close()])


@for_each("shape", SHAPES)
def test_blocks_are_strictly_one_after_the_other(shape: str):
    events = events_of(encoder().encode(unfold(reply(shape))))
    assert events[0]["type"] == "message_start"
    assert events[0]["message"]["model"] == "asked-for"
    assert events[0]["message"]["id"].startswith("msg_")
    assert [event["type"] for event in events[-2:]] == ["message_delta", "message_stop"]
    opened, index = False, -1
    for event in events[1:-2]:
        if event["type"] == "content_block_start":
            assert not opened
            opened, index = True, index + 1
        assert opened
        assert event["index"] == index
        opened = event["type"] != "content_block_stop"
    assert not opened
    assert index + 1 == len(SHAPES[shape][0])


@for_each("shape", SHAPES)
def test_event_by_event_is_the_same(shape: str):
    one, other = encoder(), encoder()
    events = unfold(reply(shape))
    assert b"".join(one.encode([event]) for event in events) == other.encode(events)


def test_empty_text_opens_no_block():
    events = [Start(), TextStart(0), TextEnd(0), Finish("stop")]
    assert [event["type"] for event in events_of(encoder().encode(events))] == [
        "message_start", "message_delta", "message_stop",
    ]  # fmt: skip


def test_usage_leaves_cached_tokens_out():
    usage = Usage(input=100, output=20, cache_read=60, cache_write=10, reasoning=5)
    wire = encoder().encode([Start(), Finish("stop", usage=usage)])
    assert events_of(wire)[-2]["usage"] == {
        "input_tokens": 30,
        "output_tokens": 20,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 10,
        "output_tokens_details": {"thinking_tokens": 5},
    }
    assert fold(read(wire)).usage == usage


@for_each(
    ("reason", "native", "word"),
    [
        ("stop", None, "end_turn"),
        ("stop", "stop", "end_turn"),
        ("stop", "stop_sequence", "stop_sequence"),
        ("length", "model_context_window_exceeded", "model_context_window_exceeded"),
        ("tool_use", "end_turn", "tool_use"),
        ("content_filter", "SAFETY", "refusal"),
        ("other", "pause_turn", "pause_turn"),
        ("other", None, "end_turn"),
    ],
)
def test_stop_reasons(reason: Any, native: str | None, word: str):
    events = events_of(encoder().encode([Start(), Finish(reason, native)]))
    assert events[-2]["delta"]["stop_reason"] == word


def test_a_failed_call_that_has_not_begun_to_leave_is_an_error():
    failed = ToolCallFailed(0, "c1", "f", "cut", "tool call f: cut")
    machine = encoder()
    wire = machine.encode([Start(), ToolCallStart(0, "c1", "f"), failed, Finish("other")])
    reply = fold(read(wire))
    assert (reply.text, reply.stop_reason, reply.error.message) == ("", "error", "tool call f: cut")
    assert b"tool_use" not in wire and b'stop_reason":"' not in wire
    assert not machine.aborted


def test_a_failed_call_that_has_begun_to_leave_is_never_closed():
    machine = encoder()
    wire = machine.encode([Start(), ToolCallStart(0, "c1", "f"), ToolCallDelta(0, '{"a"')])
    wire += machine.encode([ToolCallFailed(0, "c1", "f", "cut", "tool call f: cut"), Finish("other")])
    assert machine.aborted
    assert events_of(wire)[-1]["type"] == "error"
    assert b"content_block_stop" not in wire
    assert machine.encode([TextStart(1), TextDelta(1, "more"), TextEnd(1)]) == b""
    assert fold(read(wire)).tool_calls == []


def test_a_failure_in_text_ends_with_an_error_event():
    machine = encoder()
    wire = machine.encode([Start(), TextStart(0), TextDelta(0, "half"), Failure("overloaded", "too busy")])
    last = events_of(wire)[-1]
    assert last == {"type": "error", "error": {"type": "overloaded_error", "message": "too busy"}}
    assert not machine.aborted
    seen = fold(read(wire))
    assert (seen.text, seen.stop_reason) == ("half", "error")
    assert isinstance(seen.error, Failure)
    assert seen.error.kind == "overloaded"


def test_a_failure_inside_a_call_cuts_the_connection():
    machine = encoder()
    machine.encode([Start(), ToolCallStart(0, "c1", "f"), ToolCallDelta(0, '{"a"'), Failure("connection", "gone")])
    assert machine.aborted


def test_keepalive_says_nothing():
    wire = encoder().encode(unfold(reply("text")))
    ping = encoder().keepalive()
    assert events_of(ping) == [{"type": "ping"}]
    assert fold(read(ping + wire.replace(b"\n\n", b"\n\n" + ping))).text == fold(read(wire)).text


def test_thinking_keeps_its_seal():
    events = [
        Start(),
        ThinkingStart(0),
        ThinkingEnd(0, "c2VhbA=="),
        ThinkingStart(1),
        ThinkingEnd(1, redacted="b3BhcXVl"),
        Finish("stop"),
    ]
    assert fold(read(encoder().encode(events))).parts == (
        Thinking("", "c2VhbA=="),
        Thinking("", None, "b3BhcXVl"),
    )


def test_ids_and_free_text_take_the_forms_of_the_protocol():
    spoken = ToolCall("fc:1/2", "shell", "echo hi", "custom")
    wire = encoder().encode(unfold(msgspec.structs.replace(reply("text"), parts=(spoken,), stop_reason="tool_use")))
    (seen,) = fold(read(wire)).tool_calls
    assert seen.values() == {"input": "echo hi"}
    assert seen.id.startswith("fc_1_2_")


def test_opaque_parts_and_citations_survive_both_ways():
    block = b'{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"q":1.50}}'
    cited = Native("anthropic-messages", {"citations": Raw(b'[{"cited_text":"x"}]')})
    events = [
        Start(),
        PartEvent(0, Opaque("anthropic-messages", Raw(block))),
        PartEvent(1, Opaque("gemini-generate", Raw(b'{"executableCode":{}}'))),
        TextStart(2),
        TextDelta(2, "See."),
        TextEnd(2, native=cited),
        Finish("stop"),
    ]
    wire = encoder().encode(events)
    whole = PROTOCOL.render_response(fold(events), new_id=counter(), model="m", created=0)
    for data in (wire, whole):
        opaque, text = fold(read(data)).parts
        assert isinstance(opaque, Opaque)
        assert bytes(opaque.raw) == block
        assert isinstance(text, Text)
        assert text.native is not None
        assert json.loads(bytes(text.native.fields["citations"])) == [{"cited_text": "x"}]


def test_an_unknown_block_is_kept_with_what_its_deltas_said():
    frames = [
        {"type": "message_start", "message": {"id": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "new", "rows": [1], "note": "a"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "note_delta", "note": "b"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "rows_delta", "rows": [2, 3]}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"q":'}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "1.50}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    wire = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames).encode()
    (part,) = fold(read(wire)).parts
    assert isinstance(part, Opaque)
    assert bytes(part.raw) == b'{"type":"new","rows":[1,2,3],"note":"ab","input":{"q":1.50}}'


def test_the_stop_sequence_comes_back():
    body = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "a"}],
        "stop_reason": "stop_sequence", "stop_sequence": "END", "usage": {"input_tokens": 1, "output_tokens": 2},
    }  # fmt: skip
    events = read(json.dumps(body).encode())
    whole = PROTOCOL.render_response(fold(events), new_id=counter(), model="m", created=0)
    assert json.loads(whole) == body
    assert events_of(encoder().encode(events))[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


def test_a_whole_response_of_failed_calls():
    events = [
        Start(),
        ToolCallStart(0, "c", "f"),
        ToolCallFailed(0, "c", "f", "cut", "tool call f: cut"),
        Finish("other"),
    ]
    body = json.loads(PROTOCOL.render_response(fold(events), new_id=counter(), model="m", created=0))
    assert body["content"] == []
    assert body["error"] == {"type": "api_error", "message": "tool call f: cut", "code": "tool_call_failed"}
    assert body["stop_reason"] == "end_turn"
    assert body["usage"] == {"input_tokens": 0, "output_tokens": 0}


# ---------------------------------------------------------------- errors and bad bytes


@for_each(
    ("failure", "status", "kind"),
    [
        (Failure("bad_request", "m"), 400, "invalid_request_error"),
        (Failure("context", "m"), 400, "invalid_request_error"),
        (Failure("auth", "m", status=401), 401, "authentication_error"),
        (Failure("quota", "m", status=429), 402, "billing_error"),
        (Failure("permission", "m"), 403, "permission_error"),
        (Failure("not_found", "m"), 404, "not_found_error"),
        (Failure("too_large", "m"), 413, "request_too_large"),
        (Failure("rate", "m", status=429), 429, "rate_limit_error"),
        (Failure("internal", "m", status=200), 500, "api_error"),
        (Failure("wire", "m"), 502, "api_error"),
        (Failure("connection", "m"), 502, "api_error"),
        (Failure("timeout", "m"), 504, "timeout_error"),
        (Failure("overloaded", "m", status=503), 529, "overloaded_error"),
    ],
)
def test_errors_out_and_in_again(failure: Failure, status: int, kind: str):
    code, body = PROTOCOL.render_error(failure)
    assert code == status
    assert json.loads(body) == {"type": "error", "error": {"type": kind, "message": "m"}}
    assert PROTOCOL.parse_error(code, body).message == "m"


def test_a_frame_over_the_limit_fails():
    decoder = PROTOCOL.decoder(new_id=counter(), bounds=AnswerBounds(frame=100))
    events = check([*decoder.feed(b"data: " + b"x" * 200), *decoder.close()])
    assert isinstance(events[-1], Failure)
    assert events[-1].kind == "answer_too_large"


def test_a_broken_connection_keeps_what_was_whole():
    wire = encoder().encode(unfold(reply("parallel")))
    decoder = PROTOCOL.decoder(new_id=counter())
    events = decoder.feed(wire[: wire.index(b"message_delta")])
    events += decoder.fail(Failure("connection", "reset by peer"))
    seen = fold(check(events))
    assert len(seen.tool_calls) == 3
    assert isinstance(seen.error, Failure)
    assert (seen.error.kind, seen.error.message) == ("connection", "reset by peer")


PIECES = st.sampled_from(
    [
        b'{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}',
        b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        b'{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","name":"f","input":{}}}',
        b'{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x":1}}}',
        b'{"type":"content_block_start","index":1,"content_block":{"type":"thinking","signature":"s"}}',
        b'{"type":"content_block_start","index":2,"content_block":{"type":"novel","rows":[]}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"t"}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\\"a\\":"}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"1}"}}',
        b'{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":{"b":NaN}}}',
        b'{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"\\ud83d"}}',
        b'{"type":"content_block_delta","index":2,"delta":{"type":"rows_delta","rows":[1]}}',
        b'{"type":"content_block_delta","delta":"odd"}',
        b'{"type":"content_block_stop","index":0}',
        b'{"type":"content_block_stop","index":1}',
        b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}',
        b'{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}',
        b'{"type":"message_stop"}',
        b'{"type":"error","error":{}}',
        b'{"code":500,"message":"no","type":"server_error"}',
        b'{"type":"ping"}',
        b"[DONE]",
        b'{"type":',
        b"null",
    ]
)


@settings(max_examples=examples(300), deadline=None)
@given(frames=st.lists(PIECES, max_size=12), cut=st.integers(1, 40))
def test_any_events_in_any_order_are_in_the_grammar_however_they_are_cut(frames: list[bytes], cut: int):
    wire = b"".join(b"data: " + frame + b"\n\n" for frame in frames)
    whole = read(wire)
    decoder = PROTOCOL.decoder(new_id=counter())
    pieces = [event for start in range(0, len(wire), cut) for event in decoder.feed(wire[start : start + cut])]
    assert _json.encode([*pieces, *decoder.close()]) == _json.encode(whole)


USAGE = {
    "input_tokens": 9,
    "output_tokens": 4,
    "cache_creation": {"ephemeral_5m_input_tokens": 3},
    "service_tier": "standard",
    "inference_geo": "us",
    "server_tool_use": {"web_search_requests": 2},
    "iterations": [{"type": "message", "input_tokens": 9}],
    "output_tokens_details": {"thinking_tokens": 1, "odd_tokens": 2},
}
BESIDE = {
    "container": {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"},
    "stop_sequence": "END",
    "stop_details": {"type": "refusal", "category": "x"},
    "context_management": {"applied_edits": [{"type": "clear"}]},
}


def wire_of(*events: dict[str, Any]) -> bytes:
    return b"".join(write_event(_json.encode(event), event["type"]) for event in events)


def message_start(**fields: Any) -> dict[str, Any]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
    return {"type": "message_start", "message": message | {"usage": {"input_tokens": 9, "output_tokens": 1}} | fields}


def whole_and_streamed(reply: Reply, events: list[Event]) -> list[dict[str, Any]]:
    """The message as it is written whole, and as a client sums up the stream."""
    whole = _json.decode(PROTOCOL.render_response(reply, new_id=counter(), model="m", created=1))
    summed: dict[str, Any] = {}
    for event in events_of(encoder().encode(events)):
        if event["type"] == "message_start":
            summed = event["message"]
        elif event["type"] == "message_delta":
            beside = {key: value for key, value in event.items() if key not in ("type", "delta", "usage")}
            summed |= event["delta"] | beside | {"usage": summed["usage"] | event["usage"]}
    return [whole, summed]


@for_each("is_stream", [False, True])
def test_what_a_message_says_beside_its_content_comes_back(is_stream: bool):
    if is_stream:
        delta = {"stop_reason": "refusal"} | {
            key: BESIDE[key] for key in ("stop_sequence", "stop_details", "container")
        }
        end = {
            "type": "message_delta",
            "delta": delta,
            "context_management": BESIDE["context_management"],
            "usage": USAGE,
        }
        wire = wire_of(message_start(), end, {"type": "message_stop"})
    else:
        wire = _json.encode(message_start(stop_reason="refusal", usage=USAGE, **BESIDE)["message"])
    events = read(wire)
    reply = fold(events)
    for written in whole_and_streamed(reply, events) + whole_and_streamed(reply, unfold(reply)):
        assert {key: written.get(key) for key in BESIDE} == BESIDE
        assert {key: written["usage"][key] for key in USAGE} == USAGE


def test_content_and_a_stop_reason_that_the_start_tells():
    block = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}}
    begun = message_start(content=[block], stop_reason="tool_use")
    reply = fold(read(wire_of(begun, {"type": "message_stop"})))
    assert [one.name for one in reply.tool_calls] == ["f"]
    assert (reply.stop_reason, reply.native_reason, reply.deviations) == ("tool_use", "tool_use", ())
    assert fold(read(wire_of(begun))).error is not None  # a reason at the start is no end
    going_on = [
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "and"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    both = fold(read(wire_of(begun, *going_on)))
    assert ([one.name for one in both.tool_calls], both.text) == (["f"], "and")


@for_each(("id", "is_same"), [("msg_1", True), ("", True), ("msg_2", False)])
def test_a_second_message_within_a_stream(id: str, is_same: bool):
    text = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "mine"}},
        {"type": "content_block_stop", "index": 0},
    ]
    end = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    reply = fold(read(wire_of(message_start(), *text, message_start(id=id), *end)))
    assert reply.text == "mine"
    assert (reply.error is None) == is_same
    assert isinstance(reply.error, Failure) != is_same


def test_a_fallback_block_is_one_of_the_protocol():
    body = message_start(content=[{"type": "fallback", "model": "x"}], stop_reason="end_turn")["message"]
    reply = fold(read(_json.encode(body)))
    assert (len(reply.parts), reply.deviations) == (1, ())


def test_a_message_at_the_end_is_no_repetition_of_nothing() -> None:
    """No block said its text: the answer fails, and is not empty."""
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    frames = [
        message_start(),
        block,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ]
    told = {"type": "message_stop", "message": {"content": [{"type": "text", "text": "Oslo is cold today."}]}}
    assert fold(read(wire_of(*frames, told))).error is not None
    assert fold(read(wire_of(*frames, {"type": "message_stop"}))).error is None
