"""Convert calls of tools that were offered in another form back into the client's own names and forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, final

import msgspec

from dragoman import _json
from dragoman._json import Raw
from dragoman.events import EVERY_KIND, Event, PartEvent, ToolCallDelta, ToolCallEnd, ToolCallFailed, ToolCallStart
from dragoman.protocol.native_tools import ToolForms
from dragoman.types import Native, ToolCall

_decode_fields: Final = _json.typed_decoder(dict[str, Raw])
_HANDLED: Final = frozenset[type]({ToolCallStart, ToolCallDelta, ToolCallEnd, ToolCallFailed})
#: The one argument of a function that stands for a tool that takes free text.
FREE_TEXT: Final = "input"


@final
class Form(msgspec.Struct, frozen=True):
    """The client's form of a tool's calls: name, native fields, and the kind of a tool that is no function.

    `is_custom`: it takes free text, and was offered as a function. `keys`: names of its arguments as sent → the
    client's.
    """

    name: str
    native: Native | None = None
    kind: str = ""
    is_custom: bool = False
    keys: dict[str, str] = {}


class Restored:
    """Converts calls to their client's form. A `dragoman.protocol.Stage`; the last one that sees calls.

    A call whose form is not a function's is held until it is complete.
    """

    __slots__ = ("_forms", "_held", "_named", "_sent", "_writer", "handles")

    acts_on = EVERY_KIND

    def __init__(self, forms: dict[str, Form], writer: ToolForms) -> None:
        """Create it. `forms`: by the name that was sent. `writer`: the client's protocol."""
        self._forms = forms
        self._writer = writer
        self._held: dict[int, ToolCallStart] = {}
        self._named: dict[int, Form] = {}
        self._sent: dict[int, ToolCall] = {}
        self.handles: frozenset[type] = _HANDLED

    def feed(self, events: list[Event]) -> list[Event]:
        if not any(type(event) is ToolCallStart and event.name in self._forms for event in events) and not self._named:
            return events
        out: list[Event] = []
        for event in events:
            if type(event) is ToolCallStart and event.name in self._forms:
                self._start(event, self._forms[event.name], out)
            elif type(event) is ToolCallDelta and event.index in self._held:
                pass  # its end says it all
            elif type(event) is ToolCallEnd and event.index in self._named:
                self._end(event, out)
            elif type(event) is ToolCallFailed and event.index in self._named:
                self._fail(event, out)
            else:
                out.append(event)
        return out

    def as_sent(self, events: list[Event]) -> list[Event]:
        """Return what this stage returned, with ended calls as the provider made them."""
        if not self._sent:
            return events
        return [
            ToolCallEnd(event.index, self._sent[event.index])
            if (type(event) is ToolCallEnd or type(event) is PartEvent) and event.index in self._sent
            else event
            for event in events
        ]

    def _start(self, event: ToolCallStart, form: Form, out: list[Event]) -> None:
        self._named[event.index] = form
        event = msgspec.structs.replace(event, name=form.name, native=form.native or event.native)
        if form.is_custom or form.kind or form.keys:
            self._held[event.index] = event
        else:
            out.append(event)

    def _end(self, event: ToolCallEnd, out: list[Event]) -> None:
        form, held = self._named.pop(event.index), self._held.pop(event.index, None)
        self._sent[event.index] = event.call
        call = msgspec.structs.replace(event.call, name=form.name, native=form.native or event.call.native)
        if held is None:
            out.append(ToolCallEnd(event.index, call))
            return
        if form.keys:
            call = msgspec.structs.replace(call, arguments=with_client_keys(call.arguments, form.keys))
        if form.is_custom and call.kind == "function":
            text = free_text(call)
            if text is None:
                problem = f"tool call {form.name}: expected one argument, {FREE_TEXT}, a text"
                out += [held, ToolCallFailed(event.index, call.id, form.name, "unreadable", problem, call.arguments)]
                return
            call = msgspec.structs.replace(call, kind="custom", arguments=text)
            held = msgspec.structs.replace(held, kind="custom")
        part = self._writer.write_call(form.kind, call) if form.kind and self._writer.write_call is not None else None
        if part is not None:
            out.append(PartEvent(event.index, part))
            return
        out.append(held)
        if call.arguments:
            out.append(ToolCallDelta(event.index, call.arguments))
        out.append(ToolCallEnd(event.index, call))

    def _fail(self, event: ToolCallFailed, out: list[Event]) -> None:
        form, held = self._named.pop(event.index), self._held.pop(event.index, None)
        if held is not None:
            out.append(held)
        out.append(msgspec.structs.replace(event, name=form.name))


def with_client_keys(arguments: str, keys: Mapping[str, str]) -> str:
    """Return a call's arguments under the client's names."""
    values = _json.decode_object(arguments)
    if isinstance(values, _json.Malformed) or keys.keys().isdisjoint(values):
        return arguments
    fields = _decode_fields(arguments.encode("utf-8", "replace"))
    told: Mapping[str, object] = values if isinstance(fields, _json.Malformed) else fields
    return _json.to_text({keys.get(key, key): value for key, value in told.items()})


def free_text(call: ToolCall) -> str | None:
    """Return the text of a call of a function that stands for a tool with free text, or None if there is none."""
    values = _json.decode_object(call.arguments)
    if isinstance(values, _json.Malformed) or list(values) != [FREE_TEXT]:
        return None
    text = values[FREE_TEXT]
    return text if isinstance(text, str) else None
