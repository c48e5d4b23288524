"""Run files of tests in several processes of pytest; each takes a file, runs it whole, and takes the next one.

    .venv/bin/python scripts/run_tests.py [--processes 3] [PATH ...]

Three processes for two cores, because a test that waits for a server, a disk or a terminal leaves its core to another.
A process imports and collects only the files that it takes, and no report travels to another: for our 28,000 tests
pytest-xdist took more than a minute of processor time for these. Whole files each, because what a module starts
once is then started once. The long files come first. A process that is lost has not passed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

#: Files of few and long tests: they begin first, so that no process is left alone with one of them at the end.
LONG = (
    "test_linear_time.py", "test_hostile_repositories.py", "test_headless.py", "test_sdks.py", "test_terminal.py",
    "test_escapes.py", "test_workers.py", "test_live.py", "test_nested_calls.py", "test_recipes.py",
    "test_equal_ways.py", "test_cut_calls.py", "test_fields.py", "test_embedded.py", "test_kills.py",
    "test_endings.py", "test_docs.py", "test_shared_counters.py", "test_pyright.py", "test_many_labels.py",
    "test_postgresql.py", "test_mending.py", "test_rescue.py", "test_quoting_contexts.py", "test_joined_calls.py",
    "test_value_ends.py", "test_written_calls.py", "test_wire_safety.py",
)  # fmt: skip
#: Where the processes say which files they have taken.
_TAKEN = "DRAGOMAN_TESTS_TAKEN"
_EVERY = 30.0  # seconds between two lines that say how far it is
_DOTS = frozenset(".sxX")


def find_files(paths: Iterable[str]) -> list[str]:
    """The files of tests at some paths, in the order in which they are taken."""
    places = {name: place for place, name in enumerate(LONG)}
    found = {file for path in map(Path, paths) for file in (path.rglob("test_*.py") if path.is_dir() else [path])}
    return [str(file) for file in sorted(found, key=lambda file: (places.get(file.name, len(places)), file))]


# ---------------------------------------------------------------- the plugin of each process


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> object:
    """Nothing is imported before it is taken."""
    session.items = []
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> object:
    """Run the files that this process takes, one item at a time."""
    items = _take_items(session)
    item = next(items, None)
    while item is not None:
        following = next(items, None)  # what of the next file's fixtures stays is known before this one ends
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


def _take_items(session: pytest.Session) -> Iterator[pytest.Item]:
    folder, count = Path(os.environ[_TAKEN]), 0
    for number, file in enumerate(session.perform_collect(genitems=False)):
        assert isinstance(file, pytest.File)
        hook = session.gethookproxy(file.path.parent)
        if hook.pytest_ignore_collect(collection_path=file.path, config=session.config):
            continue  # a `conftest.py` leaves it out
        try:
            (folder / str(number)).touch(exist_ok=False)
        except FileExistsError:
            continue
        items = list(session.genitems(file))
        hook.pytest_collection_modifyitems(session=session, config=session.config, items=items)
        count += len(items)
        yield from items
    session.testscollected = max(count, 1)  # a process that came too late for any has passed


# ---------------------------------------------------------------- the processes


def run(files: list[str], count: int) -> int:
    """Run the files in so many processes. 0: all have passed."""
    command = [
        sys.executable, "-m", "pytest", "-p", "scripts.run_tests", "-p", "no:cacheprovider", "-p", "no:xdist",
        "-o", "console_output_style=classic", *files,
    ]  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="dragoman-tests-") as name:
        taken, printed = Path(name, "taken"), [Path(name, f"printed-{number}") for number in range(count)]
        taken.mkdir()
        environment = {**os.environ, _TAKEN: str(taken)}
        processes = []
        for path in printed:
            with path.open("wb") as output:
                processes.append(subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment))
        _wait(processes, taken, len(files))
        for process, path in zip(processes, printed, strict=True):
            print(_summary(path.read_text("utf-8", "replace"), has_passed=process.returncode == 0), end="")
    return max(abs(process.returncode) for process in processes)


def _wait(processes: list[subprocess.Popen[bytes]], taken: Path, count: int) -> None:
    said = time.monotonic()
    try:
        while any(process.poll() is None for process in processes):
            time.sleep(0.2)
            if time.monotonic() - said > _EVERY:
                said = time.monotonic()
                print(f"{len(list(taken.iterdir()))} of {count} files", flush=True)
    except KeyboardInterrupt:  # each process has heard it, too, and says what it has found
        for process in processes:
            process.wait()


def _summary(text: str, *, has_passed: bool) -> str:
    """What a process has printed; of one that has passed, without its dots."""
    lines = [line for line in text.splitlines() if line and not (has_passed and set(line) <= _DOTS)]
    return "".join(f"{line}\n" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("paths", nargs="*", default=["tests"])
    chosen = parser.parse_args()
    return run(find_files(chosen.paths), chosen.processes)


if __name__ == "__main__":
    sys.exit(main())
