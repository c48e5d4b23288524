"""L18: a disk that takes nothing, under real processes: said, refused where a request must be recorded, and over soon
after the disk has room.

    .venv/bin/python -m reliability.l18_full_disk

Files of the gateway's processes may not grow (RLIMIT_FSIZE), which is what a full disk is for whoever writes to it;
that needs no rights, and is taken back while they run. Then a file system of its own (tmpfs in a namespace, or FOLDER
with `--folder FOLDER`, which nobody else should use) is filled beside a segment that is mapped.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from conversations import reply
from dragoman.ledger.folder import LedgerFolder
from gateway.running import whole_of
from reliability.caller import ask, spoken
from reliability.process import Gateway, providers
from reliability.provider import Provider
from reliability.r25_ledger import settled
from reliability.row import Result, Scale, run_alone

_GOAL = "a full disk: served and said without keys, refused with keys, recorded again ≤ 5 s after there is room"
_GOAL_OF_ROOM = "a segment takes all for which room was set apart, or says what is wrong"
_SECONDS = 5.0
_KEY = "a-key-of-some-length-and-chance-0123456789"
_CHAT = "openai-chat"
#: Starts what follows with a disk that takes nothing. What is there may be read.
_FULL = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY)); "
_STARTED = (sys.executable, "-c", _FULL + "os.execv(sys.argv[1], sys.argv[1:])")

#: Makes a segment in a folder, takes all room that is left there, and writes the segment to its end, with syncs.
_FILLING = """
import os, sys
from pathlib import Path
from dragoman.ledger.journal.frames import HEADER, OVERHEAD, read_frames
from dragoman.ledger.journal.segment import Segment
from dragoman.ledger.journal.writing import SEGMENT_SIZE
file, rest, record, count = Path(sys.argv[1], "segment"), Path(sys.argv[1], "rest"), bytes(range(232)), 0
segment = Segment(file, SEGMENT_SIZE, HEADER)
how = "mapped" if segment.is_mapped else "written"
with rest.open("wb", buffering=0) as taken:
    for unit in (1 << 20, 4096, 512):
        try:
            while taken.write(b"x" * unit):
                pass
        except OSError:
            pass
try:
    while segment.left > OVERHEAD + len(record):
        segment.write(record)
        count += 1
        if count % 5 == 0 and count < 2_000:  # a page that was written back is written again
            os.fsync(segment._descriptor)
except OSError as problem:
    how += f", then {problem.strerror}"
found = len(read_frames(file.read_bytes(), len(HEADER)).records)
rest.unlink(), file.unlink()
print(f"{how}: {found} records of {count} stand on a full file system")
sys.exit(found < count)
"""
#: Mounts one of 16 MiB for that, where nobody else sees it.
_MOUNTED = 'mount -t tmpfs -o size=16m none "$1" && exec "$2" -c "$3" "$1"'


def make_full(gateway: Gateway, *, is_full: bool) -> None:
    """Let no file of its processes grow, or any."""
    most = 0 if is_full else resource.RLIM_INFINITY
    for pid in gateway.family():
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def sent_to(provider: Provider) -> int:
    """How many requests that a provider may bill have come."""
    return len([asked for asked in provider.asked if asked.head.startswith(b"POST")])


async def statuses(gateway: Gateway, name: str, count: int, *, has_keys: bool) -> Counter[int]:
    """How so many requests ended, one after the other."""
    path, body = spoken(_CHAT, f"{_CHAT}/{name}", stream=False)
    headers = {"authorization": f"Bearer {_KEY}"} if has_keys else {}
    return Counter([(await ask(gateway.port, path, body, headers=headers)).status for _ in range(count)])


async def ready(gateway: Gateway) -> tuple[int, bytes]:
    """What `readyz` says."""
    answer = await ask(gateway.port, "/readyz", method="GET")
    return answer.status, answer.body


async def unrecorded(gateway: Gateway, *, has_keys: bool) -> int:
    """How many requests the metrics count as not recorded."""
    headers = {"authorization": f"Bearer {_KEY}"} if has_keys else {}
    answer = await ask(gateway.port, "/metrics", method="GET", headers=headers)
    found = re.search(rb"^dragoman_ledger_unrecorded_total (\d+)", answer.body, re.MULTILINE)
    return int(found[1]) if found is not None else 0


async def until_served(gateway: Gateway, name: str, *, has_keys: bool) -> float:
    """Seconds until a request is answered and `readyz` has nothing to say; at most ten."""
    began = time.monotonic()
    while time.monotonic() - began < 10:
        found = await statuses(gateway, name, 1, has_keys=has_keys)
        status, said = await ready(gateway)
        if found == Counter({200: 1}) and status == 200 and b"ledger" not in said:
            break
        await asyncio.sleep(0.1)
    return time.monotonic() - began


async def drill(count: int, *, has_keys: bool, is_first: bool) -> Result:
    """The disk is full when the gateway starts, or from later on."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as state, Provider() as provider:
        digest = hashlib.sha256(_KEY.encode()).hexdigest()
        keys = f'keys = ["sha256:{digest}"]\n' if has_keys else ""
        more = f'[server]\nstate = "{state}"\nlog = "off"\n{keys}[http]\nretries = 0\n'
        name = provider.script(whole_of(_CHAT, reply("text")))
        with Gateway(providers(provider.url, more), prefix=_STARTED if is_first else ()) as gateway:
            before = 0
            if not is_first:
                before = (await statuses(gateway, name, 1, has_keys=has_keys))[200]
                make_full(gateway, is_full=True)
            found = await statuses(gateway, name, count, has_keys=has_keys)
            sent, (status, said) = sent_to(provider), await ready(gateway)
            make_full(gateway, is_full=False)
            seconds = await until_served(gateway, name, has_keys=has_keys)
            reached, missing = sent_to(provider), await unrecorded(gateway, has_keys=has_keys)
            checked, _ = await asyncio.to_thread(settled, LedgerFolder.of(Path(state)))
        when = "from the start" if is_first else "while it runs"
        words = (
            f"{when}, {'with' if has_keys else 'without'} keys: {dict(found)}, {sent - before} sent, readyz {status}"
            f"{' says it' if b'ledger' in said else ''}; after {seconds:.1f} s as ever, {checked.attempts} rows and "
            f"{missing} counted as not recorded of {reached}, differences {len(checked.differences)}"
        )
        # While it runs, the segment has its room: all is recorded, and waits for the store.
        refuses = has_keys and is_first
        expected = Counter({503 if refuses else 200: count})
        passed = found == expected and sent - before == (0 if refuses else count) and seconds <= _SECONDS
        passed = passed and (status == 503) is refuses and (b"ledger" in said) is is_first
        return Result("L18", _GOAL, words, passed and checked.attempts + missing == reached and checked.is_sound)


def filled(folder: str) -> Result:
    """A file system that is full to its last byte. "": one of its own."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as place:
        own = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _MOUNTED, "sh", place]
        words = [sys.executable, "-c", _FILLING, folder] if folder else [*own, sys.executable, _FILLING]
        ended = subprocess.run(words, capture_output=True, text=True, check=False)
    said = ended.stdout.strip() or f"ended with {ended.returncode}: {ended.stderr.strip()[-200:]}"
    return Result("L18", _GOAL_OF_ROOM, said, ended.returncode == 0)


def measure(scale: Scale, folder: str = "") -> Iterator[Result]:
    """From the start and while it runs, without keys and with them; then a file system that is full."""
    if sys.platform != "linux":
        yield Result("L18", _GOAL, "limits of a running process are set on Linux alone", False)
        return
    for is_first in (True, False):
        for has_keys in (False, True):
            yield asyncio.run(drill(scale.pick(32, 4), has_keys=has_keys, is_first=is_first))
    yield filled(folder)


if __name__ == "__main__":
    sys.exit(run_alone(__doc__, measure, {"folder": ""}))
