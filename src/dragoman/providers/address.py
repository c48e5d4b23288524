"""Server addresses: one rule for configuring and dialling them."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

_NO_HOST: Final = re.compile(r"[^\w.:%-]")
#: What a base URL stands before: the paths that requests of the five protocols go to, and of other interfaces there.
_REQUEST_PATH: Final = re.compile(
    r"(?i)((?:/chat)?/completions|/embeddings|/responses|/v1/messages(?:/count_tokens)?|/v1(?:beta)?/models"
    r"|/api/(?:chat|generate|embed|embeddings|tags)|:[a-z]++)$"
)
_UNSEEN: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060\ufeff]")


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


def base_url_fault(url: str, query: str) -> str:
    """Return what is wrong with an address as a base URL, or "". `query`: how to give one."""
    host, _, path = url.partition("://")[2].partition("/")
    if "@" in host:
        return "expected no user or password in it; set api_key instead"
    if _UNSEEN.search(url) and split_url(url) is not None:
        return "expected no blank, line end or invisible character in it"
    if "?" in url or "#" in url:
        return f"expected no query in it; {query}"
    found = _REQUEST_PATH.search(f"/{path}".rstrip("/"))
    return f"expected the address before {found[1]}; leave that out" if found else ""


def scheme_hint(word: str) -> str:
    """Return the end of a message that expects an address: `; write http://…` for one without its scheme, else ""."""
    whole = whole_address(word)
    return "" if whole is None or whole == word or "@" in word else f"; write {whole[:80]}"
