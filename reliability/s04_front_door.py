"""S4: no route lacks the guard; and a gateway whose guard is taken out is found by the same test."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import dragoman
from reliability.caller import Caller, rendered
from reliability.process import Gateway, providers
from reliability.provider import Provider, whole
from reliability.row import Result, Scale
from reliability.s03_other_sites import METHODS, routes

KEY = "dk-0123456789abcdef0123456789abcdef"
SETTINGS = '[server]\nkeys = ["env:CLIENT_KEY"]'
#: Liveness says nothing of anybody, and what watches a process has no key.
OPEN = ("/livez", "/readyz")
#: What passes for a key elsewhere.
WRONG_KEYS: tuple[dict[str, str], ...] = (
    {},
    {"authorization": "Bearer "},
    {"authorization": f"Basic {KEY}"},
    {"authorization": KEY},
    {"authorization": f"Bearer {KEY[:-1]}"},
    {"authorization": f"Bearer {KEY}x"},
    {"authorization": f"Bearer {KEY.upper()}"},
    {"authorization": "Bearer null"},
    {"x-api-key": ""},
    {"x-goog-api-key": KEY[:20]},
    {"cookie": f"key={KEY}"},
    {"x-forwarded-for": "127.0.0.1"},
)
_GUARD = "    def judge(self, head: Head"


def measure(scale: Scale) -> Iterator[Result]:
    """Every route and method without a right key; then the same against a copy of the package without its guard."""
    with Provider(whole(b"{}")) as provider:
        config = providers(provider.url, SETTINGS)
        with Gateway(config, environ={"CLIENT_KEY": KEY}) as gateway:
            passed, tried = asyncio.run(admitted(gateway))
            right = asyncio.run(status(gateway.port, "GET", "/api/tags", {"authorization": f"Bearer {KEY}"}))
        asked = sum(asked.head.startswith(b"POST") for asked in provider.asked)
        for line in passed[:20]:
            print("   ", line)
        measured = f"{len(passed)} of {tried} were let in, {asked} reached a provider; the right key gets {right}"
        yield Result("S4", "100 % of routes ask for the key", measured, not passed and not asked and right == 200)
        with tempfile.TemporaryDirectory() as folder:
            mutilate(Path(folder))
            with Gateway(config, environ={"CLIENT_KEY": KEY, "PYTHONPATH": folder}) as gateway:
                passed, tried = asyncio.run(admitted(gateway))
        measured = f"without its guard {len(passed)} of {tried} were let in, which the test sees"
        yield Result("S4", "a gateway without its guard is found", measured, bool(passed))


def mutilate(folder: Path) -> None:
    """A copy of the package whose guard lets everybody in."""
    package = folder / "dragoman"
    shutil.copytree(Path(dragoman.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / "gateway" / "auth.py"
    before, signature, after = file.read_text(encoding="utf-8").partition(_GUARD)
    assert signature, "the guard has another form now: this test must cut it out there"
    line, _, body = after.partition(":\n")
    file.write_text(f"{before}{signature}{line}:\n        return None\n{body}", encoding="utf-8")


async def admitted(gateway: Gateway) -> tuple[list[str], int]:
    """The requests without a right key that were not refused for that; how many there were."""
    passed, tried = [], 0
    for path in routes():
        for method in METHODS:
            for headers in WRONG_KEYS:
                if path in OPEN:
                    continue
                tried += 1
                # Wrong keys are slowed by address: each comes from another.
                source = f"127.{1 + tried // 62_500}.{tried // 250 % 250}.{1 + tried % 250}"
                found = await status(gateway.port, method, path, headers, source=source)
                if found != 401:
                    passed.append(f"{method} {path} {sorted(headers)}: {found}")
    return passed, tried


async def status(port: int, method: str, path: str, headers: dict[str, str], *, source: str = "127.0.0.1") -> int:
    body = b'{"model":"openai-chat/model-1","messages":[{"role":"user","content":"Hi"}]}' if method == "POST" else b""
    caller = await Caller.connect(port, source=source)
    await caller.send(rendered(path, body, method=method, headers=headers))
    answer = await caller.answer(has_body=method != "HEAD")
    caller.close()
    return answer.status
