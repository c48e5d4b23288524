"""Clean a tool's name exactly; never guess.

White space, the prefixes and suffixes that templates and gateways add, and residue of harmony's and GLM's markup are
removed if that gives the name of an offered tool; else the call keeps its name and the deviation lists the nearest
ones. GLM's argument tags behind a name are the call's arguments, if it came with no others.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from dragoman import _json
from dragoman.codec.parts.settled_arguments import is_same
from dragoman.codec.patterns import rare_pattern
from dragoman.events import EVERY_KIND, Deviation, Event, ToolCallDelta, ToolCallEnd, ToolCallFailed, ToolCallStart
from dragoman.stages.part_indices import of_kinds
from dragoman.types import ToolCall

_PREFIXES: Final = (
    *("functions.", "function.", "tools.", "tool.", "default_api."),
    *("functions/", "functions:", "tool:", "default_api:"),
)
_SUFFIX: Final = rare_pattern(r":\d+$|\(\)$")
#: Harmony's residue behind a name: tokens, the last one cut perhaps, and the words that stand between them. Anything
#: else may be arguments, or another name.
_HARMONY: Final = rare_pattern(
    r"(?:\s++|<\|[^|<>]{1,40}+\|>|(?<!\w)(?:commentary|analysis|final|json|xml|code|assistant)(?!\w))++(?:<\|?[^|<>]{0,40}+\|?)?+"
)
_BEHIND_NAME: Final = rare_pattern(r"\s|<\|?")
_HARMONY_LEAD: Final = rare_pattern(r"^(?:(?:assistant|commentary|analysis|final)?\s*to=)")
_TOKENS_BEFORE: Final = rare_pattern(r"^(?:\s*<\|[^|<>]{1,40}\|>)+")
_NUMBERED: Final = "functions_"
_TAG_BEHIND: Final = rare_pattern(r"(?<!\s)\s*+</arg_value>\s*+$")
#: Text without GLM's argument tags; an argument; all of them behind a name.
_UNTAGGED: Final = r"[^<]*+(?:<(?!/?arg_)[^<]*+)*+"
_PAIR: Final = rare_pattern(rf"\s*<arg_key>({_UNTAGGED})</arg_key>\s*<arg_value>({_UNTAGGED})</arg_value>\s*")
_PAIRS: Final = rare_pattern(rf"(?:\s*<arg_key>{_UNTAGGED}</arg_key>\s*<arg_value>{_UNTAGGED}</arg_value>\s*)++")


def clean_name(name: str, offered: Collection[str]) -> str | None:
    """Return the offered tool that a name means exactly, or None."""
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


def may_be_prefixed(name: str) -> bool:
    """Return whether the beginning of a name is, or may become, one of the prefixes that are removed."""
    return name.startswith(_PREFIXES) or any(prefix.startswith(name) for prefix in _PREFIXES)


def _cleaner(name: str) -> list[str]:
    """Return a name with one thing removed, in each way."""
    found = [name.strip(), name.strip("\"'`"), _SUFFIX.sub("", name), _without_residue(name.lstrip())]
    found += [_HARMONY_LEAD.sub("", name), _TOKENS_BEFORE.sub("", name), _TAG_BEHIND.sub("", name)]
    numbered, _, number = name.removeprefix(_NUMBERED).rpartition("_")
    if numbered and number.isdecimal() and name.startswith(_NUMBERED):
        found.append(numbered)
    found += [name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)]
    return [changed for changed in found if changed != name]


def _without_residue(name: str) -> str:
    """Return a name without harmony's residue behind it."""
    found = _BEHIND_NAME.search(name)
    return name[: found.start()] if found is not None and _HARMONY.fullmatch(name, found.start()) else name


def read_tagged(name: str, offered: Collection[str]) -> tuple[str, str] | None:
    """Return the offered tool and the arguments, as JSON text, of a name with GLM's argument tags, or None."""
    start = name.find("<arg_key>")
    tagged = _PAIRS.fullmatch(name, start) if start > 0 else None
    cleaned = clean_name(name[:start], offered) if tagged is not None else None
    if tagged is None or cleaned is None:
        return None
    pairs = _PAIR.findall(name, start)
    values = {key.strip(): value for key, value in pairs}
    return (cleaned, _json.to_text(values)) if len(values) == len(pairs) else None


_STARTS: Final = frozenset[type]({ToolCallStart})
_HANDLED: Final = frozenset[type]({ToolCallStart, ToolCallEnd, ToolCallFailed})
_GROWING: Final = _HANDLED | {ToolCallDelta}


class ToolNames:
    """Cleans the names of structured calls. A `dragoman.protocol.Stage`."""

    __slots__ = ("_names", "_offered", "_tagged", "handles")

    acts_on = EVERY_KIND

    def __init__(self, offered: Collection[str]) -> None:
        self._offered = frozenset(offered)
        self._names: dict[int, str] = {}  # by part index, where a name was cleaned
        self._tagged: dict[int, str] = {}  # by part index, arguments that stood in the name
        self.handles: frozenset[type] = _HANDLED

    def feed(self, events: list[Event]) -> list[Event]:
        for event in of_kinds(events, _GROWING if self._names else _STARTS):
            if type(event) is not ToolCallStart or event.name not in self._offered:
                break
        else:
            return events
        out: list[Event] = []
        for event in events:
            match event:
                case ToolCallStart(index, _, name) if name not in self._offered:
                    self._start(event, index, name, out)
                case ToolCallDelta(index) if index in self._tagged:
                    pass  # its end says it again
                case ToolCallEnd(index, call) if index in self._tagged:
                    self._end_tagged(index, call, out)
                case ToolCallEnd(index, call) if index in self._names:
                    call = msgspec.structs.replace(call, name=self._names.pop(index))
                    out.append(ToolCallEnd(index, call))
                case ToolCallFailed(index) if index in self._names:
                    self._tagged.pop(index, None)
                    out.append(msgspec.structs.replace(event, name=self._names.pop(index)))
                case _:
                    out.append(event)
        return out

    def _end_tagged(self, index: int, call: ToolCall, out: list[Event]) -> None:
        """End a call whose arguments stood in its name; others beside them are a second reading."""
        tagged, name = self._tagged.pop(index), self._names.pop(index)
        if call.arguments not in ("", "{}") and not is_same(call.arguments, tagged):
            problem = f"tool call {name}: its name holds other arguments than came with it"
            out.append(ToolCallFailed(index, call.id, name, "contradicted", problem, call.arguments))
            return
        out.append(ToolCallDelta(index, tagged))
        out.append(ToolCallEnd(index, msgspec.structs.replace(call, name=name, arguments=tagged)))

    def _start(self, event: ToolCallStart, index: int, name: str, out: list[Event]) -> None:
        tagged = read_tagged(name, self._offered) if event.kind == "function" else None
        if tagged is not None:
            self._tagged[index] = tagged[1]
            self.handles = _GROWING
        cleaned = tagged[0] if tagged is not None else clean_name(name, self._offered)
        if cleaned is not None:
            self._names[index] = cleaned
            out.append(Deviation("mangled-name", f"call {index}", name[:100]))
            out.append(msgspec.structs.replace(event, name=cleaned))
            return
        import difflib  # only when a model calls a tool that was not offered

        near = difflib.get_close_matches(name, self._offered, n=3, cutoff=0.4)
        seen = f"{name[:80]}; nearest: {', '.join(near)}" if near else name[:80]
        out.append(Deviation("unknown-tool", f"call {index}", seen[:150]))
        out.append(event)
