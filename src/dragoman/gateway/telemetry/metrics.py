"""Metrics for Prometheus: counted in a buffer that other processes may read, rendered as text on request.

Each worker counts in its own file; the worker that is asked adds all up. A count costs one addition in memory. The file
outlives its worker, so that nothing is lost with it. Labels come from closed sets, and beyond `SERIES` series a family
counts under "other". Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (read 2026-11-22).
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, Literal, final

import msgspec

#: Series of one family; what would be more counts under "other".
SERIES: Final = 300
_SIZE: Final = 1 << 20  # bytes of a buffer; what has no room is not counted
_WORD: Final = 8
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


@final
class Family(msgspec.Struct, frozen=True):
    """A metric. `over`: upper bounds of a histogram's buckets. `merge`: how the workers' values are combined."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    over: tuple[float, ...] = ()
    merge: Literal["sum", "max", "min"] = "sum"


REQUESTS: Final = Family(
    "dragoman_requests_total", "counter", "Requests by how they ended.", ("client", "route", "provider", "outcome")
)
FAILURES: Final = Family("dragoman_failures_total", "counter", "Failures that clients were told.", ("client", "kind"))
ATTEMPTS: Final = Family("dragoman_attempts_total", "counter", "Tries of targets.", ("provider", "outcome", "reason"))
FALLBACKS: Final = Family("dragoman_fallbacks_total", "counter", "Tries after a first one, by why.", ("reason",))
TOKENS: Final = Family("dragoman_tokens_total", "counter", "Tokens that providers reported.", ("provider", "kind"))
COST: Final = Family("dragoman_cost_usd_total", "counter", "US dollars, where a price is known.", ("provider",))
DEVIATIONS: Final = Family(
    "dragoman_deviations_total", "counter", "Deviations that were mended, by code.", ("provider", "code")
)
DURATION: Final = Family(
    "dragoman_request_seconds", "histogram", "From a request's last byte to its answer's.", ("client",), _SECONDS
)
FIRST: Final = Family(
    "dragoman_first_event_seconds", "histogram", "Until something of the answer came.", ("client",), _SECONDS
)
UNDER_WAY: Final = Family("dragoman_requests_under_way", "gauge", "Requests that are being answered.")
UPSTREAM: Final = Family("dragoman_upstream_connections", "gauge", "Open connections to providers, kept ones too.")
BREAKERS: Final = Family(
    "dragoman_breaker_open", "gauge", "Whether a target of a route is passed over: 0 or 1.", ("target",), merge="max"
)
READY: Final = Family("dragoman_ready_workers", "gauge", "Workers that take requests.")
LAG: Final = Family("dragoman_loop_lag_seconds", "gauge", "The event loop's last delay.", merge="max")
GENERATION: Final = Family("dragoman_config_generation", "gauge", "Configurations taken since the start.", merge="min")
RELOADS: Final = Family("dragoman_config_reloads_total", "counter", "Configurations read anew.", ("result",))
DROPPED: Final = Family("dragoman_log_dropped_total", "counter", "Log lines that were not written.", ("reason",))
LEDGER_ATTEMPTS: Final = Family(
    "dragoman_ledger_attempts_total", "counter", "Attempts that ended, by state.", ("state",)
)
LEDGER_UNRECORDED: Final = Family(
    "dragoman_ledger_unrecorded_total", "counter", "Attempts that were sent without a record in the ledger."
)
LEDGER_ROWS: Final = Family(
    "dragoman_ledger_rows",
    "gauge",
    "Since the shipper's start: rows delivered, records set aside, attempts missing.",
    ("kind",),
)
LEDGER_PROBLEM: Final = Family(
    "dragoman_ledger_problem", "gauge", "Whether journals wait for the store: 0 or 1.", merge="max"
)
REPLICA_AGE: Final = Family(
    "dragoman_ledger_replica_age_seconds",
    "gauge",
    "Since when a PostgreSQL was not heard, whose keys and quotas this machine has a copy of.",
    merge="max",
)

FAMILIES: Final = (
    REQUESTS, FAILURES, ATTEMPTS, FALLBACKS, TOKENS, COST, DEVIATIONS, DURATION, FIRST, UNDER_WAY, UPSTREAM, BREAKERS,
    READY, LAG, GENERATION, RELOADS, DROPPED, LEDGER_ATTEMPTS, LEDGER_UNRECORDED, LEDGER_ROWS, LEDGER_PROBLEM,
    REPLICA_AGE,
)  # fmt: skip


class Metrics:
    """The metrics of one process."""

    __slots__ = ("_buffer", "_numbers", "_others", "_positions", "_used")

    def __init__(self, file: Path | None = None) -> None:
        """Create it. `file`: where other processes read them, and continue from; None keeps them to this process."""
        self._buffer: bytearray | mmap.mmap = bytearray(_SIZE) if file is None else _map(file)
        self._numbers = memoryview(self._buffer).cast("d")
        self._positions: dict[tuple[str, tuple[str, ...]], int] = {}
        self._others: dict[str, int] = {}  # how many series a family has
        self._used = _WORD
        for name, labels, start, _ in _entries(self._buffer):
            self._positions[name, labels] = start // _WORD
            self._others[name] = self._others.get(name, 0) + 1
        self._used = max(int.from_bytes(self._buffer[:_WORD], "little"), _WORD)

    def add(self, family: Family, labels: tuple[str, ...] = (), amount: float = 1.0) -> None:
        """Add to a counter."""
        try:
            position = self._positions[family.name, labels]
        except KeyError:
            position = self._place(family, labels)
        self._numbers[position] += amount

    def add_at(self, positions: tuple[int, ...]) -> None:
        """Add one to each of these series; see `position`."""
        numbers = self._numbers
        for position in positions:
            numbers[position] += 1.0

    def set(self, family: Family, value: float, labels: tuple[str, ...] = ()) -> None:
        """Set a gauge."""
        self._numbers[self.position(family, labels)] = value

    def observe_at(self, position: int, over: tuple[float, ...], value: float) -> None:
        """Add a value to a histogram: its bucket, and the sum that stands after the buckets; see `position`."""
        numbers = self._numbers
        numbers[position + bisect_left(over, value)] += 1.0
        numbers[position + len(over) + 1] += value

    def position(self, family: Family, labels: tuple[str, ...] = ()) -> int:
        """Return a series' position, which stays the same for as long as the process lives."""
        return self._positions.get((family.name, labels)) or self._place(family, labels)

    def _place(self, family: Family, labels: tuple[str, ...]) -> int:
        """Create a series. Return its position, in words."""
        if self._others.get(family.name, 0) >= SERIES:
            labels = ("other",) * len(labels)
            known = self._positions.get((family.name, labels))
            if known is not None:
                return known
        key = "\0".join((family.name, *labels)).encode("utf-8", "replace")
        count = len(family.over) + 2 if family.over else 1
        start = self._used + _WORD + -(-len(key) // _WORD) * _WORD
        end = start + count * _WORD
        if end > _SIZE - 32 * _WORD:
            return _SIZE // _WORD - 32  # a place that nobody reads
        self._buffer[self._used : self._used + _WORD] = len(key).to_bytes(4, "little") + count.to_bytes(4, "little")
        self._buffer[self._used + _WORD : self._used + _WORD + len(key)] = key
        self._buffer[:_WORD] = end.to_bytes(_WORD, "little")  # last, so that a reader sees whole entries
        self._used = end
        self._others[family.name] = self._others.get(family.name, 0) + 1
        self._positions[family.name, labels] = start // _WORD
        return start // _WORD

    def reset_gauges(self) -> None:
        """Reset the gauges of a previous process."""
        gauges = {family.name for family in FAMILIES if family.kind == "gauge"}
        for (name, _), position in self._positions.items():
            if name in gauges:
                self._numbers[position] = 0.0

    def render(self, others: Iterable[Path] = ()) -> bytes:
        """Render these metrics and those of other processes' files for Prometheus."""
        buffers: list[bytes | bytearray | mmap.mmap] = [self._buffer]
        for file in others:
            try:
                buffers.append(file.read_bytes())
            except OSError:
                continue  # it is being made
        return render(buffers)


def _map(file: Path) -> mmap.mmap:
    with file.open("a+b") as opened:
        opened.truncate(_SIZE)
        return mmap.mmap(opened.fileno(), _SIZE)


def _entries(buffer: bytes | bytearray | mmap.mmap) -> Iterator[tuple[str, tuple[str, ...], int, int]]:
    """Yield the name, the labels, the offset of the values and their number for each series."""
    end = min(int.from_bytes(buffer[:_WORD], "little"), len(buffer))
    position = _WORD
    while position + _WORD < end:
        size = int.from_bytes(buffer[position : position + 4], "little")
        count = int.from_bytes(buffer[position + 4 : position + _WORD], "little")
        position += _WORD
        name, *labels = buffer[position : position + size].decode("utf-8", "replace").split("\0")
        position += -(-size // _WORD) * _WORD
        yield name, tuple(labels), position, count
        position += count * _WORD


def render(buffers: Iterable[bytes | bytearray | mmap.mmap]) -> bytes:
    """Render the merged metrics of several buffers as text."""
    merging = {family.name: family.merge for family in FAMILIES}
    found: dict[str, dict[tuple[str, ...], list[float]]] = {}
    for buffer in buffers:
        for name, labels, start, count in _entries(buffer):
            with memoryview(buffer)[start : start + count * _WORD].cast("d") as view:
                numbers = list(view)
            series = found.setdefault(name, {})
            known = series.get(labels)
            if known is not None:
                merge = _MERGE[merging.get(name, "sum")]
                numbers = [merge(pair) for pair in zip(known, numbers, strict=True)]
            series[labels] = numbers
    lines: list[str] = []
    for family in FAMILIES:
        if family.name in found:
            lines += (f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}")
            for labels, numbers in sorted(found[family.name].items()):
                lines += _samples(family, labels, numbers)
    return ("\n".join(lines) + "\n").encode()


_MERGE: Final[dict[str, Callable[[Iterable[float]], float]]] = {"sum": sum, "max": max, "min": min}


def _samples(family: Family, labels: tuple[str, ...], numbers: list[float]) -> Iterator[str]:
    pairs = [f'{name}="{_escape(value)}"' for name, value in zip(family.labels, labels, strict=False)]
    if not family.over:
        shown = "+Inf" if numbers[0] == float("inf") else f"{numbers[0]:.15g}"
        yield f"{family.name}{_braced(pairs)} {shown}"
        return
    total = 0.0
    for bound, number in zip((*map(str, family.over), "+Inf"), numbers, strict=False):
        total += number
        limit = f'le="{bound}"'
        yield f"{family.name}_bucket{_braced([*pairs, limit])} {total:.15g}"
    yield f"{family.name}_sum{_braced(pairs)} {numbers[-1]:.15g}"
    yield f"{family.name}_count{_braced(pairs)} {total:.15g}"


def _braced(pairs: list[str]) -> str:
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
