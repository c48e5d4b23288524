"""OpenAI's filters of files and Gemini's: the same files pass both, or nothing is said."""

from __future__ import annotations

import operator
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.codec.hosted.file_filters import filter_text, read_filter
from for_each import for_each

EQ = {"type": "eq", "key": "a", "value": "x"}
GT = {"type": "gt", "key": "year", "value": 1990}
SIGNS = {"eq": operator.eq, "gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}

keys = st.sampled_from(["a", "b", "year", "_k1"])
numbers = st.one_of(st.integers(0, 5), st.sampled_from([0.5, 1.25, 1990]))
texts = st.sampled_from(["", "x", "y z", "AND", "1", "(", "ä", "a = 1"])
comparisons = st.one_of(
    st.builds(lambda key, value: {"type": "eq", "key": key, "value": value}, keys, st.one_of(numbers, texts)),
    st.builds(
        lambda kind, key, value: {"type": kind, "key": key, "value": value},
        st.sampled_from(sorted(SIGNS)),
        keys,
        numbers,
    ),
    st.builds(
        lambda key, values: {"type": "in", "key": key, "value": values},
        keys,
        st.lists(st.one_of(numbers, texts), min_size=1, max_size=3),
    ),
)
filters = st.recursive(
    comparisons,
    lambda inner: st.builds(
        lambda kind, found: {"type": kind, "filters": found},
        st.sampled_from(["and", "or"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)
files = st.dictionaries(keys, st.one_of(numbers, texts))


def passes(wanted: dict[str, Any], file: dict[str, Any]) -> bool:
    """Whether a file passes OpenAI's filter, as its documents say; what a file does not have is not compared."""
    kind = wanted["type"]
    if kind in ("and", "or"):
        return (all if kind == "and" else any)(passes(each, file) for each in wanted["filters"])
    if wanted["key"] not in file:
        return False
    has = file[wanted["key"]]
    if kind == "in":
        return any(isinstance(has, str) == isinstance(one, str) and has == one for one in wanted["value"])
    value = wanted["value"]
    return isinstance(has, str) == isinstance(value, str) and bool(SIGNS[kind](has, value))


def passes_text(text: str, file: dict[str, Any]) -> bool:
    """Whether a file passes AIP-160's text, read by Python: there too OR is put in parentheses."""
    names = re.compile(r'("[^"]*")|\b(AND|OR)\b|\b([A-Za-z_]\w*) (>=|<=|=|>|<) ("[^"]*"|[0-9.]+)')

    def put(match: re.Match[str]) -> str:
        if match[2]:
            return match[2].lower()
        return f"at({match[3]!r}, {match[4]!r}, {match[5]})" if match[3] else match[0]

    def at(key: str, sign: str, value: Any) -> bool:
        has = file.get(key)
        if has is None or isinstance(has, str) != isinstance(value, str):
            return False
        return bool(
            {"=": operator.eq, ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}[sign](
                has, value
            )
        )

    return bool(eval(names.sub(put, text), {"at": at}))


@given(filters, files)
def test_the_same_files_pass_a_filter_there_and_back(wanted: dict[str, Any], file: dict[str, Any]) -> None:
    text = filter_text(wanted)
    assert text is not None
    assert passes_text(text, file) == passes(wanted, file)
    back = read_filter(text)
    assert back is not None
    assert passes(back, file) == passes(wanted, file)
    assert filter_text(back) == text


@for_each(
    ("text", "wanted"),
    [
        ('a = "x"', EQ),
        ("a='x'", EQ),
        ("(a = \"x\")", EQ),
        ("year>1990", GT),
        ('a = "x" AND year > 1990', {"type": "and", "filters": [EQ, GT]}),
        # OR binds tighter than AND
        ('a = "x" OR year > 1990 AND a = "x"',
         {"type": "and", "filters": [{"type": "or", "filters": [EQ, GT]}, EQ]}),
        ('a = "x" OR (year > 1990 AND a = "x")',
         {"type": "or", "filters": [EQ, {"type": "and", "filters": [GT, EQ]}]}),
        ("k = 2.5", {"type": "eq", "key": "k", "value": 2.5}),
    ],
)  # fmt: skip
def test_a_text_is_read(text: str, wanted: dict[str, Any]) -> None:
    assert read_filter(text) == wanted


@for_each(
    "text",
    ["", "a", "a =", "= 1", "a = x", "a = true", 'a != "x"', 'a : "x"', 'NOT a = "x"', '-a = "x"', 'a = "x" b = "y"',
     'a = "x*"', 'a = "x\\""', "a.b = 1", "a = -1", "a = 1e3", 'a > "x"', "a = 01", "(a = 1", "a = 1)", "()",
     'a = 1 AND', 'OR a = 1', "AND = 1", "f(a) = 1", "a = 99999999999999999999", "a = 1 and b = 2", "a = null", None, 5,
     "(" * 40 + "a = 1" + ")" * 40, " AND ".join(["a = 1"] * 300)],
)  # fmt: skip
def test_a_text_of_another_meaning_is_not_read(text: Any) -> None:
    assert read_filter(text) is None


@for_each(
    "wanted",
    [
        {**EQ, "type": "ne"}, {"type": "nin", "key": "a", "value": ["x"]}, {**EQ, "value": True}, {**EQ, "value": None},
        {**EQ, "value": 'a"b'}, {**EQ, "value": "a*"}, {**EQ, "value": "a\\"}, {**EQ, "value": "a\nb"},
        {**EQ, "key": "a.b"}, {**EQ, "key": ""}, {**EQ, "key": "OR"}, {**EQ, "key": "a b"}, {**GT, "value": "x"},
        {**GT, "value": -1}, {**GT, "value": 1e300}, {**GT, "value": 1e-9}, {**GT, "value": 1 << 60},
        {"type": "and", "filters": []}, {"type": "and", "filters": [EQ, {**EQ, "type": "ne"}]}, {"type": "not"},
        {**EQ, "more": 1}, {"type": "in", "key": "a", "value": []}, {"type": "in", "key": "a", "value": "x"},
        {"type": "in", "key": "a", "value": ["x", None]}, {"type": ["eq"]}, [], "a", None,
        {"type": "or", "filters": [EQ] * 300}, {**EQ, "value": ["x"]}, {**GT, "value": float("nan")},
    ],
)  # fmt: skip
def test_a_filter_of_another_meaning_is_not_said(wanted: Any) -> None:
    assert filter_text(wanted) is None


def test_a_filter_in_filters_without_end_is_not_said() -> None:
    deep: dict[str, Any] = dict(EQ)
    for _ in range(5000):
        deep = {"type": "and", "filters": [deep]}
    assert filter_text(deep) is None
