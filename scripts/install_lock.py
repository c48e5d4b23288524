"""Install what a lock pins into this Python, each file checked against its hash: one line says how far that is.

    .venv/bin/python scripts/install_lock.py requirements/demo.txt [--or-say TEXT]

pip says nothing or too much; this needs the standard library and pip alone. What pip says is printed when it fails.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
# A lock names all that is needed. Without `--no-deps` pip 23.2, which comes with Python 3.11, looks for `name[extra]`
# by itself, and refuses the lock on the day on which a newer version of `name` appears.
# Python compiles a module when it first imports it: of the ten thousand files of a lock it imports a few.
LOCKED = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--no-compile"]
PIN = re.compile(r"^[\w.-]+==", re.MULTILINE)
COLLECTING = re.compile(r"(?:Collecting|Processing) (?:\S*/)?([\w.]+)")
NO_FILE = "No matching distribution found"
SIZE = re.compile(r"Downloading \S+ \(([\d.]+ [kMG]?B)\)")


def report_progress(lines: Iterable[str], total: int) -> str:
    """Say how far pip is, from what it prints: one line that changes in a terminal, elsewhere a line for what is big.

    Returns:
        All that pip printed.
    """
    is_terminal, done, name, said = sys.stderr.isatty(), 0, "", []
    for line in lines:
        said.append(line)
        words = line.strip()
        note, is_big = "", False
        if found := COLLECTING.match(words):
            done, name = done + 1, found[1]
            note = f"package {done} of {total} at most: {name}"
        elif found := SIZE.match(words):
            note, is_big = f"package {done} of {total} at most: {name}, {found[1]}", found[1].endswith("MB")
        elif words.startswith("Installing collected packages"):
            note, is_big = f"unpacking {done} packages", True
        if note and is_terminal:
            sys.stderr.write(f"\r\033[K  {note}")
        elif is_big:
            sys.stderr.write(f"  {note}\n")
        sys.stderr.flush()
    if is_terminal:
        sys.stderr.write("\r\033[K")
    return "".join(said)


def main(lock: Path, otherwise: str = "") -> int:
    """Install; gives pip's exit status. `otherwise`: is said, and 0 given, where this platform has no file of it."""
    total = len(PIN.findall(lock.read_text(encoding="utf-8")))
    command = [*PIP, *LOCKED, "-r", str(lock)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        assert pip.stdout is not None
        said = report_progress(pip.stdout, total)
    if pip.returncode and otherwise and NO_FILE in said:
        sys.stderr.write(f"  {otherwise}\n")
        return 0
    if pip.returncode:
        sys.stderr.write(said)
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), "".join(sys.argv[3:4])))
