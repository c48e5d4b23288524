"""Requests and answers in which one list, or one object, has very many small members: each that a wire may have.

Nothing here lists fields. The places are those of the vendors' types, and every name that our own Structs know in every
object of the least body, so that a list which is added is found by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import vendor_answers
import vendor_streams
import vendor_types
from wire_shapes import changed, names_of, objects_in

Path = tuple[str | int, ...]
_MARK: Final = "@many@"
#: Small members of a list, as JSON texts. `%d` becomes a number of its own.
SMALL: Final = (
    "1", '""', "[]", "{}", '{"type":"text","text":"a"}', '{"text":"a"}', '{"role":"user","content":"a"}',
    '{"role":"user","parts":[{"text":"a"}]}', '{"type":"t%d"}', '{"a%d":1}', '{"index":%d,"id":"c%d"}',
    '{"index":0,"delta":{}}',
)  # fmt: skip
#: Members of a call's list.
CALLS: Final = (
    '{"index":0,"id":"c","function":{"name":"f","arguments":" "}}', '{"index":%d,"function":{"name":"f"}}',
    '{"index":%d,"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}',
    '{"function":{"name":"f","arguments":{}}}', '{"functionCall":{"name":"f","args":{}}}', '{"functionCall":{}}',
    '{"type":"tool_use","id":"c%d","name":"f","input":{}}', '{"type":"tool_result","tool_use_id":"c%d","content":""}',
    '{"type":"function_call","call_id":"c%d","name":"f","arguments":"{}"}',
    '{"type":"function_call_output","call_id":"c%d","output":""}', '{"role":"tool","tool_call_id":"c%d","content":"a"}',
)  # fmt: skip


class Many(NamedTuple):
    """A body with a mark where the members stand. `unit`: one of them; `is_object`: they have keys."""

    name: str
    body: Any
    unit: str
    is_object: bool

    def text(self, count: int) -> str:
        """The body with so many members."""
        return self.fill(json.dumps(self.body), count)

    def fill(self, body: str, count: int) -> str:
        """What is written of a body, with so many members in their place."""
        pieces = self.unit.split("%d")
        units = ",".join([str(number).join(pieces) for number in range(count)] if len(pieces) > 1 else pieces * count)
        return body.replace(f'"{_MARK}"', f"{{{units}}}" if self.is_object else f"[{units}]")


def _put(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    step, *rest = path
    if isinstance(value, dict):
        return {**value, step: _put(value[step], tuple(rest), new)}
    return [_put(each, tuple(rest), new) if number == step else each for number, each in enumerate(value)]


def _values(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in inner:
        yield from _values(each, (*path, step))


def _name(path: Path) -> str:
    return ".".join("[]" if isinstance(step, int) else step for step in path)


def of_bodies(bodies: Iterator[Any]) -> Iterator[Many]:
    """Each list in these with its own member again and again, and with small ones; each object with unknown keys."""
    seen: set[str] = set()
    for body in bodies:
        for path, value in _values(body):
            name = _name(path)
            if not path or name in seen or not isinstance(value, list | dict):
                continue
            seen.add(name)
            marked = _put(body, path, _MARK)
            if isinstance(value, dict):
                yield Many(f"{name} keys", marked, '"k%d":1', True)
                continue
            own = [json.dumps(value[0])] if value else []
            for unit in dict.fromkeys((*own, *SMALL)):
                yield Many(f"{name} {unit}", marked, unit, False)


def of_names(protocol: str, base: Any) -> Iterator[Many]:
    """Every name that the protocol's Structs know, in each object of a body, as a list of each small member."""
    for path in objects_in(base):
        for field in names_of(protocol):
            marked = changed(base, path, field, _MARK)
            for unit in (*SMALL, *CALLS):
                yield Many(f"{_name((*path, field))} {unit}", marked, unit, False)
            yield Many(f"{_name((*path, field))} keys", marked, '"k%d":1', True)
        yield Many(f"{_name(path)} unknown keys", {"@": 1, **_unknown(base, path)}, '"k%d":1', True)


def _unknown(base: Any, path: Path) -> Any:
    return changed(base, path, "neverHeardOf", _MARK)


def requests(protocol: str) -> Iterator[Many]:
    """Those of requests."""
    yield from of_bodies(case.body for case in vendor_types.cases(protocol))
    yield from of_names(protocol, next(iter(vendor_types.cases(protocol))).base)


def answers(protocol: str) -> Iterator[Many]:
    """Those of whole answers."""
    yield from of_bodies(case.body for case in vendor_answers.cases(protocol))
    yield from of_names(protocol, vendor_answers.LEAST[protocol])


def streams(protocol: str) -> Iterator[Many]:
    """Those of streams: `body` is the list of events."""
    yield from of_bodies(case.body for case in vendor_streams.cases(protocol))


def stream_of(many: Many, protocol: str, count: int) -> bytes:
    """A stream with so many members."""
    events = [json.loads(many._replace(body=_MARK).text(count)) if event == _MARK else event for event in many.body]
    return many.fill(vendor_streams.stream(events, protocol).decode(), count).encode()
