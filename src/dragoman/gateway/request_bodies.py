"""Decompress request bodies within bounds, and limit their nesting to what readers can follow.

The bounds keep a small body from becoming a large one (https://www.cve.org/CVERecord?id=CVE-2025-66418 is of this kind)
and deep or endless JSON from reaching a provider.
"""

from __future__ import annotations

import importlib
import re
import zlib
from collections.abc import Sequence
from typing import Any, Final, final

import msgspec
from msgspec import UNSET, UnsetType

from dragoman import _json
from dragoman._json import Malformed, Raw
from dragoman.bounds import exceeded
from dragoman.client.offload import MANY
from dragoman.codec.framing.large_frames import LARGE, wide_object
from dragoman.codec.framing.outline import has_wide_object, is_deeper, room_left, values_beyond
from dragoman.codec.patterns import rare_pattern
from dragoman.errors import WireError

#: A body may grow to this many times its size, once it is larger than `_FREE`.
_MOST_GROWTH: Final = 100
_FREE: Final = 1024 * 1024
_STEP: Final = 1024 * 1024
_ZLIB_OF_ANY_KIND: Final = 47  # the window, and "tell gzip from zlib by the head"
_PIECE: Final = 64 * 1024
_BRACKETS: Final = (b"{", b"[")

#: An escape: a pair of surrogates, half of one, or any other.
_ESCAPES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_SURROGATE: Final = re.compile(rb"\\u[dD]")
#: What begins arguments that stand in a text, and a part of such a text: one search for all would hold others.
_ARGUMENTS: Final = rare_pattern(rb'"arguments"\s{0,40}:\s{0,40}"')
_STRETCH: Final = rare_pattern(rb'(?:[^"\\]{1,4096}+|\\.){1,64}+', re.DOTALL)
#: Fields that hold a conversation.
_CONVERSATIONS: Final = ("messages", "input", "contents")

_decode_fields = _json.typed_decoder(dict[str, Raw])
_decode_text = _json.typed_decoder(str)
_decode_items = _json.typed_decoder(list[Raw])


class _Tool(msgspec.Struct):
    """What gathers tools in one of them (Gemini)."""

    functionDeclarations: Raw | UnsetType = UNSET
    function_declarations: Raw | UnsetType = UNSET


_decode_tool: Final = _json.typed_decoder(_Tool)
_decode_tools: Final = _json.typed_decoder(list[_Tool])


@final
class BodyBounds(msgspec.Struct, frozen=True, gc=False):
    """Bounds of a body.

    Attributes:
        depth: lists and objects around a value, the body's own included.
        values: JSON values, those of arguments in a text too; a coding agent's long conversation has some ten thousand.
        messages: messages, contents, or items of an input.
        tools: tools.
        media: bytes of one image or file.
        members: members of one object of a body larger than 256 KiB.
    """

    depth: int = 128
    values: int = 250_000
    messages: int = 50_000
    tools: int = 512
    media: int = 20 * 1024 * 1024
    members: int = 32_768


USUAL_BOUNDS: Final = BodyBounds()


# ---------------------------------------------------------------- content-encoding


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """Return the decompressed body. One encoding, never one within another.

    Raises:
        WireError: an unknown encoding, broken data, more than `limit` bytes, or far more than came.
    """
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    machine = _machine(encoding)
    if machine is None:
        known = "gzip, deflate, zstd" if _zstd() is not None else "gzip, deflate"
        raise WireError(f"expected a body in {known} or none, got {encoding[:40]!r}", status=415)
    pieces: list[bytes] = []
    size = 0
    try:
        while not machine.eof:
            piece, given = machine.take(body)
            size += len(piece)
            if size > limit or (size > _FREE and size > _MOST_GROWTH * given):
                wanted = f"a request body of at most {limit} bytes and {_MOST_GROWTH} times its packed size"
                raise WireError(exceeded(wanted, "body_mib", f"{size} or more"), status=413)
            if not piece and not machine.eof and given == len(body):
                raise WireError(f"the {encoding} body ends too early")
            pieces.append(piece)
    except machine.problems:
        raise WireError(f"expected a body in {encoding}, got something else") from None
    if machine.rest:
        raise WireError(f"expected nothing behind the {encoding} body")
    return b"".join(pieces)


class _Zlib:
    """Decompresses gzip and zlib step by step."""

    __slots__ = ("_fed", "_machine")

    problems: tuple[type[Exception], ...] = (zlib.error,)

    def __init__(self) -> None:
        self._machine = zlib.decompressobj(_ZLIB_OF_ANY_KIND)
        self._fed = False

    @property
    def eof(self) -> bool:
        """Whether the data's own end was seen."""
        return self._machine.eof

    @property
    def rest(self) -> bytes:
        """The bytes behind the end."""
        return self._machine.unused_data

    def take(self, body: bytes) -> tuple[bytes, int]:
        """Return the next piece, and how much of the body was read so far."""
        data = self._machine.unconsumed_tail if self._fed else body
        self._fed = True
        piece = self._machine.decompress(data, _STEP)
        return piece, len(body) - len(self._machine.unconsumed_tail) - len(self._machine.unused_data)


class _Zstd:
    """Decompresses zstd step by step."""

    __slots__ = ("_fed", "_machine", "problems")

    def __init__(self, module: Any) -> None:
        self._machine = module.ZstdDecompressor()
        self._fed = False
        self.problems: tuple[type[Exception], ...] = (module.ZstdError, EOFError)

    @property
    def eof(self) -> bool:
        """Whether the frame's own end was seen."""
        return bool(self._machine.eof)

    @property
    def rest(self) -> bytes:
        """The bytes behind the end."""
        return bytes(self._machine.unused_data)

    def take(self, body: bytes) -> tuple[bytes, int]:
        """Return the next piece. How much was read for it is unknown, so the whole body counts."""
        data = b"" if self._fed else body
        self._fed = True
        return bytes(self._machine.decompress(data, _STEP)), len(body)


def _machine(encoding: str) -> _Zlib | _Zstd | None:
    if encoding in ("gzip", "x-gzip", "deflate"):
        return _Zlib()
    module = _zstd() if encoding == "zstd" else None
    return None if module is None else _Zstd(module)


def _zstd() -> Any:
    """Return the library, which is part of Python since 3.14."""
    try:
        return importlib.import_module("compression.zstd")
    except ModuleNotFoundError:
        return None


# ---------------------------------------------------------------- characters


def whole_characters(body: bytes) -> bytes:
    """Return the body with U+FFFD for each escape that is half of a surrogate pair; the same object if there is none.

    Programs that cut a text between two UTF-16 code units write such escapes, which readers and vendors refuse.
    """
    if body.find(b"\\") < 0 or not _may_halve(body):
        return body
    whole, passed = bytearray(), 0
    for found in _ESCAPES.finditer(body):  # in place of `sub`, which keeps a piece for each escape
        if found[1]:
            whole += body[passed : found.start()] + b"\\ufffd"
            passed = found.end()
    return bytes(whole + body[passed:]) if passed else body


def _may_halve(body: bytes) -> bool:
    """Return whether an escape of a surrogate stands in the body; looked for by parts: one search would hold others."""
    return any(_SURROGATE.search(body, at, at + _STEP + 2) for at in range(0, len(body), _STEP))


# ---------------------------------------------------------------- the shape of JSON


def check_shape(body: bytes, bounds: BodyBounds = USUAL_BOUNDS) -> bool:
    """Refuse JSON that is nested too deeply, has too many values, messages or tools, or contains too large a file.

    Invalid JSON is left to the parser. Time grows with the body's length, memory with `bounds.values`.

    Raises:
        WireError: it exceeds a bound.
    """
    if len(body) > bounds.media:
        _check_media(body, bounds.media)
    if len(body) > LARGE and has_wide_object(body, bounds.members, bounds.depth):
        raise WireError(wide_object(bounds.members), status=413)
    most = min(bounds.depth, bounds.tools, bounds.messages)
    left = room_left(body, _BRACKETS, most)
    _check_values(body, bounds.values, most - left if left >= 0 else -1)
    if left >= 0:  # what most bodies have
        return most <= MANY
    fields = _decode_fields(body)
    if isinstance(fields, Malformed):
        if is_deeper(body, bounds.depth):  # only a lenient reader accepts it
            raise _too_deep(bounds.depth)
        return False
    tools = fields.get("tools")
    if tools is not None and _value_has_more(tools, bounds.tools):
        _check_tools(tools, bounds.tools)
    for name in _CONVERSATIONS:
        if name in fields and _value_has_more(fields[name], bounds.messages):
            _check_messages(name, fields[name], bounds.messages)
    for value in fields.values():
        _check_depth(value, 1, bounds.depth)
    return False


def _value_has_more(value: Raw, most: int) -> bool:
    """Return whether there are more opening brackets, those in strings included. A long value is copied in pieces."""
    if len(value) <= _PIECE:
        return room_left(bytes(value), _BRACKETS, most) < 0
    view = memoryview(value)
    for start in range(0, len(view), _PIECE):
        most = room_left(bytes(view[start : start + _PIECE]), _BRACKETS, most)
        if most < 0:
            return True
    return False


def _check_depth(value: Raw, depth: int, most: int) -> None:
    """Descend only where there are enough brackets for more than `most` levels. `depth`: levels around the value."""
    if not _value_has_more(value, most - depth):
        return
    kind = bytes(memoryview(value)[:1])  # no white space stands around a value
    inner: dict[str, Raw] | list[Raw] | Malformed
    if kind == b"{":
        inner = _decode_fields(value)
    elif kind == b"[":
        inner = _decode_items(value)
    else:
        return
    if depth >= most:
        raise _too_deep(most)
    if not isinstance(inner, Malformed):
        for item in inner.values() if isinstance(inner, dict) else inner:
            if len(item) > most - depth:  # else it has not the brackets either
                _check_depth(item, depth + 1, most)


def _check_values(body: bytes, most: int, opening: int = -1) -> None:
    if 2 * len(body) < 3 * most:
        return  # as most often: `{},` takes three bytes
    count = values_beyond(body, most, opening)
    if not count and b'"arguments"' in body:
        count = values_beyond(_arguments_in(body), most)
    if count:
        raise WireError(exceeded(f"JSON of at most {most} values", "values", f"{count} or more"), status=413)


def _arguments_in(body: bytes) -> bytes:
    """Return the arguments of calls that stand in texts: they are read as JSON too, so that their values count."""
    texts, end = [], 0
    while (place := body.find(b'"arguments"', end)) >= 0:
        end = place + 1
        if (head := _ARGUMENTS.match(body, place)) is None:
            continue
        start = end = head.end()
        while (stretch := _STRETCH.match(body, end)) is not None:
            end = stretch.end()
        text = _decode_text(body[start - 1 : end + 1])
        if isinstance(text, str):
            texts.append(text.encode("utf-8", "replace"))
    return b",".join(texts)


def _check_messages(name: str, value: Raw, most: int) -> None:
    items = _decode_items(value)
    if not isinstance(items, Malformed) and len(items) > most:
        wanted = f"at most {most} messages"
        raise WireError(exceeded(wanted, "messages", str(len(items))), path=name, status=413)


def _too_deep(most: int) -> WireError:
    return WireError(exceeded(f"JSON of at most {most} levels", "depth", f"{most + 1} or more"))


def _check_tools(tools: Raw, most: int) -> None:
    items: Sequence[_Tool | Malformed] | Malformed = _decode_tools(tools)
    if isinstance(items, Malformed):  # some are no objects
        others = _decode_items(tools)
        items = [] if isinstance(others, Malformed) else list(map(_decode_tool, others))
    count = 0
    for item in items:
        gathered = () if isinstance(item, Malformed) else (item.functionDeclarations, item.function_declarations)
        lists = [_decode_items(raw) for raw in gathered if raw is not UNSET]
        count += sum(len(found) for found in lists if not isinstance(found, Malformed)) if lists else 1
    if count > most:
        raise WireError(exceeded(f"at most {most} tools", "tools", str(count)), path="tools")


def _check_media(body: bytes, most: int) -> None:
    """Check the size of files. Base64 contains no quote, so a text that is too large is a stretch without one.

    In a body of this size such a stretch contains the byte at `longest`: two searches find its ends.
    """
    longest = most // 3 * 4
    begin = body.rfind(b'"', 0, longest) + 1
    end = body.find(b'"', longest)
    size = (len(body) if end < 0 else end) - begin
    if size > longest:
        wanted = f"images and files of at most {most} bytes"
        raise WireError(exceeded(wanted, "media_mib", str(size * 3 // 4)), status=413)
