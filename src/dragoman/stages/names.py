"""A tool's name exactly, after cleaning; never a guess.

White space, the prefixes and suffixes that templates and gateways add, and residue of harmony's markup are taken off
when that gives the name of an offered tool; else the call keeps its name and the deviation lists the nearest ones.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from typing import Final

import msgspec

from dragoman.events import Deviation, Event, ToolCallEnd, ToolCallFailed, ToolCallStart

_PREFIXES: Final = ("functions.", "function.", "tools.", "tool.", "default_api.", "functions/", "functions:", "tool:")
_SUFFIX: Final = re.compile(r":\d+$|\(\)$")
_HARMONY: Final = re.compile(r"<\|.*|\s.*", re.DOTALL)
_HARMONY_LEAD: Final = re.compile(r"^(?:(?:assistant|commentary|analysis|final)?\s*to=)")


def clean_name(name: str, offered: Collection[str]) -> str | None:
    """The offered tool that a name means, exactly; None when there is none."""
    if name in offered:
        return name
    seen = {name}
    waiting = [name]
    while waiting:
        for changed in _cleaner(waiting.pop()):
            if changed in offered:
                return changed
            if changed and changed not in seen:
                seen.add(changed)
                waiting.append(changed)
    return None


def _cleaner(name: str) -> list[str]:
    """A name with one thing taken off it, in each way."""
    found = [name.strip(), name.strip("\"'`"), _SUFFIX.sub("", name), _HARMONY.sub("", name.lstrip())]
    found.append(_HARMONY_LEAD.sub("", name))
    found += [name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)]
    return [changed for changed in found if changed != name]


_HANDLED: Final = frozenset[type]({ToolCallStart, ToolCallEnd, ToolCallFailed})


class Names:
    """Cleans the names of structured calls. A `dragoman.contract.Stage`."""

    __slots__ = ("_names", "_offered", "handles")

    def __init__(self, offered: Collection[str]) -> None:
        self._offered = frozenset(offered)
        self._names: dict[int, str] = {}  # by part index, where a name was cleaned
        self.handles = _HANDLED

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the next events."""
        for event in events:
            kind = type(event)
            if kind is ToolCallStart:
                if event.name not in self._offered:  # type: ignore[union-attr]
                    break
            elif self._names and kind in (ToolCallEnd, ToolCallFailed):
                break
        else:
            return events
        out: list[Event] = []
        for event in events:
            match event:
                case ToolCallStart(index, _, name) if name not in self._offered:
                    self._start(event, index, name, out)
                case ToolCallEnd(index, call) if index in self._names:
                    call = msgspec.structs.replace(call, name=self._names.pop(index))
                    out.append(ToolCallEnd(index, call))
                case ToolCallFailed(index) if index in self._names:
                    out.append(msgspec.structs.replace(event, name=self._names.pop(index)))
                case _:
                    out.append(event)
        return out

    def _start(self, event: ToolCallStart, index: int, name: str, out: list[Event]) -> None:
        cleaned = clean_name(name, self._offered)
        if cleaned is not None:
            self._names[index] = cleaned
            out.append(Deviation("mangled-name", f"call {index}", name[:100]))
            out.append(msgspec.structs.replace(event, name=cleaned))
            return
        near = difflib.get_close_matches(name, self._offered, n=3, cutoff=0.4)
        seen = f"{name[:80]}; nearest: {', '.join(near)}" if near else name[:80]
        out.append(Deviation("unknown-tool", f"call {index}", seen[:150]))
        out.append(event)
