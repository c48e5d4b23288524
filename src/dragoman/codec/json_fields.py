"""Split a JSON object into the texts of its fields, so that unmodelled ones can be written again exactly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias, TypeVar

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.errors import WireError
from dragoman.types import Native, ProtocolName

T = TypeVar("T")
#: Bytes of a list beyond which its items are read one by one: what reads it at once holds the interpreter meanwhile.
LONG: Final = 1024 * 1024
#: An object's fields by name, each as its JSON text.
Fields: TypeAlias = dict[str, Raw]

#: Bytes of a file, as base64: no model reads them in a text.
FILE_BYTES: Final = re.compile(rb"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{1000}")

_NULL: Final = Raw(b"null")
#: What clients send in place of JSON, by how it begins. Its content type does not tell: much JSON comes as text/plain.
_OTHER_BODIES: Final = (
    ("an empty body", re.compile(rb"\Z")),
    ("UTF-16 or UTF-32; JSON is sent as UTF-8", re.compile(rb"\xff\xfe|\xfe\xff|.?\0", re.DOTALL)),
    ("a byte order mark before it; JSON is sent without", re.compile(rb"\xef\xbb\xbf")),
    ("a multipart form", re.compile(rb"\A--[^\r\n]+\r?\n")),
    ("a form (application/x-www-form-urlencoded)", re.compile(rb"\A[\w.%+\-\[\]]+=")),
    ("XML or HTML", re.compile(rb"<")),
)
_SEEN: Final = 200  # bytes
_decode_fields = _json.typed_decoder(dict[str, Raw])
_decode_items = _json.typed_decoder(list[Raw])
_decode_text = _json.typed_decoder(str)


def parts_of(value: Json) -> Iterator[Json]:
    """Yield a value and all values in it, in any depth."""
    waiting = [value]
    while waiting:
        yield (part := waiting.pop())
        if isinstance(part, dict | list):
            waiting += part.values() if isinstance(part, dict) else part


def read_body(body: bytes, fields: Fields | None = None) -> Fields:
    """Return the fields of a client's request without nulls. `fields`: what was read already.

    Raises:
        WireError: the body is not one JSON object.
    """
    found = fields or _decode_fields(body)
    if not isinstance(found, Malformed):
        return without_nulls(found)
    value = _json.decode_lenient(body)
    if not isinstance(value, dict):
        raise no_object(body, value if isinstance(value, Malformed) else found)
    return {key: Raw(_json.to_lenient_text(inner).encode()) for key, inner in value.items() if inner is not None}


def no_object(body: bytes, problem: Malformed) -> WireError:
    """Return the refusal of a client's body that is no JSON object."""
    begin = body.lstrip()[:_SEEN]
    for words, mark in _OTHER_BODIES:
        if mark.match(begin):
            return WireError(f"expected a JSON object, got {words}")
    return WireError(f"expected a JSON object: {problem.problem}")


def read_fields(value: Raw | None) -> Fields | None:
    """Return the fields of an object without nulls, or None if the value is not an object."""
    if value is None:
        return None
    fields = _decode_fields(value)
    return None if isinstance(fields, Malformed) else without_nulls(fields)


def read_items(value: Raw | None) -> list[Raw] | None:
    """Return the items of a list, or None if the value is not a list."""
    if value is None or bytes(memoryview(value)[:1]) == b'"':  # a long text would be read before it is found to be none
        return None
    items = _decode_items(value)
    return None if isinstance(items, Malformed) else items


def read_plain(
    decode: Callable[[bytes], T | Malformed], body: bytes, fields: Fields, known: frozenset[str]
) -> T | None:
    """Return a request that has nothing unusual, read at once, or None for any other. `known`: what it may have."""
    if not fields.keys() <= known or len(body) > LONG:
        return None
    plain = decode(body)
    return None if isinstance(plain, Malformed) else plain


def decode_short(decode: Callable[[Raw], T | Malformed], value: Raw) -> T | Malformed:
    """Decode a list at once. A long one counts as `Malformed`."""
    return decode(value) if memoryview(value).nbytes <= LONG else Malformed("it is long")


def read(value: Raw | None) -> Json:
    """Return the value, or None if there is none or it cannot be read."""
    if value is None:
        return None
    decoded = _json.decode(value)
    return None if isinstance(decoded, Malformed) else decoded


def read_text(value: Raw | None) -> str:
    """Return a string; "" if the value is not a string."""
    return "" if value is None else read_string(value) or ""


def read_string(value: Raw | None) -> str | None:
    """Return a string, or None if the value is not a string."""
    if value is None or bytes(memoryview(value)[:1]) != b'"':
        return None
    text = _decode_text(value)
    return None if isinstance(text, Malformed) else text


def as_object(value: Json) -> dict[str, Any]:
    """Return an object, or an empty one in place of another value."""
    return value if isinstance(value, dict) else {}


def read_objects(value: Raw | None) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    return [entry for item in read_items(value) or () if isinstance(entry := read(item), dict)]


def read_number(value: Raw | None) -> float | None:
    """Return a number, also from a string, or None."""
    if value is None:
        return None
    decoded = _json.decode(value)
    if isinstance(decoded, str):
        decoded = _json.decode(decoded.strip())
    if not isinstance(decoded, (int, float)) or isinstance(decoded, bool):
        return None
    try:
        return float(decoded)
    except OverflowError:  # more digits than a float has room for
        return None


def read_count(value: Raw | None) -> int | None:
    """Return a whole number, or None."""
    number = read_number(value)
    return int(number) if number is not None and number.is_integer() else None


def read_texts(value: Raw | None) -> tuple[str, ...]:
    """Return a list of strings, or a single string as one."""
    decoded = read(value)
    items = decoded if isinstance(decoded, list) else [decoded]
    return tuple(item for item in items if isinstance(item, str))


def read_all_texts(value: Raw | None) -> tuple[str, ...] | None:
    """Return a list of strings, or one string as a list; None if there are other values."""
    decoded = read(value)
    items = decoded if isinstance(decoded, list) else [decoded]
    return tuple(items) if all(isinstance(item, str) for item in items) else None


def without_nulls(fields: Fields) -> Fields:
    """Return the fields that are not null."""
    return {key: value for key, value in fields.items() if value != _NULL} if _NULL in fields.values() else fields


def make_native(protocol: ProtocolName, fields: Fields, *modelled: str) -> Native | None:
    """Return the unmodelled fields, copied out of the body, or None."""
    rest = {key: Raw(bytes(value)) for key, value in fields.items() if key not in modelled}
    return Native(protocol, rest) if rest else None


def native_fields(native: Native | None, protocol: ProtocolName) -> Fields:
    """Return the fields that the same protocol may write again."""
    return native.fields if native is not None and native.protocol == protocol else {}


def overlaid(kept: Raw | None, said: dict[str, Json]) -> dict[str, Json]:
    """Return an object over what was kept of it, objects within it likewise."""
    fields: dict[str, Json] = dict(read_fields(kept) or {})
    for key, value in said.items():
        fields[key] = overlaid(fields.get(key), value) if isinstance(value, dict) else value
    return fields
