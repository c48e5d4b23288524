"""Replies that the tests write in every protocol: one of each shape that a real answer takes."""

from __future__ import annotations

from dragoman.events import Reply
from dragoman.types import Part, StopReason, Text, Thinking, ToolCall, Usage

UNICODE = '{"city":"Zürich 東京 \\ud83c\\udf0d","note":"a\\"b\\\\c\\nd","days":3}'
NESTED = (
    '{"edits":[{"path":"a.py","lines":[1,2,{"x":null}],"keep":true},{"path":"b","lines":[]}],"ratio":1.50,"n":-2e3}'
)
LONG = '{"content":"' + "line of code = value + 1\\n" * 12 + '"}'


def call(number: int, arguments: str, name: str = "write_file") -> ToolCall:
    return ToolCall(f"call_{number:024d}", name, arguments)


SHAPES: dict[str, tuple[tuple[Part, ...], StopReason]] = {
    "text": ((Text("Hello, wörld. "), ), "stop"),
    "single": ((call(1, '{"city":"Paris"}', "get_weather"),), "tool_use"),
    "parallel": (tuple(call(n, f'{{"city":"C{n}"}}', "get_weather") for n in range(3)), "tool_use"),
    "same-twice": ((call(1, '{"city":"Rome"}', "get_weather"), call(2, '{"city":"Rome"}', "get_weather")), "tool_use"),
    "nested": ((call(1, NESTED),), "tool_use"),
    "unicode": ((call(1, UNICODE),), "tool_use"),
    "long": ((call(1, LONG),), "tool_use"),
    "empty": ((call(1, "{}", "ping"),), "tool_use"),
    "text-call": ((Text("Let me look."), call(1, NESTED)), "tool_use"),
    "thinking-call": ((Thinking("They want the weather."), call(1, UNICODE)), "tool_use"),
    "thinking-text": ((Thinking("Hm."), Text("Yes.")), "stop"),
    "text-call-text-call": (
        (Text("First."), call(1, '{"a":1}'), Text("Then."), call(2, '{"b":"two"}')),
        "tool_use",
    ),
    "length": ((Text("It goes on and"),), "length"),
}  # fmt: skip


def reply(shape: str) -> Reply:
    """The reply of that shape."""
    parts, reason = SHAPES[shape]
    return Reply(
        id="resp_0001",
        model="model-1",
        created=1_750_000_000,
        parts=parts,
        stop_reason=reason,
        native_reason=None,
        usage=Usage(input=120, output=34),
        cost=None,
        error=None,
        failed_calls=(),
        deviations=(),
    )
