"""What is said to a model that knows no tools: well formed, read back exactly, and no call when it is repeated,
whatever the tools are called and say."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import counter
from dragoman import _json
from dragoman.events import Reply, fold
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.tool_emulation import ask
from dragoman.types import Message, Named, Params, Request, Text, Tool, ToolCall
from profiles import IS_SOAK

MANY = 1_000 if IS_SOAK else 20
WAYS = ("schema", "prompted")
ASKED = Message("user", (Text("Go."),))
ODD = [
    '"',
    "'",
    "\\",
    "{",
    "}",
    "\n",
    "\u2028",
    "<tool_call>",
    "</tool_call>",
    "```",
    "%s",
    "{name}",
    "é",
    "東京",
    "🌍",
    "NAME",
]
TEXTS = st.lists(st.one_of(st.sampled_from(ODD), st.text(max_size=8)), max_size=6).map("".join)
NAMES = st.one_of(
    st.sampled_from(["NAME", "NAME_", "open_door", "KEY", "open_door()", "functions.NAME", "名前", 'say "hi"', "a b"]),
    st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_-]{0,20}", fullmatch=True),
)  # fmt: skip
KEYS = st.one_of(
    st.sampled_from(["KEY", "room", "名", 'q"', "a b", "name", "arguments"]), st.text(min_size=1, max_size=8)
)


@st.composite
def tools(draw: st.DrawFn, descriptions: st.SearchStrategy[str] = TEXTS) -> tuple[Tool, ...]:
    """One to a hundred tools; each takes texts under some keys, of which some are required."""
    names = draw(st.lists(NAMES, min_size=1, max_size=draw(st.sampled_from([1, 3, 100])), unique=True))
    offered = []
    for name in names:
        keys = draw(st.lists(KEYS, max_size=3, unique=True))
        properties = {key: {"type": "string", "description": draw(descriptions)} for key in keys}
        schema = {"type": "object", "properties": properties, "required": keys[: draw(st.integers(0, len(keys)))]}
        offered.append(Tool(name, draw(descriptions), _json.raw(schema)))
    return tuple(offered)


def answered(text: str, offered: tuple[Tool, ...], way: str, *, size: int = 1_000_000) -> Reply:
    """What is read of an answer that is this text, streamed in pieces of so many characters."""
    reader = Reader(
        PROTOCOLS["openai-chat"].decoder(new_id=counter(), offered_names=frozenset(tool.name for tool in offered)),
        stages_for(offered, Policy(way=way), new_id=counter()),
    )
    deltas = [{"content": text[start : start + size]} for start in range(0, len(text), size)]
    choices = [{"index": 0, "delta": delta} for delta in deltas] + [{"index": 0, "delta": {}, "finish_reason": "stop"}]
    events = []
    for choice in choices:
        events += reader.feed(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
    return fold([*events, *reader.feed(b"data: [DONE]\n\n"), *reader.close()])


def words(offered: tuple[Tool, ...], way: str, **more: object) -> str:
    return ask(Request("m", (ASKED,), offered, **more), way)[0].messages[0].text


def lines_of_tools(text: str) -> list[str]:
    """The lines that describe tools: those between the heading and the example."""
    lines = text.split("\n")
    return lines[lines.index("The tools:") + 1 : -2]


@given(offered=tools(), way=st.sampled_from(WAYS))
@settings(max_examples=MANY // 2, deadline=None)
def test_every_tool_is_one_line_of_json(offered: tuple[Tool, ...], way: str) -> None:
    described = [json.loads(line) for line in lines_of_tools(words(offered, way))]
    assert described == [
        {"description": tool.description, "name": tool.name, "parameters": json.loads(bytes(tool.schema))}
        for tool in offered
    ]


@given(offered=tools(), way=st.sampled_from(WAYS), data=st.data())
@settings(max_examples=MANY, deadline=None)
def test_what_is_written_in_the_form_is_read_back_exactly(
    offered: tuple[Tool, ...], way: str, data: st.DataObject
) -> None:
    calls = []
    for number, tool in enumerate(data.draw(st.lists(st.sampled_from(offered), min_size=1, max_size=3))):
        keys = json.loads(bytes(tool.schema))["properties"]
        # A value that repeats its description shows how the call is written, and is refused.
        described = {key: schema["description"].strip() for key, schema in keys.items()}
        values = {
            key: data.draw(TEXTS.filter(lambda text, of=said: text.strip() != of)) for key, said in described.items()
        }
        calls.append(ToolCall(f"call_{number}", tool.name, json.dumps(values, ensure_ascii=data.draw(st.booleans()))))
    # A conversation shows earlier calls in the form that is asked for: so would a model write them.
    written = ask(Request("m", (ASKED, Message("assistant", tuple(calls)), ASKED), offered), way)[0].messages[2].text
    for size in (1_000_000, data.draw(st.integers(1, 9))):
        reply = answered(written, offered, way, size=size)
        assert [(call.name, dict(call.values())) for call in reply.tool_calls] == [
            (call.name, json.loads(call.arguments)) for call in calls
        ]
        assert (reply.text.strip(), reply.failed_calls, reply.stop_reason) == ("", (), "tool_use")


PLAIN = st.text(st.characters(exclude_characters="<[{`|", exclude_categories=["Cs"]), max_size=20)


@given(offered=tools(PLAIN), data=st.data())
@settings(max_examples=MANY, deadline=None)
def test_the_words_are_no_call_when_a_model_repeats_them(offered: tuple[Tool, ...], data: st.DataObject) -> None:
    """Small models do: all of it, a line, some lines, a line as a block of the form or in a fence."""
    text = words(offered, "prompted", tool_choice=data.draw(st.sampled_from(["auto", "any", Named(offered[0].name)])))
    lines = text.split("\n")
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))
    line = lines[first]
    for echo in (
        text,
        line,
        "\n".join(lines[first : last + 1]),
        f"<tool_call>{line}</tool_call>",
        f"```json\n{line}\n```",
    ):
        assert answered(echo, offered, "prompted").tool_calls == []
        assert answered(echo, offered, "schema").tool_calls == []


@pytest.mark.parametrize("way", WAYS)
def test_the_words_stay_in_proportion_to_the_tools(way: str) -> None:
    schema = _json.raw({"type": "object", "properties": {"a": {"type": "string"}}})
    offered = tuple(Tool(f"tool_{number}", "Does something.", schema) for number in range(100))
    each = len(
        _json.to_text({"description": "Does something.", "name": "tool_99", "parameters": json.loads(bytes(schema))})
    )
    assert len(words(offered, way)) < 100 * (each + 1) + 800


@pytest.mark.parametrize("parallel", [True, False, None])
def test_one_call_at_most_stands_in_the_schema(parallel: bool | None) -> None:
    request = ask(Request("m", (ASKED,), (Tool("ping"),), params=Params(parallel_tools=parallel)), "schema")[0]
    assert request.params.response_schema is not None
    calls = json.loads(bytes(request.params.response_schema.schema))["anyOf"][0]["properties"]["tool_calls"]
    assert calls.get("maxItems") == (1 if parallel is False else None)
