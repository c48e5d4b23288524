"""Parse a client's request to Gemini.

Spec: https://ai.google.dev/api/generate-content (read 2026-11-21). The model and the verb stand in the path. Keys come
in camelCase and in snake_case. Results of tools are parts of a user's content; they become a message of their own. What
is not modelled (safety settings, hosted tools, cached content) stays in `native`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeAlias, TypeGuard, TypeVar

import msgspec

from dragoman import _json
from dragoman._json import Malformed, Raw
from dragoman.codec.counterparts import of_client
from dragoman.codec.json_fields import (
    Fields,
    decode_short,
    make_native,
    read,
    read_body,
    read_fields,
    read_items,
    read_plain,
    read_string,
    read_text,
)
from dragoman.codec.parts.history_call_ids import CallIds, parse_paired
from dragoman.codec.unread import Kind, name_unread, refuse_other_kinds, wanted_text
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.protocol import Parsed, ReplyStyle
from dragoman.protocols.gemini.request.parameters import (
    PlainContent,
    PlainPart,
    PlainRequest,
    parse_params,
    parse_tool_choice,
    parse_tools,
    plain_params,
    plain_tools,
)
from dragoman.protocols.gemini.wire import DUMMY_SIGNATURES, NAME, NOTHING, camel_fields, parse_seal, read_media
from dragoman.types import (
    Media,
    Message,
    Native,
    Opaque,
    Part,
    Request,
    Role,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)

_MODELLED: Final = ("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model")
_KINDS: Final[dict[str, Kind]] = {"toolConfig": "an object", "generationConfig": "an object"}
_PART_KINDS: Final[dict[str, Kind]] = {"thought": "true or false", "thoughtSignature": "a text"}
_ROLES: Final[dict[str, Role]] = {"user": "user", "function": "user", "model": "assistant", "assistant": "assistant"}
_ESCAPED: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_STREAM: Final = "streamGenerateContent"
_WHOLE: Final = "generateContent"
#: A part of a content: its fields in camelCase.
_Place: TypeAlias = tuple[int, int]


_T = TypeVar("_T")


_decode_plain: Final = _json.typed_decoder(PlainRequest)
_PLAIN: Final = frozenset(PlainRequest.__struct_fields__)
_decode_content: Final = _json.typed_decoder(PlainContent)
_decode_contents: Final = _json.typed_decoder(list[PlainContent])


def parse_request(body: bytes, *, path: str = "", fields: Fields | None = None) -> Parsed:
    """Parse a client's request.

    Args:
        path: `/v1beta/models/{model}:{verb}?alt=sse`; without it the model is the body's, and a stream is requested.

    Raises:
        WireError: the body is no JSON object or has no contents, or the path names no model or another verb.
    """
    fields = read_body(body, fields)
    plain = read_plain(_decode_plain, body, fields, _PLAIN)
    if plain is not None and _are_usual(plain.contents):
        functions = plain_tools([tool for group in plain.tools for tool in group.functionDeclarations])
        if functions is not None:
            return _parse_plain(plain, functions, path)
    fields = camel_fields(fields)
    if "contents" not in fields and read_fields(fields.get("request")) is not None:  # Code Assist's envelope
        inner = camel_fields(read_fields(fields.get("request")) or {})
        fields = inner | {key: value for key, value in fields.items() if key == "model"}
    model, is_stream, is_array = parse_path(path, read_text(fields.get("model")))
    refuse_other_kinds(fields, _KINDS)
    parser = _Parser()
    messages = parser.system(fields.get("systemInstruction")) + parser.contents(fields.get("contents"))
    unsaid: Fields = {}
    request = Request(
        model,
        tuple(messages),
        parse_tools(fields.get("tools"), unsaid, parser.deviations),
        parse_tool_choice(fields.get("toolConfig"), unsaid),
        parse_params(fields.get("generationConfig"), unsaid, parser.deviations),
        stream=is_stream,
        native=make_native(NAME, {key: value for key, value in fields.items() if key not in _MODELLED} | unsaid),
    )
    return Parsed(request, ReplyStyle(array=is_array), tuple(parser.deviations))


def _parse_plain(plain: PlainRequest, functions: list[Tool], path: str) -> Parsed:
    model, is_stream, is_array = parse_path(path, plain.model)
    parser = _Parser()
    said = tuple([Text(part.text) for part in plain.systemInstruction.parts if part.text])
    request = Request(
        model,
        (*([Message("system", said)] if said else ()), *parser.plain_contents(plain.contents)),
        tuple(functions),
        params=plain_params(plain.generationConfig),
        stream=is_stream,
    )
    return Parsed(request, ReplyStyle(array=is_array), tuple(parser.deviations))


def _are_usual(contents: Iterable[PlainContent]) -> bool:
    return all(part.says_one_thing() for content in contents for part in content.parts)


def parse_path(path: str, named: str) -> tuple[str, bool, bool]:
    """Return the model, whether a stream is requested, and whether that is a JSON array."""
    if not path:
        if not named:
            raise WireError("expected the name of a model", path="model")
        return _bare_model(named), True, False
    model, verb = read_model(path, named)
    if verb not in (_STREAM, _WHOLE):
        raise WireError(f"expected the verb {_WHOLE} or {_STREAM}, got {verb[:60]!r}", status=404, path="path")
    words = [_unescape(word) for word in path.partition("?")[2].split("&")]
    is_stream = verb == _STREAM
    return model, is_stream, is_stream and "alt=sse" not in words and "$alt=sse" not in words


def read_model(path: str, named: str = "") -> tuple[str, str]:
    """Return the model and the verb of a path; `named` is the model of a path without one.

    Raises:
        WireError: neither names a model.
    """
    location = path.partition("?")[0]
    if ":" not in location:
        location = _unescape(location)
    before, _, verb = location.rpartition(":")
    found = re.search(r"/(?:models|tunedModels)(?:/|%2[Ff])(.+)", before, re.DOTALL)
    model = _bare_model(_unescape(found[1])) if found is not None else _bare_model(named)
    if not model:
        raise WireError("expected the name of a model", path="path")
    return model, verb


def _bare_model(name: str) -> str:
    while name.startswith(("models/", "tunedModels/")):
        name = name.partition("/")[2]
    return name


def _unescape(text: str) -> str:
    if "%" not in text and text.isascii():
        return text
    data = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), text.encode("utf-8", "replace"))
    return data.decode("utf-8", "replace")


class _Parser:
    """Parses one request; knows the calls that results may answer."""

    __slots__ = ("_pairing", "deviations")

    def __init__(self) -> None:
        self.deviations: list[Deviation] = []
        self._pairing = CallIds(self.deviations)

    def _deviate(self, code: str, where: str, seen: str = "") -> None:
        self.deviations.append(Deviation(code, where, seen))

    # ------------------------------------------------------------ contents

    def system(self, value: Raw | None) -> list[Message]:
        """Parse `systemInstruction`: a content or, from some clients, a string or a list of parts."""
        fields = read_fields(value)
        name_unread(fields or {}, "systemInstruction", self.deviations, "role", "parts")
        parts = self._parts(
            camel_fields(fields).get("parts") if fields is not None else value, "systemInstruction", turn=0
        )
        return [Message("system", parts)] if parts else []

    def contents(self, value: Raw | None) -> list[Message]:
        """Parse the conversation."""
        if (text := read_string(value)) is not None:
            return [Message("user", (Text(text),))]
        plain = decode_short(_decode_contents, value or NOTHING)
        if not isinstance(plain, Malformed) and plain and _are_usual(plain):
            return self.plain_contents(plain)
        items = _items(value)
        if not items:
            raise WireError("expected at least one content", path="contents")
        return parse_paired(partial(self._each, self._content, items), self.deviations)

    def plain_contents(self, plain: list[PlainContent]) -> list[Message]:
        """Return the conversation, where each content is decoded."""
        return parse_paired(partial(self._each, self._plain_content, plain), self.deviations)

    def _each(self, parse: Callable[[_T, int], list[Message]], items: list[_T], pairing: CallIds) -> list[Message]:
        self._pairing = pairing
        messages: list[Message] = []
        for turn, item in enumerate(items):
            for message in parse(item, turn):
                last = messages[-1] if messages else None
                if last is not None and last.role == message.role == "assistant":
                    messages[-1] = self._join(last, message, f"contents[{turn}]")
                else:
                    messages.append(message)
        return messages

    def _join(self, one: Message, other: Message, where: str) -> Message:
        """Join neighbouring contents of the model: Google's client replays each chunk of a stream as a content."""
        parts = list(one.parts)
        for part in other.parts:
            last = parts[-1] if parts else None
            if _is_plain(last) and _is_plain(part):
                parts[-1] = Text(last.text + part.text)
            else:
                parts.append(part)
        native = one.native or other.native
        if one.native is not None and other.native is not None:
            fields, others = one.native.fields, other.native.fields
            again = {key: value for key, value in others.items() if fields.get(key, value) != value}
            name_unread(again, where, self.deviations)
            native = Native(NAME, {**others, **fields})
        return Message("assistant", tuple(parts), native)

    def _content(self, item: Raw, turn: int) -> list[Message]:
        plain = _decode_content(item)
        if not isinstance(plain, Malformed) and _are_usual([plain]):
            return self._plain_content(plain, turn)
        where = f"contents[{turn}]"
        fields = read_fields(item)
        if fields is None:
            raise WireError("expected a content object", path=where)
        fields = camel_fields(fields)
        parts = self._parts(fields.get("parts"), where, turn=turn)
        name = wanted_text(fields, "role", where)
        role = _ROLES.get(name.lower()) if name else None
        if role is None:
            if name:
                raise WireError(f"expected the role user or model, got {name[:40]!r}", path=f"{where}.role")
            role = "assistant" if any(isinstance(part, ToolCall) for part in parts) else "user"
        native = make_native(NAME, fields, "role", "parts")
        return _turned(role, parts, native)

    def _plain_content(self, content: PlainContent, turn: int) -> list[Message]:
        parts = [
            self._plain(part, turn, number)
            for number, part in enumerate(content.parts)
            if part.text != "" or _seal(part.thoughtSignature)
        ]
        return _turned("user" if content.role == "user" else "assistant", tuple(parts), None)

    def _plain(self, part: PlainPart, turn: int, number: int) -> Part:
        signature = _seal(part.thoughtSignature) if part.thoughtSignature else None
        call, result = part.functionCall, part.functionResponse
        if call is not None:
            id = self._pairing.add_call(call.id, call.name, turn=turn, number=number)
            where = f"contents[{turn}].parts[{number}].functionCall"
            return ToolCall(id, call.name, self._arguments(call.args, where), signature=signature)
        if result is not None:
            id, name = self._pairing.add_result(result.id, result.name)
            text, is_error, is_plain = _read_response(result.response)
            native = None if is_plain else make_native(NAME, {"response": result.response})
            return ToolResult(id, name, (Text(text),) if text else (), is_error, native)
        return Text(part.text or "", signature)

    def _parts(self, inner: Raw | None, where: str, *, turn: int) -> tuple[Part, ...]:
        if (text := read_string(inner)) is not None:
            return (Text(text),)
        items = read_items(inner)
        if items is None and inner is not None and read_fields(inner) is not None:
            items = [inner]
        if items is None and inner is not None:
            raise WireError("expected a list of parts", path=f"{where}.parts")
        parts = [
            self._part(item, f"{where}.parts[{number}]", (turn, number)) for number, item in enumerate(items or ())
        ]
        return _without_empty(parts)

    def _part(self, item: Raw, where: str, place: _Place) -> Part:
        fields = read_fields(item)
        if fields is None:
            if (text := read_string(item)) is not None:
                return Text(text)
            raise WireError("expected a part", path=where)
        fields = camel_fields(fields)
        refuse_other_kinds(fields, _PART_KINDS, f"{where}.")
        signature = _seal(read_text(fields.get("thoughtSignature")))
        if "functionCall" in fields:
            return self._call(fields, f"{where}.functionCall", place, signature)
        if "functionResponse" in fields:
            refuse_other_kinds(fields, {"functionResponse": "an object"}, f"{where}.")
            name_unread(fields, where, self.deviations, "functionResponse", "thoughtSignature")
            return self._result(fields["functionResponse"], f"{where}.functionResponse")
        if (text := read_string(fields.get("text"))) is not None:
            native = make_native(NAME, fields, "text", "thought", "thoughtSignature")
            if read(fields.get("thought")) is True:
                return Thinking(text, signature, native=native)
            return Text(text, signature, native)
        if read(fields.get("thought")) is not True and (media := self._media(fields, where)) is not None:
            return media
        if signature is not None and not fields.keys() - {"thought", "thoughtSignature"}:
            return Text("", signature)
        return Opaque(NAME, _json.raw(fields))

    def _media(self, fields: Fields, where: str) -> Media | None:
        media = read_media(fields)
        for key in ("inlineData", "fileData") if media is not None else ():
            inner = camel_fields(read_fields(fields.get(key)) or {})
            refuse_other_kinds(inner, {"mimeType": "a text"}, f"{where}.{key}.")
            name_unread(inner, f"{where}.{key}", self.deviations, "data", "mimeType", "fileUri")
        if media is None or media.data is None:
            return None if media is None else of_client(media, NAME)
        return msgspec.structs.replace(media, data=_usual_base64(media.data))

    def _call(self, part: Fields, where: str, place: _Place, signature: str | None) -> ToolCall:
        fields = camel_fields(read_fields(part["functionCall"]) or {})
        name = read_text(fields.get("name"))
        if not name:
            raise WireError("expected the name of a function", path=f"{where}.name")
        refuse_other_kinds(fields, {"id": "a text"}, f"{where}.")
        turn, number = place
        id = self._pairing.add_call(read_text(fields.get("id")), name, turn=turn, number=number)
        native = make_native(NAME, part, "functionCall", "thoughtSignature")
        further = make_native(NAME, fields, "id", "name", "args")
        if further is not None:
            own = native.fields if native is not None else {}
            native = Native(NAME, {**own, "functionCall": _json.raw(further.fields)})
        arguments = self._arguments(fields.get("args", NOTHING), where)
        return ToolCall(id, name, arguments, signature=signature, native=native)

    def _arguments(self, value: Raw, where: str) -> str:
        arguments = _json.raw_text(value)
        if arguments[:1] == '"':
            self._deviate("arguments-type", f"{where}.args", "a string")
            return read_text(value).strip() or "{}"
        return "{}" if arguments in ("", "null") else arguments

    def _result(self, value: Raw, where: str) -> ToolResult:
        fields = camel_fields(read_fields(value) or {})
        refuse_other_kinds(fields, {"parts": "a list", "id": "a text", "name": "a text"}, f"{where}.")
        id, name = self._pairing.add_result(read_text(fields.get("id")), read_text(fields.get("name")))
        parts: list[Text | Media | Opaque] = []
        text, is_error, is_plain = _read_response(fields.get("response"))
        if text:
            parts.append(Text(text))
        for item in read_items(fields.get("parts")) or ():
            inner = camel_fields(read_fields(item) or {})
            parts.append(self._media(inner, f"{where}.parts[{len(parts)}]") or Opaque(NAME, Raw(bytes(item))))
        modelled = ("id", "name", "parts", "response") if is_plain else ("id", "name", "parts")
        if not name:
            self._deviate("missing-name", where)
        return ToolResult(id, name, tuple(parts), is_error, make_native(NAME, fields, *modelled))


def _items(value: Raw | None) -> list[Raw]:
    """Return the contents; one may stand without a list around it."""
    items = read_items(value)
    if items is None and value is not None and read_fields(value) is not None:
        items = [value]
    if items is None:
        raise WireError("expected a list of contents", path="contents")
    return items


def _turned(role: Role, parts: tuple[Part, ...], native: Native | None) -> list[Message]:
    """Return the messages of one content: its results in one of their own."""
    if ToolResult not in map(type, parts):
        return [Message(role, parts, native)]
    results = tuple([part for part in parts if isinstance(part, ToolResult)])
    rest = tuple([part for part in parts if not isinstance(part, ToolResult)])
    return [Message("tool", results, native), *([Message(role, rest)] if rest else [])]


def _without_empty(parts: Iterable[Part]) -> tuple[Part, ...]:
    return tuple([part for part in parts if not (_is_plain(part) and not part.text)])


def _seal(signature: str) -> str | None:
    return None if signature in DUMMY_SIGNATURES else parse_seal(signature) or None


def _is_plain(part: Part | None) -> TypeGuard[Text]:
    return type(part) is Text and part.signature is None and part.native is None


def _read_response(value: Raw | None) -> tuple[str, bool, bool]:
    """Return a tool's answer: its text, whether it failed, and whether text under `result` or `error` is all of it."""
    response = read(value)
    if value is None or response == {}:
        return "", False, value is not None
    if not isinstance(response, dict):
        return response if isinstance(response, str) else _json.raw_text(value), False, False
    fields = read_fields(value) or {}
    is_error = bool(response.get("error"))
    if len(response) == 1:
        key, inner = next(iter(response.items()))
        if key in ("result", "output", "content", "error"):
            text = inner if isinstance(inner, str) else _json.raw_text(fields[key]) if key in fields else ""
            return text, is_error, isinstance(inner, str) and key in ("result", "error") and inner != ""
    return _json.raw_text(value), is_error, False


def _usual_base64(data: str) -> str:
    """Return base64 in the usual alphabet and padded: this API takes others, too (its JSON is ProtoJSON)."""
    if "-" in data or "_" in data:
        data = data.replace("-", "+").replace("_", "/")
    return data if len(data) % 4 == 0 or "=" in data or "\n" in data else data + "=" * (-len(data) % 4)
