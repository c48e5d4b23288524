# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""The work folder: no path leads out of it, also while links are being swapped under the tool's hands."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.agent.tool_plan import ToolFailed
from dragoman.agent.work_folder import WorkFolder

SECRET = b"outside-secret-5c1d"

#: Where a path may try to lead, and ways to write it.
_PLACES = [
    "../outside/secret", "/etc/passwd", "~/.ssh/id_rsa", "~root/x", "sub/../../outside/secret", "sub/./../../outside/secret",
    "../work/../outside/secret", "../../outside/secret", "link/secret", "link/../link/secret", "sub/link/secret",
    "filelink", "sub/filelink", "sub/deep/up/secret", "dot/secret", "abslink", "chain1/secret", "loop/x", "self/x",
    "/proc/self/root/etc/passwd", "/proc/self/cwd/../outside/secret", "/dev/stdin", "/dev/fd/0", "sub/fifo", "sub/socket",
    "..", "sub/../..", "../workbench/x", "../work-evil/x",
]  # fmt: skip
_MANGLED = ["{}", "./{}", "sub/../{}", ".//{}", "{}/", "{}/."]
_ODD = [
    "a\0b", "\0", "a\nb", "a\tb", "a\rb", "a\x1b[2Jb", "\u202ea", "a\u200bb", "\ufeffa", "a" * 5000, "d/" * 70 + "a", "\ud800",
    "%2e%2e/outside/secret", "..%2foutside%2fsecret", "..\\outside\\secret", "\u2025/outside/secret", "．．/outside/secret",
    "file:///etc/passwd", "\\\\host\\share", "C:\\secret", "..;/outside/secret", "....//outside/secret", "",
    ".", "./", "sub/", "/", "//etc/passwd", "///etc/passwd",
]  # fmt: skip
PATHS = sorted({way.format(place) for place in _PLACES for way in _MANGLED} | set(_ODD))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[WorkFolder]:
    outside, work = tmp_path / "outside", tmp_path / "work"
    (work / "sub" / "deep").mkdir(parents=True)
    outside.mkdir()
    (tmp_path / "work-evil").mkdir()
    (tmp_path / "work-evil" / "x").write_bytes(SECRET)
    (outside / "secret").write_bytes(SECRET)
    for name, to in {
        "link": outside, "sub/link": outside, "filelink": outside / "secret", "sub/filelink": "../../outside/secret",
        "sub/deep/up": "../../../outside", "dot": "./../outside", "abslink": "/etc/passwd", "chain1": "chain2",
        "chain2": outside, "loop": "loop", "self": ".",
    }.items():  # fmt: skip
        (work / name).symlink_to(to)
    os.mkfifo(work / "sub" / "fifo")
    found = WorkFolder(work)
    yield found
    found.close()


def attempts(folder: WorkFolder, path: str) -> Iterator[bytes]:
    """What each way of touching a path gave."""
    for way in (folder.read, folder.read_if_there, lambda parts: folder.entries(parts, 500)):
        try:
            value = way(folder.parts(path))
        except ToolFailed:
            continue
        yield repr(value).encode() if not isinstance(value, bytes) else value


def test_there_are_enough_paths() -> None:
    assert len(PATHS) >= 200


def test_no_path_reads_anything_outside(folder: WorkFolder) -> None:
    for path in PATHS:
        for value in attempts(folder, path):
            assert SECRET not in value and b"root:" not in value and b"'secret'" not in value, path


def test_no_path_writes_anything_outside(folder: WorkFolder, tmp_path: Path) -> None:
    before = sorted(map(str, tmp_path.rglob("*")))
    for path in PATHS:
        try:
            parts = folder.parts(path)
            folder.write(parts, b"evil", over=folder.read_if_there(parts))
        except ToolFailed:
            continue
    for found in tmp_path.rglob("*"):
        if found.is_file() and not found.is_relative_to(tmp_path / "work"):
            assert found.read_bytes() == SECRET
    new = set(map(str, tmp_path.rglob("*"))) - set(before)
    assert all(path.startswith(str(tmp_path / "work") + "/") for path in new)


@contextmanager
def swapping(work: Path, outside: Path) -> Iterator[list[int]]:
    """Swap a folder, and a file, with a link that leads out, as fast as the machine can."""
    stop, count = threading.Event(), [0]
    (work / "real").mkdir()
    (work / "real" / "secret").write_bytes(b"inside")
    (work / "file.real").write_bytes(b"inside")
    (work / "evil").symlink_to(outside)
    (work / "file.evil").symlink_to(outside / "secret")

    def swap() -> None:
        while not stop.is_set():
            for name in ("real", "evil"):
                suffix = "" if name == "real" else "x"
                try:
                    if name == "real":
                        os.rename(work / "real", work / "place")
                        os.rename(work / "place", work / "real")
                    else:
                        os.rename(work / "evil", work / "place")
                        os.rename(work / "place", work / "evil")
                    os.replace(work / f"file.{name}", work / "file")
                    os.replace(work / "file", work / f"file.{name}")
                except OSError:
                    if suffix and not (work / "evil").is_symlink() and not (work / "place").is_symlink():
                        (work / "evil").symlink_to(outside)
                count[0] += 1

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield count
    finally:
        stop.set()
        thread.join()


def race(folder: WorkFolder, tmp_path: Path, seconds: float) -> tuple[int, int]:
    """(swaps, attempts); fails at the first escape."""
    tries, end = 0, time.monotonic() + seconds
    with swapping(folder.path, tmp_path / "outside") as swaps:
        while time.monotonic() < end:
            for path in ("place/secret", "file"):
                tries += 1
                try:
                    content = folder.read(folder.parts(path))
                except ToolFailed:
                    content = b""
                assert SECRET not in content
                with suppress(ToolFailed):
                    folder.write(folder.parts(path), b"written", over=content or None)
            assert (tmp_path / "outside" / "secret").read_bytes() == SECRET
            assert os.listdir(tmp_path / "outside") == ["secret"]
    return swaps[0], tries


def test_no_race_with_swapped_links_escapes(folder: WorkFolder, tmp_path: Path) -> None:
    swaps, tries = race(folder, tmp_path, 1.5)
    assert swaps > 50 and tries > 50


@pytest.mark.soak
def test_no_race_with_swapped_links_escapes_for_a_minute(folder: WorkFolder, tmp_path: Path) -> None:
    swaps, tries = race(folder, tmp_path, 60)
    print(f"{swaps:,} swaps, {tries:,} attempts, 0 escapes")
    assert swaps > 1000 and tries > 1000


def test_a_file_is_replaced_in_one_step_with_its_mode(folder: WorkFolder) -> None:
    place = folder.path / "script.sh"
    place.write_bytes(b"one")
    place.chmod(0o751)
    os.link(place, folder.path / "second name")
    folder.write(("script.sh",), b"two", over=b"one")
    assert place.read_bytes() == b"two"
    assert place.stat().st_mode & 0o777 == 0o751
    assert (folder.path / "second name").read_bytes() == b"one"


def test_a_file_that_changed_since_is_not_written(folder: WorkFolder) -> None:
    (folder.path / "a").write_bytes(b"new")
    with pytest.raises(ToolFailed, match="has changed"):
        folder.write(("a",), b"x", over=b"old")
    with pytest.raises(ToolFailed, match="has changed"):
        folder.write(("a",), b"x", over=None)
    assert (folder.path / "a").read_bytes() == b"new"


def test_a_file_that_leaves_once_it_was_compared_is_an_answer(
    folder: WorkFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = WorkFolder.read_if_there

    def left(self: WorkFolder, parts: tuple[str, ...], *, limit: int) -> bytes | None:
        found = read(self, parts, limit=limit)
        (self.path / "a").unlink()
        return found

    monkeypatch.setattr(WorkFolder, "read_if_there", left)
    for change in (lambda: folder.write(("a",), b"x", over=b"old"), lambda: folder.remove(("a",), over=b"old")):
        (folder.path / "a").write_bytes(b"old")
        with pytest.raises(ToolFailed, match="a: "):
            change()
        assert not (folder.path / "a").exists()


def test_a_folder_that_was_moved_is_still_the_one_that_was_opened(folder: WorkFolder, tmp_path: Path) -> None:
    os.rename(tmp_path / "work", tmp_path / "moved")
    (tmp_path / "work").symlink_to(tmp_path / "outside")
    with pytest.raises(ToolFailed):
        folder.read(("secret",))
    folder.write(("new",), b"x", over=None)
    assert (tmp_path / "moved" / "new").exists()


@given(
    st.sets(st.text("abé.", min_size=1, max_size=4).filter(lambda name: name not in (".", "..")), max_size=12),
    st.integers(1, 14),
)
def test_of_many_files_the_first_by_name_are_listed_and_all_counted(names: set[str], most: int) -> None:
    with tempfile.TemporaryDirectory() as place, contextlib.closing(WorkFolder(Path(place))) as folder:
        for name in names:
            Path(place, name).touch()
        for beginning in ("", "a", "ab"):
            wanted = sorted(name for name in names if name.startswith(beginning))
            entries, count = folder.entries((), most, beginning=beginning)
            assert [entry.name for entry in entries] == wanted[:most]
            assert count == len(wanted)


def test_of_many_files_only_those_that_are_shown_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2_000):
        (tmp_path / f"f{number}").touch()
    looked: list[object] = []
    before = os.stat
    with contextlib.closing(WorkFolder(tmp_path)) as folder:
        monkeypatch.setattr(os, "stat", lambda *words, **more: looked.append(words) or before(*words, **more))
        entries, count = folder.entries((), 500)
    assert (len(entries), count) == (500, 2_000)
    assert len(looked) < 600
