"""Ollama's protocol beyond the corpus: requests both ways, the encoder's styles, the decoder's limits."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from cases import counter
from conversations import NESTED, SHAPES, call, reply
from dragoman import _json
from dragoman.bounds import AnswerBounds
from dragoman.errors import WireError
from dragoman.events import (
    Failure,
    Finish,
    PartEvent,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    fold,
    unfold,
)
from dragoman.protocol import ModelLimits, ReplyStyle
from dragoman.protocols.ollama.protocol import PROTOCOL
from dragoman.protocols.ollama.request.render import pick_num_ctx
from dragoman.stages.sequencer import Sequencer
from dragoman.token_estimate import estimate_tokens
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
)
from for_each import for_each
from grammar import check

USER = {"role": "user", "content": "Hi"}
WEATHER = Tool("get_weather", "Weather of a city.", _json.raw({"type": "object", "properties": {"city": {}}}))


def parse(**fields: Any) -> Any:
    return PROTOCOL.parse_request(json.dumps({"model": "m", "messages": [USER]} | fields).encode())


def render(*messages: Message, **fields: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    rendered = PROTOCOL.render_request(Request("m", messages or (Message("user", (Text("Hi"),)),), **fields))
    return json.loads(rendered.http.body), [(found.code, found.where) for found in rendered.deviations]


def decode(*lines: str) -> Any:
    decoder = PROTOCOL.decoder(new_id=counter())
    events = decoder.feed("".join(f"{line}\n" for line in lines).encode())
    return check([*events, *decoder.close()])


def encoder(**style: bool) -> Any:
    return PROTOCOL.encoder(new_id=counter(), model="m", created=0, style=ReplyStyle(**style))


def lines(wire: bytes) -> list[dict[str, Any]]:
    assert wire.endswith(b"\n")
    return [json.loads(line) for line in wire.decode().split("\n")[:-1]]


# ---------------------------------------------------------------- requests in


@for_each(("stream", "expected"), [({}, True), ({"stream": None}, True), ({"stream": False}, False)])
def test_streams_unless_told_otherwise(stream: dict[str, Any], expected: bool):
    assert parse(**stream).request.stream is expected


@for_each("body", [b"", b"[]", b"{", b'{"messages":[]}', b'{"model":"m","messages":3}'])
def test_what_is_no_request(body: bytes):
    with pytest.raises(WireError) as caught:
        PROTOCOL.parse_request(body)
    assert caught.value.status == 400


def test_errors_name_the_place():
    with pytest.raises(WireError, match=r"messages\[1\]\.role"):
        parse(messages=[USER, {"role": "ghost", "content": "boo"}])
    with pytest.raises(WireError, match=r"messages\[0\]\.tool_calls\[0\]\.function\.name"):
        parse(messages=[{"role": "assistant", "tool_calls": [{"function": {}}]}])


def test_roles_in_any_case():
    roles = ["System", "developer", "USER", "Assistant", "tool"]
    request = parse(messages=[{"role": role, "content": "x"} for role in roles]).request
    assert [message.role for message in request.messages] == ["system", "system", "user", "assistant", "tool"]


@for_each("results", [
    [{"tool_name": "a"}, {"tool_name": "b"}, {"tool_name": "a"}],
    [{}, {}, {}],
    [{"tool_call_id": "id1"}, {"tool_call_id": "id2"}, {"tool_call_id": "id3"}],
])  # fmt: skip
@for_each("with_ids", [True, False])
def test_results_find_their_calls(results: list[dict[str, str]], with_ids: bool):
    calls = [
        {"function": {"name": name, "arguments": {}}} | ({"id": f"id{number}"} if with_ids else {})
        for number, name in ((1, "a"), (2, "b"), (3, "a"))
    ]
    messages = [USER, {"role": "assistant", "tool_calls": calls}]
    messages += [{"role": "tool", "content": f"r{n}"} | result for n, result in enumerate(results)]
    request = parse(messages=messages).request
    made = [made.id for made in request.messages[1].tool_calls]
    assert len(set(made)) == 3
    assert [message.parts[0].call_id for message in request.messages[2:]] == made
    assert [message.parts[0].name for message in request.messages[2:]] == ["a", "b", "a"]
    longer = parse(messages=[*messages, USER]).request
    assert longer.messages[:-1] == request.messages, "made-up ids are those of the shorter conversation"


def test_arguments_keep_their_text_and_may_be_a_string():
    body = b'{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[%b,%b,%b]}]}' % (
        b'{"function":{"name":"f","arguments":{"z":1.50,"a":1e3,"n":12345678901234567890}}}',
        b'{"function":{"name":"f","arguments":"{\\"a\\": 1}"}}',
        b'{"function":{"name":"f"}}',
    )
    parsed = PROTOCOL.parse_request(body)
    found = [made.arguments for made in parsed.request.messages[0].tool_calls]
    assert found == ['{"z":1.50,"a":1e3,"n":12345678901234567890}', '{"a": 1}', "{}"]
    assert [deviation.code for deviation in parsed.deviations] == ["arguments-type"]


@for_each(("think", "expected"), [
    (True, Reasoning()), (False, Reasoning("none")), ("low", Reasoning("low")), ("max", Reasoning("max")),
    ("true", Reasoning()), (None, None),
])  # fmt: skip
def test_think(think: Any, expected: Any):
    assert parse(think=think).request.params.reasoning == expected


@for_each(("value", "expected"), [
    ("json", ResponseSchema()), ("", None), (None, None),
    ({"type": "object"}, ResponseSchema(_json.raw({"type": "object"}).copy())),
])  # fmt: skip
def test_format(value: Any, expected: Any):
    found = parse(format=value).request.params.response_schema
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert (found.schema is None) == (expected.schema is None)
        assert found.schema is None or json.loads(bytes(found.schema)) == json.loads(bytes(expected.schema))


@for_each(("choice", "expected"), [
    ("none", "none"), ("auto", "auto"), ("required", "any"), (None, "auto"), ({"type": "any"}, "any"),
    ({"type": "function", "function": {"name": "f"}}, Named("f")),
])  # fmt: skip
def test_tool_choice_of_other_clients(choice: Any, expected: Any):
    assert parse(tool_choice=choice).request.tool_choice == expected


def test_images_with_and_without_a_prefix():
    request = parse(messages=[{"role": "user", "content": "", "images": ["data:image/webp;base64,UklGRg", "/9j/4A"]}])
    assert request.request.messages[0].parts == (
        Media("image", "image/webp", "UklGRg"),
        Media("image", "image/jpeg", "/9j/4A"),
    )


def test_what_is_not_modelled_is_said_again():
    parsed = parse(
        keep_alive=-1, truncate=False, options={"min_p": 0.05, "num_predict": -1, "seed": 3, "num_ctx": 512}
    ).request
    body = json.loads(PROTOCOL.render_request(parsed).http.body)
    assert (body["keep_alive"], body["truncate"]) == (-1, False)
    assert body["options"] == {"min_p": 0.05, "num_predict": -1, "seed": 3, "num_ctx": 512}


# ---------------------------------------------------------------- requests out


def test_round_trip():
    request = Request(
        "m",
        (
            Message("system", (Text("Be brief."),)),
            Message("user", (Text("Look"), Media("image", "image/png", "iVBORw0KGgo="))),
            Message("assistant", (Thinking("hm"), Text("So"), call(1, NESTED), call(2, "{}", "ping"))),
            Message("tool", (ToolResult(call(1, "").id, "write_file", (Text("done"),)),)),
            Message("tool", (ToolResult(call(2, "").id, "ping", ()),)),
            Message("user", (Text("Thanks"),)),
        ),
        (WEATHER, Tool("ping")),
        params=Params(100, 0.5, 0.9, 5, ("END",), 7, 0.1, 0.2, Reasoning("high"), num_ctx=4096),
        stream=False,
    )
    rendered = PROTOCOL.render_request(request)
    assert rendered.deviations == ()
    assert rendered.http.path == "/api/chat"
    again = PROTOCOL.parse_request(rendered.http.body).request
    assert (again.messages, again.tools, again.params, again.stream) == (
        request.messages, request.tools, request.params, request.stream,
    )  # fmt: skip


def test_no_tools_no_key():
    body, _ = render()
    assert "tools" not in body


@for_each(("choice", "offered", "lost"), [
    ("none", None, [("dropped", "tools")]),
    ("any", ["get_weather", "ping"], [("dropped", "tool_choice")]),
    (Named("ping"), ["ping"], [("dropped", "tool_choice")]),
    ("auto", ["get_weather", "ping"], []),
])  # fmt: skip
def test_tool_choice_by_what_is_offered(choice: Any, offered: Any, lost: Any):
    body, deviations = render(tools=(WEATHER, Tool("ping")), tool_choice=choice)
    assert deviations == lost
    found = [tool["function"]["name"] for tool in body["tools"]] if "tools" in body else None
    assert found == offered


def test_results_are_text_with_images_after_them():
    png = Media("image", "image/png", "iVBORw0KGgo=")
    body, deviations = render(
        Message("assistant", (call(1, "{}"), call(2, "{}"))),
        Message(
            "tool", (ToolResult(call(1, "").id, "a", (Text("see"), png)), ToolResult("x", "b", (Text("no"),), True))
        ),
        Message("user", (Text("Well?"),)),
    )
    assert [message["role"] for message in body["messages"]] == ["assistant", "tool", "tool", "user", "user"]
    assert body["messages"][2]["content"] == "Error: no"
    assert body["messages"][3] == {"role": "user", "content": "", "images": ["iVBORw0KGgo="]}
    assert body["messages"][4]["content"] == "Well?"
    assert deviations == [
        ("moved", "messages[1].parts[0].parts[1]"),
        ("changed", "messages[1].parts[1].is_error"),
    ]


def test_nothing_is_lost_in_silence():
    _, deviations = render(
        Message("user", (Media("image", url="https://example.org/a.png"), Media("audio", "audio/wav", "UklGRg"))),
        Message(
            "assistant",
            (
                Thinking("hm", "seal"),
                Thinking("", redacted="data"),
                ToolCall("c", "f", "[1", signature="s"),
                Text("late"),
                Opaque("gemini-generate", _json.raw({})),
            ),
        ),
        params=Params(reasoning=Reasoning("xhigh", 100), parallel_tools=False, cache="long"),
    )
    assert deviations == [
        ("dropped", "messages[0].parts[0]"),
        ("dropped", "messages[0].parts[1]"),
        ("dropped", "messages[1].parts[0].signature"),
        ("dropped", "messages[1].parts[1].signature"),
        ("dropped", "messages[1].parts[2].signature"),
        ("changed", "messages[1].parts[2].arguments"),
        ("moved", "messages[1].parts[3]"),
        ("dropped", "params.reasoning.budget"),
        ("changed", "params.reasoning.effort"),
        ("dropped", "params.parallel_tools"),
        ("dropped", "params.cache"),
        ("untranslated", "messages[1].parts[4].<part>"),
    ]


@for_each(("words", "params", "limits", "expected"), [
    (1, Params(), ModelLimits(), 4_096),
    (1, Params(max_tokens=5_000), ModelLimits(), 8_192),
    (8_000, Params(), ModelLimits(), 16_384),
    (80_000, Params(), ModelLimits(), 32_768),
    (80_000, Params(), ModelLimits(num_ctx_cap=131_072), 131_072),
    (8_000, Params(), ModelLimits(context=10_000), 10_000),
    (1, Params(), ModelLimits(context=2_048), 2_048),
])  # fmt: skip
def test_num_ctx(words: int, params: Params, limits: ModelLimits, expected: int):
    request = Request("m", (Message("user", (Text("word" * words),)),), params=params)
    assert pick_num_ctx(request, limits) == expected
    assert json.loads(PROTOCOL.render_request(request, limits=limits).http.body)["options"]["num_ctx"] == expected


def test_the_clients_num_ctx_stands():
    body, _ = render(params=Params(num_ctx=777))
    assert body["options"]["num_ctx"] == 777


def test_the_estimate_counts_all_of_the_prompt():
    bare = Request("m", (Message("user", (Text("x" * 400),)),))
    assert 100 <= estimate_tokens(bare) < 120
    tools = Request("m", bare.messages, (WEATHER,))
    assert estimate_tokens(tools) > estimate_tokens(bare)
    assert estimate_tokens(Request("m", bare.messages, (WEATHER,), "none")) == estimate_tokens(bare)
    picture = Message("user", (Media("image", "image/png", "A" * 1_000_000),))
    assert 256 <= estimate_tokens(Request("m", (picture,))) <= 2_000
    result = Message("tool", (ToolResult("c", "f", (Text("y" * 400),)),))
    assert 100 <= estimate_tokens(Request("m", (result,))) < 120
    assert estimate_tokens(Request("m", ())) == 0


# ---------------------------------------------------------------- responses out


def test_each_call_has_a_line_of_its_own():
    seen = lines(encoder().encode(unfold(reply("parallel"))))
    calls = [line["message"]["tool_calls"] for line in seen if "tool_calls" in line["message"]]
    assert [len(found) for found in calls] == [1, 1, 1]
    assert [set(found[0]) for found in calls] == [{"id", "function"}] * 3
    assert [found[0]["function"]["index"] for found in calls] == [0, 1, 2]
    assert all(line["message"]["content"] == "" for line in seen)


def test_bare_calls():
    seen = lines(encoder(bare_calls=True).encode(unfold(reply("single"))))
    assert seen[0]["message"]["tool_calls"] == [{"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}]


def test_batched_calls():
    seen = lines(encoder(batch_calls=True).encode(unfold(reply("text-call-text-call"))))
    assert [len(line["message"].get("tool_calls", ())) for line in seen] == [0, 0, 2, 0]
    failed = encoder(batch_calls=True).encode([*unfold(reply("single"))[:-1], Failure("wire", "gone")])
    assert [set(line) for line in lines(failed)][-1] == {"error"}
    assert lines(failed)[0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"


def test_arguments_stay_on_one_line():
    spread = ToolCall("c", "f", '{\n  "a": "x\\ny",\r\n  "b": 1.50\n}')
    events = [Start(), ToolCallStart(0, "c", "f"), ToolCallDelta(0, spread.arguments), ToolCallEnd(0, spread)]
    wire = encoder().encode([*events, Finish("tool_use")])
    assert lines(wire)[0]["message"]["tool_calls"][0]["function"]["arguments"] == {"a": "x\ny", "b": 1.5}
    assert b"1.50" in wire


def test_a_call_leaves_only_when_it_is_whole():
    machine = encoder()
    start = [Start(), ToolCallStart(0, "c", "f"), ToolCallDelta(0, '{"secret":')]
    assert machine.encode(start) == b""
    rest = machine.encode([ToolCallFailed(0, "c", "f", "cut", "tool call f: cut", '{"secret":'), Finish("other")])
    assert lines(rest) == [{"error": "tool call f: cut", "code": "tool_call_failed"}]
    assert b"secret" not in rest
    assert not machine.aborted


def test_keepalive_says_nothing():
    machine = encoder()
    seen = lines(machine.keepalive())
    assert seen == [
        {
            "model": "m",
            "created_at": "1970-01-01T00:00:00Z",
            "message": {"role": "assistant", "content": ""},
            "done": False,
        }
    ]
    machine.encode([Start(), Finish("stop")])
    assert machine.keepalive() == b""


@for_each(("reason", "native", "word"), [
    ("stop", None, "stop"), ("tool_use", "tool_calls", "stop"), ("length", "MAX_TOKENS", "length"),
    ("content_filter", None, "stop"), ("stop", "load", "load"), ("other", "pause_turn", "stop"),
])  # fmt: skip
def test_done_reason(reason: Any, native: Any, word: str):
    seen = lines(encoder().encode([Start(), Finish(reason, native)]))
    assert (seen[-1]["done"], seen[-1]["done_reason"]) == (True, word)
    assert "eval_count" not in seen[-1], "what nobody reported is not written"
    assert seen[-1]["eval_duration"] > 0, "clients divide by it"


def test_pictures_and_lone_surrogates():
    picture = Media("image", "image/png", "iVBORw0KGgo=", native=Native("ollama-chat", {}))
    events = [Start(), TextStart(0), TextDelta(0, "a\ud800"), TextEnd(0), PartEvent(1, picture), Finish("stop")]
    wire = encoder().encode(events)
    assert lines(wire)[0]["message"]["content"] == "a\ufffd"
    found = decode(*wire.decode().splitlines())
    assert PartEvent(1, picture) in found


@for_each("shape", SHAPES)
def test_a_whole_response_is_one_object(shape: str):
    body = PROTOCOL.render_response(reply(shape), new_id=counter(), model="m", created=0)
    assert body.count(b"\n") == 0
    assert json.loads(body)["done"] is True


def test_error_statuses():
    assert PROTOCOL.render_error(Failure("rate", "slow down")) == (429, b'{"error":"slow down"}')
    assert PROTOCOL.render_error(Failure("wire", "odd", status=200))[0] == 502


# ---------------------------------------------------------------- responses in


def test_number_forms_and_key_order_survive():
    arguments = '{"z":1.50,"a":[1e3,-0.0],"n":12345678901234567890}'
    line = '{"message":{"content":"","tool_calls":[{"id":"c","function":{"name":"f","arguments":%s}}]},"done":true}'
    assert fold(decode(line % arguments)).tool_calls[0].arguments == arguments


def test_a_line_over_the_limit():
    decoder = PROTOCOL.decoder(new_id=counter(), bounds=AnswerBounds(frame=100))
    events = decoder.feed(b'{"message":{"role":"assistant","content":"Ho"},"done":false}\n')
    for piece in [b'{"message":{"content":"', *[b"0123456789"] * 20]:
        events += decoder.feed(piece)
    seen = fold(check([*events, *decoder.close()]))
    assert (seen.text, seen.error.kind) == ("Ho", "answer_too_large")


def test_a_broken_connection():
    decoder = PROTOCOL.decoder(new_id=counter())
    line = b'{"message":{"role":"assistant","content":"Ho"},"done":%b}\n'
    events = [*decoder.feed(line % b"false"), *decoder.fail(Failure("connection", "reset"))]
    assert fold(check(events)).error == Failure("connection", "reset")
    decoder = PROTOCOL.decoder(new_id=counter())
    events = [*decoder.feed(line % b"true"), *decoder.fail(Failure("connection", "reset"))]
    assert fold(check(events)).error is None, "the end was seen"
    assert decoder.ended


def test_made_up_ids_are_ours():
    line = '{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":true}'
    assert fold(decode(line)).tool_calls[0].id == f"call_{0:024d}"


@for_each("told", ["in one line", "in a line each", "with text between"])
@for_each("arguments", [*itertools.product(["{}", '{"bell": 1}', "null", '"{}"'], repeat=3)])
def test_calls_leave_in_the_order_in_which_the_model_made_them(arguments: tuple[str, ...], told: str):
    """One without arguments is held until the end; the calls behind it wait for it at who takes one at a time."""
    entries = [
        f'{{"function": {{"name": "{name}", "arguments": {text}}}}}'
        for name, text in zip(["ring", "toll", "peal"], arguments, strict=True)
    ]
    messages = [f'{{"tool_calls": [{each}]}}' for each in entries]
    if told == "in one line":
        messages = [f'{{"tool_calls": [{", ".join(entries)}]}}']
    elif told == "with text between":
        messages = [part for each in messages for part in (each, '{"content": "and"}')]
    body = [f'{{"model": "m", "message": {message}, "done": false}}' for message in messages]
    body.append('{"model": "m", "message": {"content": ""}, "done": true, "done_reason": "stop"}')
    decoder = PROTOCOL.decoder(new_id=counter())
    events = [event for line in body for event in decoder.feed(f"{line}\n".encode())]
    events = Sequencer().feed([*events, *decoder.close()])
    assert [event.name for event in events if isinstance(event, ToolCallStart)] == ["ring", "toll", "peal"]
    assert [event.call.name for event in events if isinstance(event, ToolCallEnd)] == ["ring", "toll", "peal"]
