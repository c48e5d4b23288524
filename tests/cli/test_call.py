"""`dragoman call` against a scripted server, and the drawing of an answer."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from answering import answering
from dragoman.cli.draw_stream import Drawing, render_summary
from dragoman.cli.main import main
from dragoman.cli.terminal import Paint
from dragoman.events import (
    Deviation,
    Event,
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
    fold,
)
from dragoman.testing import FakeModel
from dragoman.types import Media, ToolCall, Usage
from scripted import Step, serving, streamed, whole

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def ollama(*messages: dict[str, Any], reason: str = "stop") -> list[Step]:
    lines = [{"model": "granite4", "message": {"role": "assistant", **message}, "done": False} for message in messages]
    end = {"model": "granite4", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reason}
    lines.append({**end, "prompt_eval_count": 12, "eval_count": 5})
    return streamed(*(json.dumps(line).encode() + b"\n" for line in lines), content_type="application/x-ndjson")


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Points the provider `ollama` at a URL."""

    def write(url: str) -> None:
        (tmp_path / "dragoman.toml").write_text(f'[providers.ollama]\nbase_url = "{url}"\n')
        monkeypatch.setenv("DRAGOMAN_CONFIG", str(tmp_path / "dragoman.toml"))

    return write


CALL = {"content": "", "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Paris"}}}]}


def test_an_answer_is_drawn_and_summed_up(configure: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(
        ollama({"content": "", "thinking": "hm" * 300}, {"content": "Let me "}, {"content": "look."}, CALL)
    ) as server:
        configure(server.url)
        status = main(["call", "ollama/granite4", "Weather in Paris?", "--tools", str(EXAMPLES / "tools.json")])
        (request,) = server.requests
    out = capsys.readouterr()
    assert status == 0
    assert out.out == 'thinking ... 600 characters\nLet me look.\nget_weather({"city": "Paris"})\n'
    assert out.err.startswith("tool_use · 12 in, 5 out")
    assert request.json["model"] == "granite4"
    assert [tool["function"]["name"] for tool in request.json["tools"]] == ["get_weather"]


def test_thinking_may_be_shown(configure: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(ollama({"content": "", "thinking": "hm, well"}, {"content": "Yes."})) as server:
        configure(server.url)
        assert main(["call", "ollama/granite4", "Really?", "--thinking"]) == 0
    assert capsys.readouterr().out == "hm, well\nYes.\n"


def test_events_come_one_a_line(configure: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(ollama(CALL)) as server:
        configure(server.url)
        assert main(["call", "ollama/granite4", "Weather?", "--json"]) == 0
    out = capsys.readouterr()
    events = [json.loads(line) for line in out.out.splitlines()]
    assert events[-1]["type"] == "Finish" and events[-1]["reason"] == "tool_use"
    assert [event["call"]["arguments"] for event in events if event["type"] == "ToolCallEnd"] == ['{"city": "Paris"}']
    assert out.err == ""


def test_a_refusal_of_the_server_is_one_line(configure: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(whole(b'{"error": "model \\"granite4\\" not found"}', status=404)) as server:
        configure(server.url)
        assert main(["call", "ollama/granite4", "Hello", "--json"]) == 1
        err = capsys.readouterr().err
    told = f"(ollama: POST {server.url}/api/chat answered 404)"
    assert err == f'dragoman: not_found: model "granite4" not found {told}\n'


def test_a_stream_that_breaks_off_keeps_what_was_drawn(configure: Any, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [*ollama({"content": "half an"})[:2], "close"]
    with serving(steps) as server:
        configure(server.url)
        assert main(["call", "ollama/granite4", "Hello"]) == 1
    out = capsys.readouterr()
    assert out.out == "half an\n"
    assert out.err.splitlines()[-1].startswith("dragoman: ")


def test_unknown_targets_are_wrong_usage(configure: Any, capsys: pytest.CaptureFixture[str]) -> None:
    configure("http://127.0.0.1:9")
    assert main(["call", "olama/granite4", "Hello"]) == 2
    assert "nearest: ollama" in capsys.readouterr().err


# ---------------------------------------------------------------- drawing


def draw(*events: Event, unfold: bool = False) -> str:
    drawing = Drawing(Paint(colourful=False), unfold=unfold)
    return "".join(drawing.draw([event]) for event in events)


def test_calls_grow_as_their_arguments_come() -> None:
    call = ToolCall("c", "save", '{"text": "a\\nb"}')
    pieces = [ToolCallDelta(0, '{"text": "a'), ToolCallDelta(0, '\\nb"}')]
    events: Sequence[Event] = [
        Start(),
        ToolCallStart(0, "c", "save"),
        *pieces,
        ToolCallEnd(0, call),
        Finish("tool_use"),
    ]
    drawing = Drawing(Paint(colourful=False))
    assert [drawing.draw([event]) for event in events] == [
        "", "save(", '{"text": "a', '\\nb"}', ")\n", "",
    ]  # fmt: skip


def test_parts_stand_on_lines_of_their_own_and_steer_nothing() -> None:
    drawn = draw(
        TextStart(0),
        TextDelta(0, "one\033[2J\n"),
        TextEnd(0),
        PartEvent(1, Media("image", "image/png", "AAAA")),
        ThinkingStart(2),
        ThinkingDelta(2, "x" * 450),
        ThinkingEnd(2),
        ToolCallStart(3, "c", "cut"),
        ToolCallDelta(3, '{"a'),
        ToolCallFailed(3, "c", "cut", "cut", "the arguments end early"),
        Failure("connection", "broke"),
    )
    assert drawn.splitlines() == [
        "one�[2J",
        "[image]",
        "thinking .. 450 characters",
        'cut({"a',
        "cut failed: the arguments end early",
    ]
    assert drawn.endswith("\n")


def test_the_summary_names_what_was_odd_once() -> None:
    odd = [Deviation("missing-id"), Deviation("missing-id"), Deviation("stop-reason")]
    reply = fold([*odd, Start(), Finish("stop", None, Usage(1200, None))])
    assert render_summary(reply) == "stop · 1,200 in, ? out · odd: missing-id, stop-reason"


def test_the_summary_says_which_target_answered_in_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeModel("Hello.").serve() as served:
        lab, gone = (
            f'[providers.{name}]\nprotocol = "openai-chat"\nbase_url = "{url}/v1"\n'
            for name, url in (("lab", served.url), ("gone", "http://127.0.0.1:9"))
        )
        (tmp_path / "dragoman.toml").write_text(f'{lab}{gone}[routes.fast]\ntargets = ["gone/m", "lab/m"]\n')
        monkeypatch.setenv("DRAGOMAN_CONFIG", str(tmp_path / "dragoman.toml"))
        assert main(["call", "fast", "hi"]) == 0
    out = capsys.readouterr()
    assert out.out == "Hello.\n" and out.err.endswith(" · gone/m failed (connection); lab/m answered\n")


# ---------------------------------------------------------------- which model

SHOWN: dict[str, Any] = {
    "/api/tags": {"models": [{"name": "tiny:1b"}, {"name": "granite4:latest"}]},
    "/api/show": lambda body: {
        "capabilities": ["completion", "tools"] if "granite" in body["model"] else ["completion"]
    },
    "/api/chat": lambda body: (
        {
            "model": body["model"],
            "message": {"role": "assistant", "content": "Yes."},
            "done": True,
            "done_reason": "stop",
        }
        if body["model"] == "granite4:latest"
        else (404, {"error": f"model '{body['model']}' not found"})
    ),
}


def test_without_a_target_a_model_is_asked_that_takes_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(SHOWN) as url, answering({}) as unused:
        others = "".join(f'[providers.{name}]\nbase_url = "{unused}/v1"\n' for name in ("lmstudio", "llamacpp", "vllm"))
        (tmp_path / "dragoman.toml").write_text(
            f'{others}[providers.sglang]\nbase_url = "{unused}/v1"\n[providers.ollama]\nbase_url = "{url}"\n'
        )
        monkeypatch.setenv("DRAGOMAN_CONFIG", str(tmp_path / "dragoman.toml"))
        assert main(["call", "Really?"]) == 0
    out = capsys.readouterr()
    assert out.out == "Yes.\n"
    assert out.err.startswith("ollama/granite4:latest (takes tools, says the server)\n")


def test_a_model_that_is_missing_is_told_with_those_that_take_tools(
    configure: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(SHOWN) as url:
        configure(url)
        assert main(["call", "ollama/granite5", "Really?"]) == 1
    err = capsys.readouterr().err
    assert err.endswith("ollama has no model 'granite5'; with tools there is: ollama/granite4:latest\n")
