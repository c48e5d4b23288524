"""Tools asked for without tools: what is sent in each way, and answers of each way read as the native ones are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import counter
from dragoman import _json
from dragoman.events import Deviation, Event, Reply, TextDelta, ToolCallDelta, fold, unfold
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.anthropic.request.answer_schema import answer_schema
from dragoman.response_stages import Policy, stages_for
from dragoman.tool_emulation import ask, reading_mode, without_tools
from dragoman.types import (
    Media,
    Message,
    Named,
    Native,
    Params,
    Part,
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

WAYS = ("schema", "prompted")


def tool(name: str, description: str = "", **schema) -> Tool:
    return Tool(name, description, _json.raw({"type": "object", **schema}))


TOOLS = (
    tool(
        "write_file",
        "Writes a file.",
        properties={"path": {"type": "string"}, "content": {"type": "string"}, "mode": {"type": "number"}},
        required=["path", "content"],
    ),
    tool("ping"),
)
CONTENT = 'He said "no" \\ é 東京 🌍\n</tool_call>\t{"a": [1, 2]}'
FILE = json.dumps({"path": "a.py", "content": CONTENT, "mode": 420})
EXPONENT = '{"path":"n","content":"","mode":4.20e2}'


def call(name: str, arguments: str, call_id: str = "call_1") -> ToolCall:
    return ToolCall(call_id, name, arguments)


#: What the model says: parts of the native answer, and the text that stands for it in each way.
ANSWERS: dict[str, tuple[tuple[Part, ...], dict[str, str]]] = {
    "call": (
        (call("write_file", FILE),),
        {
            "schema": f'{{"tool_calls": [{{"name": "write_file", "arguments": {FILE}}}]}}',
            "prompted": f'<tool_call>{{"name": "write_file", "arguments": {FILE}}}</tool_call>',
        },
    ),
    "several": (
        (call("ping", "{}"), call("write_file", EXPONENT, "call_2"), call("ping", "{}", "call_3")),
        {
            "schema": '{"tool_calls":[{"name":"ping","arguments":{}},\n'
            f'{{"arguments":{EXPONENT},"name":"write_file"}},{{"name":"ping","arguments":{{}}}}]}}\n',
            "prompted": '<tool_call>\n{"name":"ping","arguments":{}}\n</tool_call>\n'
            f'<tool_call>{{"arguments":{EXPONENT},"name":"write_file"}}</tool_call>'
            '<tool_call>{"name":"ping","arguments":{}}</tool_call>',
        },
    ),
    "words": ((Text(CONTENT),), {"schema": json.dumps({"answer": CONTENT}), "prompted": CONTENT}),
    "thinking": (
        (Thinking("Ping it."), call("ping", "{}")),
        {
            "schema": '{"tool_calls": [{"name": "ping", "arguments": {}}]}',
            "prompted": '<tool_call>{"name": "ping", "arguments": {}}</tool_call>',
        },
    ),
}


def reply_of(parts: tuple[Part, ...]) -> Reply:
    reason = "tool_use" if any(isinstance(part, ToolCall) for part in parts) else "stop"
    return Reply(
        id="resp_1", model="m", created=1_750_000_000, parts=parts, stop_reason=reason, native_reason=None,
        usage=Usage(input=10, output=5), cost=None, error=None, failed_calls=(), deviations=(),
    )  # fmt: skip


def read(protocol: str, answer: Reply, way: str, *, size: int = 1_000_000, strict: bool = True) -> list[Event]:
    """The events of an answer that a provider of that protocol streams, its body cut in pieces."""
    encoder = PROTOCOLS[protocol].encoder(new_id=counter(), model="m", created=1_750_000_000)
    wire = encoder.encode(unfold(answer))
    stages = stages_for(TOOLS, Policy(way=way, strict=strict), new_id=counter())
    names = frozenset(tool.name for tool in TOOLS)
    reader = Reader(PROTOCOLS[protocol].decoder(new_id=counter(), offered_names=names), stages)
    events: list[Event] = []
    for start in range(0, len(wire), size):
        events += reader.feed(wire[start : start + size])
    return check([*events, *reader.close()])


def content(events: list[Event]) -> list:
    """What an answer says: its parts without ids, its end, its counts."""
    reply = fold(events)
    parts = [
        (part.name, part.arguments) if isinstance(part, ToolCall) else (type(part).__name__, part.text)
        for part in reply.parts
    ]
    return [parts, reply.stop_reason, reply.usage, reply.error, reply.failed_calls, reply.deviations]


@for_each("size", [1, 13, 1_000_000])
@for_each("shape", ANSWERS)
@for_each("way", WAYS)
@for_each("protocol", PROTOCOLS)
def test_an_answer_is_read_as_the_native_one(protocol: str, way: str, shape: str, size: int):
    parts, texts = ANSWERS[shape]
    written = (*(part for part in parts if isinstance(part, Thinking)), Text(texts[way]))
    said = read(protocol, reply_of(written), way, size=size)
    native = fold(read(protocol, reply_of(parts), "native"))
    seen = fold(said)
    assert [type(part) for part in seen.parts] == [type(part) for part in native.parts]
    assert [part.values() for part in seen.tool_calls] == [part.values() for part in native.tool_calls]
    assert [part.name for part in seen.tool_calls] == [part.name for part in native.tool_calls]
    assert (seen.text, seen.thinking) == (native.text, native.thinking)
    assert (seen.stop_reason, seen.usage, seen.error) == (native.stop_reason, native.usage, native.error)
    assert [event for event in said if isinstance(event, Deviation)] == []


def play(pieces: list[str], way: str = "schema", *, reason: str = "stop", **policy) -> list[Event]:
    """The events of a chat stream whose text deltas are these."""
    deltas = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    deltas.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    stages = stages_for(TOOLS, Policy(way=way, **policy), new_id=counter())
    reader = Reader(PROTOCOLS["openai-chat"].decoder(new_id=counter()), stages)
    events: list[Event] = []
    for delta in deltas:
        events += reader.feed(f"data: {json.dumps(delta)}\n\n".encode())
    return check([*events, *reader.feed(b"data: [DONE]\n\n"), *reader.close()])


CUTS = {
    "calls": ANSWERS["several"][1]["schema"],
    "words": r'{"answer": "a\nb \ud83c\udf0d \\ud83c \u00e9 \"q\" \/ \q \ud800."}',
    "words of the caller's own schema": '{"answer": {"city": "Paris", "days": [1, 2.50]}}',
    "both": '{"answer": "First.", "tool_calls": [{"name": "ping", "arguments": {}}]}',
    "a fence": '```json\n{"answer": "x"}\n```\n',
    "text behind": '{"tool_calls": [{"name": "ping", "arguments": {}}]}\n Done.',
    "another object": ' {"city": "Paris"}',
    "other words": "Paris is sunny. {not json",
    "a key that nobody asked for": '{"answer": "x", "mood": {"a": "}"}}',
    "no call": '{"tool_calls": []}',
    "a call without a name": '{"tool_calls": [{"arguments": {}}]}',
    "a broken call behind a good one": '{"tool_calls": [{"name": "ping", "arguments": {}}, oops]}',
    "an unescaped quote": '{"answer": "He said "no"."}',
    "almost JSON": '{"tool_calls": [{"name": "write_file", "arguments": {\'path\': \'p\', \'content\': True,}}]}',
    "unknown tool": '{"tool_calls": [{"name": "pong", "arguments": {}}]}',
}


@pytest.mark.parametrize("name", CUTS)
def test_the_cut_changes_nothing(name: str):
    text = CUTS[name]
    whole = fold(play([text]))
    assert fold(play(list(text))) == whole
    for cut in range(1, len(text)):
        assert fold(play([text[:cut], text[cut:]])) == whole, f"cut at {cut}"


MARKS = ['"', "\\", "{", "}", "[", "]", ",", ":", "```json", "tool_calls", '"name"', "\\u12", "\\ud83d", "null", " ",
         "<tool_call>", "</tool_call>", '"answer"']  # fmt: skip


@given(
    text=st.sampled_from([*CUTS.values(), *(texts[way] for _, texts in ANSWERS.values() for way in WAYS)]),
    changes=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), st.sampled_from(["", *MARKS])), max_size=4),
    way=st.sampled_from(WAYS),
)
@settings(max_examples=examples(200), deadline=None)
def test_damaged_answers_keep_to_the_grammar_however_they_are_cut(text, changes, way):
    for place, size, mark in changes:
        start = int(place * len(text))
        text = text[:start] + mark + text[start + size :]
    assert fold(play(list(text), way)) == fold(play([text], way))


def outcome(text: str, **more) -> tuple:
    reply = fold(play([text], **more))
    calls = [(part.name, part.arguments) for part in reply.tool_calls]
    return calls, reply.text, [(part.name, part.kind) for part in reply.failed_calls], reply.stop_reason


@for_each(
    ("name", "calls", "text", "failed", "reason"),
    [
        ("words", [], 'a\nb 🌍 \\ud83c é "q" / \\q \ufffd.', [], "stop"),
        ("words of the caller's own schema", [], '{"city": "Paris", "days": [1, 2.50]}', [], "stop"),
        ("both", [("ping", "{}")], "First.", [], "tool_use"),
        ("a fence", [], "x", [], "stop"),
        ("text behind", [("ping", "{}")], "\n Done.", [], "tool_use"),
        ("another object", [], ' {"city": "Paris"}', [], "stop"),
        ("other words", [], "Paris is sunny. {not json", [], "stop"),
        ("a key that nobody asked for", [], "x", [], "stop"),
        ("no call", [], "", [], "stop"),
        ("a call without a name", [], "", [("", "unreadable")], "error"),
        ("a broken call behind a good one", [("ping", "{}")], "", [("", "unreadable")], "tool_use"),
        ("an unescaped quote", [], 'He said no"."}', [], "stop"),
        ("almost JSON", [("write_file", '{"path": "p", "content": "true"}')], "", [], "tool_use"),
        ("unknown tool", [("pong", "{}")], "", [], "tool_use"),
    ],
)
def test_what_comes_of_it(name, calls, text, failed, reason):
    assert outcome(CUTS[name]) == (calls, text, failed, reason)


@for_each("name", ["another object", "other words", "text behind", "a key that nobody asked for", "an unescaped quote"])
def test_what_is_not_of_the_form_is_a_deviation(name: str):
    codes = [event.code for event in play([CUTS[name]]) if isinstance(event, Deviation)]
    assert codes == ["structured-answer"]


MEMBERS = (
    ("name", '"ping"'),
    ("name", '"write_file"'),
    ("arguments", '{"path": "a", "content": ""}'),
    ("arguments", '{"path": "b", "content": ""}'),
    ("args", '{"path": "c"}'),
    ("id", '"call_1"'),
)


@given(st.lists(st.sampled_from(MEMBERS), min_size=1, max_size=4), st.integers(1, 9))
def test_a_call_is_told_once(members: list[tuple[str, str]], size: int):
    """Two names, arguments twice, and a key that may hold them where none came: no call runs."""
    text = '{"tool_calls": [{' + ", ".join(f'"{key}": {value}' for key, value in members) + "}]}"
    names = {value for key, value in members if key == "name"}
    arguments = [value for key, value in members if key == "arguments"]
    is_told_once = len(names) == 1 and (len(arguments) == 1 or {key for key, _ in members} == {"name"})
    for pieces in ([text], [text[start : start + size] for start in range(0, len(text), size)]):
        reply = fold(play(pieces))
        calls = [(json.dumps(part.name), part.values()) for part in reply.tool_calls]
        if is_told_once:
            assert calls == [(*names, json.loads(*(arguments or ["{}"])))]
        else:
            assert calls == []
            assert len(reply.failed_calls) == 1


@for_each("way", WAYS)
def test_a_call_that_is_cut_fails(way: str):
    text = ANSWERS["call"][1][way]
    for end in range(text.index('"path"') + 1, text.index("420") + 3):
        reply = fold(play([text[:end]], way, reason="length"))
        # In words "lost" is final: nothing mends what may have been more.
        assert [failed.kind for failed in reply.failed_calls] == [{"schema": "cut", "prompted": "lost"}[way]], text[
            :end
        ]
        assert (reply.tool_calls, reply.text, reply.stop_reason) == ([], "", "length"), text[:end]


@for_each("way", WAYS)
def test_arguments_and_words_are_live(way: str):
    """What can be known has left when its piece came."""
    stages = stages_for(TOOLS, Policy(way=way), new_id=counter())
    reader = Reader(PROTOCOLS["openai-chat"].decoder(new_id=counter()), stages)

    def feed(text: str) -> list[Event]:
        return reader.feed(f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': text}}]})}\n\n".encode())

    start = {"schema": '{"tool_calls": [', "prompted": "<tool_call>"}[way]
    feed(start + '{"name": "write_file", "arguments": {"path": "p", "content": "')
    for number in range(20):
        piece = f"line {number}, "
        assert "".join(event.text for event in feed(piece) if isinstance(event, ToolCallDelta)).endswith(piece)
    reader.close()


def test_words_are_live_in_a_schema():
    stages = stages_for(TOOLS, Policy(way="schema"), new_id=counter())
    reader = Reader(PROTOCOLS["openai-chat"].decoder(new_id=counter()), stages)
    frames = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ('{"answer": "', "one ", "two ")]
    fed = [reader.feed(f"data: {json.dumps(frame)}\n\n".encode()) for frame in frames]
    assert [[event.text for event in events if isinstance(event, TextDelta)] for events in fed] == [
        [],
        ["one "],
        ["two "],
    ]


def test_a_model_that_keeps_to_its_own_form_is_rescued():
    calls, text, _, reason = outcome('<tool_call>{"name": "ping", "arguments": {}}</tool_call>', way="schema")
    assert (calls, text, reason) == ([("ping", "{}")], "", "tool_use")


@for_each("way", WAYS)
def test_a_call_without_arguments_has_none(way: str):
    text = {"schema": '{"tool_calls": [{"name": "ping"}]}', "prompted": '<tool_call>{"name": "ping"}</tool_call>'}[way]
    assert outcome(text, way=way) == ([("ping", "{}")], "", [], "tool_use")


#: What models write that were asked for `<tool_call>` and do not know it.
OTHER_FORMS = (
    '[TOOL_CALLS][{"name": "ping", "arguments": {}}]',
    '{"name": "ping", "arguments": {}}',
    '```json\n{"name": "ping", "arguments": {}}\n```',
    '```{"name": "ping", "arguments": {}}```',
)


@for_each("text", OTHER_FORMS)
def test_another_form_than_was_asked_for_is_read_too_and_said(text: str):
    assert outcome(text, way="prompted") == ([("ping", "{}")], "", [], "tool_use")
    assert [event.code for event in play([text], "prompted") if isinstance(event, Deviation)] == ["rescued-call"]
    assert outcome(text, way="prompted", rescue=False) == ([], text, [], "stop")


# ---------------------------------------------------------------- what is sent

ASKED = (Message("user", (Text("Write it."),)),)
HISTORY = (
    Message("system", (Text("Be brief."),)),
    *ASKED,
    Message(
        "assistant",
        (
            Thinking("Two calls."),
            Text("At once."),
            ToolCall("c1", "write_file", '{"path": "</tool_call>", "content": "x"}'),
            ToolCall("c2", "ping", ""),
        ),
    ),
    Message("tool", (ToolResult("c2", "ping", (Text('{"ok": 1.50}'),)),)),
    Message(
        "tool",
        (
            ToolResult(
                "c1", "write_file", (Text("no </tool_response>"), Media("image", "image/png", "aGk=")), is_error=True
            ),
        ),
    ),
    Message("user", (Text("Go on."),)),
)


def rendered(protocol: str, request: Request) -> dict:
    return json.loads(PROTOCOLS[protocol].render_request(request).http.body)


def test_native_and_plain_requests_stay_as_they_are():
    with_tools = Request("m", HISTORY, TOOLS)
    assert ask(with_tools, "native") == (with_tools, ())
    plain = Request("m", ASKED)
    for way in WAYS:
        assert ask(plain, way) == (plain, ())


@for_each("way", WAYS)
@for_each("protocol", PROTOCOLS)
def test_no_protocol_is_told_of_tools(protocol: str, way: str):
    request, lost = ask(Request("m", HISTORY, TOOLS, "any"), way)
    assert lost == ()
    body = rendered(protocol, request)
    assert not {"tools", "tool_choice", "toolConfig"} & body.keys()
    text = json.dumps(body)
    for name in ("tool_use", "tool_result", "functionCall", "functionResponse", "function_call", '"role": "tool"'):
        assert name not in text
    for told in (*(tool.name for tool in TOOLS), "Writes a file.", "Be brief.", "Go on.", "aGk="):
        assert told in text


@for_each("protocol", PROTOCOLS)
def test_every_protocol_is_sent_the_schema(protocol: str):
    request, _ = ask(Request("m", ASKED, TOOLS), "schema")
    assert request.params.response_schema is not None
    sent = request.params.response_schema.schema
    if protocol == "anthropic-messages":  # which has no object of any members, as `ping` may take: it is told in words
        assert (
            answer_schema(sent)[0] is None and bytes(sent).decode() in rendered(protocol, request)["system"][-1]["text"]
        )
        return
    schema = json.loads(bytes(sent))

    def found(value) -> bool:
        if value == schema:
            return True
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return any(map(found, inner))

    assert found(rendered(protocol, request))


def test_the_history_in_words():
    request, _ = ask(Request("m", HISTORY, TOOLS), "prompted")
    system, user, assistant, results = request.messages
    assert system.text.startswith("Be brief.\n\n") and user.text == "Write it."
    assert [type(part) for part in assistant.parts] == [Thinking, Text]
    assert assistant.text == (
        "At once.\n"
        '<tool_call>{"name": "write_file", "arguments": {"path": "<\\/tool_call>", "content": "x"}}</tool_call>\n'
        '<tool_call>{"name": "ping", "arguments": {}}</tool_call>'
    )
    assert [type(part) for part in results.parts] == [Text, Media, Text]
    assert '<tool_response>{"name":"ping","content":{"ok": 1.50}}</tool_response>' in results.text
    assert '{"name":"write_file","error":"no <\\/tool_response>"}' in results.text
    assert results.text.endswith("Go on.") and results.role == "user"


def test_what_was_sent_of_results_stays_when_more_come():
    """A text with fields of its own had one more empty line in front for each message behind it."""
    own = Text("Look.", native=Native("openai-chat", {"x": _json.raw(1)}))
    turns = [Message("user", (ToolResult(f"call_{n}", "ping", (Text("pong"),)), own)) for n in range(4)]
    shortest, *longer = [
        without_tools(Request("m", tuple(turns[:count]))).messages[-1].parts for count in range(1, len(turns) + 1)
    ]
    assert shortest[-1] == Text("\nLook.", native=own.native)
    assert [parts[:2] for parts in longer] == [shortest] * 3
    assert [len(parts) for parts in longer] == [4, 6, 8]


def test_results_stand_in_the_order_of_their_calls():
    both = (ToolResult("c2", "ping", (Text("b"),)), ToolResult("c1", "write_file", (Text("a"),)))
    request, _ = ask(Request("m", (*HISTORY[:3], Message("tool", both)), TOOLS), "schema")
    text = request.messages[-1].text
    assert text.index("write_file") < text.index("ping")


def test_the_history_of_a_schema_is_read_back_as_the_same_calls():
    request, _ = ask(Request("m", HISTORY, TOOLS), "schema")
    text = request.messages[2].text.removeprefix("At once.\n")
    assert [(name, json.loads(arguments)) for name, arguments in outcome(text)[0]] == [
        ("write_file", {"path": "</tool_call>", "content": "x"}),
        ("ping", {}),
    ]


def test_the_history_in_words_is_read_back_as_the_same_calls():
    request, _ = ask(Request("m", HISTORY, TOOLS), "prompted")
    calls, text, _, _ = outcome(request.messages[2].text, way="prompted")
    assert [(name, json.loads(arguments)) for name, arguments in calls] == [
        ("write_file", {"path": "</tool_call>", "content": "x"}),
        ("ping", {}),
    ]
    assert text.strip() == "At once."


def schema_of(*tools: Tool, choice="auto", **params) -> dict:
    request, _ = ask(Request("m", ASKED, tools, choice, Params(**params)), "schema")
    assert request.params.response_schema is not None
    return json.loads(bytes(request.params.response_schema.schema))


def names_of(schema: dict) -> list[str]:
    items = schema["properties"]["tool_calls"]["items"]
    return [form["properties"]["name"]["enum"][0] for form in items.get("anyOf", [items])]


def test_the_schema_offers_calls_or_words():
    calls, words = schema_of(*TOOLS)["anyOf"]
    assert names_of(calls) == ["write_file", "ping"]
    assert calls["properties"]["tool_calls"]["minItems"] == 1
    arguments = calls["properties"]["tool_calls"]["items"]["anyOf"][0]["properties"]["arguments"]
    assert arguments["required"] == ["path", "content"] and arguments["additionalProperties"] is False
    assert words["properties"] == {"answer": {"type": "string"}}


def test_a_choice_stands_in_the_schema():
    assert names_of(schema_of(*TOOLS, choice="any")) == ["write_file", "ping"]
    assert names_of(schema_of(*TOOLS, choice=Named("ping"))) == ["ping"]
    assert names_of(schema_of(*TOOLS, choice=Named("gone"))) == ["write_file", "ping"]


@for_each("way", WAYS)
def test_a_choice_stands_in_words(way: str):
    def words(choice, **params) -> str:
        return ask(Request("m", ASKED, TOOLS, choice, Params(**params)), way)[0].messages[0].text

    assert "no tool is needed" in words("auto")
    assert "You must call a tool." in words("any") and "no tool is needed" not in words("any")
    assert 'Call the tool "ping" now.' in words(Named("ping"))
    assert "now." not in words(Named("gone"))
    assert "at most one tool" in words("auto", parallel_tools=False)


@for_each("way", WAYS)
def test_no_tool_may_be_called(way: str):
    request, _ = ask(Request("m", ASKED, TOOLS, "none"), way)
    assert (request.messages, request.tools, request.params.response_schema) == (ASKED, (), None)
    assert reading_mode(Request("m", ASKED, TOOLS, "none"), way) == "native"
    assert reading_mode(Request("m", ASKED, TOOLS), way) == way
    request, _ = ask(Request("m", HISTORY, TOOLS, "none"), way)
    assert "No tool can be called now" in request.messages[0].text


def test_definitions_move_to_the_root():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "$ref": {"type": "string"}}}
    first = tool("one", properties={"list": {"$ref": "#/$defs/node"}}, **{"$defs": {"node": node}})
    second = tool(
        "two", properties={"me": {"$ref": "#"}, "lost": {"$ref": "#/properties/me"}}, definitions={"node": {}}
    )
    schema = schema_of(first, second, choice="any")
    calls = schema["properties"]["tool_calls"]["items"]["anyOf"]
    one, two = (form["properties"]["arguments"]["properties"] for form in calls)
    assert one == {"list": {"$ref": "#/$defs/tool0_node"}}
    assert two == {"me": {"$ref": "#/$defs/tool1"}, "lost": {}}
    moved = schema["$defs"]["tool0_node"]
    assert moved["properties"] == {"next": {"$ref": "#/$defs/tool0_node"}, "$ref": {"type": "string"}}
    assert set(schema["$defs"]) == {"tool0_node", "tool1_node", "tool1"}


def test_objects_are_closed_where_that_forbids_nothing_declared():
    both = {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}
    schema = schema_of(tool("t", properties={"free": {"type": "object"}, "both": both}), choice="any")
    arguments = schema["properties"]["tool_calls"]["items"]["properties"]["arguments"]
    assert arguments == {
        "type": "object",
        "properties": {"free": {"type": "object"}, "both": both},
        "additionalProperties": False,
    }


def test_structured_output_of_the_request_is_the_answers_form():
    mine = {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False}
    form = ResponseSchema(_json.raw(mine))
    _, words = schema_of(*TOOLS, response_schema=form)["anyOf"]
    assert words["properties"]["answer"] == mine
    request, lost = ask(Request("m", ASKED, TOOLS, "auto", Params(response_schema=form)), "prompted")
    assert request.params.response_schema is None and '"city"' in request.messages[0].text
    assert [deviation.code for deviation in lost] == ["changed"]


def test_what_cannot_be_asked_so_is_said():
    free = Tool("patch", "Free text.", kind="custom")
    native = Native("openai-responses", {"tools": _json.raw([{"type": "web_search"}]), "user": _json.raw("u")})
    request, lost = ask(Request("m", ASKED, (*TOOLS, free), native=native), "prompted")
    assert [(deviation.code, deviation.where) for deviation in lost] == [
        ("dropped", "tools[2]"),
        ("dropped", "native.tools"),
    ]
    assert request.native is not None and set(request.native.fields) == {"user"}


def test_a_free_text_call_of_the_history_is_kept():
    earlier = Message("assistant", (ToolCall("c1", "patch", 'say "hi"', "custom"),))
    request, _ = ask(Request("m", (*ASKED, earlier), TOOLS), "prompted")
    assert request.messages[2].text == '<tool_call>{"name": "patch", "arguments": {"input":"say \\"hi\\""}}</tool_call>'


def test_without_tools_the_history_is_text():
    request = without_tools(Request("m", HISTORY, TOOLS, "any"))
    assert request.tools == ()
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "user"]
    native = Native("openai-responses", {"tools": _json.raw([{"type": "web_search"}])})
    plain = without_tools(Request("m", ASKED, TOOLS, "any", Params(parallel_tools=False), native=native))
    assert plain == Request("m", ASKED, native=Native("openai-responses", {}))
