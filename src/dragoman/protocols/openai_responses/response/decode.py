"""Decode OpenAI Responses bytes, streamed or whole.

Specification: https://platform.openai.com/docs/api-reference/responses-streaming (read 2026-11-21). The end is
response.completed, .incomplete or .failed, or the `status` of a whole response.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from weakref import ref

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.bounds import USUAL_BOUNDS, AnswerBounds
from dragoman.codec.containers import oddity_of
from dragoman.codec.errors.error_body import holds_error, is_problem, read_problem
from dragoman.codec.framing.body import BodyReader, Frame, TooLarge
from dragoman.codec.parts import torn_frames
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.response_end import SECOND
from dragoman.codec.parts.unread_arguments import (
    note_astray,
    note_frame,
    note_late,
    note_missing,
    tell_unknown,
    tell_unread_event,
    unread_arguments,
)
from dragoman.codec.repeated_keys import repeats_key, tells_more
from dragoman.events import Event, Failure
from dragoman.protocol import PLAIN, Dialect, NewId, TakesNothing, takes_nothing
from dragoman.protocols.openai_responses.response.call_events import (
    ANYWHERE,
    Added,
    ArgumentsDone,
    read_call_event,
    take_arguments,
    take_done,
)
from dragoman.protocols.openai_responses.response.delta_batch import Growth
from dragoman.protocols.openai_responses.response.hosted_items import tell_input, tell_live
from dragoman.protocols.openai_responses.response.item import Item
from dragoman.protocols.openai_responses.response.items import Items
from dragoman.protocols.openai_responses.response.snapshot import reconcile
from dragoman.protocols.openai_responses.response.told_apart import ANNOTATION
from dragoman.protocols.openai_responses.response.unmodelled import (
    created_at,
    kept_fields,
    look_around,
    look_in_response,
    note_beside,
    response_of,
    straightened,
    tell_foreign,
)
from dragoman.protocols.openai_responses.response.usage import read_cost, read_usage
from dragoman.protocols.openai_responses.wire import (
    CALL_EVENTS,
    INCOMPLETE_REASONS,
    PLACED_FIELDS,
    RUNNING,
    SILENT_EVENTS,
    START_EVENTS,
    STATUS_OF_EVENT,
    EventPlace,
    ItemKind,
    Place,
    as_list,
    holds_refusal,
    ignore,
    is_response,
    item_kind,
    make_native,
    name_of,
    oddity,
    place_of_text,
    read_leniently,
    read_place,
    status_of,
    text_of,
    unproven,
)
from dragoman.types import StopReason

_LAST_STATUSES: Final = ("completed", "incomplete", "failed", "cancelled")
_WRAPPERS: Final = ("response", "data", "result", "body", "event")


class Decoder:
    """Decodes one response. Never raises; the same events however the bytes are cut."""

    __slots__ = (
        "__weakref__", "_assembly", "_dialect", "_growth", "_id", "_items", "_kept", "_reader", "_refused", "_running",
    )  # fmt: skip

    def __init__(
        self,
        *,
        new_id: NewId,
        offered_names: frozenset[str] = frozenset(),
        takes_nothing: TakesNothing = takes_nothing,
        dialect: Dialect = PLAIN,
        bounds: AnswerBounds = USUAL_BOUNDS,
    ) -> None:
        self._assembly = Assembly(
            new_id, offered_names, takes_nothing=takes_nothing, bounds=bounds, names_tool_use=False
        )
        self._reader = BodyReader(self._assembly.deviate, bounds=bounds, decoder=ref(self), of_calls=CALL_EVENTS)
        self._items = Items(self._assembly)
        self._growth = Growth(self._items, self._assembly, self._reader)
        self._dialect, self._refused, self._id = dialect, False, ""
        self._kept: dict[str, Raw] = {}  # the fields that `Start` told
        self._running = ""  # the status of a response that goes on in the background

    @property
    def ended(self) -> bool:
        return self._assembly.phase != "open"

    def feed(self, data: bytes) -> list[Event]:
        if self._assembly.phase == "closed":
            return []
        if not self._growth.take_alone(data):
            self._take(self._reader.feed(data))
        return self._assembly.take()

    def close(self) -> list[Event]:
        self._take(self._reader.close())
        if self._reader.stray and self._assembly.phase == "open" and not self._assembly.started:
            problem = read_problem(self._reader.stray, status=None)
            kind = "wire" if problem.kind == "internal" else problem.kind
            self._assembly.fail(kind, f"expected a response, got: {problem.message}")
        if self._running and self._assembly.phase == "open":
            self._assembly.finish(self._running, "other")
        marker, is_running, reader = "" if self._running else "response.completed", bool(self._running), self._reader
        self._assembly.close(marker=marker, empty=reader.seen, body=reader.document, is_running=is_running)
        return self._assembly.take()

    def fail(self, failure: Failure) -> list[Event]:
        self._assembly.break_off(failure)
        return self._assembly.take()

    # ------------------------------------------------------------ frames

    def _take(self, frames: Iterable[Frame]) -> None:
        """Take frames: plain deltas of open items by a short cut, all others as rare ones."""
        assembly, take_delta = self._assembly, self._growth.take
        try:
            for data, name in frames:
                if take_delta(data, name):
                    continue
                if not (data.find(b"function_call") >= 0 and self._call_event(data)):
                    self._rare_frame(data, name)
                if assembly.phase != "open":
                    self._items.live.clear()
        except TooLarge as bound:
            assembly.fail("answer_too_large", str(bound))

    def read_batch(self, lines: list[bytes]) -> int:
        """Take plain deltas that all let one part grow. Behind the end of a call's arguments each may be another's."""
        return self._growth.take_many(lines, self._take)

    def _call_event(self, data: bytes) -> bool:
        """Take a usual event about a call. Return False, with nothing done, if it may say more."""
        assembly = self._assembly
        is_open = assembly.started and assembly.phase == "open"
        if not is_open or isinstance(event := read_call_event(data), Malformed):
            return False
        self._running = ""
        if isinstance(event, ArgumentsDone):
            take_done(event, items=self._items, assembly=assembly)
        elif isinstance(event, Added):
            self._items.open(event.output_index, event.item, ANYWHERE)
        else:
            self._item_done(event.output_index, event.item, {}, ANYWHERE)
        return True

    def _rare_frame(self, data: bytes, name: bytes) -> None:
        """Take everything but the plain deltas of open items."""
        value = _json.decode(data)
        if type(value) is Malformed:
            if data.strip() == b"[DONE]":
                if self._assembly.phase == "open":  # behind the last event Open Responses asks for it
                    self._assembly.deviate("unknown-event", "body", "[DONE]")
                return
            value = read_leniently(data)
            if type(value) is Malformed:
                where = f"event {name.decode('utf-8', 'replace')}".strip()
                is_stream = self._reader.kind != "document"
                return torn_frames.unreadable(self._assembly, where, value.problem, data, is_stream=is_stream)
            self._assembly.deviate(*oddity(data))
        if not isinstance(value, dict):
            for item in torn_frames.objects_in(self._assembly, "body", value):
                self._rare_frame(_json.encode(item), name)
            return
        if data.find(b"_call") >= 0 and repeats_key(data, value):
            return torn_frames.refuse(self._assembly, "event", data, name_of(value))
        value, data = straightened(value, data, self._assembly)
        kind = value.get("type")
        if not isinstance(kind, str) or not kind:
            kind = name.decode("utf-8", "replace")
            if kind and kind != "message":
                self._assembly.deviate("missing-field", "type", kind)
        self._event(kind, value, data=data, path=())

    def _event(self, kind: str, value: dict[str, Json], *, data: bytes, path: tuple[str | int, ...]) -> None:
        if self._assembly.phase != "open":
            return self._after_end(value)
        if (is_error := kind.lower().endswith("error")) or ("error" in value and not is_response(value)):
            if is_error or holds_error(value["error"]):
                return self._fail(value)
            self._assembly.deviate("empty-error", "error")
        if kind in ("", "message", "response"):
            return self._untyped(value, data=data, path=path)
        if not kind.startswith("response.") and kind not in SILENT_EVENTS:
            self._assembly.deviate("sibling-key", "type", kind)
            kind = f"response.{kind}"
        if kind in START_EVENTS:
            response = response_of(value, kind, self._assembly)
            if kind == "response.created" and self._assembly.started:
                is_another = self._id and response.get("id") not in (None, "", self._id)
                if self._assembly.opened_calls or (is_another and not self._assembly.is_empty):
                    return self._assembly.fail(*SECOND)
                self._assembly.deviate("duplicate-start", "response.created")
            self._begin(response)
            look_in_response(response, self._assembly)
            look_around(value, kind, self._assembly)
            self._running = status_of(response) if kind == "response.queued" else ""
            return
        self._running = ""
        tell_foreign(kind, value, self._assembly)
        if not self._assembly.started:
            self._assembly.deviate("missing-start", "body")
        if kind in STATUS_OF_EVENT:
            inner = (*path, "response") if isinstance(value.get("response"), dict) else path
            self._end(response_of(value, kind, self._assembly), STATUS_OF_EVENT[kind], place=Place(data).inner(*inner))
        elif is_response(value):
            self._untyped(value, data=data, path=path)
        else:
            self._part_event(kind, value, place=Place(data).inner(*path))

    def _untyped(self, value: dict[str, Json], *, data: bytes, path: tuple[str | int, ...]) -> None:
        """Take a whole response, or something that wraps one."""
        if is_response(value):
            status = value.get("status")
            if not isinstance(status, str):
                self._assembly.deviate("missing-field", "status")
                if self._reader.kind == "events" and not value.get("output"):
                    return self._begin(value)  # nothing says that it is an end
                status = "completed"
            return self._end(value, status, place=Place(data).inner(*path))
        for key in _WRAPPERS:
            inner = value.get(key)
            if isinstance(inner, dict) and (is_response(inner) or isinstance(inner.get("type"), str)):
                self._assembly.deviate("envelope", key)
                return self._event(str(inner.get("type") or ""), inner, data=data, path=(*path, key))
        if is_problem(value):
            self._fail(value)
        else:
            tell_unknown(self._assembly, value, "unknown-event", "body", ", ".join(list(value)[:5]))
            note_frame(self._assembly, data)

    def _after_end(self, value: dict[str, Json]) -> None:
        """Take an event after the end, of which only usage counts."""
        if self._assembly.phase == "ended":
            self._assembly.deviate("after-end", "end", value.get("type") or "")
            if isinstance(kind := value.get("type"), str) and "arguments" in kind:
                note_late(self._assembly, text_of(value.get("arguments") or value.get("delta")))
            self._usage(response if isinstance(response := value.get("response"), dict) else value)

    def _fail(self, value: Json) -> None:
        told = read_problem(value, status=None)
        self._assembly.fail(told.kind, told.message, status=told.status, retry_after=told.retry_after, code=told.code)

    # ------------------------------------------------------------ the response

    def _begin(self, response: dict[str, Json]) -> None:
        if not self._assembly.started:
            id, model = response.get("id"), response.get("model")
            self._kept = kept_fields(response)
            self._id = id if isinstance(id, str) else ""
            self._assembly.start(
                self._id or None,
                model if isinstance(model, str) else None,
                created_at(response),
                native=make_native(self._kept),
            )
        self._usage(response)

    def _usage(self, response: dict[str, Json]) -> None:
        usage = response.get("usage")
        if isinstance(usage, dict):
            cost = read_cost(usage) if self._dialect.cost_in_usage else None
            self._assembly.usage(read_usage(usage, self._assembly.deviate, response.get("service_tier")), cost)

    def _end(self, response: dict[str, Json], status: str, *, place: Place) -> None:
        """Take a final event, or a whole response: output that was not streamed, usage, and why it ended."""
        said = response.get("status")
        if isinstance(said, str) and said in _LAST_STATUSES and said != status and status != "failed":
            self._assembly.deviate("stop-reason", "response.status", said)
            status = said
        self._begin(response)
        note_astray(self._assembly, response)
        output = response.get("output")
        if isinstance(output, list):
            self._refused = self._refused or holds_refusal(output)
            if status in RUNNING:
                output = [unproven(item, self._assembly.calls.offered_names) for item in output]
            reconcile(self._items, output, place.inner("output"), assembly=self._assembly)
        else:
            tell_unknown(self._assembly, response, oddity_of(output), "response.output", type(output).__name__)
        look_in_response(response, self._assembly)
        if self._assembly.is_empty and (text := text_of(response.get("output_text") or output)):
            self._assembly.text(self._assembly.lenient_text(text))
        self._items.close(is_good=status == "completed")
        if status == "failed" or status == "cancelled" or holds_error(response.get("error")):
            error = response.get("error")
            self._fail(error if holds_error(error) else {"message": f"the response ended as {status}"})
        elif status == "completed":
            self._finish(response, "completed", "content_filter" if self._refused else "stop")
        elif status == "incomplete":
            self._incomplete(response)
        elif status in RUNNING:
            # a whole body says how far a response in the background is; in a stream the end is still to come
            self._running = status if self._reader.kind != "events" else ""
        else:
            self._assembly.deviate("stop-reason", "response.status", status)
            if output and all(isinstance(item, dict) and status_of(item) == "completed" for item in output):
                self._finish(response, status, "stop")

    def _finish(self, response: dict[str, Json], word: str, reason: StopReason) -> None:
        """Finish, with the response's fields that it did not have when it began."""
        late = {key: value for key, value in kept_fields(response).items() if self._kept.get(key) != value}
        self._assembly.finish(word, reason, native=make_native(late))
        self._assembly.end()

    def _incomplete(self, response: dict[str, Json]) -> None:
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else details
        if not isinstance(reason, str) or not reason:
            self._assembly.deviate("missing-stop-reason", "response.incomplete_details.reason")
            reason = "max_output_tokens"
        self._finish(response, reason, INCOMPLETE_REASONS.get(reason, "other"))

    def _part_event(self, kind: str, value: dict[str, Json], *, place: Place) -> None:
        if kind.startswith(SILENT_EVENTS):
            return tell_live(kind, value, place, items=self._items, assembly=self._assembly)
        event = read_place(value, self._assembly.deviate)
        if kind == ANNOTATION:
            told = as_list(value.get("annotation"))
            self._find(event, "message").tell(event.content_index, "annotations", told, self._assembly.deviate)
        elif kind == "response.output_item.added" or kind == "response.output_item.done":
            self._item_event(kind, event, value, place)
        elif kind == "response.content_part.done" or kind == "response.content_part.added":
            part = value.get("part")
            item = self._items.find(event.output_index, event.item_id)
            if isinstance(part, dict) and kind == "response.content_part.done":
                item = item or self._items.open_unannounced(event.output_index, event.item_id, "message")
                self._refused = self._refused or part.get("type") == "refusal"
                self._items.final_content(item, event.content_index, part, place.inner("part"))
        elif kind.endswith("_part.done") and isinstance(value.get("part"), dict):
            kind = kind.removesuffix("_part.done") + ".done"
            self._text_event(kind, event, {"text": text_of(value["part"])}, place)
        elif not self._text_event(kind, event, value, place):
            self._assembly.deviate("unknown-event", "type", kind)
            note_frame(self._assembly, place.frame)
            item = self._items.places.find(event.output_index, event.item_id)
            if item is not None and item.call is not None and (event.delta or unread_arguments(value)):
                message = f"tool call {item.call.name or '(no name)'}: an event of it could not be read"
                self._assembly.drop_call(item.call, "lost", message)
            tell_unread_event(self._assembly, value, kind)

    def _item_event(self, kind: str, event: EventPlace, value: dict[str, Json], place: Place) -> None:
        name = "item" if isinstance(value.get("item"), dict) else "output"
        fields = value.get(name)
        if not isinstance(fields, dict):
            self._assembly.ending.is_torn = True  # a call may have begun
            return tell_unknown(self._assembly, value, "missing-field", "item", kind)
        if name != "item":
            self._assembly.deviate("sibling-key", name, kind)
        inner = place.inner(name)
        if kind == "response.output_item.added":
            opened = self._items.open(event.output_index, fields, inner)
            if opened.kind == "opaque":
                tell_live(kind, value, place, items=self._items, assembly=self._assembly)
            elif opened.call is not None:
                note_beside(opened.call, value, kind, self._assembly)
            return
        self._item_done(event.output_index, fields, value, inner)

    def _item_done(self, index: int, fields: dict[str, Json], value: dict[str, Json], place: Place) -> None:
        """Take a whole item. `value`: its event, or {} if nothing stands beside the item."""
        item = self._items.places.find_whole(index, fields)
        told = item_kind(fields, ignore, "", offered=self._assembly.calls.offered_names)
        if item is None or (item.kind != told and (item.done or "opaque" in (item.kind, told))):
            item = self._items.open(index, fields, place)
        self._refused = self._refused or (told == "message" and holds_refusal([fields]))
        if value and item.call is not None and fields.get("arguments") in (None, "", "{}"):
            note_beside(item.call, value, "response.output_item.done", self._assembly)
        self._items.finish(item, fields, place)

    def _text_event(self, kind: str, event: EventPlace, value: dict[str, Json], place: Place) -> bool:
        """Take a delta or the whole text of a part. Return False if the event is neither."""
        name, _, step = kind.removeprefix("response.").rpartition(".")
        if step != "delta" and step != "done":
            return False
        if name == "function_call_arguments":
            take_arguments(event, value, step, "function_call", place, items=self._items, assembly=self._assembly)
        elif name == "custom_tool_call_input":
            if not tell_input(kind, value, place, items=self._items, assembly=self._assembly):
                take_arguments(
                    event, value, step, "custom_tool_call", place, items=self._items, assembly=self._assembly
                )
        else:
            key, owner = place_of_text(name, event)
            if not key[0]:
                return False
            item = self._find(event, owner)
            if key[0] == "text" and item.kind == "reasoning":
                self._assembly.deviate("sibling-key", "type", kind)
                key = ("reasoning", key[1])
            self._refused = self._refused or key[0] == "refusal"
            if step == "delta":
                if tells_more(place.frame, b'"delta"', bool(event.delta)):
                    self._assembly.deviate("repeated-key", "delta")
                if not event.delta and any(value[name] for name in value.keys() - PLACED_FIELDS):
                    note_missing(self._assembly, kind)
                self._items.grow(item, key, event.delta)
            else:
                self._items.final_text(item, key, text_of(value.get("refusal") or value))
            if (odds := value.get("logprobs")) and key[0] == "text":
                item.tell(key[1], "logprobs", as_list(odds), self._assembly.deviate, is_whole=step == "done")
        return True

    def _find(self, event: EventPlace, kind: ItemKind) -> Item:
        item = self._items.find(event.output_index, event.item_id)
        return item or self._items.open_unannounced(event.output_index, event.item_id, kind)
