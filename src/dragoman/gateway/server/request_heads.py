"""What a request's head may be, beyond what the parser judges.

https://www.rfc-editor.org/rfc/rfc9112 (read 2026-11-22).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from dragoman.bounds import exceeded
from dragoman.events import Failure
from dragoman.gateway.messages import Limits

#: Options of `connection`, and fields, of a wish for another protocol.
_UPGRADE: Final = frozenset({"connection", "upgrade", "http2-settings"})
_ABSOLUTE: Final = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)
_VERSIONS: Final = frozenset({"1.0", "1.1"})


class Answered(Exception):
    """A request was refused by its head: nothing else that came on its connection is read."""


class BrokenRequest(Exception):
    """A request that is not read on; said from inside the parser's callbacks."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


def cause_of(problem: BaseException) -> BaseException | None:
    """What a callback raised, for which the parser raised `problem`. A refusal's trace is forgotten: the parser keeps
    what was raised, and it would keep the parser and the connection until somebody looks for garbage."""
    cause = problem.__context__
    if isinstance(cause, BrokenRequest | Answered):
        problem.__traceback__ = cause.__traceback__ = None
    return cause


def read_fields(lines: Sequence[bytes], limits: Limits) -> dict[str, str]:
    """The fields of a head by their names, in lower case. `lines`: names and values as they came, in turns.

    Raises:
        BrokenRequest: there are too many, or a second Host, which a proxy before us may have read instead.
    """
    if len(lines) > 2 * limits.fields:
        raise BrokenRequest(too_many_fields(limits))
    names, values = decoded(lines)
    fields = dict(zip(names, values, strict=False))
    return fields if len(fields) == len(names) == len(values) else _joined(names, values)


def decoded(lines: Sequence[bytes]) -> tuple[list[str], list[str]]:
    """Names, in lower case, and values of `lines`."""
    if not lines:
        return [], []
    # All at once: the parser lets no line's end into a name or a value.
    names = b"\n".join(lines[::2]).lower().decode("ascii").split("\n")
    return names, b"\n".join(lines[1::2]).decode("latin-1").split("\n")


def _joined(names: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    """The same where some come again: their values are joined to the first."""
    if len(names) != len(values):
        raise BrokenRequest(Failure("bad_request", "expected an HTTP/1.1 request", 400))
    fields: dict[str, str] = {}
    for name, value in zip(names, values, strict=True):
        if name not in fields:
            fields[name] = value
        elif name == "host":
            raise BrokenRequest(Failure("bad_request", "expected one Host header, got two", 400))
        else:
            fields[name] = f"{fields[name]}, {value}"
    return fields


def origin_form(target: str, fields: dict[str, str]) -> str:
    """Path and query of a target. One in the absolute form names the host as well, and that one counts, not the Host
    header's (RFC 9112 section 3.2.2); without the header it stays refused."""
    found = _ABSOLUTE.match(target) if target[:1] != "/" else None
    if found is None:
        return target
    if "host" in fields:
        fields["host"] = found[1]
    rest = target[found.end() :]
    return rest if rest[:1] == "/" else f"/{rest}"


def method_of(method: bytes, target: bytes) -> str:
    """The method of a head that broke. `method`: the parser's word, which is its first one where none came; it is
    HEAD where the target was broken in its first bytes, and an answer to that has no body."""
    return method.decode("ascii") if target or method == b"HEAD" else "GET"


def check_framing(version: str, fields: Mapping[str, str]) -> None:
    """Where a request ends must be beyond doubt, or a proxy before us may count requests otherwise than we do.

    Raises:
        BrokenRequest: it is not.
    """
    encoding = fields.get("transfer-encoding", "chunked")
    if version not in _VERSIONS:
        raise BrokenRequest(Failure("bad_request", f"expected HTTP/1.1, got HTTP/{version}", 400))
    if encoding.lower() != "chunked" or (version == "1.0" and "transfer-encoding" in fields):
        raise BrokenRequest(Failure("bad_request", "expected no transfer-encoding but chunked, in HTTP/1.1", 400))


def without_upgrade(method: bytes, target: bytes, version: str, fields: Mapping[str, str]) -> bytes:
    """The head without the wish for another protocol. All else stands: the version and what is said of the connection
    decide where the request ends and whether another may follow."""
    kept = {name: value for name, value in fields.items() if name not in _UPGRADE}
    options = [option.strip() for option in fields.get("connection", "").split(",")]
    others = [option for option in options if option and option.lower() not in _UPGRADE]
    if others:
        kept["connection"] = ", ".join(others)
    lines = "".join([f"{name}: {value}\r\n" for name, value in kept.items()]).encode("latin-1")
    return b"%b %b HTTP/%b\r\n%b\r\n" % (method, target, version.encode(), lines)


def too_many_fields(limits: Limits) -> Failure:
    """The head has more fields than its limit, those that come again among them."""
    return Failure("bad_request", f"expected at most {limits.fields} header fields", 431)


def too_large_head(limits: Limits) -> Failure:
    """The head is over its limit."""
    return Failure("bad_request", f"expected a request head of at most {limits.head} bytes", 431)


def too_large_body(limits: Limits, seen: str) -> Failure:
    """The body is over its limit. `seen`: its size, or that of what came."""
    wanted = f"a request body of at most {limits.body} bytes"
    return Failure("too_large", exceeded(wanted, "body_mib", seen), 413)
