"""S18: nothing that the agent runs gets out of what is called a sandbox, whoever runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dragoman.agent.fence import find_bubblewrap
from reliability.escapes import CASES, HARMLESS, home_is_refused
from reliability.row import Result, Scale

_ROOT = Path(__file__).resolve().parent.parent
#: In a user namespace that allows no further one: the superuser of a container that gives none.
_NO_NAMESPACES = ("unshare", "--user", "--map-root-user", "/bin/sh", "-c",
                  'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"', "sh")  # fmt: skip
#: The same, as one who is nobody special.
_A_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


def measure(scale: Scale) -> Iterator[Result]:
    """Every case under each of them; and that the cases are ways out where there is no sandbox."""
    if find_bubblewrap() is None:
        yield Result("S18", "can be measured", "bubblewrap does not work here: apt-get install bubblewrap", False)
        return
    names = list(CASES)[:: scale.pick(1, 6)]
    kinds = {"as whoever runs this": (), "as a user of a namespace": _A_USER, "without user namespaces": _NO_NAMESPACES}
    for kind, before in kinds.items():
        found = tried(before, names)
        called = [one for one in found if one["is_confined"]]
        out = [f"{one['name']} ({one['out']})" for one in called if one["out"]]
        broken = sum(not one["is_whole"] for one in called)
        asked = sum(not one["is_confined"] and one["asks_each_time"] for one in found)
        words = f"{kind}: {len(out)} of {len(called)} got out{': ' + ', '.join(out[:5]) if out else ''}"
        words += f", {broken} repositories damaged; {asked} not called a sandbox and asked each time"
        passed = not out and not broken and len(called) + asked == len(names) == len(found)
        yield Result("S18", "0 get out of what is called a sandbox", words, passed)
    found = tried((), ["bare", *HARMLESS])
    out = [one["name"] for one in found if one["out"]]
    words = f"{len(out)} of {len(HARMLESS)} harmless ones get out without one"
    yield Result("S18", "the cases are ways out", words, len(out) == len(HARMLESS))
    with tempfile.TemporaryDirectory() as folder:
        taken = home_is_refused(Path(folder))
    yield Result("S18", "home and what lies above it are refused", f"{len(taken)} of 7 folders taken", not taken)


def tried(before: Sequence[str], names: Sequence[str]) -> list[dict[str, Any]]:
    """What came of the cases, each line an object."""
    base = tempfile.mkdtemp(dir=next(place for place in ("/var/opt", Path.home()) if os.access(place, os.W_OK)))
    environ = {**os.environ, "PYTHONPATH": str(_ROOT)}
    try:
        words = [*before, sys.executable, "-m", "reliability.escapes", base, *names]
        done = subprocess.run(words, cwd=_ROOT, env=environ, capture_output=True, text=True, check=False)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    finally:
        shutil.rmtree(base, ignore_errors=True)
