"""Read what the configuration names by reference, such as keys, and check the listeners that keys are for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from dragoman.codec.patterns import rare_pattern
from dragoman.config.files import LARGEST_SECRET, read_file, reason_of
from dragoman.errors import ConfigError
from dragoman.providers.address import is_loopback, split_url
from dragoman.secret import Secret

#: An origin. Browsers decode "%" in its host, and encode ß, the final ς and the joiners in another way than Python.
_ORIGIN: Final = rare_pattern(
    r"([a-z][a-z0-9+.-]{0,40})://(?:[^/?#\s@]*@)?([^/?#\s@*%ßς\u200c\u200d]{1,255})([/?#]\S*)?", re.IGNORECASE
)
_PORTS: Final = {"http": 80, "https": 443}


def read_secret(reference: str, where: str, *, environ: Mapping[str, str], home: Path, folder: Path) -> Secret:
    """Return the text that a reference names.

    Args:
        reference: `env:NAME`, or `file:PATH`, relative to `folder`; `~/` is the home folder.
        where: the key path, for messages.

    Raises:
        ConfigError: it is no reference (its text is not shown), or there is nothing at its end.
    """
    kind, separator, name = reference.partition(":")
    if not separator or kind not in ("env", "file") or not name:
        raise ConfigError(f"{where}: expected env:NAME or file:PATH, got something else (not shown)")
    if kind == "env":
        value = environ.get(name, "")
        if not value.strip():
            raise ConfigError(f"{where}: the environment variable {name} is not set")
        return Secret(value.strip())
    try:
        text = read_file(expand(name, home=home, folder=folder), most=LARGEST_SECRET).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError, ConfigError) as problem:
        reason = "it is not UTF-8 text" if isinstance(problem, UnicodeDecodeError) else reason_of(problem)
        raise ConfigError(f"{where}: cannot read {name}: {reason}") from None
    if not text:
        raise ConfigError(f"{where}: {name} is empty")
    return Secret(text)


def check_listener(listener: str, references: tuple[str, ...], address: str) -> None:
    """Check the keys and the address of a listener.

    Raises:
        ConfigError: one has the wrong form, or other machines could reach it without a key.
    """
    for position, reference in enumerate(references):
        if not reference.startswith("sha256:"):
            check_reference(reference, f"{listener}.keys[{position}]", also=" or sha256:HEX")
        elif len(reference) != 71 or not set(reference[7:].lower()) <= set("0123456789abcdef"):
            raise ConfigError(f"{listener}.keys[{position}]: expected sha256: and 64 hexadecimal digits")
    host, separator, port = address.rpartition(":")
    found = split_url(f"http://{host}")
    is_host = found is not None and found[0].netloc == host and "@" not in host
    if not separator or not is_host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ConfigError(f"{listener}.address: expected HOST:PORT, got {address[:80]!r}")
    if not references and not is_loopback(host.strip("[]")):
        raise ConfigError(
            f"{listener}.address: {host[:80]} can be reached from other machines; set {listener}.keys first: "
            "dragoman keys new"
        )


def check_origins(origins: tuple[str, ...]) -> None:
    """Check that each origin of web pages is written as browsers send it; "null" is none, as any page may send it.

    Raises:
        ConfigError: one is not; the message has the right form, if there is one.
    """
    for position, origin in enumerate(origins):
        sent = _as_sent(origin)
        if sent != origin:
            hint = "" if sent is None else f"; write {sent}"
            where = f"server.allowed_origins[{position}]"
            raise ConfigError(f"{where}: expected an origin as browsers send it, as https://chat.example.org{hint}")


def _as_sent(origin: str) -> str | None:
    """Return an origin as browsers write it: in lower case, without a name, a path or the usual port; None for others.

    Spec: https://html.spec.whatwg.org/#ascii-serialisation-of-an-origin (read 2026-11-27).
    """
    found = _ORIGIN.fullmatch(origin)
    if found is None:
        return None
    scheme = found[1].lower()
    if scheme not in _PORTS:  # an app's or an extension's
        return f"{scheme}://{found[2].lower()}"
    split = split_url(f"{scheme}://{found[2]}")
    if split is None:
        return None
    parts, host = split
    if ":" in host or host.rpartition(".")[2].isdecimal():
        try:
            address = ip_address(host)
        except ValueError:
            return None
        host = f"[{address.compressed}]" if address.version == 6 else address.compressed
    port = "" if parts.port in (None, _PORTS[scheme]) else f":{parts.port}"
    return f"{scheme}://{host.lower()}{port}"


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of an address that `check_listener` accepted; an IPv6 host without its brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port or 0)


def check_reference(reference: str, where: str, *, also: str = "") -> None:
    """Check that a text is `env:NAME` or `file:PATH`. `also` is what else may stand there, for the message.

    Raises:
        ConfigError: it is neither.
    """
    kind, _, name = reference.partition(":")
    if kind not in ("env", "file") or not name:
        raise ConfigError(f"{where}: expected env:NAME or file:PATH{also}, got something else (not shown)")


def expand(path: str, *, home: Path, folder: Path) -> Path:
    """Return a path of the file as an absolute one: relative to the file's folder, or `~/`."""
    return home / path[2:] if path.startswith("~/") else folder / path
