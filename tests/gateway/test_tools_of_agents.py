"""The tools of coding agents, through the running gateway: two MCP servers with a tool of one name, searches for tools,
searches of the web. The requests have the shape that the agents send."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dragoman
from conversations import reply
from dragoman import _json
from dragoman.client.started_servers import STARTERS
from dragoman.errors import ConfigError
from dragoman.protocols import PROTOCOLS
from dragoman.types import Native, Opaque, Part, Text, Tool, ToolCall
from for_each import for_each
from gateway.running import Running, gateway, stream_of, whole_of

RESPONSES = "openai-responses"
SERVERS = ("mcp__alpha", "mcp__beta")
MCP = [
    {"type": "namespace", "name": server, "description": f"Tools of {server}", "tools": [
        {"type": "function", "name": "search", "description": f"Search {server}", "strict": False,
         "parameters": {"type": "object", "properties": {key: {"type": "integer"}}, "required": [key]}},
    ]}
    for server, key in zip(SERVERS, ("page", "depth"), strict=True)
]  # fmt: skip
SHELL = {"type": "function", "name": "exec_command", "strict": False,
         "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}}  # fmt: skip
PATCH = {"type": "custom", "name": "apply_patch", "description": "Edit files.",
         "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "*** Begin Patch"'}}  # fmt: skip
SEARCH = {"type": "tool_search", "execution": "client", "description": "Find tools.",
          "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}  # fmt: skip
WEB = {"type": "web_search", "external_web_access": True}
USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Search beta"}]}


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    routes = "".join(
        f'[routes."{name}"]\ntargets = ["{protocol}/model-1"]\n'
        for protocol in PROTOCOLS
        for name in (f"gpt-5.5-{protocol}", f"lab-model-{protocol}", f"claude-{protocol}")
    )
    with gateway(tmp_path_factory.mktemp("gateway"), routes) as found:
        yield found


def post(running: Running, path: str, body: dict[str, Any], **headers: str) -> tuple[int, dict[str, str], Any]:
    status, found, data = running.request("POST", path, json.dumps(body).encode(), headers)
    if found.get("content-type", "").startswith("text/event-stream"):
        frames = [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: {")]
        return status, found, frames
    return status, found, json.loads(data)


def seen(running: Running, protocol: str) -> tuple[dict[str, Any], tuple[Tool, ...]]:
    """What the provider was sent last: its body, and the tools in it, read as its protocol."""
    [last] = running.provider.requests[-1:]
    path = last.path if ":" in last.path else ""
    return json.loads(last.body), PROTOCOLS[protocol].parse_request(last.body, path=path).request.tools


def answer(running: Running, protocol: str, *parts: Part, stream: bool) -> None:
    reason = "tool_use" if any(isinstance(part, ToolCall | Opaque) for part in parts) else "stop"
    made = msgspec.structs.replace(reply("text"), parts=parts, stop_reason=reason)
    running.answer((stream_of if stream else whole_of)(protocol, made))


def items(frames: Any) -> list[dict[str, Any]]:
    """The output items of an answer, without what is made up."""
    response = frames[-1]["response"] if isinstance(frames, list) else frames
    return [{key: value for key, value in item.items() if key != "id"} for item in response["output"]]


@for_each("stream", [True, False], ids=["streamed", "whole"])
@for_each("provider", PROTOCOLS)
@for_each("server", SERVERS)
@for_each("model", ["gpt-5.5", "lab-model"])
def test_two_servers_with_a_tool_of_one_name(
    agents: Running, model: str, server: str, provider: str, stream: bool
) -> None:
    """A model of unknown name gets all tools at once, one that is named like a GPT finds them by a search."""
    name, is_found = f"{model}-{provider}", model == "gpt-5.5"
    body: dict[str, Any] = {"model": name, "stream": stream, "store": False, "input": [USER],
                            "tools": [SHELL, PATCH, WEB, *([SEARCH] if is_found else MCP)]}  # fmt: skip
    if is_found:
        body["input"] += found_by_a_search(agents, provider, body, stream=stream)
    answer(agents, provider, Text("Nothing."), stream=stream)
    status, _, _ = post(agents, "/v1/responses", body)
    assert status == 200
    sent, tools = seen(agents, provider)
    names = [tool.name for tool in tools]
    assert len(set(names)) == len(names)
    keys = {"mcp__alpha": "page", "mcp__beta": "depth"}
    if provider == RESPONSES and is_found:
        wanted = f"{server}__search"  # the provider has what was found in the conversation
        assert json.dumps(MCP[SERVERS.index(server)]["tools"][0]["name"]) in json.dumps(sent["input"])  # type: ignore[index]
    else:
        [wanted] = [tool.name for tool in tools if keys[server] in str(tool.schema_object())]
        assert wanted == f"{server}__search"
    own = None
    if provider == RESPONSES:
        own = Native(RESPONSES, {"namespace": _json.raw(server), "name": _json.raw("search")})
    answer(agents, provider, ToolCall("call_2", wanted, f'{{"{keys[server]}": "3"}}', native=own), stream=stream)
    status, _, frames = post(agents, "/v1/responses", body)
    [call] = items(frames)
    assert (status, call["type"], call["name"], call["namespace"]) == (200, "function_call", "search", server)
    # Responses gives the tools that a search has found no schema here: the provider mended it by its own
    assert json.loads(call["arguments"]) in ({keys[server]: 3}, {keys[server]: "3"})
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "found"}
    answer(agents, provider, Text("Done."), stream=stream)
    status, _, frames = post(agents, "/v1/responses", {**body, "input": [*body["input"], call, result]})
    assert (status, items(frames)[0]["content"][0]["text"]) == (200, "Done.")
    sent, _ = seen(agents, provider)
    assert (f'"{wanted}"' if provider != RESPONSES else f'"namespace": "{server}"') in json.dumps(sent)


def found_by_a_search(running: Running, provider: str, body: dict[str, Any], *, stream: bool) -> list[dict[str, Any]]:
    """The model calls the search, the client runs it: both items."""
    arguments = {"query": "search"}
    if provider == RESPONSES:
        item = {"type": "tool_search_call", "id": "ts_1", "call_id": "call_1", "execution": "client",
                "status": "completed", "arguments": arguments}  # fmt: skip
        answer(running, provider, Opaque(RESPONSES, _json.raw(item)), stream=stream)
    else:
        answer(running, provider, ToolCall("call_1", "tool_search", json.dumps(arguments)), stream=stream)
    status, headers, frames = post(running, "/v1/responses", body)
    _, tools = seen(running, provider)
    if provider != RESPONSES:
        assert [tool.name for tool in tools] == ["exec_command", "apply_patch", "tool_search"]
        assert headers["x-dragoman-dropped"] == "web_search"
    [call] = items(frames)
    assert (status, call["type"], call["execution"], call["arguments"]) == (
        200,
        "tool_search_call",
        "client",
        arguments,
    )
    output = {"type": "tool_search_output", "call_id": call["call_id"], "execution": "client", "status": "completed",
              "tools": MCP}  # fmt: skip
    return [call, output]


@for_each("stream", [True, False], ids=["streamed", "whole"])
@for_each("provider", [name for name in PROTOCOLS if name != RESPONSES])
def test_a_patch_comes_back_as_free_text(agents: Running, provider: str, stream: bool) -> None:
    patch = '*** Begin Patch\n*** Add File: "a.txt"\n+hi\n*** End Patch'
    answer(agents, provider, ToolCall("call_1", "apply_patch", json.dumps({"input": patch})), stream=stream)
    body = {"model": f"lab-model-{provider}", "stream": stream, "input": [USER], "tools": [SHELL, PATCH]}
    _, _, frames = post(agents, "/v1/responses", body)
    [call] = items(frames)
    assert (call["type"], call["name"], call["input"]) == ("custom_tool_call", "apply_patch", patch)
    sent, tools = seen(agents, provider)
    assert "custom" not in json.dumps(sent)
    assert tools[1].kind == "function" and 'start: "*** Begin Patch"' in tools[1].description


SHELL_TOOL = {"type": "shell", "environment": {"type": "local"}}
ODD_NAME = "a" * 80  # is shortened


@for_each("stream", [True, False], ids=["streamed", "whole"])
@for_each(
    ("tool", "name", "arguments"),
    [
        (SEARCH, "tool_search", {"query": "search"}),
        (SHELL_TOOL, "shell", {"commands": ["ls"]}),
        (MCP[0], "mcp__alpha__search", {"page": 3}),
        (PATCH, "apply_patch", {"input": "*** Begin Patch"}),
        ({"type": "function", "name": ODD_NAME, "parameters": {"type": "object"}}, "", {}),
    ],
    ids=["search", "shell", "namespace", "patch", "long name"],
)
def test_a_call_in_the_clients_form_gets_its_seal_back(
    agents: Running, tool: dict[str, Any], name: str, arguments: dict[str, Any], stream: bool
) -> None:
    """Gemini refuses a step whose first call lacks the signature that came with it; no client of Responses keeps it."""
    gemini = "gemini-generate"
    body = {"model": f"lab-model-{gemini}", "stream": stream, "store": False, "input": [USER], "tools": [tool]}
    if not name:
        answer(agents, gemini, Text("Hello."), stream=stream)
        post(agents, "/v1/responses", body)
        [name] = [found.name for found in seen(agents, gemini)[1]]
    seal = base64.b64encode(f"{name} {stream}".encode()).decode()
    made = ToolCall("call_1", name, json.dumps(arguments), signature=seal)
    answer(agents, gemini, made, stream=stream)
    _, _, frames = post(agents, "/v1/responses", body)
    [call] = items(frames)
    result = {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": "found"}
    if call["type"] == "tool_search_call":
        result = {"type": "tool_search_output", "call_id": call["call_id"], "execution": "client", "tools": MCP}
    answer(agents, gemini, Text("Done."), stream=stream)
    status, _, _ = post(agents, "/v1/responses", {**body, "input": [USER, call, result]})
    assert status == 200
    sent, _ = seen(agents, gemini)
    parts = [part for content in sent["contents"] for part in content["parts"] if "functionCall" in part]
    assert [part["thoughtSignature"] for part in parts] == [seal]


# ---------------------------------------------------------------- searches of the web


USER_TURN = {"role": "user", "content": "Perform a web search for the query: newest sandbox"}
WEB_SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}


@for_each("is_forced", [True, False], ids=["forced", "alone"])
@for_each("stream", [True, False], ids=["streamed", "whole"])
@for_each("provider", PROTOCOLS)
def test_a_request_for_a_search_is_run_by_the_provider_or_refused(
    agents: Running, provider: str, stream: bool, is_forced: bool
) -> None:
    answer(agents, provider, Text("I made it up."), stream=stream)
    body: dict[str, Any] = {
        "model": f"claude-{provider}", "max_tokens": 100, "stream": stream, "tools": [WEB_SEARCH],
        "messages": [USER_TURN],
    }  # fmt: skip
    if is_forced:
        body["tool_choice"] = {"type": "tool", "name": "web_search"}
    status, _, told = post(agents, "/v1/messages?beta=true", body)
    if provider == "anthropic-messages":
        assert status == 200
        [tool] = seen(agents, provider)[0]["tools"]
        assert tool == {**WEB_SEARCH, "cache_control": {"type": "ephemeral"}}  # the route's own mark
        return
    assert status == 400
    assert told["error"]["type"] == "invalid_request_error"
    assert "web_search" in told["error"]["message"] and "tool_policy.web_search" in told["error"]["message"]
    assert agents.provider.requests == []


def test_a_request_that_is_refused_starts_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def start(model: str) -> Any:
        started.append(model)
        raise ConfigError("it is not there")

    monkeypatch.setitem(STARTERS, "embedded", start)
    with gateway(tmp_path, '[routes.small]\ntargets = ["embedded/smollm2"]\n') as running:
        body = {"model": "small", "max_tokens": 9, "messages": [USER_TURN]}
        status, _, told = post(running, "/v1/messages", {**body, "tools": [WEB_SEARCH]})
        assert (status, started) == (400, [])
        assert "tool_policy.web_search" in told["error"]["message"]
        assert "it is not there" in post(running, "/v1/messages", body)[2]["error"]["message"]
        assert started == ["smollm2"]


@for_each("provider", [name for name in PROTOCOLS if name != RESPONSES])
def test_a_search_beside_other_tools_is_left_out_and_said(agents: Running, provider: str) -> None:
    answer(agents, provider, Text("Hello."), stream=True)
    body = {"model": f"lab-model-{provider}", "stream": True, "input": [USER], "tools": [SHELL, WEB]}
    status, headers, _ = post(agents, "/v1/responses", body)
    assert (status, headers["x-dragoman-dropped"]) == (200, "web_search")
    assert "web_search" not in json.dumps(seen(agents, provider)[0])


@pytest.mark.parametrize(
    ("table", "status", "dropped"),
    [
        ('tool_policy = { web_search = "refuse" }', 400, None),
        ('tool_policy = { provider = "refuse" }', 400, None),
        ('tool_policy = { web_search = "drop" }', 200, "web_search"),
        ('tool_policy = { client = "refuse" }', 200, "web_search"),
    ],
)
@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
def test_a_route_says_what_becomes_of_a_tool(
    tmp_path: Path, table: str, status: int, dropped: str | None, target: str
) -> None:
    with gateway(tmp_path, f'[routes.mine]\ntargets = ["{target}/model-1"]\n{table}\n') as running:
        answer(running, target, Text("Hello."), stream=True)
        body = {"model": "mine", "stream": True, "input": [USER], "tools": [SHELL, WEB]}
        got, headers, _ = post(running, "/v1/responses", body)
        if target == RESPONSES and "client" in table:
            dropped = None  # it is the provider's own there
        assert (got, headers.get("x-dragoman-dropped")) == (status, dropped)
        if status == 200:
            assert ("web_search" in json.dumps(seen(running, target)[0])) == (target == RESPONSES and dropped is None)


@pytest.mark.parametrize(
    ("route", "model", "status"),
    [("refuse", "drop", 200), ("drop", "refuse", 400), (None, "refuse", 400), ("refuse", None, 400)],
)
def test_a_model_says_so_too_and_its_word_wins(
    tmp_path: Path, route: str | None, model: str | None, status: int
) -> None:
    tables = '[routes.mine]\ntargets = ["openai-chat/model-1"]\n'
    tables += f'tool_policy = {{ web_search = "{route}" }}\n' if route else ""
    tables += f'[models."openai-chat/model-1"]\ntool_policy = {{ web_search = "{model}" }}\n' if model else ""
    with gateway(tmp_path, tables) as running:
        answer(running, "openai-chat", Text("Hello."), stream=True)
        body = {"model": "mine", "stream": True, "input": [USER], "tools": [SHELL, WEB]}
        assert post(running, "/v1/responses", body)[0] == status


def test_a_provider_that_has_the_tool_is_given_it_in_its_own_words(tmp_path: Path) -> None:
    has = 'dialect = { hosted_tools = ["web_search"] }\n'
    more = "".join(
        f'[providers.{name}]\nprotocol = "{protocol}"\nbase_url = "URL{base}"\n{has}[routes.{name}]\n'
        f'targets = ["{name}/model-1"]\n'
        for name, protocol, base in (
            ("one", "openai-responses", "/v1"), ("two", "gemini-generate", "/v1beta"),
            ("three", "anthropic-messages", ""),
        )
    )  # fmt: skip
    from gateway.running import provider_config

    with gateway(tmp_path) as plain:
        config = provider_config(tmp_path, plain.provider.url, more.replace("URL", plain.provider.url))
        with gateway(tmp_path, config=config) as running:
            running = running._replace(provider=plain.provider)
            asked = {**WEB_SEARCH, "allowed_domains": ["lab.example"]}
            for name, protocol, tools in (
                ("one", "openai-responses", [{"type": "web_search", "filters": {"allowed_domains": ["lab.example"]}}]),
                ("two", "gemini-generate", [{"googleSearch": {}}]),
            ):
                answer(running, protocol, Text("Found."), stream=False)
                body = {"model": name, "max_tokens": 9, "tools": [asked], "messages": [USER_TURN],
                        "tool_choice": {"type": "tool", "name": "web_search"}}  # fmt: skip
                assert post(running, "/v1/messages", body)[0] == 200
                sent = seen(running, protocol)[0]
                assert sent["tools"] == tools
                if name == "one":
                    assert sent["tool_choice"] == {"type": "web_search"}
            answer(running, "anthropic-messages", Text("Found."), stream=False)
            assert post(running, "/v1/responses", {"model": "three", "input": "?", "tools": [WEB]})[0] == 200
            sent = seen(running, "anthropic-messages")[0]
            mark = {"cache_control": {"type": "ephemeral"}}
            assert sent["tools"] == [{"type": "web_search_20250305", "name": "web_search", **mark}]


# ---------------------------------------------------------------- what a search found, in the client's words

PAGE, OTHER = "https://example.test/a?b=1", "https://example.test/b"
GROUNDED = {"candidates": [{"content": {"role": "model", "parts": [{"text": "It is 7."}]}, "finishReason": "STOP",
    "groundingMetadata": {"webSearchQueries": ["newest sandbox"], "groundingChunks": [
        {"web": {"uri": PAGE, "title": "A"}}, {"web": {"uri": OTHER, "title": "B"}}]}}]}  # fmt: skip
CITED = [{"type": "url_citation", "url": PAGE, "title": "A", "start_index": 0, "end_index": 8}]
SEARCHED = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [
    {"id": "ws_1", "type": "web_search_call", "status": "completed",
     "action": {"type": "search", "query": "newest sandbox", "sources": [{"type": "url", "url": OTHER}]}},
    {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
     "content": [{"type": "output_text", "text": "It is 7.", "annotations": CITED}]},
]}  # fmt: skip
BLOCKS = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "content": [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "newest sandbox"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
        {"type": "web_search_result", "url": PAGE, "title": "A", "encrypted_content": "c2VhbA=="},
        {"type": "web_search_result", "url": OTHER, "title": "B", "encrypted_content": "c2VhbA=="}]},
    {"type": "text", "text": "It is 7."},
], "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
ANSWERS = {"gemini-generate": GROUNDED, RESPONSES: SEARCHED, "anthropic-messages": BLOCKS}


def written(source: str, target: str, *, stream: bool) -> str:
    """An answer of one protocol in another one's words."""
    protocol = PROTOCOLS[target]
    if not stream:
        found = dragoman.decode(json.dumps(ANSWERS[source]).encode(), source)
        return protocol.render_response(found, new_id=lambda: "0" * 24, model="m", created=1).decode()
    encoder = protocol.encoder(new_id=lambda: "0" * 24, model="m", created=1)
    decoder = PROTOCOLS[source].decoder(new_id=lambda: "0" * 24)
    events = [*decoder.feed(json.dumps(ANSWERS[source]).encode()), *decoder.close()]
    return "".join(encoder.encode([event]).decode() for event in events)


@for_each("stream", [True, False], ids=["streamed", "whole"])
@for_each("source", [RESPONSES, "gemini-generate"])
def test_pages_that_others_found_are_links_to_clients_of_messages(source: str, stream: bool) -> None:
    told = written(source, "anthropic-messages", stream=stream)
    again = dragoman.decode(told.encode(), "anthropic-messages")
    blocks = [json.loads(bytes(part.raw)) for part in again.parts if isinstance(part, Opaque)]
    assert [block["type"] for block in blocks] == ["server_tool_use", "web_search_tool_result"]
    assert blocks[0]["id"] == blocks[1]["tool_use_id"] and blocks[0]["input"] == {"query": "newest sandbox"}
    assert {page["url"] for page in blocks[1]["content"]} == {PAGE, OTHER}
    assert "A" in [page["title"] for page in blocks[1]["content"]]
    assert (again.text, again.deviations) == ("It is 7.", ())


@for_each("provider", PROTOCOLS)
def test_links_that_were_made_up_for_a_client_go_to_no_provider(agents: Running, provider: str) -> None:
    content = json.loads(written(RESPONSES, "anthropic-messages", stream=False))["content"]
    assert len(content) == 3
    answer(agents, provider, Text("Good."), stream=False)
    body = {"model": f"claude-{provider}", "max_tokens": 9, "messages": [
        USER_TURN, {"role": "assistant", "content": content}, {"role": "user", "content": "And now?"}]}  # fmt: skip
    status, _, _ = post(agents, "/v1/messages", body)
    assert status == 200
    sent = json.dumps(seen(agents, provider)[0])
    assert "It is 7." in sent and PAGE not in sent and "srvtoolu" not in sent


@for_each("stream", [True, False], ids=["streamed", "whole"])
def test_a_search_of_messages_is_one_of_responses_and_grounds_gemini(stream: bool) -> None:
    again = dragoman.decode(written("anthropic-messages", RESPONSES, stream=stream).encode(), RESPONSES)
    [item] = [json.loads(bytes(part.raw)) for part in again.parts if isinstance(part, Opaque)]
    assert (item["type"], item["action"]["query"]) == ("web_search_call", "newest sandbox")
    assert [source["url"] for source in item["action"]["sources"]] == [PAGE, OTHER]
    told = written("anthropic-messages", "gemini-generate", stream=stream)
    for word in (PAGE, OTHER, '"newest sandbox"', "groundingChunks"):
        assert word in told
