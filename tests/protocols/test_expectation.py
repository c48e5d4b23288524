"""What a request asked for is no deviation in its answer, and what is a note breaks nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import _json
from dragoman.cli.main import main
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Named, ProtocolName, Request, Text, Tool

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def chat(*choices: dict[str, Any]) -> bytes:
    entries = [{"index": place, "finish_reason": "stop", **choice} for place, choice in enumerate(choices)]
    return _json.encode({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": entries})


def said(**message: Any) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": None, **message}}


SEARCHED = {
    "type": "function_call",
    "id": "fc",
    "call_id": "c",
    "name": "found",
    "arguments": "{}",
    "status": "completed",
}
RESPONSE = _json.encode({"id": "resp", "object": "response", "status": "completed", "output": [SEARCHED]})
BRINGING = [
    {"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "found"}]},
    {"type": "tool_search_output", "tools": [{"type": "namespace", "name": "n", "tools": [{"name": "found"}]}]},
]
RESPONSES_TOOL = {"type": "function", "name": "offered", "parameters": {"type": "object"}}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_call_in_a_text_is_none_where_the_request_forbids_calls(protocol: ProtocolName) -> None:
    text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    reply = dragoman.decode(chat(said(content=text)), "openai-chat")
    body = PROTOCOLS[protocol].render_response(reply, new_id=lambda: "x", model="m", created=1)
    for choice, calls in (("auto", 1), ("none", 0)):
        asked = Request("m", (Message("user", (Text("hi"),)),), (Tool("f", ""),), choice)
        request = PROTOCOLS[protocol].render_request(asked).http.body
        if protocol == "ollama-chat" and choice == "none":
            continue  # which has no word for it: the tools are left out
        found = dragoman.decode(body, protocol, request=request)
        assert (len(found.tool_calls), found.text) == (calls, "" if calls else text)


def allowing(protocol: ProtocolName, *names: str) -> dict[str, Any]:
    """The fields of a request that lets only these of its tools be called."""
    if protocol == "gemini-generate":
        return {"toolConfig": {"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": [*names]}}}
    if protocol == "openai-responses":
        tools = [{"type": "function", "name": name} for name in names]
        return {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": tools}}
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}}}


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses", "gemini-generate"])
def test_a_call_in_a_text_is_none_where_the_request_does_not_allow_its_tool(protocol: ProtocolName) -> None:
    text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    reply = dragoman.decode(chat(said(content=text)), "openai-chat")
    body = PROTOCOLS[protocol].render_response(reply, new_id=lambda: "x", model="m", created=1)
    asked = Request("m", (Message("user", (Text("hi"),)),), (Tool("f", ""), Tool("g", "")))
    request: Any = _json.decode(PROTOCOLS[protocol].render_request(asked).http.body)
    for names, calls in ((["g", "f"], 1), (["g", "h"], 0)):
        found = dragoman.decode(body, protocol, request=request | allowing(protocol, *names))
        assert (len(found.tool_calls), found.text) == (calls, "" if calls else text)


@pytest.mark.parametrize(
    ("protocol", "body", "request_fields", "codes"),
    [
        ("openai-chat", chat(said(tool_calls=[CALL])), {"tools": [TOOL], "tool_choice": "required"}, {"stop-reason"}),
        (
            "openai-chat",
            chat(said(tool_calls=[CALL])),
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "f"}}},
            {"stop-reason"},
        ),
        ("openai-chat", chat(said(content="a"), said(content="b")), {"n": 2}, {"extra-choice"}),
        (
            "openai-chat",
            chat(said(function_call={"name": "f", "arguments": "{}"}) | {"finish_reason": "function_call"}),
            {"functions": [{"name": "f", "parameters": {"type": "object"}}]},
            {"legacy-function-call", "missing-id"},
        ),
        *(("openai-responses", RESPONSE, {"input": [bringing], "tools": [RESPONSES_TOOL]}, {"unknown-tool"})
          for bringing in BRINGING),
    ],
)  # fmt: skip
def test_what_was_asked_for_is_no_deviation(
    protocol: ProtocolName, body: bytes, request_fields: dict[str, Any], codes: set[str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    usual = {"messages": [{"role": "user", "content": "hi"}]} if protocol == "openai-chat" else {"input": "hi"}
    tools = [Tool("f"), Tool("offered")]
    assert {found.code for found in dragoman.decode(body, protocol, tools=tools).deviations} == codes
    unasked = dragoman.decode(body, protocol, tools=tools, request={"model": "m", **usual})
    assert {found.code for found in unasked.deviations} == codes
    asked = {**usual, **request_fields}  # without a model: its name may stand in the path
    reply = dragoman.decode(body, protocol, request=asked, strict=True)
    assert (reply.deviations, reply.error) == ((), None)
    (tmp_path / "body").write_bytes(body)
    (tmp_path / "request").write_bytes(_json.encode(asked))
    options = ["decode", "--protocol", protocol, "--strict", "--request", str(tmp_path / "request"), "--result"]
    assert main([*options, str(tmp_path / "body")]) == 0
    assert _json.decode(capsys.readouterr().out)["deviations"] == []


def test_another_deviation_is_still_one() -> None:
    body = chat(said(tool_calls=[CALL | {"id": ""}]))
    request = {"messages": [{"role": "user", "content": "hi"}], "tools": [TOOL], "tool_choice": "required"}
    assert [found.code for found in dragoman.decode(body, "openai-chat", request=request).deviations] == ["missing-id"]


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"messages": 5}'])
def test_a_request_that_is_none(body: bytes) -> None:
    with pytest.raises(dragoman.errors.UsageError, match="request"):
        dragoman.decode(chat(said(content="a")), "openai-chat", request=body)


def test_every_protocol_reads_its_request() -> None:
    for name, protocol in PROTOCOLS.items():
        rendered = protocol.render_request(Request("m", (dragoman.Message("user", (dragoman.Text("hi"),)),)))
        assert dragoman.decode(b"", name, request=rendered.http.body).error is not None


@pytest.mark.parametrize(("choice", "is_forced"), [("auto", False), ("any", True), (Named("f"), True)])
def test_a_request_of_ours_tells_it_too(choice: Any, is_forced: bool) -> None:
    request = Request("m", (dragoman.Message("user", (dragoman.Text("hi"),)),), (Tool("f"),), choice)
    expectation = PROTOCOLS["openai-chat"].render_request(request).expectation
    assert expectation.explains(dragoman.Deviation("stop-reason", "stop reason", "stop")) is is_forced


# ---------------------------------------------------------------- notes

OLLAMA = _json.encode(
    {
        "model": "m",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
        "done": True,
        "done_reason": "stop",
    }
)


def test_what_ollama_leaves_out_is_a_note(tmp_path: Path) -> None:
    reply = dragoman.decode(OLLAMA, "ollama-chat", strict=True)
    assert reply.error is None
    assert {(found.code, found.severity) for found in reply.deviations} == {
        ("missing-id", "note"),
        ("missing-type", "note"),
    }
    assert dragoman.decode(OLLAMA, "ollama-chat", strict="notes").error is not None
    (tmp_path / "body").write_bytes(OLLAMA)
    said_so = ["decode", "--protocol", "ollama-chat", "--result", str(tmp_path / "body")]
    assert main([*said_so, "--strict"]) == 0
    assert main([*said_so[:-1], "--strict", said_so[-1]]) == 0
    assert main([*said_so, "--strict", "notes"]) == 1


@pytest.mark.parametrize("call", [{"id": "c1"}, {"id": "c1", "type": "function"}])
def test_a_call_as_ollama_sends_it_has_no_note(call: dict[str, Any]) -> None:
    body = OLLAMA.replace(b'{"function"', _json.encode(call)[:-1] + b',"function"')
    assert dragoman.decode(body, "ollama-chat", strict="notes").deviations == ()
