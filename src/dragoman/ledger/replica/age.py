"""Elapsed time that does not depend on changes of the wall clock. If it cannot be told, it is infinite."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final, final

import msgspec

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
#: Seconds that the wall's clock may go back by itself, while it is being set right.
_SLACK: Final = 2.0
#: Seconds for which nothing is said of a copy's age.
_YOUNG: Final = 10.0


@final
class Moment(msgspec.Struct, frozen=True):
    """A point in time.

    Attributes:
        boot: identifies the system's boot; "" if it is unknown.
        ticks: seconds of a clock that runs on while the machine sleeps, valid within one boot.
        wall: Unix seconds.
    """

    boot: str
    ticks: float
    wall: float


def now() -> Moment:
    """Return the current moment."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return Moment(read_boot(), time.monotonic() if clock is None else time.clock_gettime(clock), time.time())


def seconds_between(then: Moment, later: Moment) -> float:
    """Return the seconds from one moment to a later one; infinite if a clock went back and no other clock tells."""
    if then.boot and then.boot == later.boot:
        return max(0.0, later.ticks - then.ticks)
    passed = later.wall - then.wall
    return max(0.0, passed) if passed >= -_SLACK else float("inf")


def replica_words(seconds: float, *, is_too_old: bool) -> str:
    """Return a message about a copy of this age, or "" while it is fresh."""
    if seconds < _YOUNG and not is_too_old:
        return ""
    then = "its keys let nobody in" if is_too_old else "its keys and quotas hold as they were"
    return f"the store was {age_words(seconds)}; {then}"


def age_words(seconds: float) -> str:
    """Return a phrase that says when the store was last reached."""
    return "not heard yet" if seconds == float("inf") else f"heard {_span(seconds)} ago"


def _span(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def read_boot() -> str:
    """Return the system's boot id, or "" if it has none."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""
