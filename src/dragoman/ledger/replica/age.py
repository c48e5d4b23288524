"""How long ago something was, whatever the clock on the wall was set to since. Where that cannot be told: for ever."""

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
    """Now. `boot`: names a life of the machine, "" where it cannot be told; `ticks`: seconds of a clock that goes
    forward alone, also while the machine sleeps, in one such life; `wall`: Unix seconds."""

    boot: str
    ticks: float
    wall: float


def now() -> Moment:
    """This moment."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return Moment(read_boot(), time.monotonic() if clock is None else time.clock_gettime(clock), time.time())


def seconds_between(then: Moment, later: Moment) -> float:
    """How long it took from one moment to the other; infinite where a clock went back and no other one tells."""
    if then.boot and then.boot == later.boot:
        return max(0.0, later.ticks - then.ticks)
    passed = later.wall - then.wall
    return max(0.0, passed) if passed >= -_SLACK else float("inf")


def replica_words(seconds: float, *, is_too_old: bool) -> str:
    """What is to be said of a copy of this age; "" while it is young."""
    if seconds < _YOUNG and not is_too_old:
        return ""
    then = "its keys let nobody in" if is_too_old else "its keys and quotas hold as they were"
    return f"the store was {age_words(seconds)}; {then}"


def age_words(seconds: float) -> str:
    """When the store was heard."""
    return "not heard yet" if seconds == float("inf") else f"heard {_span(seconds)} ago"


def _span(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def read_boot() -> str:
    """The name of the system's life, "" where it has none."""
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""
