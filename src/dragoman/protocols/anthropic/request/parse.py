"""Parse a client's request to the Messages API.

What is not modelled stays in `native` records, so that a request to the same protocol contains it again: unknown fields
of the request, of messages, blocks and tools, server tools (`tools` of the request's record), and `thinking` and
`output_config` if they say more than `Params.reasoning`.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Final, TypeAlias, get_args

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.json_fields import no_object, read_all_texts, read_plain
from dragoman.codec.unread import (
    SCHEMA,
    Kind,
    name_passed_over,
    name_unread,
    refuse_other_kinds,
    wanted_text,
    with_schema,
)
from dragoman.deviations import clip
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.protocol import Parsed, ReplyStyle
from dragoman.protocols.anthropic.request.parse_messages import Conversation, PlainContent, PlainMessage
from dragoman.protocols.anthropic.wire import (
    EMPTY_SCHEMA,
    NAME,
    UNSET,
    decode_fields,
    keep,
    read,
    read_fields,
    read_fields_leniently,
    read_items,
    read_text,
    rest_of,
    thinking_of,
)
from dragoman.types import Effort, Named, Native, Params, Reasoning, Request, ResponseSchema, Tool, ToolChoice

_MODELLED: Final = frozenset({
    "model", "messages", "system", "max_tokens", "tools", "tool_choice", "stream", "temperature", "top_p", "top_k",
    "stop_sequences", "thinking", "output_config", "output_format",
})  # fmt: skip
_EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
#: A longer schema says something: bytes.
_LONGEST_EMPTY: Final = 100
_NULL: Final = Raw(b"null")
#: claude-code names its session inside `metadata.user_id`, as `…_session_<uuid>` or as JSON.
_SESSION: Final = re.compile(r'session(?:_id"?\s*:\s*"|_)([0-9A-Za-z-]{8,64})')


class _PlainTool(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A tool with nothing unusual in it, which is decoded at once; with any other, all are read field by field."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    input_schema: Raw
    description: str = ""
    cache_control: Raw = UNSET


_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class _PlainRequest(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A request with nothing unusual in it, which is decoded at once; any other is read field by field."""

    model: Annotated[str, msgspec.Meta(min_length=1)]
    messages: Annotated[list[PlainMessage], msgspec.Meta(min_length=1)]
    max_tokens: _Count
    system: PlainContent = ""
    tools: list[_PlainTool] = []
    stream: bool | None = None
    temperature: _Count | float | None = None
    top_p: _Count | float | None = None
    top_k: _Count | None = None
    stop_sequences: list[str] = []


_decode_plain_tools: Final = _json.typed_decoder(list[_PlainTool])
_decode_plain: Final = _json.typed_decoder(_PlainRequest)
_PLAIN: Final = frozenset(_PlainRequest.__struct_fields__)


def parse_request(body: bytes, *, path: str = "", fields: dict[str, Raw] | None = None) -> Parsed:
    """Parse a client's request. Raises `WireError`: the body is not this protocol."""
    fields = fields or _read_body(body)
    plain = read_plain(_decode_plain, body, fields, _PLAIN)
    if plain is None or _NULL in [tool.input_schema for tool in plain.tools]:
        return _Parser().parse(fields)
    deviations: list[Deviation] = []
    request = Request(
        plain.model,
        tuple(Conversation(deviations).plain_messages(plain.system, plain.messages)),
        tuple([_parse_plain_tool(tool) for tool in plain.tools]),
        params=Params(plain.max_tokens, plain.temperature, plain.top_p, plain.top_k, tuple(plain.stop_sequences)),
        stream=plain.stream is True,
    )
    return Parsed(request, _STYLE, tuple(deviations))


_STYLE: Final = ReplyStyle()
_KINDS: Final[dict[str, Kind]] = {
    "tools": "a list", "stream": "true or false", "output_config": "an object",
    "output_format": "an object",
}  # fmt: skip


class _Parser:
    """Parses one request."""

    __slots__ = ("deviations",)

    def __init__(self) -> None:
        self.deviations: list[Deviation] = []

    def parse(self, fields: dict[str, Raw]) -> Parsed:
        model = read(fields.get("model"))
        if not isinstance(model, str) or not model:
            raise WireError("expected the name of a model", path="model")
        refuse_other_kinds(fields, _KINDS)
        messages = Conversation(self.deviations).messages(fields.get("system"), fields.get("messages"))
        is_modelled = fields.keys() <= _MODELLED  # as in most requests
        rest = None if is_modelled else rest_of({key: fields[key] for key in fields if key not in _MODELLED})
        native = dict(rest.fields) if rest else {}
        tools, server_tools = self._tools(fields.get("tools"))
        if server_tools:
            native["tools"] = _json.raw(server_tools)
        choice, parallel = self._tool_choice(read(fields.get("tool_choice")))
        params = self._params(fields, native, parallel)
        user = read(fields.get("metadata"))
        session = _SESSION.search(str(user.get("user_id"))) if isinstance(user, dict) else None
        request = Request(
            model,
            tuple(messages),
            tools,
            choice,
            params,
            stream=read(fields.get("stream")) is True,
            session_id=session[1] if session else None,
            native=Native(NAME, native) if native else None,
        )
        return Parsed(request, ReplyStyle(knows_servers="mcp_servers" in native), tuple(self.deviations))

    def deviate(self, code: str, where: str, seen: str = "") -> None:
        self.deviations.append(Deviation(code, where, seen))

    # ------------------------------------------------------------ tools

    def _tools(self, value: Raw | None) -> tuple[tuple[Tool, ...], list[Raw]]:
        """Return the client's tools, and those that the server runs or knows by type."""
        tools: list[Tool] = []
        server_tools: list[Raw] = []
        plain = _decode_plain_tools(value or UNSET)
        if not isinstance(plain, Malformed) and _NULL not in [tool.input_schema for tool in plain]:
            return tuple([_parse_plain_tool(tool) for tool in plain]), server_tools
        for index, item in enumerate(read_items(value) or ()):
            fields = read_fields(item)
            if fields is None:
                raise WireError("expected a tool", path=f"tools[{index}]")
            kind = read_text(fields.get("type"))
            if kind not in ("", "custom", "function"):
                server_tools.append(keep(item))
                continue
            name = read_text(fields.get("name"))
            if not name:
                raise WireError("expected the name of a tool", path=f"tools[{index}].name")
            fields = with_schema(fields, "input_schema", f"tools[{index}]", self.deviations)
            schema = fields.get("input_schema")
            if schema is None or schema == _NULL:
                schema = None
                self.deviate("missing-field", f"tools[{index}].input_schema")
            elif _says_nothing(schema):
                schema = None
            native = rest_of(fields, "name", "description", "input_schema")
            tools.append(
                Tool(
                    name,
                    wanted_text(fields, "description", f"tools[{index}]"),
                    keep(schema) if schema else None,
                    native=native,
                )
            )
        return tuple(tools), server_tools

    def _tool_choice(self, value: Json) -> tuple[ToolChoice, bool | None]:
        """Return the choice, and whether calls may be parallel."""
        if isinstance(value, str):
            self.deviate("wrong-type", "tool_choice", "a string")
            value = {"type": value}
        if not isinstance(value, dict):
            if value is not None:
                self.deviate("wrong-type", "tool_choice", type(value).__name__)
            return "auto", None
        name_unread(value, "tool_choice", self.deviations, "type", "name", "disable_parallel_tool_use")
        disabled = value.get("disable_parallel_tool_use")
        parallel = not disabled if isinstance(disabled, bool) else None
        if disabled is not None and parallel is None:
            self.deviate("wrong-type", "tool_choice.disable_parallel_tool_use", type(disabled).__name__)
        kind, name = value.get("type"), value.get("name")
        if kind == "tool":
            if not isinstance(name, str) or not name:
                raise WireError("expected the name of a tool", path="tool_choice.name")
            return Named(name), parallel
        if kind in ("any", "required"):
            return "any", parallel
        if kind not in ("none", "auto"):
            self.deviate("wrong-type", "tool_choice.type", clip(_json.to_text(kind)))
        return ("none" if kind == "none" else "auto"), parallel

    # ------------------------------------------------------------ params

    def _params(self, fields: dict[str, Raw], native: dict[str, Raw], parallel: bool | None) -> Params:
        stop = read_all_texts(fields["stop_sequences"]) if "stop_sequences" in fields else ()
        if stop is None:
            self.deviate("wrong-type", "stop_sequences", "not all are texts")
        max_tokens = self._count(fields, "max_tokens")
        if max_tokens is None:
            self.deviate("missing-field", "max_tokens")
        config = read_fields(fields.get("output_config")) or {}
        return Params(
            max_tokens=max_tokens,
            temperature=self._number(fields, "temperature"),
            top_p=self._number(fields, "top_p"),
            top_k=self._count(fields, "top_k"),
            stop=stop or (),
            reasoning=self._reasoning(fields.get("thinking"), config, native),
            response_schema=self._schema(config, fields.get("output_format"), native),
            parallel_tools=parallel,
        )

    def _number(self, fields: dict[str, Raw], key: str) -> float | None:
        if key not in fields:
            return None
        value = read(fields[key])
        if isinstance(value, str):
            self.deviate("wrong-type", key, "a string")
            try:
                value = float(value)
            except ValueError:
                return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            if value is not None:
                self.deviate("wrong-type", key, type(value).__name__)
            return None
        try:
            if math.isfinite(value):
                return value
        except OverflowError:  # more digits than a float has room for
            pass
        self.deviate("wrong-type", key, "too large")
        return None

    def _count(self, fields: dict[str, Raw], key: str) -> int | None:
        number = self._number(fields, key)
        if number is None or number % 1 == 0:
            return None if number is None else int(number)
        self.deviate("wrong-type", key, "no whole number")
        return None

    def _reasoning(self, value: Raw | None, config: dict[str, Raw], native: dict[str, Raw]) -> Reasoning | None:
        """Read `thinking` and `output_config.effort`; their other settings go to `native`."""
        if value is None and not config:
            return None
        thinking, effort = read(value), read_text(config.get("effort"))
        rest = {key: inner for key, inner in config.items() if key not in ("effort", "format")}
        form = config.get("format", _NULL)
        if form != _NULL and (read_fields(form) or {}).get("schema", _NULL) == _NULL:
            rest["format"] = config["format"]
        if thinking is not None and not isinstance(thinking, dict):
            self.deviate("wrong-type", "thinking", type(thinking).__name__)
        reasoning = read_reasoning(thinking, effort)
        if read(config.get("effort")) and (reasoning is None or reasoning.effort != effort):
            rest["effort"] = config["effort"]
        if rest:
            native["output_config"] = _json.raw(rest)
        if thinking != thinking_of(reasoning):
            native["thinking"] = keep(value) if value is not None else _json.raw(None)
        return reasoning

    def _schema(self, config: dict[str, Raw], older: Raw | None, native: dict[str, Raw]) -> ResponseSchema | None:
        refuse_other_kinds(config, {"format": "an object", "effort": "a text"}, "output_config.")
        form = read_fields(config.get("format")) or read_fields(older)
        if older is not None:
            forms = {"output_format": older, "output_config.format": config.get("format", older)}
            name_passed_over(forms, "", self.deviations, "output_config.format", "output_format")
        if form is None or form.get("schema", _NULL) == _NULL:
            if older is not None and form and "format" not in config:
                native["output_format"] = keep(older)
            return None
        where = "output_config.format" if "format" in config else "output_format"
        refuse_other_kinds(form, {"schema": SCHEMA}, f"{where}.")
        name_unread(form, where, self.deviations, "type", "schema")
        if "type" in form and (kind := read(form["type"])) != "json_schema":
            self.deviate("wrong-type", f"{where}.type", clip(_json.to_text(kind)))
        return ResponseSchema(keep(form["schema"]), written_for=NAME)


def _parse_plain_tool(tool: _PlainTool) -> Tool:
    schema = None if _says_nothing(tool.input_schema) else keep(tool.input_schema)
    native = rest_of({"cache_control": tool.cache_control}) if tool.cache_control else None
    return Tool(tool.name, tool.description, schema, native=native)


def parse_tool(fields: dict[str, Raw]) -> Tool | None:
    """Return a tool that the client runs, from its fields; None for any other."""
    name = read_text(fields.get("name"))
    if not name or read_text(fields.get("type")) not in ("", "custom", "function"):
        return None
    schema = fields.get("input_schema")
    native = rest_of(fields, "name", "description", "input_schema")
    kept = None if schema is None or _says_nothing(schema) else keep(schema)
    return Tool(name, read_text(fields.get("description")), kept, native=native)


def _says_nothing(schema: Raw) -> bool:
    return len(schema) <= _LONGEST_EMPTY and read(schema) == EMPTY_SCHEMA


def read_reasoning(thinking: Json, effort: str) -> Reasoning | None:
    """Return the reasoning of `thinking` (decoded) and an effort."""
    known: Effort | None = effort if effort in _EFFORTS else None
    if not isinstance(thinking, dict):
        return Reasoning(known) if known else None
    if thinking.get("type") == "disabled":
        return Reasoning("none")
    budget = thinking.get("budget_tokens")
    return Reasoning(known, budget if isinstance(budget, int) and thinking.get("type") == "enabled" else None)


def _read_body(body: bytes) -> dict[str, Raw]:
    fields = decode_fields(body)
    if not isinstance(fields, Malformed):
        return fields
    found = _json.decode_lenient(body)  # half surrogate pairs come from clients that cut text by UTF-16 units
    if not isinstance(found, dict):
        raise no_object(body, found if isinstance(found, Malformed) else fields)
    try:
        return read_fields_leniently(found)
    except RecursionError:
        raise WireError("expected a JSON object, got one that is nested too deeply") from None
