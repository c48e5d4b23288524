"""Run a command that can make no user namespace, as on systems that give none: nothing of this machine is changed.

    python -m reliability.without_namespaces COMMAND…

A filter of system calls (seccomp(2)) refuses the flag in clone and unshare, and clone3 as a whole.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

#: linux/audit.h's name of the machine, and its numbers of clone, unshare and clone3.
_ABIS = {"x86_64": (0xC000003E, 56, 272, 435), "aarch64": (0xC00000B7, 220, 97, 435)}
_NEWUSER = 0x10000000
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2  # linux/prctl.h, linux/seccomp.h
_EPERM, _ENOSYS, _ALLOW = 0x00050001, 0x00050026, 0x7FFF0000


class _Program(ctypes.Structure):  # the C library asks for one of its own kind
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def main() -> int:
    """Put the filter in force and become the command."""
    architecture, clone, unshare, clone3 = _ABIS[platform.machine()]
    instructions = [
        (0x20, 0, 0, 4), (0x15, 1, 0, architecture), (0x06, 0, 0, _ALLOW), (0x20, 0, 0, 0),
        (0x15, 0, 1, clone3), (0x06, 0, 0, _ENOSYS), (0x15, 1, 0, clone), (0x15, 0, 3, unshare),
        (0x20, 0, 0, 16), (0x45, 0, 1, _NEWUSER), (0x06, 0, 0, _EPERM), (0x06, 0, 0, _ALLOW),
    ]  # fmt: skip
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
    library = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(instructions), code)
    for words in ((_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0)):
        if library.prctl(*words) != 0:
            raise OSError(ctypes.get_errno(), "prctl")
    os.execvp(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
