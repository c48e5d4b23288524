"""Damaged answers of a target that was said to keep to its protocol: what passes the gateway, its client reads.

Bytes leave before all of an answer is known. So a deviation may be seen too late to mend it; then the answer fails at
its end, and what is asked next is mended. No client runs a call that the model did not make, and none misses one
without an error.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from damage import BASES, bodies
from dragoman.protocols import PROTOCOLS
from dragoman.types import Request
from gateway.running import Running, gateway
from gateway.test_matrix import QUESTION
from gateway.test_passthrough import post
from plain_clients import run_by
from profiles import MORE_IN_SOAK
from scripted import Step, streamed, whole
from test_keys_told_twice import CALLS, TOOLS, made, read

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
