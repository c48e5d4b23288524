"""Make a client key for the gateway: 256 bits of chance, shown once. Only its SHA-256 belongs in the configuration.

new     make one; the key goes to the client, the other line into server.keys
"""

from __future__ import annotations

import argparse
import hashlib
import secrets
from typing import Final

from dragoman import _json
from dragoman.cli.body_input import write
from dragoman.cli.main import DONE
from dragoman.cli.terminal import hint, say

EXAMPLE = "  dragoman keys new"

_BYTES: Final = 32
_PREFIX: Final = "dragoman-"  # so that a key that leaked is found by those who look for keys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("action", choices=["new"], metavar="new", help="what to do")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    """Make a key."""
    key, digest = new_key()
    if options.json:
        write(_json.encode({"key": key, "digest": digest}) + b"\n")
        return DONE
    say(f"{key}\n{digest}\n")
    hint(
        "the first line is the key, for the client: it is not kept anywhere and not shown again\n"
        f'the second goes into the configuration: [server] keys = ["{digest}"]\n'
    )
    return DONE


def new_key() -> tuple[str, str]:
    """A key, and what the configuration knows it by."""
    key = _PREFIX + secrets.token_urlsafe(_BYTES)
    return key, f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"
