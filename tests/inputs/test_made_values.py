"""Our own values, made by a caller with a value of every kind in each field: taken as their types say, or refused."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dragoman import _json
from dragoman._json import Raw
from dragoman.decoding import decode
from dragoman.errors import UsageError
from dragoman.inputs.conversation import read_messages, read_tools
from dragoman.inputs.params import read_params
from dragoman.protocols import PROTOCOLS
from dragoman.types import (
    Media,
    Message,
    Native,
    Opaque,
    Origin,
    Params,
    Reasoning,
    Request,
    ResponseSchema,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
)
from for_each import for_each

ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
DEEP: Any = {}
for _ in range(50_000):  # more than any Python writes
    DEEP = {"a": DEEP}
VALUES: dict[str, Any] = {
    "None": None, "True": True, "0": 0, "-1": -1, "1.5": 1.5, "nan": math.nan, "huge": 10**5000,
    "''": "", "word": "foo",
    "control": "a\r\nX: 1\0", "long": "z" * 10_000, "bytes": b"ab", "[]": [], "['a']": ["a"], "{}": {},
    "{'a': 1}": {"a": 1}, "endless": ENDLESS, "deep": DEEP, "set": {1}, "object": object(), "type": int,
    "Raw": Raw(b'{"type":"object"}'), "Raw of no JSON": Raw(b"nope"), "Raw of nothing": Raw(b""), "Text": Text("hi"),
    "('a',)": ("a",), "{'a': Raw}": {"a": Raw(b"1")}, "{'a': Raw of no JSON}": {"a": Raw(b"nope")},
    "Native": Native("openai-chat", {"a": Raw(b"1")}), "Native of no protocol": Native("soap", {}),  # type: ignore[arg-type]
    "Native of a list": Native("openai-chat", []), "Native of no JSON": Native("openai-chat", {"a": Raw(b"{")}),  # type: ignore[arg-type]
    "Origin": Origin("openai-chat"), "Origin of 5": Origin(5),  # type: ignore[arg-type]
}  # fmt: skip
_TEXTS = {"''", "word", "control", "long"}
#: By a field's annotation as it stands in the code, the values that it takes.
TAKEN: dict[str, set[str]] = {
    "str": _TEXTS,
    "str | None": _TEXTS | {"None"},
    "bool": {"True"},
    "bool | None": {"True", "None"},
    "Native | None": {"None", "Native"},
    "Origin | None": {"None", "Origin"},
    "Raw": {"Raw"},
    "dict[str, Raw]": {"{}", "{'a': Raw}"},
    "ProtocolName": set(),
    "ProtocolName | None": {"None"},
    "Schema": {"None", "Raw", "{}", "{'a': 1}", "{'a': Raw}"},
}
#: What else some fields take, or do not.
ALSO = {("Media", "data"): {"None"}, ("ResponseSchema", "schema"): {"type"}}
NOT = {("ToolCall", "name"): {"''"}, ("Tool", "name"): {"''"}, ("Media", "data"): {"control"}}
CALL = ToolCall("c1", "f", "{}")


def said(part: Any) -> Any:
    """Read a part where it may stand."""
    match part:
        case ToolCall() | Thinking():
            turns = [Message("assistant", (part,))]
        case ToolResult():
            turns = [Message("assistant", (CALL,)), Message("tool", (part,))]
        case _:
            turns = [Message("user", (Text("q"), part)), Message("tool", (ToolResult("c1", "f", (part,)),))]
    return [read_messages([turn]) for turn in turns]


BUILT: list[tuple[Any, dict[str, Any], Callable[[Any], Any]]] = [
    (Text, {"text": "hi"}, said),
    (Thinking, {"text": "hm"}, said),
    (Media, {"kind": "image", "mime": "image/png", "data": "aGk=", "url": "https://example.com/a"}, said),
    (ToolCall, {"id": "c1", "name": "f", "arguments": "{}"}, said),
    (ToolResult, {"call_id": "c1", "name": "f", "parts": (Text("r"),)}, said),
    (Opaque, {"protocol": "openai-chat", "raw": Raw(b"{}")}, said),
    (Native, {"protocol": "openai-chat", "fields": {}}, lambda native: said(Text("hi", native=native))),
    (Origin, {"protocol": "openai-chat"}, lambda origin: read_messages([Message("user", (Text("q"),), None, origin)])),
    (Message, {"role": "user", "parts": (Text("q"),)}, lambda message: read_messages([message])),
    (Tool, {"name": "f"}, lambda tool: read_tools([tool])),
    (ResponseSchema, {"schema": {}}, lambda schema: read_params(Params(response_schema=schema), {})),
    (Reasoning, {}, lambda reasoning: read_params(None, {"reasoning": reasoning})),
]


def cases() -> Iterator[tuple[str, str, str, Callable[[], Any], bool]]:
    for kind, base, read in BUILT:
        for field in kind.__struct_fields__:
            annotation = kind.__annotations__[field]
            if annotation.startswith("tuple[") or annotation == "int | None":
                continue  # parts and numbers: read by their own functions, tried elsewhere
            place = (kind.__name__, field)
            taken = TAKEN[annotation] if "Literal" not in annotation and annotation not in _WORDS else set()
            right = (taken | ALSO.get(place, set())) - NOT.get(place, set())
            right |= {"None"} if annotation in ("Effort | None",) else set()
            for label, value in VALUES.items():
                yield (*place, label, lambda kind=kind, base=base, read=read, field=field, value=value: read(
                    kind(**{**base, field: value})
                ), label in right)  # fmt: skip


_WORDS = {"Role", "Effort | None"}


def test_each_field_takes_what_its_type_says_and_nothing_else() -> None:
    problems = []
    for kind, field, label, read, is_right in cases():
        try:
            read()
        except UsageError as problem:
            told = str(problem)
            if is_right:
                problems.append(f"{kind}.{field}={label} was refused: {told}")
            elif field not in told and kind.lower() not in told:
                problems.append(f"{kind}.{field}={label} names no place: {told}")
            elif len(told) > 300 or not told.isprintable():
                problems.append(f"{kind}.{field}={label}: an odd message: {told[:300]!r}")
        except Exception as problem:
            problems.append(f"{kind}.{field}={label}: {type(problem).__name__}: {problem}"[:200])
        else:
            if not is_right:
                problems.append(f"{kind}.{field}={label} was taken")
    assert problems == []


#: What JSON cannot say, in plain values.
UNSAYABLE: dict[str, Any] = {
    "endless": ENDLESS, "deep": DEEP, "object": object(), "nan": math.nan, "inf": [math.inf], "huge": 10**5000,
    "no JSON": Raw(b"nope"), "lenient": _json.LenientNumber("NaN"),
}  # fmt: skip


@for_each("label", UNSAYABLE)
def test_plain_values_that_json_cannot_say_are_refused(label: str) -> None:
    value = UNSAYABLE[label]
    for read in (
        lambda: read_messages([{"role": "user", "content": [{"type": "text", "text": value}]}]),
        lambda: read_messages([{"role": "user", "parts": [{"text": "a", "x": value}]}]),
        lambda: read_messages([{"role": "user", "content": "a", "x": value}]),
        lambda: read_tools([{"name": "f", "parameters": {"type": "object", "x": value}}]),
        lambda: read_tools([Tool("f", "", {"type": "object", "x": value})]),
        lambda: read_params({"response_schema": {"type": "object", "x": value}}, {}),
    ):
        with pytest.raises(UsageError, match="expected"):
            read()


def test_a_role_of_any_kind_is_told_in_a_line() -> None:
    for value in VALUES.values():
        with pytest.raises(UsageError, match="role") as told:
            read_messages([Message(value, (Text("a"),))])
        assert len(str(told.value)) < 200


def test_media_is_read_as_programs_and_answers_say_it() -> None:
    lines = base64.encodebytes(bytes(99)).decode()
    [told] = read_messages(
        [Message("user", (Media("image", "image/png", lines), Media("image", None, "", "https://e.example/a")))]
    )
    first, second = told.parts
    assert isinstance(first, Media) and first.data == lines.replace("\n", "")
    assert isinstance(second, Media) and second.data is None
    body = (
        b'{"choices":[{"message":{"role":"assistant","audio":{"id":"a1","transcript":"Hi."}},"finish_reason":"stop"}]}'
    )
    spoken = decode(body, "openai-chat").message
    asked = PROTOCOLS["openai-chat"].render_request(Request("m", read_messages(["Hello.", spoken, "Go on."])))
    assert b'"audio":{"id":"a1"}' in asked.http.body
