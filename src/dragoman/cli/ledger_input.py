"""What the ledger's commands share: where the ledger stands, and how times are given."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import time
from collections.abc import Iterator
from pathlib import Path

from dragoman.cli.settings import load_settings
from dragoman.config import Config
from dragoman.config.ledger import check_store
from dragoman.config.references import read_secret
from dragoman.errors import ConfigError, DragomanError, UsageError
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Missing, Refused, StoreAway
from dragoman.ledger.times import read_moment
from dragoman.secret import Secret


def ledger_folder(options: argparse.Namespace) -> LedgerFolder:
    """Return the ledger of the configuration's state folder. Raises `ConfigError`: the configuration has none."""
    return folder_of(load_settings(options))


def folder_of(config: Config) -> LedgerFolder:
    """Return the ledger of a configuration. Raises ConfigError if it has none."""
    if config.server.state is None:
        raise ConfigError("server.state: expected the folder in which the ledger stands")
    return LedgerFolder.of(config.server.state, config.ledger.store, config.ledger.counters)


@contextlib.contextmanager
def ledger_errors(subject: str) -> Iterator[None]:
    """Turn a ledger's errors into a command's: UsageError for what is not there, else DragomanError."""
    try:
        yield
    except Missing as problem:
        raise UsageError(f"{subject}: {problem}") from None
    except (StoreAway, Refused) as problem:
        raise DragomanError(f"{subject}: {problem}") from None


def other_ledger(folder: LedgerFolder, word: str, option: str) -> LedgerFolder:
    """Return the ledger of the same state folder in another store. `word` is as `ledger.store` in the configuration.

    Raises:
        UsageError: the word does not name a store.
        ConfigError: a variable or file that it names cannot be read.
    """
    if word == "sqlite":
        return LedgerFolder(folder.root)
    address = Secret(word)
    if word.startswith(("env:", "file:")):
        address = read_secret(word, option, environ=os.environ, home=Path.home(), folder=Path.cwd())
    try:
        check_store(address, option)
    except ConfigError as problem:
        raise UsageError(str(problem)) from None
    return LedgerFolder(folder.root, address)


def read_since(word: str | None) -> float:
    """Return the Unix seconds of a span before now, or of a day (UTC); 0.0 without one.

    Raises:
        UsageError: the word is neither.
    """
    if word is None:
        return 0.0
    try:
        return read_moment(word, time.time())
    except ValueError as problem:
        raise UsageError(f"--since: {problem}") from None


def actor() -> str:
    """Return who runs the command, for the audit."""
    try:
        return f"{getpass.getuser()} (command)"
    except (OSError, KeyError, ImportError):
        return f"user {os.getuid() if hasattr(os, 'getuid') else '?'} (command)"
