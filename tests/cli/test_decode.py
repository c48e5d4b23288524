"""`dragoman decode` and `translate`: raw bodies in, JSON or another protocol's bytes out."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragoman as library
from cli.here import run_here as dragoman
from dragoman.cli.body_input import load_tools
from dragoman.errors import UsageError
from dragoman.protocols import PROTOCOLS
from dragoman.types import ProtocolName

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
KEYS = ["tool_calls", "text", "thinking", "stop_reason", "usage", "cost", "model", "error", "deviations"]


def chat_frame(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
    chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def chat_call(arguments: str) -> bytes:
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "save", "arguments": arguments}}
    return chat_frame({"tool_calls": [call]}) + chat_frame({}, "tool_calls") + b"data: [DONE]\n\n"


def test_the_result_has_its_keys_in_order_and_both_calls() -> None:
    run = dragoman("decode", "--protocol", "openai-chat", "--result", str(EXAMPLES / "glued.sse"))
    result = json.loads(run.stdout)
    assert (run.returncode, run.stderr, list(result)) == (0, b"", KEYS)
    assert [(call["id"], call["arguments"]) for call in result["tool_calls"]] == [
        ("call_paris", {"city": "Paris"}),
        ("call_rome", {"city": "Rome"}),
    ]
    assert result["stop_reason"] == "tool_use"
    assert result["usage"] == dict.fromkeys(["input", "output", "cache_read", "cache_write", "reasoning"])
    assert "reused-index" in [deviation["code"] for deviation in result["deviations"]]


def test_events_are_one_object_a_line_and_fold_to_the_same() -> None:
    run = dragoman("decode", "--protocol", "openai-chat", "-", stdin=(EXAMPLES / "glued.sse").read_bytes())
    events = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0
    assert events[-1]["type"] == "Finish"
    assert [event["call"]["arguments"] for event in events if event["type"] == "ToolCallEnd"] == [
        '{"city": "Paris"}',
        '{"city": "Rome"}',
    ]


def test_numbers_in_arguments_keep_their_form() -> None:
    arguments = '{"big": 123456789012345678901234567890, "one": 1.0, "price": 0.10, "huge": 1e300}'
    run = dragoman("decode", "--protocol", "openai-chat", "--result", stdin=chat_call(arguments))
    assert arguments.encode() in run.stdout
    assert json.loads(run.stdout)["tool_calls"][0]["arguments"]["big"] == 123456789012345678901234567890


def test_the_text_of_a_custom_tool_is_an_object_too() -> None:
    item = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "call_1", "name": "write_sql", "input": "SELECT 1"}
    body = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [item]}
    run = dragoman("decode", "--protocol", "openai-responses", "--result", stdin=json.dumps(body).encode())
    assert json.loads(run.stdout)["tool_calls"] == [
        {"id": "call_1", "name": "write_sql", "arguments": {"input": "SELECT 1"}}
    ]


def test_a_failed_call_is_an_error_of_its_own_kind() -> None:
    run = dragoman("decode", "--protocol", "openai-chat", "--result", stdin=chat_call('{"city": "Pa'))
    result = json.loads(run.stdout)
    assert run.returncode == 1
    assert (result["tool_calls"], result["stop_reason"], result["error"]["kind"]) == ([], "error", "tool_call")
    assert run.stderr.startswith(b"dragoman: tool_call: ") and run.stderr.count(b"\n") == 1
    assert b"Pa" not in run.stderr


def test_a_stream_that_breaks_off_keeps_what_came() -> None:
    run = dragoman("decode", "--protocol", "openai-chat", "--result", stdin=chat_frame({"content": "half an answer"}))
    result = json.loads(run.stdout)
    assert run.returncode == 1
    assert (result["text"], result["stop_reason"], result["error"]["status"]) == ("half an answer", "error", None)


def test_an_error_status_is_read_as_an_error() -> None:
    body = b'{"error": {"message": "slow down", "type": "rate_limit_error"}}'
    for result_only in (["--result"], []):
        words = ["decode", "--protocol", "anthropic-messages", "--status", "429", *result_only]
        run = dragoman(*words, "--content-type", "application/json", stdin=body)
        assert run.returncode == 1
        out = json.loads(run.stdout)
        error = out["error"] if result_only else out
        assert (error["kind"], error["message"], error["status"]) == ("rate", "slow down", 429)


def test_strict_ends_at_the_first_deviation() -> None:
    run = dragoman("decode", "--protocol", "openai-chat", "--strict", "--result", str(EXAMPLES / "glued.sse"))
    result = json.loads(run.stdout)
    assert run.returncode == 1
    assert result["error"]["kind"] == "wire" and "(strict)" in result["error"]["message"]
    assert len(result["deviations"]) == 1


def test_a_cost_is_exact_text() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "cost": 0.00000012}
    body = chat_frame({"content": "hi"}, "stop") + chat_frame({}, usage=usage) + b"data: [DONE]\n\n"
    reply = library.decode(body, "openai-chat")
    result = json.loads(dragoman("decode", "--protocol", "openai-chat", "--result", stdin=body).stdout)
    assert (result["usage"]["input"], result["usage"]["output"]) == (3, 2)
    if reply.cost is not None:  # a dialect may be needed for the provider's own cost
        assert result["cost"] == {"usd": "0.00000012", "source": "provider"}


def test_bytes_are_decoded_as_they_come() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "dragoman", "decode", "--protocol", "openai-chat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as run:
        assert run.stdin is not None and run.stdout is not None
        run.stdin.write(chat_frame({"content": "first"}))
        run.stdin.flush()
        seen = b""
        while b'"first"' not in seen:  # with the input still open
            seen = run.stdout.readline()
            assert seen
        run.stdin.close()
        run.stdout.read()


def test_a_broken_tools_file_is_wrong_usage(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    for text, said in (
        ("{", "expected a JSON array"),
        ("{}", "expected a JSON array of tools, got dict"),
        ("[3]", "$[0]: expected an object, got int"),
        ('[{"name": ""}]', "$[0].name: expected a name"),
        ('[{"name": "a", "parameters": []}]', "$[0].parameters: expected a JSON schema, got list"),
        ('[{"function": {"name": "a", "description": 1}}]', "$[0].function.description: expected text, got int"),
    ):
        file.write_text(text)
        with pytest.raises(UsageError) as caught:
            load_tools(file)
        assert said in str(caught.value)
    assert dragoman("decode", "--protocol", "openai-chat", "--tools", str(file)).returncode == 2


def test_tools_may_stand_in_the_form_of_a_request(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    schema = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 12345678901234567890}}}
    forms = [
        {"name": "a", "description": "d", "parameters": schema},
        {"name": "b", "description": "d", "input_schema": schema},
        {"type": "function", "function": {"name": "c", "description": "d", "parameters": schema}},
        {"name": "d", "description": None},
    ]
    file.write_text(json.dumps(forms))
    tools = load_tools(file)
    assert [tool.name for tool in tools] == ["a", "b", "c", "d"]
    assert [tool.schema_object() for tool in tools[:3]] == [schema] * 3
    assert tools[3].schema is None and tools[3].description == ""


# ---------------------------------------------------------------- translate


def test_translated_bytes_say_the_same() -> None:
    run = dragoman("translate", "--from", "openai-chat", "--to", "anthropic-messages", str(EXAMPLES / "glued.sse"))
    assert (run.returncode, run.stderr) == (0, b"")
    before = library.decode((EXAMPLES / "glued.sse").read_bytes(), "openai-chat")
    after = library.decode(run.stdout, "anthropic-messages")
    assert [(call.name, call.arguments) for call in after.tool_calls] == [
        (call.name, call.arguments) for call in before.tool_calls
    ]
    assert after.stop_reason == "tool_use"
    assert after.deviations == ()


def test_what_the_target_cannot_say_is_named_on_standard_error() -> None:
    choice = {"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop", "odd": {"a": 1}}
    body = json.dumps({"id": "c", "model": "m", "choices": [choice], "system_fingerprint": "fp"}).encode()
    run = dragoman("translate", "--from", "openai-chat", "--to", "ollama-chat", stdin=body)
    lost = b"dragoman: ollama-chat has no place for system_fingerprint, choices[0].odd\n"
    assert (run.returncode, run.stderr) == (0, lost)


def test_the_output_names_the_model_that_was_asked_for() -> None:
    words = ["translate", "--from", "openai-chat", "--to", "ollama-chat", "--model", "mine"]
    run = dragoman(*words, str(EXAMPLES / "glued.sse"))
    assert library.decode(run.stdout, "ollama-chat").model == "mine"


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "openai-chat"])
def test_the_output_names_the_model_of_the_input(protocol: ProtocolName) -> None:
    body = (EXAMPLES / "glued.sse").read_bytes()
    run = dragoman("translate", "--from", "openai-chat", "--to", protocol, stdin=body)
    said = library.decode(body, "openai-chat").model
    assert said
    assert library.decode(run.stdout, protocol).model == said


def test_a_response_that_breaks_off_stays_broken() -> None:
    whole = (EXAMPLES / "glued.sse").read_bytes()
    cut = whole[: whole.index(b"call_rome") + 300]
    run = dragoman("translate", "--from", "openai-chat", "--to", "anthropic-messages", stdin=cut)
    assert run.returncode == 1
    assert run.stderr.count(b"\n") == 1
    assert library.decode(run.stdout, "anthropic-messages").error is not None


def test_translation_streams() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "dragoman", "translate", "--from", "openai-chat", "--to", "anthropic-messages"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as run:
        assert run.stdin is not None and run.stdout is not None
        run.stdin.write(chat_frame({"content": "first"}))
        run.stdin.flush()
        seen = b""
        while b"first" not in seen:  # with the input still open
            came = os.read(run.stdout.fileno(), 65536)
            assert came
            seen += came
        run.stdin.close()
        run.stdout.read()
    assert run.returncode == 1  # it broke off
