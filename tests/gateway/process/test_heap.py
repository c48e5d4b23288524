"""Threads of a gateway take their memory from one heap: what one frees is another's."""

import ctypes
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from dragoman.gateway.process.heap import share_one_heap

#: Heaps beside the first begin at a multiple of this (HEAP_MAX_SIZE of glibc's malloc/arena.c, on 64 bits), and what is
#: not yet used of so much is kept free behind them.
_ALIGNED = 64 * 1024 * 1024


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of glibc")
def test_no_thread_has_a_heap_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text('[providers.near]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n')
    command = [sys.executable, "-m", "dragoman", "serve", "--config", str(file), "--port", "0"]
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)
    try:
        assert process.stdout is not None
        while "listening on" not in (line := process.stdout.readline()):
            assert line, process.communicate()[1]
        maps = [line.split() for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines()]
        threads = len(list(Path(f"/proc/{process.pid}/task").iterdir()))
    finally:
        process.terminate()
        process.communicate()
    places = [(*(int(part, 16) for part in words[0].split("-")), words[1]) for words in maps]
    pairs = pairwise(places)
    assert threads > 1
    assert not [
        first
        for (first, end, mode), (begin, last, then) in pairs
        if first % _ALIGNED == 0 and mode == "rw-p" and (begin, then) == (end, "---p") and last == first + _ALIGNED
    ]


def _broken(_name: None) -> object:
    raise OSError("Dynamic loading not supported")  # musl's words, in a static Python


@pytest.mark.parametrize("library", [lambda _name: object(), _broken, None])
def test_a_system_without_such_heaps_is_left_as_it_is(library: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose library has no `mallopt`, one that opens none, and a Python without `ctypes`."""
    monkeypatch.setattr(sys, "platform", "linux")
    if library is None:
        monkeypatch.setitem(sys.modules, "ctypes", None)
    else:
        monkeypatch.setattr(ctypes, "CDLL", library)
    share_one_heap()
