"""The messages between the embedded server's process and its parent."""

from __future__ import annotations

from typing import Final, final

import msgspec

#: The environment variable that carries the server's key: arguments can be read by every user of the machine.
KEY_VARIABLE: Final = "DRAGOMAN_EMBEDDED_KEY"

INSTALL_LINE: Final = 'pip install "dragoman[embedded]"'


@final
class Ready(msgspec.Struct, frozen=True, gc=False):
    """The server is ready. `model_sha256`: of the file that this process loaded, in hex."""

    url: str
    pid: int
    model_sha256: str


@final
class NotReady(msgspec.Struct, frozen=True, gc=False):
    """The server cannot start, and why."""

    error: str
