"""Eight programs, written from the documents alone, as they stood at the first try; each runs to its exit."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from warm_programs import run
from whole_programs import LIMIT_SECONDS

FOLDER = Path(__file__).parents[1] / "data" / "written_programs"
#: By program, what it prints among other things.
PRINTED = {
    "ask.py": ["It is about rivers. | thought 'short' | stop stop |", "failed: auth 401 retry after None"],
    "stream.py": ["whole search {'query': 'rivers of Europe', 'limit': 3}", "('Half ', ['failure connection'])"],
    "tools.py": ['start order(item="tea", amount=2, size="small")', "end ValueError: only 1 left True", "limit 5"],
    "typed.py": ["Ada 36 5", "refused not readable", "invalid I would rather not."],
    "server.py": ["Hello from the lab.", "connection connection: no connection to http://127.0.0.1:9/v1/"],
    "fallback.py": ["Answered. [('down/a', 'failed', 'internal', 500), ('well/b', 'answered', None, None)]"],
    "at_once.py": ["['one', 'three', 'two']", "cancelled", "timeout", "otter: a thing", "a b c|stop"],
    "program_tests.py": ["6 passed"],
}


def test_there_are_eight() -> None:
    assert sorted(PRINTED) == sorted(file.name for file in FOLDER.glob("*.py")) and len(PRINTED) == 8


@pytest.mark.parametrize("name", PRINTED)
def test_it_runs_to_its_exit(name: str, tmp_path: Path) -> None:
    pytest_too = ["-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", "-o", "addopts="]
    done = run(
        [sys.executable, "-W", "error", *(pytest_too if name.endswith("_tests.py") else []), str(FOLDER / name)],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert [words for words in PRINTED[name] if words not in done.stdout] == []
