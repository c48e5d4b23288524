"""A chunk of a stream costs nothing more with a ledger: nothing of it runs for one."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType

import pytest

from dragoman._json import Raw
from dragoman.client.exchange import Exchange
from dragoman.client.streaming.response_stream import ResponseStream
from dragoman.config import load_config
from dragoman.events import Event
from dragoman.gateway.accounting import Ledger
from dragoman.gateway.messages import Head
from dragoman.gateway.telemetry.pricing import Pricing
from dragoman.gateway.telemetry.record import Observer, begin_record
from dragoman.http.response import BeforeSend, Sink
from dragoman.http.timeouts import Timeouts
from dragoman.ids import new_id
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.journal.reading import JournalReader
from dragoman.providers.endpoint import Outgoing
from dragoman.routing.attempts import Attempts
from dragoman.routing.metering import Meter
from dragoman.routing.resolve import resolve
from dragoman.routing.target import Chain
from dragoman.routing.target_health import HealthTable
from dragoman.types import Message, Request, Text, Tool

PROVIDER = '[providers.lab]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
#: Kind of what grows → how a chunk says it.
GROWING = {
    "text": lambda word: {"content": word},
    "thinking": lambda word: {"reasoning_content": word},
    "arguments": lambda word: {"tool_calls": [{"index": 0, "function": {"arguments": word}}]},
}
FIRST = {
    "text": {"role": "assistant", "content": "so "},
    "thinking": {"role": "assistant", "reasoning_content": "so "},
    "arguments": {"tool_calls": [{"index": 0, "id": "c", "type": "function",
                                  "function": {"name": "f", "arguments": '{"a":"'}}]},
}  # fmt: skip
WORD = "word"
TOOLS = (Tool("f", "does", Raw(b'{"type":"object","properties":{"a":{"type":"string"}}}')),)


def chunk(delta: Mapping[str, object], **more: object) -> bytes:
    choices = [{"index": 0, "delta": delta, "finish_reason": None, **more}]
    return b"data: " + json.dumps({"id": "r", "choices": choices}).encode() + b"\n\n"


class Scripted:
    """A provider's connection, whose answer comes chunk by chunk, each in a read of its own."""

    def __init__(self, chunks: list[bytes]) -> None:
        self.status, self.headers = 200, {"content-type": "text/event-stream"}
        self._chunks = chunks

    async def open(self, outgoing: Outgoing, before: BeforeSend | None = None) -> Scripted:
        if before is not None:
            assert before(outgoing) is None
        return self

    async def read(self) -> bytes:
        return self._chunks.pop(0) if self._chunks else b""

    async def pour(self, sink: Sink) -> None:
        for each in self._chunks:
            sink(each)

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    (tmp_path / "dragoman.toml").write_text(PROVIDER)
    ledger = Ledger(LedgerFolder.of(tmp_path / "ledger"), Observer(), ships=False)
    ledger.pricing = Pricing(load_config(tmp_path / "dragoman.toml", environ={}, home=tmp_path))
    yield ledger
    ledger.close()


async def streamed(folder: Path, kind: str, count: int, meter: Meter | None) -> Counter[str]:
    """How often each function was called for an answer that grew by so many chunks and was cut then."""
    target = resolve("lab/m", load_config(folder / "dragoman.toml", environ={}, home=folder))
    exchange = Exchange(target, Request("lab/m", (Message("user", (Text("hello"),)),), tools=TOOLS), new_id=new_id)
    chunks = [chunk(FIRST[kind]), *[chunk(GROWING[kind](WORD))] * count]
    course = Attempts(Chain("lab/m", (target,)), HealthTable(), lambda words: None, meter)
    calls = Counter[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[f"{frame.f_code.co_filename.rpartition('/dragoman/')[2]}:{frame.f_code.co_qualname}"] += 1

    async def prepare(_: object) -> tuple[Exchange, float]:
        return exchange, 60.0

    def take(events: list[Event]) -> None: ...

    stream = ResponseStream(
        prepare, course, transport=Scripted(chunks), timeouts=Timeouts(), random=lambda: 0.0, keeps_reply=False
    )  # type: ignore[arg-type]
    sys.setprofile(note)
    try:
        async with stream:
            await stream.pour(take, lambda data: None)
    finally:
        sys.setprofile(None)
    return calls


def is_of_the_ledger(name: str) -> bool:
    return name.startswith(("ledger/", "gateway/", "routing/metering", "money"))


@pytest.mark.parametrize("kind", GROWING)
def test_nothing_of_the_ledger_runs_for_a_chunk(
    tmp_path: Path, ledger: Ledger, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.ledger.journal.writing._PAUSE", 3_600.0)  # it looks for its file once in so long

    def calls(count: int, *, metered: bool) -> Counter[str]:
        record = begin_record(Head("POST", "/v1/chat/completions", {}))
        meter = ledger.meter(record, has_keys=False) if metered else None
        return asyncio.run(streamed(tmp_path, kind, count, meter))

    calls(200, metered=True)  # what is made at its first use is made, expressions too
    few, many = calls(100, metered=True), calls(200, metered=True)
    off_few, off_many = calls(100, metered=False), calls(200, metered=False)
    of_few, of_many = [{name: each[name] for name in each if is_of_the_ledger(name)} for each in (few, many)]
    assert of_few and of_few == of_many
    assert many.total() - few.total() == off_many.total() - off_few.total() > 100


@pytest.mark.parametrize("kind", GROWING)
def test_all_that_came_alone_is_counted_where_the_answer_is_cut(tmp_path: Path, ledger: Ledger, kind: str) -> None:
    record = begin_record(Head("POST", "/v1/chat/completions", {}))
    meter = ledger.meter(record, has_keys=False)
    asyncio.run(streamed(tmp_path, kind, 50, meter))
    first = {"text": 3, "thinking": 3, "arguments": 6}[kind]
    assert meter.grown == first + 50 * len(WORD)
    [name] = {path.name.partition(".")[0] for path in ledger.folder.journals.glob("*.journal")}
    reader = JournalReader(ledger.folder.journals, name)
    [row] = reader.look([1], is_dead=True).rows
    assert row.state == "estimated" and row.settlement is not None
    assert row.settlement.output == -(-meter.grown // 4)
