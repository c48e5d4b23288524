# ruff: noqa: E501 - tables and words of results, which a line end would tear
"""S18: a command's environment, its processes, its memory, its files, its network; and what is left of it: nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from dragoman.agent.sandbox.bubblewrap import find_bubblewrap
from dragoman.agent.sandbox.sandbox import Finished, Sandbox
from reliability.row import Result, Scale

CANARY = "canary-5c1a9e"
PYTHON = os.path.realpath(sys.executable)
_NAMES = (
    "OPENAI_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "SSH_AUTH_SOCK",
    "GIT_TOKEN",
    "LD_PRELOAD",
    "X",
    "DRAGOMAN_KEY",
    "BASH_ENV",
)
#: Each ends by itself after a while, so that what is not contained does not stay.
_BOMBS = {
    "a fork bomb": "import os,time\nfor n in range(11):\n  try: os.fork()\n  except OSError: pass\ntime.sleep(20)",
    "one that ends and goes on": "import os,time\nend=time.time()+15\nwhile time.time()<end:\n  for n in range(50):\n    if os.fork()==0: end+=0; time.sleep(3); os._exit(0)\n  time.sleep(.01)",
    "threads": "import threading,time\nthreading.stack_size(65536)\nfor n in range(20000): threading.Thread(target=time.sleep,args=(20,),daemon=True).start()\ntime.sleep(20)",
}
_FILLS = {
    "one file": "f=open('big','wb')\nfor n in range(4096): f.write(b'x'*(1<<20))",
    "many files": "for k in range(12):\n  f=open('b%d'%k,'wb')\n  for n in range(400): f.write(b'x'*(1<<20))",
    "ten GB of temporary files": "import os\nfor d in ('/tmp','/var/tmp','/dev/shm','/run'):\n  try:\n    for k in range(11):\n      with open(d+'/dragoman-drill-%d'%k,'wb') as f:\n        for n in range(950): f.write(b'x'*(1<<20))\n  except OSError as e: print(d,e)",
}
_DAEMON = "import os,time\nfor n in range(3):\n  if os.fork(): os._exit(0)\n  os.setsid()\nfor n in range(3): os.close(n)\ntime.sleep({mark})"


def measure(scale: Scale) -> Iterator[Result]:
    """The same in the sandbox and without one; what holds in the sandbox alone is tried there alone."""
    base = next(place for place in ("/var/opt", str(Path.home())) if os.access(place, os.W_OK))
    bubblewrap = find_bubblewrap()
    for kind, path in (("in the sandbox", bubblewrap), ("without one", None)):
        if kind == "in the sandbox" and path is None:
            yield Result("S18", "can be measured", "bubblewrap does not work here: apt-get install bubblewrap", False)
            continue
        with tempfile.TemporaryDirectory(dir=base) as place:
            work = Path(place, "home", "work")
            work.mkdir(parents=True)
            environ = dict.fromkeys(_NAMES, CANARY) | {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(work.parent)}
            sandbox = Sandbox(work, environ=environ, home=work.parent, bubblewrap=path, is_wanted=True)
            yield keyless(sandbox, kind)
            yield bombs(sandbox, kind)
            yield left_behind(sandbox, kind, scale.pick(20, 4))
            if path is not None:
                yield bounded(sandbox, work)
                yield connects(sandbox)
    yield hidden(scale.pick(5, 1))


def run(sandbox: Sandbox, code: str, seconds: float = 40) -> Finished:
    """A Python script in it. A virtual environment may lie where a sandbox sees nothing, so the real one is started."""
    return asyncio.run(sandbox.run([PYTHON, "-I", "-S", "-c", code], seconds=seconds))


def keyless(sandbox: Sandbox, kind: str) -> Result:
    code = "import os,glob\nprint(dict(os.environ))\nfor f in glob.glob('/proc/[0-9]*/environ'):\n  try: print(open(f,'rb').read())\n  except OSError: pass"
    agent = subprocess.Popen([PYTHON, "-c", "import time; time.sleep(60)"], env={"PATH": "/bin"})
    try:
        output = run(sandbox, code).output
    finally:
        agent.kill()
        agent.wait()
    words = f"{kind}: {output.count(CANARY)} of {len(_NAMES)} variables with a key are seen; {'PATH is' if 'PATH' in output else 'nothing is'} seen"
    return Result("S18", "0 keys in the environment of a command", words, CANARY not in output and "PATH" in output)


def marked(mark: str) -> list[int]:
    """Processes that are alive and whose command line holds the mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                is_marked = mark.encode() in (entry / "cmdline").read_bytes()
                if is_marked and (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    found.append(int(entry.name))
    return found


def bombs(sandbox: Sandbox, kind: str) -> Result:
    """Each is ended, its processes too, soon."""
    faults, slowest = [], 0.0
    for number, (name, code) in enumerate(_BOMBS.items()):
        mark = f"drill-{os.getpid()}-{number}"
        began = time.monotonic()
        finished = run(sandbox, f"'{mark}'\n{code}")
        slowest = max(slowest, time.monotonic() - began)
        left = marked(mark)
        if finished.ending != "processes" or left:
            faults.append(f"{name}: {finished.ending}, {len(left)} left")
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
    words = f"{kind}: {len(_BOMBS) - len(faults)} of {len(_BOMBS)} ended, slowest {slowest:.1f} s{': ' + '; '.join(faults) if faults else ''}"
    return Result("S18", "bombs of processes and threads are ended, 0 left over", words, not faults and slowest < 35)


def left_behind(sandbox: Sandbox, kind: str, count: int) -> Result:
    """Daemons of daemons, a command that is stopped, one whose time is up."""
    left = 0
    for number in range(count):
        mark = f"7{os.getpid()}{number:03}"
        daemon = _DAEMON.format(mark=mark)
        if number % 3 == 0:
            run(
                sandbox, f"import subprocess,sys\nfor n in range(4): subprocess.Popen([sys.executable,'-c',{daemon!r}])"
            )
        elif number % 3 == 1:
            run(
                sandbox,
                f"import subprocess,sys\nsubprocess.Popen([sys.executable,'-c',{daemon!r}]).wait()\nimport time\ntime.sleep({mark})",
                seconds=1,
            )
        else:
            asyncio.run(
                stopped(
                    sandbox,
                    f"import subprocess,sys,time\nsubprocess.Popen([sys.executable,'-c',{daemon!r}])\ntime.sleep({mark})",
                )
            )
        found = marked(mark)
        left += len(found)
        for process in found:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
    return Result(
        "S18", "kill-tree: 0 processes left over", f"{kind}: {left} left of {count} commands with daemons", not left
    )


async def stopped(sandbox: Sandbox, code: str) -> None:
    task = asyncio.create_task(sandbox.run([PYTHON, "-I", "-S", "-c", code], seconds=60))
    await asyncio.sleep(0.7)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def bounded(sandbox: Sandbox, work: Path) -> Result:
    """What is written, in the work folder and beside it, and what is held in memory."""
    faults, most = [], 0
    for name, code in _FILLS.items():
        before = shutil.disk_usage(work).free
        finished = run(sandbox, code)
        taken = before - shutil.disk_usage(work).free
        most = max(most, taken)
        if (finished.status == 0 and not finished.output) or taken > 2.5 * 1024**3:
            faults.append(f"{name}: {finished.ending}, {taken / 1024**2:,.0f} MiB")
        for file in work.iterdir():
            file.unlink()
    left = list(Path("/tmp").glob("dragoman-drill-*"))
    memory = run(sandbox, "x=bytearray(3_000_000_000)\nprint('held')")
    faults += ["memory"] if "held" in memory.output else []
    words = f"{most / 1024**2:,.0f} MiB of the disk at most, {len(left)} files left in /tmp, 3 GB of memory: {memory.ending}"
    return Result(
        "S18",
        "disk (≤ 2 GiB), temporary files and memory are bounded",
        words + "".join(f"; {each}" for each in faults),
        not faults and not left,
    )


def connects(sandbox: Sandbox) -> Result:
    """TCP, UDP, IPv6 and Unix sockets of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(f"\0{CANARY}")
        local.listen()
        server.settimeout(0.1)
        local.settimeout(0.1)
        port = server.getsockname()[1]
        code = "import socket\n"
        for family, kind, address in (("AF_INET", "SOCK_STREAM", f"('127.0.0.1',{port})"), ("AF_INET6", "SOCK_STREAM", f"('::1',{port})"),
                                      ("AF_INET", "SOCK_DGRAM", "('192.0.2.1',53)"), ("AF_UNIX", "SOCK_STREAM", f"'\\0{CANARY}'")):  # fmt: skip
            code += f"try: s=socket.socket(socket.{family},socket.{kind}); s.settimeout(2); s.connect({address}); s.send(b'x'); print('out')\nexcept OSError as e: print(e)\n"
        output = run(sandbox, code).output
        came = 0
        for each in (server, local):
            with contextlib.suppress(OSError):
                each.accept()[0].close()
                came += 1
    return Result(
        "S18",
        "0 connections",
        f"{output.count('out')} of 4 kinds connect, {came} came",
        "out" not in output and not came,
    )


def hidden(count: int) -> Result:
    """What another process of the same user reads of the agent."""
    code = "import sys,time\nfrom dragoman.agent.sandbox.process_secrecy import hide_environment\nassert hide_environment()\nimport os\nassert os.environ['KEY']\nprint(flush=True)\ntime.sleep(30)"
    seen = 0
    for _ in range(count):
        environ = {**os.environ, "KEY": CANARY, "PYTHONPATH": ":".join(filter(None, sys.path))}
        agent = subprocess.Popen([sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE)
        try:
            assert agent.stdout is not None
            agent.stdout.readline()
            for entry in (f"/proc/{agent.pid}", f"/proc/{agent.pid}/task/{agent.pid}"):
                with contextlib.suppress(OSError):
                    seen += CANARY.encode() in Path(entry, "environ").read_bytes()
        finally:
            agent.kill()
            agent.wait()
            agent.stdout.close()  # type: ignore[union-attr]
    return Result("S18", "0 keys in /proc of the agent", f"{seen} of {2 * count} looks see one", not seen)
