"""The process that supervises a command: it sets limits, watches, and ends everything that the command has started.

    echo '{"argv": […], "environ": {…}, "seconds": 120, …}' | python -I supervise_command.py

Nothing of dragoman is imported but `standing`, which runs alone like this file. It reads the order as one line of its
standard input, words and paths as Latin-1 of their bytes; the end of that input means that the agent is gone or wants
an end. It writes one line of JSON to the descriptor that is named. On Linux it adopts
what the command leaves behind (a "subreaper"), so that a process that made itself a daemon ends with the command too.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import json  # noqa: TID251
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any

_TICKS = (0.01, 0.05)  # seconds between two looks, at first and at most
#: Files and fields of proc(5). The first counts twice what a parent and its child share; the other shares it out, takes
#: longer to say, and a process can hide it.
_RESIDENT = ("status", b"RssAnon:")
_SHARED_OUT = ("smaps_rollup", b"Pss_Anon:")
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h


def main() -> int:
    """Run the command and report how it ended."""
    order = json.loads(sys.stdin.buffer.readline())
    has_proc = sys.platform == "linux" and os.path.isdir("/proc/self")
    if has_proc:
        ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)
    for name, value in (("FSIZE", order["file_bytes"]), ("CORE", 0), ("NOFILE", order["files"])):
        _limit(getattr(resource, f"RLIMIT_{name}"), value)
    if has_proc and os.geteuid() != 0:  # the limit counts all tasks of the user; nobody limits the superuser's
        _limit(resource.RLIMIT_NPROC, _own_tasks() + order["processes"])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the agent decides what Ctrl-C means
    try:
        child = subprocess.Popen(
            [word.encode("latin-1") for word in order["argv"]],
            cwd=order["folder"].encode("latin-1"),
            env=order["environ"],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=order["handles"],
        )
    except (OSError, ValueError) as problem:
        return _report(
            order["report"],
            {"status": None, "reason": "not-started", "message": str(getattr(problem, "strerror", problem))},
        )
    reason = _watch(child, order, has_proc=has_proc)
    _end_all(child, has_proc=has_proc)
    inert = _restored(order["standing"]) if order["standing"] is not None else []
    return _report(order["report"], {"status": child.returncode, "reason": reason, "message": "", "inert": inert})


def _restored(standing: dict[str, Any]) -> list[str]:
    """Make inert what the command left for other programs, once none of its processes runs."""
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standing_files.py")
    specification = importlib.util.spec_from_file_location("standing_files", place)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)

    def path(text: str) -> str:
        return os.fsdecode(text.encode("latin-1"))

    known = module.Known(
        frozenset((device, inode) for device, inode in standing["places"]),
        frozenset((device, inode) for device, inode in standing["put"]),
        frozenset((path(place), path(target)) for place, target in standing["links"]),
        frozenset((path(place), is_folder) for place, is_folder in standing["named"]),
        frozenset((path(place), digest) for place, digest in standing["orders"]),
    )
    found: list[str] = module.restore(path(standing["folder"]), known)
    return [os.fsencode(each).decode("utf-8", "replace") for each in found]


def _watch(child: subprocess.Popen[bytes], order: dict[str, Any], *, has_proc: bool) -> str | None:
    """Wait for the end. Return why the command must be ended, or None if it ended by itself."""
    deadline = time.monotonic() + order["seconds"]
    (free_at_start, files_at_start), shared_at_start = _free(order["folder"]), _shared_memory()
    tick, longest = _TICKS
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(tick)
            return None
        tick = min(tick * 1.5, longest)
        if select.select([0], [], [], 0)[0] and not os.read(0, 1):
            return "stopped"
        if time.monotonic() > deadline:
            return "timeout"
        if has_proc:
            running = _descendants()
            if len(running) > order["processes"] or sum(running.values()) > order["threads"]:
                return "processes"
            # What lies in memory as files belongs to no process: all that has come since is taken for the command's.
            room = order["memory_bytes"] - max(0, _shared_memory() - shared_at_start)
            if _memory(running, _RESIDENT) > room and _memory(running, _SHARED_OUT, _RESIDENT) > room:
                return "memory"
        free, files = _free(order["folder"])
        if free_at_start - free > order["disk_bytes"] or files_at_start - files > order["new_files"]:
            return "disk"


def _end_all(child: subprocess.Popen[bytes], *, has_proc: bool) -> None:
    """Kill the command's group and, if they can be found, all its descendants, until none is left."""
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    stopped: set[int] = set()
    for _ in range(400):
        left = set(_descendants()) if has_proc else set()
        # First all stand still, the ones that were forked meanwhile too: a fork bomb is faster than one that kills.
        still = left <= stopped
        for process in left if still else left - stopped:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL if still else signal.SIGSTOP)
        stopped |= left
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            # Only this is certain: one that was forked while /proc was read, by one that ended, is not in the list.
            return
        if still:
            time.sleep(0.005)


def _descendants() -> dict[int, int]:
    """Return the processes below this one with their numbers of threads."""
    children: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                if fields[0] != b"Z":
                    children.setdefault(int(fields[1]), []).append((int(name), int(fields[17])))
    found: dict[int, int] = {}
    open_ones = [os.getpid()]
    while open_ones:
        for process, threads in children.get(open_ones.pop(), []):
            found[process] = threads
            open_ones.append(process)
    return found


def _memory(processes: Iterable[int], *files: tuple[str, bytes]) -> int:
    """Return the private bytes of processes, each by the first of these files' fields that can be read."""
    total = 0
    for process in processes:
        for file, field in files:
            with contextlib.suppress(OSError, IndexError, ValueError):
                with open(f"/proc/{process}/{file}", "rb") as opened:
                    total += int(opened.read().partition(field)[2].split(maxsplit=1)[0]) * 1024
                break
    return total


def _shared_memory() -> int:
    """Return the bytes of in-memory files on this machine: tmpfs, memfd, shared segments."""
    with contextlib.suppress(OSError, IndexError, ValueError), open("/proc/meminfo", "rb") as file:
        return int(file.read().partition(b"\nShmem:")[2].split(maxsplit=1)[0]) * 1024
    return 0


def _own_tasks() -> int:
    """Return this user's number of tasks, threads included."""
    tasks = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == os.geteuid():
                    tasks += len(os.listdir(f"/proc/{name}/task"))
    return tasks


def _free(folder: str) -> tuple[int, int]:
    """Return the free bytes and files of a folder's disk."""
    try:
        state = os.statvfs(folder)
    except OSError:
        return 0, 0
    return state.f_bavail * state.f_frsize, state.f_favail


def _limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    with contextlib.suppress(OSError, ValueError):
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (limit, limit))


def _report(handle: int, report: dict[str, Any]) -> int:
    with contextlib.suppress(OSError):
        os.write(handle, json.dumps(report).encode() + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
