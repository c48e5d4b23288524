"""MCP servers that a provider asks: the same server, its calls and results, in the words of three protocols."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import _json, decode
from dragoman.errors import UsageError
from dragoman.events import Reply, unfold
from dragoman.history import fit
from dragoman.offering import offer
from dragoman.protocol import Dialect, Rendered, ReplyStyle
from dragoman.protocols import PROTOCOLS
from dragoman.types import ProtocolName
from for_each import for_each

CHAT, RESPONSES, MESSAGES, GEMINI = "openai-chat", "openai-responses", "anthropic-messages", "gemini-generate"
URL = "https://mcp.example.test/sse"
HOSTED = Dialect(supports_vendor_fields=True, hosted_tools=("mcp", "file_search", "image_generation"))


def asking(source: str, server: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A request with a server `docs`."""
    if source == RESPONSES:
        return {"model": "m", "input": "hi", "tools": [{"type": "mcp", "server_label": "docs", **server}], **more}
    if source == GEMINI:
        return {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": [{"mcpServers": [server]}], **more}
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    toolset = {"type": "mcp_toolset", "mcp_server_name": "docs", **more.pop("toolset", {})}
    return {**body, "mcp_servers": [{"type": "url", "name": "docs", **server}], "tools": [toolset], **more}


def sent(source: ProtocolName, body: dict[str, Any], target: ProtocolName) -> Rendered:
    request = PROTOCOLS[source].parse_request(_json.encode(body), path="/v1beta/models/m:generateContent").request
    made = offer(
        request, PROTOCOLS[target], name="lab/m", dialect=HOSTED, policies={}, protocols=PROTOCOLS.__getitem__,
        client=source,
    )  # fmt: skip
    fitted, unfit = fit(made.request, protocol=target, target="lab/m")
    rendered = PROTOCOLS[target].render_request(fitted, dialect=HOSTED)
    return Rendered(rendered.http, (*made.deviations, *unfit, *rendered.deviations), rendered.expectation)


def seen(source: ProtocolName, body: dict[str, Any], target: ProtocolName) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(sent(source, body, target).http.body)
    return found


SAME = {
    RESPONSES: {"server_url": URL, "authorization": "tok", "require_approval": "never"},
    MESSAGES: {"url": URL, "authorization_token": "tok"},
    GEMINI: {"name": "docs", "streamableHttpTransport": {"url": URL, "headers": {"Authorization": "Bearer tok"}}},
}


@for_each("source", SAME)
@for_each("target", SAME)
def test_a_server_is_named_in_each_protocol(source: ProtocolName, target: ProtocolName) -> None:
    body = seen(source, asking(source, SAME[source]), target)
    wanted = asking(target, SAME[target])
    assert body["tools"] == wanted["tools"]
    assert body.get("mcp_servers") == wanted.get("mcp_servers")


def test_messages_are_told_by_their_header_that_servers_follow() -> None:
    http = sent(RESPONSES, asking(RESPONSES, SAME[RESPONSES]), MESSAGES).http
    assert http.headers["anthropic-beta"] == "mcp-client-2025-11-20"


@for_each(
    ("approval", "reason"),
    [({}, "approve"), ({"require_approval": "always"}, "approve"),
     ({"require_approval": {"always": {"tool_names": ["f"]}}}, "approve"),
     ({"require_approval": "never", "allowed_tools": {"read_only": True}}, "read"),
     ({"require_approval": "never", "server_url": None, "connector_id": "connector_gmail"}, "address")],
)  # fmt: skip
@for_each("target", [MESSAGES, GEMINI])
def test_a_server_is_never_asked_more_freely_than_its_client_said(
    approval: dict[str, Any], reason: str, target: ProtocolName
) -> None:
    """Elsewhere nobody is asked whether a tool may run, and all tools of a kind may."""
    body = asking(RESPONSES, {"server_url": URL, **approval})
    with pytest.raises(UsageError, match=rf"tools\.mcp: .*{reason}"):
        sent(RESPONSES, body, target)
    body["tools"].append({"type": "function", "name": "f", "parameters": {"type": "object"}})
    rendered = sent(RESPONSES, body, target)
    assert b"mcp.example" not in rendered.http.body
    assert any(each.code == "dropped" and each.where == "tools.mcp" for each in rendered.deviations)


@for_each("allowed", [["a", "b"], {"tool_names": ["a", "b"]}])
def test_only_the_tools_that_are_allowed_are(allowed: Any) -> None:
    body = asking(RESPONSES, {**SAME[RESPONSES], "allowed_tools": allowed})
    [toolset] = seen(RESPONSES, body, MESSAGES)["tools"]
    assert toolset["default_config"] == {"enabled": False}
    assert toolset["configs"] == {"a": {"enabled": True}, "b": {"enabled": True}}
    with pytest.raises(UsageError, match="does not have"):
        sent(RESPONSES, body, GEMINI)


@for_each(
    ("toolset", "allowed"),
    [({"default_config": {"enabled": False}, "configs": {"a": {"enabled": True}, "b": {}}}, ["a"]),
     ({"configs": {"a": {"enabled": True}}}, None),
     ({"tools": [{"name": "a", "input_schema": {}}, {"name": "b", "input_schema": {}}],
       "configs": {"b": {"enabled": False}}}, ["a"])],
)  # fmt: skip
def test_a_toolset_says_which_tools_are_allowed(toolset: dict[str, Any], allowed: list[str] | None) -> None:
    [tool] = seen(MESSAGES, asking(MESSAGES, SAME[MESSAGES], toolset=toolset), RESPONSES)["tools"]
    assert tool.get("allowed_tools") == allowed
    assert tool["require_approval"] == "never"  # as Messages has it


def test_a_toolset_that_leaves_out_single_tools_stays_at_home() -> None:
    with pytest.raises(UsageError, match="leaves out"):
        sent(MESSAGES, asking(MESSAGES, SAME[MESSAGES], toolset={"configs": {"a": {"enabled": False}}}), RESPONSES)


def test_the_older_form_of_a_server_is_read() -> None:
    server = {**SAME[MESSAGES], "tool_configuration": {"allowed_tools": ["a"], "enabled": True}}
    body = asking(MESSAGES, server)
    del body["tools"]
    [tool] = seen(MESSAGES, body, RESPONSES)["tools"]
    assert (tool["server_url"], tool["allowed_tools"]) == (URL, ["a"])


def test_no_deviation_holds_a_token_or_an_address() -> None:
    for target in (CHAT, MESSAGES, GEMINI):
        body = asking(RESPONSES, SAME[RESPONSES])
        body["tools"].append({"type": "function", "name": "f", "parameters": {"type": "object"}})
        said = repr(sent(RESPONSES, body, target).deviations)
        assert "tok" not in said.replace("token", "") and URL not in said


# ---------------------------------------------------------------- answers and history

USE = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "find", "server_name": "docs", "input": {"q": "x"}}
RESULT = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False,
          "content": [{"type": "text", "text": "one page"}]}  # fmt: skip
CALL = {"id": "mcp_1", "type": "mcp_call", "server_label": "docs", "name": "find", "arguments": '{"q":"x"}',
        "status": "completed", "output": "one page", "error": None, "approval_request_id": None}  # fmt: skip
LISTING = {"type": "mcp_tool_listing", "mcp_server_name": "docs",
           "tools": [{"name": "find", "description": "Find.", "input_schema": {"type": "object"}}]}  # fmt: skip
LISTED = {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "docs",
          "tools": [{"name": "find", "description": "Find.", "input_schema": {"type": "object"}}]}  # fmt: skip


def message(*blocks: dict[str, Any]) -> bytes:
    return _json.encode({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [*blocks],
        "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 2},
    })  # fmt: skip


def response(*items: dict[str, Any]) -> bytes:
    said = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "It is there.", "annotations": []}]}  # fmt: skip
    return _json.encode({
        "id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [*items, said],
        "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    })  # fmt: skip


def written(
    reply: Reply, target: ProtocolName, *, is_stream: bool, knows_servers: bool = True
) -> tuple[list[dict[str, Any]], list[str]]:
    """The parts of an answer as a client of `target` reads them, and what is named as lost."""
    style = ReplyStyle(knows_servers=knows_servers)
    if is_stream:
        encoder = PROTOCOLS[target].encoder(new_id=lambda: "1", model="m", created=1, style=style)
        body = b"".join(encoder.encode([event]) for event in unfold(reply))
        lost = encoder.lost
    else:
        lost = []
        body = PROTOCOLS[target].render_response(
            reply, new_id=lambda: "1", model="m", created=1, style=style, lost=lost
        )
    parts = decode(body, target).parts
    raws = [json.loads(bytes(part.raw)) for part in parts if hasattr(part, "raw")]
    return raws, [f"{each.where} {each.seen}" for each in lost if each.where != "parts[2].id"]  # of the text's item


@for_each("is_stream", [False, True])
@for_each("failed", [False, True])
def test_a_call_and_its_result_cross_both_ways(is_stream: bool, failed: bool) -> None:
    result = {**RESULT, "is_error": failed}
    text = {"type": "text", "text": "It is there."}
    raws, lost = written(decode(message(LISTING, USE, result, text)), RESPONSES, is_stream=is_stream)
    listed, call = raws
    assert {**listed, "id": "mcpl_1"} == LISTED
    assert (call["type"], call["server_label"], call["name"]) == ("mcp_call", "docs", "find")
    assert json.loads(call["arguments"]) == {"q": "x"}
    if failed:
        assert call["status"] == "failed" and call["error"]["content"] == [{"type": "text", "text": "one page"}]
    else:
        assert (call["status"], call["output"]) == ("completed", "one page")
    assert lost == []
    back, lost = written(decode(response(listed, call)), MESSAGES, is_stream=is_stream)
    assert [block["type"] for block in back] == ["mcp_tool_listing", "mcp_tool_use", "mcp_tool_result"]
    assert back[0] == LISTING
    assert back[1] == {**USE, "id": back[1]["id"]}
    assert back[2] == {**result, "tool_use_id": back[1]["id"]}
    assert lost == ["parts[0].<mcp_list_tools>.id openai-responses's own"]


@for_each("is_stream", [False, True])
def test_a_client_of_messages_that_named_no_server_gets_no_blocks_of_the_beta(is_stream: bool) -> None:
    raws, lost = written(decode(response(LISTED, CALL)), MESSAGES, is_stream=is_stream, knows_servers=False)
    assert raws == []
    assert [where for where in lost if "mcp_list_tools" in where] and [where for where in lost if "mcp_call" in where]


@for_each("named", [False, True])
def test_whoever_names_a_server_knows_its_blocks(named: bool) -> None:
    body = asking(MESSAGES, SAME[MESSAGES])
    if not named:
        del body["mcp_servers"], body["tools"]
    assert PROTOCOLS[MESSAGES].parse_request(_json.encode(body)).style.knows_servers is named


@for_each("is_stream", [False, True])
def test_a_call_without_a_result_is_named_and_not_made_up(is_stream: bool) -> None:
    raws, lost = written(decode(message(USE)), RESPONSES, is_stream=is_stream)
    assert raws == []
    assert any("mcp_tool_use" in where for where in lost)


@for_each("is_stream", [False, True])
@for_each("target", [CHAT, GEMINI, "ollama-chat"])
def test_where_no_words_are_for_it_a_call_is_named(target: ProtocolName, is_stream: bool) -> None:
    _, lost = written(decode(response(CALL)), target, is_stream=is_stream)
    assert lost


def test_earlier_calls_go_along_where_the_server_does() -> None:
    body = asking(RESPONSES, SAME[RESPONSES])
    body["input"] = [{"role": "user", "content": "hi"}, LISTED, CALL, {"role": "user", "content": "and?"}]
    _, turn, _ = seen(RESPONSES, body, MESSAGES)["messages"]
    assert turn == {"role": "assistant", "content": [LISTING, {**USE, "id": turn["content"][1]["id"]},
                                                     {**RESULT, "tool_use_id": turn["content"][1]["id"]}]}  # fmt: skip
    body = asking(MESSAGES, SAME[MESSAGES])
    body["messages"] += [{"role": "assistant", "content": [LISTING, USE, RESULT]}, {"role": "user", "content": "and?"}]
    items = seen(MESSAGES, body, RESPONSES)["input"]
    found = [item for item in items if str(item.get("type")).startswith("mcp")]
    assert [item["type"] for item in found] == ["mcp_list_tools", "mcp_call"]
    assert (found[1]["output"], json.loads(found[1]["arguments"])) == ("one page", {"q": "x"})


def test_earlier_calls_of_a_server_that_does_not_go_along_are_named() -> None:
    body: dict[str, Any] = {
        "model": "m",
        "input": [{"role": "user", "content": "hi"}, CALL, {"role": "user", "content": "?"}],
    }
    rendered = sent(RESPONSES, body, MESSAGES)
    assert b"mcp_tool_use" not in rendered.http.body
    assert any("mcp_call" in each.where for each in rendered.deviations)
