"""Read calls that a model was told to write as text, because its server has no field for them
(`dragoman.tool_emulation`).

Some models cannot write the requested form: coder models of the Qwen family never learned `<tool_call>` of their own
vocabulary, and put the call into a fence, or nothing around it. So every form that is read in `native`, where no form
was requested, is read here too; it only counts as a deviation.
"""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.events import EVERY_KIND, Deviation, Event
from dragoman.protocol import NewId
from dragoman.stages.rescue.families import FAMILIES, hermes
from dragoman.stages.rescue.stage import Rescue
from dragoman.types import Tool

_ASKED = hermes.FAMILY


class Prompted:
    """Reads the requested form, which is no deviation, and the others. A `dragoman.protocol.Stage`.

    `lenient` False: that form alone.
    """

    __slots__ = ("_rescue",)

    acts_on = EVERY_KIND

    handles = EVERY_KIND

    def __init__(self, tools: Sequence[Tool], *, lenient: bool, new_id: NewId, most_values: int) -> None:
        self._rescue = Rescue(tools, FAMILIES if lenient else (_ASKED,), new_id=new_id, most_values=most_values)

    def feed(self, events: list[Event]) -> list[Event]:
        return [event for event in self._rescue.feed(events) if not _is_expected(event)]


def _is_expected(event: Event) -> bool:
    return type(event) is Deviation and event.code == "rescued-call" and event.seen == _ASKED.name
