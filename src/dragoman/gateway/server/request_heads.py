"""Check a request's head beyond what the parser checks.

https://www.rfc-editor.org/rfc/rfc9112 (read 2026-11-22).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from dragoman.bounds import exceeded
from dragoman.events import Failure
from dragoman.gateway.messages import Limits
from dragoman.http.field_names import read_names

#: Options of `connection`, and fields, of a wish for another protocol.
_UPGRADE: Final = frozenset({"connection", "upgrade", "http2-settings"})
_ABSOLUTE: Final = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)
_VERSIONS: Final = frozenset({"1.0", "1.1"})


class Answered(Exception):
    """A request was refused by its head: nothing else on its connection is read."""


class BrokenRequest(Exception):
    """A request that is not read further; raised inside the parser's callbacks."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure


def cause_of(problem: BaseException) -> BaseException | None:
    """Return what a callback raised, for which the parser raised `problem`.

    A refusal's traceback is dropped: the parser keeps the exception, which would keep the parser and the connection
    until the garbage collector runs.
    """
    cause = problem.__context__
    if isinstance(cause, BrokenRequest | Answered):
        problem.__traceback__ = cause.__traceback__ = None
    return cause


def read_fields(lines: Sequence[bytes], limits: Limits) -> dict[str, str]:
    """Return the fields of a head by lower-case name. `lines`: names and values alternating, as they came.

    Raises:
        BrokenRequest: there are too many, or a second Host, which a proxy before us may have used instead.
    """
    if len(lines) > 2 * limits.fields:
        raise BrokenRequest(too_many_fields(limits))
    names, values = decoded(lines)
    fields = dict(zip(names, values, strict=False))
    return fields if len(fields) == len(names) == len(values) else _joined(names, values)


def decoded(lines: Sequence[bytes]) -> tuple[Sequence[str], list[str]]:
    """Return the lower-case names, and the values, of `lines`."""
    # All at once: the parser lets no line's end into a name or a value.
    return read_names(lines), b"\n".join(lines[1::2]).decode("latin-1").split("\n") if lines else []


def _joined(names: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    """Return the fields of a head with repeated names, whose values are joined."""
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
    """Return path and query of a target.

    A target in the absolute form names the host as well, and that one replaces the Host header's (RFC 9112 section
    3.2.2); without the header it stays refused.
    """
    found = _ABSOLUTE.match(target) if target[:1] != "/" else None
    if found is None:
        return target
    if "host" in fields:
        fields["host"] = found[1]
    rest = target[found.end() :]
    return rest if rest[:1] == "/" else f"/{rest}"


def method_of(method: bytes, target: bytes) -> str:
    """Return the method of a head that broke.

    `method`: the parser's, which is its first one if none came. That is HEAD if the target was broken in its first
    bytes, and an answer to HEAD has no body.
    """
    return method.decode("ascii") if target or method == b"HEAD" else "GET"


def check_framing(version: str, fields: Mapping[str, str]) -> None:
    """Check that the request's end is beyond doubt: otherwise a proxy before us may count requests differently.

    Raises:
        BrokenRequest: it is not.
    """
    encoding = fields.get("transfer-encoding", "chunked")
    if version not in _VERSIONS:
        raise BrokenRequest(Failure("bad_request", f"expected HTTP/1.1, got HTTP/{version}", 400))
    if encoding.lower() != "chunked" or (version == "1.0" and "transfer-encoding" in fields):
        raise BrokenRequest(Failure("bad_request", "expected no transfer-encoding but chunked, in HTTP/1.1", 400))


def without_upgrade(method: bytes, target: bytes, version: str, fields: Mapping[str, str]) -> bytes:
    """Return the head without its wish for another protocol.

    All else stays: the version and the Connection field decide where the request ends and whether another may follow.
    """
    kept = {name: value for name, value in fields.items() if name not in _UPGRADE}
    options = [option.strip() for option in fields.get("connection", "").split(",")]
    others = [option for option in options if option and option.lower() not in _UPGRADE]
    if others:
        kept["connection"] = ", ".join(others)
    lines = "".join([f"{name}: {value}\r\n" for name, value in kept.items()]).encode("latin-1")
    return b"%b %b HTTP/%b\r\n%b\r\n" % (method, target, version.encode(), lines)


def too_many_fields(limits: Limits) -> Failure:
    """Return the failure for a head with more fields than its limit, repeated ones included."""
    return Failure("bad_request", f"expected at most {limits.fields} header fields", 431)


def too_large_head(limits: Limits) -> Failure:
    """Return the failure for a head over its limit."""
    return Failure("bad_request", f"expected a request head of at most {limits.head} bytes", 431)


def too_large_body(limits: Limits, seen: str) -> Failure:
    """Return the failure for a body over its limit. `seen`: its size, or that of what came."""
    wanted = f"a request body of at most {limits.body} bytes"
    return Failure("too_large", exceeded(wanted, "body_mib", seen), 413)
