"""L2: no byte of a request reaches a provider before its intent is in the journal, by the order of system calls.

`strace` writes down what the gateway writes: the record of an intent names the target, and so does the request. All 25
pairs of protocols are asked, streamed and whole, and kept connections that die, over which a request is sent twice.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from conversations import reply
from dragoman.protocols import PROTOCOLS
from gateway.running import whole_of
from reliability.caller import ask, spoken
from reliability.process import Gateway, providers
from reliability.provider import Provider, Script, streamed, wire
from reliability.row import Result, Scale

_GOAL = "0 requests are sent without an intent before them"
_NAME = re.compile(r"script-\d+")
#: What the gateway writes to a provider begins so; a journal's record has its mark, as strace shows bytes.
_SENT = "POST /"
_RECORD = r"\327\32"


def measure(scale: Scale) -> Iterator[Result]:
    """The pairs, and connections that die."""
    if shutil.which("strace") is None:
        yield Result("L2", _GOAL, "strace is not installed", False)
        return
    yield asyncio.run(_measure(scale.pick(40, 5)))


async def _measure(resent: int) -> Result:
    with tempfile.TemporaryDirectory(prefix="dragoman-") as state, Provider() as provider:
        trace = Path(state) / "trace"
        calls = "trace=write,writev,pwrite64,sendto,sendmsg"
        prefix = ("strace", "-D", "-f", "-s", "65535", "-e", calls, "-o", str(trace))
        more = f'[server]\nstate = "{state}/state"\nlog = "off"\n[http]\nretries = 0\n'
        with Gateway(providers(provider.url, more), prefix=prefix) as gateway:
            for client in PROTOCOLS:
                for target in PROTOCOLS:
                    for stream in (True, False):
                        answer: Script = streamed(target, wire(target, reply("text")))
                        name = provider.script(answer if stream else whole_of(target, reply("text")))
                        await ask(gateway.port, *spoken(client, f"{target}/{name}", stream=stream))
            for _ in range(resent):
                kept = provider.script(whole_of("openai-chat", reply("text")))
                await ask(gateway.port, *spoken("openai-chat", f"openai-chat/{kept}", stream=False))
                dies = provider.script(["close"])
                await ask(gateway.port, *spoken("openai-chat", f"openai-chat/{dies}", stream=False))
        reached = len([asked for asked in provider.asked if asked.head.startswith(b"POST")])
        return judged(trace.read_text(encoding="utf-8", errors="replace"), reached)


def judged(trace: str, reached: int) -> Result:
    """Each send has an intent of its own before it."""
    intents: Counter[str] = Counter()
    sent: Counter[str] = Counter()
    early = 0
    for line in trace.splitlines():
        found = _NAME.search(line)
        if found is None:
            continue
        if _SENT in line:
            sent[found[0]] += 1
            early += sent[found[0]] > intents[found[0]]
        elif _RECORD in line:
            intents[found[0]] += 1
    total, twice = sum(sent.values()), sum(count > 1 for count in sent.values())
    words = (
        f"{total} sends in the trace, {reached} requests at the provider, {sum(intents.values())} intents; "
        f"{twice} were sent twice over a connection that died; before their intent {early}"
    )
    return Result("L2", _GOAL, words, not early and total == reached and total > 50 and twice > 0)
