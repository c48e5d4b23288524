"""Parse the items of a request's `input` into messages.

An answer is several items (reasoning, message, calls) and one message of ours; consecutive results are one message of
role "tool". Unmodelled item fields (ids, `phase`, `status`) stand in the parts' `native`.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.json_fields import decode_short
from dragoman.codec.unread import name_unread, refuse_no_text
from dragoman.errors import WireError
from dragoman.events import Deviation
from dragoman.protocols.openai_responses.content import parse_content
from dragoman.protocols.openai_responses.request.namespaces import known_name, place
from dragoman.protocols.openai_responses.wire import (
    AGENT,
    CONTENT_TYPE,
    NAME,
    ItemKind,
    as_list,
    make_native,
    native_fields,
    text_of,
)
from dragoman.types import Media, Message, Native, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult

_ROLES: Final[dict[str, Role]] = {
    "user": "user", "system": "system", "developer": "system", "assistant": "assistant", "tool": "tool",
}  # fmt: skip
_split_list: Final = _json.typed_decoder(list[Raw])
_RESULT_TYPES: Final = ("function_call_output", "custom_tool_call_output")
_DEVELOPER: Final = Native(NAME, {"role": Raw(b'"developer"')})


class _PlainPart(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["input_text", "output_text"]
    text: str
    annotations: Annotated[list[Any], msgspec.Meta(max_length=0)] = []


class _PlainItem(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An item with nothing unusual in it, which is decoded at once; with any other, all are read field by field."""

    type: Literal["message", "function_call", "function_call_output"] = "message"
    role: Literal["user", "assistant", "system", "developer"] | None = None
    content: str | list[_PlainPart] | None = None
    call_id: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    name: str | None = None
    arguments: Annotated[str, msgspec.Meta(pattern=r"\S")] | None = None
    output: str | None = None

    def is_usual(self) -> bool:
        """Return whether it has what belongs to its type, and nothing else."""
        is_call = self.name is not None and self.arguments is not None and self.output is None
        if self.type == "message":
            return self.role is not None and self.call_id is self.name is self.arguments is self.output is None
        if self.role is not None or self.content is not None or self.call_id is None:
            return False
        return is_call if self.type == "function_call" else self.name is self.arguments is None


_decode_plain: Final = _json.typed_decoder(list[_PlainItem])


class _Turns:
    """Gathers parts into messages."""

    __slots__ = ("_parts", "_role", "call_names", "messages", "offered")

    def __init__(self, offered: frozenset[str]) -> None:
        self.offered = offered
        self.messages: list[Message] = []
        self.call_names: dict[str, str] = {}
        self._role: Role = "assistant"
        self._parts: list[Part] = []

    def add(self, role: Role, parts: tuple[Part, ...] | list[Part]) -> None:
        """Add parts of the model's turn, or results: they join those before."""
        if role != self._role:
            self.flush()
            self._role = role
        self._parts += parts

    def message(self, message: Message) -> None:
        """Add a separate message."""
        self.flush()
        self.messages.append(message)

    def flush(self) -> None:
        if self._parts:
            self.messages.append(Message(self._role, tuple(self._parts)))
            self._parts = []

    def next_call_id(self) -> str:
        """Return a generated id, the same for the same conversation: `call_` and 24 letters or digits."""
        place = f"t{len(self.messages)}c{sum(isinstance(part, ToolCall) for part in self._parts)}"
        return f"call_{place:0<24}"


def parse_items(raw: Raw, deviations: list[Deviation], offered: frozenset[str] = frozenset()) -> list[Message]:
    """Return messages of `input`: a list of items, one item, or text as the only message of the user.

    `offered`: the tools' names.

    Raises:
        WireError: it is neither of these, or an item is neither an object nor text.
    """
    plain = decode_short(_decode_plain, raw)
    if not isinstance(plain, Malformed) and all(map(_PlainItem.is_usual, plain)):
        return _plain_messages(plain)
    value = _json.decode(raw)
    items = [value] if isinstance(value, str | dict) else value
    if not isinstance(items, list):
        problem = value.problem if isinstance(value, Malformed) else type(value).__name__
        raise WireError(f"expected text or a list of items, got {problem}", path="input")
    texts: list[Raw] = []  # of the items, once they are needed
    turns = _Turns(offered)
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


def _plain_messages(items: list[_PlainItem]) -> list[Message]:
    turns = _Turns(frozenset())
    for item in items:
        id = item.call_id or ""
        if item.type == "function_call":
            name = turns.call_names[id] = item.name or ""
            turns.add("assistant", (ToolCall(id, name, item.arguments or ""),))
            continue
        said = item.output if item.content is None else item.content
        texts: tuple[Text, ...] = ()
        if said:
            texts = (Text(said),) if isinstance(said, str) else tuple([Text(part.text) for part in said])
        if item.type == "function_call_output":
            turns.add("tool", (ToolResult(id, turns.call_names.get(id, ""), texts),))
        elif item.role == "assistant":
            turns.add("assistant", texts)
        else:
            native = _DEVELOPER if item.role == "developer" else None
            turns.message(Message("user" if item.role == "user" else "system", texts, native))
    turns.flush()
    return turns.messages


def _split(raw: Raw, items: Json) -> list[Raw]:
    texts = _split_list(raw)
    return [_json.raw(item) for item in items] if isinstance(texts, Malformed) else texts


def _parse_item(item: dict[str, Json], turns: _Turns, deviations: list[Deviation], where: str) -> bool:
    """Parse an item. Return whether the other protocols have its kind too."""
    kind = item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        _parse_message(item, turns, deviations, where)
    elif kind == "function_call" or kind == "custom_tool_call":
        turns.add("assistant", [_parse_call(item, turns, kind=kind, deviations=deviations, where=where)])
    elif kind in _RESULT_TYPES:
        turns.add("tool", [_parse_result(item, turns, deviations, where)])
    elif kind == AGENT:
        rest = {name: inner for name, inner in item.items() if name not in ("type", "content") and inner is not None}
        parts = parse_content(item.get("content"), deviations, f"{where}.content")
        if Opaque in map(type, parts):  # without what is sealed, the words before it say nothing
            parts = tuple([Opaque(NAME, _json.raw(entry)) for entry in as_list(item["content"])])
        turns.message(Message("user", parts, make_native({AGENT: _json.raw(rest)})))
    elif kind == "reasoning":
        turns.add("assistant", _parse_reasoning(item, deviations, where))
    else:
        return False
    return True


def _parse_message(item: dict[str, Json], turns: _Turns, deviations: list[Deviation], where: str) -> None:
    said = item.get("role")
    role = _ROLES.get(said) if isinstance(said, str) else None
    if role is None:
        deviations.append(Deviation("wrong-type", f"{where}.role", str(said)[:60]))
        role = "user"
    parts = parse_content(item.get("content"), deviations, f"{where}.content", is_result=role == "tool")
    if role == "tool":  # Chat's form of a result
        refuse_no_text(item.get("tool_call_id"), f"{where}.tool_call_id")
        name_unread(item, where, deviations, "type", "role", "content", "tool_call_id", "call_id")
        call_id = text_of(item.get("tool_call_id") or item.get("call_id"))
        turns.add("tool", [ToolResult(call_id, turns.call_names.get(call_id, ""), parts)])
        return
    fields = {
        name: _json.raw(inner)
        for name, inner in item.items()
        if name not in ("type", "role", "content") and inner is not None
    }
    if role == "assistant":
        if not parts:  # of an empty message nothing is left that could hold them
            name_unread(fields, where, deviations)
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
    refuse_no_text(item.get("call_id"), f"{where}.call_id")
    call_id = item.get("call_id") or item.get("id")
    if not isinstance(call_id, str):
        deviations.append(Deviation("missing-id", f"{where}.call_id"))
        call_id = turns.next_call_id()
    refuse_no_text(item.get("name"), f"{where}.name")
    name = text_of(item.get("name"))
    arguments = item.get("input") if kind == "custom_tool_call" else item.get("arguments")
    if not isinstance(arguments, str):
        if arguments is not None:
            deviations.append(Deviation("arguments-type", f"{where}.arguments", type(arguments).__name__))
        arguments = "" if arguments is None else _json.to_text(arguments)
    if kind == "function_call" and not arguments.strip():
        deviations.append(Deviation("missing-arguments", f"{where}.arguments"))
        arguments = "{}"
    fields = native_fields(item)
    if item.get("namespace"):
        fields |= place(fields["namespace"], name)
        name = known_name(text_of(item["namespace"]), name, turns.offered)
    turns.call_names[call_id] = name
    if item.get("status") not in (None, "completed"):
        fields["status"] = _json.raw(item["status"])
    return ToolCall(
        call_id, name, arguments, "custom" if kind == "custom_tool_call" else "function", native=make_native(fields)
    )


def _parse_result(item: dict[str, Json], turns: _Turns, deviations: list[Deviation], where: str) -> ToolResult:
    refuse_no_text(item.get("call_id"), f"{where}.call_id")
    call_id = text_of(item.get("call_id"))
    fields = {
        name: _json.raw(inner)
        for name, inner in item.items()
        if name not in ("type", "call_id", "output") and inner is not None
    }
    if item["type"] == "custom_tool_call_output" and call_id not in turns.call_names:
        fields["type"] = _json.raw(item["type"])
    parts = parse_content(item.get("output"), deviations, f"{where}.output", is_result=True)
    return ToolResult(call_id, turns.call_names.get(call_id, ""), parts, native=make_native(fields))


def _parse_reasoning(item: dict[str, Json], deviations: list[Deviation], where: str) -> list[Part]:
    """Return a part for each summary and each content text; the last one has the signature.

    Raises:
        WireError: one of them is of another kind.
    """
    refuse_no_text(item.get("encrypted_content"), f"{where}.encrypted_content")
    for key in ("summary", "content"):
        for number, entry in enumerate(as_list(item.get(key))):
            at = f"{where}.{key}[{number}]"
            if isinstance(entry, dict) and "text" in entry:
                refuse_no_text(entry["text"], f"{at}.text")
                name_unread(entry, at, deviations, "type", "text")
            elif not isinstance(entry, dict) or entry.keys() - {"type"}:
                refuse_no_text(entry, at)
    fields = native_fields(item)
    if item.get("status") not in (None, "completed"):
        fields["status"] = _json.raw(item["status"])
    texts = [(text_of(entry), fields) for entry in as_list(item.get("summary"))]
    texts += [(text_of(entry), {**fields, "type": CONTENT_TYPE}) for entry in as_list(item.get("content"))]
    texts = texts or [("", fields)]
    seal = item.get("encrypted_content")
    parts: list[Part] = [Thinking(text, native=make_native(own)) for text, own in texts[:-1]]
    last, own = texts[-1]
    return [*parts, Thinking(last, seal if isinstance(seal, str) else None, native=make_native(own))]
