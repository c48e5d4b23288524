"""Answers as coding agents met them: each read as it is meant, whole and in pieces of 1, 3 and 7 characters."""

from __future__ import annotations

from dragoman.events import Reply
from for_each import for_each
from found_answers import FOUND, TOOLS, Found
from test_written_calls import delivered, exact, play_with


def read(found: Found, size: int) -> Reply:
    return play_with(TOOLS, found.text, "stop", size)


def test_there_are_more_than_a_hundred():
    assert len(FOUND) >= 100 and len({found.name for found in FOUND}) == len(FOUND)


@for_each("found", FOUND, ids=lambda found: found.name)
def test_each_answer_is_read_as_it_is_meant(found: Found):
    for size in (len(found.text), 1, 3, 7):
        reply = read(found, size)
        assert exact(delivered(reply)) == exact(list(found.calls)), size
        assert [call.name for call in reply.failed_calls] == list(found.failed), size
        if found.left is not None:
            assert reply.text.strip() == found.left.strip(), size
        elif not (found.calls or found.failed):
            assert reply.text == found.text, size
        assert reply.thinking.strip() == found.thought, size
        assert reply.stop_reason == ("tool_use" if found.calls else "error" if found.failed else "stop"), size
