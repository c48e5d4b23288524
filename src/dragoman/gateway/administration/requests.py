"""Requests to the API and their answers. They are read strictly, because an ignored field may have mattered.

An unknown field, a repeated field or parameter, and an unneeded body are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, final
from urllib.parse import parse_qsl

import msgspec

from dragoman import _json
from dragoman.codec.repeated_keys import repeats_key
from dragoman.gateway.administration.admin_keys import Granter
from dragoman.gateway.messages import Answer, Head
from dragoman.secret import name_alone

_MOST_PARAMETERS: Final = 32
_JSON: Final = "application/json"
_HEADERS: Final = {"cache-control": "no-store"}
S = TypeVar("S", bound=msgspec.Struct)


class AdminRefusal(Exception):
    """A refusal. `status`: of HTTP; `code`: a word for programs; the message names the place, what was expected and
    what was seen.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code

    def answer(self) -> Answer:
        """Return it as JSON."""
        error = {"error": {"code": self.code, "message": str(self)}}
        headers = {**_HEADERS, "retry-after": "1"} if self.status == 503 else _HEADERS
        return Answer(self.status, _json.encode(error), headers=headers)


@final
class NoFields(msgspec.Struct, forbid_unknown_fields=True):
    """The type of a request without parameters."""


@final
class Asked(msgspec.Struct, frozen=True):
    """One request. `name`: the text of `{name}` in its path."""

    __repr__ = name_alone

    granter: Granter
    head: Head
    body: bytes
    name: str = ""

    def query(self, kind: type[S]) -> S:
        """Return the parameters of the query.

        Raises:
            AdminRefusal: one is unknown, repeated, or has an invalid value.
        """
        given: dict[str, str] = {}
        try:
            pairs = parse_qsl(
                self.head.query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS, errors="strict",
                strict_parsing=bool(self.head.query),
            )  # fmt: skip
        except ValueError:
            raise AdminRefusal(400, "bad_query", f"query: expected {_MOST_PARAMETERS} NAME=VALUE at most") from None
        for name, value in pairs:
            if name in given:
                raise AdminRefusal(400, "bad_query", f"query: expected {name[:40]} once")
            given[name] = value
        known = kind.__struct_encode_fields__
        for name in given:
            if name not in known:
                expected = f"some of {', '.join(known)}" if known else "no parameters"
                raise AdminRefusal(400, "bad_query", f"query: expected {expected}, got {name[:40]!r}")
        try:
            return msgspec.convert(given, kind, strict=False)
        except msgspec.ValidationError as problem:
            raise AdminRefusal(400, "bad_query", f"query: {problem}") from None

    def content(self, kind: type[S]) -> S:
        """Return the body; an empty one is `{}`. Raises `AdminRefusal`: it is no JSON object of this kind."""
        if not self.body:
            return self._read(kind, b"{}")
        declared = self.head.headers.get("content-type", "")
        media, _, parameters = declared.partition(";")
        is_utf8 = parameters.strip().lower().replace('"', "") in ("", "charset=utf-8")
        if media.strip().lower() != _JSON or not is_utf8:
            shown = repr(declared[:80]) if declared else "none"
            raise AdminRefusal(415, "bad_content_type", f"content-type: expected {_JSON}, got {shown}")
        if self.head.headers.get("content-encoding", "identity") != "identity":
            raise AdminRefusal(415, "bad_content_encoding", "content-encoding: expected none")
        return self._read(kind, self.body)

    def nothing(self) -> None:
        """Check that there is no body. Raises AdminRefusal."""
        if self.body:
            raise AdminRefusal(400, "bad_body", f"body: expected none, got {len(self.body)} bytes")

    def _read(self, kind: type[S], body: bytes) -> S:
        found = _decoder(kind)(body)
        if isinstance(found, _json.Malformed):
            raise AdminRefusal(400, "bad_body", f"body: {found.problem}")
        if repeats_key(body):
            raise AdminRefusal(400, "bad_body", "body: expected each field once")
        return found


def answer(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    """Return an answer in JSON."""
    return Answer(status, _json.encode(value), headers=_HEADERS | (headers or {}))


_DECODERS: Final[dict[type, Callable[[bytes], Any]]] = {}


def _decoder(kind: type[S]) -> Callable[[bytes], S | _json.Malformed]:
    if kind not in _DECODERS:
        _DECODERS[kind] = _json.typed_decoder(kind)
    return _DECODERS[kind]
