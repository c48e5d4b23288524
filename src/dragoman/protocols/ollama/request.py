"""A client's request to Ollama's `/api/chat` → `Request`.

Spec: https://docs.ollama.com/api/chat (read 2026-11-21). Clients send more than it has: roles in any case, arguments
as text, results without an id or a name, `tool_choice`. What is not modelled (`keep_alive`, options such as `min_p`)
stays in `native`.
"""

from __future__ import annotations

from typing import Final, get_args

from dragoman import _json
from dragoman._json import Raw
from dragoman.contract import Parsed
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.fields import (
    Fields,
    make_native,
    read,
    read_body,
    read_count,
    read_fields,
    read_items,
    read_number,
    read_text,
    read_texts,
)
from dragoman.pairing import Pairing
from dragoman.protocols.ollama.wire import EMPTY_SCHEMA, NAME, image_type
from dragoman.types import (
    Effort,
    Media,
    Message,
    Named,
    Params,
    Part,
    Reasoning,
    Request,
    ResponseSchema,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

_MODELLED: Final = ("model", "messages", "stream", "tools", "tool_choice", "format", "think", "options")
_OPTIONS: Final = (
    "num_predict", "temperature", "top_p", "top_k", "stop", "seed", "presence_penalty", "frequency_penalty", "num_ctx",
)  # fmt: skip
_ROLES: Final[dict[str, Role]] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant", "model": "assistant",
    "tool": "tool", "function": "tool",
}  # fmt: skip
_EFFORTS: Final[tuple[str, ...]] = get_args(Effort)


def parse_request(body: bytes, *, path: str = "") -> Parsed:
    """Read a client's request.

    Raises:
        WireError: the body is no JSON object, names no model, or has no list of messages.
    """
    fields = read_body(body)
    model = read_text(fields.get("model"))
    if not model:
        raise WireError("expected the name of a model", path="model")
    items = read_items(fields.get("messages", Raw(b"[]")))
    if items is None:
        raise WireError("expected a list of messages", path="messages")
    parser = _Parser()
    messages = tuple(parser.message(item, turn) for turn, item in enumerate(items))
    unsaid: Fields = {}
    params = parser.params(fields, unsaid)
    request = Request(
        model,
        messages,
        parser.tools(fields.get("tools")),
        _parse_tool_choice(fields.get("tool_choice")),
        params,
        stream=read(fields.get("stream")) is not False,
        native=make_native(NAME, {key: value for key, value in fields.items() if key not in _MODELLED} | unsaid),
    )
    return Parsed(request, deviations=tuple(parser.deviations))


class _Parser:
    """Reads one request; knows the calls that results may answer."""

    __slots__ = ("_pairing", "deviations")

    def __init__(self) -> None:
        self.deviations: list[Deviation] = []
        self._pairing = Pairing()

    def _deviate(self, code: str, where: str, seen: str = "") -> None:
        self.deviations.append(Deviation(code, where, seen))

    # ------------------------------------------------------------ messages

    def message(self, item: Raw, turn: int) -> Message:
        """One message; `turn` is its place."""
        where = f"messages[{turn}]"
        fields = read_fields(item)
        if fields is None:
            raise WireError("expected a message object", path=where)
        name = read_text(fields.get("role"))
        role = _ROLES.get(name.strip().lower())
        if role is None:
            raise WireError(f"expected a role, got {name[:40]!r}", path=f"{where}.role")
        text = self._content(fields.get("content"), f"{where}.content")
        media = tuple(_parse_image(image) for image in read_texts(fields.get("images")))
        if role == "tool":
            return self._result(fields, text, media)
        parts: list[Part] = []
        thinking = read_text(fields.get("thinking"))
        if thinking:
            parts.append(Thinking(thinking))
        if text:
            parts.append(Text(text))
        parts += media
        for number, call in enumerate(read_items(fields.get("tool_calls")) or ()):
            parts.append(self._call(call, f"{where}.tool_calls[{number}]", (turn, number)))
        native = make_native(NAME, fields, "role", "content", "thinking", "images", "tool_calls")
        return Message(role, tuple(parts), native)

    def _content(self, value: Raw | None, where: str) -> str:
        """Text; a list of text parts, as other protocols have, is joined."""
        content = read(value)
        if isinstance(content, list):
            self._deviate("wrong-type", where, "a list")
            texts = [part.get("text") if isinstance(part, dict) else part for part in content]
            return "".join(text for text in texts if isinstance(text, str))
        return content if isinstance(content, str) else ""

    def _call(self, item: Raw, where: str, place: tuple[int, int]) -> ToolCall:
        fields = read_fields(item) or {}
        function = read_fields(fields.get("function")) or {}
        name = read_text(function.get("name"))
        if not name:
            raise WireError("expected the name of a tool", path=f"{where}.function.name")
        turn, number = place
        id = self._pairing.add_call(read_text(fields.get("id")), name, turn=turn, number=number)
        value = function.get("arguments")
        arguments = "{}" if value is None else _json.raw_text(value)
        if arguments[:1] == '"':
            self._deviate("arguments-type", f"{where}.function.arguments", "a string")
            arguments = read_text(value).strip() or "{}"
        return ToolCall(id, name, arguments)

    def _result(self, fields: Fields, text: str, media: tuple[Media, ...]) -> Message:
        said = read_text(fields.get("tool_name")) or read_text(fields.get("name"))
        id, name = self._pairing.add_result(read_text(fields.get("tool_call_id")), said)
        parts = ((Text(text),) if text else ()) + media
        native = make_native(NAME, fields, "role", "content", "images", "tool_name", "name", "tool_call_id")
        return Message("tool", (ToolResult(id, name, parts, native=native),))

    # ------------------------------------------------------------ tools and parameters

    def tools(self, value: Raw | None) -> tuple[Tool, ...]:
        """The tools."""
        return tuple(self._tool(item, f"tools[{place}]") for place, item in enumerate(read_items(value) or ()))

    def _tool(self, item: Raw, where: str) -> Tool:
        fields = read_fields(item) or {}
        function = read_fields(fields.get("function"))
        if function is None:
            self._deviate("missing-field", f"{where}.function")
            function = fields
            fields = {}
        name = read_text(function.get("name"))
        if not name:
            raise WireError("expected the name of a tool", path=f"{where}.function.name")
        schema = function.get("parameters")
        rest = {key: value for key, value in fields.items() if key not in ("type", "function")}
        inner = make_native(NAME, function, "name", "description", "parameters", "type")
        if inner is not None:
            rest["function"] = _json.raw(inner.fields)
        return Tool(
            name,
            read_text(function.get("description")),
            None if schema is None or read(schema) == EMPTY_SCHEMA else Raw(bytes(schema)),
            native=make_native(NAME, rest),
        )

    def params(self, fields: Fields, unsaid: Fields) -> Params:
        """The parameters; `unsaid` takes what they do not model."""
        options = read_fields(fields.get("options")) or {}
        rest = make_native(NAME, options, *_OPTIONS)
        if rest is not None:
            unsaid["options"] = _json.raw(rest.fields)
        limit = read_count(options.get("num_predict"))
        if limit is not None and limit <= 0:  # -1: without end, -2: until the context is full
            unsaid["options"] = _json.raw((rest.fields if rest is not None else {}) | {"num_predict": limit})
        reasoning = _parse_think(read(fields.get("think")))
        if reasoning is None and "think" in fields:
            unsaid["think"] = fields["think"]
        return Params(
            max_tokens=limit if limit is not None and limit > 0 else None,
            temperature=read_number(options.get("temperature")),
            top_p=read_number(options.get("top_p")),
            top_k=read_count(options.get("top_k")),
            stop=read_texts(options.get("stop")),
            seed=read_count(options.get("seed")),
            presence_penalty=read_number(options.get("presence_penalty")),
            frequency_penalty=read_number(options.get("frequency_penalty")),
            reasoning=reasoning,
            response_schema=self._format(fields.get("format")),
            num_ctx=read_count(options.get("num_ctx")),
        )

    def _format(self, value: Raw | None) -> ResponseSchema | None:
        form = read(value)
        if form == "json":
            return ResponseSchema()
        if isinstance(form, dict) and value is not None:
            return ResponseSchema(Raw(bytes(value)))
        if form:
            self._deviate("wrong-type", "format", str(form))
        return None


def _parse_image(text: str) -> Media:
    """Base64, with or without the `data:` prefix that clients of other protocols put before it."""
    head, comma, data = text.partition(",")
    if comma and head.startswith("data:"):
        return Media("image", head[5:].partition(";")[0] or image_type(data), data)
    return Media("image", image_type(text), text)


def _parse_think(value: object) -> Reasoning | None:
    if isinstance(value, bool):
        return Reasoning() if value else Reasoning(effort="none")
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in ("true", "false"):
        return _parse_think(word == "true")
    effort: Effort | None = next((known for known in get_args(Effort) if known == word), None)
    return Reasoning(effort=effort) if effort is not None else None


def _parse_tool_choice(value: Raw | None) -> ToolChoice:
    """`tool_choice`, which Ollama does not have and clients send, in the forms of the others."""
    choice = read(value)
    if isinstance(choice, dict):
        function = choice.get("function")
        name = function.get("name") if isinstance(function, dict) else choice.get("name")
        if isinstance(name, str) and name:
            return Named(name)
        choice = choice.get("type")
    match choice:
        case "none":
            return "none"
        case "required" | "any":
            return "any"
        case _:
            return "auto"
