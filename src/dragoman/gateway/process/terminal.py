"""Interpret SIGHUP: the terminal closed, or the configuration shall be read again."""

import os
import signal
from collections.abc import Callable


def terminal_watch() -> Callable[[], bool]:
    """Return a function that tells whether the current terminal has closed.

    It never has if there is none, as under a service manager, or if `nohup` lets the process outlive it.
    """
    number = getattr(signal, "SIGHUP", None)  # Windows has none
    if number is None or signal.getsignal(number) is signal.SIG_IGN or not _has_terminal():
        return lambda: False
    return lambda: not _has_terminal()


def _has_terminal() -> bool:
    """Return whether a terminal controls this process."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK))
    except OSError:
        return False
    return True
