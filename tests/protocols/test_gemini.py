"""Gemini's protocol beyond the corpus: requests both ways, signatures, arrays, the decoder's limits."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from cases import counter
from conversations import NESTED, call, reply
from dragoman import _json
from dragoman.errors import WireError
from dragoman.events import (
    Failure,
    Finish,
    PartEvent,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    UsageUpdate,
    fold,
    unfold,
)
from dragoman.protocol import Dialect, ReplyStyle
from dragoman.protocols.gemini.protocol import PROTOCOL
from dragoman.protocols.gemini.request.schema import to_json_schema
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

PATH = "/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse"
HI = [{"role": "user", "parts": [{"text": "Hi"}]}]
WEATHER = Tool("get_weather", "Weather of a city.", _json.raw({"type": "object", "properties": {"city": {}}}))
DUMMY = "skip_thought_signature_validator"


def parse(path: str = PATH, **fields: Any) -> Any:
    return PROTOCOL.parse_request(json.dumps({"contents": HI} | fields).encode(), path=path)


def render(
    *messages: Message, model: str = "gemini-3-flash", dialect: Dialect | None = None, **fields: Any
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    request = Request(model, messages or (Message("user", (Text("Hi"),)),), **fields)
    rendered = PROTOCOL.render_request(request, dialect=dialect or Dialect())
    return json.loads(rendered.http.body), [(found.code, found.where) for found in rendered.deviations]


def decode(*chunks: Any) -> Any:
    decoder = PROTOCOL.decoder(new_id=counter())
    wire = "".join(f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n" for chunk in chunks)
    events = decoder.feed(wire.encode())
    return check([*events, *decoder.close()])


def chunk(*parts: Any, finish: str | None = None) -> Any:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})]}


def encoder(*, array: bool = False) -> Any:
    return PROTOCOL.encoder(new_id=counter(), model="m", created=0, style=ReplyStyle(array=array))


def chunks(wire: bytes) -> list[Any]:
    return [json.loads(event.removeprefix("data: ")) for event in wire.decode().split("\r\n\r\n") if event.strip()]


# ---------------------------------------------------------------- requests in


@for_each(("path", "model", "stream", "array"), [
    (PATH, "gemini-3-flash", True, False),
    ("/v1/models/gemini-3-flash:streamGenerateContent", "gemini-3-flash", True, True),
    ("/v1beta/models/a%2Fb%3Ac:generateContent?key=x", "a/b:c", False, False),
    ("/v1beta/models/granite4:3b:generateContent", "granite4:3b", False, False),
    ("/v1beta/models/models/x:generateContent", "x", False, False),
    ("/v1beta/models/models%2Fx:generateContent", "x", False, False),
    ("/v1beta/tunedModels/mine:streamGenerateContent?key=x&alt=sse", "mine", True, False),
    ("/v1beta1/projects/p/locations/l/publishers/google/models/g:generateContent", "g", False, False),
    ("/v1beta/models/g%3AgenerateContent", "g", False, False),
])  # fmt: skip
def test_the_path_names_model_and_verb(path: str, model: str, stream: bool, array: bool):
    parsed = parse(path)
    assert (parsed.request.model, parsed.request.stream, parsed.style.array) == (model, stream, array)


@for_each("path", ["/v1beta/models/x:countTokens", "/v1beta/models/x", "/v1beta/:generateContent"])
def test_other_paths_are_not_found(path: str):
    with pytest.raises(WireError) as caught:
        parse(path)
    assert caught.value.status in (400, 404)


@for_each("body", [b"", b"[]", b"{}", b'{"contents":3}', b'{"contents":[3]}', b"{"])
def test_what_is_no_request(body: bytes):
    with pytest.raises(WireError):
        PROTOCOL.parse_request(body, path=PATH)


def test_both_spellings_give_the_same_request():
    camel = {
        "systemInstruction": {"parts": [{"text": "Brief."}]},
        "contents": [
            *HI,
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}]},
            {"parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object"}}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "generationConfig": {
            "maxOutputTokens": 5, "topK": 3, "stopSequences": ["x"], "thinkingConfig": {"thinkingBudget": 64},
            "responseMimeType": "application/json", "responseJsonSchema": {"type": "object"},
        },
    }  # fmt: skip

    def snake(value: Any) -> Any:
        if isinstance(value, list):
            return [snake(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {
            "".join("_" + letter.lower() if letter.isupper() else letter for letter in key): snake(item)
            for key, item in value.items()
        }

    one, other = (PROTOCOL.parse_request(json.dumps(body).encode(), path=PATH) for body in (camel, snake(camel)))
    assert msgspec.structs.replace(one.request, params=Params(), native=None, messages=()) == msgspec.structs.replace(
        other.request, params=Params(), native=None, messages=()
    )
    assert [message.parts for message in one.request.messages[:3]] == [
        message.parts for message in other.request.messages[:3]
    ]
    assert one.request.tool_choice == Named("f")
    assert one.request.params.reasoning == other.request.params.reasoning == Reasoning(budget=64)
    assert one.request.params.max_tokens == other.request.params.max_tokens == 5
    result = other.request.messages[3].parts[0]
    assert (result.call_id, result.text) == (other.request.messages[2].tool_calls[0].id, "x")


@for_each(("response", "text", "is_error"), [
    ({"result": "a"}, "a", False), ({"output": "a"}, "a", False), ({"content": "a"}, "a", False),
    ({"error": "bad"}, "bad", True), ({"output": {"n": 1.50}}, '{"n": 1.5}', False), ({}, "", False),
    ({"temperature": 3, "unit": "C"}, '{"temperature": 3, "unit": "C"}', False),
    ({"error": {"code": 5}, "ok": False}, '{"error": {"code": 5}, "ok": false}', True),
    ({"error": None, "result": "fine"}, '{"error": null, "result": "fine"}', False),
])  # fmt: skip
def test_function_responses_of_any_key(response: Any, text: str, is_error: bool):
    contents = [*HI, {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": response}}]}]
    parsed = parse(contents=contents).request
    result = parsed.messages[1].parts[0]
    assert (result.text, result.is_error) == (text, is_error)
    body = json.loads(PROTOCOL.render_request(parsed).http.body)
    assert body["contents"][1]["parts"][0]["functionResponse"]["response"] == response


def test_results_and_words_in_one_content():
    contents = [
        {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}} for name in ("f", "g", "f")]},
        {
            "role": "function",
            "parts": [
                {"functionResponse": {"name": "g", "response": {"result": "2"}}},
                {"text": "Well?"},
                {"functionResponse": {"name": "f", "response": {"result": "1"}}},
                {"functionResponse": {"name": "f", "response": {"result": "3"}}},
            ],
        },
    ]
    messages = parse(contents=contents).request.messages
    assert [message.role for message in messages] == ["assistant", "tool", "user"]
    ids = [made.id for made in messages[0].tool_calls]
    assert [part.call_id for part in messages[1].parts] == [ids[1], ids[0], ids[2]]
    assert messages[2].text == "Well?"


def test_schemas_become_json_schema():
    own = {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "enum": ["a"], "nullable": True},
            "list": {"type": "ARRAY", "items": {"type": "INTEGER"}, "min_items": "2"},
            "either": {"any_of": [{"type": "NUMBER"}, {"type": "BOOLEAN"}], "nullable": True},
        },
        "required": ["type"],
        "propertyOrdering": ["type", "list"],
    }
    assert to_json_schema(own) == {
        "type": "object",
        "properties": {
            "type": {"type": ["string", "null"], "enum": ["a", None]},
            "list": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
            "either": {"anyOf": [{"type": "number"}, {"type": "boolean"}, {"type": "null"}]},
        },
        "required": ["type"],
    }


@for_each(("config", "expected"), [
    ({"thinkingBudget": 0}, Reasoning("none")), ({"thinkingBudget": -1}, Reasoning()),
    ({"thinkingBudget": 99}, Reasoning(budget=99)), ({"thinkingLevel": "HIGH"}, Reasoning("high")),
    ({"includeThoughts": True}, Reasoning()), ({"includeThoughts": False}, None), ({}, None),
])  # fmt: skip
def test_thinking(config: Any, expected: Any):
    assert parse(generationConfig={"thinkingConfig": config}).request.params.reasoning == expected


def test_thoughts_are_not_shown_to_who_did_not_ask():
    request = parse(generationConfig={"thinkingConfig": {"thinkingBudget": 99}}).request
    config = json.loads(PROTOCOL.render_request(request).http.body)["generationConfig"]
    assert config["thinkingConfig"] == {"thinkingBudget": 99, "includeThoughts": False}


@for_each(("calling", "expected"), [
    ({"mode": "AUTO"}, "auto"), ({"mode": "any"}, "any"), ({"mode": "NONE"}, "none"), ({"mode": "VALIDATED"}, "auto"),
    ({"mode": "ANY", "allowedFunctionNames": ["f"]}, Named("f")),
    ({"mode": "ANY", "allowedFunctionNames": ["f", "g"]}, "any"),
])  # fmt: skip
def test_tool_choice(calling: Any, expected: Any):
    tools = [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}]
    request = parse(tools=tools, toolConfig={"functionCallingConfig": calling}).request
    assert request.tool_choice == expected
    body = json.loads(PROTOCOL.render_request(request).http.body)
    again = body.get("toolConfig", {}).get("functionCallingConfig", {"mode": "AUTO"})
    assert again == calling | {"mode": calling["mode"].upper()}


def test_what_is_not_modelled_is_said_again():
    request = parse(
        safetySettings=[{"category": "C"}], cachedContent="cachedContents/x", labels={"a": "b"},
        tools=[{"googleSearch": {}}, {"functionDeclarations": [{"name": "f", "behavior": "NON_BLOCKING"}]}],
        generationConfig={"candidateCount": 1, "topP": 0.5},
        contents=[{"role": "user", "parts": [{"text": "See", "partMetadata": {"k": 1}}, {"mystery": {"n": 1.50}}]}],
    ).request  # fmt: skip
    body = json.loads(PROTOCOL.render_request(request).http.body)
    assert body["safetySettings"] == [{"category": "C"}]
    assert body["cachedContent"] == "cachedContents/x"
    assert body["labels"] == {"a": "b"}
    assert body["tools"] == [
        {"functionDeclarations": [{"name": "f", "behavior": "NON_BLOCKING"}]},
        {"googleSearch": {}},
    ]
    assert body["generationConfig"] == {"topP": 0.5, "candidateCount": 1}
    assert body["contents"][0]["parts"] == [{"text": "See", "partMetadata": {"k": 1}}, {"mystery": {"n": 1.5}}]


def test_a_stand_in_signature_is_no_signature():
    part = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": DUMMY}
    request = parse(contents=[{"role": "model", "parts": [part]}]).request
    assert request.messages[0].tool_calls[0].signature is None


# ---------------------------------------------------------------- requests out


def test_round_trip():
    request = Request(
        "gemini-3-flash",
        (
            Message("system", (Text("Be brief."),)),
            Message("user", (Text("Look"), Media("image", "image/png", "iVBORw0KGgo="), Text("there"))),
            Message("assistant", (Thinking("hm", "c2ln"), Text("So", "c2lo"), call(1, NESTED), Text("x"),
                                  call(2, "{}"))),
            Message("tool", (ToolResult(call(1, "").id, "write_file", (Text("done"),)),
                             ToolResult(call(2, "").id, "write_file", (Text("no"),), is_error=True))),
            Message("user", (Media("document", None, None, "https://example.org/files/a"),)),
        ),
        (WEATHER, Tool("ping")),
        Named("ping"),
        Params(100, 0.5, 0.9, 5, ("END",), 7, 0.1, 0.2, Reasoning("high"), ResponseSchema()),
        stream=False,
    )  # fmt: skip
    rendered = PROTOCOL.render_request(request)
    assert rendered.deviations == ()
    assert rendered.http.path == "/models/gemini-3-flash:generateContent"
    assert PROTOCOL.parse_request(rendered.http.body, path=rendered.http.path).request == request


def test_the_model_is_escaped():
    rendered = PROTOCOL.render_request(Request("a b/ü:1", ()))
    assert rendered.http.path == "/models/a%20b/%C3%BC%3A1:streamGenerateContent?alt=sse"


def test_no_tools_no_key():
    body, _ = render(tool_choice="any")
    assert not {"tools", "toolConfig", "systemInstruction", "generationConfig"} & set(body)


def test_later_system_messages_move():
    body, deviations = render(
        Message("system", (Text("one"),)), Message("user", (Text("Hi"),)), Message("system", (Text("two"),))
    )
    assert body["systemInstruction"] == {"parts": [{"text": "one"}, {"text": "two"}]}
    assert len(body["contents"]) == 1
    assert deviations == [("moved", "messages[2]")]


@for_each(("model", "signed"), [("gemini-3-flash", True), ("gemini-2.5-pro", False), ("other", True)])
def test_the_first_call_of_a_step_has_a_signature(model: str, signed: bool):
    body, _ = render(
        Message("user", (Text("Hi"),)),
        Message("assistant", (Text("So"), call(1, "{}"), call(2, "{}"))),
        Message("tool", (ToolResult(call(1, "").id, "a", ()),)),
        Message("tool", (ToolResult(call(2, "").id, "", ()),)),
        Message("assistant", (ToolCall("c", "f", "{}", signature="c2ln"),)),
        model=model,
    )
    signatures = [part.get("thoughtSignature") for content in body["contents"] for part in content["parts"]]
    assert signatures == [None, None, DUMMY if signed else None, None, None, None, "c2ln"]
    assert [len(content["parts"]) for content in body["contents"]] == [1, 3, 2, 1]
    names = [part["functionResponse"]["name"] for part in body["contents"][2]["parts"]]
    assert names == ["a", "write_file"]


@for_each(("model", "reasoning", "config", "lost"), [
    ("gemini-3-flash", Reasoning("low"), {"thinkingLevel": "low", "includeThoughts": True}, []),
    ("gemini-3-flash", Reasoning("none"), {"thinkingLevel": "minimal"}, ["changed"]),
    ("gemini-3.1-pro", Reasoning("minimal"), {"thinkingLevel": "low", "includeThoughts": True}, ["changed"]),
    ("gemini-3-flash", Reasoning("max"), {"thinkingLevel": "high", "includeThoughts": True}, ["changed"]),
    ("gemini-2.5-flash", Reasoning("low"), {"thinkingBudget": 1024, "includeThoughts": True}, []),
    ("gemini-2.5-flash", Reasoning("none"), {"thinkingBudget": 0}, []),
    ("gemini-2.5-flash", Reasoning(budget=77), {"thinkingBudget": 77, "includeThoughts": True}, []),
    ("gemini-3-flash", Reasoning(), {"includeThoughts": True}, []),
])  # fmt: skip
def test_reasoning(model: str, reasoning: Reasoning, config: Any, lost: list[str]):
    body, deviations = render(model=model, params=Params(reasoning=reasoning))
    assert body["generationConfig"]["thinkingConfig"] == config
    assert [code for code, _ in deviations] == lost


def test_nothing_is_lost_in_silence():
    _, deviations = render(
        Message("system", (Media("image", "image/png", "AA"),)),
        Message("user", (Media("image", url="https://example.org/a.png"),)),
        Message(
            "assistant",
            (
                Thinking("", redacted="data"),
                ToolCall("c", "f", "[1"),
                Opaque("openai-responses", _json.raw({})),
            ),
        ),
        dialect=Dialect(supports_image_url=False),
        tools=(Tool("shell", kind="custom"),),
        params=Params(parallel_tools=False, cache="long", num_ctx=9, stop=("a", "b", "c", "d", "e", "f")),
    )
    assert sorted(deviations) == sorted([
        ("dropped", "messages[0].parts[0]"), ("dropped", "messages[1].parts[0]"), ("dropped", "messages[2].parts[0]"),
        ("changed", "messages[0]"),
        ("changed", "messages[2].parts[1].arguments"), ("untranslated", "messages[2].parts[2].<part>"),
        ("changed", "tools.shell"), ("dropped", "params.parallel_tools"), ("dropped", "params.cache"),
        ("dropped", "params.num_ctx"),
        ("changed", "params.stop"),
    ])  # fmt: skip


# ---------------------------------------------------------------- responses out


def test_signatures_leave_with_their_text_or_after_it():
    text = [Start("r"), TextStart(0), TextDelta(0, "a"), TextDelta(0, "b"), TextEnd(0, signature="c2ln")]
    at_once = chunks(encoder().encode([*text, Finish("stop")]))
    parts = [part for found in at_once for part in found["candidates"][0]["content"]["parts"]]
    assert parts == [{"text": "a"}, {"text": "b", "thoughtSignature": "c2ln"}, {"text": ""}]
    machine = encoder()
    one_by_one = chunks(b"".join(machine.encode([event]) for event in [*text, Finish("stop")]))
    parts = [part for found in one_by_one for part in found["candidates"][0]["content"]["parts"]]
    assert parts == [{"text": "a"}, {"text": "b"}, {"text": "", "thoughtSignature": "c2ln"}, {"text": ""}]
    thought = [Start(), ThinkingStart(0), ThinkingDelta(0, "t"), ThinkingEnd(0, "c2ln"), Finish("stop")]
    first = chunks(encoder().encode(thought))[0]["candidates"][0]["content"]["parts"]
    assert first == [{"text": "t", "thought": True, "thoughtSignature": "c2ln"}]


@for_each("size", [1, 3, 100])
def test_an_array(size: int):
    events = unfold(reply("text-call-text-call"))
    machine = encoder(array=True)
    wire = machine.keepalive()
    for start in range(0, len(events), size):
        wire += machine.encode(events[start : start + size]) + machine.keepalive()
    assert [type(item) for item in json.loads(wire)] == [dict] * 5
    decoder = PROTOCOL.decoder(new_id=counter())
    assert fold(check([*decoder.feed(wire), *decoder.close()])).parts == reply("text-call-text-call").parts


def test_a_failure_in_an_array():
    machine = encoder(array=True)
    wire = machine.encode([Start(), TextStart(0), TextDelta(0, "a")]) + machine.encode([Failure("rate", "slow")])
    assert json.loads(wire)[1]["error"] == {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}
    assert json.loads(encoder(array=True).encode([Failure("rate", "slow")]))[0]["error"]["code"] == 429


def test_arguments_stay_in_one_event():
    spread = ToolCall("c", "f", '{\n  "a": "x\\ny",\r\n\r\n  "b": 1.50\n}')
    events = [Start(), ToolCallStart(0, "c", "f"), ToolCallDelta(0, spread.arguments), ToolCallEnd(0, spread)]
    wire = encoder().encode([*events, Finish("tool_use")])
    first = chunks(wire)[0]["candidates"][0]["content"]["parts"][0]
    assert first == {"functionCall": {"id": "c", "name": "f", "args": {"a": "x\ny", "b": 1.5}}}
    assert b"1.50" in wire


def test_a_call_leaves_only_when_it_is_whole():
    machine = encoder()
    assert machine.encode([Start(), ToolCallStart(0, "c", "f"), ToolCallDelta(0, '{"secret":')]) == b""
    rest = machine.encode([ToolCallFailed(0, "c", "f", "cut", "tool call f: cut", '{"secret":'), Finish("other")])
    (last,) = chunks(rest)
    assert last["candidates"][0]["content"]["parts"] == [{"text": ""}]
    assert last["candidates"][0]["finishReason"] == "MALFORMED_FUNCTION_CALL"
    assert last["candidates"][0]["finishMessage"] == "tool call f: cut"
    assert b"secret" not in rest
    assert not machine.aborted


@for_each(("reason", "native", "word"), [
    ("stop", None, "STOP"), ("tool_use", "tool_calls", "STOP"), ("length", "length", "MAX_TOKENS"),
    ("content_filter", "refusal", "SAFETY"), ("content_filter", "RECITATION", "RECITATION"),
    ("other", "pause_turn", "OTHER"), ("other", "LANGUAGE", "LANGUAGE"), ("tool_use", "STOP", "STOP"),
])  # fmt: skip
def test_finish_reason(reason: Any, native: Any, word: str):
    assert chunks(encoder().encode([Start(), Finish(reason, native)]))[-1]["candidates"][0]["finishReason"] == word


def test_usage():
    usage = Usage(input=100, output=50, cache_read=30, reasoning=20)
    last = chunks(encoder().encode([Start(), UsageUpdate(usage), Finish("stop", usage=usage)]))[-1]
    assert last["usageMetadata"] == {
        "promptTokenCount": 100, "candidatesTokenCount": 30, "totalTokenCount": 150, "thoughtsTokenCount": 20,
        "cachedContentTokenCount": 30,
    }  # fmt: skip
    assert "usageMetadata" not in chunks(encoder().encode([Start(), Finish("stop")]))[-1]


# ---------------------------------------------------------------- responses in


def test_a_signed_part_is_never_merged():
    seen = fold(decode(
        chunk({"text": "a"}), chunk({"text": "b", "thoughtSignature": "c2ln"}), chunk({"text": "c"}),
        chunk({"text": "", "thoughtSignature": "c2lo"}),
        chunk({"text": "t", "thought": True, "thoughtSignature": "c2k="}),
        chunk({"text": "u", "thought": True}, finish="STOP"),
    ))  # fmt: skip
    assert seen.parts == (
        Text("a"), Text("b", "c2ln"), Text("c"), Text("", "c2lo"), Thinking("t", "c2k="), Thinking("u"),
    )  # fmt: skip


def test_calls_keep_signature_number_forms_and_key_order():
    arguments = '{"z":1.50,"a":[1e3,-0.0],"n":12345678901234567890}'
    part = '{"functionCall":{"name":"f","args":%s},"thoughtSignature":"c2ln"}' % arguments
    seen = fold(decode('{"candidates":[{"content":{"parts":[%s]},"finishReason":"STOP"}]}' % part))
    assert seen.tool_calls == [ToolCall(f"call_{0:024d}", "f", arguments, signature="c2ln")]


def test_media_and_unknown_parts_survive():
    parts = [
        {"inlineData": {"mimeType": "image/png", "data": "AA"}, "thoughtSignature": "c2ln"},
        {"fileData": {"fileUri": "https://example.org/a", "mimeType": "video/mp4"}},
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"text": None, "hologram": {"n": 1}},
        {"inlineData": {"mimeType": "image/png", "data": "BB"}, "thought": True},
    ]
    events = decode(chunk(*parts, finish="STOP"))
    seen = fold(events)
    assert [type(part).__name__ for part in seen.parts] == ["Media", "Media", "Opaque", "Opaque", "Opaque"]
    assert seen.parts[0].native == Native("gemini-generate", {"thoughtSignature": _json.raw("c2ln")})
    assert [found.seen for found in seen.deviations] == ["hologram"]
    wire = encoder().encode(events)
    written = [part for found in chunks(wire)[:-1] for part in found["candidates"][0]["content"]["parts"]]
    assert written == [parts[0], parts[1], parts[2], {"hologram": {"n": 1}}, parts[4]]
    assert sum(type(event) is PartEvent for event in events) == 5


def test_a_refused_turn_keeps_what_stood_before_it():
    seen = fold(decode(
        chunk({"functionCall": {"name": "f", "args": {}}}), chunk(finish="MALFORMED_FUNCTION_CALL"),
        {"usageMetadata": {"promptTokenCount": 5}},
    ))  # fmt: skip
    assert [made.name for made in seen.tool_calls] == ["f"]
    assert (seen.stop_reason, seen.usage.input) == ("error", 5)
    assert seen.error == Failure(
        "wire", "the model's turn was not usable: MALFORMED_FUNCTION_CALL", usage=Usage(input=5),
        code="MALFORMED_FUNCTION_CALL",
    )  # fmt: skip


@for_each("pieces", [
    [{"jsonPath": "$", "stringValue": "x"}], [{"jsonPath": "a", "stringValue": "x"}],
    [{"jsonPath": "$.a[5]", "boolValue": True}],
    [{"jsonPath": "$.a", "boolValue": True}, {"jsonPath": "$.a.b", "boolValue": True}],
    [{"jsonPath": "$.a[0]", "boolValue": True}, {"jsonPath": "$.a.b", "boolValue": True}],
    [{"jsonPath": "$" + ".a" * 200, "boolValue": True}],
])  # fmt: skip
def test_streamed_arguments_that_make_no_object(pieces: list[Any]):
    seen = fold(decode(chunk({"functionCall": {"name": "f", "partialArgs": pieces}}, finish="STOP")))
    assert [failed.kind for failed in seen.failed_calls] == ["unreadable"]
    assert seen.stop_reason == "error"


@for_each("value", [
    {"stringValue": ["x"]}, {"stringValue": {"a": 1}}, {"numberValue": [1]}, {"numberValue": {"a": 1}},
    {"value": "x"}, {"stringValue": "x", "args": {"b": 1}},
])  # fmt: skip
def test_streamed_arguments_with_other_values_are_refused(value: dict[str, Any]):
    pieces = [{"jsonPath": "$.a", "boolValue": True}, {"jsonPath": "$.b", **value}]
    seen = fold(decode(chunk({"functionCall": {"name": "f", "partialArgs": pieces}}, finish="STOP")))
    assert seen.tool_calls == [] and seen.failed_calls and seen.stop_reason == "error"


def test_streamed_arguments_in_both_spellings():
    wire = '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f",%s}}]},"finishReason":"STOP"}]}'
    camel = '"partialArgs":[{"jsonPath":"$.n","numberValue":1.50},{"jsonPath":"$.s","stringValue":"x"}]'
    snake = '"partial_args":[{"json_path":"$.n","number_value":1.50},{"json_path":"$.s","string_value":"x"}]'
    assert fold(decode(wire % camel)).tool_calls[0].arguments == '{"n":1.50,"s":"x"}'
    assert fold(decode(wire % snake)).tool_calls[0].values() == {"n": 1.5, "s": "x"}


def test_a_broken_connection():
    decoder = PROTOCOL.decoder(new_id=counter())
    wire = f"data: {json.dumps(chunk({'text': 'Ho'}, finish='STOP'))}\n\n".encode()
    events = [*decoder.feed(wire), *decoder.fail(Failure("connection", "reset"))]
    assert fold(check(events)).error == Failure("connection", "reset"), "more could have come"


def test_errors_say_when_to_try_again():
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
    body = {"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": details}}
    failure = PROTOCOL.parse_error(429, json.dumps(body).encode())
    assert (failure.kind, failure.message, failure.retry_after) == ("rate", "slow", 34.5)


@for_each("piece", [{"jsonPath": "$.a", "numberValue": 2}, {"jsonPath": "$.c", "stringValue": "y"}])
def test_pieces_beside_whole_arguments_that_tell_otherwise_fail_the_call(piece: Any):
    call = {"name": "f", "args": {"a": 1, "b": "x"}, "partialArgs": [piece]}
    events = decode(chunk({"functionCall": call}, finish="STOP"))
    assert [event.kind for event in events if isinstance(event, ToolCallFailed)] == ["unreadable"]
    assert not any(isinstance(event, ToolCallEnd) for event in events)


def test_a_whole_call_ends_the_one_whose_pieces_came_before():
    begun = {"name": "f", "partialArgs": [{"jsonPath": "$.a", "numberValue": 1}], "willContinue": True}
    whole = {"name": "g", "args": {"b": 2}}
    events = decode(chunk({"functionCall": begun}), chunk({"functionCall": whole}, finish="STOP"))
    calls = [event.call for event in events if isinstance(event, ToolCallEnd)]
    assert [(call.name, call.arguments) for call in calls] == [("f", '{"a":1}'), ("g", '{"b": 2}')]


def test_a_whole_call_under_the_id_of_one_in_pieces_and_another_name_is_refused():
    pieces = {"id": "c1", "name": "f", "partialArgs": [{"jsonPath": "$.a", "numberValue": 1}]}
    whole = {"id": "c1", "name": "g", "args": {"b": 2}}
    events = decode(chunk({"functionCall": pieces}), chunk({"functionCall": whole}, finish="STOP"))
    assert "g" not in [event.call.name for event in events if isinstance(event, ToolCallEnd)]
