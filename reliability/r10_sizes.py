"""R10, R11: what is too large is refused at its limit, in the client's form, before a byte goes on, cheaply."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dragoman import _json
from dragoman.gateway.messages import Limits
from dragoman.gateway.request_bodies import USUAL_BOUNDS
from dragoman.protocols import PROTOCOLS
from dragoman.types import Message, Params, Request, Text, Tool
from reliability.caller import Answer, Caller, ask, rendered, spoken
from reliability.process import BASE, Gateway, providers
from reliability.provider import END, Provider, Step, chunk, head, whole
from reliability.r01_truncation import wire
from reliability.row import Result, Scale, milliseconds, percentile

_MIB = 1024 * 1024
_ANSWER = json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}]}).encode()  # fmt: skip


class Tried(NamedTuple):
    """One request at a limit. `over`: it has one too many."""

    what: str
    over: bool
    expected: tuple[int, ...]
    answer: Answer
    seconds: float
    asked: bool
    client: str
    grown: int
    size: int


def measure(scale: Scale) -> Iterator[Result]:
    """One below, at, and one above each limit; then bombs, from clients and from a provider."""
    with Provider(whole(_ANSWER)) as provider, Gateway(providers(provider.url)) as gateway:
        yield from asyncio.run(sizes(gateway, provider))
    with Provider(whole(_ANSWER)) as provider, Gateway(providers(provider.url)) as gateway:
        yield from asyncio.run(bombs(gateway, provider, scale))


async def sizes(gateway: Gateway, provider: Provider) -> list[Result]:
    tried = []
    for client in BASE:
        for step in (-1, 0, 1):
            for what, path, body, headers, expected in requests_at(client, step):
                tried.append(await one(gateway, provider, what, client=client, over=step > 0, path=path, body=body,
                                       headers=headers, expected=expected))  # fmt: skip
    wrong = [
        f"{found.client}, {found.what} {'+1' if found.over else 'within'}: {found.answer.status} "
        f"{'asked' if found.asked else 'not asked'} {found.answer.body[:150]!r}"
        for found in tried
        if found.over != (found.answer.status in found.expected) or found.over == found.asked
    ]
    strange = [found for found in tried if found.over and not is_in_form(found)]
    for line in [*wrong, *(f"{found.client}, {found.what}: {found.answer.body[:100]!r}" for found in strange)]:
        print("   ", line)
    over = [found for found in tried if found.over]
    slow = percentile([found.seconds for found in over], 1)
    worst = max(over, key=lambda found: found.seconds)
    grown = max((found.grown / max(found.size, _MIB) for found in over), default=0)
    return [
        Result("R10", "exact at −1, 0, +1, and nothing goes on", f"{len(wrong)} of {len(tried)} wrong", not wrong),
        Result("R10", "refused in the client's form", f"{len(over) - len(strange)} of {len(over)}", not strange),
        Result("R10", "refused ≤ 20 ms after the last byte",
               f"p50 {milliseconds(percentile([found.seconds for found in over], 0.5))}, most {milliseconds(slow)} "
               f"({worst.what})", slow <= 0.02),
        Result("R10", "memory + ≤ 1 × body", f"most {grown:.1f} × (peak; at least 1 MiB counts)", grown <= 1.05),
    ]  # fmt: skip


def requests_at(client: str, step: int) -> Iterator[tuple[str, str, bytes, dict[str, str], tuple[int, ...]]]:
    """(what, path, body, headers, statuses of a refusal) for each limit."""
    limits = Limits()
    path, plain = spoken(client, "openai-chat/model-1", stream=False)
    fields: dict[str, Any] = json.loads(plain)
    base = {"host": "127.0.0.1", "content-type": "application/json", "content-length": str(len(plain))}
    size = len(path) + sum(len(name) + len(value) + 4 for name, value in base.items()) + len("x-filler") + 4
    yield "head of 64 KiB", path, plain, {"x-filler": "x" * (limits.head - size + step)}, (431,)
    many = {f"x-{number}": "1" for number in range(limits.fields - len(base) + step)}
    yield "100 fields", path, plain, many, (431,)
    if client in ("openai-chat", "anthropic-messages"):  # the others have the same code before them
        filler = plain[:-1] + b',"metadata":{"a":"'
        room = limits.body - len(filler) - 3 + step
        notes = b'","b":"'.join([b"x" * (8 * _MIB)] * (room // (8 * _MIB)))
        body = (filler + notes).ljust(limits.body + step - 3, b"x") + b'"}}'
        yield "body of 32 MiB", path, body, {}, (413,)
        picture = b"data:image/png;base64," + b"A" * (USUAL_BOUNDS.media // 3 * 4 - 22 + step)
        part = {"openai-chat": b'{"type":"image_url","image_url":{"url":"%b"}}', "anthropic-messages": b'{"type":"image","source":{"type":"url","url":"%b"}}'}[client] % picture  # noqa: E501  # fmt: skip
        shown = json.dumps(fields | {"messages": [{"role": "user", "content": ["HERE"]}]}).encode()
        yield "data URL of 20 MiB", path, shown.replace(b'"HERE"', part), {}, (413,)
    deep: Any = "x"
    for _ in range(USUAL_BOUNDS.depth - 1 + step):
        deep = [deep]
    yield "128 levels", path, json.dumps(fields | {"metadata": deep}).encode(), {}, (400,)
    yield (
        "512 tools",
        path,
        json.dumps(fields | {"tools": tools(client, USUAL_BOUNDS.tools + step)}).encode(),
        {},
        (400,),
    )


def tools(client: str, count: int) -> list[Any]:
    """So many tools in a client's form."""
    offered = tuple(
        Tool(f"tool_{number}", "", _json.raw({"type": "object", "properties": {}})) for number in range(count)
    )
    request = Request("m", (Message("user", (Text("x"),)),), offered, params=Params(max_tokens=5))
    found: list[Any] = json.loads(PROTOCOLS[client].render_request(request).http.body)["tools"]
    return found


async def one(gateway: Gateway, provider: Provider, what: str, *, client: str, over: bool, path: str, body: bytes,
              headers: dict[str, str], expected: tuple[int, ...]) -> Tried:  # fmt: skip
    provider.forget()
    before = reset_peak(gateway.pid)
    caller = await Caller.connect(gateway.port)
    began = time.monotonic()
    data = rendered(path, body, headers=headers)
    answering = asyncio.create_task(caller.answer())
    try:
        for place in range(0, len(data), 1 << 20):  # the refusal may come before the end
            began = time.monotonic()
            await caller.send(data[place : place + (1 << 20)])
            if answering.done():
                break
    except OSError:
        pass
    answer = await answering
    caller.close()
    assert answer.head_at is not None or answer.problem is not None
    seconds = max(0.0, (answer.head_at or time.monotonic()) - began)
    asked = any(found.head.startswith(b"POST") for found in provider.asked)
    return Tried(what, over, expected, answer, seconds, asked, client, peak(gateway.pid) - before, len(body))


def reset_peak(pid: int) -> int:
    """Begin to watch the peak of a process's memory; gives what it holds now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    return _status(pid, "VmRSS")


def peak(pid: int) -> int:
    """The most memory since then."""
    return _status(pid, "VmHWM")


def _status(pid: int, name: str) -> int:
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    return int(re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)[1]) * 1024  # type: ignore[index]


def is_in_form(found: Tried) -> bool:
    """Whether a refusal is an error of the client's protocol with words in it."""
    failure = PROTOCOLS[found.client].parse_error(found.answer.status, found.answer.body)
    try:
        return isinstance(json.loads(found.answer.body), dict) and "expected" in failure.message
    except ValueError:
        return False


# ---------------------------------------------------------------- bombs


def bomb(size: int) -> bytes:
    """A gzip body that unpacks to so many bytes, in JSON."""
    machine = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = machine.compress(b'{"model":"openai-chat/model-1","messages":[{"role":"user","content":"')
    block = b"x" * (4 * _MIB)
    pieces = [data]
    for _ in range(size // len(block)):
        pieces.append(machine.compress(block))
    return b"".join([*pieces, machine.compress(b'"}]}'), machine.flush()])


async def bombs(gateway: Gateway, provider: Provider, scale: Scale) -> list[Result]:
    large = scale.pick(10 * 1024, 1024) * _MIB
    packed = await asyncio.to_thread(bomb, large)
    nested = b'{"model":"openai-chat/model-1"}'
    for _ in range(10):
        nested = gzip.compress(nested)
    many = gzip.compress(b'{"model":"openai-chat/model-1"}') * 1000
    cases = [
        (f"{len(packed) / _MIB:.0f} MiB of gzip for {large // _MIB} MiB", packed, "gzip"),
        ("the same as deflate", packed, "deflate"),
        ("gzip in gzip, ten times", nested, "gzip"),
        ("two encodings named", nested, "gzip, gzip"),
        ("a thousand gzip members", many, "gzip"),
        ("zstd with a window of 2 GiB", bytes.fromhex("28b52ffd") + b"\x00\xff" + b"\x00" * 64, "zstd"),
        ("an encoding nobody knows", packed[:1000], "br"),
        ("gzip that is none", b"x" * 1000, "gzip"),
    ]
    results = []
    for what, body, encoding in cases:
        path, _ = spoken("openai-chat", "openai-chat/model-1")
        found = await one(gateway, provider, what, client="openai-chat", over=True, path=path, body=body,
                          headers={"content-encoding": encoding}, expected=(400, 413, 415))  # fmt: skip
        extra = found.grown - found.size
        measured = (
            f"{what}: {found.answer.status} after {milliseconds(found.seconds)}, peak {extra / _MIB:+.0f} MiB beside it"
        )
        passed = (
            found.answer.status in found.expected and not found.asked and found.seconds <= 0.2 and extra <= 32 * _MIB
        )
        results.append(Result("R11", "refused ≤ 200 ms, peak + ≤ 32 MiB", measured, passed))
    before = reset_peak(gateway.pid)
    steps: list[Step] = [head(200, "text/event-stream", "content-encoding: gzip"), chunk(packed), END]
    path, body = spoken("openai-chat", f"openai-chat/{provider.script(steps)}")
    began = time.monotonic()
    answer = await ask(gateway.port, path, body)
    seconds = time.monotonic() - began
    extra = peak(gateway.pid) - before
    measured = (
        f"{cases[0][0]} from a provider: {answer.status} after {seconds:.1f} s, peak +{extra / _MIB:.0f} MiB, "
        f"{'runs on' if gateway.is_running else 'DIED'}"
    )
    ended = answer.status >= 400 or b"error" in answer.body
    results.append(
        Result("R11", "a provider's bomb is an error, peak + ≤ 64 MiB", measured, ended and extra <= 64 * _MIB)
    )
    alive = await ask(gateway.port, *spoken("openai-chat", f"openai-chat/{provider.script([head(), chunk(wire('openai-chat', 'text')), END])}"))  # noqa: E501  # fmt: skip
    results.append(Result("R11", "the gateway serves on", str(alive.status), alive.status == 200))
    return results
