"""S18: nothing that the agent runs gets out of what is called a sandbox, whoever runs it.

All cases under all kinds of users take an hour and more: `make security ROWS=S18 KIND='uid 65534'` tries the kinds with
this in their name.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from dragoman.agent.sandbox.bubblewrap import find_bubblewrap
from reliability.escapes import CASES, HARMLESS, home_is_refused
from reliability.row import Result, Scale

_ROOT = Path(__file__).resolve().parent.parent
#: As on a system that gives no user namespaces.
_NONE_GIVEN = ("PYTHON", "-m", "reliability.without_namespaces")
#: A user of a namespace, and nobody special of the machine, with and without the right to make namespaces.
_A_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
_TOLD: Final = 20  # cases after each of which the count is told
_KINDS = {
    "as whoever runs this": (),
    "as a user of a namespace": _A_USER,
    "as uid 65534": _NOBODY,
    "as root of a container, without user namespaces": ("unshare", "--user", "--map-root-user", *_NONE_GIVEN),
    "as uid 65534, without user namespaces": (*_NOBODY, *_NONE_GIVEN),
}  # fmt: skip


def measure(scale: Scale) -> Iterator[Result]:
    """Every case under each of them; and that the cases are ways out where there is no sandbox."""
    if find_bubblewrap() is None:
        yield Result("S18", "can be measured", "bubblewrap does not work here: apt-get install bubblewrap", False)
        return
    names = list(CASES)[:: scale.pick(1, 6)]
    wanted = os.environ.get("KIND", "")
    if not any(wanted in kind for kind in _KINDS):
        yield Result("S18", "can be measured", f"no kind has {wanted!r} in its name: {', '.join(_KINDS)}", False)
        return
    for kind, before in _KINDS.items():
        if wanted not in kind:
            continue
        if before[:1] == _NOBODY[:1] and os.geteuid() != 0:
            print(f"    not tried {kind}: the superuser alone can", file=sys.stderr)
            continue
        tries = tried(before, names)
        found = [one for one in tries if "problem" not in one]
        unjudged = [f"{one['name']} ({one['problem']})" for one in tries if "problem" in one]
        called = [one for one in found if one["is_confined"]]
        out = [f"{one['name']} ({one['out']})" for one in called if one["out"]]
        broken = sum(not one["is_whole"] for one in called)
        asked = sum(not one["is_confined"] and one["is_asked"] for one in found)
        words = f"{kind}: {len(out)} of {len(called)} got out{': ' + ', '.join(out[:5]) if out else ''}"
        words += f", {broken} repositories damaged; {asked} not called a sandbox, so not run but for a yes"
        words += f"; {len(unjudged)} could not be judged: {', '.join(unjudged[:3])}" if unjudged else ""
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
    is_nobody = before[: len(_NOBODY)] == _NOBODY
    if is_nobody:
        os.chown(base, 65534, 65534)
    python = _nobodys_python() if is_nobody else sys.executable
    environ = {**os.environ, "PYTHONPATH": ":".join([str(_ROOT), *filter(None, sys.path)])}
    try:
        start = [python if word == "PYTHON" else word for word in before]
        words = [*start, python, "-m", "reliability.escapes", base, *names]
        found = []
        with (
            tempfile.TemporaryFile("w+") as complaints,
            subprocess.Popen(
                words, cwd=_ROOT, env=environ, stdout=subprocess.PIPE, stderr=complaints, text=True
            ) as run,
        ):
            assert run.stdout is not None
            for line in run.stdout:
                found += [json.loads(line)] if line.startswith("{") else []
                if len(found) % _TOLD == 0:
                    print(f"    {len(found)} of {len(names)} cases", file=sys.stderr, flush=True)
            complaints.seek(0)
            if run.wait() != 0:
                raise RuntimeError(complaints.read()[-500:])
        return found
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _nobodys_python() -> str:
    """A Python of this version that uid 65534 can start: one in somebody's home folder it cannot."""
    name = f"python3.{sys.version_info.minor}"
    for python in (os.path.realpath(sys.executable), f"/usr/local/bin/{name}", f"/usr/bin/{name}"):
        # The shell stands between, since what setpriv starts itself is looked up with the rights of before.
        words = [*_NOBODY, "/bin/sh", "-c", '"$0" -c "import encodings"', python]
        if subprocess.run(words, capture_output=True, check=False).returncode == 0:
            return python
    raise RuntimeError(f"uid 65534 can start no {name}")
