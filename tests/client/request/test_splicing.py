"""A large body is written anew in steps; what is written is what `splice_fields` writes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman import _json
from dragoman.client.request.splicing import LARGE, splice_sized
from dragoman.codec.splicing import splice_fields

_NAMES = st.sampled_from(["model", "messages", "stream_options", "é", 'a"b', ""])
_VALUES = st.one_of(st.none(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=3))


@given(st.dictionaries(_NAMES, _VALUES), st.dictionaries(_NAMES, _VALUES), st.sampled_from([0, 65_535, 200_000]))
def test_a_large_body_is_spliced_as_a_small_one(fields: dict[str, Any], changes: dict[str, Any], size: int) -> None:
    kept = _json.Raw('[1,\r\n "\u2028"]'.encode())
    raw = {key: _json.raw(value) for key, value in fields.items()} | {"long": _json.raw("x" * size), "kept": kept}
    spliced = splice_fields(raw, changes)
    for large in (LARGE + 1, LARGE):
        body, written = splice_sized(large, raw, changes)
        assert body == _json.encode_members(written) == spliced
    assert _json.decode(spliced) == {
        **{key: value for key, value in {**fields, **changes}.items() if key not in changes or value is not None},
        "long": "x" * size,
        "kept": [1, "\u2028"],
    }
    assert bytes(kept) in spliced
