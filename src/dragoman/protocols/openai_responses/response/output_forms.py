"""The forms of output items and their parts for the encoder: names of events, fields, whole objects."""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.codec.counterparts import is_refusal
from dragoman.events import TextStart, ThinkingStart, ToolCallStart
from dragoman.gathered import GatheredText
from dragoman.protocols.openai_responses.wire import CONTENT_TYPE, NAME, ItemKind
from dragoman.types import Native, ToolCall

#: Native fields of a text or thinking part that belong to its item.
_PART_FIELDS: Final = frozenset({"type", "annotations", "logprobs"})
_IMAGE_FORMS: Final = frozenset({"png", "webp", "jpeg", "gif", "svg"})
_decode_list = _json.typed_decoder(list[Raw])


def own_fields(native: Native | None) -> dict[str, Raw]:
    """Return native fields of this protocol."""
    return native.fields if native is not None and native.protocol == NAME else {}


def image_fields(mime: str | None) -> dict[str, Json]:
    """Return an item's fields for its image. Without a form it is a PNG."""
    form = (mime or "").removeprefix("image/").removesuffix("+xml")
    said: dict[str, Json] = {"output_format": form} if form in _IMAGE_FORMS else {}
    return {"type": "image_generation_call", "status": "completed", **said}


class PartForm:
    """The form of one part.

    Attributes:
        name: of its events.
        where: the fields that name its place.
        before_number, after_number, tail: a delta event around its sequence number and its text.
        is_whole: the text is written when the part ends, because only then it is known.
    """

    __slots__ = (
        "_extras", "after_number", "before_number", "done_event", "done_fields", "has_part", "is_call", "is_whole",
        "item_kind", "name", "namespace", "prefix", "said", "tail", "text_field", "where",
    )  # fmt: skip

    def __init__(self, name: str, item_kind: ItemKind, *, prefix: str, text_field: str = "text") -> None:
        self.name = name
        self.item_kind: ItemKind = item_kind
        self.prefix = prefix
        self.text_field = text_field
        self.is_call = item_kind in ("function_call", "custom_tool_call")
        self.has_part = not self.is_call
        self.is_whole = False
        self.namespace: Raw | None = None
        self.done_event = f"response.{name}.done"
        self.done_fields: dict[str, Json] = {"logprobs": []} if name == "output_text" else {}
        self.where: dict[str, Json] = {}
        self.before_number = self.after_number = self.tail = b""
        self.said = GatheredText()
        self._extras: dict[str, Raw] = {}

    def place(self, item: OutputItem) -> None:
        """Take the next place in an item."""
        self.where = {"item_id": item.id, "output_index": item.index}
        if self.name == "reasoning_summary_text":
            self.where["summary_index"] = len(item.summary)
        elif self.has_part:
            self.where["content_index"] = len(item.content)
        kind = f"response.{self.name}.delta"
        self.before_number = b'event: %b\ndata: {"type":"%b","sequence_number":' % (kind.encode(), kind.encode())
        self.after_number = b"," + _json.encode(self.where)[1:-1] + b',"delta":'
        self.tail = b',"logprobs":[]}\n\n' if self.name == "output_text" else b"}\n\n"

    def event(self, step: str) -> str:
        """Return the event that opens or closes the part around its text."""
        summary = self.name == "reasoning_summary_text"
        return f"response.{'reasoning_summary' if summary else 'content'}_part.{step}"

    def part(self, text: str) -> dict[str, Json]:
        """Return the part as an object."""
        if self.name == "output_text":
            return {"type": "output_text", "text": text, "annotations": [], "logprobs": [], **self._extras}
        if self.name == "refusal":
            return {"type": "refusal", "refusal": text}
        return {"type": "summary_text" if self.name == "reasoning_summary_text" else "reasoning_text", "text": text}

    def annotate(self, fields: dict[str, Raw]) -> list[Raw]:
        """Take the part's fields from its end. Return the annotations."""
        if self.name != "output_text":
            return []
        self._extras |= {name: fields[name] for name in ("annotations", "logprobs") if name in fields}
        found = _decode_list(self._extras["annotations"]) if "annotations" in self._extras else []
        if isinstance(found, Malformed) or not found:
            return []
        placed = [_placed(raw, len(self.said.text())) for raw in found]
        self._extras["annotations"] = _json.raw(placed)
        return placed

    def whole_text(self, call: ToolCall) -> str:
        """Return the text of a call. A free text inside a function's arguments is extracted."""
        if not self.is_whole:
            return call.arguments
        values = _json.decode_object(call.arguments)
        text = values.get("input") if not isinstance(values, Malformed) and len(values) == 1 else None
        return text if isinstance(text, str) else call.arguments

    def keep(self, fields: dict[str, Raw]) -> None:
        """Take the part's fields from its start."""
        self._extras = {name: raw for name, raw in fields.items() if name in ("annotations", "logprobs")}


def _placed(annotation: Raw, length: int) -> Raw:
    """Return a cited page or file, behind the whole text if it has no place: clients need one."""
    value = _json.decode(bytes(annotation))
    if isinstance(value, dict) and value.get("index", 0) is None:
        return _json.raw({**value, "index": length})
    if not isinstance(value, dict) or value.get("start_index", 0) is not None:
        return annotation
    return _json.raw({**value, "start_index": 0, "end_index": length})


def form_of(event: TextStart | ThinkingStart) -> PartForm:
    """Return the form of a text or thinking part."""
    if isinstance(event, TextStart):
        if is_refusal(event.native):
            return PartForm("refusal", "message", prefix="msg", text_field="refusal")
        form = PartForm("output_text", "message", prefix="msg")
        form.keep(own_fields(event.native))
        return form
    is_content = own_fields(event.native).get("type") == CONTENT_TYPE
    return PartForm("reasoning_text" if is_content else "reasoning_summary_text", "reasoning", prefix="rs")


def call_form(event: ToolCallStart, tools: Raw | None) -> PartForm:
    """Return the form of a call. The request's tools tell which take free text and which stand in a namespace."""
    tool, namespace = _find_tool(event.name, tools)
    if event.kind == "custom" or tool == "custom":
        form = PartForm("custom_tool_call_input", "custom_tool_call", prefix="ctc", text_field="input")
        form.is_whole = event.kind != "custom"
    else:
        form = PartForm("function_call_arguments", "function_call", prefix="fc", text_field="arguments")
    form.namespace = namespace
    return form


def _find_tool(name: str, tools: Raw | None) -> tuple[str, Raw | None]:
    """Return the type of a tool and its namespace, from the request's `tools`."""
    entries = _json.decode(bytes(tools)) if tools is not None else []
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict):
            continue
        if entry.get("name") == name and entry.get("type") in ("function", "custom"):
            return str(entry["type"]), None
        inner = entry.get("tools") if entry.get("type") == "namespace" else None
        for tool in inner if isinstance(inner, list) else []:
            if isinstance(tool, dict) and tool.get("name") == name:
                return str(tool.get("type") or "function"), _json.raw(entry.get("name"))
    return "", None


class OutputItem:
    """An item being written. `text` is a call's arguments or input."""

    __slots__ = ("_call", "_fields", "content", "id", "index", "kind", "seal", "summary", "text")

    def __init__(
        self,
        kind: ItemKind,
        *,
        id: str,
        index: int,
        fields: dict[str, Raw],
        call: ToolCallStart | None = None,
        namespace: Raw | None = None,
    ) -> None:
        self.kind: ItemKind = kind
        self.id = id
        self.index = index
        self.content: list[Json] = []
        self.summary: list[Json] = []
        self.seal: str | None = None
        self.text = ""
        self._call = call
        self._fields: dict[str, Json] = {}
        if namespace is not None:
            self._fields["namespace"] = namespace
        self.add_late(fields)

    def add_late(self, fields: dict[str, Raw]) -> None:
        """Add native fields of the item."""
        self._fields |= {name: raw for name, raw in fields.items() if name not in _PART_FIELDS and name != "id"}

    def is_named(self, fields: dict[str, Raw]) -> bool:
        """Return whether native fields name this item."""
        return fields.get("id") == _json.raw(self.id)

    def takes(self, form: PartForm, fields: dict[str, Raw]) -> bool:
        """Return whether a part belongs to this item too."""
        return self.kind == form.item_kind and not form.is_call and self.seal is None and self.is_named(fields)

    def add_part(self, form: PartForm, value: dict[str, Json]) -> None:
        """Add a complete part."""
        (self.summary if form.name == "reasoning_summary_text" else self.content).append(value)

    def opened(self) -> dict[str, Json]:
        """Return the item as it begins."""
        return self._object("in_progress", content=[], summary=[], text="")

    def closed(self) -> dict[str, Json]:
        """Return the whole item."""
        return self._object("completed", content=self.content, summary=self.summary, text=self.text)

    def _object(self, status: str, *, content: list[Json], summary: list[Json], text: str) -> dict[str, Json]:
        value: dict[str, Json] = {"id": self.id, "type": self.kind, "status": status}
        if self.kind == "message":
            value |= {"role": "assistant", "content": content}
        elif self.kind == "reasoning":
            del value["status"]
            value["summary"] = summary
            if content:
                value["content"] = content
            if self.seal is not None:
                value["encrypted_content"] = self.seal
        elif self._call is not None:
            value |= {"call_id": self._call.id, "name": self._call.name}
            value["input" if self.kind == "custom_tool_call" else "arguments"] = text
        return value | self._fields
