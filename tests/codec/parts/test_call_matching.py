"""Which fragment belongs to which call: every dialect of index, id and name, over OpenAI Chat's bytes."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any, NamedTuple

from dragoman.events import Event, Reply, fold
from dragoman.protocols.openai_chat.response.decode import Decoder
from for_each import for_each
from grammar import check

PARIS, OSLO = '{"city":"Paris"}', '{"city":"Oslo"}'
OFFERED = frozenset({"get_weather", "terminal", "ping", "get_weather_map", "getget"})
MADE = None  # an id that the wire did not give


def piece(index: Any = ..., id: Any = ..., name: Any = ..., arguments: Any = ...) -> dict[str, Any]:
    """An entry of `tool_calls`; what is left out is absent."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not ...}
    fields = {key: value for key, value in (("index", index), ("id", id)) if value is not ...}
    return {**fields, "type": "function", **({"function": function} if function else {})}


def chunk(delta: dict[str, Any], finish: str | None = None, **beside: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, **beside}
    return b"data: %b\n\n" % json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode()


def stream(*chunks: list[dict[str, Any]], finish: str = "tool_calls") -> bytes:
    deltas = [chunk({"tool_calls": pieces}) for pieces in chunks]
    return b"".join([chunk({"role": "assistant", "content": None}), *deltas, chunk({}, finish), b"data: [DONE]\n\n"])


def decode(pieces: list[bytes], offered: frozenset[str] = OFFERED) -> list[Event]:
    numbers = itertools.count()
    decoder = Decoder(new_id=lambda: f"{next(numbers):024d}", offered_names=offered)
    events = [event for data in pieces for event in decoder.feed(data)]
    return check([*events, *decoder.close()])


def calls_of(reply: Reply) -> list[tuple[str | None, str, Any]]:
    return [
        (MADE if call.id.startswith("call_0000") else call.id, call.name, call.values()) for call in reply.tool_calls
    ]


class Dialect(NamedTuple):
    chunks: list[list[dict[str, Any]]]
    calls: list[tuple[str | None, str, Any]]
    codes: set[str]


CITY, NORTH = {"city": "Paris"}, {"city": "Oslo"}
TWO = [("a", "get_weather", CITY), ("b", "get_weather", NORTH)]
ONE = [("a", "get_weather", CITY)]

DIALECTS: dict[str, Dialect] = {
    "as specified": Dialect(
        [
            [piece(0, "a", "get_weather", "")],
            [piece(0, arguments=PARIS[:5])],
            [piece(0, arguments=PARIS[5:])],
            [piece(1, "b", "get_weather", "")],
            [piece(1, arguments=OSLO)],
        ],
        TWO,
        set(),
    ),
    "interleaved deltas": Dialect(
        [
            [piece(0, "a", "get_weather", ""), piece(1, "b", "get_weather", "")],
            [piece(0, arguments=PARIS[:5])],
            [piece(1, arguments=OSLO[:3])],
            [piece(0, arguments=PARIS[5:])],
            [piece(1, arguments=OSLO[3:])],
        ],
        TWO,
        set(),
    ),
    "all at index 0, whole": Dialect(
        [[piece(0, "a", "get_weather", PARIS)], [piece(0, "b", "get_weather", OSLO)]], TWO, {"reused-index"}
    ),
    "all at index 0, whole, in one chunk": Dialect(
        [[piece(0, "a", "get_weather", PARIS), piece(0, "b", "get_weather", OSLO)]], TWO, {"reused-index"}
    ),
    "all at index 0, streamed": Dialect(
        [
            [piece(0, "a", "terminal", "")],
            [piece(0, arguments=PARIS[:7])],
            [piece(0, arguments=PARIS[7:])],
            [piece(0, "b", "terminal", "")],
            [piece(0, arguments=OSLO[:7])],
            [piece(0, arguments=OSLO[7:])],
        ],
        [("a", "terminal", CITY), ("b", "terminal", NORTH)],
        {"reused-index"},
    ),
    "all at index 0, streamed, without arguments in the first": Dialect(
        [[piece(0, "a", "ping", "")], [piece(0, "b", "terminal", "")], [piece(0, arguments=OSLO)]],
        [("a", "ping", {}), ("b", "terminal", NORTH)],
        {"reused-index", "missing-arguments"},
    ),
    "all at index 0, announced at once, then arguments under each id": Dialect(
        [
            [piece(0, "a", "terminal", ""), piece(0, "b", "ping", "")],
            [piece(0, "a", arguments=PARIS)],
            [piece(0, "b", arguments=OSLO)],
        ],
        [("a", "terminal", CITY), ("b", "ping", NORTH)],
        {"reused-index"},
    ),
    "no index, whole": Dialect(
        [[piece(id="a", name="get_weather", arguments=PARIS)], [piece(id="b", name="get_weather", arguments=OSLO)]],
        TWO,
        {"missing-index"},
    ),
    "no index, whole, in one chunk": Dialect(
        [[piece(id="a", name="get_weather", arguments=PARIS), piece(id="b", name="get_weather", arguments=OSLO)]],
        TWO,
        {"missing-index"},
    ),
    "no index, streamed": Dialect(
        [
            [piece(id="a", name="get_weather", arguments=PARIS[:4])],
            [piece(arguments=PARIS[4:])],
            [piece(id="b", name="get_weather", arguments="")],
            [piece(arguments=OSLO[:4])],
            [piece(arguments=OSLO[4:])],
        ],
        TWO,
        {"missing-index"},
    ),
    "no index, no id, told apart by name": Dialect(
        [
            [piece(name="terminal", arguments="")],
            [piece(arguments=PARIS)],
            [piece(name="get_weather", arguments="")],
            [piece(arguments=OSLO)],
        ],
        [(MADE, "terminal", CITY), (MADE, "get_weather", NORTH)],
        {"missing-index", "missing-id"},
    ),
    "no index, no id, the same name twice": Dialect(
        [[piece(name="terminal", arguments=PARIS)], [piece(name="terminal", arguments=OSLO)]],
        [(MADE, "terminal", CITY), (MADE, "terminal", NORTH)],
        {"missing-index", "missing-id"},
    ),
    "index null": Dialect(
        [
            [piece(None, "a", "get_weather", PARIS[:4])],
            [piece(None, None, None, PARIS[4:])],
            [piece(None, "b", "get_weather", OSLO)],
        ],
        TWO,
        {"missing-index"},
    ),
    "index as text": Dialect(
        [
            [piece("0", "a", "get_weather", "")],
            [piece("0", arguments=PARIS)],
            [piece("1", "b", "get_weather", "")],
            [piece("1", arguments=OSLO)],
        ],
        TWO,
        {"odd-index"},
    ),
    "index from 1": Dialect(
        [[piece(1, "a", "get_weather", PARIS)], [piece(2, "b", "get_weather", OSLO)]], TWO, {"odd-index"}
    ),
    "index with gaps, downwards": Dialect(
        [
            [piece(7, "a", "get_weather", PARIS[:3])],
            [piece(7, arguments=PARIS[3:])],
            [piece(3, "b", "get_weather", OSLO)],
        ],
        TWO,
        {"odd-index"},
    ),
    "negative index": Dialect([[piece(-1, "a", "get_weather", "")], [piece(-1, arguments=PARIS)]], ONE, {"odd-index"}),
    "index twice in one chunk": Dialect(
        [[piece(0, "a", "get_weather", ""), piece(0, arguments=PARIS[:4])], [piece(0, arguments=PARIS[4:])]], ONE, set()
    ),
    "index grows with every fragment": Dialect(
        [
            [piece(0, "a", "get_weather", PARIS[:4])],
            [piece(1, arguments=PARIS[4:8])],
            [piece(2, arguments=PARIS[8:])],
        ],
        ONE,
        {"odd-index"},
    ),
    "no id": Dialect(
        [[piece(0, name="get_weather", arguments="")], [piece(0, arguments=PARIS)]],
        [(MADE, "get_weather", CITY)],
        {"missing-id"},
    ),
    "empty id": Dialect(
        [[piece(0, "", "get_weather", "")], [piece(0, "", arguments=PARIS)], [piece(1, "", "get_weather", OSLO)]],
        [(MADE, "get_weather", CITY), (MADE, "get_weather", NORTH)],
        {"missing-id"},
    ),
    "empty id on what follows": Dialect(
        [[piece(0, "a", "get_weather", "")], [piece(0, "", "", PARIS[:4])], [piece(0, "", "", PARIS[4:])]], ONE, set()
    ),
    "late id": Dialect(
        [[piece(0, name="get_weather", arguments="")], [piece(0, "a", arguments=PARIS)]], ONE, {"late-id"}
    ),
    "late id with the name again": Dialect(
        [[piece(0, name="get_weather", arguments="")], [piece(0, "a", "get_weather", PARIS)]], ONE, {"late-id"}
    ),
    "the same id at two indices, the second without a name": Dialect(
        [[piece(0, "a", "get_weather", PARIS[:6])], [piece(1, "a", arguments=PARIS[6:])]], ONE, {"duplicate-id"}
    ),
    "the same id at two indices, both named": Dialect(
        [[piece(0, "a", "get_weather", PARIS)], [piece(1, "a", "get_weather", OSLO)]],
        [("a", "get_weather", CITY), (MADE, "get_weather", NORTH)],
        {"duplicate-id"},
    ),
    "the same id at two indices, both named, streamed": Dialect(
        [
            [piece(0, "a", "get_weather", "")],
            [piece(0, arguments=PARIS)],
            [piece(1, "a", "terminal", "")],
            [piece(1, arguments=OSLO[:6])],
            [piece(1, arguments=OSLO[6:])],
        ],
        [("a", "get_weather", CITY), (MADE, "terminal", NORTH)],
        {"duplicate-id"},
    ),
    "a new id on every chunk, without a name": Dialect(
        [
            [piece(0, "a", "get_weather", "")],
            [piece(0, "b", "", PARIS[:5])],
            [piece(0, "c", None, PARIS[5:9])],
            [piece(0, "d", arguments=PARIS[9:])],
        ],
        ONE,
        {"changing-id"},
    ),
    "a new id on every chunk, with the name again": Dialect(
        [
            [piece(0, "a", "get_weather", PARIS[:5])],
            [piece(0, "b", "get_weather", PARIS[5:9])],
            [piece(0, "c", "get_weather", PARIS[9:])],
        ],
        ONE,
        {"changing-id", "repeated-name"},
    ),
    "a new id and another name at a used index": Dialect(
        [[piece(0, "a", "get_weather", PARIS)], [piece(0, "b", "terminal", "")], [piece(0, arguments=OSLO)]],
        [("a", "get_weather", CITY), ("b", "terminal", NORTH)],
        {"reused-index"},
    ),
    "name again in every chunk": Dialect(
        [
            [piece(0, "a", "get_weather", "")],
            [piece(0, "a", "get_weather", PARIS[:5])],
            [piece(0, "a", "get_weather", PARIS[5:])],
        ],
        ONE,
        {"repeated-name"},
    ),
    "name again in every chunk, without the id": Dialect(
        [
            [piece(0, "a", "terminal", PARIS[:5])],
            [piece(0, None, "terminal", PARIS[5:9])],
            [piece(0, None, "terminal", PARIS[9:])],
        ],
        [("a", "terminal", CITY)],
        {"repeated-name"},
    ),
    "name in pieces": Dialect(
        [
            [piece(0, "a", "get_", "")],
            [piece(0, name="wea")],
            [piece(0, name="ther", arguments=PARIS[:5])],
            [piece(0, arguments=PARIS[5:])],
        ],
        ONE,
        {"split-name"},
    ),
    "name in pieces, the id again": Dialect(
        [[piece(0, "a", "get_wea", "")], [piece(0, "a", "ther", PARIS)]], ONE, {"split-name"}
    ),
    "name in pieces, one of which is an offered name": Dialect(
        [[piece(0, "a", "get_weather", "")], [piece(0, name="_map", arguments=PARIS)]],
        [("a", "get_weather_map", CITY)],
        {"split-name"},
    ),
    "an offered name that begins another": Dialect(
        [[piece(0, "a", "get_weather", "")], [piece(0, arguments=PARIS[:5])], [piece(0, arguments=PARIS[5:])]],
        ONE,
        set(),
    ),
    "late name": Dialect(
        [[piece(0, "a", arguments="")], [piece(0, "a", "get_weather", PARIS)]], ONE, {"late-name"}
    ),
    "late name, after arguments": Dialect(
        [[piece(0, "a", arguments=PARIS[:5])], [piece(0, arguments=PARIS[5:])], [piece(0, name="get_weather")]],
        ONE,
        {"late-name"},
    ),
    "id alone, then name, then arguments": Dialect(
        [[piece(0, "a")], [piece(0, None, "get_weather", "")], [piece(0, None, None, PARIS)]], ONE, {"late-name"}
    ),
    "whole call twice under one id": Dialect(
        [[piece(0, "a", "get_weather", PARIS)], [piece(0, "a", "get_weather", PARIS)]], ONE, {"duplicate-call"}
    ),
    "whole call twice under one id, at another index": Dialect(
        [[piece(0, "a", "get_weather", PARIS)], [piece(1, "a", "get_weather", PARIS)]], ONE, {"duplicate-call"}
    ),
    "whole call again under one id, other arguments": Dialect(
        [[piece(0, "a", "get_weather", PARIS)], [piece(0, "a", "get_weather", OSLO)]],
        [("a", "get_weather", CITY), (MADE, "get_weather", NORTH)],
        {"duplicate-id"},
    ),
    "whole call again under one id, another name": Dialect(
        [[piece(0, "a", "get_weather", PARIS)], [piece(0, "a", "terminal", PARIS)]],
        [("a", "get_weather", CITY), (MADE, "terminal", CITY)],
        {"duplicate-id"},
    ),
    "whole call again under one id, streamed": Dialect(
        [
            [piece(0, "a", "get_weather", PARIS)],
            [piece(0, "a", "get_weather", "")],
            [piece(0, arguments=PARIS[:4])],
            [piece(0, arguments=PARIS[4:])],
        ],
        ONE,
        {"duplicate-call"},
    ),
    "identical parallel calls": Dialect(
        [[piece(0, "a", "get_weather", PARIS), piece(1, "b", "get_weather", PARIS)]],
        [("a", "get_weather", CITY), ("b", "get_weather", CITY)],
        set(),
    ),
    "identical parallel calls at one index": Dialect(
        [[piece(0, "a", "get_weather", PARIS)], [piece(0, "b", "get_weather", PARIS)]],
        [("a", "get_weather", CITY), ("b", "get_weather", CITY)],
        {"reused-index"},
    ),
    "identical parallel calls without ids": Dialect(
        [[piece(0, name="get_weather", arguments=PARIS), piece(1, name="get_weather", arguments=PARIS)]],
        [(MADE, "get_weather", CITY), (MADE, "get_weather", CITY)],
        {"missing-id"},
    ),
    "an empty fragment after the end": Dialect(
        [[piece(0, "a", "get_weather", PARIS)], [piece(0, arguments="")], [piece(0, "", "", "")]], ONE, set()
    ),
    "{} before the real arguments": Dialect(
        [[piece(0, "a", "get_weather", "{}")], [piece(0, arguments=PARIS[:4])], [piece(0, arguments=PARIS[4:])]],
        ONE,
        {"placeholder-arguments"},
    ),
    "{} before the real arguments, the id again": Dialect(
        [[piece(0, "a", "get_weather", "{}")], [piece(0, "a", "get_weather", PARIS)]], ONE, {"placeholder-arguments"}
    ),
    "null before the real arguments": Dialect(
        [[piece(0, "a", "get_weather", "null")], [piece(0, arguments=PARIS)]], ONE, {"placeholder-arguments"}
    ),
    "arguments absent, null, empty": Dialect(
        [
            [piece(0, "a", "ping")],
            [piece(1, "b", "ping", None)],
            [piece(2, "c", "ping", "")],
            [piece(3, "d", "ping", "null")],
        ],
        [("a", "ping", {}), ("b", "ping", {}), ("c", "ping", {}), ("d", "ping", {})],
        {"missing-arguments"},
    ),
    "two objects in one call": Dialect(
        [[piece(0, "a", "get_weather", PARIS + OSLO)]],
        [("a", "get_weather", CITY), (MADE, "get_weather", NORTH)],
        {"concatenated-calls"},
    ),
    "two objects in one call, streamed": Dialect(
        [[piece(0, "a", "get_weather", PARIS + OSLO[:4])], [piece(0, arguments=OSLO[4:])]],
        [("a", "get_weather", CITY), (MADE, "get_weather", NORTH)],
        {"concatenated-calls"},
    ),
    "the same object twice in one call": Dialect(
        [[piece(0, "a", "get_weather", PARIS)], [piece(0, arguments=PARIS)]], ONE, {"repeated-arguments"}
    ),
    "arguments as an object": Dialect(
        [[piece(0, "a", "get_weather", {"city": "Paris"})]], ONE, {"arguments-type"}
    ),
    "arguments as an object, twice at one index": Dialect(
        [[piece(0, "a", "get_weather", {"city": "Paris"})], [piece(0, "b", "get_weather", {"city": "Oslo"})]],
        TWO,
        {"arguments-type", "reused-index"},
    ),
}  # fmt: skip


@for_each("name", DIALECTS)
def test_dialect(name: str) -> None:
    dialect = DIALECTS[name]
    reply = fold(decode([stream(*dialect.chunks)]))
    assert calls_of(reply) == dialect.calls
    assert reply.error is None
    assert reply.stop_reason == "tool_use"
    ids = [call.id for call in reply.tool_calls]
    assert len(set(ids)) == len(ids)
    codes = {deviation.code for deviation in reply.deviations}
    assert dialect.codes <= codes
    if not dialect.codes:
        assert codes <= {"missing-arguments"}


@for_each("name", DIALECTS)
def test_dialect_however_it_is_cut(name: str) -> None:
    wire = stream(*DIALECTS[name].chunks)
    whole = decode([wire])
    assert decode([wire[at : at + 1] for at in range(len(wire))]) == whole
    dice = random.Random(name)
    for _ in range(25):
        cuts = sorted(dice.sample(range(len(wire)), 5))
        assert decode([wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]) == whole


@for_each("name", DIALECTS)
def test_a_cut_stream_delivers_no_part_of_a_call(name: str) -> None:
    dialect = DIALECTS[name]
    wire = stream(*dialect.chunks)
    end = wire.index(b'"finish_reason": "tool_calls"')
    possible = [values for _, _, values in dialect.calls]
    for cut in range(0, end, 7):
        reply = fold(decode([wire[:cut]]))
        assert reply.error is not None
        assert reply.stop_reason == "error"
        for _, _, values in calls_of(reply):
            assert values in possible
            assert values != {}


# ---------------------------------------------------------------- calls that fail beside calls that do not


def test_another_name_while_the_arguments_are_open_is_another_call() -> None:
    reply = fold(decode([stream([piece(0, "a", "terminal", PARIS[:5])], [piece(0, "b", "ping", OSLO)])]))
    assert calls_of(reply) == [("b", "ping", NORTH)]
    assert [(failed.id, failed.name, failed.kind) for failed in reply.failed_calls] == [("a", "terminal", "cut")]
    assert reply.error is reply.failed_calls[0]
    assert reply.stop_reason == "tool_use"


def test_two_names_under_one_id_are_two_calls() -> None:
    for second in (0, 1):
        reply = fold(decode([stream([piece(0, "a", "ping", "{}")], [piece(second, "a", "terminal", PARIS)])]))
        assert [(call.name, call.arguments) for call in reply.tool_calls] == [("ping", "{}"), ("terminal", PARIS)]
        assert reply.tool_calls[0].id == "a" != reply.tool_calls[1].id


def test_a_call_without_a_name_fails_and_its_sibling_does_not() -> None:
    reply = fold(decode([stream([piece(0, "a", arguments=PARIS)], [piece(1, "b", "ping", "{}")])]))
    assert calls_of(reply) == [("b", "ping", {})]
    assert [failed.kind for failed in reply.failed_calls] == ["nameless"]


def test_an_unreadable_frame_fails_every_open_call() -> None:
    wire = stream([piece(0, "a", "terminal", PARIS), piece(1, "b", "ping", PARIS[:5])], [piece(1, arguments=PARIS[5:])])
    at = wire.index(b"data: ", 300)
    reply = fold(decode([wire[:at] + b"data: {broken\n\n" + wire[at:]]))
    assert reply.error is not None
    assert {failed.kind for failed in reply.failed_calls} == {"lost"}


@for_each(
    ("arguments", "kind"),
    [
        ('{"city":"Par', "cut"),
        ('{"city":"Paris"', "cut"),
        ('{"city":', "cut"),
        ("{", "cut"),
        ('{"city":"Paris}', "cut"),
        ('["Paris"]', "unreadable"),
        ('"Paris"', "unreadable"),
        ("Paris", "unreadable"),
        ('{"n":NaN}', "unreadable"),
        ("12", "unreadable"),
    ],
)
def test_arguments_that_are_no_object(arguments: str, kind: str) -> None:
    for pieces in (
        [[piece(0, "a", "terminal", arguments)]],
        [[piece(0, "a", "terminal", "")], [piece(0, arguments=arguments)]],
    ):
        reply = fold(decode([stream(*pieces)]))
        assert reply.tool_calls == []
        assert [failed.kind for failed in reply.failed_calls] == [kind]
        assert reply.stop_reason == "error"
        assert arguments not in reply.failed_calls[0].message


def test_a_length_limit_leaves_empty_arguments_undelivered() -> None:
    reply = fold(decode([stream([piece(0, "a", "ping", "")], finish="length")]))
    assert reply.tool_calls == []
    assert reply.stop_reason == "length"
    assert reply.error is not None


def test_calls_that_were_whole_stand_beside_a_later_error() -> None:
    wire = stream([piece(0, "a", "terminal", PARIS)], [piece(1, "b", "ping", OSLO[:4])])
    at = wire.index(b'data: {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}')
    reply = fold(decode([wire[:at], b'data: {"error":{"message":"gone","code":502}}\n\n']))
    assert calls_of(reply) == [("a", "terminal", CITY)]
    assert [failed.name for failed in reply.failed_calls] == ["ping"]
    assert reply.stop_reason == "error"
    assert reply.error is not None
    assert reply.error.message == "gone"


# ---------------------------------------------------------------- final messages


def final(*entries: dict[str, Any]) -> bytes:
    return chunk({}, "tool_calls", message={"role": "assistant", "content": "", "tool_calls": list(entries)})


DONE = b"data: [DONE]\n\n"


def test_calls_only_in_a_final_message() -> None:
    wire = (
        chunk({"role": "assistant"})
        + final(piece(id="a", name="ping", arguments="{}"), piece(id="b", name="ping"))
        + DONE
    )
    assert calls_of(fold(decode([wire]))) == [("a", "ping", {}), ("b", "ping", {})]


def test_a_final_message_that_repeats_the_deltas_counts_once() -> None:
    deltas = [piece(0, "a", "terminal", PARIS)], [piece(1, "b", "terminal", PARIS)]
    wire = b"".join(chunk({"tool_calls": pieces}) for pieces in deltas)
    again = piece(id="a", name="terminal", arguments=PARIS), piece(id="b", name="terminal", arguments=PARIS)
    reply = fold(decode([wire + final(*again) + DONE]))
    assert calls_of(reply) == [("a", "terminal", CITY), ("b", "terminal", CITY)]
    assert "duplicate-final" in {deviation.code for deviation in reply.deviations}


def test_a_final_message_repeats_calls_without_ids() -> None:
    wire = chunk({"tool_calls": [piece(0, name="terminal", arguments=PARIS)]})
    reply = fold(decode([wire + final(piece(name="terminal", arguments=PARIS)) + DONE]))
    assert calls_of(reply) == [(MADE, "terminal", CITY)]


def test_a_final_message_completes_what_the_deltas_began() -> None:
    wire = chunk({"tool_calls": [piece(0, "a", "terminal", PARIS[:6])]})
    reply = fold(decode([wire + final(piece(id="a", name="terminal", arguments=PARIS)) + DONE]))
    assert calls_of(reply) == [("a", "terminal", CITY)]
    assert reply.error is None


def test_a_final_message_adds_a_call() -> None:
    wire = chunk({"tool_calls": [piece(0, "a", "terminal", PARIS)]})
    again = piece(id="a", name="terminal", arguments=PARIS), piece(id="b", name="ping", arguments="{}")
    assert calls_of(fold(decode([wire + final(*again) + DONE]))) == [("a", "terminal", CITY), ("b", "ping", {})]


# ---------------------------------------------------------------- other kinds


def test_a_custom_call_takes_free_text() -> None:
    first = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "patch", "input": "*** Begin {"}}
    wire = chunk({"tool_calls": [first]}) + chunk({"tool_calls": [{"index": 0, "custom": {"input": " End"}}]})
    reply = fold(decode([wire + chunk({}, "tool_calls") + DONE]))
    assert [(call.id, call.name, call.kind, call.arguments) for call in reply.tool_calls] == [
        ("a", "patch", "custom", "*** Begin { End")
    ]
    cut = fold(decode([wire]))
    assert cut.tool_calls == []
    assert cut.stop_reason == "error"


def test_half_surrogate_pairs_in_arguments_are_joined_and_lone_ones_replaced() -> None:
    def fragment(text: str) -> bytes:
        return chunk({"tool_calls": [{"index": 0, "function": {"arguments": "@"}}]}).replace(b"@", text.encode())

    wire = chunk({"tool_calls": [piece(0, "a", "ping", "")]})
    wire += fragment('{\\"a\\":\\"\\ud83d') + fragment('\\ude00 \\ud83d!\\"}')
    reply = fold(decode([wire + chunk({}, "tool_calls") + DONE]))
    assert calls_of(reply) == [("a", "ping", {"a": "\U0001f600 \ufffd!"})]


def test_names_cannot_be_joined_when_nothing_was_offered() -> None:
    wire = stream([piece(0, "a", "get_wea", "")], [piece(0, name="get_wea", arguments=PARIS)])
    assert calls_of(fold(decode([wire], frozenset()))) == [("a", "get_wea", CITY)]


def test_a_name_is_not_joined_to_itself() -> None:
    wire = stream([piece(0, "a", "get", "")], [piece(0, name="get", arguments=PARIS)])
    assert calls_of(fold(decode([wire]))) == [("a", "get", CITY)]


def test_number_forms_and_key_order_survive() -> None:
    arguments = '{"z":1.50,"a":1e3,"n":12345678901234567890123}'
    entry = chunk(
        {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "ping", "arguments": 0}}]}
    )
    for shape in (json.dumps(arguments).encode(), arguments.encode()):
        wire = entry.replace(b'"arguments": 0', b'"arguments": ' + shape) + chunk({}, "tool_calls") + DONE
        assert fold(decode([wire])).tool_calls[0].arguments == arguments


def test_fragments_of_any_labels_end_in_a_reply():
    """No order of ids and names at one index stops the reader, and no cut of the body makes other calls."""
    draw = random.Random(7)
    ids, names, texts = ["a", "b", "c", ...], ["ping", ...], ["", "{", '{"city": "x', '"}', "{}", "1"]
    for number in range(600):
        body = stream(
            *([piece(0, draw.choice(ids), draw.choice(names), draw.choice(texts))] for _ in range(draw.randint(5, 8)))
        )
        reply = fold(decode([body]))
        assert {call.name for call in reply.tool_calls} <= {"ping"}
        if number % 30 == 0:
            assert fold(decode([body[at : at + 1] for at in range(len(body))])).tool_calls == reply.tool_calls
