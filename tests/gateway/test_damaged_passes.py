"""Damaged answers of a target that was said to keep to its protocol: what passes the gateway, its client reads.

Bytes leave before all of an answer is known. So a deviation may be seen too late to mend it; then the answer fails at
its end, and what is asked next is mended. No client runs a call that the model did not make, and none misses one
without an error.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from damage import BASES, bodies, inserted
from dragoman.protocols import PROTOCOLS
from dragoman.types import Request
from for_each import for_each
from gateway.running import Running, gateway
from gateway.test_matrix import QUESTION
from gateway.test_passthrough import post
from plain_clients import run_by
from profiles import MORE_IN_SOAK
from scripted import END, Step, chunk, head, streamed, whole
from test_plain_clients import NEVER_PLAIN, undamaged
from two_calls import CALLS, TOOLS, made, read, wire_body

#: Bodies of each form that are tried.
TRIED = [6, *(pytest.param(200, marks=mark) for mark in MORE_IN_SOAK)]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway whose models are all declared clean. Each body has a model of its own: what is withdrawn is not
    trusted again."""
    every = "\n".join(f'[models."{name}/*"]\nclean = true' for name in PROTOCOLS)
    with gateway(tmp_path_factory.mktemp("gateway"), every) as found:
        yield found


def asked(protocol: str, model: str, *, stream: bool) -> tuple[str, bytes]:
    sent = PROTOCOLS[protocol].render_request(Request(model, (QUESTION,), TOOLS, stream=stream)).http
    prefix = {"openai-chat": "/v1", "openai-responses": "/v1", "gemini-generate": "/v1beta"}.get(protocol, "")
    return prefix + sent.path, sent.body


def sent_by(wire: str, body: bytes, dice: random.Random) -> list[Step]:
    """A body in one to forty pieces, cut anywhere."""
    if wire.endswith("whole"):
        return whole(body)
    cuts = sorted(dice.sample(range(1, len(body)), dice.choice([0, 2, 39])))
    pieces = [body[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    return streamed(*pieces, content_type=PROTOCOLS[wire.partition(",")[0]].stream_type)


@pytest.mark.parametrize("tried", TRIED)
@pytest.mark.parametrize("wire", BASES)
def test_no_client_runs_what_was_not_called(clean: Running, wire: str, tried: int) -> None:
    dice = random.Random(f"{wire} {tried}")
    protocol = wire.partition(",")[0]
    everything = list(bodies(wire, BASES[wire]))
    for number, (how, body) in enumerate(dice.sample(everything, min(tried, len(everything)))):
        clean.answer(sent_by(wire, body, dice))
        path, question = asked(protocol, f"{protocol}/{tried}-{number}", stream=not wire.endswith("whole"))
        status, answer, has_ended = post(clean, path, question)
        ran = run_by(wire, answer) if status == 200 and has_ended else "an error"
        told = read(wire, [body])
        if isinstance(ran, list):
            assert all(call in CALLS for call in ran), (how, ran)
            assert told.error is None and ran == made(told), (how, ran)


STREAMS = [wire for wire in BASES if not wire.endswith("whole")]


@pytest.mark.parametrize("tried", TRIED)
@pytest.mark.parametrize("wire", STREAMS)
def test_a_frame_that_comes_again_changes_no_call(clean: Running, wire: str, tried: int) -> None:
    """Each in a read of its own from some frame on, so that what came before has left."""
    dice = random.Random(f"{wire} {tried} again")
    protocol = wire.partition(",")[0]
    end = b"\n" if protocol == "ollama-chat" else b"\n\n"
    everything = list(inserted(wire, BASES[wire]))
    for number, (how, body) in enumerate(dice.sample(everything, min(tried, len(everything)))):
        frames = [frame + end for frame in body.split(end) if frame]
        steps: list[Step] = [head(200, PROTOCOLS[protocol].stream_type)]
        for frame in frames:
            steps += [chunk(frame), 0.005]
        clean.answer([*steps, END])
        path, question = asked(protocol, f"{protocol}/again-{tried}-{number}", stream=True)
        status, answer, has_ended = post(clean, path, question)
        ran = run_by(wire, answer) if status == 200 and has_ended else "an error"
        if isinstance(ran, list):
            told = read(wire, [body])
            # A call that nothing closes leaves at the end, behind those that began after it.
            assert told.error is None and sorted(ran, key=repr) == sorted(made(told), key=repr), (how, ran)


@for_each("wire", STREAMS)
def test_what_comes_behind_the_end_does_not_leave(clean: Running, wire: str) -> None:
    """In a later read or with the end, and the answer stays good."""
    protocol = wire.partition(",")[0]
    if protocol == "gemini-generate" or wire in NEVER_PLAIN:  # its end is that of the body
        return
    intact, lines = undamaged(wire), [json.dumps(frame) for frame in BASES[wire]]
    start = b"" if protocol == "ollama-chat" else b"data: "
    end = b"\n" if protocol == "ollama-chat" else b"\n\n"
    for number, line in enumerate(lines):
        late = start + line.replace('"c0"', '"c9"').encode() + end
        for pauses in ((0.0,), (0.02, 0.2, 2.0)):
            for pause in pauses:  # on a busy machine both come with one read, unless they are far apart
                steps = [chunk(intact), pause, chunk(late)] if pause else [chunk(intact + late)]
                clean.answer([head(200, PROTOCOLS[protocol].stream_type), *steps, END])
                path, question = asked(protocol, f"{protocol}/late-{wire}-{number}-{pause}", stream=True)
                status, answer, has_ended = post(clean, path, question)
                assert (status, has_ended) == (200, True), line
                assert run_by(wire, answer) == CALLS, (line, answer[-400:])
                if b"c9" not in answer and answer.count(late) <= intact.count(late):
                    break
            else:
                assert pauses == (0.0,), line


@for_each("protocol", ["gemini-generate", "openai-chat"])
@for_each("is_stream", [False, True])
def test_who_asks_for_two_answers_gets_both(clean: Running, protocol: str, is_stream: bool) -> None:
    """As the target sent them, calls of both; it is no reason to withdraw anything."""
    path, question = asked(protocol, f"{protocol}/two-{is_stream}", stream=is_stream)
    fields = json.loads(question)
    both: list[dict[str, object]] = []
    for index, (name, arguments) in enumerate(CALLS):
        if protocol == "openai-chat":
            fields["n"] = 2
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"index": 0, "id": f"c{index}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            kind = "delta" if is_stream else "message"
            both.append({"index": index, kind: message, "finish_reason": "tool_calls"})
        else:
            fields.setdefault("generationConfig", {})["candidateCount"] = 2
            part = {"functionCall": {"name": name, "args": arguments}}
            both.append({"index": index, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"})
    key = "choices" if protocol == "openai-chat" else "candidates"
    wire = protocol if is_stream else f"{protocol}, whole"
    body = wire_body(
        wire, [json.dumps({"id": "c", "created": 1, "model": "m", "object": "chat.completion", key: both})]
    )
    for _ in range(2):
        clean.answer(sent_by(wire, body, random.Random(7)))
        assert post(clean, path, json.dumps(fields).encode()) == (200, body, True)
