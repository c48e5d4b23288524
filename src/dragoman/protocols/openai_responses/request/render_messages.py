"""Render messages as the items of a request's `input`."""

from __future__ import annotations

from typing import Any, Final

from dragoman._json import Json, Raw
from dragoman.codec.json_fields import as_object, native_fields, read
from dragoman.codec.parts.history_call_ids import shape_id
from dragoman.deviations import part_path
from dragoman.events import Deviation
from dragoman.protocol import Dialect
from dragoman.protocols.openai_responses.content import is_agents, is_content_part, render_media, render_text
from dragoman.protocols.openai_responses.wire import AGENT, CONTENT_TYPE, NAME
from dragoman.types import Media, Message, Opaque, Part, Role, Text, Thinking, ToolCall, ToolResult

#: Native fields of an assistant's text that belong to its item, not to the part.
_ITEM_FIELDS: Final = ("id", "status", "phase")
#: Characters of a call id.
_LONGEST_ID: Final = 64


class _Writer:
    """Renders messages as input items."""

    __slots__ = ("_custom", "_deviations", "_dialect", "_ids", "_open", "_stateless", "_used", "has_opaque", "items")

    def __init__(self, deviations: list[Deviation], dialect: Dialect, *, stateless: bool) -> None:
        self.items: list[dict[str, Json] | Raw] = []
        self.has_opaque = False  # a message has a part that only one protocol knows
        self._deviations = deviations
        self._dialect = dialect
        self._stateless = stateless
        self._custom: set[str] = set()
        self._ids: dict[str, str] = {}  # of the last call with an id: the one that was sent
        self._used: dict[str, int] = {}  # the ids that were sent: the last number that was appended to each
        self._open: tuple[str, dict[str, Raw]] | None = None  # the item that the next part may join

    def message(self, message: Message, place: int) -> None:
        self._open = None
        if message.role in ("assistant", "tool"):
            for index, part in enumerate(message.parts):
                if isinstance(part, Thinking) and not self._is_kept(message.parts[index:]):
                    self._drop((place, index), "thinking without its seal")
                else:
                    self._part(part, message.role, (place, index))
            return
        role: Json = message.role if message.role == "user" else self._dialect.system_role
        fields = native_fields(message.native, NAME)
        content: list[Json] = []
        for index, part in enumerate(message.parts):
            if (value := self._client_part(part, (place, index))) is not None:
                content.append(value)
        if message.native is None or not is_agents(message.native, AGENT):
            self.items.append({"type": "message", "role": role, **fields, "content": content or ""})
        elif self._dialect.supports_vendor_fields:
            self.items.append({"type": AGENT, **as_object(read(fields[AGENT])), "content": content})
        else:
            self._say("changed", (place,), f"only OpenAI knows {AGENT}: it is the user's")
            for index, part in enumerate(message.parts):
                if not isinstance(part, Text):
                    self._drop((place, index), "only OpenAI can read it")
            texts = [{"type": "input_text", "text": part.text} for part in message.parts if isinstance(part, Text)]
            if texts:
                self.items.append({"type": "message", "role": role, "content": texts})

    def _is_kept(self, parts: tuple[Part, ...]) -> bool:
        """Return whether the leading thinking may be sent: hosts refuse what they can neither check nor remember."""
        if self._dialect.replay_reasoning:
            return True
        for part in parts:
            if not isinstance(part, Thinking):
                return False
            if part.signature is not None or (native_fields(part.native, NAME) and not self._stateless):
                return True
        return False

    def _client_part(self, part: Part, at: tuple[int, ...]) -> Json:
        if isinstance(part, Text):
            if part.signature is not None:
                self._drop_seal(part, at)
            return render_text(part, output=False)
        if isinstance(part, Media):
            return self._media(part, at)
        if isinstance(part, Opaque):
            self.has_opaque = True
            return part.raw if part.protocol == NAME else None  # of another protocol: `crossing` names it
        self._drop(at, "no place for it in a client's message")
        return None

    def _part(self, part: Part, role: Role, at: tuple[int, ...]) -> None:
        if isinstance(part, Text) and role == "assistant":
            self._drop_seal(part, at)
            self._text(part)
        elif isinstance(part, ToolCall):
            self._open = None
            if part.signature is not None:
                self._drop_seal(part, at)
            self._call(part, at)
        elif isinstance(part, ToolResult):
            self._open = None
            self._result(part, at)
        elif isinstance(part, Thinking):
            self._thinking(part, at)
        elif isinstance(part, Opaque) and part.protocol == NAME:
            self.has_opaque = True
            if self._open is not None and self._open[0] == "message" and is_content_part(part):
                self._content().append(part.raw)
                return
            self._open = None
            is_inside = is_content_part(part)
            self.items.append({"type": "message", "role": role, "content": [part.raw]} if is_inside else part.raw)
        elif not isinstance(part, Opaque):
            self._open = None
            content = self._client_part(part, at)
            if content is not None:
                self._say("moved", at, "into a message of the user")
                self.items.append({"type": "message", "role": "user", "content": [content]})

    def _drop_seal(self, part: Text | ToolCall, at: tuple[int, ...]) -> None:
        if part.signature is not None:
            self._say("dropped", at, "only reasoning has a seal", field=".signature")

    def _content(self) -> list[Json]:
        item: Any = self.items[-1]
        content: list[Json] = item["content"]
        return content

    def _text(self, part: Text) -> None:
        own = native_fields(part.native, NAME)
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

    def _thinking(self, part: Thinking, at: tuple[int, ...]) -> None:
        fields = dict(native_fields(part.native, NAME))
        is_content = fields.pop("type", None) == CONTENT_TYPE
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
            self._say("dropped", at, "sealed thinking of another protocol", field=".redacted")

    def _id(self, id: str, at: tuple[int, ...], field: str) -> str:
        shaped = shape_id(id, _LONGEST_ID, plain=True)
        if shaped != id:
            self._say("changed", at, f"at most {_LONGEST_ID} letters, digits, _ and -", field=field)
        return shaped

    def _new_id(self, id: str, at: tuple[int, ...]) -> str:
        """Return the id, with a number appended if an earlier call has it: weak servers count anew in every turn."""
        sent, number = id, self._used.get(id, 0)
        while sent in self._used:
            number += 1
            sent = shape_id(f"{id}_{number}", _LONGEST_ID, plain=True)
        if sent != id:
            self._say("changed", at, "an earlier call has this id", field=".id")
            self._used[id] = number
        self._used[sent] = 1
        return sent

    def _call(self, call: ToolCall, at: tuple[int, ...]) -> None:
        fields = native_fields(call.native, NAME)
        id = self._ids[call.id] = self._new_id(self._id(call.id, at, ".id"), at)
        if call.kind == "custom":
            self._custom.add(call.id)
            self.items.append(
                {"type": "custom_tool_call", "name": call.name, **fields, "call_id": id, "input": call.arguments}
            )
        else:
            self._custom.discard(call.id)  # of an earlier turn
            self.items.append(
                {"type": "function_call", "name": call.name, **fields, "call_id": id, "arguments": call.arguments}
            )

    def _id_of(self, result: ToolResult, at: tuple[int, ...]) -> str:
        shaped = self._id(result.call_id, at, ".call_id")
        return self._ids.get(result.call_id, shaped)

    def _result(self, result: ToolResult, at: tuple[int, ...]) -> None:
        fields = dict(native_fields(result.native, NAME))
        parts: tuple[Text | Media | Opaque, ...] = result.parts
        if result.is_error:
            self._say("changed", at, "said in words before the text", field=".is_error")
            parts = _say_error(parts)
        kind = fields.pop("type", Raw(b'"function_call_output"'))
        value: dict[str, Json] = {"type": kind, **fields, "call_id": self._id_of(result, at)}
        if result.call_id in self._custom:
            value["type"] = "custom_tool_call_output"
        if not parts:
            value["output"] = ""
        elif len(parts) == 1 and isinstance(parts[0], Text) and parts[0].native is None:
            value["output"] = parts[0].text
        else:
            value["output"] = [
                content
                for index, part in enumerate(parts)
                if (content := self._client_part(part, (*at, index))) is not None
            ]
        self.items.append(value)

    def _media(self, part: Media, at: tuple[int, ...]) -> dict[str, Json] | None:
        if part.data is None and not self._dialect.supports_image_url and part.kind == "image":
            self._drop(at, "this host takes no image by address")
            return None
        rendered = render_media(part)
        if rendered is None:
            self._drop(at, f"no {part.kind} in this protocol")
        return rendered

    def _drop(self, at: tuple[int, ...], why: str) -> None:
        self._say("dropped", at, why)

    def _say(self, code: str, at: tuple[int, ...], why: str, *, field: str = "") -> None:
        """Note a deviation. `at`: the part, by the numbers of its message, of itself, of what is in it."""
        self._deviations.append(Deviation(code, part_path(at) + field, why))


def _say_error(parts: tuple[Text | Media | Opaque, ...]) -> tuple[Text | Media | Opaque, ...]:
    """Add a failure to a tool's text, because the protocol has no mark for it."""
    if parts and isinstance(parts[0], Text):
        return (Text(f"Error: {parts[0].text}"), *parts[1:])
    return (Text("Error: the tool failed"), *parts)


def render_items(
    messages: list[tuple[int, Message]], deviations: list[Deviation], dialect: Dialect, *, stateless: bool
) -> tuple[list[Json], bool]:
    """Return input items of messages, each with its place in the request, and whether one has an opaque part.

    `stateless`: the host stores none.
    """
    writer = _Writer(deviations, dialect, stateless=stateless)
    for place, message in messages:
        writer.message(message, place)
    return [*writer.items], writer.has_opaque
