# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""The filter of system calls, run on a machine of our own: what it refuses, on each machine that it is made for."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from dragoman.agent.sandbox.syscall_filter import ALLOW, KILL, make_filter
from for_each import for_each

X86, ARM = 0xC000003E, 0xC00000B7
EPERM, ENOSYS, EAFNOSUPPORT = 0x50001, 0x50026, 0x50061


def verdict(machine: str, architecture: int, number: int, *arguments: int) -> int:
    """What the kernel's machine for filters would say (linux/filter.h)."""
    code = make_filter(machine)
    assert code is not None
    data = struct.pack(
        "=IIQ6Q", number, architecture, 0, *(each & (1 << 64) - 1 for each in (*arguments, *[0] * 6)[:6])
    )
    at, value = 0, 0
    while True:
        operation, yes, no, constant = struct.unpack_from("=HBBI", code, 8 * at)
        at += 1
        if operation == 0x20:
            (value,) = struct.unpack_from("=I", data, constant)
        elif operation == 0x54:
            value &= constant
        elif operation == 0x06:
            return int(constant)
        else:
            test = {0x15: value == constant, 0x35: value >= constant, 0x45: bool(value & constant)}[operation]
            at += yes if test else no


@for_each(
    ("number", "arguments", "wanted"),
    [
        (41, (1, 1, 0), EAFNOSUPPORT), (41, ((1 << 32) | 1, 1, 0), EAFNOSUPPORT), (41, (40, 1, 0), EAFNOSUPPORT),
        (41, (2, 1, 0), ALLOW), (41, (10, 0x80801, 0), ALLOW), (41, (16, 3, 0), ALLOW), (41, (17, 3, 0), EAFNOSUPPORT),
        (53, (1, 1, 0), ALLOW), (53, (1, 0x80801, 0), ALLOW), (53, (1, 5, 0), ALLOW), (53, (1, 2, 0), EAFNOSUPPORT),
        (425, (8,), ENOSYS), (435, (0, 88), ENOSYS), (437, (0,), ENOSYS), (56, (0x11,), ALLOW), (56, (0x10000011,), EPERM),
        (56, (0x3D0F00,), ALLOW), (272, (0x80,), EPERM), (272, (0x400,), ALLOW), (308, (3, 0), EPERM), (165, (), EPERM),
        (16, (0, 0x5412), EPERM), (16, (0, (1 << 32) | 0x5412), EPERM), (16, (0, 0x5401), ALLOW), (250, (0,), EPERM),
        (90, (0, 0o4755), EPERM), (90, (0, 0o2755), ALLOW), (257, (0, 0, 0o101, 0o4755), EPERM),
        (257, (0, 0, 0, 0o4755), ALLOW), (2, (0, 0o101, 0o4644), EPERM), (268, (0, 0, 0o4000), EPERM), (452, (0, 0, 0o4000), EPERM),
        (0, (), ALLOW), (59, (), ALLOW), (0x40000000 | 41, (1,), ENOSYS), (0x40000000, (), ENOSYS), (101, (), ALLOW),
    ],
)  # fmt: skip
def test_what_is_refused_on_x86_64(number: int, arguments: tuple[int, ...], wanted: int) -> None:
    assert verdict("x86_64", X86, number, *arguments) == wanted


@for_each(
    ("number", "arguments", "wanted"),
    [
        (198, (1, 1), EAFNOSUPPORT), (198, (2, 1), ALLOW), (199, (1, 1), ALLOW), (199, (1, 2), EAFNOSUPPORT), (425, (8,), ENOSYS),
        (220, (0x10000011,), EPERM), (220, (0x3D0F00,), ALLOW), (97, (0x20000000,), EPERM), (40, (), EPERM), (56, (0, 0, 0o101, 0o4755), EPERM),
        (53, (0, 0, 0o4000), EPERM), (29, (0, 0x5412), EPERM), (63, (), ALLOW), (268, (), EPERM),
    ],
)  # fmt: skip
def test_what_is_refused_on_aarch64(number: int, arguments: tuple[int, ...], wanted: int) -> None:
    assert verdict("aarch64", ARM, number, *arguments) == wanted


@given(st.integers(0, 2**32 - 1), st.integers(0, 600), st.lists(st.integers(0, 2**64 - 1), max_size=6))
def test_calls_of_another_machine_end_the_process(architecture: int, number: int, arguments: list[int]) -> None:
    for machine, own in (("x86_64", X86), ("aarch64", ARM)):
        if architecture != own:
            assert verdict(machine, architecture, number, *arguments) == KILL


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 2**64 - 1), max_size=6))
def test_every_call_has_a_verdict(number: int, arguments: list[int]) -> None:
    allowed = {ALLOW, EPERM, ENOSYS, EAFNOSUPPORT}
    assert verdict("x86_64", X86, number, *arguments) in allowed
    assert verdict("aarch64", ARM, number, *arguments) in allowed


def test_no_filter_is_made_for_an_unknown_machine() -> None:
    assert make_filter("vax") is None
