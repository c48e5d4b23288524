"""Parse the parts of a Gemini request beside the conversation: tools, tool choice, parameters.

What `Request` does not model goes to `unsaid`, which becomes the request's native fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.json_fields import (
    Fields,
    make_native,
    read,
    read_all_texts,
    read_count,
    read_fields,
    read_items,
    read_number,
    read_text,
    read_texts,
)
from dragoman.codec.unread import SCHEMA, Kind, name_passed_over, name_unreadable, refuse_other_kinds, wanted_text
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.protocols.gemini.request.expectation import asks_for_several
from dragoman.protocols.gemini.request.schema import to_json_schema
from dragoman.protocols.gemini.wire import NAME, NOTHING, camel_fields
from dragoman.types import Effort, Named, Params, Reasoning, ResponseSchema, Tool, ToolChoice

_CONFIG: Final = (
    "temperature", "topP", "topK", "maxOutputTokens", "stopSequences", "seed", "presencePenalty", "frequencyPenalty",
    "responseMimeType", "responseSchema", "responseJsonSchema", "thinkingConfig",
)  # fmt: skip
#: Those that are one of `Params` each, and what reads it.
_PARAMS: Final[dict[str, tuple[str, Callable[[Raw], Any]]]] = {
    "maxOutputTokens": ("max_tokens", read_count), "temperature": ("temperature", read_number),
    "topP": ("top_p", read_number), "topK": ("top_k", read_count), "stopSequences": ("stop", read_all_texts),
    "seed": ("seed", read_count), "presencePenalty": ("presence_penalty", read_number),
    "frequencyPenalty": ("frequency_penalty", read_number),
}  # fmt: skip
_LEVELS: Final[dict[str, Effort]] = {"minimal": "minimal", "low": "low", "medium": "medium", "high": "high"}


_NULL: Final = Raw(b"null")
_Word: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class _PlainTool(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A function with nothing unusual in it, which is decoded at once; with any other, all are read field by field."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    description: str = ""
    parameters: dict[str, Any] | None = None
    parametersJsonSchema: Raw = NOTHING


class PlainTools(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Functions with nothing unusual in them."""

    functionDeclarations: list[_PlainTool]


class PlainConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The usual parameters, each of its usual kind."""

    temperature: float | None = None
    topP: float | None = None
    topK: _Count | None = None
    maxOutputTokens: _Count | None = None


# Contents with nothing unusual in them, which are decoded at once; all others are read field by field.


class _PlainCall(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: _Word
    args: Raw = NOTHING
    id: str = ""


class _PlainResult(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: _Word
    response: Raw
    id: str = ""


class PlainPart(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A part with nothing unusual in it."""

    text: str | None = None
    functionCall: _PlainCall | None = None
    functionResponse: _PlainResult | None = None
    thoughtSignature: str = ""

    def says_one_thing(self) -> bool:
        """Return whether it is a text, a call or a result."""
        if self.text is not None:
            return self.functionCall is None and self.functionResponse is None
        if self.functionCall is not None:
            return self.functionResponse is None
        return self.functionResponse is not None and self.functionResponse.response != _NULL


class PlainContent(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A content with nothing unusual in it, which is decoded at once; any other is read field by field."""

    role: Literal["user", "model"]
    parts: list[PlainPart]


class _PlainText(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    text: str


class _PlainSystem(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    parts: tuple[_PlainText, ...] = ()
    role: str = ""


class PlainRequest(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A request with nothing unusual in it, which is decoded at once; any other is read field by field."""

    contents: Annotated[list[PlainContent], msgspec.Meta(min_length=1)]
    systemInstruction: _PlainSystem = _PlainSystem()
    tools: list[PlainTools] = []
    generationConfig: PlainConfig = PlainConfig()
    model: str = ""


_decode_plain: Final = _json.typed_decoder(list[_PlainTool])


def plain_tools(declared: list[_PlainTool] | Malformed) -> list[Tool] | None:
    """Return functions that are decoded; None if one has two schemas."""
    if isinstance(declared, Malformed):
        return None
    tools: list[Tool] = []
    for tool in declared:
        schema = _schema(tool.parametersJsonSchema) if tool.parametersJsonSchema else None
        if tool.parameters is not None:
            if schema is not None:
                return None
            schema = _json.raw(to_json_schema(tool.parameters)) if tool.parameters else None
        tools.append(Tool(tool.name, tool.description, schema))
    return tools


def plain_params(config: PlainConfig) -> Params:
    """Return the parameters of a configuration that is decoded."""
    return Params(config.maxOutputTokens, config.temperature, config.topP, config.topK)


def parse_tools(value: Raw | None, unsaid: Fields, deviations: list[Deviation]) -> tuple[Tool, ...]:
    """Return the declared functions; tools that the provider runs go to `unsaid`."""
    tools: list[Tool] = []
    hosted: list[Raw] = []
    items = read_items(value)
    if items is None and value is not None:
        items = [value]
    for place, item in enumerate(items or ()):
        found = read_fields(item)
        if found is None:
            raise WireError("expected a tool object", path=f"tools[{place}]")
        fields = camel_fields(found)
        refuse_other_kinds(fields, {"functionDeclarations": "a list"}, f"tools[{place}].")
        declarations = fields.get("functionDeclarations", NOTHING)
        plain = plain_tools(_decode_plain(declarations))
        if plain is not None:
            tools += plain
        else:
            for number, declared in enumerate(read_items(declarations) or ()):
                tools.append(_parse_tool(declared, f"tools[{place}].functionDeclarations[{number}]", deviations))
        rest = make_native(NAME, fields, "functionDeclarations")
        if rest is not None:
            hosted.append(_json.raw(rest.fields))
    if hosted:
        unsaid["tools"] = _json.raw(hosted)
    return tuple(tools)


_CALLING_KINDS: Final[dict[str, Kind]] = {"mode": "a text", "allowedFunctionNames": "a text or a list"}


def parse_tool_choice(value: Raw | None, unsaid: Fields) -> ToolChoice:
    """Return the tool choice; the rest of `toolConfig` goes to `unsaid`."""
    if value is None:
        return "auto"
    config = camel_fields(read_fields(value) or {})
    refuse_other_kinds(config, {"functionCallingConfig": "an object"}, "toolConfig.")
    calling = camel_fields(read_fields(config.pop("functionCallingConfig", None)) or {})
    refuse_other_kinds(calling, _CALLING_KINDS, "toolConfig.functionCallingConfig.")
    mode = read_text(calling.pop("mode", None)).upper()
    names = read_texts(calling.get("allowedFunctionNames"))
    choice: ToolChoice = "none" if mode == "NONE" else "any" if mode == "ANY" else "auto"
    if mode == "ANY" and len(names) == 1:
        choice = Named(names[0])
        del calling["allowedFunctionNames"]
    if mode not in ("", "AUTO", "ANY", "NONE", "MODE_UNSPECIFIED"):
        calling["mode"] = _json.raw(mode)
    if calling:
        config["functionCallingConfig"] = _json.raw(calling)
    if config:
        unsaid["toolConfig"] = _json.raw(config)
    return choice


_THINKING_KINDS: Final[dict[str, Kind]] = {"thinkingLevel": "a text", "includeThoughts": "true or false"}
_KINDS: Final[dict[str, Kind]] = {
    "thinkingConfig": "an object", "responseSchema": "an object", "responseMimeType": "a text",
    "responseJsonSchema": SCHEMA,
}  # fmt: skip


def parse_params(value: Raw | None, unsaid: Fields, deviations: list[Deviation]) -> Params:
    """Return the parameters; the unmodelled ones go to `unsaid`."""
    if value is None:
        return Params()
    config = camel_fields(read_fields(value) or {})
    refuse_other_kinds(config, _KINDS, "generationConfig.")
    if asks_for_several(config.get("candidateCount")):
        del config["candidateCount"]
        deviations.append(Deviation("dropped", "generationConfig.candidateCount", "one answer is asked for"))
    rest = {key: Raw(bytes(inner)) for key, inner in config.items() if key not in _CONFIG}
    reasoning = _parse_thinking(config.get("thinkingConfig"), rest, deviations)
    schema = _parse_schema(config, rest, deviations)
    if rest:
        unsaid["generationConfig"] = _json.raw(rest)
    said = {name: read_param(config[name]) for name, (_, read_param) in _PARAMS.items() if name in config}
    if None in said.values():
        name_unreadable(config, said, "generationConfig.", deviations)
        said = {name: value for name, value in said.items() if value is not None}
    params = {_PARAMS[name][0]: value for name, value in said.items()}
    return Params(reasoning=reasoning, response_schema=schema, **params)


def _schema(value: Raw) -> Raw | None:
    text = bytes(value)
    return Raw(text) if text and text != b"null" else None


def _parse_tool(item: Raw, where: str, deviations: list[Deviation]) -> Tool:
    fields = camel_fields(read_fields(item) or {})
    name = read_text(fields.get("name"))
    if not name:
        raise WireError("expected the name of a function", path=f"{where}.name")
    refuse_other_kinds(fields, {"parameters": "an object"}, f"{where}.")
    name_passed_over(fields, f"{where}.", deviations, "parametersJsonSchema", "parameters")
    schema = fields.get("parametersJsonSchema")
    if schema is not None:
        schema = Raw(bytes(schema))
    elif isinstance(declared := read(fields.get("parameters")), dict) and declared:
        schema = _json.raw(to_json_schema(declared))
    native = make_native(NAME, fields, "name", "description", "parameters", "parametersJsonSchema")
    return Tool(name, wanted_text(fields, "description", where), schema, native=native)


def text_form(forms: Raw | None) -> Fields:
    """Return the part of a `responseFormat` about text (3.x: a list of one form for each modality), or nothing."""
    for form in read_items(forms) or ():
        text = camel_fields(read_fields(camel_fields(read_fields(form) or {}).get("text")) or {})
        if "jsonSchema" in text or read_text(text.get("mimeType")) == "application/json":
            return text
    return {}


def _parse_schema(config: Fields, rest: Fields, deviations: list[Deviation]) -> ResponseSchema | None:
    mime = read(config.get("responseMimeType"))
    schema = config.get("responseJsonSchema")
    text = text_form(config.get("responseFormat"))
    read_first = ("responseFormat",) if text else ()
    name_passed_over(config, "generationConfig.", deviations, *read_first, "responseJsonSchema", "responseSchema")
    refuse_other_kinds(text, {"jsonSchema": SCHEMA}, "generationConfig.responseFormat[].text.")
    if text:
        return ResponseSchema(Raw(bytes(text["jsonSchema"])) if "jsonSchema" in text else None)
    if schema is not None:
        return ResponseSchema(Raw(bytes(schema)))
    if isinstance(own := read(config.get("responseSchema")), dict) and mime in (None, "", "application/json"):
        return ResponseSchema(_json.raw(to_json_schema(own)))
    if mime == "application/json":
        return ResponseSchema()
    if mime not in (None, "", "text/plain") or own is not None:
        rest |= {key: Raw(bytes(config[key])) for key in ("responseMimeType", "responseSchema") if key in config}
    return None


def _parse_thinking(value: Raw | None, rest: Fields, deviations: list[Deviation]) -> Reasoning | None:
    """Parse `thinkingConfig`. Whether thoughts are shown is kept for Gemini only."""
    config = camel_fields(read_fields(value) or {})
    if not config:
        return None
    refuse_other_kinds(config, _THINKING_KINDS, "generationConfig.thinkingConfig.")
    budget = read_count(config.get("thinkingBudget"))
    if budget is None and read(config.get("thinkingBudget")) is not None:
        name_unreadable(config, {"thinkingBudget": None}, "generationConfig.thinkingConfig.", deviations)
    level = _LEVELS.get(read_text(config.get("thinkingLevel")).lower())
    shown = read(config.get("includeThoughts")) is True
    reasoning: Reasoning | None = Reasoning(level, budget if budget is not None and budget > 0 else None)
    if budget == 0:
        reasoning = Reasoning("none")
    elif budget is None and level is None and not shown:
        reasoning = None
    unsaid: dict[str, Json] = {
        key: inner
        for key, inner in config.items()
        if (key != "thinkingBudget" or budget is None)
        and key != "includeThoughts"
        and (key != "thinkingLevel" or level is None)
    }
    if not shown and budget != 0:
        unsaid["includeThoughts"] = False
    if unsaid:
        rest["thinkingConfig"] = _json.raw(unsaid)
    return reasoning
