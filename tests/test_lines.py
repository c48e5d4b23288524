"""Clients cut what we write with `splitlines`: it must not find more lines than are meant."""

from __future__ import annotations

import msgspec
import pytest

from cases import counter
from conversations import call, reply
from dragoman import _json
from dragoman._json import Raw
from dragoman.events import (
    Event,
    Failure,
    Finish,
    PartEvent,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    unfold,
)
from dragoman.protocol import ReplyStyle
from dragoman.protocols import PROTOCOLS
from dragoman.types import Media, Native, Opaque, ProtocolName, Text, Thinking, ToolCall, Usage

#: Every character that `splitlines` takes for the end of a line.
LINE_ENDS = "a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i\rj\nk"
SAID = msgspec.structs.replace(
    reply("text"),
    parts=(Thinking(f"{LINE_ENDS}?"), Text(LINE_ENDS), call(1, f'{{"a": "\x85 \u2028 \u2029", "{chr(0x2028)}": 1}}')),
    stop_reason="tool_use",
)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_stream_has_no_lines_but_its_own(name: str) -> None:
    encoder = PROTOCOLS[name].encoder(new_id=counter(), model=f"m{LINE_ENDS}", created=1_750_000_000)
    *events, finish = unfold(SAID)
    wire = encoder.encode([*events, Failure("overloaded", LINE_ENDS), finish]).decode()
    assert wire.splitlines() == wire.replace("\r\n", "\n").removesuffix("\n").split("\n")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_what_was_said_is_still_the_same(name: str) -> None:
    encoder = PROTOCOLS[name].encoder(new_id=counter(), model="m", created=1_750_000_000)
    wire = encoder.encode(unfold(SAID))
    decoder = PROTOCOLS[name].decoder(new_id=counter())
    events = [*decoder.feed(wire), *decoder.close()]
    assert "".join(event.text for event in events if type(event).__name__ == "TextDelta") == LINE_ENDS
    arguments = "".join(event.text for event in events if type(event).__name__ == "ToolCallDelta")
    assert _json.decode(arguments) == {"a": "\x85 \u2028 \u2029", "\u2028": 1}


def test_only_what_must_be_is_escaped() -> None:
    assert _json.encode_text("grün ∂ €") == '"grün ∂ €"'.encode()
    assert _json.encode({"x": "\u2028"}) == b'{"x":"\\u2028"}'


#: JSON whose white space ends lines, as in bodies that are printed for people.
PRINTED = msgspec.Raw(b'{\r\n  "a": [1.50,\n\n\t"x"\r]\n}')


def printed_item(name: ProtocolName) -> Opaque:
    return Opaque(name, msgspec.Raw(b'{\n "id": "ws_1",\r\n "type": "web_search_call",\n "status":\n"completed"\n}'))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_raw_json_breaks_no_frame(name: ProtocolName) -> None:
    """Every place of an event that takes raw JSON holds some with line ends in it."""
    native = Native(name, {"x_field": PRINTED, "annotations": Raw(b"[\n{\r}\n]"), "citations": Raw(b"[\n{\r}\n]")})
    tool_call = ToolCall("call_1", "f", '{\n"a":\r1\n}', native=native)
    events: list[Event] = [
        Start("id_1", "m", 1, native),
        TextStart(0, native), TextDelta(0, "t"), TextEnd(0, native=native),
        ThinkingStart(1, native), ThinkingDelta(1, "t"), ThinkingEnd(1, "c2VhbA==", native=native),
        ToolCallStart(2, "call_1", "f", native=native), ToolCallDelta(2, tool_call.arguments),
        ToolCallEnd(2, tool_call),
        PartEvent(3, printed_item(name)), PartEvent(4, Media("image", "image/png", "QUJD", native=native)),
        PartEvent(5, Opaque(name, PRINTED)),
        Finish("tool_use", usage=Usage(1, 2), native=native),
    ]  # fmt: skip
    style = ReplyStyle(echo={"metadata": PRINTED, "tools": Raw(b"[\n]")})
    encoder = PROTOCOLS[name].encoder(new_id=counter(), model="m", created=1, style=style)
    frames = 0
    for line in encoder.encode(events).replace(b"\r\n", b"\n").split(b"\n"):
        assert b"\r" not in line
        text = line.removeprefix(b"data: ")
        if text and text != b"[DONE]" and not line.startswith(b"event: "):
            assert isinstance(_json.decode(text), dict), line
            frames += 1
    assert frames >= 4


def test_an_item_of_a_whole_body_that_is_printed_streams() -> None:
    body = msgspec.json.format(
        b'{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"id":"ws_1",'
        b'"type":"web_search_call","status":"completed","action":{"type":"search","query":"q","n":1.50}},{"id":"m_1",'
        b'"type":"message","role":"assistant","content":[{"type":"output_text","text":"yes"},{"type":"odd","x":[1]}]}]}',
        indent=2,
    )
    decoder = PROTOCOLS["openai-responses"].decoder(new_id=counter())
    events = [*decoder.feed(body), *decoder.close()]
    raws = [bytes(event.part.raw) for event in events if type(event) is PartEvent and type(event.part) is Opaque]
    assert raws[0] == (
        b'{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"q","n":1.50}}'
    )
    assert raws[1] == b'{"type":"odd","x":[1]}'
