"""Fields of a head that are read at once are those that are read one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.gateway.messages import Limits
from dragoman.gateway.server.request_heads import BrokenRequest, decoded, read_fields

NAMES = st.sampled_from([b"Host", b"host", b"X-A", b"x-a", b"X-B", b"Content-Length", b"Cookie", b"COOKIE", b"x"])
#: What the parser lets through.
VALUES = st.lists(st.sampled_from([b"a", b",", b"\t", b" ", b"\xe9", b"\xff", b"Z"]), max_size=4).map(b"".join)
HEADS = st.lists(st.tuples(NAMES, VALUES), max_size=12)


def one_by_one(head: list[tuple[bytes, bytes]]) -> dict[str, str] | None:
    """None: a second Host."""
    fields: dict[str, str] = {}
    for name, value in head:
        key, text = name.decode("ascii").lower(), value.decode("latin-1")
        if key in fields and key == "host":
            return None
        fields[key] = f"{fields[key]}, {text}" if key in fields else text
    return fields


@given(HEADS)
def test_fields_are_read_at_once_as_one_by_one(head: list[tuple[bytes, bytes]]) -> None:
    lines = [part for field in head for part in field]
    expected = one_by_one(head)
    if expected is None:
        with pytest.raises(BrokenRequest) as refused:
            read_fields(lines, Limits())
        assert refused.value.failure.status == 400
    else:
        assert read_fields(lines, Limits()) == expected
        assert list(expected) == list(read_fields(lines, Limits()))


@given(HEADS, st.integers(0, 12))
def test_too_many_fields_are_refused_also_where_they_come_again(head: list[tuple[bytes, bytes]], most: int) -> None:
    lines = [part for field in head for part in field]
    if len(head) > most:
        with pytest.raises(BrokenRequest) as refused:
            read_fields(lines, Limits(fields=most))
        assert refused.value.failure.status == 431


def test_a_line_end_in_a_value_moves_no_value_to_another_name() -> None:
    # No parser lets one through; should one do it, nothing is guessed.
    with pytest.raises(BrokenRequest):
        read_fields([b"Host", b"a\nb", b"X", b"c"], Limits())
    assert decoded([]) == ((), [])
