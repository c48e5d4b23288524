"""OpenAI Responses: requests both ways, native fields, and what only this protocol's streams have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cases import counter
from dragoman import _json
from dragoman._json import Raw
from dragoman.bounds import AnswerBounds
from dragoman.codec.framing.body import write_event
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
    fold,
    unfold,
)
from dragoman.protocol import PLAIN, Dialect, ReplyStyle
from dragoman.protocols.openai_responses.protocol import PROTOCOL
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

VENDOR = Dialect(supports_store=True, supports_prompt_cache_key=True, supports_prompt_cache_retention=True)


def parse(**fields: Any) -> Request:
    return PROTOCOL.parse_request(json.dumps({"model": "m", **fields}).encode()).request


def render(request: Request, dialect: Dialect = PLAIN) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The body, and the deviations as (code, where)."""
    rendered = PROTOCOL.render_request(request, dialect=dialect)
    body = json.loads(rendered.http.body)
    return body, [(deviation.code, deviation.where) for deviation in rendered.deviations]


def ask(*messages: Message, **fields: Any) -> Request:
    return Request("m", messages, **fields)


def user(*parts: Any) -> Message:
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


def stream(*events: dict[str, Any]) -> bytes:
    return b"".join(write_event(json.dumps(event).encode(), str(event["type"] or "")) for event in events)


def read(wire: bytes, offered: frozenset[str] = frozenset(), dialect: Dialect = PLAIN) -> Reply:
    return fold(read_events(wire, offered, dialect))


def read_events(wire: bytes, offered: frozenset[str] = frozenset(), dialect: Dialect = PLAIN) -> list[Event]:
    decoder = PROTOCOL.decoder(new_id=counter(), offered_names=offered, dialect=dialect)
    return check([*decoder.feed(wire), *decoder.close()])


def write(*events: Event, style: ReplyStyle | None = None) -> tuple[list[dict[str, Any]], Any]:
    """The wire's events, and the encoder."""
    encoder = PROTOCOL.encoder(new_id=counter(), model="asked", created=7, style=style or ReplyStyle())
    wire = encoder.encode(events)
    blocks = wire.decode().removesuffix("\n\n").split("\n\n")
    rows = []
    for block in blocks:
        name, data = block.split("\n")
        row = json.loads(data.removeprefix("data: "))
        assert name == f"event: {row['type']}"
        rows.append(row)
    assert [row["sequence_number"] for row in rows] == list(range(len(rows)))
    return rows, encoder


# ---------------------------------------------------------------- parsing requests


def test_plain_text():
    request = parse(input="Hello", instructions="Be brief.", stream=True, max_output_tokens=9, temperature=0.5, top_p=1)
    assert request.messages == (Message("system", (Text("Be brief."),)), user("Hello"))
    assert request.params == Params(max_tokens=9, temperature=0.5, top_p=1)
    assert request.stream
    assert not parse(input="x").stream


def test_items_become_turns():
    request = parse(
        input=[
            {"role": "developer", "content": "Rules."},
            {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "seal"},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "phase": "commentary",
                "content": [{"type": "output_text", "text": "Looking.", "annotations": []}],
            },
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": '{"a":1e3}'},
            {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** x"},
            {"type": "function_call_output", "call_id": "c1", "output": "one"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
        ]
    )
    roles = [message.role for message in request.messages]
    assert roles == ["system", "user", "assistant", "tool"]
    answer = request.messages[2].parts
    assert [type(part) for part in answer] == [Thinking, Text, ToolCall, ToolCall]
    assert isinstance(answer[0], Thinking)
    assert (answer[0].text, answer[0].signature) == ("", "seal")
    assert answer[2:] == (
        ToolCall("c1", "look", '{"a":1e3}', native=Native("openai-responses", {"id": Raw(b'"fc_1"')})),
        ToolCall("c2", "patch", "*** x", "custom"),
    )
    results = request.messages[3].parts
    assert results == (ToolResult("c1", "look", (Text("one"),)), ToolResult("c2", "patch", (Text("two"),)))


def test_all_of_a_conversation_goes_back_as_it_came():
    items = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Rules."}]},
        {
            "type": "message",
            "role": "user",
            "id": "msg_u",
            "content": [
                {"type": "input_text", "text": "See:"},
                {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "low"},
                {"type": "input_image", "file_id": "file-1"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD"},
                {"type": "input_file", "file_url": "https://x.test/a.pdf"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "A"}, {"type": "summary_text", "text": "B"}],
            "content": [{"type": "reasoning_text", "text": "C"}],
            "encrypted_content": "seal",
        },
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "phase": "final_answer",
            "content": [
                {
                    "type": "output_text",
                    "text": "x",
                    "annotations": [{"type": "url_citation", "url": "https://x.test"}],
                },
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {"type": "function_call", "id": "fc_1", "namespace": "n", "call_id": "c1", "name": "f", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [{"type": "input_text", "text": "t"}, {"type": "input_image", "image_url": "https://x.test/i"}],
        },
        {"type": "local_shell_call_output", "id": "ls_1", "output": "{}"},
        {"type": "item_reference", "id": "msg_9"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "p", "input": ""},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "done"},
    ]
    request = parse(
        input=items,
        metadata={"k": "v"},
        previous_response_id="resp_0",
        text={"verbosity": "low"},
        reasoning={"effort": "high", "summary": "auto"},
        include=["message.output_text.logprobs"],
        stream=True,
        store=True,
        client_metadata={"x": 1},
    )
    body, deviations = render(request, VENDOR)
    assert body["input"] == items
    assert deviations == []
    assert body["metadata"] == {"k": "v"}
    assert body["previous_response_id"] == "resp_0"
    assert body["text"] == {"verbosity": "low"}
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body["include"] == ["message.output_text.logprobs"]
    assert body["store"] is True
    assert body["client_metadata"] == {"x": 1}
    assert parse(**{key: value for key, value in body.items() if key != "model"}) == request


def test_tools_of_every_kind():
    schema = '{"type":"object","properties":{"n":{"type":"number","minimum":1.50}}}'
    tools = [
        {"type": "function", "name": "strict", "parameters": json.loads(schema), "strict": True},
        {"type": "function", "name": "loose", "description": "D", "parameters": {"type": "object"}, "strict": False},
        {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
        {"type": "namespace", "name": "crm", "description": "C", "tools": [
            {"type": "function", "name": "find", "parameters": {"type": "object"}, "strict": True},
            {"type": "function", "name": "strict", "parameters": {"type": "object"}, "strict": True},
        ]},
        {"type": "web_search", "search_context_size": "low"},
    ]  # fmt: skip
    request = parse(input="x", tools=tools)
    assert [tool.name for tool in request.tools] == ["strict", "loose", "patch", "crm__find", "crm__strict"]
    assert request.tools[2].kind == "custom"
    assert request.tools[1] == Tool("loose", "D", Raw(b'{"type": "object"}'))
    body, deviations = render(request)
    assert deviations == []
    first, second, third, fourth, *hosted = body["tools"]
    assert [first, second, third] == tools[:3]
    assert fourth == tools[3]
    assert hosted == [tools[4]]
    assert parse(input="x", tools=body["tools"]).tools == request.tools


def test_a_schema_keeps_its_own_text():
    body = b'{"model":"m","input":"x","tools":[{"type":"function","name":"f","parameters":{"minimum":1.50,"a":1e3}}]}'
    request = PROTOCOL.parse_request(body).request
    assert request.tools[0].schema == Raw(b'{"minimum":1.50,"a":1e3}')
    rendered = PROTOCOL.render_request(request).http.body
    assert b'"parameters":{"minimum":1.50,"a":1e3}' in rendered
    assert b"strict" not in rendered  # the client did not say it either


@for_each(
    ("said", "choice"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "any"),
        ({"type": "function", "name": "f"}, Named("f")),
        ({"type": "function", "function": {"name": "f"}}, Named("f")),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}, "any"),
        ({"type": "web_search"}, "auto"),
    ],
)
def test_tool_choice(said: Any, choice: Any):
    tools = [{"type": "function", "name": "f"}]
    request = parse(input="x", tools=tools, tool_choice=said)
    assert request.tool_choice == choice
    body, _ = render(request)
    if said == {"type": "function", "function": {"name": "f"}}:
        said = {"type": "function", "name": "f"}
    assert body.get("tool_choice", "auto") == said


def test_structured_output():
    form = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True, "description": "d"}
    request = parse(input="x", text={"format": form, "verbosity": "high"})
    assert request.params.response_schema == ResponseSchema(Raw(b'{"type": "object"}'), "n", True, "d")
    body, _ = render(request)
    assert body["text"] == {"format": form, "verbosity": "high"}
    any_json = ResponseSchema(written_for="openai-responses")
    assert parse(input="x", text={"format": {"type": "json_object"}}).params.response_schema == any_json
    assert parse(input="x", text={"format": {"type": "text"}}).params.response_schema is None


def test_what_the_response_repeats():
    body = {"model": "m", "input": "x", "temperature": 0.25, "metadata": {"a": "b"}, "tools": [], "stream": True}
    style = PROTOCOL.parse_request(json.dumps(body).encode()).style
    assert sorted(style.echo) == ["metadata", "temperature", "tools"]
    rows, _ = write(Start(), Finish("stop"), style=style)
    assert rows[0]["response"]["temperature"] == 0.25
    assert rows[-1]["response"]["metadata"] == {"a": "b"}
    assert rows[-1]["response"]["model"] == "asked"


def test_odd_requests_are_read():
    parsed = PROTOCOL.parse_request(
        json.dumps(
            {
                "model": "m",
                "input": [
                    "just text",
                    {"role": "tool", "tool_call_id": "c", "content": "r"},
                    {"type": "function_call", "name": "f", "arguments": {"a": 1}},
                    {"type": "function_call", "call_id": "c9", "name": "f", "arguments": ""},
                    {"role": "assistant", "content": "plain"},
                    {"role": "robot", "content": [{"type": "hologram"}]},
                ],
                "temperature": "hot",
                "reasoning": {"effort": "heroic"},
                "tools": None,
                "stream": None,
            }
        ).encode()
    )
    first, result, answer, odd = parsed.request.messages
    assert first == user("just text")
    assert isinstance(result.parts[0], ToolResult)
    assert isinstance(answer.parts[0], ToolCall)
    assert (answer.parts[0].arguments, len(answer.parts[0].id)) == ('{"a":1}', 29)
    assert answer.tool_calls[1].arguments == "{}"
    assert answer.text == "plain"
    assert isinstance(odd.parts[0], Opaque)
    assert parsed.request.params == Params()
    codes = {deviation.code for deviation in parsed.deviations}
    assert codes == {"wrong-type", "missing-id", "arguments-type", "missing-arguments", "unknown-part"}


@for_each(
    ("body", "path"),
    [
        (b"", ""),
        (b"[]", ""),
        (b'{"model":"m"', ""),
        (b'{"input":"x"}', "model"),
        (b'{"model":3,"input":"x"}', "model"),
        (b'{"model":"m"}', "input"),
        (b'{"model":"m","input":7}', "input"),
        (b'{"model":"m","input":[7]}', "input[0]"),
    ],
)
def test_what_is_not_this_protocol(body: bytes, path: str):
    with pytest.raises(WireError) as caught:
        PROTOCOL.parse_request(body)
    assert (caught.value.path, caught.value.status) == (path, 400)
    assert "expected" in str(caught.value)


# ---------------------------------------------------------------- rendering requests

SYSTEM = Message("system", (Text("Be brief."),))
CALL = ToolCall("c1", "f", '{"a":1}')


@for_each(
    "request_",
    [
        ask(SYSTEM, user("Hi")),
        ask(user("Hi", Media("image", "image/png", data="QUJD"), Media("image", url="https://x.test/i.png"))),
        ask(user(Media("document", "application/pdf", data="QUJD")), SYSTEM, user("later")),
        ask(
            user("Hi"),
            Message("assistant", (Thinking("T", "seal"), Text("a"), CALL, ToolCall("c2", "p", "raw", "custom"))),
            Message("tool", (ToolResult("c1", "f", (Text("r"),)), ToolResult("c2", "p", (Text("s"), Text("t"))))),
            Message("assistant", (Text("b"),)),
        ),
        ask(
            user("Hi"),
            Message("assistant", (CALL,)),
            Message("tool", (ToolResult("c1", "f", (Text("see"), Media("image", "image/png", data="QUJD"))),)),
        ),
        ask(
            user("Hi"),
            tools=(Tool("f", "D", Raw(b'{"type":"object"}')), Tool("p", kind="custom")),
            tool_choice=Named("p"),
            params=Params(
                max_tokens=10,
                temperature=0.5,
                top_p=0.9,
                reasoning=Reasoning("low"),
                response_schema=ResponseSchema(Raw(b'{"type":"object"}'), "n", False),
                parallel_tools=False,
                cache="long",
            ),
            stream=False,
            session_id="s",
        ),
    ],
)
def test_what_is_rendered_is_parsed_again(request_: Request):
    rendered = PROTOCOL.render_request(request_, dialect=VENDOR)
    again = PROTOCOL.parse_request(rendered.http.body).request
    native = again.native
    assert rendered.deviations == ()
    assert native is not None
    assert set(native.fields) <= {"store", "include"}
    assert Request(again.model, again.messages, again.tools, again.tool_choice, again.params, again.stream,
                   again.session_id) == request_  # fmt: skip


def test_path_and_headers():
    rendered = PROTOCOL.render_request(ask(user("Hi"), stream=False)).http
    assert (rendered.method, rendered.path) == ("POST", "/responses")
    assert rendered.headers == {"content-type": "application/json", "accept": "application/json"}
    assert PROTOCOL.render_request(ask(user("Hi"))).http.headers["accept"] == "text/event-stream"


def test_no_tools_key_without_tools():
    body, _ = render(ask(user("Hi"), tool_choice="any", params=Params(parallel_tools=False)))
    assert set(body) == {"model", "input", "stream"}


def test_state_is_asked_for_where_the_host_has_it():
    request = ask(user("Hi"), params=Params(reasoning=Reasoning("high"), cache="long"), session_id="s1")
    body, deviations = render(request, VENDOR)
    assert deviations == []
    assert body["store"] is False
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["prompt_cache_key"] == "s1"
    assert body["prompt_cache_retention"] == "24h"
    body, deviations = render(request)
    assert not {"store", "include", "prompt_cache_key", "prompt_cache_retention"} & set(body)
    assert deviations == [("dropped", "session_id"), ("dropped", "params.cache")]
    body, deviations = render(ask(user("Hi"), params=Params(cache="none"), session_id="s1"), VENDOR)
    assert "prompt_cache_key" not in body
    assert deviations == []
    assert "include" not in body  # no reasoning


def test_what_cannot_be_said_is_told():
    params = Params(
        top_k=3, stop=("x",), seed=1, presence_penalty=0.1, frequency_penalty=0.1, num_ctx=9, reasoning=Reasoning()
    )
    answer = Message("assistant", (Thinking("unsealed"), Opaque("gemini-generate", Raw(b"{}")), Text("a")))
    request = ask(user("Hi", Media("video", url="gs://v")), answer, params=params)
    body, deviations = render(request)
    assert deviations == [
        ("dropped", "messages[0].parts[1]"),
        ("dropped", "messages[1].parts[0]"),
        *(("dropped", f"params.{name}") for name in
          ("top_k", "stop", "seed", "presence_penalty", "frequency_penalty", "num_ctx")),
        ("changed", "params.reasoning"), ("untranslated", "messages[1].parts[1].<part>"),
    ]  # fmt: skip
    assert body["reasoning"] == {"effort": "medium"}
    assert [item["role"] for item in body["input"]] == ["user", "assistant"]


@for_each(("budget", "effort"), [(0, "none"), (1024, "low"), (8_000, "medium"), (40_000, "high")])
def test_budget_becomes_effort(budget: int, effort: str):
    body, deviations = render(ask(user("Hi"), params=Params(reasoning=Reasoning(budget=budget))))
    assert body["reasoning"] == {"effort": effort}
    assert deviations == [("changed", "params.reasoning.budget")]


def test_a_dialect_without_words():
    dialect = Dialect(
        supports_tool_choice=False,
        supports_parallel_tool_calls=False,
        supports_response_schema=False,
        supports_image_url=False,
        reasoning_style="none",
        temperature_max=1.0,
        system_role="developer",
    )
    params = Params(temperature=1.7, parallel_tools=False, response_schema=ResponseSchema(), reasoning=Reasoning("low"))
    picture = Media("image", url="https://x.test/i")
    request = ask(user("Hi", picture), SYSTEM, tools=(Tool("f"),), tool_choice="any", params=params)
    body, deviations = render(request, dialect)
    assert deviations == [
        ("dropped", "messages[0].parts[1]"),
        ("dropped", "tool_choice"),
        ("dropped", "params.parallel_tools"),
        ("changed", "params.temperature"),
        ("dropped", "params.reasoning"),
        ("dropped", "params.response_schema"),
    ]
    assert body["temperature"] == 1.0
    assert body["input"][1]["role"] == "developer"
    assert body["tools"][0]["strict"] is False


def test_a_failed_tool_is_said_in_words():
    turn = Message("tool", (ToolResult("c1", "f", (Text("no such city"),), is_error=True),))
    body, deviations = render(ask(user("Hi"), Message("assistant", (CALL,)), turn))
    assert body["input"][-1]["output"] == "Error: no such city"
    assert deviations == [("changed", "messages[2].parts[0].is_error")]


def test_sealed_reasoning_stands_before_its_call():
    native = Native("openai-responses", {"id": Raw(b'"rs_1"')})
    answer = Message("assistant", (Thinking("A", native=native), Thinking("B", "seal", native=native), CALL))
    body, _ = render(ask(user("Hi"), answer), VENDOR)
    reasoning, call = body["input"][1:]
    assert reasoning == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "A"}, {"type": "summary_text", "text": "B"}],
        "encrypted_content": "seal",
    }
    assert call["call_id"] == "c1"
    kept_by_host = ask(user("Hi"), Message("assistant", (Thinking("A", native=native), CALL)))
    assert render(kept_by_host)[0]["input"][1]["id"] == "rs_1"
    assert render(kept_by_host, VENDOR)[1] == [("dropped", "messages[1].parts[0]")]  # store is false


def test_native_fields_of_another_protocol_stay_away():
    native = Native("openai-chat", {"logit_bias": Raw(b"{}")})
    part = Text("Hi", native=Native("openai-chat", {"cache_control": Raw(b"{}")}))
    body, _ = render(Request("m", (Message("user", (part,)),), native=native))
    assert "logit_bias" not in body
    assert body["input"][0]["content"] == [{"type": "input_text", "text": "Hi"}]


# ---------------------------------------------------------------- decoding


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": 0, "item": {"type": kind, **fields}}


DONE = {"type": "response.completed", "response": {"status": "completed", "output": []}}
BEGUN = {"type": "response.created", "response": {"id": "resp_1", "model": "m", "created_at": 5}}


def test_the_seal_is_that_of_the_items_end():
    added = {"type": "response.output_item.added", "output_index": 0}
    reply = read(
        stream(
            BEGUN,
            {**added, "item": {"type": "reasoning", "id": "rs_a", "summary": [], "encrypted_content": "first"}},
            {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "S"},
            item("reasoning", id="rs_b", summary=[{"text": "S"}], encrypted_content="last"),
            DONE,
        )
    )
    (part,) = reply.parts
    assert isinstance(part, Thinking)
    assert (part.text, part.signature) == ("S", "last")
    assert part.native == Native("openai-responses", {"id": Raw(b'"rs_b"')})
    body, _ = render(ask(user("Hi"), reply.message), VENDOR)
    assert body["input"][1]["id"] == "rs_b"


def test_reasoning_without_words_is_kept_for_the_next_request():
    reply = read(stream(BEGUN, item("reasoning", id="rs_1", summary=[], encrypted_content="seal"), DONE))
    (part,) = reply.parts
    assert isinstance(part, Thinking)
    assert (part.text, part.signature) == ("", "seal")


@for_each(
    "name",
    [
        "response.reasoning_text",
        "response.reasoning_summary_text",
        "response.reasoning",
        "response.reasoning_summary",
        "response.reasoning_content",
        "response.thinking",
        "reasoning_text",
        "reasoning_summary_text",
        "reasoning",
        "reasoning_content",
    ],
)
@for_each("step", ["delta", "done"])
def test_reasoning_under_every_name(name: str, step: str):
    text = {"delta": "Hm."} if step == "delta" else {"text": "Hm."}
    reply = read(stream(BEGUN, {"type": f"{name}.{step}", "item_id": "r", "output_index": 0, **text}, DONE))
    assert (reply.thinking, reply.text, reply.stop_reason) == ("Hm.", "", "stop")


def test_annotations_and_phase_survive():
    citation = {"type": "url_citation", "url": "https://x.test", "title": "X"}
    content = [{"type": "output_text", "text": "See X.", "annotations": [citation]}]
    begun = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    wire = stream(
        BEGUN,
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "See X."},
        item("message", id="msg_1", role="assistant", content=content, phase="final_answer"),
        DONE,
    )
    reply = read(wire)
    rows, _ = write(*unfold(reply))
    assert [row["annotation"] for row in rows if row["type"].endswith("annotation.added")] == [citation]
    (written,) = rows[-1]["response"]["output"]
    assert (written["phase"], written["id"]) == ("final_answer", "msg_1")
    assert written["content"][0]["annotations"] == [citation]
    body, _ = render(ask(user("Hi"), reply.message))
    assert body["input"][1]["content"][0]["annotations"] == [citation]
    streamed, _ = write(*read_events(wire))
    assert streamed[-1]["response"]["output"] == rows[-1]["response"]["output"]


def test_unknown_items_survive():
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "score": 1.0}
    reply = read(stream(BEGUN, {**item(""), "item": search}, DONE))
    assert isinstance(reply.parts[0], Opaque)
    rows, _ = write(*unfold(reply))
    assert rows[-1]["response"]["output"] == [search]
    assert render(ask(user("Hi"), reply.message))[0]["input"][1] == search


def test_object_arguments_keep_their_own_text():
    frame = (
        b'data: {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c",'
        b'"name":"f","arguments":{"n":1.50,"big":90071992547409931}}}\n\n'
    )
    reply = read(frame + stream(DONE))
    assert reply.tool_calls[0].arguments == '{"n":1.50,"big":90071992547409931}'


def test_final_arguments_that_contradict_a_cut_call_fail_it():
    added = item("function_call", call_id="c", name="f", arguments="")
    reply = read(
        stream(
            BEGUN,
            {**added, "type": "response.output_item.added"},
            {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"a":'},
            {**item("function_call", call_id="c", name="f", arguments='{"b":1}')},
            DONE,
        )
    )
    assert reply.tool_calls == []
    assert isinstance(reply.error, ToolCallFailed)
    assert (reply.error.kind, reply.stop_reason) == ("contradicted", "error")


@for_each(("id", "runs"), [("fc_0", ["f"]), ("fc_1", [])])
def test_labels_that_name_two_calls_give_arguments_to_neither(id: str, runs: list[str]):
    started = [
        {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {"type": "function_call", "id": f"fc_{index}", "call_id": f"c_{index}", "name": "f"},
        }
        for index in (0, 1)
    ]
    told = {"type": "response.function_call_arguments.done", "output_index": 0, "item_id": id, "arguments": '{"a":1}'}
    assert [call.name for call in read(stream(BEGUN, *started, told, DONE)).tool_calls] == runs


@for_each("kind", ["refusal", "output_text"])
def test_a_final_message_with_another_id_counts_once(kind: str):
    part = {"type": kind, "refusal" if kind == "refusal" else "text": "No."}
    final = {"type": "message", "id": "msg_b", "role": "assistant", "content": [part]}
    search = {"type": "web_search_call", "id": "msg_a"}  # ids are told apart by type
    reply = read(
        stream(
            BEGUN,
            item("message", id="msg_a", content=[part]),
            {**item(""), "output_index": 1, "item": search},
            {"type": "response.completed", "response": {"status": "completed", "output": [final, search]}},
        )
    )
    assert reply.text == "No."
    assert len(reply.parts) == 2
    assert reply.deviations == ()


@for_each("status", ["queued", "in_progress"])
def test_a_response_in_the_background_is_told_by_its_status(status: str):
    body = _json.encode({"object": "response", "id": "resp_1", "status": status, "output": [], "background": True})
    reply = read(body)
    assert (reply.error, reply.stop_reason, reply.native_reason) == (None, "other", status)
    assert reply.deviations == ()
    again = PROTOCOL.render_response(reply, new_id=counter(), model="m", created=1)
    assert _json.decode(again)["status"] == status
    assert _json.decode(again)["background"] is True
    streamed = PROTOCOL.encoder(new_id=counter(), model="m", created=1).encode(unfold(reply))
    assert b"event: response.queued" in streamed
    assert read(streamed).native_reason == status
    cut = stream({"type": "response.created", "response": _json.decode(body)})
    assert isinstance(read(cut).error, Failure)


def test_an_unknown_status_beside_whole_output():
    said = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
    body = {"object": "response", "status": "complete", "output": [said]}
    reply = read(_json.encode(body))
    assert (reply.text, reply.stop_reason, reply.error) == ("Hi", "stop", None)
    assert [found.code for found in reply.deviations] == ["stop-reason"]
    for output in ([], [said | {"status": "in_progress"}]):
        assert isinstance(read(_json.encode(body | {"output": output})).error, Failure)


def test_what_the_end_tells_comes_back():
    begun = {"id": "resp_1", "object": "response", "status": "in_progress", "output": [], "service_tier": "auto"}
    ended = begun | {"status": "completed", "service_tier": "default", "completed_at": 3, "content_filters": [{"b": 1}]}
    usage = {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 1, "text_tokens": 2},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 1, "audio_tokens": 0},
        "total_tokens": 5,
        "cost_in_usd_ticks": 158,
    }
    wire = stream(
        {"type": "response.created", "response": begun},
        {"type": "response.completed", "response": ended | {"usage": usage}},
    )
    reply = read(wire)
    assert reply.native is not None
    assert reply.native.fields["service_tier"] == _json.raw("default")
    for again in (
        _json.decode(PROTOCOL.render_response(reply, new_id=counter(), model="m", created=1)),
        last_response(PROTOCOL.encoder(new_id=counter(), model="m", created=1).encode(decoded(wire))),
    ):
        for key in ("service_tier", "completed_at", "content_filters"):
            assert again[key] == ended[key]
        assert again["usage"]["cost_in_usd_ticks"] == 158
        assert again["usage"]["input_tokens_details"] == {"cached_tokens": 1, "cache_write_tokens": 0, "text_tokens": 2}
        assert again["usage"]["output_tokens_details"] == {"reasoning_tokens": 1, "audio_tokens": 0}


def decoded(wire: bytes) -> list[Event]:
    decoder = PROTOCOL.decoder(new_id=counter())
    return [*decoder.feed(wire), *decoder.close()]


def last_response(wire: bytes) -> Any:
    return _json.decode(wire.rsplit(b"data: ", 1)[1])["response"]


def test_an_end_that_is_not_one():
    cancelled = read(b'{"object":"response","status":"cancelled","output":[],"usage":{"input_tokens":3}}')
    assert isinstance(cancelled.error, Failure)
    assert cancelled.usage.input == 3


def test_cost_is_read_where_the_dialect_has_it():
    body = b'{"object":"response","status":"completed","output":[],"usage":{"input_tokens":3,"cost":0.00125}}'
    assert read(body).cost is None
    cost = read(body, dialect=Dialect(cost_in_usage=True)).cost
    assert cost is not None
    assert (str(cost.usd), cost.source) == ("0.00125", "provider")


def test_too_large_a_frame_is_an_error():
    decoder = PROTOCOL.decoder(new_id=counter(), bounds=AnswerBounds(frame=1000))
    events = check([*decoder.feed(b"data: {" + b"x" * 2000), *decoder.feed(b"more"), *decoder.close()])
    assert isinstance(events[-1], Failure)
    assert events[-1].kind == "answer_too_large"


def test_an_item_with_too_many_empty_parts_is_an_error():
    item = {"type": "reasoning", "id": "rs_1", "summary": [1, 1, 1]}
    body = json.dumps({"object": "response", "status": "completed", "output": [item]}).encode()
    for most, is_read in ((3, True), (2, False)):
        decoder = PROTOCOL.decoder(new_id=counter(), bounds=AnswerBounds(parts=most))
        last = check([*decoder.feed(body), *decoder.close()])[-1]
        assert isinstance(last, Finish) is is_read
        assert is_read or (last.kind, "at most 2 parts" in last.message) == ("answer_too_large", True)


def test_a_broken_connection():
    decoder = PROTOCOL.decoder(new_id=counter())
    events = decoder.feed(stream(BEGUN, item("message", content="Hi")))
    assert not decoder.ended
    events += decoder.fail(Failure("connection", "reset"))
    assert isinstance(check(events)[-1], Failure)
    decoder = PROTOCOL.decoder(new_id=counter())
    events = decoder.feed(stream(BEGUN, item("message", content="Hi"), DONE))
    assert decoder.ended
    events += decoder.fail(Failure("connection", "reset"))
    assert isinstance(check(events)[-1], Finish)


@for_each("value", [None, 0, "", [], {}, True, "x", 1.5, [[]], {"type": 3}, {"a": {"type": "b"}}])
def test_any_value_in_any_place(value: Any):
    """No shape raises, and every stream has one end."""
    whole: dict[str, Any] = {
        **item("function_call", id="fc", call_id="c", name="f", arguments="{}", status="completed"),
        "item_id": "fc", "content_index": 0, "delta": "d", "part": {"type": "output_text", "text": "t"},
    }  # fmt: skip
    kinds = [
        "response.output_item.added", "response.output_item.done", "response.output_text.delta",
        "response.content_part.done", "response.function_call_arguments.done", "response.reasoning_text.delta",
        "response.refusal.done", "response.completed", "response.created", "error", "strange",
    ]  # fmt: skip
    for kind in kinds:
        read_events(stream({"type": kind, "response": value}))
        for key in whole:
            read_events(stream(BEGUN, {**whole, "type": kind, key: value}, DONE))
        for key in whole["item"]:
            read_events(stream(BEGUN, {**whole, "type": kind, "item": {**whole["item"], key: value}}, DONE))
    for key in ("output", "status", "usage", "error", "incomplete_details", "model", "id", "created_at"):
        read_events(_json.encode({"object": "response", "status": "completed", "output": [], key: value}))
        read_events(_json.encode({"object": "response", "status": "incomplete", "output": [value], key: value}))


# ---------------------------------------------------------------- encoding

TEXT = (TextStart(0), TextDelta(0, "a"), TextDelta(0, "ü\n"), TextEnd(0))


def test_the_order_of_events():
    call = ToolCall("c1", "f", '{"a":1}')
    rows, encoder = write(
        Start("resp_up", "up", 3),
        *TEXT,
        ToolCallStart(1, "c1", "f"),
        ToolCallDelta(1, '{"a":'),
        ToolCallDelta(1, "1}"),
        ToolCallEnd(1, call),
        Deviation("missing-id"),
        Finish("tool_use"),
    )
    assert [row["type"].removeprefix("response.") for row in rows] == [
        "created", "in_progress",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.delta", "output_text.done",
        "content_part.done", "output_item.done",
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.delta",
        "function_call_arguments.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    assert {row.get("output_index") for row in rows[2:9]} == {0}
    assert {row.get("output_index") for row in rows[9:14]} == {1}
    assert rows[0]["response"]["id"] == "resp_up"
    last = rows[-1]["response"]
    assert [one["type"] for one in last["output"]] == ["message", "function_call"]
    assert last["output"][0]["content"][0]["text"] == "aü\n"
    assert last["output"][1]["arguments"] == '{"a":1}'
    assert json.loads(encoder.response) == last
    assert not encoder.aborted
    assert encoder.keepalive().startswith(b":")


def test_a_call_that_fails_before_it_left_is_an_error():
    for start in ((ToolCallStart(1, "c", "f"),), ()):
        failed = ToolCallFailed(1, "c", "f" if start else "", "cut", "tool call f: cut")
        rows, encoder = write(Start(), *TEXT, *start, failed, Finish("other"))
        assert rows[-1]["type"] == "response.failed"
        assert rows[-1]["response"]["error"] == {"code": "tool_call_failed", "message": "tool call f: cut"}
        assert [one["content"][0]["text"] for one in rows[-1]["response"]["output"]] == ["aü\n"]
        assert not encoder.aborted


def test_what_follows_a_call_that_failed_has_an_index_of_its_own():
    failed = ToolCallFailed(0, "c", "f", "cut", "cut")
    rows, encoder = write(Start(), ToolCallStart(0, "c", "f"), ToolCallDelta(0, "{"), failed, *TEXT, Finish("stop"))
    assert rows[-1]["type"] == "response.failed"
    assert [item["type"] for item in rows[-1]["response"]["output"]] == ["message"]
    added = [row for row in rows if row["type"] == "response.output_item.added"]
    assert [(row["output_index"], row["item"]["type"]) for row in added] == [(0, "function_call"), (1, "message")]
    assert encoder.aborted
    assert encoder.encode([TextDelta(0, "x"), Finish("stop")]) == b""


def test_a_failure_within_a_call_aborts():
    rows, encoder = write(Start(), ToolCallStart(0, "c", "f"), ToolCallDelta(0, "{"), Failure("connection", "reset"))
    assert [row["type"] for row in rows[-2:]] == ["response.function_call_arguments.delta", "response.failed"]
    assert encoder.aborted
    rows, encoder = write(Failure("context", "too long"))
    assert [row["type"] for row in rows] == ["response.created", "response.in_progress", "response.failed"]
    assert rows[-1]["response"]["error"] == {"code": "context_length_exceeded", "message": "too long"}
    assert not encoder.aborted


def test_a_filtered_answer():
    rows, _ = write(Start(), *TEXT, Finish("content_filter"))
    assert rows[-1]["response"]["incomplete_details"] == {"reason": "content_filter"}
    refusal = TextStart(0, Native("openai-responses", {"type": Raw(b'"refusal"')}))
    rows, _ = write(Start(), refusal, *TEXT[1:], Finish("content_filter"))
    assert rows[-1]["type"] == "response.completed"
    assert rows[-1]["response"]["output"][0]["content"] == [{"type": "refusal", "refusal": "aü\n"}]
    assert rows[4]["type"] == "response.refusal.delta"


def test_a_free_text_tool_called_as_a_function():
    """A target without free-text tools takes them as functions; the client is answered in its own form."""
    style = ReplyStyle(echo={"tools": Raw(b'[{"type":"custom","name":"patch"}]')})
    arguments = '{"input":"*** x\\n"}'
    rows, _ = write(
        Start(),
        ToolCallStart(0, "c", "patch"),
        ToolCallDelta(0, arguments),
        ToolCallEnd(0, ToolCall("c", "patch", arguments)),
        Finish("tool_use"),
        style=style,
    )
    assert rows[-1]["response"]["output"][0]["type"] == "custom_tool_call"
    assert rows[-1]["response"]["output"][0]["input"] == "*** x\n"
    assert [row["delta"] for row in rows if row["type"].endswith(".delta")] == ["*** x\n"]


def test_a_namespace_is_told_from_the_request():
    tools = b'[{"type":"namespace","name":"crm","tools":[{"type":"function","name":"find"}]}]'
    rows, _ = write(
        Start(),
        ToolCallStart(0, "c", "find"),
        ToolCallDelta(0, "{}"),
        ToolCallEnd(0, ToolCall("c", "find", "{}")),
        Finish("tool_use"),
        style=ReplyStyle(echo={"tools": Raw(tools)}),
    )
    assert rows[-1]["response"]["output"][0]["namespace"] == "crm"


def test_render_error_keeps_the_status():
    status, body = PROTOCOL.render_error(Failure("rate", "slow", status=429, code="rpm"))
    assert status == 429
    assert json.loads(body)["error"] == {
        "message": "slow", "type": "rate_limit_error", "param": None, "code": "rpm",
    }  # fmt: skip
    assert PROTOCOL.render_error(Failure("connection", "x"))[0] == 502


def test_a_delta_of_a_server_tool_may_be_of_any_type():
    wire = stream(
        BEGUN,
        {"type": "response.shell_call_output_content.delta", "output_index": 0, "delta": {"stdout": "a"}},
        {
            "type": "response.completed",
            "response": {"status": "completed", "output": [{"type": "shell_call", "id": "s"}]},
        },
    )
    assert read(wire).deviations == ()


@for_each("has_end", [True, False])
def test_a_call_whose_start_lacks_the_id_of_its_deltas_comes_once(has_end: bool):
    item = {"type": "function_call", "id": "f", "name": "ring", "arguments": ""}
    done = {**item, "call_id": "c", "arguments": '{"bell": 1}', "status": "completed"}
    deltas = [
        {"type": "response.function_call_arguments.delta", "call_id": "c", "delta": delta}
        for delta in ('{"bell"', ": 1}")
    ]
    end = [{"type": "response.output_item.done", "output_index": 0, "item": done}] if has_end else []
    rows = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        *deltas,
        *end,
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [done]}},
    ]
    body = "".join(f"data: {json.dumps(row)}\n\n" for row in rows).encode()
    reply = read(body, frozenset({"ring"}))
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [("c", "ring", '{"bell": 1}')]
    assert reply.error is None
