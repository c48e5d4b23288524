"""Connections and wrong keys, counted by the address that they come from."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ConfigError
from dragoman.gateway.process.listener_keys import check_reach
from dragoman.gateway.server.client_addresses import LONGEST_PAUSE, ClientAddresses, network
from dragoman.secret import Secret
from gateway.running import gateway
from gateway.server.test_connection import status

GOOD = "k-3f9a7c51b2d8e604f7a19c"


def test_an_address_has_so_many_connections_and_others_are_not_touched() -> None:
    addresses = ClientAddresses(most=2, trusted=["192.0.2.9", "2001:db8::1"])
    assert [addresses.enter("192.0.2.1") for _ in range(3)] == [True, True, False]
    assert addresses.enter("192.0.2.2")
    addresses.leave("192.0.2.1")
    assert addresses.enter("192.0.2.1") and not addresses.enter("192.0.2.1")
    for free in ("127.0.0.1", "192.0.2.9", network("2001:db8::ffff")):
        assert all(addresses.enter(free) for _ in range(50))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60))
def test_connections_are_counted_as_they_are(steps: list[tuple[str, bool]]) -> None:
    addresses, open_ones = ClientAddresses(most=3), dict.fromkeys("abc", 0)
    for address, comes in steps:
        if comes:
            assert addresses.enter(address) == (open_ones[address] < 3)
            open_ones[address] = min(open_ones[address] + 1, 3)
        elif open_ones[address]:
            addresses.leave(address)
            open_ones[address] -= 1


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::1", "::1"),
        ("no:address", "no:address"),
        ("", ""),
    ],
)
def test_what_counts_as_one_address(address: str, expected: str) -> None:
    assert network(address) == expected


def test_wrong_keys_are_slowed_by_address_and_forgotten() -> None:
    addresses = ClientAddresses(most=1)
    pauses = [addresses.pause("192.0.2.1", now=100.0) for _ in range(30)]
    assert pauses[:10] == [0.0] * 10 and pauses[10:13] == [0.1, 0.2, 0.4] and pauses[-1] == LONGEST_PAUSE
    assert addresses.pause("192.0.2.2", now=100.0) == 0.0
    assert addresses.pause("192.0.2.1", now=161.0) == 0.0
    for number in range(10_000):
        addresses.pause(f"host-{number}", now=161.0)
    assert len(addresses._wrong) == 4_096


def test_only_wrong_keys_wait(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(GOOD, encoding="utf-8")
    with gateway(tmp_path, '[server]\nkeys = ["file:key"]\n') as running:

        def ask(key: str) -> tuple[int, float]:
            began = time.monotonic()
            code = running.request("GET", "/api/tags", headers={"x-api-key": key} if key else {})[0]
            return code, time.monotonic() - began

        for _ in range(12):
            assert ask("wrong")[0] == 401
        slow: list[tuple[int, float]] = []
        waiting = threading.Thread(target=lambda: slow.append(ask("wrong")))
        waiting.start()
        assert ask(GOOD)[0] == 200 and ask("")[0] == 401
        assert not slow  # both were answered while the wrong key waited
        waiting.join(10)
        assert slow[0][0] == 401 and slow[0][1] >= 0.35


def test_connections_of_one_address_end_at_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.server.client_addresses.is_loopback", lambda address: False)
    with gateway(tmp_path, "[server]\nconnections_per_address = 3\n") as running:
        request = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n"

        def connect() -> socket.socket:
            return socket.create_connection(("127.0.0.1", running.gateway.port), timeout=10)

        kept = [connect() for _ in range(3)]
        for connection in kept:
            connection.sendall(request)
            assert status(connection.recv(65536)) == 200
        with closing(connect()) as one_more:
            try:
                one_more.sendall(request)
                assert one_more.recv(65536) == b""
            except ConnectionError:
                pass
        kept.pop().close()
        deadline = time.monotonic() + 10
        answer = b""
        while not answer and time.monotonic() < deadline:  # until the gateway has heard of the end
            with closing(connect()) as again:
                try:
                    again.sendall(request)
                    answer = again.recv(65536)
                except ConnectionError:
                    answer = b""
        assert status(answer) == 200
        for connection in kept:
            connection.close()


@pytest.mark.parametrize("key", ["x", "x" * 40, "short-but-varied-0123", "abcdefghi" * 5])
def test_weak_keys_are_refused_off_this_machine_and_told_on_it(key: str) -> None:
    keys = [Secret(GOOD), Secret(key)]
    with pytest.raises(ConfigError, match=r"server\.keys\[1\]: expected at least 22 characters, 10 of them different"):
        check_reach("0.0.0.0", keys)
    assert "server.keys[1]: expected at least 22 characters" in check_reach("127.0.0.1", keys)


def test_good_keys_and_digests_are_taken() -> None:
    assert check_reach("0.0.0.0", [Secret(GOOD), "sha256:" + "0" * 64]) == ""
    assert check_reach("127.0.0.1", []) == ""
    with pytest.raises(ConfigError, match=r"set server\.keys first"):
        check_reach("0.0.0.0", [])
