"""L2: no byte of a request reaches a provider before its intent is in the journal.

`strace` holds the gateway for a while behind each call by which it sends: what the journal has when the provider has
the request was there before the call. So the provider looks into the journal's files as each request comes. All 25
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
from dragoman.ledger.journal.frames import HEADER, read_frames
from dragoman.ledger.journal.records import Intent, decode_record
from dragoman.protocols import PROTOCOLS
from gateway.running import whole_of
from reliability.caller import ask, spoken
from reliability.process import Gateway, providers
from reliability.provider import Asked, Provider, Script, streamed, wire
from reliability.row import Result, Scale

_GOAL = "0 requests are sent without an intent before them"
_NAME, _SENT_NAME = re.compile(rb"script-\d+"), re.compile(r"script-\d+")
#: What the gateway writes to a provider begins so.
_SENT = "POST /"
_CALLS = "write,writev,sendto,sendmsg"
#: Microseconds for which a call of these is held when it is done: the provider looks meanwhile.
_HELD = 20_000


class Looks:
    """What the provider finds in the journals as each request comes."""

    def __init__(self, journals: Path) -> None:
        self._journals = journals
        self._came: Counter[str] = Counter()
        self.early = 0

    def __call__(self, asked: Asked) -> None:
        found = _NAME.search(asked.head.split(b"\r\n", 1)[0]) or _NAME.search(asked.body)
        if found is None or not asked.head.startswith(b"POST"):
            return
        name = found[0].decode()
        self._came[name] += 1
        self.early += self._came[name] > self.intents()[name]

    def intents(self) -> Counter[str]:
        """How many intents name each script now."""
        names: Counter[str] = Counter()
        for path in self._journals.glob("*.journal"):
            for _, data in read_frames(path.read_bytes(), len(HEADER)).records:
                record = decode_record(data)
                if type(record) is Intent:
                    names[record.target.rpartition("/")[2]] += 1
        return names


def measure(scale: Scale) -> Iterator[Result]:
    """The pairs, and connections that die."""
    if shutil.which("strace") is None:
        yield Result("L2", _GOAL, "strace is not installed", False)
        return
    yield asyncio.run(_measure(scale.pick(40, 5)))


async def _measure(resent: int) -> Result:
    with tempfile.TemporaryDirectory(prefix="dragoman-") as state, Provider() as provider:
        trace = Path(state) / "trace"
        looks = provider.watch = Looks(Path(state) / "state" / "ledger" / "journals")
        held = ("-e", f"trace={_CALLS}", "-e", f"inject={_CALLS}:delay_exit={_HELD}")
        prefix = ("strace", "-D", "-f", "-s", "65535", *held, "-o", str(trace))
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
        return judged(trace.read_text(encoding="utf-8", errors="replace"), reached, looks)


def judged(trace: str, reached: int, looks: Looks) -> Result:
    """Each send has an intent of its own before it."""
    sent: Counter[str] = Counter()
    for line in trace.splitlines():
        if _SENT in line and (found := _SENT_NAME.search(line)) is not None:
            sent[found[0]] += 1
    total, twice, intents = sum(sent.values()), sum(count > 1 for count in sent.values()), looks.intents()
    missing = sum((sent - intents).values())
    words = (
        f"{total} sends in the trace, {reached} requests at the provider, {sum(intents.values())} intents; "
        f"{twice} were sent twice over a connection that died; before their intent {looks.early}, without {missing}"
    )
    is_met = not looks.early and not missing and total == reached and total > 50 and twice > 0
    return Result("L2", _GOAL, words, is_met)
