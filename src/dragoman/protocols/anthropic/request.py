"""A client's request to the Messages API → `Request`.

What is not modelled stays in `native` records, so that a request to the same protocol says it again: unknown fields
of the request, of messages, blocks and tools, server tools (`tools` of the request's record), and `thinking` and
`output_config` where they say more than `Params.reasoning`.
"""

from __future__ import annotations

import base64
import math
import re
from typing import Final, get_args

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.contract import Parsed
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.pairing import Pairing
from dragoman.protocols.anthropic.wire import (
    EMPTY_SCHEMA,
    NAME,
    decode_fields,
    keep,
    loosen_fields,
    read,
    read_fields,
    read_items,
    read_text,
    rest_of,
    thinking_of,
)
from dragoman.types import (
    Effort,
    Media,
    Message,
    Named,
    Native,
    Opaque,
    Params,
    Part,
    Reasoning,
    Request,
    ResponseSchema,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

_MODELLED: Final = (
    "model", "messages", "system", "max_tokens", "tools", "tool_choice", "stream", "temperature", "top_p", "top_k",
    "stop_sequences", "thinking", "output_config", "output_format",
)  # fmt: skip
_EFFORTS: Final[tuple[str, ...]] = get_args(Effort)
#: claude-code names its session inside `metadata.user_id`, as `…_session_<uuid>` or as JSON.
_SESSION: Final = re.compile(r'session(?:_id"?\s*:\s*"|_)([0-9A-Za-z-]{8,64})')


def parse_request(body: bytes, *, path: str = "") -> Parsed:
    """Read a client's request.

    Raises:
        WireError: the body is not this protocol.
    """
    return _Parser().parse(body)


class _Parser:
    """Reads one request. `turn`: the message that is read, by its place; `calls`: how many calls it has so far."""

    __slots__ = ("calls", "deviations", "pairing", "turn")

    def __init__(self) -> None:
        self.deviations: list[Deviation] = []
        self.pairing = Pairing()
        self.turn = 0
        self.calls = 0

    def parse(self, body: bytes) -> Parsed:
        fields = _read_body(body)
        model = read(fields.get("model"))
        if not isinstance(model, str) or not model:
            raise WireError("expected the name of a model", path="model")
        items = read_items(fields.get("messages"))
        if items is None:
            raise WireError("expected a list of messages", path="messages")
        messages = self._system(fields.get("system"))
        for self.turn, item in enumerate(items):
            self.calls = 0
            messages += self._message(item, f"messages[{self.turn}]")
        native = dict(rest.fields) if (rest := rest_of(fields, *_MODELLED)) else {}
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
        return Parsed(request, deviations=tuple(self.deviations))

    def deviate(self, code: str, where: str, seen: str = "") -> None:
        self.deviations.append(Deviation(code, where, seen))

    # ------------------------------------------------------------ messages

    def _system(self, value: Raw | None) -> list[Message]:
        parts = self._parts(value, "system")
        return [Message("system", parts)] if parts else []

    def _message(self, item: Raw, where: str) -> list[Message]:
        """One message of the wire; results in a user message become messages of their own."""
        fields = read_fields(item)
        if fields is None:
            raise WireError("expected a message object", path=where)
        role = read_text(fields.get("role"))
        if role == "developer":
            role = "system"
        parts = self._parts(fields.get("content"), f"{where}.content")
        native = rest_of(fields, "role", "content")
        if role == "assistant":
            return [Message("assistant", parts, native)]
        if role == "system":
            return [Message("system", parts, native)]
        if role != "user":
            raise WireError(f"expected the role user, assistant or system, got {role[:40]!r}", path=f"{where}.role")
        return _split(parts, native)

    def _parts(self, value: Raw | None, where: str) -> tuple[Part, ...]:
        items = read_items(value)
        if items is None:
            text = read(value)
            if text is not None and not isinstance(text, str):
                raise WireError("expected a string or a list of blocks", path=where)
            return (Text(text),) if text else ()
        return tuple(self._part(item, f"{where}[{index}]") for index, item in enumerate(items))

    def _part(self, item: Raw, where: str) -> Part:
        fields = read_fields(item)
        if fields is None:
            text = read(item)
            if not isinstance(text, str):
                raise WireError("expected a block", path=where)
            self.deviate("wrong-type", where, "a string")
            return Text(text)
        kind = read_text(fields.get("type"))
        if not kind and "text" in fields:
            self.deviate("missing-type", where)
            kind = "text"
        if kind == "text":
            return Text(read_text(fields.get("text")), native=rest_of(fields, "type", "text"))
        if kind == "tool_use":
            return self._call(fields, where)
        if kind == "tool_result":
            return self._result(fields, where)
        if kind == "thinking":
            native = rest_of(fields, "type", "thinking", "signature")
            return Thinking(
                read_text(fields.get("thinking")), read_text(fields.get("signature")) or None, native=native
            )
        if kind == "redacted_thinking":
            return Thinking("", redacted=read_text(fields.get("data")), native=rest_of(fields, "type", "data"))
        media = _media(kind, fields)
        return media if media is not None else Opaque(NAME, keep(item))

    def _call(self, fields: dict[str, Raw], where: str) -> ToolCall:
        id, name = read_text(fields.get("id")), read_text(fields.get("name"))
        if not name:
            raise WireError("expected the name of a tool", path=f"{where}.name")
        if not id:
            self.deviate("missing-id", where)
        id = self.pairing.add_call(id, name, turn=self.turn, number=self.calls)
        self.calls += 1
        value = fields.get("input")
        text = _json.raw_text(value) if value is not None else "null"
        if text[:1] == '"':
            self.deviate("arguments-type", f"{where}.input", "a string")
            text = read_text(value)
        if text.strip() in ("", "null"):
            self.deviate("missing-arguments", f"{where}.input")
            text = "{}"
        return ToolCall(id, name, text, native=rest_of(fields, "type", "id", "name", "input"))

    def _result(self, fields: dict[str, Raw], where: str) -> ToolResult:
        id = read_text(fields.get("tool_use_id"))
        if not id:
            self.deviate("missing-id", where)
        id, name = self.pairing.add_result(id, "")
        parts = self._parts(fields.get("content"), f"{where}.content")
        return ToolResult(
            id,
            name,
            tuple(part for part in parts if isinstance(part, Text | Media | Opaque)),
            read(fields.get("is_error")) is True,
            rest_of(fields, "type", "tool_use_id", "content", "is_error"),
        )

    # ------------------------------------------------------------ tools

    def _tools(self, value: Raw | None) -> tuple[tuple[Tool, ...], list[Raw]]:
        """The client's tools, and those that the server runs or knows by type."""
        tools: list[Tool] = []
        server_tools: list[Raw] = []
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
            schema = fields.get("input_schema")
            if schema is None:
                self.deviate("missing-field", f"tools[{index}].input_schema")
            elif read(schema) in (None, EMPTY_SCHEMA):
                schema = None
            native = rest_of(fields, "name", "description", "input_schema")
            tools.append(
                Tool(name, read_text(fields.get("description")), keep(schema) if schema else None, native=native)
            )
        return tuple(tools), server_tools

    def _tool_choice(self, value: Json) -> tuple[ToolChoice, bool | None]:
        """The choice, and whether calls may be parallel."""
        if isinstance(value, str):
            self.deviate("wrong-type", "tool_choice", "a string")
            value = {"type": value}
        if not isinstance(value, dict):
            return "auto", None
        disabled = value.get("disable_parallel_tool_use")
        parallel = not disabled if isinstance(disabled, bool) else None
        kind, name = value.get("type"), value.get("name")
        if kind == "tool" and isinstance(name, str):
            return Named(name), parallel
        if kind in ("any", "required", "tool"):
            return "any", parallel
        return ("none" if kind == "none" else "auto"), parallel

    # ------------------------------------------------------------ params

    def _params(self, fields: dict[str, Raw], native: dict[str, Raw], parallel: bool | None) -> Params:
        stop = read(fields.get("stop_sequences"))
        if isinstance(stop, str):
            stop = [stop]
        max_tokens = self._number(fields, "max_tokens")
        if max_tokens is None:
            self.deviate("missing-field", "max_tokens")
        top_k = self._number(fields, "top_k")
        config = read_fields(fields.get("output_config")) or {}
        return Params(
            max_tokens=None if max_tokens is None else int(max_tokens),
            temperature=self._number(fields, "temperature"),
            top_p=self._number(fields, "top_p"),
            top_k=None if top_k is None else int(top_k),
            stop=tuple(word for word in stop if isinstance(word, str)) if isinstance(stop, list) else (),
            reasoning=self._reasoning(fields.get("thinking"), config, native),
            response_schema=self._schema(config, fields.get("output_format")),
            parallel_tools=parallel,
        )

    def _number(self, fields: dict[str, Raw], key: str) -> float | None:
        value = read(fields.get(key))
        if isinstance(value, str):
            self.deviate("wrong-type", key, "a string")
            try:
                value = float(value)
            except ValueError:
                return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return value

    def _reasoning(self, value: Raw | None, config: dict[str, Raw], native: dict[str, Raw]) -> Reasoning | None:
        """`thinking` and `output_config.effort`; what they say beyond it goes to `native`."""
        thinking, effort = read(value), read_text(config.get("effort"))
        rest = {key: inner for key, inner in config.items() if key not in ("effort", "format")}
        reasoning = read_reasoning(thinking, effort)
        if effort and (reasoning is None or reasoning.effort != effort):
            rest["effort"] = config["effort"]
        if rest:
            native["output_config"] = _json.raw(rest)
        if thinking != thinking_of(reasoning):
            native["thinking"] = keep(value) if value is not None else _json.raw(None)
        return reasoning

    def _schema(self, config: dict[str, Raw], older: Raw | None) -> ResponseSchema | None:
        form = read_fields(config.get("format")) or read_fields(older)
        if form is None or "schema" not in form:
            return None
        return ResponseSchema(keep(form["schema"]))


def read_reasoning(thinking: Json, effort: str) -> Reasoning | None:
    """What `thinking` (decoded) and an effort come to."""
    known: Effort | None = effort if effort in _EFFORTS else None  # type: ignore[assignment]
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
        raise WireError(f"expected a JSON object, got {fields.problem}")
    try:
        return loosen_fields(found)
    except RecursionError:
        raise WireError("expected a JSON object, got one that is nested too deeply") from None


def _split(parts: tuple[Part, ...], native: Native | None) -> list[Message]:
    """A user message as our messages: each result in one of its own, in the order of the wire."""
    messages: list[Message] = []
    run: list[Part] = []
    for part in parts:
        if type(part) is not ToolResult:
            run.append(part)
            continue
        if run:
            messages.append(Message("user", tuple(run)))
            run = []
        messages.append(Message("tool", (part,)))
    if run or not messages:
        messages.append(Message("user", tuple(run), native))
    return messages


def _media(kind: str, fields: dict[str, Raw]) -> Media | None:
    """An image or document block; None for other blocks and for sources that only this protocol knows."""
    source = read(fields.get("source"))
    if kind not in ("image", "document") or not isinstance(source, dict):
        return None
    native = rest_of(fields, "type", "source")
    told = source.get("media_type")
    mime = told if isinstance(told, str) else None
    media: Final = "image" if kind == "image" else "document"
    data = source.get("data")
    if source.get("type") == "base64" and isinstance(data, str):
        return Media(media, mime, data, native=native)
    if source.get("type") == "text" and isinstance(data, str):
        return Media(media, "text/plain", base64.b64encode(data.encode("utf-8", "replace")).decode(), native=native)
    url = source.get("url") if source.get("type") == "url" else source.get("file_id")
    return Media(media, mime, url=url, native=native) if isinstance(url, str) else None
