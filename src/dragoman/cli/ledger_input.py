"""What the commands of the ledger have in common: where it stands, and how times are given."""

from __future__ import annotations

import argparse
import getpass
import os
import re
import time
from datetime import UTC, datetime
from typing import Final

from dragoman.cli.settings import load_settings
from dragoman.errors import ConfigError, UsageError
from dragoman.ledger.folder import LedgerFolder

_SPAN: Final = re.compile(r"(\d{1,6})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def ledger_folder(options: argparse.Namespace) -> LedgerFolder:
    """That of the configuration's state folder.

    Raises:
        ConfigError: the configuration has none.
    """
    config = load_settings(options)
    if config.server.state is None:
        raise ConfigError("server.state: expected the folder in which the ledger stands")
    return LedgerFolder.of(config.server.state, config.ledger.store, config.ledger.counters)


def read_span(word: str) -> int | None:
    """`90d`, `12h`, `30m`, `10s` → seconds; None for what is no span."""
    found = _SPAN.fullmatch(word)
    return int(found[1]) * _SECONDS[found[2]] if found else None


def read_since(word: str | None) -> float:
    """A span before now, or a day (UTC) → Unix seconds; 0.0 without one.

    Raises:
        UsageError: it is neither.
    """
    if word is None:
        return 0.0
    span = read_span(word)
    return time.time() - span if span is not None else read_day(word, "--since")


def read_day(word: str, option: str) -> float:
    """`2026-11-01` → Unix seconds of its beginning in UTC.

    Raises:
        UsageError: it is no day.
    """
    try:
        return datetime.strptime(word, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise UsageError(f"{option}: expected a span like 7d or a day like 2026-11-01, got {word[:40]!r}") from None


def actor() -> str:
    """Who runs the command, for the audit."""
    try:
        return f"{getpass.getuser()} (command)"
    except (OSError, KeyError, ImportError):
        return f"user {os.getuid() if hasattr(os, 'getuid') else '?'} (command)"
