"""Host names are looked up apart, once at a time, and remembered."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

from dragoman.http import dns_lookups
from dragoman.http.dns_lookups import DnsLookups


def row(family: socket.AddressFamily, address: str) -> tuple[Any, ...]:
    return (family, socket.SOCK_STREAM, 6, "", (address, 0))


class Resolver:
    """Stands for the system's. Hosts that begin with "slow" wait for `go_on`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.go_on = threading.Event()
        monkeypatch.setattr(dns_lookups.socket, "getaddrinfo", self.resolve)

    def resolve(self, host: str, port: object, **more: Any) -> list[tuple[Any, ...]]:
        self.asked.append(host)
        if host.startswith("slow"):
            assert self.go_on.wait(20)
        if host.endswith("unknown"):
            raise socket.gaierror(socket.EAI_NONAME, "not known")
        if host.endswith("odd"):
            raise UnicodeError("label too long")
        four = [row(socket.AF_INET, f"192.0.2.{number}") for number in (1, 2)]
        return [row(socket.AF_INET6, "2001:db8::1"), *four]


def test_one_slow_host_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver(monkeypatch)

    async def play() -> None:
        names = DnsLookups()
        slow = [asyncio.create_task(names.addresses(f"slow-{number % 8}")) for number in range(40)]
        await asyncio.sleep(0)
        for number in range(20):
            assert await names.addresses(f"fast-{number}") == ["2001:db8::1", "192.0.2.1", "192.0.2.2"]
        assert not any(task.done() for task in slow)
        slow[0].cancel()  # who goes does not take the answer from the others
        resolver.go_on.set()
        found = await asyncio.gather(*slow, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError) and found[8] == found[39] == [
            "2001:db8::1",
            "192.0.2.1",
            "192.0.2.2",
        ]

    asyncio.run(play())
    assert sum(host.startswith("slow") for host in resolver.asked) == 8


def test_addresses_are_remembered_until_they_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver(monkeypatch)

    async def play() -> None:
        names = DnsLookups()
        for _ in range(3):
            await names.addresses("host")
        assert resolver.asked == ["host"]
        names.forget("host")
        await names.addresses("host")
        assert resolver.asked == ["host", "host"]
        for host in ("unknown", "unknown", "odd"):
            with pytest.raises(socket.gaierror):
                await names.addresses(host)
        assert resolver.asked[2:] == ["unknown", "unknown", "odd"]

    asyncio.run(play())


def test_hosts_that_wait_are_bounded_and_a_closed_loop_hurts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = Resolver(monkeypatch)

    async def play() -> None:
        names = DnsLookups()
        waiting = [asyncio.create_task(names.addresses(f"slow-{number}")) for number in range(64)]
        await asyncio.sleep(0)
        with pytest.raises(socket.gaierror, match="too many names"):
            await names.addresses("one-more")
        for task in waiting:
            task.cancel()

    threads = threading.active_count()
    asyncio.run(play())
    resolver.go_on.set()
    end = time.monotonic() + 10
    while threading.active_count() > threads:
        assert time.monotonic() < end
        time.sleep(0.005)
