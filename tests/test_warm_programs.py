"""A program that begins warm finds what Python itself would have given it, and ends as it does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import warm_programs

#: `ctypes` too: where libffi has static trampolines, its descriptor stays open from the import on.
_TOLD = """
import ctypes, json, locale, os, signal, sys, tempfile, threading
handlers = [str(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)]
streams = [[each.encoding, each.errors, each.line_buffering] for each in (sys.stdin, sys.stdout, sys.stderr)]
print(json.dumps([
    sys.argv, os.getcwd(), dict(os.environ), sys.path[:2], handlers, streams, locale.getpreferredencoding(), __name__,
    os.umask(0o22), tempfile.gettempdir(), threading.active_count(), sorted(map(int, os.listdir("/proc/self/fd"))),
    sys.stdin.read(), os.getpgrp() == os.getpid(), sys.dont_write_bytecode,
]))
sys.exit(7)
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere none begins warm")


@pytest.mark.parametrize("start", ["-c", "file"])
def test_it_finds_what_python_gives(tmp_path: Path, start: str) -> None:
    file = tmp_path / "told.py"
    file.write_text(_TOLD)
    words = [sys.executable, *(["-c", _TOLD] if start == "-c" else [str(file)]), "a", "b c"]
    environ = {"PATH": "/usr/bin", "TMPDIR": str(tmp_path), "PYTHONPATH": "/nowhere", "LANG": "C.UTF-8"}
    options = {"cwd": tmp_path, "env": environ, "text": True, "start_new_session": True}
    warm = warm_programs.run(words, input="given", **options)
    cold = subprocess.run(words, input="given", capture_output=True, check=False, **options)
    assert json.loads(warm.stdout) == json.loads(cold.stdout)
    assert vars(warm) == vars(cold) and warm.returncode == 7


def test_it_is_warm_and_ends_by_its_signal() -> None:
    code = "import sys\nprint('dragoman.client' in sys.modules, flush=True)\nsys.stdin.read()"
    with warm_programs.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"HOME": os.environ["HOME"]}
    ) as program:
        assert program.stdout is not None and program.stdout.readline() == b"True\n"
        assert program.poll() is None
        program.send_signal(signal.SIGTERM)
        assert program.wait(20) == -signal.SIGTERM
