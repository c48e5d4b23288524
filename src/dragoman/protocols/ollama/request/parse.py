"""Parse a client's request to Ollama's `/api/chat`.

Spec: https://docs.ollama.com/api/chat (read 2026-11-21). Clients send more than it has: roles in any case, arguments as
text, results without an id or a name, `tool_choice`. What is not modelled (`keep_alive`, options such as `min_p`) stays
in `native`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_args

import msgspec

from dragoman import _json
from dragoman._json import Malformed, Raw
from dragoman.codec.counterparts import told_type, with_data
from dragoman.codec.json_fields import (
    Fields,
    decode_short,
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
from dragoman.codec.parts.history_call_ids import CallIds, parse_paired
from dragoman.codec.unread import Kind, name_unread, name_unreadable, refuse_other_kinds, wanted_text
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.protocol import Parsed
from dragoman.protocol.media_types import type_of_base64
from dragoman.protocols.ollama.wire import EMPTY_SCHEMA, NAME, NOTHING
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
#: Options that are called here as in `Params`, and what reads them.
_OPTIONS: Final[dict[str, Callable[[Raw], Any]]] = {
    "temperature": read_number, "top_p": read_number, "top_k": read_count, "stop": read_all_texts, "seed": read_count,
    "presence_penalty": read_number, "frequency_penalty": read_number, "num_ctx": read_count,
}  # fmt: skip
_ROLES: Final[dict[str, Role]] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant", "model": "assistant",
    "tool": "tool", "function": "tool",
}  # fmt: skip
#: A longer schema says something: bytes.
_LONGEST_EMPTY: Final = 100
_NONE: Final = Raw(b"[]")
_ADDRESSES: Final = ("data:", "http://", "https://")
_T = TypeVar("_T")
_Word: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class _PlainArguments(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: _Word
    arguments: Raw = NOTHING


class _PlainCall(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    function: _PlainArguments
    id: str = ""


# Messages with nothing unusual in them, which are decoded at once; with any other, all are read field by field.


class _PlainSystem(msgspec.Struct, tag_field="role", tag="system", forbid_unknown_fields=True, gc=False):
    content: str = ""


class _PlainUser(msgspec.Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    content: str = ""


class _PlainAnswer(msgspec.Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    content: str = ""
    thinking: str | None = None
    tool_calls: list[_PlainCall] | None = None


class _PlainResult(msgspec.Struct, tag_field="role", tag="tool", forbid_unknown_fields=True, gc=False):
    content: str = ""
    tool_name: str | None = None
    tool_call_id: str | None = None


_PlainMessage: TypeAlias = _PlainSystem | _PlainUser | _PlainAnswer | _PlainResult


class _PlainFunction(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: _Word
    description: str = ""
    parameters: Raw = NOTHING


class _PlainTool(msgspec.Struct, tag_field="type", tag="function", forbid_unknown_fields=True, gc=False):
    function: _PlainFunction


class _PlainOptions(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    temperature: float | None = None
    top_p: float | None = None
    top_k: _Count | None = None
    num_ctx: _Count | None = None
    num_predict: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None


class _PlainRequest(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A request with nothing unusual in it, which is decoded at once; any other is read field by field."""

    model: _Word
    messages: list[_PlainMessage]
    tools: list[_PlainTool] | None = None
    options: _PlainOptions | None = None
    stream: bool | None = None


_decode_plain: Final = _json.typed_decoder(_PlainRequest)
_PLAIN: Final = frozenset(_PlainRequest.__struct_fields__)
_decode_all_plain: Final[Callable[[Raw], list[_PlainMessage] | Malformed]] = _json.typed_decoder(list[_PlainMessage])
_decode_all_plain_tools: Final = _json.typed_decoder(list[_PlainTool])


def parse_request(body: bytes, *, path: str = "", fields: Fields | None = None) -> Parsed:
    """Parse a client's request.

    Raises:
        WireError: the body is no JSON object, names no model, or has no list of messages.
    """
    fields = read_body(body, fields)
    plain = read_plain(_decode_plain, body, fields, _PLAIN)
    if plain is not None:
        return _parse_plain(plain)
    model = read_text(fields.get("model"))
    if not model:
        raise WireError("expected the name of a model", path="model")
    refuse_other_kinds(fields, _KINDS)
    parser = _Parser()
    messages = parser.messages(fields.get("messages", _NONE))
    unsaid: Fields = {}
    params = parser.params(fields, unsaid)
    request = Request(
        model,
        messages,
        parser.tools(fields.get("tools")),
        _parse_tool_choice(fields.get("tool_choice"), parser.deviations),
        params,
        stream=read(fields.get("stream")) is not False,
        native=make_native(NAME, {key: value for key, value in fields.items() if key not in _MODELLED} | unsaid),
    )
    return Parsed(request, deviations=tuple(parser.deviations))


def _parse_plain(plain: _PlainRequest) -> Parsed:
    parser, options = _Parser(), plain.options
    request = Request(
        plain.model,
        parser.plain_messages(plain.messages),
        tuple([_parse_plain_tool(tool.function) for tool in plain.tools or ()]),
        params=_NO_PARAMS
        if options is None
        else Params(options.num_predict, options.temperature, options.top_p, options.top_k, num_ctx=options.num_ctx),
        stream=plain.stream is not False,
    )
    return Parsed(request, deviations=tuple(parser.deviations))


_NO_PARAMS: Final = Params()
_KINDS: Final[dict[str, Kind]] = {
    "tools": "a list", "options": "an object", "stream": "true or false", "format": "a text or an object",
    "think": "a text, true or false",
}  # fmt: skip
_MESSAGE_KINDS: Final[dict[str, Kind]] = {
    "thinking": "a text", "tool_calls": "a list", "tool_name": "a text", "name": "a text", "tool_call_id": "a text",
}  # fmt: skip


class _Parser:
    """Parses one request; knows the calls that results may answer."""

    __slots__ = ("_pairing", "deviations")

    _pairing: CallIds

    def __init__(self) -> None:
        self.deviations: list[Deviation] = []

    def _deviate(self, code: str, where: str, seen: str = "") -> None:
        self.deviations.append(Deviation(code, where, seen))

    # ------------------------------------------------------------ messages

    def messages(self, value: Raw) -> tuple[Message, ...]:
        """Return all messages. Raises `WireError`: there is no list of them, or one cannot be read."""
        plain = decode_short(_decode_all_plain, value)
        if not isinstance(plain, Malformed):
            return self.plain_messages(plain)
        items = read_items(value)
        if items is None:
            raise WireError("expected a list of messages", path="messages")
        return parse_paired(partial(self._each, self._message, items), self.deviations)

    def plain_messages(self, plain: list[_PlainMessage]) -> tuple[Message, ...]:
        """Return all messages, where each is decoded."""
        return parse_paired(partial(self._each, self._plain, plain), self.deviations)

    def _each(self, parse: Callable[[_T, int], Message], items: list[_T], pairing: CallIds) -> tuple[Message, ...]:
        self._pairing = pairing
        return tuple([parse(item, turn) for turn, item in enumerate(items)])

    def _plain(self, plain: _PlainMessage, turn: int) -> Message:
        texts = (Text(plain.content),) if plain.content else ()
        if isinstance(plain, _PlainUser):
            return Message("user", texts)
        if isinstance(plain, _PlainSystem):
            return Message("system", texts)
        if isinstance(plain, _PlainResult):
            id, name = self._pairing.add_result(plain.tool_call_id or "", plain.tool_name or "")
            return Message("tool", (ToolResult(id, name, texts),))
        parts: list[Part] = [Thinking(plain.thinking), *texts] if plain.thinking else [*texts]
        for number, call in enumerate(plain.tool_calls or ()):
            name = call.function.name
            id = self._pairing.add_call(call.id, name, turn=turn, number=number)
            where = f"messages[{turn}].tool_calls[{number}]"
            parts.append(ToolCall(id, name, self._arguments(call.function.arguments, where)))
        return Message("assistant", tuple(parts))

    def _message(self, item: Raw, turn: int) -> Message:
        """Parse one message; `turn` is its place."""
        where = f"messages[{turn}]"
        fields = read_fields(item)
        if fields is None:
            raise WireError("expected a message object", path=where)
        refuse_other_kinds(fields, _MESSAGE_KINDS, f"{where}.")
        name = read_text(fields.get("role"))
        role = _ROLES.get(name.strip().lower())
        if role is None:
            raise WireError(f"expected a role, got {name[:40]!r}", path=f"{where}.role")
        text = self._content(fields.get("content"), f"{where}.content")
        images = read_all_texts(fields["images"]) if "images" in fields else ()
        if images is None:
            raise WireError("expected a list of texts", path=f"{where}.images")
        media = tuple(map(_parse_image, images))
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
        """Return text; a list of text parts, as other protocols have, is joined."""
        content = read(value)
        if isinstance(content, list):
            self._deviate("wrong-type", where, "a list")
            texts: list[str] = []
            for place, part in enumerate(content):
                text = part.get("text") if isinstance(part, dict) else part
                if not isinstance(text, str):
                    raise WireError("expected a text; images stand in the message's images", path=f"{where}[{place}]")
                texts.append(text)
            return "".join(texts)
        if content is not None and not isinstance(content, str):
            raise WireError(f"expected a text, got {_json.to_text(content)[:40]}", path=where)
        return content or ""

    def _call(self, item: Raw, where: str, place: tuple[int, int]) -> ToolCall:
        fields = read_fields(item) or {}
        function = read_fields(fields.get("function")) or {}
        name = read_text(function.get("name"))
        if not name:
            raise WireError("expected the name of a tool", path=f"{where}.function.name")
        refuse_other_kinds(fields, {"id": "a text"}, f"{where}.")
        refuse_other_kinds(function, {"index": "a number"}, f"{where}.function.")
        name_unread(fields, where, self.deviations, "id", "type", "function")
        name_unread(function, f"{where}.function", self.deviations, "name", "arguments", "index")
        turn, number = place
        id = self._pairing.add_call(read_text(fields.get("id")), name, turn=turn, number=number)
        return ToolCall(id, name, self._arguments(function.get("arguments", NOTHING), where))

    def _arguments(self, value: Raw, where: str) -> str:
        arguments = _json.raw_text(value)
        if arguments[:1] == '"':
            self._deviate("arguments-type", f"{where}.function.arguments", "a string")
            return read_text(value).strip() or "{}"
        return "{}" if arguments in ("", "null") else arguments

    def _result(self, fields: Fields, text: str, media: tuple[Media, ...]) -> Message:
        said = read_text(fields.get("tool_name")) or read_text(fields.get("name"))
        id, name = self._pairing.add_result(read_text(fields.get("tool_call_id")), said)
        parts = ((Text(text),) if text else ()) + media
        native = make_native(NAME, fields, "role", "content", "images", "tool_name", "name", "tool_call_id")
        return Message("tool", (ToolResult(id, name, parts, native=native),))

    # ------------------------------------------------------------ tools and parameters

    def tools(self, value: Raw | None) -> tuple[Tool, ...]:
        """Return the tools."""
        plain = _decode_all_plain_tools(value or _NONE)
        if not isinstance(plain, Malformed):
            return tuple([_parse_plain_tool(tool.function) for tool in plain])
        return tuple(self._tool(item, f"tools[{place}]") for place, item in enumerate(read_items(value) or ()))

    def _tool(self, item: Raw, where: str) -> Tool:
        fields = read_fields(item) or {}
        usual = ("type", "function") if read(fields.get("type")) in (None, "function") else ("function",)
        rest = {key: value for key, value in fields.items() if key not in usual}
        function = read_fields(fields.get("function"))
        if function is None:
            self._deviate("missing-field", f"{where}.function")
            function, rest = fields, {key: rest[key] for key in ("type",) if key in rest}
        name = read_text(function.get("name"))
        if not name:
            raise WireError("expected the name of a tool", path=f"{where}.function.name")
        schema = function.get("parameters", NOTHING)
        inner = make_native(NAME, function, "name", "description", "parameters", "type")
        if inner is not None:
            rest["function"] = _json.raw(inner.fields)
        return Tool(
            name,
            wanted_text(function, "description", f"{where}.function"),
            _schema(schema),
            native=make_native(NAME, rest),
        )

    def params(self, fields: Fields, unsaid: Fields) -> Params:
        """Return the parameters; `unsaid` takes the unmodelled ones."""
        options = read_fields(fields.get("options")) or {}
        rest = make_native(NAME, options, "num_predict", *_OPTIONS)
        if rest is not None:
            unsaid["options"] = _json.raw(rest.fields)
        limit = read_count(options.get("num_predict"))
        if limit is not None and limit <= 0:  # -1: without end, -2: until the context is full
            unsaid["options"] = _json.raw((rest.fields if rest is not None else {}) | {"num_predict": limit})
        reasoning = _parse_think(read(fields.get("think")))
        if reasoning is None and "think" in fields:
            unsaid["think"] = fields["think"]
        said = {name: read_option(options[name]) for name, read_option in _OPTIONS.items() if name in options}
        if "num_predict" in options and limit is None:
            name_unreadable(options, {"num_predict": None}, "options.", self.deviations)
        if None in said.values():
            name_unreadable(options, said, "options.", self.deviations)
            said = {name: value for name, value in said.items() if value is not None}
        return Params(
            max_tokens=limit if limit is not None and limit > 0 else None,
            reasoning=reasoning,
            response_schema=self._format(fields.get("format")),
            **said,
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


def _parse_plain_tool(function: _PlainFunction) -> Tool:
    return Tool(function.name, function.description, _schema(function.parameters))


def _schema(value: Raw) -> Raw | None:
    """Return a tool's schema, or None for an empty one."""
    text = bytes(value)
    if len(text) <= _LONGEST_EMPTY and (text in (b"", b"null") or read(value) == EMPTY_SCHEMA):
        return None
    return Raw(text)


def _parse_image(text: str) -> Media:
    """Return base64; or the image at an address, which clients of other protocols send, and no server of Ollama's."""
    if not text[:8].lower().startswith(_ADDRESSES):
        return Media("image", type_of_base64(text), text)
    image = with_data(Media("image", url=text))
    return Media("image", told_type(image), image.data, image.url)


def _parse_think(value: object) -> Reasoning | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return Reasoning() if value else Reasoning(effort="none")
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in ("true", "false"):
        return _parse_think(word == "true")
    effort: Effort | None = next((known for known in get_args(Effort) if known == word), None)
    return Reasoning(effort=effort) if effort is not None else None


def _parse_tool_choice(value: Raw | None, deviations: list[Deviation]) -> ToolChoice:
    """Parse `tool_choice`, which Ollama does not have and clients send, in the forms of the other protocols."""
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
        case "auto" | None:
            return "auto"
        case _:
            deviations.append(Deviation("wrong-type", "tool_choice", _json.to_text(choice)[:60]))
            return "auto"
