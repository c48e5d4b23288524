"""R19: the gateway counts requests as the strictest reader does, alone and behind HAProxy and nginx.

Each case is raw bytes on one connection. Every request in it that is one asks for a script of its own, so what the
gateway took for requests is what its provider was asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from reliability.process import Gateway, providers
from reliability.provider import Provider, whole
from reliability.r08_long_silence import proxy
from reliability.r13_reload import _ANSWER
from reliability.row import Result, Scale

_PATH = "/v1/chat/completions"
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CHUNK = re.compile(rb"[0-9a-fA-F]{1,15}(;[\w-]+(=[\w-]+)?)*")
_TRAILER = re.compile(rb"[\w-]+:[\t\x20-\x7e]*")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_MARK = "smuggled-"
#: Seconds without an answer, after which no more is waited for.
_SILENCE = 0.25


class Case(NamedTuple):
    """Bytes, and the marks of the requests that the strictest reader finds in them, in order."""

    data: bytes
    strict: list[str]


def body(mark: str) -> bytes:
    return json.dumps({"model": f"openai-chat/{mark}", "messages": [{"role": "user", "content": "Hi"}]}).encode()


def request(mark: str, *fields: str, data: bytes | None = None, first: str = f"POST {_PATH} HTTP/1.1") -> bytes:
    """A plain request; `fields` in place of its length."""
    content = body(mark) if data is None else data
    lines = [first, "Host: localhost", *(fields or (f"Content-Length: {len(content)}",))]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + content


def chunked(data: bytes, *, extension: bytes = b"", end: bytes = b"0\r\n\r\n", line: bytes = b"\r\n") -> bytes:
    return b"%x%b%b%b%b%b" % (len(data), extension, line, data, line, end)


def cases() -> Iterator[Case]:
    """All of them; each ends with a good request, which only a reader that kept its place finds."""
    for number, data in enumerate(_broken()):
        whole_data = data.replace(b"-XXXX-", f"-{number:04}-".encode())  # as long as it was
        yield Case(whole_data, strict(whole_data))


def _broken() -> Iterator[bytes]:
    one, two, three = (f"{_MARK}XXXX-{letter}" for letter in "abc")
    last = request(three)
    inner = request(two)
    content = body(one)
    size = len(content)
    yield request(one) + last
    yield request(one, "Transfer-Encoding: chunked", data=chunked(content)) + last
    # Two lengths, two encodings, and both.
    lengths = [
        f"{size}",
        f"{size + len(inner)}",
        "0",
        "+5",
        "-1",
        "0x10",
        "1e2",
        f" {size} ",
        f"{size},{size}",
        f"{size}, 0",
        "",
        "99999999999999999999",
        f"{size}\t",
        f"0{size}",
        f"{size};",
        "٣",
    ]
    encodings = [
        "chunked",
        "Chunked",
        "CHUNKED",
        " chunked",
        "chunked ",
        "\tchunked",
        "xchunked",
        "chunkedx",
        "chunked, identity",
        "identity",
        "identity, chunked",
        "gzip, chunked",
        "chunked, chunked",
        "chunked;q=1",
        '"chunked"',
        "chun\tked",
        ",chunked",
        "chunked,",
        "\x0bchunked",
        "chunked\x0b",
        "cow",
        "",
        "chunked\x00",
        "\xa0chunked",
    ]
    for length in lengths:
        yield request(one, f"Content-Length: {length}".encode().decode("latin-1")) + inner + last
    for name in (
        "Content-Length ",
        "Content-Length\t",
        " Content-Length",
        "Content_Length",
        "Content-Length\x00",
        "content-length",
        "CONTENT-LENGTH",
    ):
        yield request(one, f"{name}: {size}") + last
    for first, second in itertools.product(lengths[:6], repeat=2):
        yield request(one, f"Content-Length: {first}", f"Content-Length: {second}") + inner + last
    for encoding in encodings:
        both = ("Transfer-Encoding: " + encoding,)
        for fields in (
            both,
            (*both, f"Content-Length: {size}"),
            (f"Content-Length: {size}", *both),
            (*both, "Content-Length: 4"),
        ):
            yield request(one, *fields, data=chunked(content)) + last
        yield request(one, *both, data=chunked(content), first=f"POST {_PATH} HTTP/1.0") + last
        yield request(one, *both, data=b"0\r\n\r\n") + inner + last
    for name in (
        "Transfer-Encoding ",
        " Transfer-Encoding",
        "Transfer_Encoding",
        "Transfer-Encoding\t",
        "X\r\nTransfer-Encoding",
        "X: y\rTransfer-Encoding",
        "X: y\nTransfer-Encoding",
        "transfer-encoding",
    ):
        yield request(one, f"{name}: chunked", f"Content-Length: {size}", data=chunked(content)) + last
        yield request(one, f"{name}: chunked", data=chunked(content)) + last
    for first, second in itertools.product(("chunked", "identity", "gzip", "x"), repeat=2):
        yield request(one, f"Transfer-Encoding: {first}", f"Transfer-Encoding: {second}", data=chunked(content)) + last
    # Chunks.
    for extension in (
        b";a=b",
        b"; a=b",
        b";a",
        b" ;a=b",
        b"\t",
        b" ",
        b';a="b\r\n"',
        b";\n",
        b";a\n0\r\n\r\n",
        b"\n",
        b"\x00",
        b"x",
        b"_1",
        b';a="',
        b";a\rb",
    ):
        yield request(one, "Transfer-Encoding: chunked", data=chunked(content, extension=extension)) + last
    for end in (
        b"0\r\n\r",
        b"0\n\n",
        b"0\r\n",
        b"00\r\n\r\n",
        b"0\r\nX: y\r\n\r\n",
        b"0\r\nContent-Length: 5\r\n\r\n",
        b"0;a\r\n\r\n",
        b"-0\r\n\r\n",
        b"0x0\r\n\r\n",
        b"0\r\n\r\nx",
        b"0\r\r\n\r\n",
        b" 0\r\n\r\n",
        b"+0\r\n\r\n",
        b"0\r\nX y\r\n\r\n",
    ):
        yield request(one, "Transfer-Encoding: chunked", data=chunked(content, end=end)) + last
    for line in (b"\n", b"\r", b"\r\r\n", b"\n\n", b"\r\n\r\n", b""):
        yield request(one, "Transfer-Encoding: chunked", data=chunked(content, line=line)) + last
    for length in (
        "0x%x",
        "%X",
        "0%x",
        "%x ",
        " %x",
        "+%x",
        "-%x",
        "%xg",
        "%x\x00",
        "ffffffffffffffff%x",
        "1_%x",
        "\t%x",
    ):
        data = (length % size).encode() + b"\r\n" + content + b"\r\n0\r\n\r\n"
        yield request(one, "Transfer-Encoding: chunked", data=data) + last
    # The head itself.
    for first in (
        f"POST {_PATH} HTTP/1.1 ",
        f" POST {_PATH} HTTP/1.1",
        f"POST  {_PATH} HTTP/1.1",
        f"POST\t{_PATH} HTTP/1.1",
        f"POST {_PATH}",
        f"POST {_PATH} HTTP/0.9",
        f"POST {_PATH} HTTP/1.2",
        f"POST {_PATH} HTTP/2.0",
        f"POST {_PATH} http/1.1",
        f"POST {_PATH} HTTP/1.1x",
        f"POST {_PATH} HTTP/11",
        f"POST {_PATH} HTTP/1,1",
        f"post {_PATH} HTTP/1.1",
        f"POST {_PATH}\x00 HTTP/1.1",
        f"POST {_PATH} x HTTP/1.1",
        f"POST http://localhost{_PATH} HTTP/1.1",
        f"POST //localhost{_PATH} HTTP/1.1",
        f"POST {_PATH}#x HTTP/1.1",
        f"PO ST {_PATH} HTTP/1.1",
        f"\r\nPOST {_PATH} HTTP/1.1",
        f"\nPOST {_PATH} HTTP/1.1",
        f"\r\n\r\nPOST {_PATH} HTTP/1.1",
        f"POST {_PATH} HTTP/+1.1",
        f"POST {_PATH} HTTP/1.01",
    ):
        yield request(one, first=first) + last
    for field in (
        "X: a\r\n b",
        "X: a\r\n\tb",
        "X: a\n b",
        "X:a\x00b",
        "X\x00: a",
        "X: a\rb",
        "X a",
        ": a",
        "X : a",
        "\tX: a",
        "X\xe9: a",
        "X: \xe9",
        "(X): a",
        "X: a\r\r\nY: b",
        "X: a\n",
        "X: a\n\nGET / HTTP/1.1",
        "Connection: close",
        "Connection: keep-alive, Transfer-Encoding",
        "Connection: Content-Length",
        "Upgrade: h2c\r\nConnection: Upgrade",
        "Upgrade: websocket\r\nConnection: Upgrade",
        "Expect: 100-continue",
        "Expect: 200-ok",
        "Host: evil",
        "Trailer: Content-Length",
        "TE: trailers",
        "Content-Encoding: identity",
    ):
        yield request(one, f"Content-Length: {size}", field) + last
        yield request(one, field, f"Content-Length: {size}") + last
        yield request(one, field, "Transfer-Encoding: chunked", data=chunked(content)) + last
    for first in (
        f"GET {_PATH} HTTP/1.1",
        "HEAD /api/tags HTTP/1.1",
        "DELETE /x HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "GET / HTTP/1.0",
    ):
        yield request(one, f"Content-Length: {len(inner)}", data=inner, first=first) + last
        yield request(one, "Transfer-Encoding: chunked", data=chunked(inner), first=first) + last
        yield request(one, "X: y", data=b"", first=first) + inner + last
    yield request(one).replace(b"\r\n", b"\n") + last
    yield request(one).replace(b"\r\n\r\n", b"\n\n") + last
    yield request(one).replace(b"\r\n\r\n", b"\r\n\n") + last
    yield request(one).replace(b"\r\n\r\n", b"\n\r\n") + last
    yield request(one, f"Content-Length: {size - 5}") + last
    yield request(one, f"Content-Length: {size + len(inner)}", data=content + inner) + last
    yield b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + last
    yield b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n" + last


# ---------------------------------------------------------------- the strict reader


def strict(data: bytes) -> list[str]:
    """The marks of the requests that a reader without any leniency finds; it stops at the first doubt (RFC 9112)."""
    found: list[str] = []
    while data:
        read = _one(data)
        if read is None:
            return found
        is_post, content, data, closes = read
        mark = re.search(rb'"openai-chat/(smuggled-[\w-]+)"', content)
        if is_post and mark is not None and content.count(b"openai-chat/") == 1:
            found.append(mark[1].decode())
        if closes:
            return found
    return found


def _one(data: bytes) -> tuple[bool, bytes, bytes, bool] | None:
    head, separator, rest = data.lstrip(b"\r\n").partition(b"\r\n\r\n")  # empty lines before a request mean nothing
    first, *lines = head.split(b"\r\n")
    parts = re.split(rb" +", first)
    if not separator or len(parts) != 3 or not _TOKEN.fullmatch(parts[0]) or parts[2] not in (b"HTTP/1.1", b"HTTP/1.0"):
        return None
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value) or name.lower() in fields:
            return None
        fields[name.lower()] = value.strip(b" \t")
    content = _content(fields, rest, is_old=parts[2] == b"HTTP/1.0")
    if content is None or fields.get(b"host") != b"localhost":
        return None
    body_data, rest = content
    closes = parts[2] == b"HTTP/1.0" or b"close" in fields.get(b"connection", b"").lower()
    path = parts[1].removeprefix(b"http://localhost")  # the absolute form names the host as well (section 3.2.2)
    return parts[0] == b"POST" and path == _PATH.encode(), body_data, rest, closes


def _content(fields: dict[bytes, bytes], rest: bytes, *, is_old: bool) -> tuple[bytes, bytes] | None:
    if b"transfer-encoding" in fields:
        if is_old or b"content-length" in fields or fields[b"transfer-encoding"].lower() != b"chunked":
            return None
        return _chunks(rest)
    length = fields.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > len(rest):
        return None
    return rest[: int(length)], rest[int(length) :]


def _chunks(rest: bytes) -> tuple[bytes, bytes] | None:
    content = b""
    while True:
        line, separator, rest = rest.partition(b"\r\n")
        if not separator or not _CHUNK.fullmatch(line):
            return None
        size = int(line.partition(b";")[0], 16)
        if not size:
            trailer, separator, rest = (b"\r\n" + rest).partition(b"\r\n\r\n")
            return (content, rest) if separator and all(map(_TRAILER.fullmatch, trailer.split(b"\r\n")[1:])) else None
        content += rest[:size]
        if rest[size : size + 2] != b"\r\n":
            return None
        rest = rest[size + 2 :]


# ---------------------------------------------------------------- measuring


def measure(scale: Scale) -> Iterator[Result]:
    """Directly; then behind each proxy, where nothing may be found that the proxy did not send."""
    yield asyncio.run(through(None))
    for program, package in (("haproxy", "haproxy"), ("nginx", "nginx-light")):
        if shutil.which(program) is None:
            yield Result("R19", f"0 differences behind {program}", f"missing: apt-get install {package}", False)
            continue
        yield asyncio.run(through(program))


async def through(program: str | None) -> Result:
    """Play all cases; compare what reached the provider with what the strict reader found. Each request names its case,
    since on a busy machine one may arrive when the next case is played."""
    asked: list[str] = []
    with contextlib.ExitStack() as stack:
        provider = stack.enter_context(Provider(whole(_ANSWER)))
        gateway = stack.enter_context(Gateway(providers(provider.url)))
        port = gateway.port if program is None else stack.enter_context(proxy(program, gateway.port, idle=20))
        played = [(number, case, await play(port, case.data, _SILENCE)) for number, case in enumerate(cases())]
        await asyncio.sleep(2)
        asked = reached(provider)
        wrong = [one for one in judged(played, asked) if is_wrong(one, program)]
        allowed = len(judged(played, asked)) - len(wrong)
        for again in [one.number for one in wrong]:
            # On a busy machine an answer may come after the time for which it was waited.
            provider.forget()
            number, case, _ = played[again]
            answers = await play(port, case.data, 10 * _SILENCE)
            await asyncio.sleep(2)
            repeated = judged([(number, case, answers)], reached(provider))
            wrong = [one for one in wrong if one.number != number] + [one for one in repeated if is_wrong(one, program)]
        alive = gateway.is_running
    for one in wrong[:12]:
        print("   ", one.case.data[:160], "strict", one.case.strict, "taken", one.taken, "answers", one.answers)
    where = f"behind {program}" if program else "directly"
    measured = (
        f"{where}: {len(wrong)} of {len(played)} cases, {len(asked)} requests taken; in {allowed} cases something is "
        f"refused that the reference takes{', or mended by the proxy' if program else ''}"
    )
    passed = not wrong and len(played) >= 300 and len(asked) >= 100 and alive
    return Result("R19", "0 count differences in ≥ 300 cases", measured, passed)


class _Judged(NamedTuple):
    """A case of which not all was taken that the strict reader finds, or something else."""

    number: int
    case: Case
    taken: list[str]
    answers: int


def reached(provider: Provider) -> list[str]:
    """The models of the requests that came to the provider."""
    return [json.loads(one.body)["model"] for one in provider.asked if one.head.startswith(b"POST")]


def judged(played: list[tuple[int, Case, int]], asked: list[str]) -> list[_Judged]:
    """The cases of which not exactly that was taken which the strict reader finds."""
    found = []
    for number, case, answers in played:
        taken = [model for model in asked if model.startswith(f"{_MARK}{number:04}-")]
        if taken != case.strict:
            found.append(_Judged(number, case, taken, answers))
    return found


def is_wrong(one: _Judged, program: str | None) -> bool:
    """Fewer is safe: the rest was refused and the connection closed. A proxy may make good requests of bad ones; then
    each must be one that it has an answer for."""
    if one.taken == one.case.strict[: len(one.taken)]:
        return False
    return program is None or len(one.taken) > one.answers


async def play(port: int, data: bytes, silence: float) -> int:
    """Send a case; gives how many responses came until nothing came for so many seconds."""
    received = b""
    with suppress(OSError, TimeoutError):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        with suppress(TimeoutError):
            while piece := await asyncio.wait_for(reader.read(65536), silence):
                received += piece
        writer.close()
    return len(re.findall(rb"HTTP/1\.[01] [2-5]\d\d ", received))
