"""A member that a call tells twice, with different values, has two readings: the call fails, in whatever form it came.

The second member has a name of its own when it is written, and gets the first one's afterwards: so every form writes
what its model would.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

import msgspec
import pytest

from cases import counter
from dragoman import _json
from dragoman._json import Raw
from dragoman.codec import repeated_keys
from dragoman.codec.repeated_keys import has_plain_parts, repeats_key, without_value
from dragoman.decoding import decode
from dragoman.protocols import PROTOCOLS
from dragoman.types import Tool, Usage
from for_each import for_each
from profiles import some
from rescue_forms import FORMS, Form
from test_failed_calls import PROVIDERS
from test_written_calls import delivered, play_with

PAIRS: list[tuple[Any, Any]] = [
    ("ls", "rm -rf build"), ("", "x"), (1, 2), (True, False), ({"a": 1}, {"a": 2}), (["a"], ["b"]),
]  # fmt: skip
IDS = [json.dumps(pair) for pair in PAIRS]


def tool_of(*values: object) -> Tool:
    """A tool whose parameters have the types of these values, and an object with two such members."""
    types = {str: "string", bool: "boolean", int: "integer", dict: "object", list: "array"}
    whole: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    members = {
        name: {**whole, "type": types[type(value)]} for name, value in zip(("first", "second"), values, strict=True)
    }
    inner = {"type": "object", "properties": members}
    return Tool("write_file", "", _json.raw({"type": "object", "properties": {**members, "inner": inner}}))


def written(form: Form, arguments: dict[str, Any], *, twice: bool) -> str:
    text = form.write([("write_file", arguments)]).text()
    return text.replace("second", "first") if twice else text


@for_each("form", FORMS, ids=lambda form: f"{form.family}, {form.name}")
@for_each("pair", PAIRS, ids=IDS)
def test_a_call_in_text(form: Form, pair: tuple[Any, Any]):
    told = dict(zip(("first", "second"), pair, strict=True))
    for arguments in (told, {"inner": told}):
        tools = [tool_of(*pair)]
        once, twice = (written(form, arguments, twice=twice) for twice in (False, True))
        for size in (1 << 20, *some([1], once, 3)):
            assert delivered(play_with(tools, once, "stop", size)) == [("write_file", arguments)]
            assert delivered(play_with(tools, twice, "stop", size)) == []


@for_each("protocol", PROVIDERS)
@for_each("end", ["stop", "length"])
def test_a_structured_call(protocol: str, end: str):
    """Valid JSON too: readers differ in which of the two counts. With one value twice, there is one reading."""
    for text in ('{"gate": 3, "gate": 4}', '{"a": {"b": [{"c": 1, "c": true}]}}', '{"n":1,"n":1.0}', '{"n":"1","n":1}'):
        reply = decode(PROVIDERS[protocol]([("lift_gate", text)], end), protocol)
        assert reply.tool_calls == []
        assert [failed.kind for failed in reply.failed_calls] == ["contradicted"], text
    for text in ('{"gate": 3, "gate": 3}', '{"a:": ":", "b": {"c": "c:c:"}, "d": {"c": ":"}}'):
        reply = decode(PROVIDERS[protocol]([("lift_gate", text)], end), protocol)
        assert [call.values() for call in reply.tool_calls] == [json.loads(text)]


@for_each("protocol", PROVIDERS)
def test_a_call_that_is_an_object_on_the_wire(protocol: str):
    """Ollama, Messages and Gemini send arguments as objects: in a whole answer, looked at or read."""
    good = [("lift_gate", '{"gate": 3}')]
    reply = msgspec.structs.replace(decode(PROVIDERS[protocol](good, "stop"), protocol), usage=Usage(5, 3))
    body = PROTOCOLS[protocol].render_response(reply, new_id=counter(), model="m", created=1)
    doubled = re.sub(rb'(\\?")gate\\?": ?3', rb"\g<0>, \1gate\1: 4", body)
    assert doubled != body
    check_whole = PROTOCOLS[protocol].check_whole
    # a response without what it repeats of its request is read
    assert (check_whole(body) is None) is (protocol == "openai-responses")
    assert check_whole(doubled) is None
    assert decode(body, protocol).tool_calls != []
    assert decode(doubled, protocol).tool_calls == []


@for_each("lead", ["", "{", "\ufeff", "// c\n"])
def test_a_repair(lead: str):
    """A key twice before the first defect and behind it, or where a value is coerced."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "o": {"type": "object"}}}
    tools = [Tool("write_file", "", _json.raw(schema))]
    for text in (
        '{"n": 1, "n": 2, "o": {},}',
        '{"n": 1, "o": {},, "n": 2}',
        '{"n": "1", "n": "2"}',
    ):
        wire = PROVIDERS["openai-chat"]([("write_file", lead + text)], "stop")
        assert decode(wire, "openai-chat", tools=tools).tool_calls == [], text


#: Keys and texts that look like the end of a key, and numbers that other readers round.
KEYS = ["a", "b", '":', "c :", 'x"', ""]
SCALARS = [
    '"x"',
    '"\\":x"',
    '":x"',
    '"a :"',
    "1",
    "2.5",
    "1.0",
    "1000000000000000000000000000000",
    "1e400",
    "-0",
    "null",
]


def random_object(random: random.Random, depth: int) -> str:
    """JSON text, now and then with a key twice and blanks before its colons."""
    members = []
    for _ in range(random.randrange(5)):
        value = random.choice(SCALARS)
        if depth and random.random() < 0.5:
            value = random_object(random, depth - 1)
            value = f"[{value},{random.choice(SCALARS)}]" if random.random() < 0.4 else value
        members.append(json.dumps(random.choice(KEYS)) + random.choice(["", "", " ", "\n"]) + ":" + value)
    return "{" + ",".join(members) + "}"


class Repeated(Exception):
    pass


def members_once(members: list[tuple[str, object]]) -> dict[str, object]:
    seen: dict[str, object] = {}
    for key, value in members:
        if seen.setdefault(key, value) != value:
            raise Repeated
    return seen


def test_a_key_twice_is_seen_wherever_it_stands(monkeypatch: pytest.MonkeyPatch):
    """Against a reader that looks at each member, with every number as it is written."""
    monkeypatch.setattr(repeated_keys, "SHORT", 0)
    outcomes, plain = set(), set()
    for seed in range(4_000):
        text = random_object(random.Random(seed), 3)
        try:
            json.loads(text, object_pairs_hook=members_once, parse_int=lambda text: f"number {text}",
                       parse_float=lambda text: f"number {text}")  # fmt: skip
        except Repeated:
            expected = True
        else:
            expected = False
        assert _json.repeats_key(text) is expected, text
        assert repeats_key(text.encode("utf-8", "surrogatepass")) is expected, text
        outcomes.add(expected)
        compact = _json.without_spaces(text.encode())
        read = msgspec.json.decode(compact, type=dict[str, Raw])
        is_plain = has_plain_parts(compact, read, read.values())
        assert not (is_plain and expected), text
        plain.add((is_plain, expected))
        key, named = b'"args":', text.replace('"b":', '"args":').encode()
        for value in (b"", b"1", b'{"a":1}', b'{":":"x"}', *map(bytes, read.values())):
            rest = without_value(named, key, Raw(value))
            assert rest is named or rest.replace(key + b"0", key + value, 1) == named, (named, value)
    assert outcomes == {True, False}
    assert plain == {(True, False), (False, False), (False, True)}


def members_of_all(members: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(members)) < len(members):
        raise Repeated
    return dict(members)


def test_a_text_in_which_no_key_stands_twice_is_plain_however_it_is_written(monkeypatch: pytest.MonkeyPatch):
    """With blanks, escapes that nobody needs, and numbers of any form: to look at each member takes ten times as long.
    Servers written in Go escape `<`, `>` and `&`, and Google's put a blank behind each colon."""
    monkeypatch.setattr(repeated_keys, "SHORT", 0)
    outcomes = set()
    for seed in range(2_000):
        chance = random.Random(seed)
        text = random_object(chance, 3).replace("1e400", "1E5")
        for character in chance.sample("abx:", 2):
            text = text.replace(character, rf"\u{ord(character):04x}") if character != ":" else text.replace(":", ": ")
        try:
            json.loads(text, object_pairs_hook=members_of_all)
        except Repeated:
            expected = False
        else:
            expected = True
        assert repeated_keys.has_plain_keys(text.encode()) is expected, text
        outcomes.add(expected)
    assert outcomes == {True, False}


def test_a_key_twice_behind_what_hides_it():
    """Quotes that are told as numbers, and a long string before the object that has it."""
    assert repeats_key(rb'{"a":1,"a":2,"b":"\u0022\u0022"}')
    assert repeats_key(b'{"text":"' + b"x" * 2_000 + b'","o":{"a":1,"a":2}}')


@for_each("second", ['"name": "remove"', '"name": "no_tool"', '"tool": "remove"', '"function": "remove"'])
@for_each("place", ["before", "behind"])
def test_a_call_in_json_that_names_two_tools(second: str, place: str):
    """Under one key twice, or under another key the name of another tool; its own name again says nothing new."""
    tools = [Tool(name, "", _json.raw({"type": "object"})) for name in ("show", "remove")]

    def calls(member: str) -> list[str]:
        arguments = '"arguments": {"path": "a"}'
        members = [member, arguments] if place == "before" else [arguments, member]
        text = '<tool_call>{"name": "show", ' + ", ".join(members) + "}</tool_call>"
        delta = {"choices": [{"index": 0, "delta": {"content": text}}]}
        stop = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        wire = b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in (delta, stop))
        return [call.name for call in decode(wire + b"data: [DONE]\n\n", "openai-chat", tools=tools).tool_calls]

    assert calls(second) == []
    assert calls('"name": "show"') == calls('"tool": "something else"') == ["show"]


@for_each("blank", ["", " "])
@for_each(
    "second", ['"name":"remove",', '"arguments":"{}",', '"arguments":%s,', '"id":"b",', '"function":{"name":"remove"},']
)
def test_a_whole_call_around_long_arguments(second: str, blank: str):
    """What stands around a long text of arguments is looked at without it; the same text again says nothing new."""
    arguments = json.dumps(json.dumps({"path": "a", "text": '"words" ' * 100}))
    second = second.replace("%s", arguments)
    function = f'"name":"show","arguments":{blank}{arguments}'
    entry = '"id":"a","type":"function"'
    if second.startswith(('"id"', '"function"')):
        call = "{" + f'{second}{entry},"function":' + "{" + function + "}}"
    else:
        call = "{" + f'{entry},"function":' + "{" + second + function + "}}"
    message = '{"role":"assistant","content":null,"tool_calls":[' + call + "]}"
    choice = '{"index":0,"message":' + message + ',"finish_reason":"tool_calls"}'
    wire = '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[' + choice + "]}"
    names = [call.name for call in decode(wire.encode(), "openai-chat").tool_calls]
    assert names == (["show"] if arguments in second else [])
