"""Fields of a response's head that are read at once are those that are read one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.http.connection import read_fields

NAMES = st.sampled_from([b"Server", b"server", b"X-A", b"x-a", b"X-\xc4", b"x-\xe4", b"Content-Type"])
#: The parser is lenient with values: any byte may come, also a line's end.
VALUES = st.lists(st.sampled_from([b"a", b",", b" ", b"\n", b"\r", b"\0", b"\xe9"]), max_size=4).map(b"".join)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=12))
def test_fields_are_read_at_once_as_one_by_one(head: list[tuple[bytes, bytes]]) -> None:
    expected: dict[str, str] = {}
    for name, value in head:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        expected[key] = f"{expected[key]}, {text}" if key in expected else text
    found = read_fields([part for field in head for part in field])
    assert found == expected
    assert list(found) == list(expected)
