"""Filter the requests that `dragoman tail` shows, and sum them up."""

from __future__ import annotations

import argparse
import contextlib
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import final

import msgspec

from dragoman._json import Json
from dragoman.cli.terminal import clip

_SHOWN = 6  # codes of deviations


@final
class Filter(msgspec.Struct, frozen=True):
    """The conditions of what is shown; without any, everything is."""

    model: str | None = None
    client: str | None = None
    failed: bool = False
    mended: bool = False
    slower: float | None = None

    @property
    def is_set(self) -> bool:
        """Whether it leaves anything out."""
        return self != Filter()

    def takes(self, entry: Mapping[str, Json]) -> bool:
        """Return whether a log entry meets all conditions. What is no request does only if there is none."""
        if not self.is_set:
            return True
        if entry.get("kind") != "request":
            return False
        names = [str(entry.get(name) or "").lower() for name in ("target", "route", "model")]
        seconds = entry.get("total_ms")
        return (
            (self.model is None or any(self.model.lower() in name for name in names))
            and (self.client is None or self.client.lower() in str(entry.get("client") or "").lower())
            and (not self.failed or is_failed(entry))
            and (not self.mended or bool(entry.get("deviations")))
            and (self.slower is None or (isinstance(seconds, int | float) and seconds >= self.slower * 1000))
        )


def add_filter(parser: argparse.ArgumentParser) -> None:
    """Declare the options that pick requests."""
    parser.add_argument("--model", metavar="WORD", help="only requests whose model or route has this word in its name")
    parser.add_argument(
        "--client", metavar="WORD", help="only clients of this protocol or with this word in their name"
    )
    parser.add_argument("--failed", action="store_true", help="only requests that failed or were refused")
    parser.add_argument("--mended", action="store_true", help="only answers in which something was mended")
    parser.add_argument("--slower", type=read_seconds, metavar="S", help="only requests that took S seconds or longer")


def read_filter(options: argparse.Namespace) -> Filter:
    """Return the filter of the options."""
    return Filter(options.model, options.client, options.failed, options.mended, options.slower)


def read_seconds(word: str) -> float:
    """Return seconds, 0 or more. Raises ArgumentTypeError."""
    try:
        seconds = float(word)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds, 0 or more, got {word[:40]!r}")
    return seconds


def is_failed(entry: Mapping[str, Json]) -> bool:
    """Return whether a request did not end well."""
    return entry.get("outcome") != "done"


class Totals:
    """Sums over the requests that were shown. Memory does not grow with their number."""

    def __init__(self) -> None:
        self._requests = self._failed = self._mended = self._input = self._output = 0
        self._milliseconds = 0.0
        self._dollars = Decimal(0)
        self._codes: Counter[str] = Counter()

    def add(self, entry: Mapping[str, Json]) -> None:
        """Add a log entry; an entry that is no request counts nothing."""
        if entry.get("kind") != "request":
            return
        self._requests += 1
        self._failed += is_failed(entry)
        usage, mended, took = entry.get("usage"), entry.get("deviations"), entry.get("total_ms")
        if isinstance(usage, dict):
            self._input += _count(usage.get("input"))
            self._output += _count(usage.get("output"))
        if isinstance(mended, dict) and mended:
            self._mended += 1
            self._codes.update({str(code): _count(count) for code, count in mended.items()})
        if isinstance(took, int | float):
            self._milliseconds += took
        with contextlib.suppress(InvalidOperation):
            self._dollars += Decimal(str(entry.get("cost_usd") or 0))

    def render(self) -> str:
        """Render the sums in one line or two; "" if nothing was shown."""
        if not self._requests:
            return ""
        words = [
            f"{self._requests} request{'s' if self._requests > 1 else ''}",
            f"{self._failed} failed" if self._failed else "",
            f"{self._input:,} tokens in, {self._output:,} out",
            f"${self._dollars.normalize():f}" if self._dollars else "",
            f"{self._milliseconds / self._requests / 1000:.2f} s on average",
        ]
        line = "total: " + ", ".join(word for word in words if word) + "\n"
        if self._mended:
            codes = ", ".join(f"{clip(code, 40)} ×{count}" for code, count in self._codes.most_common(_SHOWN))
            line += f"mended: {self._mended} of them: {codes}\n"
        return line


def _count(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
