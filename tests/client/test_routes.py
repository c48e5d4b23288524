"""Another target answers in place of one that fails, and nobody sees that; after the first word nobody may."""

from __future__ import annotations

import pytest

import dragoman
from cases import counter
from chains import CLOCKS, Bench, ask, stream_of
from conversations import reply
from dragoman.client import prepare
from dragoman.events import Failure, Finish, Start, TextDelta, unfold
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Origin, Text, Thinking, ToolCall, ToolResult
from failing import BROKEN, PLACES, Broken, steps
from for_each import for_each
from grammar import check
from scripted import streamed


@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_a_failure_before_the_first_word_is_invisible(
    broken: Broken, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = f"{broken.server}-{broken.protocol}/m", f"good-{broken.protocol}/model-1"
    route = f'[routes.r]\ntargets = ["{first}", "{second}"]'
    config = bench.config(route, http=CLOCKS if broken.failure == "stall" else "")
    bench.answer("good", stream_of(broken.protocol))
    monkeypatch.setattr(prepare, "new_id", counter())
    direct, _ = ask(config, second)
    if broken.server in ("plain", "tls"):
        bench.answer(broken.server, steps(broken))
    monkeypatch.setattr(prepare, "new_id", counter())
    events, attempts = ask(config, "r")
    assert check(events) == direct
    assert [type(event) for event in events].count(Start) == 1
    assert [(one.target, one.outcome) for one in attempts] == [(first, "failed"), (second, "answered")]
    assert len(bench.good.requests) == 2


def test_a_chain_of_broken_targets_ends_with_the_last_failure(bench: Bench) -> None:
    bench.answer("plain", steps(Broken("529", PLACES[0], "openai-chat")))
    route = '[routes.r]\ntargets = ["closed-openai-chat/a", "plain-openai-chat/b"]\nretries = 0'
    [failure], attempts = ask(bench.config(route), "r")
    assert isinstance(failure, Failure) and (failure.kind, failure.status) == ("overloaded", 529)
    assert [(one.outcome, one.kind) for one in attempts] == [("failed", "connection"), ("failed", "overloaded")]


@for_each("protocol", PROTOCOLS)
def test_after_the_first_word_a_failure_stands(protocol: str, bench: Bench) -> None:
    """19 places of an answer at which its provider dies: an error is said, nothing is spliced."""
    config = bench.config(f'[routes.r]\ntargets = ["plain-{protocol}/m", "good-{protocol}/model-1"]')
    encoder = PROTOCOLS[protocol].encoder(new_id=counter(), model="m", created=1_700_000_000)
    whole = encoder.encode(unfold(reply("long")))
    begun = 0
    for place in range(1, 20):
        answer = streamed(whole[: len(whole) * place // 20], content_type=PROTOCOLS[protocol].stream_type)
        bench.answer("plain", [*answer[:-1], "close"])
        bench.answer("good", stream_of(protocol))
        events, attempts = ask(config, "r")
        check(events)
        if bench.good.requests:  # nothing of the answer had come
            assert isinstance(events[-1], Finish)
            assert [one.outcome for one in attempts] == ["failed", "answered"]
            continue
        begun += 1
        assert isinstance(events[-1], Failure), place
        assert not any(isinstance(event, TextDelta) for event in events), "the healthy one's words"
        assert [one.outcome for one in attempts] == ["broken"]
    assert begun or protocol in ("ollama-chat", "gemini-generate"), "there a call comes whole, with the end behind it"


def test_a_whole_answer_that_breaks_in_the_middle_comes_from_another_target(bench: Bench) -> None:
    """Nobody saw any of it."""
    config = bench.config('[routes.r]\ntargets = ["plain-openai-chat/m", "good-openai-chat/model-1"]')
    bench.answer("plain", [*stream_of("openai-chat")[:-2], "close"])
    bench.answer("good", stream_of("openai-chat"))
    with dragoman.Client(config) as client:
        assert client.reply("r", "Hi").text == "Let me look."
    assert (len(bench.plain.requests), len(bench.good.requests)) == (1, 1)


CALL = ToolCall("toolu_01", "get_weather", '{"city":"Paris"}')
ASKED = (
    Message("user", (Text("Weather in Paris?"),)),
    Message(
        "assistant",
        (Thinking("They want the weather.", signature="sealed"), CALL),
        origin=Origin("anthropic-messages", "anthropic/claude"),
    ),
    Message("tool", (ToolResult("toolu_01", "get_weather", (Text("sun"),)),)),
)


@for_each("first", PROTOCOLS)
@for_each("second", PROTOCOLS)
def test_each_target_is_asked_in_its_own_protocol(first: str, second: str, bench: Bench) -> None:
    config = bench.config(f'[routes.r]\ntargets = ["plain-{first}/one", "good-{second}/two"]')
    bench.answer("plain", steps(Broken("529", PLACES[0], first)))
    bench.answer("good", stream_of(second))
    with dragoman.Client(config) as client:
        assert client.reply("r", ASKED).text == "Let me look."
    for protocol, model, [seen] in ((first, "one", bench.plain.requests), (second, "two", bench.good.requests)):
        path = seen.path if ":" in seen.path else ""
        request = PROTOCOLS[protocol].parse_request(seen.body, path=path).request
        assert request.model == model
        [call] = [part for message in request.messages for part in message.parts if isinstance(part, ToolCall)]
        [result] = [part for message in request.messages for part in message.parts if isinstance(part, ToolResult)]
        assert (call.name, call.values(), result.call_id) == ("get_weather", {"city": "Paris"}, call.id)
        assert b"sealed" not in seen.body, "the seal of another's thinking goes to nobody else"
