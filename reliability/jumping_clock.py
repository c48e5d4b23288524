"""A clock that jumps, for a process that is begun: `CLOCK_REALTIME` is seconds off, by a library that is loaded before
all others (Linux, gcc). Clocks that only go forward are left alone, as when the wall's clock is set."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

#: Why no clock jumps; "" where it does.
MISSING: Final = "" if sys.platform == "linux" and shutil.which("gcc") else "clocks that jump: needs Linux and gcc"
_SOURCE: Final = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile long long *off;
__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("DRAGOMAN_DRILL_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *found = file < 0 ? MAP_FAILED : mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (found != MAP_FAILED) off = found;
}
int clock_gettime(clockid_t which, struct timespec *at) {
    int failed = syscall(SYS_clock_gettime, which, at);
    if (!failed && off && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) at->tv_sec += *off;
    return failed;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


def build(folder: Path) -> Path:
    """The library, made in a folder."""
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(_SOURCE, encoding="ascii")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


class JumpingClock:
    """Of one machine.

    Attributes:
        environ: what its processes need in their environment.
    """

    def __init__(self, library: Path, file: Path) -> None:
        """`file`: where it is written how far it is off."""
        self._file = file
        file.write_bytes(bytes(8))
        self.environ = {"LD_PRELOAD": str(library), "DRAGOMAN_DRILL_CLOCK": str(file)}

    def jump(self, seconds: int) -> None:
        """It is so far off from now on; 0: it is right."""
        with self._file.open("r+b", buffering=0) as file:
            file.write(struct.pack("=q", seconds))
