"""`dragoman demo`: a leg against scripted bytes, the broken streams, the picture that is drawn of them."""

import asyncio
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from answering import answering
from dragoman import _json
from dragoman.cli.commands.demo import ProgressBar, say_how_to_use
from dragoman.cli.demo_broken import BROKEN_STREAMS, excerpt, render_broken, render_mended
from dragoman.cli.demo_live import LEGS, TOOLS, Leg, play, render_step
from dragoman.cli.main import main
from dragoman.cli.terminal import Paint
from dragoman.discovery.query_server import make_transport
from dragoman.events import Start, ToolCallDelta
from dragoman.protocol import PLAIN, ModelLimits
from dragoman.protocols import PROTOCOLS
from dragoman.providers.catalog import Provider
from dragoman.routing.target import Target
from dragoman.secret import Secret
from scripted import Step, serving, streamed, whole

PROJECT = Path(__file__).resolve().parents[2]
PLAIN_PAINT = Paint(colourful=False)


def messages(*frames: dict[str, object]) -> list[Step]:
    """An Anthropic stream, one frame a chunk."""
    start = {"type": "message_start", "message": {"id": "m", "model": "tiny", "role": "assistant", "content": []}}
    all_frames = [start, *frames, {"type": "message_stop"}]
    return streamed(
        *(f"event: {frame['type']}\n".encode() + b"data: " + _json.encode(frame) + b"\n\n" for frame in all_frames)
    )


def block(index: int, block: dict[str, object], *deltas: dict[str, object]) -> list[dict[str, object]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def end(reason: str) -> dict[str, object]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"input_tokens": 7, "output_tokens": 3}}


ADD = block(
    0,
    {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {}},
    {"type": "input_json_delta", "partial_json": '{"a": 2,'},
    {"type": "input_json_delta", "partial_json": ' "b": 3}'},
)
SAID = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "It is 5."})


def play_against(
    *replies: list[Step], leg: Leg = LEGS[1], width: int = 120, with_bytes: bool = False
) -> tuple[bool, list[dict[str, object]]]:
    """One leg, and the bodies of the requests that came."""
    with serving(*replies) as server:
        provider = Provider(name="embedded", protocol=leg.protocol, base_url=server.url, local=True)
        target = Target(provider, PROTOCOLS[leg.protocol], "tiny", PLAIN, ModelLimits(context=2048), Secret("key"))

        async def run() -> bool:
            transport = make_transport(seconds=5)
            try:
                return await play(leg, target, transport, PLAIN_PAINT, width=width, with_bytes=with_bytes)
            finally:
                await transport.close()

        return asyncio.run(run()), [request.json for request in server.requests]


def test_a_leg_shows_bytes_beside_events_and_runs_the_tool(capsys: pytest.CaptureFixture[str]) -> None:
    called, requests = play_against(messages(*ADD, end("tool_use")), messages(*SAID, end("end_turn")), with_bytes=True)
    out = capsys.readouterr().out
    assert called
    assert '…"partial_json":' in out
    assert "ToolCallStart add toolu_1" in out and "Finish tool_use" in out
    assert '  add({"a": 2, "b": 3})\n  the tool says   2 + 3 = 5\n  the model says  It is 5.\n' in out
    forced, told = requests
    assert forced["tools"] and "<tool_call>" in str(forced["messages"])
    assert "tools" not in told
    assert "2 + 3 = 5" in str(told["messages"])


def test_a_leg_shows_the_call_alone(capsys: pytest.CaptureFixture[str]) -> None:
    called, _ = play_against(messages(*ADD, end("tool_use")), messages(*SAID, end("end_turn")), width=80)
    heading, grown, *rest = capsys.readouterr().out.splitlines()
    assert called
    assert heading == "anthropic-messages  'What is the weather in Paris?'"
    assert grown.endswith(' s  add({"a": 2, "b": 3})')
    assert rest == ["  the tool says   2 + 3 = 5", "  the model says  It is 5.", ""]


def test_no_line_of_a_leg_is_wider_than_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """However long what the model writes is, and whatever it would steer the terminal with."""
    long = block(
        0,
        {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"city":\n'},
        {"type": "input_json_delta", "partial_json": f'"{"x" * 30}\x1b[2J'},
        {"type": "input_json_delta", "partial_json": f'{"y" * 300}"}}'},
    )
    said = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "word " * 60})
    for with_bytes in (False, True):
        play_against(
            messages(*long, end("tool_use")), messages(*said, end("end_turn")), width=80, with_bytes=with_bytes
        )
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= 80
        assert "\x1b" not in out and "x" * 20 in out


@pytest.mark.parametrize(
    "reply",
    [
        messages(*SAID, end("end_turn")),
        messages(*ADD[:2], end("tool_use")),
        [*messages(*ADD, end("tool_use"))[:3], "close"],
        whole(b'{"error": {"message": "no room"}}', status=503),
    ],
)
def test_a_leg_without_a_whole_call_says_so(reply: list[Step], capsys: pytest.CaptureFixture[str]) -> None:
    called, requests = play_against(reply)
    assert not called
    assert "no tool call: " in capsys.readouterr().out
    assert len(requests) == 1  # nothing was run, nothing was told


def test_a_tool_that_cannot_run_tells_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    odd = block(
        0,
        {"type": "tool_use", "id": "toolu_1", "name": "set_timer", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"minutes": 100000}'},
    )
    called, (_, told) = play_against(messages(*odd, end("tool_use")), messages(*SAID, end("end_turn")))
    assert called
    assert "failed: " in capsys.readouterr().out
    assert "failed: " in str(told["messages"])


def test_the_legs_cover_the_servers_three_protocols() -> None:
    assert {leg.protocol for leg in LEGS} == {"openai-chat", "anthropic-messages", "openai-responses"}
    assert all(tool.tool.schema_object()["properties"] for tool in TOOLS.values())


def test_a_step_puts_rows_side_by_side() -> None:
    data = b"event: a\ndata: one\n\ndata: two\n\n"
    step = render_step(1.5, data, [Start(), ToolCallDelta(0, '{"a'), Start()], PLAIN_PAINT, width=100)
    rows = [line.split() for line in step.splitlines()]
    assert rows == [["1.500", "s", "data:", "one", "Start"], ["data:", "two", "ToolCallDelta", "'{\"a'"], ["Start"]]


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ([{"name": "plain"}, {"name": "granite4"}], 'call ollama/granite4 "Why is the sky blue?"'),
        ([{"name": "plain"}], 'call ollama/plain "Why is the sky blue?"'),
        ([], "ollama pull granite4"),
    ],
)
def test_an_ollama_server_is_named_with_a_model_that_has_tools(models: list[dict[str, str]], said: str) -> None:
    answers: dict[str, Any] = {
        "/api/tags": {"models": models},
        "/api/show": lambda body: {"capabilities": ["tools"] if body["model"] == "granite4" else []},
    }
    with answering(answers) as url:
        assert said in asyncio.run(ask_ollama(url))
    assert asyncio.run(ask_ollama(url)) == ""


async def ask_ollama(url: str) -> str:
    transport = make_transport(seconds=5)
    try:
        provider = Provider(name="ollama", protocol="ollama-chat", base_url=url, local=True)
        return await say_how_to_use(provider, transport, PLAIN_PAINT)
    finally:
        await transport.close()


# ---------------------------------------------------------------- broken streams


@pytest.mark.parametrize("stream", BROKEN_STREAMS, ids=lambda stream: stream.file)
def test_each_broken_stream_is_mended_and_named(stream: object) -> None:
    assert stream in BROKEN_STREAMS
    reply = stream.decoded()  # type: ignore[attr-defined]
    drawn = render_broken(stream, PLAIN_PAINT, width=100)  # type: ignore[arg-type]
    assert reply.error is None and reply.stop_reason == "tool_use"
    assert reply.deviations
    assert all(f"    {call.name}({call.arguments})" in drawn for call in reply.tool_calls)
    assert all(deviation.code in drawn for deviation in reply.deviations)
    assert max(map(len, drawn.splitlines())) <= 100


def test_the_mended_streams_come_first_in_fifteen_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--streams"]) == 0
    lines = capsys.readouterr().out.partition("That took")[0].splitlines()
    assert len(lines) <= 15 and max(map(len, lines)) <= 80
    for stream in BROKEN_STREAMS:
        drawn = render_mended(stream, PLAIN_PAINT, width=80)
        assert drawn.splitlines()[0] in lines
        assert all(f"{call.name}({call.arguments})" in drawn for call in stream.decoded().tool_calls)
        assert all(deviation.code in drawn for deviation in stream.decoded().deviations)


def test_what_the_three_come_to() -> None:
    replies = [stream.decoded() for stream in BROKEN_STREAMS]
    calls = [[(call.name, call.values()) for call in reply.tool_calls] for reply in replies]
    assert calls == [
        [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"})],
        [("list_files", {})],
        [("get_weather", {"city": "Lyon", "days": 3})],
    ]
    assert all(call.id for reply in replies for call in reply.tool_calls)


def test_an_excerpt_begins_where_a_line_becomes_interesting() -> None:
    line = 'data: {"id":"a long identifier","choices":[{"delta":{"content":"word"}}]}'
    assert excerpt(line, 200) == line
    assert excerpt(line, 40) == 'data: …"delta":{"content":"word"}}]}'
    assert excerpt("data: " + "x" * 100, 20) == "data: " + "x" * 13 + "…"


def test_the_streams_alone_need_no_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--streams"]) == 0
    out = capsys.readouterr().out
    assert [stream.title in out for stream in BROKEN_STREAMS] == [True] * 3
    assert max(map(len, out.splitlines())) <= 80
    steps = [line for line in out.partition("Next:\n")[2].splitlines() if line.endswith(":")]
    assert steps[:3] == ["  Ask it yourself:", "  See your servers and keys:", "  Serve your own client:"]


def test_the_picture_is_what_the_command_prints() -> None:
    run = subprocess.run(
        [sys.executable, "scripts/make_picture.py", "--check"], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    texts = ElementTree.parse(PROJECT / "docs" / "images" / "mended.svg").iter("{http://www.w3.org/2000/svg}text")
    assert any("reused-index" in "".join(text.itertext()) for text in texts)


def test_progress_is_a_bar_in_a_terminal_and_lines_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    for is_terminal in (True, False):
        bar = ProgressBar(is_terminal=is_terminal)
        for done in (0, 1_000_000, 50_000_000, 100_000_000):
            bar.show(done, 100_000_000)
    drawn = capsys.readouterr().err
    assert "\rfetching the model  ███████████████░░░░░░░░░░░░░░░  50 of 100 MB" in drawn
    assert drawn.endswith(
        "fetching the model: 0 of 100 MB\nfetching the model: 50 of 100 MB\nfetching the model: 100 of 100 MB\n"
    )
