"""Remove secrets from an exchange: keep listed headers only, and remove keys from bodies by their place or shape.

A key that the client sent in a header is looked for everywhere. A secret that a body tells in pieces cannot be removed
without changing how the body arrived, so such a body is withheld as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, final
from urllib.parse import parse_qsl, quote

from dragoman import _json
from dragoman.codec.framing.body import BodyReader, TooLarge
from dragoman.secret import MASK

#: Headers whose values are kept; all others are left out.
REQUEST_HEADERS: Final = frozenset(
    {"accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta", "user-agent"}
)
RESPONSE_HEADERS: Final = frozenset({"content-type", "retry-after"})
_QUERY: Final = frozenset({"alt", "api-version", "beta"})
_HOLDS_KEY: Final = re.compile(r"key|token|auth|secret|cookie|password|credential", re.IGNORECASE)
#: Shorter values of such headers stand in a body by chance.
_SHORTEST: Final = 8
_CHUNK: Final = 65_536
_DEPTH: Final = 64

_MEMBERS: Final = (
    r"(?:x-)?(?:goog-)?api[-_]?key|(?:proxy-)?authorization(?:_token)?|(?:access|refresh|auth|id|bearer|session)[-_]?token"
    r"|token|(?:client[-_]?)?secret(?:[-_]?(?:access[-_]?)?key)?|password|passwd|passphrase|private[-_]?key|cookie|credentials?"
)
_MEMBER_NAME: Final = re.compile(_MEMBERS, re.IGNORECASE)
#: Members of JSON text whose names say that their value is a key; then the same in JSON inside a string.
_MEMBER: Final = re.compile(rf'("(?:{_MEMBERS})"\s*+:\s*+")(?:[^"\\]|\\.)++', re.IGNORECASE | re.DOTALL)
_INNER_MEMBER: Final = re.compile(
    rf'(\\"(?:{_MEMBERS})\\"\s*+:\s*+\\")(?:[^"\\]|\\\\\\["\\]|\\\\[^"\\]|\\[^"\\])++', re.IGNORECASE | re.DOTALL
)
_SHAPE: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_\-]{12,}|[spr]k_(?:live|test)_[A-Za-z0-9]{8,}|gsk_[A-Za-z0-9]{12,}|xai-[A-Za-z0-9]{12,}"
    r"|nvapi-[A-Za-z0-9_\-]{12,}|hf_[A-Za-z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{12,}|github_pat_[A-Za-z0-9_]{12,}"
    r"|glpat-[A-Za-z0-9_\-]{12,}|csk-[A-Za-z0-9]{12,}|pplx-[A-Za-z0-9]{12,}|fw_[A-Za-z0-9]{16,}"
    r"|tgp_v1_[A-Za-z0-9_\-]{12,}|r8_[A-Za-z0-9]{16,}|A(?:KIA|SIA)[0-9A-Z]{16}|AIza[A-Za-z0-9_\-]{16,}|ya29\.[A-Za-z0-9_\-.]{12,}"
    r"|xox[abeprs]-[A-Za-z0-9\-]{8,}|npm_[A-Za-z0-9]{16,}|pypi-[A-Za-z0-9_\-]{16,}"
    r"|eyJ[A-Za-z0-9_\-.]{16,}"
    r")"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*+(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?"
)
_PLACE: Final = re.compile(
    r"((?:\bbearer |\bbasic |[?&](?:key|api[-_]?key|access_token|token|sig|signature)=))[^\s\"'\\&,;]{8,}"
    r"|(//[^\s/@:\"'\\]{1,200}:)[^\s/@\"'\\]{1,200}(?=@)",
    re.IGNORECASE,
)


class Withheld(Exception):
    """A body contains a secret that cannot be removed."""


@final
class Redactor:
    """Removes secrets from successive exchanges. A key seen in a header is known for all that follow."""

    __slots__ = ("_known",)

    def __init__(self, known: Iterable[str] = ()) -> None:
        """Create it. `known` are our own keys."""
        self._known: list[str] = []
        for secret in known:
            self._learn(secret)

    def headers(self, headers: Mapping[str, str], kept: frozenset[str]) -> dict[str, str]:
        """Return the headers to keep, with lower-case names. Remember keys in the others."""
        for name, value in headers.items():
            if name.lower() not in kept and _HOLDS_KEY.search(name):
                self._learn(value)
                for word in re.split(r"[\s;,=]+", value):
                    self._learn(word)
        return {name.lower(): self.text(value) for name, value in headers.items() if name.lower() in kept}

    def path(self, path: str) -> str:
        """Return a path with its query, of which only listed values are kept."""
        plain, mark, query = path.partition("?")
        if not mark:
            return self.text(plain)
        pairs = parse_qsl(query, keep_blank_values=True)
        for name, value in pairs:
            if name.lower() not in _QUERY:
                self._learn(value)
        shown = ((name, quote(self.text(value)) if name.lower() in _QUERY else MASK) for name, value in pairs)
        return f"{self.text(plain)}?{'&'.join(f'{quote(name)}={value}' for name, value in shown)}"

    def request(self, body: bytes) -> bytes:
        """Return the body of a request without secrets. JSON is rewritten if something is removed."""
        value = _json.decode(body)
        if isinstance(value, _json.Malformed):
            return self._bytes(body)
        clean = self._value(value, 0)
        return body if clean == value else _json.encode(clean)

    def response(self, body: bytes) -> bytes:
        """Return the body of a response without secrets, otherwise byte by byte as it was.

        Raises:
            Withheld: the rest still contains a secret, in pieces or compressed.
        """
        clean = self._bytes(body)
        for text in _joined_strings(clean):
            if self.text(text) != text:
                raise Withheld("the answer tells a secret in pieces")
        return clean

    def text(self, text: str) -> str:
        """Return plain text, or JSON text, without secrets."""
        for secret in self._known:
            text = text.replace(secret, MASK)
        text = _SHAPE.sub(MASK, text)
        text = _PLACE.sub(lambda found: f"{found[1] or found[2]}{MASK}", text)
        text = _MEMBER.sub(lambda found: found[1] + MASK, text)
        return _INNER_MEMBER.sub(lambda found: found[1] + MASK, text)

    def _learn(self, secret: str) -> None:
        secret = secret.strip()
        if len(secret) < _SHORTEST or secret in self._known:
            return
        self._known = sorted([*self._known, secret], key=len, reverse=True)  # another thread may be going through it

    def _bytes(self, body: bytes) -> bytes:
        text = body.decode("utf-8", "surrogateescape")
        for secret in self._known:
            text = text.replace(_json.to_text(secret)[1:-1], MASK).replace(secret.replace("/", "\\/"), MASK)
        return self.text(text).encode("utf-8", "surrogateescape")

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if depth == _DEPTH:
            return value if isinstance(value, int | float | None) else MASK
        if isinstance(value, list):
            return [self._value(item, depth + 1) for item in value]
        if isinstance(value, dict):
            return {
                self.text(name): MASK
                if isinstance(item, str) and item and _MEMBER_NAME.fullmatch(name)
                else self._value(item, depth + 1)
                for name, item in value.items()
            }
        return value


def _joined_strings(body: bytes) -> Iterator[str]:
    """Yield the strings of all frames, those under one name joined, because a model's words come in pieces.

    A name includes the numbers that distinguish interleaved strings.
    """
    texts: dict[tuple[Any, ...], list[str]] = {}
    reader = BodyReader(lambda code, where, seen: None)
    try:
        for begin in range(0, len(body), _CHUNK):
            for data, _ in reader.feed(body[begin : begin + _CHUNK]):
                _collect(_json.decode(data), (), texts, 0)
        for data, _ in reader.close():
            _collect(_json.decode(data), (), texts, 0)
    except TooLarge:
        raise Withheld("the answer is too large to be looked through") from None
    return ("".join(pieces) for pieces in texts.values())


def _collect(value: Any, place: tuple[Any, ...], texts: dict[tuple[Any, ...], list[str]], depth: int) -> None:
    if isinstance(value, str):
        texts.setdefault(place, []).append(value)
    elif isinstance(value, list) and depth < _DEPTH:
        for item in value:
            _collect(item, place, texts, depth + 1)
    elif isinstance(value, dict) and depth < _DEPTH:
        numbers = tuple(value[name] for name in ("index", "output_index") if isinstance(value.get(name), int))
        for name, item in value.items():
            _collect(item, (*place, *numbers, name), texts, depth + 1)
