"""Server addresses: one rule for configuring and dialling them."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

_NO_HOST: Final = re.compile(r"[^\w.:%-]")
_REQUEST_PATHS: Final = (
    "/chat/completions", "/responses", "/v1/messages", "/api/chat", ":generateContent", ":streamGenerateContent",
)  # fmt: skip


def split_url(url: str) -> tuple[SplitResult, str] | None:
    """Return the parts of an http:// or https:// address, and its host as name servers know it.

    None if it is not one: another scheme, no host, an impossible host, or a port that is no number up to 65535.
    """
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        is_port = parts.port != 0
    except ValueError:  # a bracket alone, a port that is no number, a host that cannot be encoded
        return None
    is_address = parts.scheme in ("http", "https") and bool(host) and is_port and not _NO_HOST.search(host)
    return (parts, host) if is_address else None


def is_loopback(host: str) -> bool:
    """Return whether the name can mean this machine only. `0.0.0.0` and "" do not."""
    if host in ("127.0.0.1", "localhost") or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_on_this_machine(url: str) -> bool:
    """Return whether a server's address means this machine only. Who asks `0.0.0.0` asks this machine."""
    found = split_url(url)
    return found is not None and (is_loopback(found[1]) or found[1] in ("0.0.0.0", "::"))


def whole_address(word: str) -> str | None:
    """Return the address of a word, which may lack its scheme (`host:port`, with or without a path), or None."""
    if "://" not in word and not word.partition("/")[0].rpartition(":")[2].isdecimal():
        return None
    whole = word if "://" in word else f"http://{word}"
    return whole if split_url(whole) is not None else None


def request_path(url: str) -> str:
    """Return the path of a request that ends an address: a base URL stands before it. "" if none does."""
    return next((path for path in _REQUEST_PATHS if url.rstrip("/").endswith(path)), "")


def scheme_hint(word: str) -> str:
    """Return the end of a message that expects an address: `; write http://…` for one without its scheme, else ""."""
    whole = whole_address(word)
    return "" if whole is None or whole == word or "@" in word else f"; write {whole[:80]}"
