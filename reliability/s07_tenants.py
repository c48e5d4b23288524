# ruff: noqa: E501 - tables and words of results, which a line end would tear
"""S7: what tells of all clients is for admins, at an address of their own; a client sees its own lines alone."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import socket
from collections.abc import Iterator

from reliability.caller import Answer, Caller, ask, rendered, spoken
from reliability.ports import free_port
from reliability.process import Gateway, providers
from reliability.provider import Provider, whole
from reliability.row import Result, Scale

KEYS = tuple(f"{name}-3f9a7c51b2d8e604f7a19c" for name in ("first", "second", "third", "admin"))
*CLIENTS, ADMIN = KEYS
#: What a key of one kind may not get of the other.
PAGES = (
    "/metrics",
    "/tail",
    "/v1/models",
    "/v1/chat/completions",
    "/api/tags",
    "/admin",
    "/",
    "/tail?all=1",
    "/metrics/",
    "//metrics",
)
_ANSWER = json.dumps(
    {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
     "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}]}
).encode()  # fmt: skip


def digest(key: str) -> str:
    return f'"sha256:{hashlib.sha256(key.encode()).hexdigest()}"'


SERVER = f"[server]\nkeys = [{', '.join(map(digest, CLIENTS))}]\n"


def measure(scale: Scale) -> Iterator[Result]:
    """Several clients at once, each listening; every page by every key at both listeners."""
    with Provider(whole(_ANSWER)) as provider:
        admin = f'[admin]\naddress = "127.0.0.1:{free_port()}"\nkeys = [{digest(ADMIN)}]\n'
        port = int(re.search(r":(\d+)\"", admin)[1])  # type: ignore[index]
        with Gateway(providers(provider.url, SERVER + admin)) as gateway:
            yield asyncio.run(lines(gateway.port, port, scale.pick(40, 10)))
            yield asyncio.run(pages(gateway.port, port))
        with Gateway(providers(provider.url, SERVER)) as gateway:
            found = {
                page: asyncio.run(ask(gateway.port, page, method="GET", headers=keyed(CLIENTS[0]))).status
                for page in ("/metrics",)
            }
            closed = asyncio.run(refuses(port))
        words = f"without [admin] its port is {'closed' if closed else 'OPEN'}, a client key at /metrics gets {found['/metrics']}"
        yield Result("S7", "off by default", words, closed and found["/metrics"] == 403)


def keyed(key: str) -> dict[str, str]:
    return {"x-api-key": key} if key else {}


async def asked(port: int, path: str, number: int, *, method: str = "GET", key: str = "") -> Answer:
    """One request from an address of its own: wrong keys are slowed by address."""
    plain = socket.socket()
    plain.bind((f"127.1.{number // 250}.{number % 250 + 1}", 0))
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", port))
    caller = Caller(*await asyncio.open_connection(sock=plain))
    await caller.send(rendered(path, b"{}" if method == "POST" else b"", method=method, headers=keyed(key)))
    async with asyncio.timeout(10):
        answer = await caller.answer(has_body=method != "HEAD")
    caller.close()
    return answer


async def refuses(port: int) -> bool:
    try:
        caller = await Caller.connect(port)
    except OSError:
        return True
    caller.close()
    return False


async def lines(port: int, admin: int, count: int) -> Result:
    """Each client asks under ids of its own while all listen at /tail."""
    listeners = [(key, await listening(port, key)) for key in CLIENTS] + [(ADMIN, await listening(admin, ADMIN))]
    for number in range(count):
        for key in CLIENTS:
            path, body = spoken("openai-chat", "openai-chat/m", stream=False)
            await ask(port, path, body, headers=keyed(key) | {"x-client-request-id": f"{key[:5]}-{number}"})
    foreign = own = 0
    counts = []
    for key, caller in listeners:
        seen = await heard(caller)
        ids = [line["client_id"] for line in seen if line.get("client_id")]
        counts.append(len(ids))
        if key != ADMIN:
            foreign += sum(not each.startswith(key[:5]) for each in ids)
            foreign += sum(other[:8] in json.dumps(line) for line in seen for other in KEYS if other != key)
            own += len(ids) == count
    words = f"{foreign} lines of others in {sum(counts[:-1])}; {own} of {len(CLIENTS)} saw all {count} of their own; the admin saw {counts[-1]}"
    passed = not foreign and own == len(CLIENTS) and counts[-1] == count * len(CLIENTS)
    return Result("S7", "a client's /tail shows its own lines alone", words, passed)


async def listening(port: int, key: str) -> Caller:
    caller = await Caller.connect(port)
    await caller.send(rendered("/tail", method="GET", headers=keyed(key)))
    answer = Answer()
    await caller.head(answer)
    if answer.status != 200:
        raise RuntimeError(f"/tail answered {answer.status}")
    return caller


async def heard(caller: Caller) -> list[dict[str, str]]:
    """The lines that have come until half a second passes without one."""
    answer, found = Answer(), b""
    try:
        while True:
            async with asyncio.timeout(0.5):
                found += await caller.piece(answer)
    except TimeoutError:
        pass
    caller.close()
    return [json.loads(line) for line in found.splitlines() if line.strip()]


async def pages(port: int, admin: int) -> Result:
    """Every page by every kind of key, at the listener where it is none: 0 answers with 200."""
    passed, tried = [], 0
    for where, name, keys in (
        (port, "server", ("", ADMIN, f"{CLIENTS[0]}x")),
        (admin, "admin", ("", *CLIENTS, ADMIN[:-1], ADMIN.upper())),
    ):
        for key in keys:
            for page in PAGES:
                for method in ("GET", "POST", "HEAD"):
                    tried += 1
                    answer = await asked(where, page, tried, method=method, key=key)
                    if answer.status < 400:
                        passed.append(f"{method} {page} at {name}: {answer.status}")
    for page in ("/metrics", "//metrics", "/metrics/", "/METRICS", "/%6detrics", "/./metrics"):
        for key in CLIENTS:
            tried += 1
            answer = await asked(port, page, tried, key=key)
            if answer.status < 400 or b"dragoman_" in answer.body:
                passed.append(f"GET {page} by a client: {answer.status}")
    right = (await ask(admin, "/metrics", method="GET", headers=keyed(ADMIN))).status
    for line in passed[:10]:
        print("   ", line)
    words = f"{len(passed)} of {tried} let in; the admin's key at its own listener gets {right}"
    return Result("S7", "no key of one kind opens the other's pages", words, not passed and right == 200)
