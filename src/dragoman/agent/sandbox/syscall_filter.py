"""The filter of system calls for sandboxed commands: a BPF program, made here.

It refuses what reaches out of a sandbox of namespaces: sockets of the file system and of the hypervisor, io_uring
(which creates sockets without the filtered calls), further namespaces and mounts, the keyring, set-uid files. Calls of
another ABI (i386, x32) are all refused, because their numbers mean other calls.

References: seccomp(2); linux/seccomp.h, linux/audit.h, linux/filter.h; asm/unistd_64.h and asm-generic/unistd.h.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias, final

#: One instruction: code, jump if true, jump if false, constant. Jumps count instructions from the next one.
Instruction: TypeAlias = tuple[int, int, int, int]

# ---------------------------------------------------------------- linux/filter.h and linux/seccomp.h

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K
ALLOW: Final = 0x7FFF0000
KILL: Final = 0x80000000
_ERRNO: Final = 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_X32: Final = 0x40000000

#: Namespaces that clone and unshare make (linux/sched.h): mount, cgroup, UTS, IPC, user, PID, network; time by unshare.
_NAMESPACES: Final = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_TIME_NAMESPACE: Final = 0x80
_SETUID: Final = 0o4000
_CREATE: Final = 0o100  # O_CREAT
_STICKS: Final = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX type into a terminal

#: socket(2): the Internet and the kernel's own news. AF_UNIX and AF_VSOCK lead out, the others are rarely looked at.
_FAMILIES: Final = (2, 10, 16)  # AF_INET, AF_INET6, AF_NETLINK
#: socketpair(2) of AF_UNIX: stream and sequenced packets. A pair of datagrams can be sent to any address.
_PAIRS: Final = (1, 5)
_KIND_MASK: Final = 0xF

_REFUSED: Final = (
    "setns", "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr", "statmount", "listmount", "add_key", "request_key", "keyctl",
    "bpf", "perf_event_open", "userfaultfd", "kexec_load", "kexec_file_load", "init_module", "finit_module",
    "delete_module", "reboot", "swapon", "swapoff", "syslog", "acct", "quotactl", "quotactl_fd", "open_by_handle_at",
    "lookup_dcookie", "nfsservctl", "vhangup", "settimeofday", "clock_settime", "sethostname", "setdomainname",
    "fanotify_init", "ioperm", "iopl", "modify_ldt", "uselib", "ustat", "sysfs", "_sysctl", "create_module",
)  # fmt: skip
#: Programs fall back to older calls when these are not there.
_MISSING: Final = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2")


@final
class _Abi(NamedTuple):
    """A machine's name in linux/audit.h, and its system call numbers."""

    architecture: int
    numbers: Mapping[str, int]


_COMMON: Final = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435, "openat2": 437, "mount_setattr": 442,
    "quotactl_fd": 443, "fchmodat2": 452, "statmount": 457, "listmount": 458, "open_tree_attr": 467,
}  # fmt: skip
_X86_64: Final = _Abi(
    0xC000003E,
    {
        **_COMMON, "open": 2, "ioctl": 16, "socket": 41, "socketpair": 53, "clone": 56, "creat": 85, "chmod": 90,
        "fchmod": 91, "syslog": 103, "mknod": 133, "uselib": 134, "ustat": 136, "sysfs": 139, "vhangup": 153,
        "modify_ldt": 154, "pivot_root": 155, "_sysctl": 156, "chroot": 161, "acct": 163, "settimeofday": 164,
        "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170,
        "setdomainname": 171, "iopl": 172, "ioperm": 173, "create_module": 174, "init_module": 175,
        "delete_module": 176, "quotactl": 179, "nfsservctl": 180, "lookup_dcookie": 212, "clock_settime": 227,
        "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "openat": 257, "mknodat": 259,
        "fchmodat": 268, "unshare": 272, "perf_event_open": 298, "fanotify_init": 300, "open_by_handle_at": 304,
        "setns": 308, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
    },
)  # fmt: skip
_AARCH64: Final = _Abi(
    0xC00000B7,
    {
        **_COMMON, "lookup_dcookie": 18, "ioctl": 29, "mknodat": 33, "umount2": 39, "mount": 40, "pivot_root": 41,
        "nfsservctl": 42, "chroot": 51, "fchmod": 52, "fchmodat": 53, "openat": 56, "vhangup": 58, "quotactl": 60,
        "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112,
        "syslog": 116, "reboot": 142, "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "socket": 198,
        "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219, "clone": 220, "swapon": 224,
        "swapoff": 225, "perf_event_open": 241, "fanotify_init": 262, "open_by_handle_at": 265, "setns": 268,
        "finit_module": 273, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294,
    },
)  # fmt: skip
_ABIS: Final = {"x86_64": _X86_64, "amd64": _X86_64, "aarch64": _AARCH64, "arm64": _AARCH64}


def make_filter(machine: str) -> bytes | None:
    """Return the filter as an array of `struct sock_filter` for `platform.machine()`, or None for an unknown one."""
    abi = _ABIS.get(machine.lower())
    if abi is None:
        return None
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in _program(abi))


def _program(abi: _Abi) -> list[Instruction]:
    program = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, abi.architecture), _end(KILL), (_LOAD, 0, 0, _NUMBER_AT)]
    program += [(_AT_LEAST, 0, 1, _X32), _end(_ERRNO | _ENOSYS)]
    for error, names in ((_EPERM, _REFUSED), (_ENOSYS, _MISSING)):
        for name in names:
            if name in abi.numbers:
                program += [(_EQUAL, 0, 1, abi.numbers[name]), _end(_ERRNO | error)]
    for name, block in _blocks().items():
        if name in abi.numbers:
            # The block ends by itself in every way, so the number need not be loaded again.
            program += [(_EQUAL, 0, len(block), abi.numbers[name]), *block]
    return [*program, _end(ALLOW)]


def _blocks() -> dict[str, list[Instruction]]:
    """Return the decisions on arguments, each ending in a return. The kernel reads the low 32 bits of each argument."""
    mode = [(_ANY_BIT, 0, 1, _SETUID), _end(_ERRNO | _EPERM), _end(ALLOW)]
    spaces = _NAMESPACES | _TIME_NAMESPACE
    return {
        "socket": _only(0, _FAMILIES, _EAFNOSUPPORT),
        "socketpair": [_argument(1), (_AND, 0, 0, _KIND_MASK), *_among(_PAIRS, _EAFNOSUPPORT)],
        "clone": [_argument(0), (_ANY_BIT, 0, 1, _NAMESPACES), _end(_ERRNO | _EPERM), _end(ALLOW)],
        "unshare": [_argument(0), (_ANY_BIT, 0, 1, spaces), _end(_ERRNO | _EPERM), _end(ALLOW)],
        "ioctl": [_argument(1), *_none_of(_STICKS)],
        "chmod": [_argument(1), *mode],
        "fchmod": [_argument(1), *mode],
        "fchmodat": [_argument(2), *mode],
        "fchmodat2": [_argument(2), *mode],
        "creat": [_argument(1), *mode],
        "mknod": [_argument(1), *mode],
        "mknodat": [_argument(2), *mode],
        "open": [_argument(1), (_ANY_BIT, 1, 0, _CREATE), _end(ALLOW), _argument(2), *mode],
        "openat": [_argument(2), (_ANY_BIT, 1, 0, _CREATE), _end(ALLOW), _argument(3), *mode],
    }


def _only(argument: int, values: tuple[int, ...], error: int) -> list[Instruction]:
    return [_argument(argument), *_among(values, error)]


def _among(values: tuple[int, ...], error: int) -> list[Instruction]:
    """Allow these values, refuse all others."""
    tests = [(_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [*tests, _end(_ERRNO | error), _end(ALLOW)]


def _none_of(values: tuple[int, ...]) -> list[Instruction]:
    """Refuse these values, allow all others."""
    tests = [(_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    return [*tests, _end(ALLOW), _end(_ERRNO | _EPERM)]


def _argument(place: int) -> Instruction:
    """Load the low half of an argument; both machines are little-endian."""
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * place)


def _end(verdict: int) -> Instruction:
    return (_RETURN, 0, 0, verdict)
