"""Calls of answers whose parts are open beside each other: each that began ends or fails, and none is lost silently.

Messages and Responses number their parts, so that several texts may be open at once, each with a call written in it;
the other protocols let content, thinking and calls take turns. Blocks may lack their stop.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dragoman
import wires
from cases import counter
from dragoman import _json
from dragoman.events import (
    Event,
    Finish,
    Reply,
    Start,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallFailed,
    ToolCallStart,
    fold,
)
from dragoman.pipe import Reader
from dragoman.protocols import PROTOCOLS
from dragoman.response_stages import Policy, Sequencer, stages_for
from dragoman.stages.rescue.families import FAMILIES
from dragoman.stages.rescue.stage import Rescue
from dragoman.types import Tool, ToolCall
from grammar import check, check_sequential
from wires import Frame

TOOLS = (
    Tool("note", "", _json.raw({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})),
    Tool("now", "", _json.raw({"type": "object", "properties": {}})),
)
#: A call with a value of its own, as models write it; and words.
WRITTEN = (
    '<tool_call>\n{"name": "note", "arguments": {"a": "%s"}}\n</tool_call>',
    "<tool_call>\n<function=note>\n<parameter=a>\n%s\n</parameter>\n</function>\n</tool_call>",
    '[TOOL_CALLS]note[ARGS]{"a": "%s"}',
    '{"name": "note", "parameters": {"a": "%s"}}',
    '<tool_call>\n{"name": "note", "arguments": {"a": "%s"',
    "Let me see %s.",
)


class Planned(NamedTuple):
    """A part of an answer. `mark`: the value that must come out. `is_stopped`: its own end is sent."""

    kind: str
    pieces: list[str]
    mark: str
    is_stopped: bool


def plan(chance: random.Random) -> list[Planned]:
    parts = []
    for number in range(chance.randint(1, 4)):
        kind = chance.choice(("text", "text", "text", "thinking", "call"))
        mark = f"mark{number}"
        text = chance.choice(WRITTEN[:4] if chance.random() < 0.7 else WRITTEN) % mark
        if kind == "thinking":
            text = f"I want {mark}"
        if kind == "call":
            text = json.dumps({"a": mark})
        if kind == "text" and chance.random() < 0.4:
            text = chance.choice(("\n", "Yes. ")) + text + chance.choice(("", "\n", " Done."))
        cut = chance.randint(1, len(text) - 1)
        pieces = [text] if chance.random() < 0.5 else [text[:cut], text[cut:]]
        parts.append(Planned(kind, pieces, mark, chance.random() < 0.6))
    return parts


def order(parts: list[Planned], chance: random.Random, *, beside: bool) -> list[tuple[int, str]]:
    """Steps of the answer: which part, and its piece, or "<" where it opens and ">" where it ends."""
    queues = [["<", *part.pieces, *([">"] if part.is_stopped else [])] for part in parts]
    steps: list[tuple[int, str]] = []
    opened = 0
    while any(queues):
        ready = [at for at in range(min(opened + 1, len(queues))) if queues[at]]
        at = chance.choice(ready) if beside and chance.random() < 0.6 else ready[0]
        opened = max(opened, at + 1)
        steps.append((at, queues[at].pop(0)))
    return steps


def messages(parts: list[Planned], steps: list[tuple[int, str]]) -> list[Frame]:
    blocks: dict[str, Frame] = {
        "text": {"type": "text", "text": ""}, "thinking": {"type": "thinking", "thinking": "", "signature": ""}
    }  # fmt: skip
    deltas = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking")}
    out: list[Frame] = []
    for at, piece in steps:
        kind = parts[at].kind
        if piece == "<":
            out.append(wires.block_start(blocks.get(kind) or wires.tool_use("note", at=at), at))
        elif piece == ">":
            out.append(wires.block_stop(at))
        elif kind == "call":
            out.append(wires.block_delta(wires.json_delta(piece), at))
        else:
            name, key = deltas[kind]
            out.append(wires.block_delta({"type": name, key: piece}, at))
    reason = "tool_use" if any(part.kind == "call" for part in parts) else "end_turn"
    return wires.messages_stream(*out, reason=reason, usage={"output_tokens": 3})


def responses(parts: list[Planned], steps: list[tuple[int, str]]) -> list[Frame]:
    items: list[Frame] = []
    for at, part in enumerate(parts):
        text = "".join(part.pieces)
        if part.kind == "text":
            content = [{"type": "output_text", "text": text, "annotations": []}]
            items.append({"type": "message", "id": f"i{at}", "role": "assistant", "status": "completed"})
            items[-1]["content"] = content
        elif part.kind == "thinking":
            items.append({"type": "reasoning", "id": f"i{at}", "summary": [{"type": "summary_text", "text": text}]})
        else:
            items.append(wires.function_call("note", text, at))
    deltas = {
        "text": ("response.output_text.delta", {"content_index": 0}),
        "thinking": ("response.reasoning_summary_text.delta", {"summary_index": 0}),
        "call": ("response.function_call_arguments.delta", {}),
    }
    empty: dict[str, Frame] = {"text": {"content": []}, "thinking": {"summary": []}, "call": {"arguments": ""}}
    out: list[Frame] = []
    for at, piece in steps:
        kind = parts[at].kind
        if piece == "<":
            out.append(wires.item_added({**items[at], **empty[kind]}, at))
        elif piece == ">":
            out.append(wires.item_done(items[at], at))
        else:
            name, more = deltas[kind]
            out.append({"type": name, "output_index": at, "item_id": f"i{at}", **more, "delta": piece})
    return wires.responses_stream(*out, output=items)


def chat(parts: list[Planned], steps: list[tuple[int, str]]) -> list[Frame]:
    out: list[Frame] = [{"role": "assistant", "content": ""}]
    numbers = {at: number for number, at in enumerate(at for at, part in enumerate(parts) if part.kind == "call")}
    for at, piece in steps:
        kind = parts[at].kind
        if kind == "call" and piece != ">":
            call = wires.chat_call("note", id=f"c{at}") if piece == "<" else wires.chat_piece(piece)
            out.append({"tool_calls": [{**call, "index": numbers[at]}]})
        elif piece not in ("<", ">"):
            out.append({"content" if kind == "text" else "reasoning_content": piece})
    return [*map(wires.chat_chunk, out), wires.chat_chunk({}, "tool_calls" if numbers else "stop")]


def turns(parts: list[Planned], steps: list[tuple[int, str]]) -> list[tuple[str, str]]:
    """Pieces in order, for protocols that number no parts; a call comes whole where its part opens."""
    said = []
    for at, piece in steps:
        part = parts[at]
        if part.kind == "call" and piece == "<":
            said.append((part.kind, "".join(part.pieces)))
        elif part.kind != "call" and piece not in ("<", ">"):
            said.append((part.kind, piece))
    return said


def gemini(parts: list[Planned], steps: list[tuple[int, str]]) -> list[Frame]:
    out = []
    for kind, text in turns(parts, steps):
        part: Frame = {"text": text, **({"thought": True} if kind == "thinking" else {})}
        out.append(wires.gemini_chunk(wires.gemini_call("note", json.loads(text)) if kind == "call" else part))
    return [*out, wires.GEMINI_END]


def ollama(parts: list[Planned], steps: list[tuple[int, str]]) -> list[Frame]:
    out: list[Frame] = []
    for kind, text in turns(parts, steps):
        calls = [wires.ollama_call("note", json.loads(text))] if kind == "call" else []
        said = {"text": {"content": text}, "thinking": {"thinking": text}}.get(kind, {})
        out.append(wires.ollama_line(*calls, **said))
    return [*out, wires.ollama_line(reason="stop")]


WRITERS = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic-messages": messages,
    "gemini-generate": gemini,
    "ollama-chat": ollama,
}


def read(body: bytes, protocol: str, size: int, *, sequential: bool) -> list[Event]:
    new_id = counter()
    decoder = PROTOCOLS[protocol].decoder(new_id=new_id, offered_names=frozenset(tool.name for tool in TOOLS))
    reader = Reader(decoder, stages_for(TOOLS, Policy(sequential=sequential), new_id=new_id))
    events: list[Event] = []
    for start in range(0, len(body), size):
        events += reader.feed(body[start : start + size])
    return [*events, *reader.close()]


def calls(reply: Reply | dragoman.Reply[Any]) -> list[tuple[str, str]]:
    """Those that came, in no order: parts that are open at once have none."""
    return sorted((call.name, call.arguments.replace(" ", "")) for call in reply.tool_calls)


def check_ends(events: list[Event]) -> None:
    """Every call that began has one end, before the answer's."""
    begun = [event.index for event in events if type(event) is ToolCallStart]
    ended = [event.index for event in events if type(event) is ToolCallEnd]
    failed = [event.index for event in events if type(event) is ToolCallFailed and event.name]
    assert sorted(begun) == sorted([*ended, *failed])


def check_clients(events: list[Event]) -> None:
    """What a client of each protocol gets of an answer, in a stream and whole: every call, or an error."""
    reply = fold(events)
    for client, protocol in PROTOCOLS.items():
        encoder = protocol.encoder(new_id=counter(), model="m", created=1)
        written = encoder.encode(events)
        if not encoder.aborted:
            got = dragoman.decode(written, client)
            assert got.error is not None or calls(got) == calls(reply), client
            assert reply.error is None or got.error is not None or calls(reply), client
        if reply.error is None:
            whole = protocol.render_response(reply, new_id=counter(), model="m", created=1, lost=[])
            assert calls(dragoman.decode(whole, client)) == calls(reply), client


@pytest.mark.parametrize("protocol", WRITERS)
@given(seed=st.integers(0, 2**32), beside=st.booleans(), size=st.sampled_from((40, 1 << 20)))
@example(seed=0, beside=True, size=40)
@example(seed=1693, beside=False, size=40)
def test_every_call_that_began_ends_and_none_is_lost(protocol, seed, beside, size):
    chance = random.Random(seed)
    parts = plan(chance)
    body = wires.body_of(protocol, WRITERS[protocol](parts, order(parts, chance, beside=beside)))
    events = check(read(body, protocol, size, sequential=False))
    check_ends(events)
    reply = fold(events)
    if reply.error is None:
        said = reply.text + reply.thinking + "".join(call.arguments for call in reply.tool_calls)
        missing = [part.mark for part in parts if len(part.pieces) == 1 and part.mark not in said]
        assert not missing or "duplicate-call" in {deviation.code for deviation in reply.deviations}
    ordered = check_sequential(read(body, protocol, size, sequential=True))
    check_ends(ordered)
    assert calls(fold(ordered)) == calls(reply)
    check_clients(ordered)


HERMES, *_ = WRITTEN


def test_texts_that_are_open_at_once_each_have_their_call():
    parts = [
        Planned("text", [HERMES % name], name, is_stopped) for name, is_stopped in (("Oslo", False), ("Rome", True))
    ]
    parts.append(Planned("call", ['{"a": "Bonn"}'], "Bonn", is_stopped=True))
    steps = order(parts, random.Random(0), beside=False)
    body = wires.body_of("anthropic-messages", messages(parts, steps))
    for sequential in (False, True):
        reply = fold(check(read(body, "anthropic-messages", 1 << 20, sequential=sequential)))
        assert [call.arguments for call in reply.tool_calls] == [
            f'{{"a": "{name}"}}' for name in ("Oslo", "Rome", "Bonn")
        ]
        assert reply.error is None and reply.text == ""


def test_texts_that_end_beside_each_other_are_both_kept():
    whole = '{"name": "note", "parameters": {"a": "%s"}}'
    stage = Rescue(TOOLS, FAMILIES, new_id=counter(), most_values=1 << 16)
    opened = [event for at in (0, 1) for event in (TextStart(at), TextDelta(at, whole % f"mark{at}"))]
    out = stage.feed([Start(), *opened, TextEnd(0), TextEnd(1), Finish("stop")])
    reply = fold(check(out))
    said = reply.text + "".join(call.arguments for call in reply.tool_calls)
    assert re.findall(r"mark\d", said) == ["mark0", "mark1"]


@given(st.lists(st.sampled_from(("text", "open call", "call")), min_size=1, max_size=5), st.integers(1, 4))
def test_nothing_waits_behind_a_part_that_never_ended(kinds, size):
    events: list[Event] = [Start()]
    for at, kind in enumerate(kinds):
        if kind == "text":
            events += [TextStart(at), TextDelta(at, f"t{at}")]
        else:
            events += [ToolCallStart(at, f"c{at}", "now"), ToolCallDelta(at, "{}")]
            events += [ToolCallEnd(at, ToolCall(f"c{at}", "now", "{}"))] if kind == "call" else []
    events.append(Finish("tool_use"))
    stage = Sequencer()
    out = [event for at in range(0, len(events), size) for event in stage.feed(events[at : at + size])]
    reply = fold(check_sequential(out))
    assert [call.id for call in reply.tool_calls] == [f"c{at}" for at, kind in enumerate(kinds) if kind == "call"]
    assert [call.id for call in reply.failed_calls] == [
        f"c{at}" for at, kind in enumerate(kinds) if kind == "open call"
    ]
    assert reply.text == "".join(f"t{at}" for at, kind in enumerate(kinds) if kind == "text")
