"""Nothing of an answer is lost: what was read of it is held, and comes back in its own protocol."""

from __future__ import annotations

from dragoman._json import Raw
from dragoman.events import Finish, Start, TextDelta, TextEnd, TextStart, fold, unfold
from dragoman.types import Native

NAME = "anthropic-messages"


def native(**fields: str) -> Native:
    return Native(NAME, {key: Raw(value.encode()) for key, value in fields.items()})


def test_a_reply_holds_what_the_end_told() -> None:
    said = [TextStart(0), TextDelta(0, "Hi"), TextEnd(0)]
    start, end = native(tier='"standard"', container="null"), native(container='{"id":"c"}')
    reply = fold([Start("m", native=start), *said, Finish("stop", native=end)])
    assert reply.native == native(tier='"standard"', container='{"id":"c"}')
    assert fold([Start("m"), *said, Finish("stop", native=end)]).native == end
    assert fold([Start("m", native=start), *said, Finish("stop")]).native == start
    assert fold(unfold(reply)) == reply
