"""S2: nobody else's machine reaches a gateway that was not told to let them in."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from reliability.caller import Caller, rendered
from reliability.process import Gateway, providers
from reliability.row import Result, Scale

#: Written as in `server.address`, as `--host` takes it, and whether only this machine can reach it.
ADDRESSES = (
    ("127.0.0.1", "127.0.0.1", True),
    ("[::1]", "::1", True),
    ("localhost", "localhost", True),
    ("0.0.0.0", "0.0.0.0", False),
    ("[::]", "::", False),
    ("", "", False),
    ("0", "0", False),
    ("00.0.0.0", "00.0.0.0", False),
)
KEY = "dk-0123456789abcdef0123456789abcdef"


class Start(NamedTuple):
    """How a gateway is started, and what is right."""

    words: str
    config: str
    options: tuple[str, ...]
    is_loopback: bool
    has_keys: bool


def starts() -> Iterator[Start]:
    """Each address, by the configuration and by the option, with and without client keys."""
    addresses = [*ADDRESSES, *((address, address, False) for address in own_addresses())]
    for has_keys in (False, True):
        keys = f'keys = ["env:CLIENT_KEY"]\nallowed_hosts = ["{KEY[:2]}.test"]\n' if has_keys else ""
        for written, bare, is_loopback in addresses:
            word = "keys" if has_keys else "no keys"
            if written:
                config = f'[server]\naddress = "{written}:0"\n{keys}'
                yield Start(f"address {written}, {word}", config, (), is_loopback, has_keys)
            yield Start(f"--host {bare!r}, {word}", f"[server]\n{keys}", ("--host", bare), is_loopback, has_keys)


def own_addresses() -> list[str]:
    """This machine's address in its network, when it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
            found = probe.getsockname()[0]
        except OSError:
            return []
    return [] if found.startswith("127.") else [found]


def measure(scale: Scale) -> Iterator[Result]:
    """Start it in every way and look who may come in."""
    outcomes = [(start, outcome(start)) for start in starts()]
    unsafe = [f"{start.words}: {found}" for start, found in outcomes if found.startswith("UNSAFE")]
    refused = [start for start, found in outcomes if found == "refused"]
    needless = [f"{start.words}: {found}" for start, found in outcomes if start.is_loopback and found == "refused"]
    for line in unsafe + needless:
        print("   ", line)
    measured = (
        f"{len(unsafe)} unsafe of {len(outcomes)} starts, {len(refused)} refused, {len(needless)} of them without need"
    )
    yield Result("S2", "0 unsafe starts of ≥ 12", measured, not unsafe and not needless)


def outcome(start: Start) -> str:
    """ "refused", "loopback", "keys", or what is unsafe."""
    gateway = Gateway(providers("http://127.0.0.1:9", start.config), *start.options, environ={"CLIENT_KEY": KEY})
    try:
        gateway.start()
    except RuntimeError:
        gateway.stop()
        return "refused"
    with gateway._folder:
        try:
            listening = listeners(gateway.pid)
            if not start.has_keys:
                return "loopback" if all(map(is_loopback, listening)) else f"UNSAFE: listens on {listening}"
            status = asyncio.run(status_without_key(gateway.port, "::1" if "::1" in start.words else "127.0.0.1"))
            return "keys" if status in (401, 403) else f"UNSAFE: {status} without a key"
        finally:
            gateway.stop()


async def status_without_key(port: int, host: str) -> int:
    """What a request without a key gets. A machine's own address is not asked."""
    try:
        caller = await Caller.connect(port, host=host)
    except OSError:
        return 403
    await caller.send(rendered("/api/tags", method="GET"))
    answer = await caller.answer()
    caller.close()
    return answer.status


def listeners(pid: int) -> list[str]:
    """The local addresses on which a process listens, as /proc/net has them: hexadecimal."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        inodes.add(target.removeprefix("socket:[").removesuffix("]"))
    found = []
    for table in ("tcp", "tcp6"):
        path = Path(f"/proc/{pid}/net/{table}")
        for line in path.read_text(encoding="ascii").splitlines()[1:] if path.exists() else ():
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.append(fields[1].partition(":")[0])
    return found


def is_loopback(address: str) -> bool:
    """Whether a hexadecimal address of /proc/net is this machine's own."""
    return address == "00000000000000000000000001000000" or (len(address) == 8 and address.endswith("7F"))
