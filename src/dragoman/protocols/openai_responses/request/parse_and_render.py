"""Parse and render requests of OpenAI Responses.

Specification: https://platform.openai.com/docs/api-reference/responses/create (read 2026-11-21).
"""

from __future__ import annotations

from typing import Final, get_args

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.json_fields import no_object, without_nulls
from dragoman.codec.schemas.asked_in_prompt import answer_words, names_json
from dragoman.codec.unread import SCHEMA, Kind, name_unread, refuse_no_text, refuse_other_kinds
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.protocol import (
    NOTHING_EXPECTED,
    PLAIN,
    UNKNOWN_MODEL,
    Dialect,
    HttpRequest,
    ModelLimits,
    Parsed,
    Rendered,
    ReplyStyle,
    gpt_models,
)
from dragoman.protocols.openai_responses.request.expectation import expect_of
from dragoman.protocols.openai_responses.request.parse_messages import parse_items
from dragoman.protocols.openai_responses.request.render_messages import render_items
from dragoman.protocols.openai_responses.request.tools import (
    parse_tool_choice,
    parse_tools,
    render_tool_choice,
    render_tools,
)
from dragoman.protocols.openai_responses.wire import NAME, make_native, text_of
from dragoman.types import Effort, Message, Params, Reasoning, Request, ResponseSchema, Text

#: Request fields that the response repeats.
ECHOED: Final[frozenset[str]] = frozenset({
    "background", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "parallel_tool_calls",
    "previous_response_id", "prompt_cache_key", "reasoning", "safety_identifier", "service_tier", "store",
    "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
})  # fmt: skip
#: Fields that `Request` says; all others are kept as native fields.
_MODELLED: Final = frozenset(
    {"model", "input", "instructions", "tools", "tool_choice", "stream", "max_output_tokens", "temperature", "top_p",
     "parallel_tool_calls", "prompt_cache_key", "reasoning", "text", "prompt_cache_retention"}
)  # fmt: skip
#: A request without any of them asks nothing.
_ASKING: Final = frozenset({"input", "instructions", "prompt", "previous_response_id", "conversation"})
_SHORT: Final = 64  # bytes; a longer input is no empty list, but for white space
#: Parameters that the protocol does not have, and what they are where they are not set.
_UNSAYABLE: Final = ("top_k", "stop", "seed", "presence_penalty", "frequency_penalty", "num_ctx")
_UNSAID: Final = (None, (), None, None, None, None)
_EFFORTS: Final[tuple[str, ...]] = get_args(Effort)
_SEALED: Final = "reasoning.encrypted_content"
_LONGEST: Final = "24h"
_KINDS: Final[dict[str, Kind]] = {
    "tools": "a list", "stream": "true or false", "reasoning": "an object", "text": "an object",
    "instructions": "a text or a list", "prompt_cache_key": "a text", "include": "a list",
}  # fmt: skip
#: What a format of text has.
_IN_FORMAT: Final[dict[Json, tuple[str, ...]]] = {
    "text": ("type",), "json_object": ("type",),
    "json_schema": ("type", "name", "schema", "strict", "description"),
}  # fmt: skip
_NULL: Final = Raw(b"null")
_FALSE: Final = Raw(b"false")
_decode_fields = _json.typed_decoder(dict[str, Raw])


def parse_request(body: bytes, *, path: str = "", fields: dict[str, Raw] | None = None) -> Parsed:
    """Parse a client's request. Raises `WireError`: the body is no JSON object, has no model, or asks nothing."""
    fields = _read_fields(body, fields)
    deviations: list[Deviation] = []
    model = _value(fields, "model")
    if not isinstance(model, str) or not model:
        raise WireError("expected the name of a model", path="model")
    refuse_other_kinds(fields, _KINDS)
    if _ASKING.isdisjoint(fields):
        raise WireError("expected text or a list of items", path="input")
    if _ASKING & fields.keys() == {"input"} and len(fields["input"]) < _SHORT and _value(fields, "input") == []:
        raise WireError("expected at least one item", path="input")
    native = {name: Raw(bytes(raw)) for name, raw in fields.items() if name not in _MODELLED}
    tools, hosted = parse_tools(fields["tools"], deviations) if "tools" in fields else ((), [])
    if hosted:
        native["tools"] = _json.raw(hosted)
    names = frozenset([tool.name for tool in tools])
    choice, is_whole = parse_tool_choice(_value(fields, "tool_choice"), deviations, names)
    if not is_whole:
        native["tool_choice"] = Raw(bytes(fields["tool_choice"]))
    session = _value(fields, "prompt_cache_key")
    request = Request(
        model,
        tuple(_parse_messages(fields, deviations, names)),
        tools,
        choice,
        _parse_params(fields, native, deviations),
        stream=_value(fields, "stream") is True,
        session_id=session if isinstance(session, str) and session else None,
        native=make_native(native),
    )
    echo = {name: Raw(bytes(raw)) for name, raw in fields.items() if name in ECHOED}
    return Parsed(request, ReplyStyle(echo=echo), tuple(deviations))


def _read_fields(body: bytes, fields: dict[str, Raw] | None) -> dict[str, Raw]:
    """Return the fields of the body without nulls, unless they were read already."""
    found = fields or _decode_fields(body)
    if isinstance(found, Malformed):
        value = _json.decode_lenient(body)
        if not isinstance(value, dict):
            raise no_object(body, value if isinstance(value, Malformed) else found)
        found = {name: _json.raw(inner) for name, inner in value.items()}
    return without_nulls(found)


def _value(fields: dict[str, Raw], name: str) -> Json:
    return _json.decode(fields[name]) if name in fields else None


def _parse_messages(fields: dict[str, Raw], deviations: list[Deviation], names: frozenset[str]) -> list[Message]:
    instructions = _value(fields, "instructions")
    messages: list[Message] = []
    if isinstance(instructions, list):
        messages += parse_items(fields["instructions"], deviations, names)
    elif instructions:
        messages.append(Message("system", (Text(text_of(instructions)),)))
    if "input" in fields:
        messages += parse_items(fields["input"], deviations, names)
    return messages


def _parse_params(fields: dict[str, Raw], native: dict[str, Raw], deviations: list[Deviation]) -> Params:
    retention = _value(fields, "prompt_cache_retention")
    if retention is not None and retention != _LONGEST:
        native["prompt_cache_retention"] = _json.raw(retention)
    parallel = _value(fields, "parallel_tool_calls")
    if parallel is not None and not isinstance(parallel, bool):
        deviations.append(Deviation("wrong-type", "parallel_tool_calls", type(parallel).__name__))
    limit = _number(fields, "max_output_tokens", deviations)
    if limit is not None and limit % 1 != 0:
        deviations.append(Deviation("wrong-type", "max_output_tokens", "no whole number"))
        limit = None
    return Params(
        max_tokens=None if limit is None else int(limit),
        temperature=_number(fields, "temperature", deviations),
        top_p=_number(fields, "top_p", deviations),
        reasoning=_parse_reasoning(fields, native, deviations),
        response_schema=_parse_format(fields, native, deviations),
        parallel_tools=parallel if isinstance(parallel, bool) else None,
        cache="long" if retention == _LONGEST else None,
    )


def _number(fields: dict[str, Raw], name: str, deviations: list[Deviation]) -> float | None:
    value = _value(fields, name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        deviations.append(Deviation("wrong-type", name, type(value).__name__))
        return None
    return value


def _parse_reasoning(fields: dict[str, Raw], native: dict[str, Raw], deviations: list[Deviation]) -> Reasoning | None:
    value = _value(fields, "reasoning")
    if not isinstance(value, dict):
        return None
    effort = value.get("effort")
    known = isinstance(effort, str) and effort in _EFFORTS
    if effort is not None and not known:
        deviations.append(Deviation("wrong-type", "reasoning.effort", str(effort)[:60]))
    rest = {name: inner for name, inner in value.items() if inner is not None and not (name == "effort" and known)}
    if rest:
        native["reasoning"] = _json.raw(rest)
    return Reasoning(effort) if known else None


def _parse_format(fields: dict[str, Raw], native: dict[str, Raw], deviations: list[Deviation]) -> ResponseSchema | None:
    value = _value(fields, "text")
    if not isinstance(value, dict):
        return None
    rest = {name: inner for name, inner in value.items() if inner is not None and name != "format"}
    form = value.get("format")
    if isinstance(form, dict):
        _refuse_odd_format(form)
        name_unread(form, "text.format", deviations, *_IN_FORMAT.get(form.get("type"), form))
    elif form is not None:
        raise WireError(f"expected an object, got {type(form).__name__}", path="text.format")
    kind = form.get("type") if isinstance(form, dict) else None
    if form is not None and kind not in ("text", "json_object", "json_schema"):
        deviations.append(Deviation("unknown-part", "text.format", str(kind)[:60]))
        rest["format"] = form
    if rest:
        native["text"] = _json.raw(rest)
    if kind == "json_object":
        return ResponseSchema(written_for=NAME)
    if kind != "json_schema" or not isinstance(form, dict):
        return None
    text = _decode_fields(fields["text"])
    exact = {} if isinstance(text, Malformed) else _decode_fields(text["format"])
    schema = {} if isinstance(exact, Malformed) or exact.get("schema") == _NULL else exact
    refuse_other_kinds(schema, {"schema": SCHEMA}, "text.format.")
    strict = form.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise WireError(f"expected true or false, got {type(strict).__name__}", path="text.format.strict")
    return ResponseSchema(
        Raw(bytes(schema.get("schema", b"{}"))),
        text_of(form.get("name")) or "response",
        strict,
        text_of(form.get("description")) or None,
    )


def _refuse_odd_format(form: dict[str, Json]) -> None:
    for key in ("type", "name", "description"):
        refuse_no_text(form.get(key), f"text.format.{key}")


# ---------------------------------------------------------------- rendering


def render_request(request: Request, *, dialect: Dialect = PLAIN, limits: ModelLimits = UNKNOWN_MODEL) -> Rendered:
    """Render a request for a provider. `limits` has no effect here."""
    deviations: list[Deviation] = []
    native: dict[str, Raw] = {}
    if request.native is not None and request.native.protocol == NAME:
        native = dict(request.native.fields)
    stateless = dialect.supports_store and native.get("store", _FALSE) == _FALSE
    messages, has_opaque = _render_messages(request, deviations, dialect, stateless=stateless)
    body: dict[str, Json] = {"model": request.model, **messages}
    tools = render_tools(request, native.pop("tools", None))
    said_choice = native.pop("tool_choice", None)
    if tools:
        body["tools"] = tools
        choice = said_choice or render_tool_choice(request, dialect, deviations)
        if choice is not None:
            body["tool_choice"] = choice
        _render_parallel(body, request, dialect, deviations=deviations)
    else:
        if said_choice is not None or request.tool_choice not in ("auto", "none"):
            deviations.append(Deviation("dropped", "tool_choice", "no tools"))
        if request.params.parallel_tools is not None:
            deviations.append(Deviation("dropped", "params.parallel_tools", "no tools"))
    body["stream"] = request.stream
    _render_params(body, request, native, dialect=dialect, deviations=deviations)
    _render_state(body, request, native, dialect=dialect, deviations=deviations)
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream" if request.stream else "application/json",
    }
    body |= native
    if dialect.strict_tools:
        deviations += gpt_models.fit(body, request.model)
    http = HttpRequest("/responses", _json.encode(body), headers)
    return Rendered(http, tuple(deviations), expect_of(request) if has_opaque else NOTHING_EXPECTED)


def _render_messages(
    request: Request, deviations: list[Deviation], dialect: Dialect, *, stateless: bool
) -> tuple[dict[str, Json], bool]:
    messages = list(enumerate(request.messages))
    fields: dict[str, Json] = {}
    if messages:
        first = messages[0][1]
        plain = first.parts[0] if first.role == "system" and first.native is None and len(first.parts) == 1 else None
        if isinstance(plain, Text) and plain.native is None and plain.signature is None:
            fields["instructions"] = plain.text
            del messages[0]
    fields["input"], has_opaque = render_items(messages, deviations, dialect, stateless=stateless)
    return fields, has_opaque


def _render_parallel(body: dict[str, Json], request: Request, dialect: Dialect, *, deviations: list[Deviation]) -> None:
    parallel = request.params.parallel_tools
    if parallel is None:
        return
    if dialect.supports_parallel_tool_calls:
        body["parallel_tool_calls"] = parallel
    else:
        deviations.append(Deviation("dropped", "params.parallel_tools", "this host knows no such switch"))


def _render_params(
    body: dict[str, Json],
    request: Request,
    native: dict[str, Raw],
    *,
    dialect: Dialect,
    deviations: list[Deviation],
) -> None:
    params = request.params
    penalties = (params.presence_penalty, params.frequency_penalty)
    unsayable = (params.top_k, params.stop, params.seed, *penalties, params.num_ctx)
    if unsayable != _UNSAID:
        for name, value in zip(_UNSAYABLE, unsayable, strict=True):
            if value not in (None, ()):
                deviations.append(Deviation("dropped", f"params.{name}", "no such field in this protocol"))
    if params.max_tokens is not None:
        body["max_output_tokens"] = params.max_tokens
    if params.temperature is not None:
        highest = dialect.temperature_max
        if highest is not None and params.temperature > highest:
            deviations.append(Deviation("changed", "params.temperature", f"{highest} at most"))
        body["temperature"] = params.temperature if highest is None else min(params.temperature, highest)
    if params.top_p is not None:
        body["top_p"] = params.top_p
    reasoning = _render_reasoning(params, dialect, deviations)
    if "reasoning" in native:
        reasoning |= _object(native.pop("reasoning"))
    if reasoning:
        body["reasoning"] = reasoning
    text = _object(native.pop("text")) if "text" in native else {}
    form = _render_format(params.response_schema)
    if form is not None and dialect.supports_response_schema:
        text["format"] = form
        _say_json(body, request, deviations)
    elif form is not None:
        deviations.append(Deviation("dropped", "params.response_schema", "this host knows no structured output"))
    if text:
        body["text"] = text


def _say_json(body: dict[str, Json], request: Request, deviations: list[Deviation]) -> None:
    """Say in the input that JSON is wanted, as the API requires for any JSON object; it does not look elsewhere."""
    schema = request.params.response_schema
    if schema is None or schema.schema is not None or schema.written_for == NAME:
        return
    if not names_json(request.messages[1:] if "instructions" in body else request.messages):
        words = [{"type": "input_text", "text": answer_words(None)}]
        body["input"] = [{"type": "message", "role": "system", "content": words}, *body["input"]]
        deviations.append(Deviation("changed", "params.response_schema", "words of the input, which must say JSON"))


def _object(raw: Raw) -> dict[str, Json]:
    fields = _decode_fields(raw)
    return {} if isinstance(fields, Malformed) else dict(fields)


def _render_reasoning(params: Params, dialect: Dialect, deviations: list[Deviation]) -> dict[str, Json]:
    reasoning = params.reasoning
    if reasoning is None:
        return {}
    if dialect.reasoning_style == "none":
        deviations.append(Deviation("dropped", "params.reasoning", "this host has no such switch"))
        return {}
    if reasoning.effort is not None:
        if reasoning.budget is not None:
            deviations.append(Deviation("dropped", "params.reasoning.budget", "efforts only"))
        return {"effort": reasoning.effort}
    budget = reasoning.budget
    effort = "medium" if budget is None else _effort_of(budget)
    where = "params.reasoning" if budget is None else "params.reasoning.budget"
    deviations.append(Deviation("changed", where, f"effort {effort}"))
    return {"effort": effort}


def _effort_of(budget: int) -> Effort:
    """Return the effort nearest to a budget of tokens."""
    if budget <= 0:
        return "none"
    return "low" if budget <= 2_048 else "medium" if budget <= 16_384 else "high"


def _render_format(schema: ResponseSchema | None) -> dict[str, Json] | None:
    if schema is None:
        return None
    if schema.schema is None:
        return {"type": "json_object"}
    form: dict[str, Json] = {"type": "json_schema", "name": schema.name, "schema": schema.schema}
    if schema.description is not None:
        form["description"] = schema.description
    if schema.strict is not None:
        form["strict"] = schema.strict
    return form


def _render_state(
    body: dict[str, Json],
    request: Request,
    native: dict[str, Raw],
    *,
    dialect: Dialect,
    deviations: list[Deviation],
) -> None:
    """Render what the host may store (only if the client asks), the prompt's cache, and encrypted reasoning."""
    store = native.pop("store", None)
    if dialect.supports_store:
        body["store"] = _FALSE if store is None else store
        reasoning = request.params.reasoning
        if body["store"] == _FALSE and reasoning is not None and reasoning.effort != "none":
            include = _json.decode(bytes(native.pop("include", Raw(b"[]"))))
            asked = include if isinstance(include, list) else []
            body["include"] = asked if _SEALED in asked else [*asked, _SEALED]
    elif store == Raw(b"true"):
        deviations.append(Deviation("dropped", "native.store", "this host keeps nothing"))
    cache = request.params.cache
    if cache != "none" and request.session_id is not None:
        if dialect.supports_prompt_cache_key:
            body["prompt_cache_key"] = request.session_id
        else:
            deviations.append(Deviation("dropped", "session_id", "this host knows no cache key", "note"))
    if cache == "long":
        if dialect.supports_prompt_cache_retention:
            body["prompt_cache_retention"] = _LONGEST
        else:
            deviations.append(Deviation("dropped", "params.cache", "this host sets the life of its cache"))
    if cache == "none":
        native.pop("prompt_cache_retention", None)
