"""Hide this process's environment and memory from other processes.

Commands without a sandbox run as the same user, and `/proc/PID/environ` shows them the block that a process was started
with, whatever it does to its variables later.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

_SET_DUMPABLE: Final = 4  # PR_SET_DUMPABLE of linux/prctl.h
_ENVIRONMENT_AT: Final = (47, 48)  # env_start and env_end among the fields behind the name; see proc_pid_stat(5)


def hide_environment() -> bool:
    """Blank the block that `/proc` shows, and close this process to others of its user. Return False if that is
    impossible.

    The variables stay the same for this process and its children: they move into its memory.
    """
    if sys.platform != "linux":
        return False
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = (int(fields[place]) for place in _ENVIRONMENT_AT)
        for name, value in list(os.environ.items()):
            os.environ[name] = value  # the C library copies it; nothing points into the block any more
        if 0 < start < end:
            ctypes.memset(start, 0, end - start)
        status: int = ctypes.CDLL(None, use_errno=True).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
        return status == 0
    except (OSError, ValueError, IndexError):
        return False
