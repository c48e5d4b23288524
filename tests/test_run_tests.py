"""`make test` runs each file once, in one of several processes, and says when anything has not passed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import run_tests

from patterns import ROOT

CHECKOUT = ROOT.parent.parent
GOOD = """
from pathlib import Path

def test_it():
    with Path(__file__).with_suffix(".ran").open("a") as ran:
        ran.write("x")
"""
BAD = {
    "a test fails": "def test_it():\n    assert 1 == 2, 'told why'\n",
    "a file cannot be imported": "import told_why\n",
    "a process is lost": "import os\n\ndef test_it():\n    os._exit(9)\n",
}


def run(folder: Path, *, processes: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "scripts/run_tests.py", "--processes", str(processes), str(folder)]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False, env=alone)


def test_each_file_runs_once(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"test_{number}.py").write_text(GOOD)
    (tmp_path / "test_left_out.py").write_text("raise RuntimeError\n")
    (tmp_path / "conftest.py").write_text("collect_ignore = ['test_left_out.py']\n")
    done = run(tmp_path, processes=2)
    assert done.returncode == 0, done.stdout
    assert [path.read_text() for path in sorted(tmp_path.glob("*.ran"))] == ["x"] * 5
    assert sum(map(int, re.findall(r"(\d+) passed", done.stdout))) == 5


@pytest.mark.parametrize("how", BAD)
def test_what_has_not_passed_is_told(how: str, tmp_path: Path) -> None:
    (tmp_path / "test_bad.py").write_text(BAD[how])
    (tmp_path / "test_good.py").write_text(GOOD)
    done = run(tmp_path, processes=1)
    assert done.returncode != 0
    assert how == "a process is lost" or ("told" in done.stdout and "test_bad.py" in done.stdout)


def test_the_long_files_come_first_and_no_file_is_left_out() -> None:
    files = [Path(file).name for file in run_tests.find_files([str(CHECKOUT / "tests")])]
    assert list(dict.fromkeys(files))[: len(run_tests.LONG)] == list(run_tests.LONG)
    assert len(files) == len(list((CHECKOUT / "tests").rglob("test_*.py")))
