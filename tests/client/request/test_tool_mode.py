"""Servers that refuse tools: asked once more in another way, never silently, never after the answer has begun."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import dragoman
from dragoman.client.request.tool_mode import first_attempt, next_attempt
from dragoman.config import load_config
from dragoman.events import Deviation, Failure, fold
from dragoman.inputs.conversation import read_tools
from dragoman.routing.resolve import resolve
from dragoman.types import Message, Named, Request, Text
from grammar import check
from scripted import Scripted, serving, streamed, whole

REFUSED = whole(b'{"error":{"message":"registry.ollama.ai/library/m:1b does not support tools"}}', 400)
LATE = [
    b'data: {"choices":[{"index":0,"delta":{"content":"Let me"}}]}\n\n',
    b'data: {"error":{"message":"this model does not support tools","code":400}}\n\n',
]


def said(text: str, size: int = 7) -> list:
    """A chat stream that says this text."""
    deltas = [{"content": text[start : start + size]} for start in range(0, len(text), size)]
    frames = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    frames.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return streamed(*(f"data: {json.dumps(frame)}\n\n".encode() for frame in frames), b"data: [DONE]\n\n")


IN_SCHEMA = said('{"tool_calls": [{"name": "get_weather", "arguments": {"city": "Zürich"}}]}')
IN_WORDS = said('<tool_call>{"name": "get_weather", "arguments": {"city": "Zürich"}}</tool_call>')
ANSWER = said("No idea.")


def get_weather(city: str) -> str:
    """Weather of a city."""
    return f"{city}: sun"


def ask(server: Scripted, tmp_path: Path, more: str = "", *, target: str = "lab/m", way=None, **asked):
    """The events of one turn, in the grammar."""
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{server.url}/v1"\n{more}')
    config = load_config(file, environ={}, home=tmp_path)
    asked = {"tools": [get_weather], **asked}
    with dragoman.Client(config, tools=way) as client, client.stream(target, "Weather in Zürich?", **asked) as stream:
        events = list(stream)
        assert msgspec.structs.replace(stream.reply, attempts=()) == fold(events)
    return check(events)


def codes(events) -> list[str]:
    return [event.code for event in events if isinstance(event, Deviation)]


def calls(events) -> list[tuple[str, dict]]:
    return [(call.name, call.values()) for call in fold(events).tool_calls]


WEATHER = [("get_weather", {"city": "Zürich"})]
AUTO = '[models."lab/m"]\ntools = "auto"\n'


def test_a_refusal_is_answered_by_one_try_in_words(tmp_path):
    with serving(REFUSED, IN_WORDS) as server:
        events = ask(server, tmp_path, AUTO)
    first, second = (request.json for request in server.requests)
    assert "tools" in first and "tools" not in second and "response_format" not in second
    assert (calls(events), codes(events)) == (WEATHER, ["tools-way"])
    assert fold(events).stop_reason == "tool_use"


def test_a_call_in_a_text_is_none_where_calls_are_forbidden(tmp_path):
    for way in ("native", "prompted"):
        with serving(IN_WORDS) as server:
            events = ask(server, tmp_path, way=way, tool_choice="none")
        assert (calls(events), fold(events).stop_reason) == ([], "stop")


@pytest.mark.parametrize("choice", ["any", Named("get_weather")])
def test_a_call_that_is_wanted_at_all_events_is_asked_for_by_a_schema(choice, tmp_path):
    with serving(REFUSED, IN_SCHEMA) as server:
        events = ask(server, tmp_path, AUTO, tool_choice=choice)
    first, second = (request.json for request in server.requests)
    assert "tools" in first and "tools" not in second
    assert second["response_format"]["type"] == "json_schema"
    assert calls(events) == WEATHER
    assert codes(events) == ["tools-way"]
    assert fold(events).stop_reason == "tool_use"


def test_a_host_without_schemas_is_asked_in_words(tmp_path):
    with serving(REFUSED, IN_WORDS) as server:
        more = AUTO + "dialect = { supports_response_schema = false }\n"
        events = ask(server, tmp_path, more, tool_choice="any")
    second = server.requests[1].json
    assert "response_format" not in second and "tools" not in second
    assert "get_weather" in second["messages"][0]["content"]
    assert (calls(events), codes(events)) == (WEATHER, ["tools-way"])


@pytest.mark.parametrize(
    ("more", "target", "way"),
    [
        (AUTO, "lab/m", None),
        ('[routes.fast]\ntargets = ["lab/m"]\ntools = "auto"\n', "fast", None),
        ("", "lab/m", "auto"),
        ('[models."lab/m"]\ntools = "native"\n', "lab/m", "auto"),
    ],
)
def test_the_way_comes_from_client_model_or_route(more, target, way, tmp_path):
    with serving(REFUSED, IN_WORDS) as server:
        assert calls(ask(server, tmp_path, more, target=target, way=way)) == WEATHER


def test_the_model_wins_over_its_route(tmp_path):
    more = '[routes.fast]\ntargets = ["lab/m"]\ntools = "native"\n[models."lab/m"]\ntools = "prompted"\n'
    with serving(IN_WORDS) as server:
        events = ask(server, tmp_path, more, target="fast")
    assert (calls(events), codes(events), len(server.requests)) == (WEATHER, [], 1)
    assert "tools" not in server.requests[0].json


@pytest.mark.parametrize(("way", "reply"), [("schema", IN_SCHEMA), ("prompted", IN_WORDS)])
def test_a_configured_way_is_no_deviation(way, reply, tmp_path):
    with serving(reply) as server:
        events = ask(server, tmp_path, way=way)
    assert (calls(events), codes(events)) == (WEATHER, [])


def test_native_stays_native(tmp_path):
    with serving(REFUSED, ANSWER) as server:
        events = ask(server, tmp_path)
    assert isinstance(events[-1], Failure) and "does not support tools" in events[-1].message
    assert len(server.requests) == 1


def test_tools_that_are_not_required_are_left_out(tmp_path):
    with serving(REFUSED, ANSWER) as server:
        events = ask(server, tmp_path, '[models."lab/m"]\ntools_required = false\n')
    second = server.requests[1].json
    assert "tools" not in second and [message["role"] for message in second["messages"]] == ["user"]
    assert fold(events).text == "No idea."
    assert codes(events) == ["tools-way"]


def test_there_is_one_more_try_only(tmp_path):
    with serving(REFUSED) as server:
        events = ask(server, tmp_path, AUTO)
    assert isinstance(events[-1], Failure)
    assert len(server.requests) == 2


def test_another_fault_is_not_answered_so(tmp_path):
    with serving(whole(b'{"error":{"message":"tool_choice is not supported with this model"}}', 400)) as server:
        events = ask(server, tmp_path, AUTO)
    assert isinstance(events[-1], Failure)
    assert len(server.requests) == 1


def test_a_request_without_tools_is_asked_once(tmp_path):
    with serving(REFUSED) as server:
        events = ask(server, tmp_path, AUTO, tools=[])
    assert isinstance(events[-1], Failure)
    assert len(server.requests) == 1


def test_a_refusal_inside_a_stream_counts_before_the_answer_begins(tmp_path):
    early = streamed(b'data: {"error":{"message":"this model does not support tools","code":400}}\n\n')
    with serving(early, IN_WORDS) as server:
        assert calls(ask(server, tmp_path, AUTO)) == WEATHER
    with serving(streamed(*LATE), IN_WORDS) as server:
        events = ask(server, tmp_path, AUTO)
    assert isinstance(events[-1], Failure)
    assert len(server.requests) == 1


def test_a_refusal_is_remembered_by_the_client(tmp_path):
    with serving(REFUSED, IN_WORDS, said("Sun.")) as server:
        file = tmp_path / "dragoman.toml"
        file.write_text(f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{server.url}/v1"\n{AUTO}')
        with dragoman.Client(load_config(file, environ={}, home=tmp_path)) as client:
            answer = client.run("lab/m", "Weather in Zürich?", tools=[get_weather])
    assert (answer.text, answer.steps, len(server.requests)) == ("Sun.", 2, 3)
    assert codes(answer.reply.deviations) == ["tools-way"]
    last = server.requests[-1].json["messages"]
    assert [message["role"] for message in last] == ["system", "user", "assistant", "user"]
    assert last[3]["content"] == '<tool_response>{"name":"get_weather","content":"Zürich: sun"}</tool_response>'


def test_what_is_known_of_a_model_saves_the_first_try(tmp_path):
    config = load_config(None, environ={}, home=tmp_path)
    target = msgspec.structs.replace(resolve("ollama/m", config, tools="auto"), refuses_tools=True)
    request = Request("m", (Message("user", (Text("hi"),)),), read_tools([get_weather])[0])
    first = first_attempt(target, request)
    assert (first.way, [deviation.code for deviation in first.deviations]) == ("prompted", ["tools-way"])
    assert first_attempt(target, msgspec.structs.replace(request, tool_choice="any")).way == "schema"
    assert next_attempt(target, request, first, Failure("bad_request", "m does not support tools")) is None
    asked = first_attempt(msgspec.structs.replace(target, tools="prompted"), request)
    assert (asked.way, asked.deviations) == ("prompted", ())
    asked = first_attempt(target, msgspec.structs.replace(request, tools=()))
    assert (asked.way, asked.deviations) == ("native", ())
