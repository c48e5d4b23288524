"""Encode events as OpenAI Responses bytes.

Specification: https://platform.openai.com/docs/api-reference/responses-streaming (read 2026-11-21). Only event types of
the specification are sent (openai-js throws on others); `sequence_number` has no gaps; there is no `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.codec.cross_protocol import CrossProtocol, crossed
from dragoman.codec.framing.body import write_event
from dragoman.codec.logprobs import OF_TEXT
from dragoman.errors import CALL_FAILED, FailedCalls
from dragoman.events import (
    Deviation,
    Event,
    Failure,
    Finish,
    NativeEvent,
    PartEvent,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    UsageUpdate,
    unfold,
)
from dragoman.protocol import NewId, ReplyStyle
from dragoman.protocols.openai_responses.content import CITED, is_content_part
from dragoman.protocols.openai_responses.response.errors import CODES
from dragoman.protocols.openai_responses.response.hosted_items import HostedItems
from dragoman.protocols.openai_responses.response.output_forms import (
    OutputItem,
    PartForm,
    call_form,
    form_of,
    image_fields,
    own_fields,
)
from dragoman.protocols.openai_responses.response.unmodelled import DEFAULTS
from dragoman.protocols.openai_responses.response.usage import render_usage
from dragoman.protocols.openai_responses.wire import CUT_SHORT, NAME, REASONS, RUNNING
from dragoman.types import NO_USAGE, Native, Opaque

_DEFAULT_STYLE: Final = ReplyStyle()


class Encoder:
    """Encodes one response.

    A part opens with its first delta, so that a call which fails before it can become text. A message or reasoning item
    stays open after its part, because the next part may belong to it.

    Attributes:
        response: the final response object, once it was written.
    """

    __slots__ = (
        "_created", "_crossing", "_failed", "_held", "_hosted", "_id", "_item", "_items", "_kept", "_model", "_new_id",
        "_number", "_output", "_part", "_phase", "_refused", "_style", "_usage", "_used_ids", "lost", "response",
    )  # fmt: skip

    def __init__(self, *, new_id: NewId, model: str, created: int, style: ReplyStyle = _DEFAULT_STYLE) -> None:
        self._new_id = new_id
        self._model = model
        self._created = created
        self._style = style
        self._id = ""
        self._kept: dict[str, Raw] = {}
        self._number = 0  # of the next event
        self._phase = "new"  # new, open, ended, aborted
        self._output: dict[int, Raw] = {}  # by their places
        self._hosted = HostedItems()
        self._items = 0  # items that were opened; one whose call failed is not in the output
        self._failed = FailedCalls()
        self._crossing = CrossProtocol(NAME, CITED, REASONS, OF_TEXT)
        self.lost = self._crossing.lost
        self._item: OutputItem | None = None
        self._part: PartForm | None = None  # of the open item, once something was written
        self._held: TextStart | ThinkingStart | ToolCallStart | None = None  # a part of which nothing was written
        self._usage = NO_USAGE
        self._refused = False
        self._used_ids: set[str] = set()
        self.response: bytes = b""

    @property
    def aborted(self) -> bool:
        """Whether a call that had begun to leave has failed: cut the connection, do not end it."""
        return self._phase == "aborted"

    def keepalive(self) -> bytes:
        """Return a comment."""
        return b": keep-alive\n\n"

    def encode(self, events: Iterable[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            kind = type(event)
            if kind is TextDelta or kind is ToolCallDelta or kind is ThinkingDelta:
                self._delta(event.text, out)  # type: ignore[union-attr]
            elif kind in _WRITERS and self._phase != "ended" and self._phase != "aborted":
                event = self._crossing.take(event, events)
                _WRITERS[kind](self, event, out)
        return b"".join(out)

    def _delta(self, text: str, out: list[bytes]) -> None:
        part = self._part
        if part is None:
            if self._held is None or self._phase != "open":
                return
            part = self._open_part(self._held, out)
        part.said.add(text)
        if part.is_whole:
            return
        number = self._number
        self._number = number + 1
        out.append(b"%b%d%b%b%b" % (part.before_number, number, part.after_number, _json.encode_text(text), part.tail))

    def _hold(self, event: TextStart | ThinkingStart | ToolCallStart, out: list[bytes]) -> None:
        self._held = event

    def _note_usage(self, event: UsageUpdate, out: list[bytes]) -> None:
        self._usage = self._usage.merged(event.usage)

    # ------------------------------------------------------------ events of the wire

    def _write(self, kind: str, fields: dict[str, Json], out: list[bytes]) -> None:
        out.append(write_event(_json.encode({"type": kind, "sequence_number": self._number, **fields}), kind))
        self._number += 1

    def _start(self, event: Start, out: list[bytes]) -> None:
        if self._phase != "new":
            return
        self._phase = "open"
        given = event.id if event.id is not None and event.id.startswith("resp_") else None
        self._id = self._style.id or given or f"resp_{self._new_id()}"
        self._kept = own_fields(event.native)
        response = _json.raw(self._response_object("in_progress"))
        for kind in ("response.created", "response.in_progress"):
            self._write(kind, {"response": response}, out)

    def _response_object(self, status: str, *, error: Json = None, details: Json = None) -> dict[str, Json]:
        is_last = status != "in_progress"
        head = {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": error,
            "incomplete_details": details,
            "model": self._model,
            "output": [self._output[index] for index in sorted(self._output)],
            "usage": render_usage(self._usage, self._kept.get("usage")) if is_last else None,
        }
        return {**DEFAULTS, **self._kept, **self._style.echo, **head}

    def _end(self, status: str, out: list[bytes], *, error: Json = None, details: Json = None) -> None:
        response = _json.encode(self._response_object(status, error=error, details=details))
        self.response = response
        # a stream that ends before its response does ends with the word that says so
        kind = "queued" if status in RUNNING else status
        self._write(f"response.{kind}", {"response": Raw(response)}, out)
        self._phase = "ended"

    # ------------------------------------------------------------ items and parts

    def _item_id(self, native: Native | None, prefix: str) -> str:
        raw = own_fields(native).get("id")
        said = _json.decode(bytes(raw)) if raw is not None else None
        id = said if isinstance(said, str) and said and said not in self._used_ids else f"{prefix}_{self._new_id()}"
        self._used_ids.add(id)
        return id

    def _open_part(self, event: TextStart | ThinkingStart | ToolCallStart, out: list[bytes]) -> PartForm:
        """Open the item of a part, unless it goes on, and the part."""
        self._held = None
        if isinstance(event, ToolCallStart):
            form = call_form(event, self._style.echo.get("tools"))
        else:
            form = form_of(event)
        fields = own_fields(event.native)
        item = self._item
        if item is None or not item.takes(form, fields):
            self._close_item(out)
            item = OutputItem(
                form.item_kind,
                id=self._item_id(event.native, form.prefix),
                index=self._items,
                fields=fields,
                call=event if isinstance(event, ToolCallStart) else None,
                namespace=form.namespace,
            )
            self._item = item
            self._items += 1
            self._write("response.output_item.added", {"output_index": item.index, "item": item.opened()}, out)
        form.place(item)
        self._part = form
        if form.has_part:
            self._write(form.event("added"), {**form.where, "part": form.part("")}, out)
        self._refused = self._refused or form.name == "refusal"
        return form

    def _end_text(self, event: TextEnd, out: list[bytes]) -> None:
        self._held = None
        part, item = self._part, self._item
        if part is None or item is None:
            return
        fields = own_fields(event.native)
        item.add_late(fields)
        annotations = part.annotate(fields)
        for index, annotation in enumerate(annotations):
            self._write(
                "response.output_text.annotation.added",
                {**part.where, "annotation_index": index, "annotation": annotation},
                out,
            )
        self._close_part(part, item, out)

    def _end_thinking(self, event: ThinkingEnd, out: list[bytes]) -> None:
        held, self._held = self._held, None
        if self._part is None:
            if held is None or (event.signature is None and not own_fields(held.native).get("id")):
                return
            self._open_sealed(held, out)
        elif self._item is not None:
            self._close_part(self._part, self._item, out)
        if self._item is not None:
            self._item.add_late(own_fields(event.native))
            if event.signature is not None:
                self._item.seal = event.signature

    def _open_sealed(self, held: TextStart | ThinkingStart | ToolCallStart, out: list[bytes]) -> None:
        """Open thinking without words: its item has no part."""
        fields = own_fields(held.native)
        if self._item is None or self._item.kind != "reasoning" or not self._item.is_named(fields):
            self._close_item(out)
            id = self._item_id(held.native, "rs")
            self._item = OutputItem("reasoning", id=id, index=self._items, fields=fields)
            self._items += 1
            added = {"output_index": self._item.index, "item": self._item.opened()}
            self._write("response.output_item.added", added, out)

    def _close_part(self, part: PartForm, item: OutputItem, out: list[bytes]) -> None:
        text = part.said.text()
        self._write(part.done_event, {**part.where, part.text_field: text, **part.done_fields}, out)
        value = part.part(text)
        if part.has_part:
            self._write(part.event("done"), {**part.where, "part": value}, out)
        item.add_part(part, value)
        self._part = None

    def _close_item(self, out: list[bytes]) -> None:
        item = self._item
        if item is None:
            return
        self._item = None
        whole = _json.raw(item.closed())
        self._output[item.index] = whole
        self._write("response.output_item.done", {"output_index": item.index, "item": whole}, out)

    # ------------------------------------------------------------ calls and whole parts

    def _end_call(self, event: ToolCallEnd, out: list[bytes]) -> None:
        if self._held is not None:  # a free text that is empty
            self._open_part(self._held, out)
        part, item = self._part, self._item
        if part is None or item is None:
            return
        text = part.whole_text(event.call)
        if part.is_whole:
            delta = {**part.where, "delta": text}
            self._write(part.done_event.replace(".done", ".delta"), delta, out)
        self._write(part.done_event, {**part.where, part.text_field: text}, out)
        item.add_late(own_fields(event.call.native))
        item.text = text
        self._part = None
        self._close_item(out)

    def _fail_call(self, event: ToolCallFailed, out: list[bytes]) -> None:
        """Keep a failed call for the end. An item that opened for it is never done."""
        has_left = self._part is not None and self._part.is_call
        self._failed.add(event, has_left=has_left)
        if has_left:
            self._item = self._part = None
        self._held = None

    def _whole_part(self, event: PartEvent, out: list[bytes]) -> None:
        part = event.part
        if isinstance(part, Opaque):
            if part.protocol == NAME:
                self._whole_item(part, out)
        elif part.kind == "image" and part.data is not None:
            id = f"ig_{self._new_id()}"
            image = {"id": id, **image_fields(part.mime), "result": part.data}
            self._whole_item(Opaque(NAME, _json.raw(image)), out)

    def _whole_item(self, part: Opaque, out: list[bytes]) -> None:
        self._close_item(out)
        raw = part.raw
        if is_content_part(part):
            id = self._item_id(None, "msg")
            message = {"id": id, "type": "message", "status": "completed", "role": "assistant", "content": [raw]}
            raw = _json.raw(message)
        index = self._hosted.take(raw)
        if index is None:
            index = self._items
            self._items += 1
            self._write("response.output_item.added", {"output_index": index, "item": raw}, out)
        self._output[index] = raw
        self._write("response.output_item.done", {"output_index": index, "item": raw}, out)

    def _native_event(self, event: NativeEvent, out: list[bytes]) -> None:
        placed = self._hosted.place(event, self._items) if event.protocol == NAME else None
        if placed is not None:
            self._items += placed[0] == "response.output_item.added"
            self._write(*placed, out)

    # ------------------------------------------------------------ ends

    def _finish(self, event: Finish, out: list[bytes]) -> None:
        self._start(Start(), out)
        self._close_item(out)
        for part in self._crossing.blocks:
            self._whole_item(part, out)
        self._usage = self._usage.merged(event.usage)
        self._kept = self._kept | own_fields(event.native)
        failure = self._failed.failure(event)
        if failure is not None:
            self._fail(failure, out)
        elif event.reason == "other" and event.native_reason in RUNNING:
            self._end(event.native_reason, out)
        elif event.reason == "other" and event.native_reason in CUT_SHORT:
            self._end("incomplete", out, details={"reason": event.native_reason})
        elif event.reason == "length":
            self._end("incomplete", out, details={"reason": "max_output_tokens"})
        elif event.reason == "content_filter" and not self._refused:
            self._end("incomplete", out, details={"reason": "content_filter"})
        else:
            self._end("completed", out)

    def _fail(self, event: Failure, out: list[bytes]) -> None:
        self._start(Start(), out)
        is_cut = self._part is not None and self._part.is_call
        if not is_cut and self._part is None:
            self._close_item(out)
        self._usage = self._usage.merged(event.usage)
        code = CALL_FAILED if event.code == CALL_FAILED else CODES.get(event.kind, "server_error")
        self._end("failed", out, error={"code": code, "message": event.message})
        if is_cut or self._failed.has_left:
            self._phase = "aborted"


#: What writes an event, beside those that let a part grow. Deviations have no form here.
_WRITERS: Final[Mapping[type, Callable[[Encoder, Any, list[bytes]], None]]] = {
    Start: Encoder._start, Finish: Encoder._finish, Failure: Encoder._fail, UsageUpdate: Encoder._note_usage,
    TextStart: Encoder._hold, ThinkingStart: Encoder._hold, ToolCallStart: Encoder._hold,
    TextEnd: Encoder._end_text, ThinkingEnd: Encoder._end_thinking, ToolCallEnd: Encoder._end_call,
    ToolCallFailed: Encoder._fail_call, PartEvent: Encoder._whole_part, NativeEvent: Encoder._native_event,
}  # fmt: skip


def render_response(
    reply: Reply,
    *,
    new_id: NewId,
    model: str,
    created: int,
    style: ReplyStyle = _DEFAULT_STYLE,
    lost: list[Deviation] | None = None,
) -> bytes:
    """Render a whole response: what the stream of the same events ends with."""
    encoder = Encoder(new_id=new_id, model=model, created=created, style=style)
    encoder.encode(unfold(crossed(reply, NAME, CITED, REASONS, lost, OF_TEXT)))
    return encoder.response
