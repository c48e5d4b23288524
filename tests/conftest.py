"""Settings of all tests: no verdict by the clock, the same examples each time; other examples when `DRAGOMAN_SEARCH` is
set, more of them when `DRAGOMAN_SOAK` is."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import threading

import pytest
from hypothesis import HealthCheck, settings
from reliability.engine_haproxy import MISSING as NO_HAPROXY
from reliability.engine_valkey import MISSING as NO_VALKEY
from reliability.engines import MISSING

settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same code has the same verdict: what a search finds becomes a test of its own.
settings.register_profile("test", settings.get_profile("search"), derandomize=True, max_examples=60)
settings.register_profile("soak", settings.get_profile("search"), max_examples=5000)
settings.load_profile(next((name for name in ("soak", "search") if os.environ.get(f"DRAGOMAN_{name.upper()}")), "test"))

# A shell that starts the tests in the background lets them ignore Ctrl-C, and so would each program that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="module")
def no_old_objects() -> None:
    """What stays of other files is not looked at again: a look for garbage costs what this file makes, not 0.6 s."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What this platform cannot try is said."""
    for missing in (MISSING, NO_VALKEY, NO_HAPROXY):
        if missing:
            terminalreporter.write_line(f"left out: {missing}")
    if not importlib.util.find_spec("basedpyright"):
        terminalreporter.write_line("left out: pyright: its package, basedpyright, is not installed")
