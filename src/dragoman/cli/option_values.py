"""Readers of option values. Each takes the word of the command line and raises ArgumentTypeError if it is wrong."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Final

from dragoman.providers.address import scheme_hint, split_url

_LAST_PORT: Final = 65_535
_MOST_DIGITS: Final = 12


def _number(word: str, least: int, most: int, expected: str) -> int:
    is_number = word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS
    if not is_number or not least <= int(word) <= most:
        raise ArgumentTypeError(f"expected {expected}, got {word[:40]!r}")
    return int(word)


def read_port(word: str) -> int:
    """Return a port number."""
    return _number(word, 0, _LAST_PORT, f"a port from 0 to {_LAST_PORT}")


def read_count(word: str) -> int:
    """Return a whole number, 1 or more."""
    return _number(word, 1, 10**_MOST_DIGITS, "a whole number, at least 1")


def read_status(word: str) -> int:
    """Return an HTTP status."""
    return _number(word, 100, 599, "an HTTP status from 100 to 599")


def read_url(word: str) -> str:
    """Return the address of a gateway."""
    if split_url(word) is None:
        raise ArgumentTypeError(f"expected an address like http://127.0.0.1:4141, got {word[:80]!r}{scheme_hint(word)}")
    return word


def reachable(address: str) -> tuple[str, int]:
    """Return the host and the port by which this machine's programs reach what listens at an address."""
    host, _, port = address.rpartition(":")
    return "127.0.0.1" if host in ("0.0.0.0", "[::]") else host, int(port)


def read_host(word: str) -> str:
    """Return the name or address of an interface of this machine."""
    if "://" in word or "]:" in word or word.count(":") == 1:
        raise ArgumentTypeError(f"expected a host, and its port as --port, got {word[:80]!r}")
    return word
