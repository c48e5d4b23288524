"""A gateway's memory: threads take theirs from one heap, what loading took besides goes back, and what stays stands on
large pages where the system has them."""

import contextlib
import ctypes
import mmap
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from dragoman.gateway.process import heap

#: Heaps beside the first begin at a multiple of this (HEAP_MAX_SIZE of glibc's malloc/arena.c, on 64 bits), and what is
#: not yet used of so much is kept free behind them.
_ALIGNED = 64 * 1024 * 1024
_LARGE = 2 * 1024 * 1024
_COLLAPSE = 25

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of Linux and glibc")


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Path]:
    """A gateway that serves; gives its folder of /proc."""
    file = folder / "dragoman.toml"
    file.write_text('[providers.near]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n')
    command = [sys.executable, "-m", "dragoman", "serve", "--config", str(file), "--port", "0"]
    environ = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)
    try:
        assert process.stdout is not None
        while "listening on" not in (line := process.stdout.readline()):
            assert line, process.communicate()[1]
        yield Path(f"/proc/{process.pid}")
    finally:
        process.terminate()
        process.communicate()


@linux
def test_no_thread_has_a_heap_of_its_own(tmp_path: Path) -> None:
    with serving(tmp_path) as folder:
        maps = [line.split() for line in (folder / "maps").read_text().splitlines()]
        threads = len(list((folder / "task").iterdir()))
    places = [(*(int(part, 16) for part in words[0].split("-")), words[1]) for words in maps]
    pairs = pairwise(places)
    assert threads > 1
    assert not [
        first
        for (first, end, mode), (begin, last, then) in pairs
        if first % _ALIGNED == 0 and mode == "rw-p" and (begin, then) == (end, "---p") and last == first + _ALIGNED
    ]


_GROWING = """
import sys
from dragoman.gateway.process.heap import share_one_heap
share_one_heap()
_ = bytes(20 << 20)
_ = b""
body = bytes(19 << 20)
with open("/proc/self/maps") as maps:
    begin, _, end = next(line for line in maps if line.endswith("[heap]\\n")).split()[0].partition("-")
sys.exit(int(begin, 16) <= id(body) < int(end, 16))
"""


@linux
def test_a_large_body_lies_outside_of_the_heap_whatever_was_freed_before() -> None:
    assert subprocess.run([sys.executable, "-c", _GROWING], check=False).returncode == 0


def gives_large_pages() -> bool:
    """Whether this system gives one that is asked for, and may be asked."""
    try:
        if "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
            return False
    except OSError:
        return False
    room = mmap.mmap(-1, 2 * _LARGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    room.write(b"x" * 2 * _LARGE)
    place = ctypes.addressof(ctypes.c_char.from_buffer(room))
    library = ctypes.CDLL(None)
    return bool(library.madvise(ctypes.c_void_p(-(-place // _LARGE) * _LARGE), ctypes.c_size_t(_LARGE), _COLLAPSE) == 0)


@linux
def test_what_is_loaded_stands_on_large_pages_where_there_are_any(tmp_path: Path) -> None:
    with serving(tmp_path) as folder:
        rows = (folder / "smaps_rollup").read_text().splitlines()
    [kibibytes] = [int(row.split()[1]) for row in rows if row.startswith("AnonHugePages:")]
    assert (kibibytes > 0) == gives_large_pages()


class Library:
    """A C library whose kernel says which small pages are in use, and notes what it is asked for."""

    def __init__(self, in_use: int, answer: int = 0) -> None:
        self._in_use = in_use
        self._answer = answer
        self.asked: list[tuple[int, int, int]] = []

    def mincore(self, place: ctypes.c_void_p, size: ctypes.c_size_t, pages: ctypes.Array[ctypes.c_char]) -> int:
        pages.raw = b"\x01" * self._in_use + bytes(len(pages) - self._in_use)
        return self._answer

    def madvise(self, place: ctypes.c_void_p, size: ctypes.c_size_t, advice: int) -> int:
        self.asked.append((place.value or 0, size.value, advice))
        return -1


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[object, str], None]:
    """Sets up a Linux with this C library and these words on large pages."""
    maps = tmp_path / "maps"
    maps.write_text(
        "00400000-00900000 rw-p 00000000 00:00 0                          [heap]\n"
        "7f0000100000-7f0000500000 rw-p 00000000 00:00 0 \n"
        "7f0000700000-7f0000800000 rw-p 00000000 00:00 0 \n"
        "7f0000800000-7f0001000000 r--p 00000000 00:00 0 \n"
        "7f0001000000-7f0001800000 rw-p 00000000 08:01 7                  /usr/lib/x.so\n"
        "7f0001800000-7f0002000000 rw-s 00000000 00:01 9                  /dev/zero (deleted)\n"
        "7ffff0000000-7ffff0800000 rw-p 00000000 00:00 0                  [stack]\n"
    )
    enabled = tmp_path / "enabled"
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(heap, "_MAPS", maps)
    monkeypatch.setattr(heap, "_ENABLED", enabled)

    def set_up(library: object, words: str) -> None:
        enabled.write_text(words)
        monkeypatch.setattr(ctypes, "CDLL", lambda _name: library)

    return set_up


def test_large_pages_are_asked_for_where_allocated_memory_fills_them(
    system: Callable[[object, str], None],
) -> None:
    library = Library(in_use=500)
    system(library, "always [madvise] never\n")
    heap.use_large_pages()
    assert library.asked == [
        (place, _LARGE, _COLLAPSE) for place in (0x400000, 0x600000, 0x7F0000200000)
    ]  # none of a file, of a stack, read-only or shared


@pytest.mark.parametrize(
    ("in_use", "answer", "words"),
    [(400, 0, "always [madvise] never\n"), (512, -1, "always [madvise] never\n"), (512, 0, "always madvise [never]\n")],
    ids=["little in use", "nobody says", "never"],
)
def test_no_large_page_is_asked_for(
    in_use: int, answer: int, words: str, system: Callable[[object, str], None]
) -> None:
    library = Library(in_use, answer)
    system(library, words)
    heap.use_large_pages()
    assert not library.asked


def test_a_system_without_large_pages_is_left_as_it_is(
    system: Callable[[object, str], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    library = Library(in_use=512)
    system(library, "")
    monkeypatch.setattr(heap, "_ENABLED", tmp_path / "nothing")
    heap.use_large_pages()
    assert not library.asked


_FREED = """
from pathlib import Path
from dragoman.gateway.process.heap import settle
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
held = [bytes(4096) for _ in range(5_000)]
last = bytes(4096)  # above them: without being told to, the C library gives nothing back
del held
before = resident()
settle(is_alone=False)
print(before - resident())
"""


@linux
def test_what_loading_took_besides_goes_back() -> None:
    told = subprocess.run([sys.executable, "-c", _FREED], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert int(told) > 10_000_000


def _broken(_name: None) -> object:
    raise OSError("Dynamic loading not supported")  # musl's words, in a static Python


@pytest.mark.parametrize("library", [lambda _name: object(), _broken, None])
@pytest.mark.parametrize("work", [heap.share_one_heap, partial(heap.settle, is_alone=True)])
def test_a_system_without_such_calls_is_left_as_it_is(
    library: object, work: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose library has none of them, one that opens none, and a Python without `ctypes`."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("gc.freeze", lambda: None)
    if library is None:
        monkeypatch.setitem(sys.modules, "ctypes", None)
    else:
        monkeypatch.setattr(ctypes, "CDLL", library)
    work()
