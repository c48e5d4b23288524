"""N×M: a reply written in any protocol is read back as the same reply, except for what `losses.toml` declares."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from cases import counter
from conversations import SHAPES, reply
from dragoman.events import Reply, fold, unfold
from dragoman.pipe import Reader
from dragoman.protocol import PLAIN
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, stages_for
from dragoman.types import Text, Thinking, Tool, ToolCall, Usage
from for_each import for_each
from grammar import check
from profiles import one
from translating import Pipe

LOSSES = tomllib.loads((Path(__file__).parent / "losses.toml").read_text())
CREATED = 1_750_000_000


def encoder(name: str):
    return PROTOCOLS[name].encoder(new_id=counter(), model="model-1", created=CREATED)


def decoder(name: str):
    return PROTOCOLS[name].decoder(new_id=counter(), offered_names=frozenset(), dialect=PLAIN)


def read(name: str, wire: bytes) -> Reply:
    machine = decoder(name)
    return fold(check([*machine.feed(wire), *machine.close()]))


def content(answer: Reply) -> list:
    """What must survive: parts in order, texts of one kind joined, ids aside, the stop reason, the counts."""
    parts: list = []
    for part in answer.parts:
        row = (type(part).__name__, part.text) if isinstance(part, Text | Thinking) else None
        if isinstance(part, ToolCall):
            row = ("ToolCall", part.name, part.values())
        if row and parts and row[0] == parts[-1][0] != "ToolCall":
            row = (row[0], parts.pop()[1] + row[1])
        parts.append(row)
    return [parts, answer.stop_reason, without_zeros(answer.usage), answer.error]


def without_zeros(usage: Usage) -> Usage:
    """Counts in which a detail of 0 is unknown: some protocols require a number where nobody knows one."""
    return Usage(
        usage.input, usage.output, usage.cache_read or None, usage.cache_write or None, usage.reasoning or None
    )


def lost(shape: str, *names: str) -> set[str]:
    return {loss for name in names for loss in LOSSES.get(name, {}).get(shape, [])}


def forgive(expected: list, seen: list, losses: set[str]) -> list:
    """The expected content with the declared losses."""
    parts, reason, usage, error = expected
    for loss in losses:
        match loss:
            case "order":  # texts and calls are kept, their order is not
                parts = sorted(parts, key=lambda row: (row[0] == "ToolCall", row[0] == "Text"))
                texts = "".join(row[1] for row in parts if row[0] == "Text")
                parts = (
                    [row for row in parts if row[0] == "Thinking"]
                    + ([("Text", texts)] if texts else [])
                    + [row for row in parts if row[0] == "ToolCall"]
                )
            case _:
                raise AssertionError(f"undeclared kind of loss {loss!r}")
    return [parts, reason, usage, error]


@for_each("shape", SHAPES)
@for_each("target", PROTOCOLS)
def test_a_stream_is_read_back(target: str, shape: str):
    original = reply(shape)
    seen = content(read(target, encoder(target).encode(unfold(original))))
    assert seen == forgive(content(original), seen, lost(shape, target))


@for_each("shape", SHAPES)
@for_each("target", PROTOCOLS)
def test_a_whole_response_is_read_back(target: str, shape: str):
    original = reply(shape)
    body = PROTOCOLS[target].render_response(original, new_id=counter(), model="model-1", created=CREATED)
    seen = content(read(target, body))
    assert seen == forgive(content(original), seen, lost(shape, f"{target}-whole"))


@for_each("source", PROTOCOLS)
@for_each("target", PROTOCOLS)
@for_each("shape", SHAPES)
def test_every_protocol_through_every_other(source: str, target: str, shape: str):
    original = reply(shape)
    wire = encoder(source).encode(unfold(original))
    for size in (*one((1, 17), f"{source} {target} {shape}"), len(wire)):
        pipe = Pipe(Reader(decoder(source), stages_for((), Policy(sequential=True), new_id=counter())), encoder(target))
        out = b"".join(pipe.feed(wire[start : start + size]) for start in range(0, len(wire), size)) + pipe.close()
        assert not pipe.aborted, size
        seen = content(read(target, out))
        assert seen == forgive(content(original), seen, lost(shape, source, target)), size


def test_every_declared_loss_is_used():
    for name, shapes in LOSSES.items():
        for shape, kinds in shapes.items():
            original = reply(shape)
            if name.endswith("-whole"):
                protocol = name.removesuffix("-whole")
                body = PROTOCOLS[protocol].render_response(original, new_id=counter(), model="m", created=CREATED)
                assert content(read(protocol, body)) != content(original), (name, shape, kinds)
            else:
                wire = encoder(name).encode(unfold(original))
                assert content(read(name, wire)) != content(original), (name, shape, kinds)


def test_usage_survives_where_the_protocol_has_it():
    details = Usage(input=120, output=34, cache_read=20, reasoning=10)
    original = msgspec.structs.replace(reply("text"), usage=details)
    kept = {name: read(name, encoder(name).encode(unfold(original))).usage for name in PROTOCOLS}
    assert kept["openai-chat"] == details
    assert kept["openai-responses"] == msgspec.structs.replace(details, cache_write=0)  # a field that is required
    assert kept["anthropic-messages"] == details
    assert kept["gemini-generate"] == details
    assert kept["ollama-chat"] == Usage(input=120, output=34)


@for_each("shape", SHAPES)
@for_each("target", PROTOCOLS)
def test_a_healthy_stream_has_no_deviation(target: str, shape: str):
    """What is normal in a protocol is none there, so strict mode passes it."""
    tools = tuple(Tool(name) for name in ("get_weather", "write_file", "ping"))
    stages = stages_for(tools, Policy(strict=True), new_id=counter())
    reader = Reader(decoder(target), stages)
    wire = encoder(target).encode(unfold(reply(shape)))
    seen = fold(check([*reader.feed(wire), *reader.close()]))
    assert [(found.code, found.where) for found in seen.deviations] == []
    assert seen.error is None


@for_each(
    ("protocol", "wire"),
    [
        (
            "ollama-chat",
            b"".join(
                [
                    b'{"model":"m","created_at":"2026-01-01T00:00:00Z","done":false,"message":{"role":"assistant",',
                    b'"content":"","tool_calls":[{"function":{"name":"ping","arguments":{}}}]}}\n',
                    b'{"model":"m","created_at":"2026-01-01T00:00:01Z","message":{"role":"assistant","content":""},',
                    b'"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":2}\n',
                ]
            ),
        ),
        (
            "gemini-generate",
            b"".join(
                [
                    b'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"ping","args":{}}}],',
                    b'"role":"model"},"finishReason":"STOP","index":0}],"modelVersion":"m","responseId":"r"}\n\n',
                ]
            ),
        ),
    ],
)
def test_calls_without_ids_are_healthy_where_ids_are_optional(protocol: str, wire: bytes):
    seen = read(protocol, wire)
    assert [found for found in seen.deviations if found.severity != "note"] == []
    assert seen.tool_calls[0].id
