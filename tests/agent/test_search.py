"""`search`: it finds lines, follows no link, leaves files of keys alone, and a pattern without an end is killed."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.playing import call
from dragoman.agent.tool_plan import Outcome, ToolFailed
from dragoman.agent.tools import search
from dragoman.agent.tools.search import find_ripgrep, search_tool
from dragoman.agent.tools.toolbox import Toolbox
from dragoman.agent.work_folder import WorkFolder

KINDS = [None, *([found] if (found := find_ripgrep()) else [])]
SECRETS = [".env", ".envrc", "id_rsa", "x.tfstate", "kubeconfig", ".aws/config", "a/.ssh/id", "my-service-account.json"]


@pytest.fixture(params=KINDS, ids=lambda path: "ripgrep" if path else "own")
def tools(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Toolbox]:
    (tmp_path / "work" / "sub").mkdir(parents=True)
    folder = WorkFolder(tmp_path / "work")
    yield Toolbox([search_tool(folder, ripgrep=request.param)])
    folder.close()


def found(tools: Toolbox, pattern: str, path: str = ".", files: str = "*") -> Outcome:
    return asyncio.run(tools.plan(call("search", pattern=pattern, path=path, files=files)).do())  # type: ignore[arg-type]


def test_lines_are_found_with_their_place(tools: Toolbox, tmp_path: Path) -> None:
    (tmp_path / "work" / "a.py").write_text("one\ntwo\n")
    (tmp_path / "work" / "sub" / "b.txt").write_text("two\n")
    assert found(tools, "t.o").text == "a.py:2:two\nsub/b.txt:1:two"
    assert found(tools, "t.o", files="*.py").text == "a.py:2:two"
    assert found(tools, "two", path="sub").text == "sub/b.txt:1:two"
    assert found(tools, "three").text == "(no match)"
    with pytest.raises(ToolFailed, match="regular expression"):
        found(tools, "(")


def test_no_link_and_no_file_of_keys_is_searched(tools: Toolbox, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("canary")
    (work / "link").symlink_to(tmp_path / "outside")
    (work / "file").symlink_to(tmp_path / "outside" / "file")
    os.mkfifo(work / "fifo")
    for name in SECRETS:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("canary")
    assert found(tools, "canary").text == "(no match)"
    assert found(tools, "canary", files="*").text == "(no match)"
    assert tools.plan(call("search", pattern="canary", path=".aws")).asks == "unless-ruled"
    assert tools.plan(call("search", pattern="canary", path="sub")).asks == "never"


def test_a_pattern_without_an_end_is_killed_and_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`(a+)+$` takes for ever where patterns are tried one way after the other; the event loop goes on meanwhile."""
    monkeypatch.setattr(search, "_SECONDS", 1.0)
    (tmp_path / "a.txt").write_text("a" * 40 + "!")
    folder = WorkFolder(tmp_path)
    plan = Toolbox([search_tool(folder, ripgrep=None)]).plan(call("search", pattern="(a+)+$"))

    async def play() -> float:
        task = asyncio.ensure_future(plan.do())
        longest, before = 0.0, time.monotonic()
        while not task.done():
            await asyncio.sleep(0.01)
            longest, before = max(longest, time.monotonic() - before), time.monotonic()
        with pytest.raises(ToolFailed, match="did not end"):
            task.result()
        return longest

    assert asyncio.run(play()) < 0.5
    folder.close()


def test_a_search_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a" * 40 + "!")
    folder = WorkFolder(tmp_path)
    mark = f"(a+)+${os.getpid()}"
    plan = Toolbox([search_tool(folder, ripgrep=None)]).plan(call("search", pattern=mark + "|(a+)+$"))

    def running() -> int:
        lines = []
        for entry in Path("/proc").iterdir() if Path("/proc/self").exists() else ():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    lines.append((entry / "cmdline").read_bytes())
                except OSError:
                    continue
        return sum(mark.encode() in line for line in lines)

    async def play() -> None:
        task = asyncio.ensure_future(plan.do())
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(play())
    assert running() == 0
    folder.close()
