"""The items of a request's `input` ↔ messages.

An answer is several items (reasoning, message, calls) and one message of ours; results that follow one another are
one message of role "tool". Item fields that we do not model (ids, `phase`, `status`) stand in the parts' `native`.
"""

from __future__ import annotations

from typing import Any, Final

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.contract import Dialect
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.pairing import shape_id
from dragoman.protocols.openai_responses.content import (
    is_content_part,
    parse_content,
    render_media,
    render_text,
)
from dragoman.protocols.openai_responses.wire import NAME, ItemKind, as_list, make_native, native_fields, text_of
from dragoman.types import Media, Message, Native, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult

_ROLES: Final[dict[str, Role]] = {
    "user": "user", "system": "system", "developer": "system", "assistant": "assistant", "tool": "tool",
}  # fmt: skip
_CONTENT_TYPE: Final = Raw(b'"reasoning_text"')
#: Native fields of an assistant's text that belong to its item, not to the part.
_ITEM_FIELDS: Final = ("id", "status", "phase")
#: Characters of a call id.
_LONGEST_ID: Final = 64
_split_list: Final = _json.typed_decoder(list[Raw])
_RESULT_TYPES: Final = ("function_call_output", "custom_tool_call_output")


class _Turns:
    """Gathers parts into messages."""

    __slots__ = ("_parts", "_role", "call_names", "messages")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.call_names: dict[str, str] = {}
        self._role: Role = "assistant"
        self._parts: list[Part] = []

    def add(self, role: Role, parts: tuple[Part, ...] | list[Part]) -> None:
        """Parts of the model's turn, or results: they join those before."""
        if role != self._role:
            self.flush()
            self._role = role
        self._parts += parts

    def message(self, message: Message) -> None:
        """A message of its own."""
        self.flush()
        self.messages.append(message)

    def flush(self) -> None:
        if self._parts:
            self.messages.append(Message(self._role, tuple(self._parts)))
            self._parts = []

    def next_call_id(self) -> str:
        """A made-up id, the same for the same conversation: `call_` and 24 letters or digits."""
        place = f"t{len(self.messages)}c{sum(isinstance(part, ToolCall) for part in self._parts)}"
        return f"call_{place:0<24}"


def parse_items(raw: Raw, deviations: list[Deviation]) -> list[Message]:
    """Messages of `input`: a list of items, one item, or text as the one message of the user.

    Raises:
        WireError: it is none of these, or an item is neither an object nor text.
    """
    value = _json.decode(raw)
    items = [value] if isinstance(value, str | dict) else value
    if not isinstance(items, list):
        problem = value.problem if isinstance(value, Malformed) else type(value).__name__
        raise WireError(f"expected text or a list of items, got {problem}", path="input")
    texts: list[Raw] = []  # of the items, once they are needed
    turns = _Turns()
    for index, item in enumerate(items):
        where = f"input[{index}]"
        if isinstance(item, str):
            turns.message(Message("user", (Text(item),)))
        elif not isinstance(item, dict):
            raise WireError(f"expected an item, got {type(item).__name__}", path=where)
        elif not _parse_item(item, turns, deviations, where):
            # built-in tools, references, compactions: only this protocol knows them
            texts = texts or ([raw] if items is not value else _split(raw, items))
            is_result = isinstance(item.get("type"), str) and item["type"].endswith("_output")
            turns.add("tool" if is_result else "assistant", [Opaque(NAME, Raw(bytes(texts[index])))])
    turns.flush()
    return turns.messages


def _split(raw: Raw, items: Json) -> list[Raw]:
    texts = _split_list(raw)
    return [_json.raw(item) for item in items] if isinstance(texts, Malformed) else texts


def _parse_item(item: dict[str, Json], turns: _Turns, deviations: list[Deviation], where: str) -> bool:
    """Whether the item is one that the other protocols have too."""
    kind = item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        _parse_message(item, turns, deviations, where)
    elif kind == "function_call" or kind == "custom_tool_call":
        turns.add("assistant", [_parse_call(item, turns, kind=kind, deviations=deviations, where=where)])
    elif kind in _RESULT_TYPES:
        turns.add("tool", [_parse_result(item, turns, deviations, where)])
    elif kind == "reasoning":
        turns.add("assistant", _parse_reasoning(item))
    else:
        return False
    return True


def _parse_message(item: dict[str, Json], turns: _Turns, deviations: list[Deviation], where: str) -> None:
    said = item.get("role")
    role = _ROLES.get(said) if isinstance(said, str) else None
    if role is None:
        deviations.append(Deviation("wrong-type", f"{where}.role", str(said)[:60]))
        role = "user"
    parts = parse_content(item.get("content"), deviations, f"{where}.content")
    if role == "tool":  # Chat's form of a result
        call_id = text_of(item.get("tool_call_id") or item.get("call_id"))
        turns.add("tool", [ToolResult(call_id, turns.call_names.get(call_id, ""), parts)])
        return
    fields = {
        name: _json.raw(inner)
        for name, inner in item.items()
        if name not in ("type", "role", "content") and inner is not None
    }
    if role == "assistant":
        turns.add("assistant", [_with_fields(part, fields) for part in parts])
        return
    if said == "developer":
        fields["role"] = Raw(b'"developer"')
    turns.message(Message(role, parts, make_native(fields)))


def _with_fields(part: Text | Media | Opaque, fields: dict[str, Raw]) -> Part:
    if not isinstance(part, Text) or not fields:
        return part
    own = part.native.fields if part.native is not None else {}
    return Text(part.text, part.signature, Native(NAME, fields | own))


def _parse_call(
    item: dict[str, Json], turns: _Turns, *, kind: ItemKind, deviations: list[Deviation], where: str
) -> ToolCall:
    call_id = item.get("call_id") or item.get("id")
    if not isinstance(call_id, str):
        deviations.append(Deviation("missing-id", f"{where}.call_id"))
        call_id = turns.next_call_id()
    name = text_of(item.get("name"))
    arguments = item.get("input") if kind == "custom_tool_call" else item.get("arguments")
    if not isinstance(arguments, str):
        if arguments is not None:
            deviations.append(Deviation("arguments-type", f"{where}.arguments", type(arguments).__name__))
        arguments = "" if arguments is None else _json.to_text(arguments)
    if kind == "function_call" and not arguments.strip():
        deviations.append(Deviation("missing-arguments", f"{where}.arguments"))
        arguments = "{}"
    turns.call_names[call_id] = name
    fields = native_fields(item)
    if item.get("status") not in (None, "completed"):
        fields["status"] = _json.raw(item["status"])
    return ToolCall(
        call_id, name, arguments, "custom" if kind == "custom_tool_call" else "function", native=make_native(fields)
    )


def _parse_result(item: dict[str, Json], turns: _Turns, deviations: list[Deviation], where: str) -> ToolResult:
    call_id = text_of(item.get("call_id"))
    fields = {
        name: _json.raw(inner)
        for name, inner in item.items()
        if name not in ("type", "call_id", "output") and inner is not None
    }
    if item["type"] == "custom_tool_call_output" and call_id not in turns.call_names:
        fields["type"] = _json.raw(item["type"])
    parts = parse_content(item.get("output"), deviations, f"{where}.output")
    return ToolResult(call_id, turns.call_names.get(call_id, ""), parts, native=make_native(fields))


def _parse_reasoning(item: dict[str, Json]) -> list[Part]:
    """A part for each summary and each content text; the last one has the seal."""
    fields = native_fields(item)
    texts = [(text_of(entry), fields) for entry in as_list(item.get("summary"))]
    texts += [(text_of(entry), {**fields, "type": _CONTENT_TYPE}) for entry in as_list(item.get("content"))]
    texts = texts or [("", fields)]
    seal = item.get("encrypted_content")
    parts: list[Part] = [Thinking(text, native=make_native(own)) for text, own in texts[:-1]]
    last, own = texts[-1]
    return [*parts, Thinking(last, seal if isinstance(seal, str) else None, native=make_native(own))]


# ---------------------------------------------------------------- rendering


class _Writer:
    """Renders messages as input items."""

    __slots__ = ("_custom", "_deviations", "_dialect", "_open", "_stateless", "items")

    def __init__(self, deviations: list[Deviation], dialect: Dialect, *, stateless: bool) -> None:
        self.items: list[dict[str, Json] | Raw] = []
        self._deviations = deviations
        self._dialect = dialect
        self._stateless = stateless
        self._custom: set[str] = set()
        self._open: tuple[str, dict[str, Raw]] | None = None  # the item that the next part may join

    def message(self, message: Message, where: str) -> None:
        self._open = None
        if message.role in ("assistant", "tool"):
            for index, part in enumerate(message.parts):
                place = f"{where}.parts[{index}]"
                if isinstance(part, Thinking) and not self._is_kept(message.parts[index:]):
                    self._drop(place, "thinking without its seal")
                else:
                    self._part(part, message.role, place)
            return
        role: Json = message.role if message.role == "user" else self._dialect.system_role
        fields = dict(_own(message.native))
        content = [
            value
            for index, part in enumerate(message.parts)
            if (value := self._client_part(part, f"{where}.parts[{index}]")) is not None
        ]
        self.items.append({"type": "message", "role": role, **fields, "content": content})

    def _is_kept(self, parts: tuple[Part, ...]) -> bool:
        """Whether the thinking that comes first may be sent: hosts refuse what they can neither check nor remember."""
        if self._dialect.replay_reasoning:
            return True
        for part in parts:
            if not isinstance(part, Thinking):
                return False
            if part.signature is not None or (_own(part.native) and not self._stateless):
                return True
        return False

    def _client_part(self, part: Part, where: str) -> Json:
        match part:
            case Text():
                return render_text(part, output=False)
            case Media():
                return self._media(part, where)
            case Opaque(protocol, raw) if protocol == NAME:
                return raw
        self._drop(where, "no place for it in a client's message")
        return None

    def _part(self, part: Part, role: Role, where: str) -> None:
        match part:
            case Text() if role == "assistant":
                self._text(part)
            case Thinking():
                self._thinking(part, where)
            case ToolCall():
                self._open = None
                self._call(part, where)
            case ToolResult():
                self._open = None
                self._result(part, where)
            case Opaque(protocol, raw) if protocol == NAME:
                if self._open is not None and self._open[0] == "message" and is_content_part(part):
                    self._content().append(raw)
                    return
                self._open = None
                self.items.append({"type": "message", "role": role, "content": [raw]} if is_content_part(part) else raw)
            case Text() | Media():
                self._open = None
                content = self._client_part(part, where)
                if content is not None:
                    self._deviations.append(Deviation("moved", where, "into a message of the user"))
                    self.items.append({"type": "message", "role": "user", "content": [content]})
            case _:
                self._drop(where, "a part of another protocol")

    def _content(self) -> list[Json]:
        item: Any = self.items[-1]
        content: list[Json] = item["content"]
        return content

    def _text(self, part: Text) -> None:
        own = _own(part.native)
        if not own:  # another provider's words: an item of the list form must have an id of this provider's store
            self._open = None
            self.items.append({"type": "message", "role": "assistant", "content": part.text})
            return
        fields = {name: raw for name, raw in own.items() if name in _ITEM_FIELDS}
        value = render_text(part, output=True, item_fields=_ITEM_FIELDS)
        if self._open == ("message", fields):
            self._content().append(value)
            return
        self.items.append({"type": "message", "role": "assistant", **fields, "content": [value]})
        self._open = ("message", fields)

    def _thinking(self, part: Thinking, where: str) -> None:
        fields = dict(_own(part.native))
        is_content = fields.pop("type", None) == _CONTENT_TYPE
        if self._open != ("reasoning", fields):
            self.items.append({"type": "reasoning", **fields, "summary": []})
            self._open = ("reasoning", fields)
        item: Any = self.items[-1]
        if is_content or (not fields and part.signature is None):
            item.setdefault("content", []).append({"type": "reasoning_text", "text": part.text})
        elif part.text:
            item["summary"].append({"type": "summary_text", "text": part.text})
        if part.signature is not None:
            item["encrypted_content"] = part.signature
            self._open = None
        if part.redacted is not None:
            self._drop(f"{where}.redacted", "sealed thinking of another protocol")

    def _id(self, id: str, where: str) -> str:
        shaped = shape_id(id, _LONGEST_ID, plain=True)
        if shaped != id:
            self._deviations.append(Deviation("changed", where, f"at most {_LONGEST_ID} letters, digits, _ and -"))
        return shaped

    def _call(self, call: ToolCall, where: str) -> None:
        fields = dict(_own(call.native))
        id = self._id(call.id, f"{where}.id")
        if call.kind == "custom":
            self._custom.add(call.id)
            self.items.append(
                {"type": "custom_tool_call", **fields, "call_id": id, "name": call.name, "input": call.arguments}
            )
        else:
            value = {"type": "function_call", **fields, "call_id": id, "name": call.name}
            self.items.append({**value, "arguments": call.arguments})

    def _result(self, result: ToolResult, where: str) -> None:
        fields = dict(_own(result.native))
        parts: tuple[Text | Media | Opaque, ...] = result.parts
        if result.is_error:
            self._deviations.append(Deviation("changed", f"{where}.is_error", "said in words before the text"))
            parts = _say_error(parts)
        kind = fields.pop("type", Raw(b'"function_call_output"'))
        value: dict[str, Json] = {"type": kind, **fields, "call_id": self._id(result.call_id, f"{where}.call_id")}
        if result.call_id in self._custom:
            value["type"] = "custom_tool_call_output"
        if all(isinstance(part, Text) and part.native is None for part in parts) and len(parts) < 2:
            value["output"] = "".join(part.text for part in parts if isinstance(part, Text))
        else:
            value["output"] = [
                content
                for index, part in enumerate(parts)
                if (content := self._client_part(part, f"{where}.parts[{index}]")) is not None
            ]
        self.items.append(value)

    def _media(self, part: Media, where: str) -> dict[str, Json] | None:
        if part.data is None and not self._dialect.supports_image_url and part.kind == "image":
            self._drop(where, "this host takes no image by address")
            return None
        return render_media(part, self._deviations, where)

    def _drop(self, where: str, why: str) -> None:
        self._deviations.append(Deviation("dropped", where, why))


def _own(native: Native | None) -> dict[str, Raw]:
    return native.fields if native is not None and native.protocol == NAME else {}


def _say_error(parts: tuple[Text | Media | Opaque, ...]) -> tuple[Text | Media | Opaque, ...]:
    """The protocol has no mark for a failed tool, so its text says it."""
    if parts and isinstance(parts[0], Text):
        return (Text(f"Error: {parts[0].text}"), *parts[1:])
    return (Text("Error: the tool failed"), *parts)


def render_items(
    messages: list[tuple[str, Message]], deviations: list[Deviation], dialect: Dialect, *, stateless: bool
) -> list[Json]:
    """Input items of messages, each with its path in the request. `stateless`: the host keeps no earlier items."""
    writer = _Writer(deviations, dialect, stateless=stateless)
    for where, message in messages:
        writer.message(message, where)
    return [*writer.items]
