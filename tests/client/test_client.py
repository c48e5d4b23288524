"""The client against a provider on loopback: what it sends, what it hears, and how it takes faults."""

from __future__ import annotations

import asyncio
import json
import threading
from decimal import Decimal
from pathlib import Path

import pytest

import dragoman
from dragoman.config import load_config
from dragoman.errors import CallFailed, ConfigError, StepLimit, UsageError
from dragoman.events import Failure, Finish, TextDelta, ToolCallDelta, ToolCallEnd
from dragoman.routing.prices import Prices
from dragoman.types import Cost, Params, Usage
from scripted import END, Scripted, chunk, head, serving, streamed, whole

KEY = "sk-canary-2f6b9d"


def event(delta: dict, finish: str | None = None, **more) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "chatcmpl-9", "model": "m", "choices": [choice], **more}).encode() + b"\n\n"


def text(*words: str) -> list[bytes]:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    return [*(event({"content": word}) for word in words), event({}, "stop", usage=usage), b"data: [DONE]\n\n"]


def call(name: str, arguments: str, call_id: str = "call_1") -> list[bytes]:
    return call_in(name, [arguments[start : start + 4] for start in range(0, len(arguments), 4)], call_id)


def call_in(name: str, pieces: list[str], call_id: str = "call_1") -> list[bytes]:
    function = {"index": 0, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    deltas = [event({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}) for piece in pieces]
    return [event({"tool_calls": [function]}), *deltas, event({}, "tool_calls"), b"data: [DONE]\n\n"]


def config_for(server: Scripted | str, tmp_path: Path, more: str = ""):
    url = server if isinstance(server, str) else server.url
    file = tmp_path / "dragoman.toml"
    provider = f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{url}/v1"\napi_key = "env:LAB_KEY"\n'
    once = more.replace("[http]", "[http]\nretries = 0") if "[http]" in more else f"{more}\n[http]\nretries = 0"
    file.write_text(f"{provider}\n{once}")
    return load_config(file, environ={"LAB_KEY": KEY}, home=tmp_path)


def events_of(server: Scripted | str, tmp_path: Path, more: str = "", **asked) -> list:
    with dragoman.Client(config_for(server, tmp_path, more)) as client:
        with client.stream("lab/m", "hello", **asked) as stream:
            return list(stream)


def get_weather(city: str, days: int = 1) -> str:
    """Weather of a city.

    Args:
        city: its name.
    """
    return f"{city}: sun for {days} day(s)"


# ---------------------------------------------------------------- what is sent and heard


def test_one_turn_as_events_and_as_a_reply(tmp_path):
    with serving(streamed(*text("Hel", "lo"))) as server, dragoman.Client(config_for(server, tmp_path)) as client:
        with client.stream("lab/m", "hello") as stream:
            events = list(stream)
        assert stream.reply.text == "Hello"
        assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Hello"
        assert isinstance(events[-1], Finish)
        assert client.reply("lab/m", "hello").text == "Hello"
    first = server.requests[0]
    assert (first.method, first.path) == ("POST", "/v1/chat/completions")
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.json["model"] == "m"
    assert first.json["messages"] == [{"role": "user", "content": "hello"}]
    assert "tools" not in first.json


def test_arguments_grow_before_the_eyes_of_the_caller(tmp_path):
    looked = threading.Semaphore(0)  # each piece leaves when the one before was looked at: none come together
    pieces = ['{"city":', ' "Par', "\\u00eds", '", ', '"days": 3', "}"]
    first, start, *deltas, finish, done, end = streamed(*call_in("get_weather", pieces))
    steps = [first, start, *(step for delta in deltas for step in (delta, looked)), finish, done, end]
    with serving(steps) as server:
        with dragoman.Client(config_for(server, tmp_path)) as client:
            looks = []
            with client.stream("lab/m", "hello", tools=[get_weather]) as stream:
                for step in stream:
                    if isinstance(step, ToolCallDelta):
                        looks.append(dict(stream.partial(step.index)))
                        looked.release()
            assert stream.reply.tool_calls[0].values() == {"city": "París", "days": 3}
    assert looks[0] == {}
    assert {"city": "Par"} in looks
    assert looks[-1] == {"city": "París", "days": 3}
    function = server.requests[0].json["tools"][0]["function"]
    assert function["description"] == "Weather of a city."
    assert function["parameters"]["required"] == ["city"]
    assert function["parameters"]["properties"]["city"] == {"type": "string", "description": "its name."}


def test_the_connection_is_used_again(tmp_path):
    with serving(streamed(*text("b"))) as server:
        with dragoman.Client(config_for(server, tmp_path)) as client:
            for _ in range(5):
                assert client.reply("lab/m", "hello").text == "b"
        assert server.connections == 1


def test_options_of_the_configuration_stand_below_those_of_the_request(tmp_path):
    more = '[models."lab/m"]\noptions = { temperature = 0.3, max_tokens = 50 }'
    with serving(streamed(*text("b"))) as server:
        events_of(server, tmp_path, more, params=Params(max_tokens=7))
    assert server.requests[0].json["temperature"] == 0.3
    assert server.requests[0].json["max_tokens"] == 7


def test_what_it_costs(tmp_path):
    more = '[prices."lab/m"]\ninput = 2\noutput = 10'
    with serving(streamed(*text("b"))) as server:
        assert events_of(server, tmp_path, more)[-1].cost == Cost(Decimal("0.003"), "user")
        assert events_of(server, tmp_path)[-1].cost is None


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_price_holds_by_provider_and_name_where_the_address_is_another(name, tmp_path):
    model = {"openai": "gpt-4.1", "anthropic": "claude-sonnet-4-5"}[name]
    usage = Usage(input=1000, output=100)

    def prices(text: str) -> Prices:
        (tmp_path / "dragoman.toml").write_text(text)
        return Prices(load_config(tmp_path / "dragoman.toml", environ={}, home=tmp_path))

    by_itself = prices("").cost(f"{name}/{model}", usage)
    assert by_itself is not None and by_itself.source == "catalogue"
    there = prices(f'[providers.{name}]\nbase_url = "http://127.0.0.1:9/v1"')
    assert there.cost(f"{name}/{model}", usage) == by_itself
    assert there.cost(f"{name}/nobody-knows", usage) is None
    mine = prices('[providers.lab]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"')
    assert mine.cost(f"lab/{model}", usage) is None


@pytest.mark.parametrize("host", ["127.0.0.1:9", "10.0.0.5", "localhost:8000", "[::1]:9", "inference"])
def test_the_catalogue_is_not_loaded_for_a_server_of_ones_own(host, tmp_path, monkeypatch):
    """To load it takes 0.2 s of processor time and 32 MB."""
    (tmp_path / "dragoman.toml").write_text(f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "http://{host}/v1"')
    prices = Prices(load_config(tmp_path / "dragoman.toml", environ={}, home=tmp_path))
    monkeypatch.setattr("dragoman.routing.prices._load", lambda: pytest.fail("loaded"))
    assert prices.cost("lab/gpt-4.1", Usage(input=1000, output=100)) is None


def test_a_cost_that_the_answer_reports_wins(tmp_path):
    told = {"prompt_tokens": 1000, "completion_tokens": 100, "cost": 0.5}
    more = '[prices."lab/m"]\ninput = 2\noutput = 10'
    with serving(streamed(*text("b")[:-1], event({}, "stop", usage=told), b"data: [DONE]\n\n")) as server:
        assert events_of(server, tmp_path, more)[-1].cost == Cost(Decimal("0.5"), "provider")


def test_usage_is_kept_when_the_stream_fails(tmp_path):
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    with serving([head(), chunk(event({"content": "b"}, usage=usage)), "close"]) as server:
        last = events_of(server, tmp_path, '[prices."lab/m"]\ninput = 2\noutput = 10')[-1]
    assert isinstance(last, Failure)
    assert last.usage.input == 1000
    assert last.cost == Cost(Decimal("0.003"), "user")


# ---------------------------------------------------------------- faults


def failure(server: Scripted | str, tmp_path: Path, more: str = "") -> Failure:
    events = events_of(server, tmp_path, more)
    assert isinstance(events[-1], Failure)
    assert KEY not in repr(events)
    return events[-1]


@pytest.mark.parametrize(
    ("reply", "kind", "status"),
    [
        (whole(b'{"error":{"message":"no such key"}}', 401), "auth", 401),
        (whole(b'{"error":{"message":"slow down"}}', 429, "application/json", "retry-after: 7"), "rate", 429),
        (whole(b"<html><title>502 Bad Gateway</title></html>", 502, "text/html"), "overloaded", 502),
        (whole(b"", 500), "internal", 500),
        (whole(b"", 307, "text/plain", "location: http://127.0.0.1:9/other"), "bad_request", 307),
        (whole(b"<html><title>Sign in</title></html>", 200, "text/html"), "wire", None),
        (["close"], "connection", None),
        (["reset"], "connection", None),
        ([b"HTTP/1.1 junk\r\n\r\n", "close"], "wire", None),
        ([head(), chunk(event({"content": "b"})), "reset"], "connection", None),
        ([head(), chunk(event({"content": "b"})), END], "connection", None),
        ([head(), b"zz\r\n", "close"], "wire or connection", None),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_every_fault_is_a_failure_event(reply, kind, status, tmp_path):
    with serving(reply) as server:
        found = failure(server, tmp_path)
    assert found.kind in kind.split(" or ")  # a broken chunk may come with the head, or behind it
    assert found.status == status
    if status == 429:
        assert found.retry_after == 7


def test_a_redirect_is_told_without_its_query(tmp_path):
    with serving(whole(b"", 302, "text/plain", f"location: http://127.0.0.1:9/other?key={KEY}")) as server:
        found = failure(server, tmp_path)
    told = f"(lab: POST {server.url}/v1/chat/completions answered 302)"
    assert found.message == f"expected an answer, got a redirect to http://127.0.0.1:9/other {told}"


def test_a_closed_client_says_so(tmp_path):
    client = dragoman.Client(config_for("http://127.0.0.1:9/v1", tmp_path))
    client.close()
    client.close()
    with pytest.raises(dragoman.UsageError, match="this Client is closed"):
        client.reply("lab/m", "hello")


def test_nobody_listens(tmp_path):
    with serving(["close"]) as server:
        url = server.url
    found = failure(url, tmp_path)
    assert found.kind == "connection"
    assert url in found.message


def test_a_reset_after_the_protocols_end_loses_nothing(tmp_path):
    with serving([head(), *map(chunk, text("b")), "reset"]) as server:
        assert isinstance(events_of(server, tmp_path)[-1], Finish)


def test_a_body_that_never_ends_after_the_protocols_end(tmp_path):
    with serving([head(), *map(chunk, text("b")), "hold"]) as server:
        assert isinstance(events_of(server, tmp_path)[-1], Finish)


@pytest.mark.parametrize(
    ("steps", "clock", "said"),
    [
        (["hold"], "local_first_event_seconds = 0.2\nfirst_event_seconds = 0.2", "nothing of the answer came within"),
        ([head(), chunk(b": ping\n\n"), "hold"], "first_event_seconds = 0.2", "nothing of the answer came within"),
        ([head(), chunk(event({"content": "b"})), "hold"], "silence_seconds = 0.2", "no byte came for"),
        (
            [head(), chunk(event({"content": "b"})), *[0.05, chunk(b": ping\n\n")] * 40],
            "no_progress_seconds = 0.3",
            "nothing of the answer came for",
        ),
        ([head(), *[0.05, chunk(event({"content": "b"}))] * 40], "total_seconds = 0.3", "the response took more than"),
    ],
    ids=["head", "first-event", "silence", "progress", "total"],
)
def test_each_clock_ends_the_response(steps, clock, said, tmp_path):
    with serving(steps) as server:
        found = failure(server, tmp_path, f"[http]\n{clock}")
        assert found.kind == "timeout"
        assert said in found.message


def test_a_request_is_not_held_while_its_answer_comes(tmp_path):
    async def main(url: str) -> None:
        async with dragoman.AsyncClient(config_for(url, tmp_path)) as client:
            async with client.stream("lab/m", "word " * 10_000) as stream:
                assert len(stream._stream._exchange.outgoing.body) > 50_000
                await stream.next_batch()
                assert stream._stream._exchange.outgoing.body == b""

    with serving([head(), chunk(event({"content": "b"})), "hold"]) as server:
        asyncio.run(main(server.url))


def test_leaving_early_closes_the_connection(tmp_path):
    with serving([head(), chunk(event({"content": "b"})), "hold"]) as server:
        with dragoman.Client(config_for(server, tmp_path)) as client:
            with client.stream("lab/m", "hello") as stream:
                for step in stream:
                    if isinstance(step, TextDelta):
                        break
            assert server.client_gone.wait(20)
            assert stream.reply.text == "b"


def test_streams_that_are_left_leak_nothing(tmp_path):
    endless = [head(), chunk(event({"content": "b"})), "hold"]
    with serving(*[endless] * 100, streamed(*text("b"))) as server:
        with dragoman.Client(config_for(server, tmp_path)) as client:
            for _ in range(100):
                with client.stream("lab/m", "hello") as stream:
                    next(iter(stream))
            assert [client.reply("lab/m", "hello").text for _ in range(5)] == ["b"] * 5


def test_an_error_whose_body_never_ends_is_told(tmp_path):
    """It was read at full speed, and thrown away, as long as the provider sent."""
    told: list[int | None] = []
    body = b'{"error": {"message": "no such model ' + b"a" * 300_000
    with serving([head(404, "application/json"), chunk(body), "hold"]) as server:

        def ask() -> None:
            with dragoman.Client(config_for(server, tmp_path)) as client, client.stream("lab/m", "hello") as stream:
                told.extend(step.status for step in stream if isinstance(step, Failure))

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(20)
        assert told == [404]


# ---------------------------------------------------------------- threads and loops


def test_the_sync_client_works_from_fifty_threads(tmp_path):
    answers: list[str] = []
    with serving(streamed(*text("b"))) as server, dragoman.Client(config_for(server, tmp_path)) as client:
        threads = [
            threading.Thread(target=lambda: answers.append(client.reply("lab/m", "hello").text)) for _ in range(50)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == ["b"] * 50


def test_the_sync_client_works_inside_a_running_loop(tmp_path):
    async def main(server: Scripted) -> str:
        with dragoman.Client(config_for(server, tmp_path)) as client:
            return client.reply("lab/m", "hello").text

    with serving(streamed(*text("b"))) as server:
        assert asyncio.run(main(server)) == "b"


def test_the_async_client(tmp_path):
    async def main(server: Scripted) -> list:
        async with dragoman.AsyncClient(config_for(server, tmp_path)) as client:
            async with client.stream("lab/m", "hello") as stream:
                events = [step async for step in stream]
            assert stream.reply.text == "b"
            assert (await client.reply("lab/m", "hello")).text == "b"
            return events

    with serving(streamed(*text("b"))) as server:
        assert isinstance(asyncio.run(main(server))[-1], Finish)


# ---------------------------------------------------------------- run


def run(server: Scripted, tmp_path: Path, tools, **asked):
    with dragoman.Client(config_for(server, tmp_path)) as client:
        return client.run("lab/m", "Weather in Paris?", tools=tools, **asked)


def test_run_calls_the_function_and_answers(tmp_path):
    with serving(streamed(*call("get_weather", '{"city": "Paris"}')), streamed(*text("Sun."))) as server:
        answer = run(server, tmp_path, [get_weather])
    assert (answer.text, answer.steps) == ("Sun.", 2)
    sent = server.requests[1].json["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool"]
    assert sent[2]["tool_call_id"] == "call_1"
    assert sent[2]["content"] == "Paris: sun for 1 day(s)"


def test_run_awaits_coroutines_in_both_clients(tmp_path):
    async def get_time(zone: str) -> dict:
        """Time of a zone."""
        await asyncio.sleep(0)
        return {"zone": zone}

    async def main(server: Scripted) -> str:
        async with dragoman.AsyncClient(config_for(server, tmp_path)) as client:
            return (await client.run("lab/m", "Time?", tools=[get_time])).text

    replies = [streamed(*call("get_time", '{"zone": "UTC"}')), streamed(*text("Noon."))]
    with serving(*replies) as server:
        assert run(server, tmp_path, [get_time]).text == "Noon."
        assert server.requests[1].json["messages"][2]["content"] == '{"zone":"UTC"}'
    with serving(*replies) as server:
        assert asyncio.run(main(server)) == "Noon."


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("no_such_tool", "{}", "there is no tool 'no_such_tool'; there are: get_weather"),
        ("get_weather", "{}", "missing required field `city`"),
        ("get_weather", '{"city": "Paris", "days": "many"}', "days"),
    ],
)
def test_run_tells_the_model_what_was_wrong_with_its_call(name, arguments, told, tmp_path):
    with serving(streamed(*call(name, arguments)), streamed(*text("Sorry."))) as server:
        assert run(server, tmp_path, [get_weather]).text == "Sorry."
    assert told in server.requests[1].json["messages"][2]["content"]


def test_run_tells_the_model_that_its_tool_raised(tmp_path):
    def explode() -> str:
        raise RuntimeError("no fuel")

    with serving(streamed(*call("explode", "{}")), streamed(*text("Oh."))) as server:
        assert run(server, tmp_path, [explode]).text == "Oh."
    assert "RuntimeError: no fuel" in server.requests[1].json["messages"][2]["content"]


def test_run_tells_the_model_of_a_cut_call_and_does_not_run_it(tmp_path):
    ran = []

    def write(content: str) -> str:
        ran.append(content)
        return "written"

    cut = [*call("write", '{"content": "one two')[:-2], event({}, "length"), b"data: [DONE]\n\n"]
    with serving(streamed(*cut), streamed(*text("Done."))) as server:
        assert run(server, tmp_path, [write]).text == "Done."
    assert ran == []
    assert "Your call of write was not run" in server.requests[1].json["messages"][-1]["content"]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("bad_first", [False, True])
def test_run_runs_no_call_beside_a_failed_one(tmp_path, is_async, bad_first):
    """A failed answer: its good calls get an error each, and the model is told of the bad one."""
    ran = []

    def write(content: str) -> str:
        ran.append(content)
        return "written"

    texts = ['{"content": "all"}', '{"content": "half', '{"content": "more"}']
    made = [
        {"index": index, "id": f"c{index}", "type": "function", "function": {"name": "write", "arguments": arguments}}
        for index, arguments in enumerate(texts[1:] if bad_first else texts)
    ]
    answer = [event({"tool_calls": made}), event({}, "tool_calls"), b"data: [DONE]\n\n"]

    async def main(server: Scripted) -> str:
        async with dragoman.AsyncClient(config_for(server, tmp_path)) as client:
            return (await client.run("lab/m", "Write.", tools=[write])).text

    with serving(streamed(*answer), streamed(*text("Done."))) as server:
        assert (asyncio.run(main(server)) if is_async else run(server, tmp_path, [write]).text) == "Done."
    assert ran == []
    (*_, said) = sent = server.requests[1].json["messages"]
    assert "Your call of write was not run" in said["content"]
    results = {message["tool_call_id"]: message["content"] for message in sent if message["role"] == "tool"}
    assert sorted(results) == (["c1"] if bad_first else ["c0", "c2"])
    assert all("another call of the same answer" in told for told in results.values())


def test_run_runs_no_call_of_a_failed_response(tmp_path):
    ran = []

    def write(content: str) -> str:
        ran.append(content)
        return "written"

    broken = [head(), *map(chunk, call("write", '{"content": "all"}')[:-2]), "close"]
    with serving(broken) as server, pytest.raises(CallFailed) as caught:
        run(server, tmp_path, [write])
    assert ran == []
    assert [made.name for made in caught.value.reply.tool_calls] == ["write"]


def test_run_stops_at_its_limit(tmp_path):
    with serving(streamed(*call("get_weather", '{"city": "Paris"}'))) as server:
        with pytest.raises(StepLimit, match="after 3 steps") as caught:
            run(server, tmp_path, [get_weather], max_steps=3)
    assert len(server.requests) == 3
    assert caught.value.messages[-1].role == "tool"


# ---------------------------------------------------------------- bad use


def test_reply_raises_and_keeps_what_came(tmp_path):
    with serving([head(), chunk(event({"content": "b"})), "close"]) as server:
        with dragoman.Client(config_for(server, tmp_path)) as client:
            with pytest.raises(CallFailed) as caught:
                client.reply("lab/m", "hello")
    assert caught.value.failure.kind == "connection"
    assert caught.value.reply.text == "b"


@pytest.mark.parametrize(
    ("target", "messages", "tools", "said"),
    [
        ("lob/m", "hello", (), "unknown provider 'lob'; nearest: lab"),
        ("lab", "hello", (), "expected provider/model or the name of a route"),
        ("lab/m", [], (), "expected at least one message"),
        ("lab/m", [3], (), "messages[0]: expected a string, a Message or a dict, got an int"),
        ("lab/m", "hello", [3], "tools[0]: expected a function, a Tool, a model or a dict, got an int"),
        ("lab/m", "hello", [{"colour": 1}], "got the keys colour at tools[0]"),
        ("lab/m", "hello", [get_weather, get_weather], "get_weather more than once"),
        ("lab/m", "hello", [lambda: 1], "give it a name with def"),
    ],
)
def test_what_cannot_be_asked_is_said_at_once(target, messages, tools, said, tmp_path):
    with dragoman.Client(config_for("http://127.0.0.1:9", tmp_path)) as client, pytest.raises(UsageError) as caught:
        client.stream(target, messages, tools=tools)
    assert said in str(caught.value)


def test_a_missing_authority_file_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigError, match="ca_file"):
        config_for("http://127.0.0.1:9", tmp_path, '[http]\nca_file = "no-such.pem"')


def test_a_call_is_whole_before_its_end_event(tmp_path):
    with serving(streamed(*call("get_weather", '{"city": "Paris"}'))) as server:
        ends = [step for step in events_of(server, tmp_path, tools=[get_weather]) if isinstance(step, ToolCallEnd)]
    assert [end.call.values() for end in ends] == [{"city": "Paris"}]


# ---------------------------------------------------------------- deviations, strict mode, policies


ODD = [event({"tool_calls": [{"index": 0, "function": {"name": "get_weather", "arguments": '{"city": 5}'}}]}),
       event({}, "tool_calls"), b"data: [DONE]\n\n"]  # fmt: skip


def test_deviations_are_counted_and_told(tmp_path):
    told = []
    with serving(streamed(*ODD)) as server:
        config = config_for(server, tmp_path)
        with dragoman.Client(config, on_deviation=lambda target, found: told.append((target, found.code))) as client:
            reply = client.reply("lab/m", "hello", tools=[get_weather])
            counts = dict(client.deviations)
    assert reply.tool_calls[0].values() == {"city": "5"}
    assert ("lab/m", "coerced-arguments") in told
    assert counts["lab", "m", "missing-id"] == 1
    assert [code for _, code in told] == [found.code for found in reply.deviations]


@pytest.mark.parametrize("where", ["client", "provider", "model", "route"])
def test_strict_mode_is_set_for_a_client_a_provider_a_model_or_a_route(where, tmp_path):
    more = {
        "provider": "strict = true",
        "model": '[models."lab/m"]\nstrict = true',
        "route": '[routes.coder]\ntargets = ["lab/m"]\nstrict = true',
    }.get(where, "")
    with serving(streamed(*ODD)) as server:
        strict = True if where == "client" else None
        with dragoman.Client(config_for(server, tmp_path, more), strict=strict) as client:
            with pytest.raises(CallFailed) as caught:
                client.reply("coder" if where == "route" else "lab/m", "hello", tools=[get_weather])
    assert "(strict)" in caught.value.failure.message


def test_what_strict_refuses_is_asked_of_the_next_target_and_not_again(tmp_path):
    with serving(streamed(*ODD)) as server:
        with dragoman.Client(config_for(server, tmp_path), strict=True, retries=2) as client:
            with pytest.raises(CallFailed) as caught:
                client.reply("lab/m", "hello", tools=[get_weather])
        assert (caught.value.failure.code, len(server.requests)) == ("deviation_refused", 1)
    with serving(streamed(*ODD), streamed(*call("get_weather", '{"city": "Paris"}'))) as server:
        more = '[routes.two]\ntargets = ["lab/m", "lab/n"]\nstrict = true'
        with dragoman.Client(config_for(server, tmp_path, more)) as client:
            reply = client.reply("two", "hello", tools=[get_weather])
        assert reply.tool_calls[0].values() == {"city": "Paris"}
        assert len(server.requests) == 2


@pytest.mark.parametrize(("policy", "city"), [("live", "5"), ("whole", "5"), ("raw", 5)])
def test_a_route_says_how_arguments_are_treated(policy, city, tmp_path):
    more = f'[routes.coder]\ntargets = ["lab/m"]\narguments = "{policy}"'
    seen = threading.Semaphore(0)  # the second half leaves when something of the first was seen, if it is given out
    first, start, *rest = streamed(*call_in("get_weather", ['{"days":1,', ' "city": 5}']))
    steps = [first, start, rest[0], *([] if policy == "whole" else [seen]), *rest[1:]]
    found = []
    with serving(steps) as server, dragoman.Client(config_for(server, tmp_path, more)) as client:
        with client.stream("coder", "hello", tools=[get_weather]) as stream:
            for step in stream:
                if isinstance(step, ToolCallDelta):
                    found.append(step)
                    seen.release()
        assert stream.reply.tool_calls[0].values()["city"] == city
    assert (len(found) == 1) == (policy == "whole")


def test_a_prompt_that_was_cut_short_is_told(tmp_path):
    usage = {"prompt_tokens": 30, "completion_tokens": 1}
    body = [event({"content": "b"}), event({}, "stop", usage=usage), b"data: [DONE]\n\n"]
    with serving(streamed(*body)) as server:
        config = config_for(server, tmp_path, "local = true")
        with dragoman.Client(config) as client:
            reply = client.reply("lab/m", "word " * 2000)
            assert [found.code for found in reply.deviations] == ["context-truncated"]
            assert client.reply("lab/m", "word").deviations == ()
