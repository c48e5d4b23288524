"""The work of reading arguments grows with their text, whatever repeats in it, and depth ends in an error of ours."""

from __future__ import annotations

import itertools
import time

import pytest

from dragoman import _json
from dragoman.events import Event, Finish, Start, ToolCallDelta, ToolCallEnd, ToolCallFailed, ToolCallStart
from dragoman.stages.argument_repair.stage import ArgumentRepair
from dragoman.types import Tool
from for_each import for_each
from growth import calls_made
from profiles import some

SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "n": {"type": "integer"},
        "x": {"anyOf": [{"type": "object"}, {"type": "array"}, {"type": "string"}]},
        "any": {},
    },
}
TOOL = Tool("f", "", _json.raw(SCHEMA))
BEGINNINGS = ["", "{", '{"a": "', '{"a": ', "{'a': '", '{"tags": "[', '{"any": ["', '{"x": ', '```json\n{', '"{',
              '{"a": "x" y"', '{"a": “', '{"a": "x"}']  # fmt: skip
UNITS = ["\n", " ", "\t", "{", "}", "[", "]", '"', "'", '\\"', "\\", "//", "// \n", "/*", "/* */", "#", "# \n", ",",
         ":", '" //', '"/*', '" #', '", "', '":', '"}', '"]', '"} //', '{"a":', '["', "{'a':", "“", "”", "a", "5", "0",
         "-", "\\u", "\\ud83d", "\x01", "```", "```json\n", "<|x|>", "<｜x｜>", '" "', '", a: ', '"a": ', ';\n', '" , ',
         "'a', ", ',"k": "v", ', "True, ", "\ufeff", "},", "}, {", '{"a": 1}', "{}",
         '] ,"', '"\n\n\n', "a\n:", 'a "b" ']  # fmt: skip
ENDS = ["", '"}']


def read(text: str, step: int) -> list[Event]:
    stage = ArgumentRepair((TOOL,))
    out = stage.feed([Start(), ToolCallStart(0, "call_1", "f")])
    if text[:1] == "{":
        for start in range(0, len(text), step or len(text)):
            out += stage.feed([ToolCallDelta(0, text[start : start + step] if step else text)])
    failed = ToolCallFailed(0, "call_1", "f", "unreadable", "no", text)
    return [*out, *stage.feed([failed]), *stage.feed([Finish("other")])]


def work(text: str, step: int) -> int:
    return calls_made(lambda: read(text, step))


@for_each("unit", UNITS)
def test_the_work_grows_with_what_repeats(unit: str):
    for beginning, step in some(itertools.product(BEGINNINGS, (0, 9)), unit, 1):
        small, large = (work(beginning + unit * (size // len(unit)) + '"}', step) for size in (200, 800))
        assert large <= 4.6 * small + 60, (beginning, step)


@for_each("unit", ["{", '{"a":', "{'a':", '{"any":[', '"['])
@for_each("beginning", ["", '{"any":', '{"x":', '{"tags":"[\\"a\\",]'])
def test_depth_ends_in_an_error_of_ours(beginning: str, unit: str):
    out = read(beginning + unit * 100_000 + "]" * 100_000 + '"}', 0)
    assert isinstance(out[-2], ToolCallEnd if beginning.startswith('{"tags":"') and '"' not in unit else ToolCallFailed)
    assert isinstance(out[-1], Finish)


@pytest.mark.soak
def test_the_time_grows_with_what_repeats():
    """At four sizes the exponent is one: nothing is searched twice, not even by the library of patterns."""
    for beginning in BEGINNINGS:
        for unit in UNITS:
            for step in (0, 9):
                taken = []
                for size in (16_000, 128_000):
                    text = beginning + unit * (size // len(unit)) + '"}'
                    tries = []
                    for _ in range(3):
                        begun = time.process_time()
                        read(text, step)
                        tries.append(time.process_time() - begun)
                    taken.append(min(tries))
                assert taken[1] <= 0.02 + 8**1.2 * taken[0], (beginning, unit, step, taken)
