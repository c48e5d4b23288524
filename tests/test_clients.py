"""What `make clients` judges with: a scripted provider that shares no code with dragoman, and pins of its clients."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from driver import SCRIPTS
from plan import Plan, plan_of_commands, plan_of_records
from provider import Played
from roster import DRIVERS
from strict import CHECKS
from wire import MODEL, SIGNATURE, WIRES

from cases import counter
from dragoman import _json
from dragoman.events import fold
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Request, Text, Tool, ToolCall, ToolResult
from for_each import for_each
from grammar import check

LOCKS = SCRIPTS.parent / "locks"
PLAN = plan_of_records()


def after_the_first_step(protocol: str, *, count: int = 3, proof: str = "", stream: bool = True) -> Played:
    """A scripted provider that got the request which follows the plan's first call."""
    (call,) = PLAN.steps[0]
    arguments = json.dumps(call.arguments | {"count": count}, ensure_ascii=False)
    result = ToolResult("call_0", call.name, (Text(proof or call.proof),))
    request = Request(
        MODEL,
        (
            Message("user", (Text("Go."),)),
            Message("assistant", (ToolCall("call_0", call.name, arguments, signature=SIGNATURE),)),
            Message("tool", (result,)),
        ),
        tools=(Tool(call.name, "Record.", _json.raw({"type": "object", "properties": {}})),),
        stream=stream,
    )
    sent = PROTOCOLS[protocol].render_request(request).http
    played = Played("", protocol, PLAN)
    asked = WIRES[protocol].read(WIRES[protocol].base + sent.path, json.loads(sent.body))
    assert asked.stream == stream
    calls, _ = played.answer(asked)
    assert calls == PLAN.steps[1 if not proof else 0]
    return played


@for_each("protocol", PROTOCOLS)
@for_each("stream", [True, False], ids=["streamed", "whole"])
@for_each("calls", [*PLAN.steps, *plan_of_commands("sh", lambda command: {"command": command}).steps])
def test_its_turns_are_read_exactly(protocol: str, stream: bool, calls: tuple) -> None:
    data = b"".join(WIRES[protocol].write(calls, "Let me look. ", 1, stream, 120))
    decoder = PROTOCOLS[protocol].decoder(new_id=counter())
    reply = fold(check([*decoder.feed(data), *decoder.close()]))
    assert [(call.name, call.values()) for call in reply.tool_calls] == [(call.name, call.arguments) for call in calls]
    assert (reply.text, reply.stop_reason, reply.error, reply.deviations) == ("Let me look. ", "tool_use", None, ())
    assert (reply.usage.input, reply.usage.output) == (120, 34)


@for_each("protocol", PROTOCOLS)
@for_each("stream", [True, False], ids=["streamed", "whole"])
def test_it_finds_no_fault_with_a_right_request(protocol: str, stream: bool) -> None:
    assert after_the_first_step(protocol, stream=stream).faults == []


@for_each("protocol", PROTOCOLS)
def test_it_sees_arguments_that_changed(protocol: str) -> None:
    assert "the call came back changed" in after_the_first_step(protocol, count=4).faults[0]


@for_each("protocol", PROTOCOLS)
def test_it_sees_a_result_that_is_wrong(protocol: str) -> None:
    assert "expected 0 calls with their results, got 1" in after_the_first_step(protocol, proof="none").faults[0]


@for_each(
    ("protocol", "body"),
    [
        ("openai-chat", {"messages": [{"role": "assistant", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "x", "arguments": "{}"}}]}, {"role": "user"}]}),
        ("openai-responses", {"input": [{"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"}]}),
        ("anthropic-messages", {"max_tokens": 1, "messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {}}]}]}),
        ("gemini-generate", {"contents": [{"role": "model", "parts": [{"functionCall": {"name": "x", "args": {}}}]}]}),
        ("ollama-chat", {"messages": [{"role": "tool", "content": "x"}]}),
    ],
)  # fmt: skip
def test_it_refuses_what_the_vendor_refuses(protocol: str, body: dict) -> None:
    with pytest.raises(ValueError, match=r"call|tool_output|tool output|signature"):
        WIRES[protocol].read(WIRES[protocol].path, body)


def test_every_driver_is_its_own_and_pinned() -> None:
    names = [driver.name for driver in DRIVERS]
    assert len(set(names)) == len(names)
    assert {driver.speaks for driver in DRIVERS} == set(PROTOCOLS)
    for name in {driver.lock for driver in DRIVERS} | {"node"}:
        assert (LOCKS / name / "package-lock.json").exists() or (LOCKS / f"{name}.txt").exists(), name
    assert all(isinstance(driver.plan, Plan) for driver in DRIVERS)


@for_each("file", sorted(LOCKS.glob("*.txt")), ids=lambda file: file.stem)
def test_pypi_locks_have_hashes_and_no_addresses(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    pins = re.findall(r"^[a-zA-Z0-9_.-]+(?:\[.*\])?==", text, flags=re.MULTILINE)
    assert pins and "://" not in re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    assert len(re.findall(r"== ?[^\n]*\\\n    --hash=sha256:", text)) == len(pins)


@for_each("file", sorted(LOCKS.glob("*/package-lock.json")), ids=lambda file: file.parent.name)
def test_npm_locks_have_exact_versions_and_no_addresses(file: Path) -> None:
    packages = json.loads(file.read_text(encoding="utf-8"))["packages"]
    assert all("resolved" not in package for package in packages.values())
    wanted = json.loads((file.parent / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert all(packages[f"node_modules/{name}"]["version"] == version for name, version in wanted.items())


# ---------------------------------------------------------------- what vendors refuse by its form

VERSION = {"anthropic-version": "2023-06-01"}
TOOL = {
    "ollama-chat": {"type": "function", "function": {"name": "f", "parameters": {}}},
    "openai-chat": {"type": "function", "function": {"name": "f", "parameters": {}}},
    "openai-responses": {"type": "function", "name": "f", "parameters": {}},
    "anthropic-messages": {"name": "f", "input_schema": {"type": "object"}},
    "gemini-generate": {"functionDeclarations": [{"name": "f"}]},
}


@for_each("protocol", PROTOCOLS)
def test_a_name_that_comes_twice_is_refused(protocol: str) -> None:
    CHECKS[protocol](VERSION, {"tools": [TOOL[protocol]]})
    with pytest.raises(ValueError, match="unique"):
        CHECKS[protocol](VERSION, {"tools": [TOOL[protocol]] * 2})


@for_each(
    ("protocol", "head", "body"),
    [
        ("anthropic-messages", {}, {}),
        ("anthropic-messages", VERSION, {"context_management": {}}),
        ("anthropic-messages", VERSION, {"reasoning_effort": "low"}),
        ("anthropic-messages", VERSION, {"tools": [{"type": "function", "name": "f"}]}),
        ("anthropic-messages", VERSION, {"tools": [{"type": "mcp_toolset", "mcp_server_name": "a"}]}),
        ("anthropic-messages", VERSION, {"tools": [{"name": "a.b", "input_schema": {}}]}),
        ("anthropic-messages", {"anthropic-version": "2026-10-21"}, {"temperature": 0.5}),
        ("openai-chat", {}, {"thinking": {}}),
        ("openai-chat", {}, {"tools": [{"type": "web_search"}]}),
        ("openai-responses", {}, {"messages": []}),
        ("openai-responses", {}, {"tools": [{"type": "bash_20250124", "name": "bash"}]}),
        ("gemini-generate", {}, {"model": "m"}),
        ("gemini-generate", {}, {"tools": [{"web_search": {}}]}),
    ],
)
def test_a_form_that_the_vendor_does_not_know_is_refused(protocol: str, head: dict, body: dict) -> None:
    with pytest.raises(ValueError, match=r"required|unknown|beta header|a tool.s name"):
        CHECKS[protocol](head, body)


def test_a_beta_header_allows_its_field() -> None:
    body = {"context_management": {"edits": []}, "tools": [{"type": "memory_20250818", "name": "memory"}]}
    CHECKS["anthropic-messages"](VERSION | {"anthropic-beta": "x, context-management-2025-06-27"}, body)
