# ruff: noqa: E501 - tables of requests, which a line end would tear
"""Reports of tools and their schemas: lost, renamed or refused on the way."""

from __future__ import annotations

from typing import Final

from asked.writing import (
    CITY,
    GONE,
    Refused,
    Says,
    answered,
    called,
    case,
    chat,
    function,
    gemini,
    messages,
    ollama,
    responses,
    tool,
)  # fmt: skip

NO_MEMBERS: Final = {"type": "object"}
LOOSE_LIST: Final = {"type": "object", "properties": {"tags": {"type": "array"}}}
TUPLE: Final = {"type": "object", "properties": {"at": {"type": "array", "items": [{"type": "number"}, {"type": "string"}],
                                                        "additionalItems": False}}}  # fmt: skip
DRAFT_4: Final = {"type": "object", "properties": {"ttl": {"type": "integer", "minimum": 0, "exclusiveMinimum": True}}}
EITHER: Final = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "path": {"type": "string"}},
    "oneOf": [{"required": ["id"]}, {"required": ["path"]}],
}
UNION: Final = {
    "anyOf": [
        {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        {"type": "object", "properties": {"path": {"type": "string"}, "id": {"type": "integer"}}, "required": ["id"]},
    ]
}
REFS: Final = {
    "type": "object",
    "properties": {"task": {"$ref": "#/$defs/Task"}, "more": {"type": "array", "items": {"$ref": "#/$defs/Task"}}},
    "$defs": {"Task": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}},
}
REF_OF_PROPERTY: Final = {
    "type": "object",
    "properties": {"head": {"type": "object"}, "acts": {"type": "array", "items": {"$ref": "#/properties/head"}}},
}
DEFINITIONS: Final = {
    "type": "object",
    "properties": {"who": {"$ref": "#/definitions/Who", "title": "Who"}},
    "definitions": {"Who": {"type": "string", "enum": ["a", "b"]}},
}
NODE: Final = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}},
               "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}}  # fmt: skip
ODD_KEYS: Final = {
    "type": "object",
    "properties": {"filter[id]": {"type": "string"}, "$top": {"type": "integer"}, "x" * 70: {"type": "string"}},
    "required": ["filter[id]"],
}
NULLABLE: Final = {"type": "object", "properties": {
    "unit": {"type": ["string", "null"], "enum": ["C", "F", None], "default": None}}}  # fmt: skip
BOOLEANS: Final = {"type": "object", "properties": {"any": True, "n": {"type": "integer"}}}
SPACE: Final = {"type": "namespace", "name": "web", "tools": [
    {"type": "function", "name": "find", "parameters": CITY, "strict": False}]}  # fmt: skip
OTHER: Final = {"type": "function", "name": "look", "parameters": CITY, "strict": False}
ELSEWHERE: Final = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic-messages",
                    "gemini": "gemini-generate", "ollama": "ollama-chat"}  # fmt: skip
GRAMMAR: Final = {"type": "custom", "name": "patch", "description": "Edits.", "format": {
    "type": "grammar", "syntax": "lark", "definition": "start: WORD"}}  # fmt: skip
LONG: Final = "mcp__a_server_with_a_name__" + "x" * 60

#: A schema under either key, in a function with each type that a protocol gives one.
ANY_TOOLS: Final = [
    {**kind, "name": "look", "description": "Looks.", key: CITY}
    for kind in ({}, {"type": "function"}, {"type": "custom"})
    for key in ("parameters", "input_schema")
    if (kind, key) != ({"type": "custom"}, "parameters")
]

CASES: Final = [
    *(case("a schema under another protocol's key", client, made(tools=[each]), chat={"tools[0].function.parameters": CITY, "tools[0].type": "function"},
           responses={"tools[0].parameters": CITY}, messages={"tools[0].input_schema": CITY}, gemini={"tools[0].functionDeclarations[0].parametersJsonSchema": CITY},
           ollama={"tools[0].function.parameters": CITY})
      for client, made in (("openai-chat", chat), ("openai-responses", responses), ("anthropic-messages", messages)) for each in ANY_TOOLS),
    case("a schema under another protocol's key within a function", "openai-responses", responses(tools=[{"type": "function", "function": tool()}]),
         each={}, chat=({"tools[0].function.parameters": CITY}, Says("input_schema"))),
    case("a tool without members", "anthropic-messages", messages(tools=[tool("ping", NO_MEMBERS)]),
         chat={"tools[0].function.parameters.properties": {}}, responses={"tools[0].parameters.properties": {}}),
    case("a tool without a schema", "openai-chat", chat(tools=[{"type": "function", "function": {"name": "ping"}}]),
         responses={"tools[0].parameters": {"type": "object", "properties": {}}},
         messages={"tools[0].input_schema.type": "object"}, ollama={"tools[0].function.name": "ping"},
         gemini={"tools[0].functionDeclarations[0]": {"name": "ping"}}),
    case("a list without items", "anthropic-messages", messages(tools=[tool("tag", LOOSE_LIST)]),
         chat={"tools[0].function.parameters.properties.tags.items": {}},
         responses={"tools[0].parameters.properties.tags.items": {}}),
    case("a tuple in the older form", "anthropic-messages", messages(tools=[tool("go", TUPLE)]),
         chat={"tools[0].function.parameters.properties.at.prefixItems": [{"type": "number"}, {"type": "string"}]},
         gemini={"tools[0].functionDeclarations[0].parametersJsonSchema.properties.at.prefixItems[1].type": "string"}),
    case("a tuple in the older form", "openai-chat", chat(tools=[function("go", TUPLE)]),
         messages={"tools[0].input_schema.properties.at.items": False,
                   "tools[0].input_schema.properties.at.prefixItems[0].type": "number"}),
    case("bounds of draft 4", "openai-chat", chat(tools=[function("dns", DRAFT_4)]),
         messages={"tools[0].input_schema.properties.ttl": {"type": "integer", "exclusiveMinimum": 0}}),
    case("one of two arguments is required", "openai-chat", chat(tools=[function("get", EITHER)]),
         messages=({"tools[0].input_schema.oneOf": GONE, "tools[0].input_schema.properties.path.type": "string"},
                   Says("tools[0]")),
         responses=({"tools[0].parameters.oneOf": GONE}, Says("tools[0]"))),
    case("a union at the root", "openai-chat", chat(tools=[function("get", UNION)]),
         messages=({"tools[0].input_schema.anyOf": GONE, "tools[0].input_schema.type": "object",
                    "tools[0].input_schema.required": ["id"],
                    "tools[0].input_schema.properties.path.type": "string"}, Says("tools[0]")),
         responses=({"tools[0].parameters.type": "object"}, Says("tools[0]"))),
    case("a union at the root", "anthropic-messages", messages(tools=[tool("get", UNION)]),
         chat=({"tools[0].function.parameters.anyOf": GONE}, Says("tools[0]"))),
    case("references to definitions", "openai-chat", chat(tools=[function("add", REFS)]),
         messages={"tools[0].input_schema.$defs.Task.required": ["title"]},
         gemini={"tools[0].functionDeclarations[0].parametersJsonSchema.$defs.Task.required": ["title"]},
         ollama={"tools[0].function.parameters.properties.task.properties.title.type": "string"}),
    case("a reference to a property", "openai-chat", chat(tools=[function("run", REF_OF_PROPERTY)]),
         gemini={"tools[0].functionDeclarations[0].parametersJsonSchema.$defs.head": {"type": "object"}}),
    case("a reference with a title beside it", "anthropic-messages", messages(tools=[tool("ask", DEFINITIONS)]),
         gemini={"tools[0].functionDeclarations[0].parametersJsonSchema.$defs.Who.enum": ["a", "b"]}),
    case("a schema within itself", "openai-chat", chat(tools=[function("walk", NODE)]),
         gemini={"tools[0].functionDeclarations[0].parametersJsonSchema.$defs.Node.type": "object"},
         ollama={"tools[0].function.parameters.$defs.Node.type": "object"}),
    case("odd keys", "openai-chat", chat(tools=[function("list", ODD_KEYS)]),
         messages=({"tools[0].input_schema.properties.filter[id]": GONE}, Says("tools[0]")),
         responses={"tools[0].parameters.required": ["filter[id]"]}),
    case("an enum with null", "openai-chat", chat(tools=[function("w", NULLABLE)]),
         messages={"tools[0].input_schema": NULLABLE}, responses={"tools[0].parameters": NULLABLE},
         gemini={"tools[0].functionDeclarations[0].parametersJsonSchema": NULLABLE},
         ollama={"tools[0].function.parameters": NULLABLE}),
    case("boolean schemas", "openai-chat", chat(tools=[function("w", BOOLEANS)]),
         ollama={"tools[0].function.parameters.properties.any": {}}),
    case("Gemini's own schema words", "gemini-generate",
         gemini(tools=[{"functionDeclarations": [{"name": "w", "parameters": {"type": "OBJECT", "properties": {
             "n": {"type": "INTEGER", "nullable": True}, "l": {"type": "ARRAY", "items": {"type": "STRING"}}}}}]}]),
         chat={"tools[0].function.parameters.properties.n.type": ["integer", "null"]},
         messages={"tools[0].input_schema.properties.l.items.type": "string"},
         ollama={"tools[0].function.parameters.type": "object"}),
    case("a strict tool", "openai-chat", chat(tools=[function("w", {**CITY, "additionalProperties": False}, strict=True)]),
         responses={"tools[0].strict": True}, messages=Says("strict"), gemini=Says("strict"), ollama=Says("strict")),
    case("a tool of no strictness", "anthropic-messages", messages(tools=[tool()]), responses={"tools[0].strict": False},
         chat={"tools[0].function.strict": GONE}),
    case("a call is required", "openai-chat", chat(tools=[function()], tool_choice="required"),
         responses={"tool_choice": "required"}, messages={"tool_choice.type": "any"},
         gemini={"toolConfig.functionCallingConfig.mode": "ANY"}, ollama=Says("tool_choice")),
    case("any call", "anthropic-messages", messages(tools=[tool()], tool_choice={"type": "any"}),
         chat={"tool_choice": "required"}, responses={"tool_choice": "required"},
         gemini={"toolConfig.functionCallingConfig.mode": "ANY"}),
    case("one named call", "anthropic-messages", messages(tools=[tool(), tool("b")], tool_choice={"type": "tool", "name": "b"}),
         chat={"tool_choice": {"type": "function", "function": {"name": "b"}}},
         responses={"tool_choice": {"type": "function", "name": "b"}},
         gemini={"toolConfig.functionCallingConfig.allowedFunctionNames": ["b"]}, ollama={"tools[0].function.name": "b", "tools[1]": GONE}),
    case("one named call", "openai-responses",
         responses(tools=[{"type": "function", "name": "look", "parameters": CITY}], tool_choice={"type": "function", "name": "look"}),
         chat={"tool_choice.function.name": "look"}, messages={"tool_choice": {"type": "tool", "name": "look"}}),
    *(case("a choice of a tool that is not there", client, body, **{
        short: Refused("tool_choice") for short, target in ELSEWHERE.items() if target != client}) for client, body in (
            ("openai-chat", chat(tools=[function()], tool_choice={"type": "function", "function": {"name": "b"}})),
            ("openai-responses", responses(tools=[SPACE, {**SPACE, "name": "net"}], tool_choice={"type": "function", "name": "find"})),
            ("anthropic-messages", messages(tools=[tool()], tool_choice={"type": "tool", "name": "b"})),
            ("gemini-generate", gemini(tools=[{"functionDeclarations": [{"name": "look"}]}],
                                       toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["b"]}})),
            ("ollama-chat", ollama(tools=[function()], tool_choice={"type": "function", "function": {"name": "b"}})))),
    case("a choice of a function in a namespace", "openai-responses",
         responses(tools=[SPACE, OTHER], tool_choice={"type": "function", "name": "find"}),
         chat={"tool_choice.function.name": "web__find"}, messages={"tool_choice.name": "web__find"},
         ollama={"tools[0].function.name": "web__find", "tools[1]": GONE}),
    case("a choice of a deferred tool", "anthropic-messages",
         messages(tools=[tool(), tool("b", defer_loading=True)], tool_choice={"type": "tool", "name": "b"}),
         chat={"tool_choice.function.name": "b", "tools[1].function.name": "b"}),
    case("a choice of a deferred tool", "openai-responses",
         responses(tools=[OTHER, {**OTHER, "name": "b", "defer_loading": True}], tool_choice={"type": "function", "name": "b"}),
         chat={"tool_choice.function.name": "b", "tools[1].function.name": "b"}),
    case("no call", "gemini-generate", gemini(
        tools=[{"functionDeclarations": [{"name": "w"}]}], toolConfig={"functionCallingConfig": {"mode": "NONE"}}),
         chat={"tool_choice": "none"}, messages={"tool_choice.type": "none"}, ollama={"tools": GONE}),
    case("allowed names", "gemini-generate", gemini(
        tools=[{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}],
        toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["b"]}}),
         chat={"tool_choice.function.name": "b"}, messages={"tool_choice.name": "b"}),
    case("allowed tools", "openai-chat", chat(tools=[function("a"), function("b")], tool_choice={
        "type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "b"}}]}}),
         messages=({"tools[0].name": "b", "tools[1]": GONE, "tool_choice.type": "any"}, Says("tool_choice"))),
    case("one call at a time", "openai-chat", chat(tools=[function()], parallel_tool_calls=False),
         messages={"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
         responses={"parallel_tool_calls": False}, gemini=Says("parallel"), ollama=Says("parallel")),
    case("one call at a time", "anthropic-messages",
         messages(tools=[tool()], tool_choice={"type": "any", "disable_parallel_tool_use": True}),
         chat={"parallel_tool_calls": False, "tool_choice": "required"}, responses={"parallel_tool_calls": False}),
    case("one call at a time, and no tools", "openai-chat", chat(parallel_tool_calls=False),
         responses=Says("parallel"), messages={"tool_choice": GONE}),
    case("a choice without tools", "openai-chat", chat(tool_choice="auto"), each={"tool_choice": GONE, "tools": GONE}),
    case("an empty list of tools", "openai-chat", chat(tools=[], tool_choice="none"), each={"tools": GONE, "tool_choice": GONE}),
    case("a long name", "anthropic-messages", messages(tools=[tool(LONG)], tool_choice={"type": "tool", "name": LONG}),
         chat=Says("name"), responses=Says("name"), gemini=Says("name"), ollama={"tools[0].function.name": LONG}),
    case("a name with dots", "gemini-generate", gemini(tools=[{"functionDeclarations": [{"name": "a.b"}]}]),
         chat=Says("name"), messages=Says("name")),
    case("two tools of one name", "openai-chat", chat(tools=[function("a"), function("a")]), each=Says("name")),
    case("a namespace", "openai-responses", responses(tools=[SPACE]),
         chat={"tools[0].function.name": "web__find"}, messages={"tools[0].name": "web__find"}),
    case("free text with a grammar", "openai-responses", responses(tools=[GRAMMAR]),
         messages=({"tools[0].input_schema.properties.input.type": "string"}, Says("tools[0]")),
         chat={"tools[0].type": "custom", "tools[0].custom.format.grammar.definition": "start: WORD"},
         gemini=Says("tools[0]"), ollama=Says("tools[0]"), vllm={"tools[0].type": "function"}),
    case("what free text says besides", "openai-responses", responses(tools=[{**GRAMMAR, "new": 1}]), messages=Says("tools[0].new"), ollama=Says("tools[0].new")),
    case("what free text says besides", "openai-chat", chat(tools=[{"type": "custom", "custom": {"name": "patch", "new": 1}, "newer": 1}]),
         messages=(Says("custom.new"), Says("newer")), gemini=Says("custom.new")),
    case("what a namespace says besides", "openai-responses", responses(tools=[{**SPACE, "new": 1}]), chat=Says("namespace.new"), messages=Says("namespace.new")),
    case("web search alone", "anthropic-messages", messages(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
         chat=Refused("web_search"), ollama=Refused("web_search"), responses={"tools[0].type": "web_search"}),
    case("web search beside others", "openai-responses",
         responses(tools=[{"type": "web_search"}, {"type": "function", "name": "look", "parameters": CITY}]),
         messages={"tools[0].name": "look", "tools[1].name": "web_search"}, ollama=({"tools[1]": GONE}, Says("web_search"))),
    case("a shell that the client runs", "anthropic-messages", messages(tools=[{"type": "bash_20250124", "name": "bash"}]),
         chat={"tools[0].function.name": "bash"}, ollama={"tools[0].function.name": "bash"}),
    case("fields beside an allowed function", "openai-chat", chat(tools=[function()], tool_choice={
        "type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "look", "one": 1}, "two": 2}]}}),
         each=(Says("tool_choice.allowed_tools.tools[0].function.one"), Says("tool_choice.allowed_tools.tools[0].two"))),
    case("fields beside an allowed tool", "openai-responses", responses(tools=[{"type": "function", "name": "look"}], tool_choice={
        "type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "look", "one": 1}]}),
         responses={"tool_choice.tools[0].one": 1}, **dict.fromkeys(("chat", "messages", "gemini", "ollama"), Says("tool_choice.tools[0].one"))),
    case("too many servers beside too many allowed tools", "openai-responses", responses(
        tools=[{"type": "mcp", "server_label": f"s{number}", "server_url": "https://a.test"} for number in range(400)], tool_choice={
            "type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "name": f"t{number}"} for number in range(400)]}),
         **dict.fromkeys(("chat", "messages", "gemini", "ollama"), Refused("400 entries for 400 tools"))),
    case("fields beside a place", "openai-chat", chat(tools=[function()], web_search_options={
        "user_location": {"type": "approximate", "one": 1, "approximate": {"city": "Rome", "two": 2}}}),
         chat={"web_search_options.user_location.one": 1},
         responses=({"tools[1].user_location": {"type": "approximate", "city": "Rome"}}, Says("user_location.one"), Says("approximate.two")),
         messages=({"tools[1].user_location": {"type": "approximate", "city": "Rome"}}, Says("user_location.one"), Says("approximate.two"))),
    case("functions of the older form", "openai-chat", chat(functions=[{"name": "look", "parameters": CITY}], function_call={"name": "look"}),
         messages={"tools[0].name": "look", "tool_choice.name": "look"}),
    case("a tool with a mark", "anthropic-messages", messages(tools=[tool(cache_control={"type": "ephemeral"})]),
         chat={"tools[0].cache_control": GONE, "tools[0].function.cache_control": GONE}, responses=Says("cache_control")),
    case("history without its tools", "anthropic-messages", messages(
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "old", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "y"}]}),
         chat={"messages[1].tool_calls[0].function.name": "old"}, gemini={"contents[2].parts[0].functionResponse.name": "old"}),
    case("arguments that are no object", "openai-chat", chat({"role": "user", "content": "x"}, called(arguments="[1]"), answered()),
         messages=({"messages[1].content[0].input": {"input": "[1]"}}, Says("arguments"))),
    case("arguments left empty", "openai-chat", chat({"role": "user", "content": "x"}, called(arguments=""), answered()),
         messages={"messages[1].content[0].input": {}}, gemini={"contents[1].parts[0].functionCall.args": {}},
         ollama={"messages[1].tool_calls[0].function.arguments": {}}),
    case("Ollama's arguments as an object", "ollama-chat", ollama(
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {"n": 1.50}}}]},
        {"role": "tool", "tool_name": "look", "content": "y"}),
         chat={"messages[1].tool_calls[0].function.arguments": '{"n": 1.5}'}),
]  # fmt: skip
