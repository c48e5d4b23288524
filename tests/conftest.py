"""Settings of all tests: no verdict by the clock, the same examples each time; other examples when `DRAGOMAN_SEARCH` is
set, more of them when `DRAGOMAN_SOAK` is."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import signal
import ssl
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
from hypothesis import HealthCheck, settings
from reliability.engine_haproxy import MISSING as NO_HAPROXY
from reliability.engine_valkey import MISSING as NO_VALKEY
from reliability.engines import MISSING

import profiles

settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same code has the same verdict: what a search finds becomes a test of its own.
settings.register_profile("test", settings.get_profile("search"), derandomize=True, max_examples=10)
settings.register_profile("soak", settings.get_profile("search"), max_examples=5000)
settings.load_profile(next((name for name in ("soak", "search") if os.environ.get(f"DRAGOMAN_{name.upper()}")), "test"))

# A shell that starts the tests in the background lets them ignore Ctrl-C, and so would each program that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The user's own configuration, keys, budgets, proofs and sessions: no test sees them, and none leaves one of its own.
_PLACES = tempfile.mkdtemp(prefix="dragoman-places-")
os.environ |= {f"XDG_{kind}_HOME": f"{_PLACES}/{kind.lower()}" for kind in ("CONFIG", "DATA", "STATE")}

# Each client of a vendor's SDK reads more than a hundred certificates, which takes longer than most tests. No test asks
# a server that shows one of them, so that the first is enough.
_BUNDLES = {os.environ.get("SSL_CERT_FILE"), certifi.where(), *ssl.get_default_verify_paths()} - {None}
_FIRST = Path(_PLACES, "certificate.pem")
_FIRST.write_text("".join(Path(certifi.where()).read_text("utf-8").partition("-----END CERTIFICATE-----\n")[:2]))
_load = ssl.SSLContext.load_verify_locations
ssl.SSLContext.load_verify_locations = lambda self, cafile=None, capath=None, cadata=None: _load(
    self, _FIRST if cafile in _BUNDLES else cafile, capath, cadata
)
ssl.SSLContext.set_default_verify_paths = lambda self: _load(self, _FIRST)

#: Files of few and long tests: they begin first, so that no worker is left alone with one of them at the end. A column
#: is for one worker of four: the two that run a model stand in the same one.
LONG = (
    "test_linear_time.py", "test_recipes.py", "test_live.py", "test_large_frames.py",
    "test_headless.py", "test_equal_ways.py", "test_docs.py", "test_growth_tutorial.py",
    "test_escapes.py", "test_overdraft_worlds.py", "test_embedded.py", "test_terminal.py",
    "test_endings.py", "test_stores.py", "test_sandbox.py", "test_workers.py",
    "test_recording.py", "test_fields.py", "test_sdks.py", "test_shared_counters.py",
    "test_kills.py", "test_cut_calls.py", "test_pyright.py", "test_answer_fields.py",
    "test_replica.py", "test_copying.py", "test_written_programs.py", "test_counters_worlds.py",
    "test_typing.py", "test_made_up_names.py", "test_many_labels.py", "test_serve_at_a_terminal.py",
    "test_postgresql.py", "test_rescue.py", "test_quoting_contexts.py", "test_mending.py",
    "test_library_runs.py", "test_damaged_marks.py", "test_value_ends.py", "test_wire_safety.py",
)  # fmt: skip

#: A file with one of these from `profiles.py` has tests that are tried for longer in `make soak`.
_LONGER = {name: getattr(profiles, name) for name in ("IS_SOAK", "examples", "one", "some")}


def pytest_configure(config: pytest.Config) -> None:
    """Each worker begins to collect with other files: what one has compiled, the others find."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    if number and [Path(each).name for each in config.args] == ["tests"]:
        files = sorted(str(path) for path in Path(config.args[0]).rglob("test_*.py"))
        first = len(files) * number // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        config.args = files[first:] + files[:first]


def pytest_unconfigure() -> None:
    shutil.rmtree(_PLACES, ignore_errors=True)  # here, not at the exit: a forked program has one of its own


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The same order in each worker. What `make soak` tries for longer belongs to it."""
    for item in items if profiles.IS_SOAK else ():
        module = getattr(item, "module", None)
        if any(getattr(module, name, None) is value for name, value in _LONGER.items()):
            item.add_marker(pytest.mark.soak)
    items[:] = dealt(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def dealt(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """As many tests in a row for each worker as pytest-xdist gives it at first, its share of the long files before the
    others: while all of them were one worker's, the others had nothing left to take from it at the end."""
    places = {name: place for place, name in enumerate(LONG)}
    items = sorted(items, key=lambda item: (places.get(item.path.name, len(places)), item.path))
    rest = [item for item in items if item.path.name not in places]
    order: list[pytest.Item] = []
    for worker in range(workers):
        size = (len(items) - len(order)) // (workers - worker)
        share = [item for item in items if places.get(item.path.name, -1) in range(worker, len(places), workers)]
        others = max(0, size - len(share))
        order += [*share, *rest[:others]]
        del rest[:others]
    assert len(order) == len(items)
    return order


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """To collect thousands of tests leaves no garbage, and what was collected stays: nobody looks for any in it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True, scope="module")
def no_old_objects() -> None:
    """What stays of other files is not looked at again: a look for garbage costs what this file makes, not 0.6 s."""
    gc.collect()
    gc.freeze()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A run of hours may be cut off before its summary: `make soak` names each failure at once."""
    if profiles.IS_SOAK and report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        why = "\n".join(report.longreprtext.splitlines()[-40:])
        print(f"\nFAILED {report.nodeid} ({report.when})\n{why}", file=sys.__stderr__, flush=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What this platform cannot try is said."""
    for missing in (MISSING, NO_VALKEY, NO_HAPROXY):
        if missing:
            terminalreporter.write_line(f"left out: {missing}")
    if not importlib.util.find_spec("basedpyright"):
        terminalreporter.write_line("left out: pyright: its package, basedpyright, is not installed")
