"""Tools for a target: names that nobody shares and that come back, tools of agents as functions, lists that change."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from dragoman import _json
from dragoman.errors import UsageError
from dragoman.events import Event, PartEvent, ToolCallDelta, ToolCallEnd, ToolCallFailed, ToolCallStart
from dragoman.offering import Offer, Policies, offer
from dragoman.offering.names import fit_names
from dragoman.protocol import PLAIN, Dialect
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Named, Opaque, ProtocolName, Request, Text, Tool, ToolCall, ToolResult
from for_each import for_each
from growth import MOST_EXPONENT, exponent

LETTERS = "abcXYZ019_-. é:/漢"

#: Names that one request repeats, or makes alike, by how many.
_ALIKE = [
    lambda count: ["f"] * count,
    lambda count: ["é.e"] * count,
    lambda count: [["f", "a b", "é"][number % 3] for number in range(count)],
    lambda count: ["f" * 100 + str(number) for number in range(count)],
    lambda count: ["f"] * (count // 2) + [f"f_{number}" for number in range(count // 2)],
]


@for_each("alike", _ALIKE)
@for_each("target", PROTOCOLS)
def test_names_that_repeat_are_fitted_in_linear_time(target: str, alike):
    def run(count: int) -> object:
        return fit_names(alike(count), PROTOCOLS[target].tools)

    assert exponent(run, 100) <= MOST_EXPONENT
    sent = run(400) or alike(400)
    assert len(set(sent)) == len(sent)


def offered(request: Request, target: str, *, dialect: Dialect = PLAIN, policies: Policies | None = None) -> Offer:
    return offer(
        request, PROTOCOLS[target], name="lab/model-1", dialect=dialect, policies=policies or {},
        protocols=PROTOCOLS.__getitem__,
    )  # fmt: skip


def called(made: Offer, name: str, arguments: str = "{}") -> list[Event]:
    """What a client is told of a call of the tool that was sent under a name."""
    call = ToolCall("call_1", name, arguments)
    events: list[Event] = [ToolCallStart(0, "call_1", name), ToolCallDelta(0, arguments), ToolCallEnd(0, call)]
    for stage in made.stages():
        events = stage.feed(events)
    return events


def parsed(protocol: ProtocolName, body: dict[str, Any]) -> Request:
    said = [{"role": "user", "content": "x"}]
    least = {
        "openai-responses": {"input": "x"},
        "anthropic-messages": {"max_tokens": 5, "messages": said},
        "openai-chat": {"messages": said},
        "gemini-generate": {"contents": [{"parts": [{"text": "x"}]}]},
    }[protocol]
    fields = {"model": "m", **least, **body}
    return PROTOCOLS[protocol].parse_request(json.dumps(fields).encode()).request


# ---------------------------------------------------------------- names


def some_name(dice: random.Random, pool: list[str]) -> str:
    kind = dice.random()
    if kind < 0.2 and pool:
        return dice.choice(pool)
    if kind < 0.4 and pool:  # alike up to what is cut or replaced
        return dice.choice(pool)[:60] + dice.choice(LETTERS)
    return "".join(dice.choices(LETTERS, k=dice.choice((1, 2, 3, 8, 30, 63, 64, 65, 130, 300))))


def some_tools(dice: random.Random) -> list[dict[str, Any]]:
    """Functions, and groups of them, as Responses has them."""
    pool: list[str] = []
    entries: list[dict[str, Any]] = []
    for _ in range(dice.randint(1, 6)):
        names = [some_name(dice, pool) for _ in range(dice.randint(1, 3))]
        pool += names
        functions = [{"type": "function", "name": name} for name in names]
        if dice.random() < 0.5:
            space = some_name(dice, pool)
            pool += [space, *(f"{space}__{name}" for name in names)]
            entries.append({"type": "namespace", "name": space, "tools": functions})
        else:
            entries += functions
    return entries


def check_names(dice: random.Random, target: str) -> None:
    """No name is shared, each is one that the protocol takes, and each comes back as the client said it."""
    entries = some_tools(dice)
    request = parsed("openai-responses", {"tools": entries})
    made = offered(request, target)
    sent = [tool.name for tool in made.request.tools]
    forms = PROTOCOLS[target].tools
    assert len(set(sent)) == len(sent)
    assert all(len(name) <= forms.longest_name and forms.name.fullmatch(name) for name in sent), sent
    wanted = [
        (inner["name"], entry["name"] if entry is not inner else None)
        for entry in entries
        for inner in entry.get("tools", [entry])
    ]
    back = []
    for name in sent:
        end = called(made, name)[-1]
        assert type(end) is ToolCallEnd
        fields = end.call.native.fields if end.call.native is not None else {}
        own, space = (json.loads(bytes(fields[key])) if key in fields else None for key in ("name", "namespace"))
        back.append((own if space is not None else end.call.name, space))
    assert set(back) == set(wanted)
    assert len(back) >= len(set(wanted))


ACROSS = [name for name in PROTOCOLS if name != "openai-responses"]


@for_each("target", ACROSS)
def test_no_two_tools_share_a_name_and_each_comes_back(target: str) -> None:
    for seed in range(500):
        check_names(random.Random(seed), target)


@pytest.mark.soak
@for_each("target", ACROSS)
def test_no_two_tools_share_a_name_at_length(target: str) -> None:
    for seed in range(25_000):
        check_names(random.Random(seed + 1_000), target)


SEARCHES: list[tuple[ProtocolName, dict[str, Any], list[dict[str, Any]]]] = [
    ("openai-responses", {"type": "function", "name": "web_search"}, [{"type": "web_search"}]),
    (
        "openai-responses", {"type": "function", "name": "web_search"},
        [{"type": "web_search"}, {"type": "web_search_preview", "search_context_size": "low"}],
    ),
    (
        "gemini-generate", {"functionDeclarations": [{"name": "web_search"}]},
        [{"googleSearch": {}}, {"googleSearchRetrieval": {}}, {"enterpriseWebSearch": {}}],
    ),
]  # fmt: skip


@for_each(("client", "function", "searches"), SEARCHES)
def test_no_function_shares_its_name_with_a_tool_of_the_provider(
    client: ProtocolName, function: dict[str, Any], searches: list[dict[str, Any]]
) -> None:
    """Anthropic's own tools have names, and a request with two of one name is refused."""
    request = parsed(client, {"tools": [function, *searches]})
    made = offered(request, "anthropic-messages", dialect=Dialect(hosted_tools=("web_search",)))
    tools = json.loads(PROTOCOLS["anthropic-messages"].render_request(made.request).http.body)["tools"]
    names = [tool["name"] for tool in tools]
    assert len(set(names)) == len(names) == 2
    [sent] = [tool["name"] for tool in tools if "input_schema" in tool]
    end = called(made, sent)[-1]
    assert isinstance(end, ToolCallEnd) and end.call.name == "web_search"
    assert [said.code for said in made.deviations if said.where.startswith("tools.")].count("dropped") == len(
        searches
    ) - 1


def test_of_two_tools_of_a_provider_the_one_that_is_forced_stays() -> None:
    tools = [{"type": "web_search"}, {"type": "web_search_preview"}]
    for choice in tools:
        request = parsed("openai-responses", {"tools": tools, "tool_choice": choice})
        made = offered(request, "anthropic-messages", dialect=Dialect(hosted_tools=("web_search",)))
        body = json.loads(PROTOCOLS["anthropic-messages"].render_request(made.request).http.body)
        assert body["tool_choice"] == {"type": "tool", "name": "web_search"}
        [dropped] = [said.where for said in made.deviations if said.code == "dropped"]
        assert dropped != f"tools.{choice['type']}"


@for_each("target", PROTOCOLS)
def test_a_tool_that_is_offered_twice_gets_a_second_name(target: str) -> None:
    made = offered(Request("m", (), (Tool("f"), Tool("g"), Tool("f"))), target)
    sent = [tool.name for tool in made.request.tools]
    assert sent[:2] == ["f", "g"] and len(set(sent)) == 3
    end = called(made, sent[2])[-1]
    assert isinstance(end, ToolCallEnd) and end.call.name == "f"


def test_names_hold_in_history_and_choice() -> None:
    odd = "läsa.fil/" + "x" * 80
    call, result = ToolCall("c", odd, "{}"), ToolResult("c", odd, (Text("ok"),))
    messages = (Message("assistant", (call,)), Message("tool", (result,)))
    made = offered(Request("m", messages, (Tool(odd), Tool("g")), Named(odd)), "openai-chat")
    [name] = {tool.name for tool in made.request.tools} - {"g"}
    parts = [part for message in made.request.messages for part in message.parts]
    assert [part.name for part in parts if isinstance(part, ToolCall | ToolResult)] == [name, name]
    assert made.request.tool_choice == Named(name)
    again = offered(Request("m", (), (Tool("g"), Tool(odd))), "openai-chat")
    assert again.request.tools[1].name == name, "the same in each request of a conversation"


def test_usual_names_are_left_alone() -> None:
    request = Request("m", (), (Tool("get_weather"), Tool("mcp__lab__search")))
    made = offered(request, "anthropic-messages")
    assert made.request is request and made.stages() == []


def test_a_function_that_has_a_joined_name_already() -> None:
    tools = [
        {"type": "namespace", "name": "a", "tools": [{"type": "function", "name": "x"}]},
        {"type": "function", "name": "a__x"},
        {"type": "namespace", "name": "a__", "tools": [{"type": "function", "name": "x"}]},
    ]
    request = parsed("openai-responses", {"tools": tools})
    names = [tool.name for tool in request.tools]
    assert len(set(names)) == 3 and names[1] == "a__x"
    again = json.loads(PROTOCOLS["openai-responses"].render_request(request).http.body)["tools"]
    assert [entry["name"] for entry in again] == ["a", "a__x", "a__"]
    assert [entry["tools"][0]["name"] for entry in (again[0], again[2])] == ["x", "x"]


# ---------------------------------------------------------------- tools of agents

SHELLS = [
    ("shell", {"commands": ["ls"], "timeout_ms": 5},
     {"type": "shell_call", "action": {"timeout_ms": 5, "max_output_length": None, "commands": ["ls"]}}),
    ("local_shell", {"command": ["ls", "-l"]},
     {"type": "local_shell_call", "action": {"type": "exec", "env": {}, "command": ["ls", "-l"]}}),
    ("apply_patch", {"type": "delete_file", "path": "a"},
     {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}}),
]  # fmt: skip


@for_each("target", ACROSS)
@for_each(("kind", "arguments", "item"), SHELLS, ids=[row[0] for row in SHELLS])
def test_what_responses_clients_run_is_a_function_and_comes_back(
    target: str, kind: str, arguments: dict[str, Any], item: dict[str, Any]
) -> None:
    made = offered(parsed("openai-responses", {"tools": [{"type": kind}]}), target)
    [tool] = made.request.tools
    assert (tool.name, tool.kind) == (kind, "function")
    [event] = called(made, kind, json.dumps(arguments))
    assert isinstance(event, PartEvent) and isinstance(event.part, Opaque)
    found = json.loads(bytes(event.part.raw))
    assert found.pop("id") and found.pop("status") == "completed"
    assert found == {"call_id": "call_1", **item}
    outputs = {"shell": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 2}}]}
    result = {"type": f"{kind}_call_output", "call_id": "call_1", "output": outputs.get(kind, "a")}
    history = parsed("openai-responses", {"input": [{**found, "id": "i"}, result], "tools": [{"type": kind}]})
    call, answer = [part for message in offered(history, target).request.messages for part in message.parts]
    assert isinstance(call, ToolCall) and isinstance(answer, ToolResult)
    assert (call.id, call.name, json.loads(call.arguments)) == ("call_1", kind, arguments)
    assert answer.call_id == "call_1" and answer.text.startswith("a") and ("2" in answer.text) == (kind == "shell")


@for_each("target", [name for name in PROTOCOLS if name != "anthropic-messages"])
@for_each(
    ("type", "name"),
    [("bash_20250124", "bash"), ("text_editor_20250728", "str_replace_based_edit_tool"), ("memory_20250818", "memory"),
     ("computer_20251124", "computer")],
)  # fmt: skip
def test_what_messages_clients_run_is_a_function(target: str, type: str, name: str) -> None:
    tools = [{"type": type, "name": name, "cache_control": {"type": "ephemeral"}}]
    made = offered(parsed("anthropic-messages", {"tools": tools}), target)
    [tool] = made.request.tools
    assert tool.name == name and tool.schema_object()["properties"]
    assert [each.where for each in made.deviations] == [f"tools.{name}.cache_control"]
    start, *_ = called(made, name, '{"command": "view"}')
    assert isinstance(start, ToolCallStart) and start.name == name


def test_free_text_is_taken_out_of_a_function_or_the_call_fails() -> None:
    tool = {"type": "custom", "name": "p", "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"}}
    made = offered(parsed("openai-responses", {"tools": [tool]}), "openai-chat")
    assert "start: X" in made.request.tools[0].description
    end = called(made, "p", '{"input": "a\\nb"}')[-1]
    assert isinstance(end, ToolCallEnd) and (end.call.kind, end.call.arguments) == ("custom", "a\nb")
    for odd in ('{"input": 1}', '{"patch": "a"}', '{"input": "a", "more": "b"}', "[]", "{}"):
        assert isinstance(called(made, "p", odd)[-1], ToolCallFailed), odd
    kept = offered(parsed("openai-responses", {"tools": [tool]}), "openai-chat", dialect=Dialect(only_functions=False))
    assert kept.request.tools[0].kind == "custom" and kept.stages() == []


# ---------------------------------------------------------------- lists that change


def names(made: Offer) -> list[str]:
    return [tool.name for tool in made.request.tools]


def test_only_what_is_allowed_is_offered() -> None:
    tools = [{"type": "function", "name": "a"}, {"type": "function", "name": "b"}, {"type": "web_search"},
             {"type": "namespace", "name": "s", "tools": [{"type": "function", "name": "a"}]}]  # fmt: skip
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "b"}]}
    made = offered(parsed("openai-responses", {"tools": tools, "tool_choice": allowed}), "openai-chat")
    assert (names(made), made.request.tool_choice, made.dropped) == (["b"], "any", ())
    config = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a", "c"]}}
    declared = [{"functionDeclarations": [{"name": name} for name in "abc"]}]
    made = offered(parsed("gemini-generate", {"tools": declared, "toolConfig": config}), "openai-chat")
    assert (names(made), made.request.tool_choice) == (["a", "c"], "any")
    servers = [
        {"type": "mcp", "server_label": name, "server_url": f"https://{name}.test/", "require_approval": "never"}
        for name in ("docs", "code")
    ]
    for allowed, wanted in (
        ({}, []),
        ({"name": "find"}, ["find"]),
    ):
        chosen = {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "mcp", "server_label": "code", **allowed}],
        }
        request = parsed("openai-responses", {"tools": servers, "tool_choice": chosen})
        made = offered(request, "anthropic-messages", dialect=Dialect(hosted_tools=("mcp",)))
        native = made.request.native
        assert native is not None and [each["name"] for each in json.loads(bytes(native.fields["mcp_servers"]))] == [
            "code"
        ]
        entries = json.loads(bytes(native.fields["tools"]))
        assert [(each["mcp_server_name"], list(each.get("configs", {}))) for each in entries] == [("code", wanted)]


def test_deferred_tools_are_there_when_they_were_found() -> None:
    tools = [{"name": "ToolSearch", "input_schema": {}}, {"name": "a", "input_schema": {}, "defer_loading": True},
             {"name": "b", "input_schema": {}, "defer_loading": True}]  # fmt: skip
    made = offered(parsed("anthropic-messages", {"tools": tools}), "openai-chat")
    assert names(made) == ["ToolSearch"]
    assert [(each.code, each.severity) for each in made.deviations] == [("changed", "note")]
    found = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "tool_reference", "tool_name": "b"}]}
    messages = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "ToolSearch", "input": {}}]},
        {"role": "user", "content": [found]},
    ]
    made = offered(parsed("anthropic-messages", {"tools": tools, "messages": messages}), "openai-chat")
    assert names(made) == ["ToolSearch", "b"]
    [result] = [part for message in made.request.messages for part in message.parts if isinstance(part, ToolResult)]
    assert "b" in result.text
    searched = [{"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}, *tools[1:]]
    made = offered(parsed("anthropic-messages", {"tools": searched}), "openai-chat")
    assert names(made) == ["a", "b"], "nobody can search there, so that all are offered"
    choice = {"type": "tool", "name": "tool_search_tool_regex"}
    made = offered(parsed("anthropic-messages", {"tools": searched, "tool_choice": choice}), "openai-chat")
    assert (names(made), made.request.tool_choice) == (["a", "b"], "auto"), "nor can a search be required there"


def test_a_conversation_adds_and_takes_tools() -> None:
    tools = [{"name": "a", "input_schema": {}}, {"name": "b", "input_schema": {}, "defer_loading": True}]
    new = {"type": "tool_definition", "definition": {"name": "c", "input_schema": {"type": "object"}}}
    content = [
        {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "a"}},
        {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "b"}},
        {"type": "tool_addition", "tool": new},
        {"type": "text", "text": "Go on."},
    ]
    body = {"tools": tools, "messages": [{"role": "user", "content": content}]}
    made = offered(parsed("anthropic-messages", body), "gemini-generate")
    assert names(made) == ["b", "c"]
    assert [type(part) for part in made.request.messages[0].parts] == [Text]


def test_tools_that_items_bring_are_offered() -> None:
    group = {"type": "namespace", "name": "crm", "tools": [{"type": "function", "name": "find", "defer_loading": True}]}
    items = [
        {"type": "message", "role": "user", "content": "x"},
        {"type": "additional_tools", "tools": [{"type": "function", "name": "more"}, {"type": "web_search"}]},
        {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"query": "crm"}},
        {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [group]},
        {"type": "function_call", "call_id": "d", "name": "find", "namespace": "crm", "arguments": "{}"},
    ]
    search = {"type": "tool_search", "execution": "client"}
    made = offered(parsed("openai-responses", {"input": items, "tools": [search]}), "openai-chat")
    assert sorted(names(made)) == ["crm__find", "more", "tool_search"]
    assert made.dropped == ("web_search",)
    calls = [part.name for message in made.request.messages for part in message.parts if isinstance(part, ToolCall)]
    assert calls == ["tool_search", "crm__find"]
    body = json.loads(PROTOCOLS["openai-chat"].render_request(made.request).http.body)
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool", "assistant"]


# ---------------------------------------------------------------- policies


def test_the_policy_of_a_kind_wins_over_that_of_who_runs_it() -> None:
    request = parsed("openai-responses", {"tools": [{"type": "shell"}, {"type": "function", "name": "f"}]})
    assert names(offered(request, "openai-chat", policies={"client": "drop"})) == ["f"]
    made = offered(request, "openai-chat", policies={"client": "refuse", "shell": "translate"})
    assert names(made) == ["f", "shell"]
    with pytest.raises(UsageError, match=r"tools\.shell.*tool_policy\.client"):
        offered(request, "openai-chat", policies={"client": "refuse"})
    choice = {
        "tools": [{"type": "web_search"}, {"type": "function", "name": "f"}],
        "tool_choice": {"type": "web_search"},
    }
    made = offered(parsed("openai-responses", choice), "openai-chat", policies={"web_search": "drop"})
    assert (names(made), made.request.tool_choice) == (["f"], "auto")
    assert [(each.where, "tool_policy.web_search" in each.seen) for each in made.deviations] == [
        ("tools.web_search", True), ("tool_choice", False),
    ]  # fmt: skip


def test_nothing_of_a_request_is_lost_beside_a_tool_of_the_provider() -> None:
    body = {"tools": [{"type": "web_search"}], "background": True, "input": "x"}
    made = offered(parsed("openai-responses", body), "gemini-generate", dialect=Dialect(hosted_tools=("web_search",)))
    assert made.request.native is not None and made.request.native.protocol == "gemini-generate"
    assert "background" in [each.where for each in made.deviations]


@for_each("target", PROTOCOLS)
def test_what_is_offered_can_be_written(target: str) -> None:
    tools = [{"type": kind} for kind in ("shell", "apply_patch", "local_shell")]
    made = offered(parsed("openai-responses", {"tools": [*tools, {"type": "custom", "name": "p"}]}), target)
    rendered = PROTOCOLS[target].render_request(made.request, dialect=PLAIN)
    assert _json.is_object(rendered.http.body.decode())
