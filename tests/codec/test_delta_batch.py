"""What is read of lines that are alike is what a JSON reader says of each."""

import json

import pytest

from dragoman.codec.delta_batch import LastFrame, read_alike

KEY = b'"text"'


def line(text: str, **more: object) -> bytes:
    return json.dumps({"id": 1, "delta": {"text": text}, "end": None, **more}).encode()


def wire(inside: str) -> bytes:
    """A line whose string is written as it stands."""
    return b'{"delta": {"text": "%b"}, "end": 1}' % inside.encode()


def in_turn(lines: list[bytes]) -> list[str]:
    """The strings of lines, each read as the first one; "" where it may say something else."""
    last = LastFrame()
    last.learn(lines[0], KEY)
    return [last.read(each) for each in lines]


@pytest.mark.parametrize(
    "texts",
    [
        ["one"],
        ["one", "two", "three"],
        ['{"path": ', '"a\\b', '",\n', '"]', "\\ ", "\x00\x1f", "],["],
        ["é", "☃", "😀", "\x7f"],
        ['",', '"', ',"'],
        [" ", "\n", "\t"],
    ],
)
def test_it_gives_each_lines_string(texts: list[str]) -> None:
    lines = [line(text) for text in texts]
    assert read_alike(lines, KEY) == in_turn(lines) == texts


def test_escapes_are_read_in_their_own_line() -> None:
    lines = [wire("\\u00e9"), wire('\\"'), wire("\\n\\/")]
    assert read_alike(lines, KEY) == [json.loads(each)["delta"]["text"] for each in lines] == ["é", '"', "\n/"]
    assert in_turn(lines) == ["é", '"', "\n/"]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param([line("one"), line("two", more=1)], id="another field"),
        pytest.param([line("one"), line("two").replace(b"id", b"ix")], id="another key"),
        pytest.param([line("one"), line("two")[:-1]], id="no end"),
        pytest.param([line("one"), line("")], id="an empty string"),
        pytest.param([line("one", more={"text": "x"}), line("two", more={"text": "x"})], id="the key twice"),
        pytest.param([line("one", more="\\"), line("two", more="\\")], id="a backslash outside"),
        pytest.param([wire("one"), wire("\\ud83d")], id="half a character"),
        pytest.param([wire("one"), wire("\\x")], id="an unknown escape"),
        pytest.param([wire("one"), wire("\x01")], id="a control character"),
        pytest.param([wire("one"), wire('a", "b')], id="a string more"),
        pytest.param([wire("one"), wire('a", "more": "b')], id="a field more"),
        pytest.param([wire("a\\"), wire(',\n"b')], id="an end that is escaped"),
        pytest.param([wire("one"), wire("a\\"), wire(',"b')], id="the same, over two lines"),
        pytest.param([wire("one"), b'{"delta": {"text": "}, "end": 1}'], id="beginning and end in one"),
        pytest.param([b'{"delta": {"text": 1}}', b'{"delta": {"text": 1}}'], id="no string"),
        pytest.param([b'{"delta": {}}', b'{"delta": {}}'], id="no such key"),
        pytest.param([wire("one"), b'{"delta": {"text": "\xff"}, "end": 1}'], id="no UTF-8"),
    ],
)
def test_whatever_else_differs_is_left_to_the_reader_of_lines(lines: list[bytes]) -> None:
    assert read_alike(lines, KEY) is None
    assert "" in in_turn(lines)


def test_no_line_is_taken_that_a_json_reader_refuses() -> None:
    """Any two of these bytes at the end of one line and the beginning of the next."""
    pieces = ["", "a", "\\", '"', ",", "\\\\", '\\"', '","', '",\\n"', "]", "}"]
    lines_read = 0
    for one in pieces:
        for two in pieces:
            lines = [wire("x"), wire("x" + one), wire(two + "x")]
            found = read_alike(lines, KEY)
            if found is not None:
                assert found == [json.loads(each)["delta"]["text"] for each in lines], lines
                lines_read += 1
    assert lines_read > 20


def test_a_frame_of_another_kind_is_forgotten() -> None:
    last = LastFrame()
    last.learn(wire("one"), KEY)
    assert last.read(wire("two")) == "two"
    last.forget()
    assert last.read(wire("two")) == ""


def test_frames_that_are_never_alike_are_not_learned_for_ever() -> None:
    """What was learned last counts, or nothing: the reader takes it for the place of the frame before."""
    last = LastFrame()
    for number in range(100):
        last.learn(line("one", number=number), KEY)
        assert last.read(line("two", number=number + 1)) == ""
    assert last.read(line("two", number=99)) == "" and last.read(line("two", number=15)) == ""
