"""Requests and answers that grow, as values and not as bytes: `REQUESTS`, `BODIES`, `ANSWERS`, each a function of a
count.

What reads bytes has its rows in `places.py` and `many_items.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from dragoman import _json
from dragoman.events import (
    Deviation,
    Event,
    Failure,
    Finish,
    NativeEvent,
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
    UsageUpdate,
)
from dragoman.types import (
    Media,
    Message,
    Named,
    Native,
    Opaque,
    Origin,
    Params,
    Part,
    ProtocolName,
    Request,
    ResponseSchema,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)

Schema = dict[str, Any]
PROTOCOLS_OF_PARTS: Final[tuple[ProtocolName, ...]] = (
    "openai-chat",
    "openai-responses",
    "anthropic-messages",
    "gemini-generate",
    "ollama-chat",
)
_HI: Final = Message("user", (Text("hi"),))
_OF_CLAUDE: Final = Origin("anthropic-messages", "anthropic/claude-opus-4-8")
_CACHED: Final = Params(cache="long")
_F: Final = Tool("f", "", _json.raw({"type": "object", "properties": {"a": {"type": "string"}}}))


def asked(messages: Iterable[Message], tools: Iterable[Tool] = (_F,), **more: Any) -> Request:
    """A question that ends with a user's turn."""
    return Request("m", (_HI, *messages, _HI), tuple(tools), **more)


def _answer(*parts: Part) -> Message:
    return Message("assistant", parts, origin=_OF_CLAUDE)


def _call(id: object, name: str = "f", arguments: str = "{}", **more: Any) -> ToolCall:
    return ToolCall(str(id), name, arguments, **more)


def _result(id: object, *parts: Text | Media | Opaque, **more: Any) -> ToolResult:
    return ToolResult(str(id), "f", parts or (Text("b"),), **more)


def _turns(calls: Iterable[ToolCall], results: Iterable[ToolResult]) -> list[Message]:
    """One answer with calls, and their results."""
    return [_answer(*calls), Message("tool", tuple(results))]


def _opaque(protocol: ProtocolName, number: int) -> Opaque:
    return Opaque(
        protocol,
        _json.raw(
            {
                "type": "web_search_call" if number % 2 else "server_tool_use",
                "id": f"s{number}",
                "name": "web_search",
                "input": {"query": "q"},
                "action": {"type": "search", "query": "q"},
                "executableCode": {"code": "1"},
            }
        ),
    )


def _native(protocol: ProtocolName, count: int) -> Native:
    return Native(protocol, {f"x{number}": _json.raw({"a": number}) for number in range(count)})


_IMAGE: Final = Media("image", "image/png", "AAAA")
_IMAGE_URL: Final = Media("image", "image/png", url="https://example.com/a.png")

TALKS: Final[dict[str, Callable[[int], Request]]] = {
    "turns": lambda n: asked([_answer(Text("a")), _HI] * n, params=_CACHED),
    "a user's turns": lambda n: asked([_HI] * n, params=_CACHED),
    "a model's turns": lambda n: asked([_answer(Text("a"))] * n),
    "later instructions": lambda n: asked([Message("system", (Text("a"),)), _HI] * n),
    "texts of a turn": lambda n: asked([_answer(*[Text(f"a{number}") for number in range(n)])]),
    "nothing of a turn": lambda n: asked([_answer(*[Text(""), Thinking("")] * n), Message("user", ())] * 2),
    "cut turns": lambda n: asked([_answer(Text("a"), _call(number)) for number in range(n)]),
    "calls of a turn": lambda n: asked(_turns(map(_call, range(n)), map(_result, reversed(range(n))))),
    "calls of one id": lambda n: asked(_turns([_call(1)] * n, [_result(1)] * n)),
    "turns of one id": lambda n: asked(_turns([_call(1)], [_result(1)]) * n),
    "calls without ids": lambda n: asked(_turns([_call("")] * n, [_result("")] * n)),
    "ids of other vendors": lambda n: asked(
        _turns([_call("é" * 70 + str(number)) for number in range(n)], [_result("é" * 70 + str(n - 1))])
    ),
    "results of one call": lambda n: asked(_turns([_call(1)], [_result(1)] * n)),
    "results of no call": lambda n: asked([Message("tool", tuple(map(_result, range(n))))]),
    "results behind all": lambda n: asked(
        [*[_answer(_call(number)) for number in range(n)], Message("tool", tuple(map(_result, range(n))))]
    ),
    "results, each a turn": lambda n: asked(
        [_answer(*map(_call, range(n))), *[Message("tool", (_result(one, _IMAGE),)) for one in range(n)]]
    ),
    "errors of calls": lambda n: asked(_turns(map(_call, range(n)), [_result(one, is_error=True) for one in range(n)])),
    "files of results": lambda n: asked(_turns([_call(1)], [_result(1, *[_IMAGE, _IMAGE_URL, Text("a")] * n)])),
    "files": lambda n: asked([Message("user", (_IMAGE, _IMAGE_URL) * n), _answer(*[_IMAGE] * n)]),
    "documents": lambda n: asked(
        [
            Message(
                "user",
                (
                    Media("document", "application/pdf", "AAAA"),
                    Media("audio", "audio/wav", "AAAA"),
                    Media("video", url="https://example.com/v"),
                    Media("document", "text/plain", "aGk="),
                ),
            ),
            _answer(Text("a")),
        ]
        * n
    ),
    "thinking": lambda n: asked([_answer(*[Thinking("a", f"s{one}") for one in range(n)], _call(1, signature="s"))]),
    "hidden thinking": lambda n: asked([_answer(*[Thinking("", redacted=f"s{one}") for one in range(n)], Text("a"))]),
    "turns of thinking": lambda n: asked([_answer(Thinking("a", "s"), Text("a", "s")), _HI] * n),
    "free text": lambda n: asked(
        _turns([_call(one, "g", "a", kind="custom") for one in range(n)], []),
        [Tool(f"g{one or ''}", "d", kind="custom") for one in range(n)],
    ),
    "arguments, wide": lambda n: asked(
        _turns([_call(1, arguments=_json.to_text(dict.fromkeys(map(str, range(n)), 1)))], [])
    ),
    "arguments, deep": lambda n: asked(_turns([_call(1, arguments='{"a":' * n + "1" + "}" * n)], [])),
    "tools": lambda n: asked([], [Tool(f"t{one}", "d", _F.schema) for one in range(n)]),
    "a tool of many": lambda n: asked([], [_F] * n, tool_choice=Named("f")),
    "tools without schemas": lambda n: asked([], [Tool(f"t{one}") for one in range(n)], tool_choice="any"),
    "long names of tools": lambda n: asked(
        _turns([_call(one, "t" * 140 + str(one)) for one in range(n)], []),
        [Tool("t" * 140 + str(one), "", _F.schema) for one in range(n)],
    ),
    "odd names of tools": lambda n: asked(
        _turns([_call(one, f"é {one}") for one in range(n)], []), [Tool(f"é {one}", "", _F.schema) for one in range(n)]
    ),
    "calls of unknown tools": lambda n: asked(_turns([_call(one, f"u {one}") for one in range(n)], [])),
    "any JSON": lambda n: asked([Message("system", (Text("a"),))] * n, params=Params(response_schema=ResponseSchema())),
    "words that end": lambda n: asked([], params=Params(stop=tuple(map(str, range(n))), cache="long", max_tokens=9)),
    **{
        f"fields of {name}": lambda n, name=name: asked(  # type: ignore[misc]
            [
                Message("user", (Text("a", native=_native(name, n)),), _native(name, n)),
                Message("assistant", (_call(1, native=_native(name, n)),), _native(name, n)),
                Message("tool", (_result(1, native=_native(name, n)),)),
            ],
            [Tool("f", "", _F.schema, native=_native(name, n))],
            native=_native(name, n),
        )
        for name in PROTOCOLS_OF_PARTS
    },
    **{
        f"parts of {name}": lambda n, name=name: asked(  # type: ignore[misc]
            [
                Message("assistant", tuple(_opaque(name, one) for one in range(n))),
                _HI,
                Message("user", tuple(_opaque(name, one) for one in range(n))),
                *_turns([_call(1)], [_result(1, *[_opaque(name, one) for one in range(n)])]),
            ]
        )
        for name in PROTOCOLS_OF_PARTS
    },
}


def _ref(name: object) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _root(properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "properties": properties, **more}


def _nested(n: int, make: Callable[[Schema], Schema]) -> Schema:
    made: Schema = {"type": "string"}
    for _ in range(n):
        made = make(made)
    return made


_TEXT: Final = {"type": "string"}
_NUMBERED: Final = "d{}".format

SCHEMAS: Final[dict[str, Callable[[int], Schema]]] = {
    "members": lambda n: _root({f"p{one}": _TEXT for one in range(n)}, required=[f"p{one}" for one in range(n)]),
    "odd names": lambda n: _root({f"é {one}": _TEXT for one in range(n)}, required=[f"é {one}" for one in range(n)]),
    "lists": lambda n: _root({f"p{one}": {"type": "array"} for one in range(n)}, additionalProperties=False),
    "deep members": lambda n: _root({"a": _nested(n, lambda inner: _root({"a": inner}))}),
    "deep lists": lambda n: _root({"a": _nested(n, lambda inner: {"type": "array", "items": inner})}),
    "deep alternatives": lambda n: _root({"a": _nested(n, lambda inner: {"anyOf": [inner, _TEXT]})}),
    "deep joins": lambda n: _root({"a": _nested(n, lambda inner: {"allOf": [inner]})}),
    "values": lambda n: _root({"a": {"enum": [str(one) for one in range(n)]}}),
    "alternatives": lambda n: _root(
        {"a": {"oneOf": [_root({"k": {"const": one}, f"p{one}": _TEXT}) for one in range(n)]}}
    ),
    "alternatives of the root": lambda n: {"anyOf": [_root({"k": {"const": one}}, required=["k"]) for one in range(n)]},
    "joins of the root": lambda n: {"allOf": [_root({f"p{one}": _TEXT}) for one in range(n)]},
    "references": lambda n: _root({f"p{one}": _ref("x") for one in range(n)}, **{"$defs": {"x": _root({"a": _TEXT})}}),
    "described references": lambda n: _root(
        {f"p{one}": {**_ref("x"), "minProperties": one} for one in range(n)}, **{"$defs": {"x": _root({"a": _TEXT})}}
    ),
    "references one behind the other": lambda n: _root(
        {"a": _ref("d0")},
        **{"$defs": {**{_NUMBERED(one): _ref(_NUMBERED(one + 1)) for one in range(n)}, f"d{n}": _TEXT}},
    ),
    "references that fan out": lambda n: _root(
        {"a": _ref("d0")},
        **{
            "$defs": {
                **{_NUMBERED(one): {"allOf": [_ref(_NUMBERED(one + 1))] * 2} for one in range(n)},
                f"d{n}": _root({"a": _TEXT}),
            }
        },
    ),
    "references in a circle": lambda n: _root(
        {"a": _ref("d0")},
        **{
            "$defs": {_NUMBERED(one): _root({"a": _ref(_NUMBERED((one + 1) % n)), "b": _ref("d0")}) for one in range(n)}
        },
    ),
    "references to all": lambda n: _root(
        {f"p{one}": _ref("x") for one in range(n)}, **{"$defs": {"x": _root({f"q{one}": _TEXT for one in range(n)})}}
    ),
    "older references": lambda n: _root(
        {f"p{one}": {"$ref": f"#/definitions/{one}"} for one in range(n)},
        definitions={str(one): _TEXT for one in range(n)},
    ),
    "anchors": lambda n: _root(
        {f"p{one}": {"$ref": f"#a{one}"} for one in range(n)},
        **{"$defs": {_NUMBERED(one): {"$anchor": f"a{one}", **_TEXT} for one in range(n)}},
    ),
    "references to the root": lambda n: _root(
        {f"é {one}": {"type": "array", "items": {"$ref": "#"}} for one in range(n)}
    ),
    "resources": lambda n: _root(
        {f"p{one}": {"$ref": f"https://a.example/{one}"} for one in range(n)},
        **{"$defs": {_NUMBERED(one): {"$id": f"https://a.example/{one}", **_TEXT} for one in range(n)}},
    ),
    "older drafts": lambda n: {
        **_root(
            {
                f"p{one}": {
                    "id": f"#x{one}",
                    "items": [_TEXT, True],
                    "exclusiveMinimum": True,
                    "minimum": 1,
                    "nullable": True,
                    "type": "integer",
                }
                for one in range(n)
            }
        ),
        "$schema": "http://json-schema.org/draft-04/schema#",
        "dependencies": {f"p{one}": ["p0"] for one in range(n)},
    },
}


def _schema_asked(schema: Schema) -> Request:
    """A schema of a tool, and of the answer."""
    text = _json.raw(schema)
    return asked([_answer(_call(1))], [Tool("f", "", text)], params=Params(response_schema=ResponseSchema(text)))


#: Every request.
REQUESTS: Final[dict[str, Callable[[int], Request]]] = {
    **TALKS,
    **{f"schema: {name}": lambda n, make=make: _schema_asked(make(n)) for name, make in SCHEMAS.items()},  # type: ignore[misc]
}


def _said(middle: Iterable[Iterable[Event]], reason: Any = "stop") -> list[Event]:
    return [Start("r", "m", 1), *(event for each in middle for event in each), Finish(reason)]


def _native_event(protocol: ProtocolName, number: int) -> NativeEvent:
    return NativeEvent(protocol, _json.raw({"type": "x", "n": number}))


ANSWERS: Final[dict[str, Callable[[int], list[Event]]]] = {
    "texts": lambda n: _said([TextStart(one), TextDelta(one, "a"), TextEnd(one)] for one in range(n)),
    "pieces": lambda n: _said([[TextStart(0), *[TextDelta(0, "a")] * n, TextEnd(0)]]),
    "thinking": lambda n: _said(
        [ThinkingStart(one), ThinkingDelta(one, "a"), ThinkingEnd(one, "s")] for one in range(n)
    ),
    "calls": lambda n: _said(
        (
            [ToolCallStart(one, f"c{one}", "f"), ToolCallDelta(one, "{}"), ToolCallEnd(one, _call(f"c{one}"))]
            for one in range(n)
        ),
        "tool_use",
    ),
    "pieces of calls": lambda n: _said(
        [
            [
                ToolCallStart(0, "c", "f"),
                ToolCallDelta(0, '{"a":['),
                *[ToolCallDelta(0, "1,")] * n,
                ToolCallDelta(0, "1]}"),
                ToolCallEnd(0, _call("c", arguments='{"a":[' + "1," * n + "1]}")),
            ]
        ],
        "tool_use",
    ),
    "calls of one id": lambda n: _said(
        ([ToolCallStart(one, "c", "f"), ToolCallDelta(one, "{}"), ToolCallEnd(one, _call("c"))] for one in range(n)),
        "tool_use",
    ),
    "failed calls": lambda n: _said(
        [
            ToolCallStart(one, f"c{one}", "f"),
            ToolCallDelta(one, "{"),
            ToolCallFailed(one, f"c{one}", "f", "cut", "a", "{"),
        ]
        for one in range(n)
    ),
    "files": lambda n: _said([PartEvent(one, _IMAGE)] for one in range(n)),
    "usage": lambda n: _said([UsageUpdate(Usage(one, one))] for one in range(n)),
    "deviations": lambda n: _said([Deviation("odd", f"a[{one}]")] for one in range(n)),
    "failures": lambda n: [
        *_said([[TextStart(one), TextDelta(one, "a")] for one in range(n)])[:-1],
        Failure("wire", "a"),
    ],
    **{
        f"parts of {name}": lambda n, name=name: _said([PartEvent(one, _opaque(name, one))] for one in range(n))  # type: ignore[misc]
        for name in PROTOCOLS_OF_PARTS
    },
    **{
        f"events of {name}": lambda n, name=name: _said([_native_event(name, one)] for one in range(n))  # type: ignore[misc]
        for name in PROTOCOLS_OF_PARTS
    },
}


def _entries(n: int, **more: Any) -> list[Schema]:
    """So many entries of a list, `%d` in them their number."""
    return [_json.decode(_json.to_text(more).replace("%d", str(one))) for one in range(n)]


def _responses(tools: list[Schema], *items: Schema, **more: Any) -> tuple[ProtocolName, Schema]:
    return "openai-responses", {
        "model": "m",
        "input": [*items, {"role": "user", "content": "hi"}],
        "tools": tools,
        **more,
    }


def _messages(tools: list[Schema], **more: Any) -> tuple[ProtocolName, Schema]:
    return "anthropic-messages", {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": tools,
        **more,
    }


def _gemini(tools: list[Schema]) -> tuple[ProtocolName, Schema]:
    return "gemini-generate", {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": tools}


_COMPARED: Final = {"type": "eq", "key": "a", "value": 1}
_FILE_SEARCH: Final = {"type": "file_search", "vector_store_ids": ["v"]}

#: Bodies of clients with tools that are no functions: protocol, and what is said in it.
BODIES: Final[dict[str, Callable[[int], tuple[ProtocolName, Schema]]]] = {
    "wide filters": lambda n: _responses([{**_FILE_SEARCH, "filters": {"type": "and", "filters": [_COMPARED] * n}}]),
    "deep filters": lambda n: _responses(
        [
            {
                **_FILE_SEARCH,
                "filters": _nested(
                    n,
                    lambda inner: (
                        {"type": "or", "filters": [inner, _COMPARED]}
                        if "key" in inner or "filters" in inner
                        else _COMPARED
                    ),
                ),
            }
        ]
    ),
    "filters of Gemini": lambda n: _gemini(
        [{"fileSearch": {"fileSearchStoreNames": ["s"], "metadataFilter": " AND ".join(["a = 1"] * n)}}]
    ),
    "pictures": lambda n: _responses(_entries(n, type="image_generation", size="1024x1024")),
    "servers": lambda n: _responses(
        _entries(
            n,
            type="mcp",
            server_label="s%d",
            server_url="https://example.com/%d",
            require_approval="never",
            allowed_tools=["a"],
        )
    ),
    "a server's tools": lambda n: _responses(
        [
            {
                "type": "mcp",
                "server_label": "s",
                "server_url": "https://example.com",
                "require_approval": "never",
                "allowed_tools": [f"t{one}" for one in range(n)],
            }
        ],
        tool_choice={"type": "mcp", "server_label": "s"},
    ),
    "servers of Claude": lambda n: _messages(
        _entries(n, type="mcp_toolset", mcp_server_name="s%d", configs={"a": {"enabled": True}}),
        mcp_servers=_entries(n, type="url", name="s%d", url="https://example.com/%d"),
    ),
    "tools of Claude": lambda n: _messages(
        _entries(n, type="web_search_20250305", name="web_search", allowed_domains=["a"]), thinking={"type": "adaptive"}
    ),
    "tools of Claude that come later": lambda n: _messages(
        [],
        messages=[
            {"role": "user", "content": "hi"},
            {
                "role": "system",
                "content": _entries(
                    n,
                    type="tool_addition",
                    **{"x%d": 1},
                    tool={
                        "type": "tool_definition",
                        "name": "t%d",
                        "definition": {"name": "t%d", "input_schema": {"type": "object"}},
                    },
                ),
            },
            {
                "role": "system",
                "content": _entries(n, type="tool_removal", tool={"type": "tool_reference", "name": "t%d"}),
            },
            {"role": "user", "content": "hi"},
        ],
    ),
    "deferred tools of Claude": lambda n: _messages(
        [
            {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
            *_entries(n, name="t%d", input_schema={"type": "object"}, defer_loading=True),
        ]
    ),
    "namespaces": lambda n: _responses(
        _entries(
            n,
            type="namespace",
            name="n%d",
            description="d",
            tools=[{"type": "function", "name": "f", "parameters": {}}],
        ),
        *_entries(n, type="function_call", call_id="c%d", name="f", namespace="n%d", arguments="{}"),
        *_entries(n, type="function_call_output", call_id="c%d", output="a"),
    ),
    "allowed tools": lambda n: _responses(
        _entries(n, type="function", name="t%d", parameters={"type": "object"}),
        tool_choice={"type": "allowed_tools", "mode": "auto", "tools": _entries(n, type="function", name="t%d")},
    ),
    "allowed servers": lambda n: _responses(
        _entries(n, type="mcp", server_label="s%d", server_url="https://example.com/%d", require_approval="never"),
        tool_choice={
            "type": "allowed_tools",
            "mode": "auto",
            "tools": _entries(n, type="mcp", server_label="s%d", name="a"),
        },
    ),
    "an allowed server's tools": lambda n: _responses(
        _entries(1, type="mcp", server_label="s%d", server_url="https://example.com/%d", require_approval="never"),
        tool_choice={
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "mcp", "server_label": "s0", "name": f"a{one}"} for one in range(n)],
        },
    ),
    "shell's calls": lambda n: _responses(
        [{"type": "local_shell"}, {"type": "custom", "name": "g"}],
        *_entries(
            n,
            type="local_shell_call",
            call_id="c%d",
            id="i%d",
            status="completed",
            action={"type": "exec", "command": ["a"]},
        ),
        *_entries(n, type="custom_tool_call", call_id="d%d", name="g", input="a"),
    ),
    "a schema of Gemini": lambda n: _gemini(
        [
            {
                "functionDeclarations": [
                    {
                        "name": "f",
                        "parameters": {
                            "type": "OBJECT",
                            "properties": {f"p{one}": {"type": "STRING", "nullable": True} for one in range(n)},
                            "propertyOrdering": [f"p{one}" for one in range(n)],
                        },
                    }
                ]
            }
        ]
    ),
    "a deep schema of Gemini": lambda n: _gemini(
        [
            {
                "functionDeclarations": [
                    {
                        "name": "f",
                        "parameters": _nested(n, lambda inner: {"type": "ARRAY", "items": inner, "min_items": "1"}),
                    }
                ]
            }
        ]
    ),
}
