"""Clients cut what we write with `splitlines`: it must not find more lines than are meant."""

from __future__ import annotations

import msgspec
import pytest

from cases import counter
from conversations import call, reply
from dragoman import _json
from dragoman.events import Failure, unfold
from dragoman.protocols import PROTOCOLS
from dragoman.types import Text, Thinking

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
