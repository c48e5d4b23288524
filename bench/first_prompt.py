"""Processor seconds of `dragoman chat` from its start until its prompt is there: bench/first_prompt.py [TARGET].

Linux only: the seconds are the process's own and its children's, from /proc. Run it on a quiet machine; takes a second.
"""

from __future__ import annotations

import os
import pty
import select
import statistics
import sys
import tempfile
import time
from pathlib import Path

RUNS = 7
PROMPT = "›".encode()


def seconds(target: str, state: str) -> float:
    """One start: user and system time until the prompt was written."""
    pid, handle = pty.fork()
    if pid == 0:
        program = str(Path(sys.executable).with_name("dragoman"))
        os.execve(program, [program, "chat", target], {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": state})
    seen, end = b"", time.monotonic() + 60
    while PROMPT not in seen and time.monotonic() < end:
        if select.select([handle], [], [], 0.01)[0]:
            data = os.read(handle, 65536)
            seen += data
            if b"\x1b[6n" in data:
                os.write(handle, b"\x1b[1;1R")  # where the cursor is
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    os.write(handle, b"\x04")
    while select.select([handle], [], [], 5)[0]:
        try:
            if not os.read(handle, 65536):
                break
        except OSError:
            break
    os.waitpid(pid, 0)
    os.close(handle)
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    target = sys.argv[1] if len(sys.argv) > 1 else "ollama/granite4"
    with tempfile.TemporaryDirectory() as state:
        figures = [seconds(target, state) for _ in range(RUNS)]
    middle, least, most = statistics.median(figures), min(figures), max(figures)
    print(f"first prompt: {middle:.2f} CPU-s, median of {RUNS} ({least:.2f}–{most:.2f})")


if __name__ == "__main__":
    main()
