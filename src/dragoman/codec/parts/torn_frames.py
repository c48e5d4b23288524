"""Frames that hold a call and have a key twice, with different values: readers differ in which of the two counts."""

from __future__ import annotations

import re
from typing import Final

from dragoman._json import TOLD_TWICE
from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.repeated_keys import repeats_key

#: A call under the keys of the protocols, not an empty list.
_CALL: Final = re.compile(rb'(?:tool_calls"\s*:\s*\[\s*[^]\s]|(?:tool_calls|function_?[cC]all)"\s*:\s*\{)')


def hides_call(frame: bytes) -> bool:
    """Whether a call stands in a frame of which none was read, for a key around it came again without one."""
    return _CALL.search(frame) is not None and repeats_key(frame)


def refuse(assembly: Assembly, where: str, name: str = "") -> None:
    """Take a call out of such a frame: what it says, and of which call, has two readings. So each open call fails, and
    one more for what is lost. `name`: of that, where it is told."""
    if assembly.phase == "open":
        assembly.unreadable(where, TOLD_TWICE)
        assembly.drop_call(
            assembly.open_call(None, name, wait=True), "contradicted", f"tool call {name or '(no name)'}: {TOLD_TWICE}"
        )
