"""Parse a client's request to `/v1/chat/completions`.

Spec: https://platform.openai.com/docs/api-reference/chat/create (read 2026-11-21). Clients also send the fields of
Ollama, OpenRouter, DeepSeek and others; what is not modelled stays in `native`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, get_args

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.json_fields import (
    Fields,
    make_native,
    read,
    read_all_texts,
    read_body,
    read_count,
    read_fields,
    read_items,
    read_number,
    read_plain,
    read_text,
)
from dragoman.codec.unread import (
    Kind,
    name_passed_over,
    name_unread,
    name_unreadable,
    read_allowed,
    refuse_other_kinds,
    wanted_text,
    with_schema,
)
from dragoman.deviations import clip
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.protocol import Parsed, ReplyStyle
from dragoman.protocols.openai_chat.request.parse_messages import Conversation, PlainMessage
from dragoman.protocols.openai_chat.wire import NAME, NOTHING
from dragoman.types import Effort, Named, Params, Reasoning, Request, ResponseSchema, Tool, ToolChoice

_NONE: Final = Raw(b"[]")
_LONGEST: Final = "24h"
_KINDS: Final[dict[str, Kind]] = {
    "tools": "a list", "functions": "a list", "stream": "true or false", "stream_options": "an object",
    "response_format": "an object", "reasoning_effort": "a text", "prompt_cache_key": "a text",
}  # fmt: skip
_FORMAT_KINDS: Final[dict[str, Kind]] = {
    "name": "a text", "schema": "an object", "strict": "true or false", "description": "a text",
}  # fmt: skip
_MODELLED: Final = frozenset({
    "model", "messages", "stream", "stream_options", "tools", "functions", "tool_choice", "function_call", "n",
    "parallel_tool_calls", "response_format", "max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k",
    "stop", "seed", "presence_penalty", "frequency_penalty", "reasoning_effort", "reasoning", "think", "thinking",
    "enable_thinking", "thinking_budget", "prompt_cache_key", "prompt_cache_retention",
})  # fmt: skip
#: Parameters that are called here as in `Params`, and what reads them.
_PARAMS: Final[dict[str, Callable[[Raw], Any]]] = {
    "temperature": read_number, "top_p": read_number, "top_k": read_count, "stop": read_all_texts, "seed": read_count,
    "presence_penalty": read_number, "frequency_penalty": read_number,
}  # fmt: skip
#: As a limit of tokens it means none.
_NO_LIMIT: Final = -1
#: Fields that say how much to think; the first that is there is read.
_REASONING: Final[tuple[str, ...]] = ("reasoning_effort", "reasoning", "thinking", "enable_thinking", "think")
#: Of these the objects, and what is read of them.
_IN_REASONING: Final = {"reasoning": ("enabled", "effort", "max_tokens"), "thinking": ("type", "budget_tokens")}
#: Of these settings those whose values may be unreadable, and what reads them.
_INNER: Final[tuple[tuple[str, str, Callable[[Raw], Any]], ...]] = (
    ("reasoning", "effort", lambda value: _effort(read(value))),
    ("reasoning", "max_tokens", read_count),
    ("thinking", "budget_tokens", read_count),
)
#: Without one of these nothing is said in two ways.
_RIVALS: Final = frozenset({"max_completion_tokens", "function_call", *_REASONING[1:]})
#: Fields that choose a tool.
_WORDS: Final = frozenset({"response_format", *_REASONING})
_CHOICES: Final = frozenset({"tool_choice", "function_call"})


class _PlainFunction(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    description: str = ""
    parameters: Raw = NOTHING


class _PlainTool(msgspec.Struct, tag_field="type", tag="function", forbid_unknown_fields=True, gc=False):
    """A tool with nothing unusual in it, which is decoded at once; any other is read field by field."""

    function: _PlainFunction


class _PlainOptions(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    include_usage: bool | None = None


class _PlainRequest(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A request with nothing unusual in it, which is decoded at once; any other is read field by field."""

    model: Annotated[str, msgspec.Meta(min_length=1)]
    messages: Annotated[list[PlainMessage], msgspec.Meta(min_length=1)]
    tools: list[_PlainTool] | None = None
    tool_choice: Literal["auto"] | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    stream_options: _PlainOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None


_decode_all_plain: Final = _json.typed_decoder(list[_PlainTool])
_decode_plain: Final = _json.typed_decoder(_PlainRequest)
_PLAIN: Final = frozenset(_PlainRequest.__struct_fields__)


def parse_request(body: bytes, *, path: str = "", fields: Fields | None = None) -> Parsed:
    """Parse a client's request. Raises `WireError`: the body is no JSON object, names no model, or has no messages."""
    fields = read_body(body, fields)
    plain = read_plain(_decode_plain, body, fields, _PLAIN)
    if plain is not None:
        return _parse_plain(plain)
    model = _checked_model(fields)
    deviations: list[Deviation] = []
    messages = Conversation(deviations).messages(fields.get("messages", _NONE))
    tools, others = _parse_tools(fields, deviations)
    choice, tools = _parse_tool_choice(fields, tools, deviations)
    has_rivals = not _RIVALS.isdisjoint(fields)
    if has_rivals:
        _name_passed_over(fields, deviations)
    if "n" in fields and read_count(fields["n"]) != 1 and read(fields["n"]) is not None:
        deviations.append(Deviation("dropped", "n", "one answer is asked for"))
    is_modelled = fields.keys() <= _MODELLED  # as in most requests
    native = {} if is_modelled else {key: value for key, value in fields.items() if key not in _MODELLED}
    options = (read_fields(fields["stream_options"]) or {}) if "stream_options" in fields else {}
    further = make_native(NAME, options, "include_usage") if options else None
    refuse_other_kinds(options, {"include_usage": "true or false"}, "stream_options.")
    if "prompt_cache_retention" in fields and read(fields["prompt_cache_retention"]) not in (None, _LONGEST):
        native["prompt_cache_retention"] = fields["prompt_cache_retention"]
    if further is not None:
        native["stream_options"] = _json.raw(further.fields)
    if others:
        native["tools"] = _json.raw(others)
    if "response_format" in fields:
        _check_format(read_fields(fields["response_format"]) or {}, deviations)
    params = _parse_params(fields, deviations)
    native |= {} if _WORDS.isdisjoint(fields) else _unread_words(fields, params)
    if has_rivals:
        native |= _further_reasoning(fields)
    request = Request(
        model,
        messages,
        tools,
        choice,
        params,
        stream=read(fields.get("stream")) is True,
        session_id=read_text(fields.get("prompt_cache_key")) or None,
        native=make_native(NAME, native),
    )
    style = ReplyStyle(include_usage=read(options.get("include_usage")) is True)
    return Parsed(request, style, tuple(deviations))


def _parse_plain(plain: _PlainRequest) -> Parsed:
    deviations: list[Deviation] = []
    request = Request(
        plain.model,
        Conversation(deviations).plain_messages(plain.messages),
        tuple([_plain_tool(tool.function) for tool in plain.tools or ()]),
        params=Params(plain.max_tokens, plain.temperature, plain.top_p, parallel_tools=plain.parallel_tool_calls),
        stream=plain.stream is True,
    )
    options = plain.stream_options
    return Parsed(request, ReplyStyle(options is not None and options.include_usage is True), tuple(deviations))


def _check_format(form: Fields, deviations: list[Deviation]) -> None:
    """Refuse a `response_format` with values of another kind, and name what is not read of it."""
    where = "response_format.json_schema"
    refuse_other_kinds(form, {"type": "a text", "json_schema": "an object"}, "response_format.")
    name_unread(form, "response_format", deviations, "type", "json_schema")
    inner = read_fields(form.get("json_schema")) or {}
    refuse_other_kinds(inner, _FORMAT_KINDS, f"{where}.")
    name_unread(inner, where, deviations, "name", "schema", "strict", "description")


def _checked_model(fields: Fields) -> str:
    """Return the name of the model, after a check of the fields' kinds."""
    refuse_other_kinds(fields, _KINDS)
    model = read_text(fields.get("model"))
    if not model:
        raise WireError("expected the name of a model", path="model")
    return model


# ---------------------------------------------------------------- tools


def _parse_tools(fields: Fields, deviations: list[Deviation]) -> tuple[tuple[Tool, ...], list[Raw]]:
    """Return the tools, and those that only the vendor runs."""
    tools: list[Tool] = []
    others: list[Raw] = []
    offered = fields.get("tools", _NONE)
    plain = _decode_all_plain(offered)
    if not isinstance(plain, Malformed):
        tools = [_plain_tool(tool.function) for tool in plain]
        offered = _NONE
    for place, item in enumerate(read_items(offered) or ()):
        where = f"tools[{place}]"
        entry = read_fields(item)
        if entry is None:
            raise WireError("expected a tool object", path=where)
        refuse_other_kinds(entry, {"type": "a text"}, f"{where}.")
        kind = read_text(entry.get("type")) or "function"
        inner = read_fields(entry.get(kind)) if kind in ("function", "custom") else None
        if inner is None and kind in ("function", "custom"):
            deviations.append(Deviation("missing-field", f"{where}.{kind}"))
            inner = {key: value for key, value in entry.items() if key != "type"}
            entry = {}
        if inner is None:
            others.append(Raw(bytes(item)))
        else:
            tools.append(_parse_tool(kind, entry, inner, where, deviations))
    for place, item in enumerate(read_items(fields.get("functions")) or ()):
        tools.append(_parse_tool("function", {}, read_fields(item) or {}, f"functions[{place}]", deviations))
    return tuple(tools), others


def _plain_tool(function: _PlainFunction) -> Tool:
    schema = bytes(function.parameters)
    return Tool(function.name, function.description, Raw(schema) if schema and schema != b"null" else None)


def _parse_tool(kind: str, entry: Fields, inner: Fields, where: str, deviations: list[Deviation]) -> Tool:
    name = read_text(inner.get("name"))
    if not name:
        raise WireError("expected the name of a tool", path=f"{where}.{kind}.name")
    rest = {key: value for key, value in entry.items() if key not in ("type", kind)}
    if kind == "function" or "input_schema" in inner:
        kind, inner = "function", with_schema(inner, "parameters", where, deviations)
    unsaid = make_native(NAME, inner, "name", "description", *(("parameters",) if kind == "function" else ()))
    if unsaid is not None:
        rest[kind] = _json.raw(unsaid.fields)
    schema = inner.get("parameters") if kind == "function" else None
    return Tool(
        name,
        wanted_text(inner, "description", f"{where}.{kind}"),
        None if schema is None else Raw(bytes(schema)),
        "custom" if kind == "custom" else "function",
        make_native(NAME, rest),
    )


def _parse_tool_choice(
    fields: Fields, tools: tuple[Tool, ...], deviations: list[Deviation]
) -> tuple[ToolChoice, tuple[Tool, ...]]:
    """Return the choice; the tools themselves express a list of allowed tools."""
    if _CHOICES.isdisjoint(fields):
        return "auto", tools
    choice = read(fields.get("tool_choice", fields.get("function_call")))
    if isinstance(choice, dict):
        kind = choice.get("type")
        inner = choice.get(kind, choice) if isinstance(kind, str) else choice
        name_unread(choice, "tool_choice", deviations, "type", "name", str(kind))
        if isinstance(inner, dict) and inner is not choice:
            name_unread(inner, f"tool_choice.{clip(str(kind))}", deviations, "name", "mode", "tools")
        if kind == "allowed_tools" and isinstance(inner, dict):
            allowed = read_allowed(inner.get("tools"), "tool_choice.allowed_tools.tools")
            names = {name for entry in allowed if isinstance(name := _name_in(entry), str)}
            for number, entry in enumerate(allowed):
                _name_rest(entry, f"tool_choice.allowed_tools.tools[{number}]", deviations)
            deviations.append(Deviation("changed", "tool_choice", "only the allowed tools are offered"))
            return _choice_word(inner.get("mode"), deviations), tuple(tool for tool in tools if tool.name in names)
        name = inner.get("name") if isinstance(inner, dict) else None
        if isinstance(name, str) and name:
            return Named(name), tools
        choice = kind
    return _choice_word(choice, deviations), tools


def _name_in(entry: dict[str, Json]) -> Json:
    inner = entry.get(str(entry.get("type")), entry)
    return inner.get("name") if isinstance(inner, dict) else None


def _name_rest(entry: dict[str, Json], where: str, deviations: list[Deviation]) -> None:
    kind = str(entry.get("type"))
    name_unread(entry, where, deviations, "type", "name", kind)
    if isinstance(inner := entry.get(kind), dict):
        name_unread(inner, f"{where}.{clip(kind)}", deviations, "name")


def _choice_word(word: Json, deviations: list[Deviation]) -> ToolChoice:
    match word:
        case "none":
            return "none"
        case "required" | "any":
            return "any"
        case "auto" | None:
            return "auto"
        case _:
            deviations.append(Deviation("wrong-type", "tool_choice", clip(_json.to_text(word))))
            return "auto"


# ---------------------------------------------------------------- parameters


def _unread_words(fields: Fields, params: Params) -> dict[str, Raw]:
    """Return fields whose value is unknown here: their own protocol may know it."""
    names = _REASONING if params.reasoning is None else ()
    unread = {name: fields[name] for name in names if read(fields.get(name)) is not None}
    form = fields.get("response_format")
    if (
        params.response_schema is None
        and read(form) is not None
        and read_text((read_fields(form) or {}).get("type")) != "text"
    ):
        unread["response_format"] = fields["response_format"]
    return unread


def _parse_params(fields: Fields, deviations: list[Deviation]) -> Params:
    retention = read_text(fields.get("prompt_cache_retention"))
    parallel = read(fields.get("parallel_tool_calls"))
    if parallel is not None and not isinstance(parallel, bool):
        deviations.append(Deviation("wrong-type", "parallel_tool_calls", clip(_json.to_text(parallel))))
    limit_name = "max_completion_tokens" if "max_completion_tokens" in fields else "max_tokens"
    limit = read_count(fields.get(limit_name))
    said = {name: _PARAMS[name](fields[name]) for name in _PARAMS.keys() & fields}
    if limit_name in fields and (limit is None or limit <= 0) and limit != _NO_LIMIT:
        said[limit_name] = None
    if "thinking_budget" in fields and read(fields["thinking_budget"]) is not None:
        name_unreadable(fields, {"thinking_budget": read_count(fields["thinking_budget"])}, "", deviations)
    if None in said.values():
        name_unreadable(fields, said, "", deviations)
        said = {name: value for name, value in said.items() if value is not None and name != limit_name}
    return Params(
        max_tokens=limit if limit is not None and limit > 0 else None,
        reasoning=_parse_reasoning(fields),
        response_schema=_parse_format(fields.get("response_format")),
        parallel_tools=parallel if isinstance(parallel, bool) else None,
        cache="long" if retention == _LONGEST else "short" if retention else None,
        **said,
    )


def _parse_format(value: Raw | None) -> ResponseSchema | None:
    fields = read_fields(value)
    if not fields:
        return None
    kind = read_text(fields.get("type"))
    if kind == "json_object":
        return ResponseSchema(written_for=NAME)
    inner = read_fields(fields.get("json_schema"))
    if kind != "json_schema" or inner is None:
        return None
    strict = read(inner.get("strict"))
    schema = inner.get("schema")
    return ResponseSchema(
        None if schema is None else Raw(bytes(schema)),
        read_text(inner.get("name")) or "response",
        strict if isinstance(strict, bool) else None,
        read_text(inner.get("description")) or None,
    )


def _name_passed_over(fields: Fields, deviations: list[Deviation]) -> None:
    """Name repeated settings in older words or those of another server, if they differ."""
    name_passed_over(fields, "", deviations, "max_completion_tokens", "max_tokens")
    name_passed_over(fields, "", deviations, "tool_choice", "function_call")
    found = {name: _parse_reasoning({name: fields[name]}) for name in _REASONING if read(fields.get(name)) is not None}
    said: dict[str, str] = {name: f"{reasoning}" for name, reasoning in found.items() if reasoning is not None}
    name_passed_over(said, "", deviations, *_REASONING)
    if said:
        name_unreadable(fields, found, "", deviations)
    for name, key, reads in _INNER:
        inner = read_fields(fields.get(name)) or {}
        if read(inner.get(key)) is not None:
            name_unreadable(inner, {key: reads(inner[key])}, f"{name}.", deviations)
    kind = read((read_fields(fields.get("thinking")) or {}).get("type"))
    if kind not in ("enabled", "disabled", None):
        deviations.append(Deviation("changed", "thinking.type", f"{clip(str(kind))}: read as enabled", "note"))


def _further_reasoning(fields: Fields) -> dict[str, Raw]:
    """Return the other fields of the reasoning objects: vendors with the object know them."""
    further = {
        name: {key: value for key, value in (read_fields(fields.get(name)) or {}).items() if key not in known}
        for name, known in _IN_REASONING.items()
    }
    return {name: _json.raw(rest) for name, rest in further.items() if rest}


def _parse_reasoning(fields: Fields) -> Reasoning | None:
    """Return the reasoning, in the words of any of the servers."""
    if _WORDS.isdisjoint(fields):
        return None
    effort = _effort(read(fields.get("reasoning_effort")))
    if effort is not None:
        return Reasoning(effort)
    router = read_fields(fields.get("reasoning"))  # OpenRouter, and Ollama's endpoint
    if router is not None:
        if read(router.get("enabled")) is False:
            return Reasoning("none")
        return Reasoning(_effort(read(router.get("effort"))), read_count(router.get("max_tokens")))
    kind = read_fields(fields.get("thinking"))  # DeepSeek, Zhipu, Moonshot, Anthropic's endpoint
    if kind is not None:
        is_off = read_text(kind.get("type")) == "disabled"
        return Reasoning("none") if is_off else Reasoning(budget=read_count(kind.get("budget_tokens")))
    switch = read(fields.get("enable_thinking", fields.get("think")))
    if isinstance(switch, bool):
        return Reasoning(budget=read_count(fields.get("thinking_budget"))) if switch else Reasoning("none")
    effort = _effort(switch)
    return Reasoning(effort) if effort is not None else None


def _effort(word: Json) -> Effort | None:
    return next((known for known in get_args(Effort) if known == word), None)
