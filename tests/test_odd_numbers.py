"""Numbers that others write: of thousands of digits, with huge exponents, in other digits, in place of anything.

A reader may take them or not; it raises nothing but our own errors. Amounts of money take no longer for their exponent:
as a fraction, `1e-999999999` has a denominator of a thousand million digits, which one call of C works on for hours.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal, localcontext
from typing import Any

import pytest

import vendor_answers
import vendor_streams
import vendor_types
from dragoman import _json
from dragoman._json import Raw
from dragoman.codec.cost import read_cost
from dragoman.codec.errors.context_overflow import read_overflow
from dragoman.codec.errors.retry_after import read_wait, wait_in_words
from dragoman.config.quotas import read_amount
from dragoman.errors import ConfigError
from dragoman.events import ToolCallDelta, fold
from dragoman.gateway.relay import refusal
from dragoman.gateway.telemetry.rate_limits import limit_headers
from dragoman.money import make_rates, nano_from_usd
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Tool
from for_each import for_each
from places import counter, said
from rescue_cases import TOOLS, load_rescue_cases
from test_deep_fields import answer, marked, request
from two_calls import CALLS, WIRES, wire_body
from wires import (
    Frame,
    arguments_delta,
    block_of,
    body_of,
    chat_call,
    chat_piece,
    chat_stream,
    function_call,
    item_added,
    item_done,
    json_delta,
    messages_stream,
    responses_stream,
    tool_use,
)  # fmt: skip

#: As JSON has them, the longest that are read among them.
NUMBERS = (
    "9" * 400, "-" + "9" * 400, "9" * 4_299, "9" * 5_000, "18446744073709551616", "1e308", "-1e308", "5e-324", "1e999",
    "1e-999999999", "0.5", "-1", "-0",
)  # fmt: skip
#: As texts.
WORDS = (
    "1e-999999999", "1e999999999", "9" * 400, "9" * 5_000, "0x" + "f" * 5_000, "0o" + "7" * 6_000, "1." + "9" * 5_000,
    "\N{SUPERSCRIPT TWO}", "\N{ARABIC-INDIC DIGIT THREE}" * 3, "NaN", "Infinity", "-1", "1_0", " 7 ",
)  # fmt: skip
#: Each body gets each so-many-th of them, in turns.
_TURNS = 5
VALUES = tuple(number.encode() for number in NUMBERS) + tuple(json.dumps(word).encode() for word in WORDS)
#: A number, a quoted text or what stands between two tags, in a call.
_VALUE = re.compile(r'(?<!\w)-?\d[\d.]*|"[^"\n]{1,20}"|(?<=>)[^<>\n]{1,20}(?=<)')
#: Exponents and digits with which a fraction could not be made before the tests end.
SMALL = ("1e-999999999", "1e-999999999999", "0e-999999999", "0." + "0" * 40 + "7" * 300_000)


def filled(bodies: Iterator[Any]) -> Iterator[bytes]:
    """Bodies with one value after the other in the place of the mark; in turns."""
    for turn, body in enumerate(bodies):
        data = json.dumps(body).encode()
        for value in VALUES[turn % _TURNS :: _TURNS]:
            yield data.replace(b'"@deep@"', value)


@for_each("protocol", PROTOCOLS)
def test_a_request_with_odd_numbers_is_read_or_refused(protocol: str) -> None:
    found = [request(protocol, data) for data in filled(marked(vendor_types.cases(protocol)))]
    assert found


@for_each("protocol", PROTOCOLS)
def test_an_answer_with_odd_numbers_is_read_or_fails(protocol: str) -> None:
    found = [answer(protocol, data) for data in filled(marked(vendor_answers.cases(protocol)))]
    assert found


@for_each("protocol", ["openai-chat", "anthropic-messages"])
def test_a_stream_with_odd_numbers_is_read_or_fails(protocol: str) -> None:
    count = 0
    for events in marked(vendor_streams.cases(protocol)):
        if all(isinstance(event, dict) for event in events):
            wire = vendor_streams.wire(events)
            for value in VALUES[count % _TURNS :: _TURNS]:
                answer(protocol, wire.replace(b'"@deep@"', value))
            count += 1
    assert count


@for_each(
    ("protocol", "body"),
    [
        ("ollama-chat", '{"model":"m","messages":[],"options":{"num_ctx":%s}}'),
        ("openai-chat", '{"messages":[],"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":%s}}}'),
        ("openai-chat", '{"messages":[],"tool_choice":{"type":"allowed_tools","tools":[{"name":%s}]}}'),
        ("gemini-generate", '{"contents":[],"generationConfig":{"responseSchema":{"minItems":%s}}}'),
    ],
)  # fmt: skip
def test_what_was_found_is_mended(protocol: str, body: str) -> None:
    for value in (*VALUES, b"{}", b"[7]", b"[[]]"):
        request(protocol, body.encode().replace(b"%s", value))


@for_each("word", [*WORDS, *NUMBERS])
def test_a_wait_is_a_finite_time_that_each_protocol_can_say(word: str) -> None:
    """Google's details, words, headers: `99…9s` was infinite, and the gateway answered 500."""
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{word}s"}]
    bodies = [
        {"error": {"message": "slow down", "code": 429, "details": details}},
        {"error": {"message": f"try again in {word}s", "code": word}, "retry_after": word},
        {"error": {"message": f"Please try again in {word}h{word}m{word}s"}},
        {"error": {"message": f"maximum context length is {word} tokens, you asked {word}"}},
    ]
    for headers in ({}, dict.fromkeys(("retry-after", "retry-after-ms", "date"), word)):
        for protocol in PROTOCOLS.values():
            for body in bodies:
                failure = protocol.parse_error(429, json.dumps(body).encode(), headers=headers)
                assert failure.retry_after is None or math.isfinite(failure.retry_after)
                for client in PROTOCOLS.values():
                    assert refusal(client, failure).status >= 400
    for text in (f"try again in {word}m1s", f"retry after {word} seconds"):
        assert math.isfinite(wait_in_words(text) or 0)
    assert math.isfinite(read_wait({"retry-after": word}) or 0)


@for_each("word", WORDS)
def test_figures_of_limits_are_plain_numbers_or_none(word: str) -> None:
    found = read_overflow(f"maximum context length is {word} tokens, {word} + {word} > {word}, but {word} max")
    assert all(figure is None or 0 <= figure < 10**40 for figure in (found.limit, found.asked))
    names = ("x-ratelimit-limit-requests", "x-ratelimit-reset-tokens", "anthropic-ratelimit-tokens-remaining")
    told = limit_headers(dict.fromkeys(names, word), now=1e9)
    assert all(len(value) <= 400 for value in told.values())


@for_each("text", SMALL)
def test_amounts_take_no_longer_for_their_exponent(text: str) -> None:
    amount = Decimal(text)
    assert nano_from_usd(amount) == 0
    rates = make_rates(amount, amount, amount, amount)
    assert rates is not None
    assert rates.input in (0, 1)  # of 10⁻⁴⁰ dollars
    if amount:
        with pytest.raises(ConfigError):
            read_amount("usd", amount, "quota")


def test_an_amount_needs_no_context_of_its_user() -> None:
    with localcontext() as context:
        context.prec = 2
        assert nano_from_usd(Decimal("123456.7891234565")) == 123_456_789_123_457
        assert read_amount("usd", Decimal("123456.789123"), "quota") == 123_456_789_123


@for_each("text", ["1e-999999999", "1e999999999", "1e9", "-1", "NaN", "0." + "7" * 50, "x", ""])
def test_a_cost_that_can_be_none_is_unknown(text: str) -> None:
    """In a string, too: whoever sums it up or writes it takes as long as its exponent says."""
    assert read_cost(text) is None
    usage = {"input_tokens": 1, "output_tokens": 1, "cost": text}
    body = {"id": "r", "object": "response", "status": "completed", "output": [], "usage": usage}
    answer("openai-responses", json.dumps(body).encode())


@for_each(
    ("value", "usd"),
    [(0, "0"), (0.25, "0.25"), ("0.000003", "0.000003"), ("0e-999999999", "0"), (5e-324, "5E-324"), (1, "1")],
)  # fmt: skip
def test_a_cost_is_read_with_its_digits(value: _json.Json, usd: str) -> None:
    cost = read_cost(value)
    assert cost is not None
    assert (str(cost.usd), cost.source) == (usd, "provider")


@for_each("value", [True, None, [], {}, 10**400, -1, 1e300, float("nan")])
def test_what_is_no_amount_is_no_cost(value: _json.Json) -> None:
    assert read_cost(value) is None


def test_a_call_written_with_odd_numbers_runs_or_fails() -> None:
    """Each family's first case, a value of its call replaced by another word each time."""
    first = {case.family: case.text for case in reversed(load_rescue_cases())}
    for turn, text in enumerate(first.values()):
        for start, end in [found.span() for found in _VALUE.finditer(text)][:3]:
            for word in (*WORDS[turn % 4 :: 4], WORDS[4]):
                events_of(text[:start] + word + text[end:])


def events_of(text: str) -> int:
    """How many events all stages make of it."""
    stages = stages_for(TOOLS, Policy(sequential=True), new_id=counter())
    count = 0
    for events in said(text):
        for stage in stages:
            events = stage.feed(events)
        count += len(events)
    return count


#: A call `f` with the arguments `%s`, as an object and as text, in an answer that comes at once.
_WITH_CALL = {
    "gemini-generate": (
        '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":%s}}]},"finishReason":"STOP"}]}'
    ),
    "ollama-chat": (
        '{"message":{"tool_calls":[{"function":{"name":"f","arguments":%s}}]},"done":true,"done_reason":"stop"}'
    ),
    "openai-chat": (
        '{"choices":[{"message":{"tool_calls":[{"id":"i","type":"function","function":{"name":"f","arguments":%s}}]},'
        '"finish_reason":"tool_calls"}]}'
    ),
}


@for_each("protocol", _WITH_CALL)
@for_each("size", [1, 2_000])
@for_each(("number", "is_fine"), [("7", True), ("1e308", True), ("-1e309", False), ("9" * 309 + ".5", False)])
def test_no_call_runs_with_a_number_out_of_range_in_a_member_that_its_tool_does_not_name(
    protocol: str, size: int, number: str, is_fine: bool
) -> None:
    """The stages pass such members over: whether their numbers can be held, the decoder has seen."""
    schema = b'{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array"}}}'
    for member in (f'"edits":[{{"line":{number}}}]', f'"note":{number}', f'"note":{{"deep":[{number}]}}'):
        arguments = f'{{"path":"{"x" * size}",{member}}}'
        stages = stages_for((Tool("f", "", Raw(schema)),), Policy(), new_id=counter())
        reader = Reader(PROTOCOLS[protocol].decoder(new_id=counter(), offered_names=frozenset(["f"])), stages)
        told = json.dumps(arguments) if protocol == "openai-chat" else arguments
        reply = fold([*reader.feed((_WITH_CALL[protocol] % told).encode()), *reader.close()])
        assert [call.arguments for call in reply.tool_calls] == ([arguments] if is_fine else []), member
        assert (reply.error is None) is is_fine


#: A stream with a call `f` of these pieces of arguments.
_STREAMS: dict[str, Callable[[list[str]], list[Frame]]] = {
    "openai-chat": lambda pieces: chat_stream(chat_call("f"), *map(chat_piece, pieces)),
    "anthropic-messages": lambda pieces: messages_stream(*block_of(tool_use("f"), *map(json_delta, pieces))),
    "openai-responses": lambda pieces: responses_stream(
        item_added(function_call("f")), *map(arguments_delta, pieces), item_done(function_call("f", "".join(pieces)))
    ),
}


@for_each("protocol", _STREAMS)
@for_each("size", [7, 10_000])
@for_each(("number", "is_fine"), [("7", True), ("-1e309", False), ("9" * 309 + ".5", False)])
def test_no_arguments_leave_whole_that_fail_for_a_number(protocol: str, size: int, number: str, is_fine: bool) -> None:
    """What reads the deltas of such a call as JSON would have an infinite number, before it hears of the failure."""
    schema = b'{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array"}}}'
    for name in ("path", "edits", "note"):
        for value in (number, f'[{{"line":{number}}}]'):
            arguments = f'{{"{name}":{value},"other":1}}'
            pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
            stages = stages_for((Tool("f", "", Raw(schema)),), Policy(), new_id=counter())
            reader = Reader(PROTOCOLS[protocol].decoder(new_id=counter(), offered_names=frozenset(["f"])), stages)
            frames = [body_of(protocol, [frame]) for frame in _STREAMS[protocol](pieces)]
            frames = [frame.replace(b"data: [DONE]\n\n", b"") for frame in frames]
            events = [event for frame in frames for event in reader.feed(frame)] + reader.close()
            left = "".join(event.text for event in events if isinstance(event, ToolCallDelta))
            assert _is_json(left) is bool(fold(events).tool_calls), arguments
            assert not is_fine or fold(events).tool_calls, arguments
            assert is_fine or name == "path" or fold(events).failed_calls, arguments


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@for_each("number", ["1e999", "-1e400", "9" * 5_000])
@for_each("wire", [wire for wire in WIRES if "in turns" not in wire])
def test_a_number_that_nobody_can_hold_fails_its_call_without_its_tool_too(wire: str, number: str) -> None:
    frames = [json.dumps(frame) for frame in WIRES[wire]()[0]]
    damaged = [re.sub(r'((?:loud\\*"|"numberValue"): )2', rf"\g<1>{number}", frame) for frame in frames]
    assert damaged != frames
    protocol = PROTOCOLS[wire.partition(",")[0]]
    body = wire_body(wire, damaged)
    decoder = protocol.decoder(new_id=counter())
    told = fold([*decoder.feed(body), *decoder.close()])
    assert told.error is not None
    assert [(call.name, call.values()) for call in told.tool_calls] in ([], CALLS[1:])
    if wire.endswith("whole"):
        assert protocol.check_whole(body) is None
