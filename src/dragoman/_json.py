"""JSON: the only caller of the JSON library.

`decode` never raises: text that cannot be read becomes `Malformed`. Behind it stand two readers: a strict, fast one for
the hot path (`typed_decoder`), and a lenient one for what the strict one refuses (`decode_lenient`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from math import isfinite
from typing import Any, Final, TypeVar, final

import msgspec

Raw = msgspec.Raw
T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

#: A JSON value as Python objects.
Json = Any


@final
class Malformed(msgspec.Struct, frozen=True, gc=False):
    """Text that is not the expected JSON; `problem` says why in the library's words, without the value."""

    problem: str


#: All that msgspec 0.22 can raise on bytes: RecursionError past 1,000 levels or so, UnicodeDecodeError on bad UTF-8.
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)

#: A JSON value, or white space before one, begins with one of these; also as the lenient reader takes it.
_FIRST: Final = b'"{[-0123456789NIntf \t\r\n'
_NO_VALUE: Final = Malformed("Expecting value: line 1 column 1 (char 0)")  # as the lenient reader says it
_MORE_FOLLOWS: Final = "Extra data"  # as it says that a value is whole and something follows
_LF, _CR = b"\n\r"
#: JSON allows them bare in strings; to Python's `splitlines` they end a line, and so to the clients that are built
#: on it (ollama, all that read with httpx's `iter_lines`).
_LINE_ENDS: Final = ((b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"), (b"\xc2\x85", rb"\u0085"))
TOLD_TWICE: Final = "a key stands twice in an object, with different values"

_decode_any = msgspec.json.Decoder().decode
_skim = msgspec.json.Decoder(Raw).decode
_decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode


class LenientNumber(float):
    """A number with a fraction or an exponent, or a word such as NaN, with its original text, which `encode` writes.

    No digit is lost, and what is no JSON stays none. `1e999`, which readers take for `Infinity`, becomes `NaN`.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text if isfinite(self) else "NaN"


def _encode_odd(value: object) -> object:
    """Return what is written for a number that keeps its text, and for a subclass of a text or a number."""
    if isinstance(value, _TOLD_AS_TEXT):
        return Raw(value.text.encode())
    if isinstance(value, str | int | float):
        return str.__str__(value) if isinstance(value, str) else value.real
    raise TypeError(f"{type(value).__name__} is no JSON value")


_encode = msgspec.json.Encoder(enc_hook=_encode_odd).encode
encode_members: Final[Callable[[dict[str, Raw]], bytes]] = _encode  # with ends of lines between values: no frame's data
_encode_ordered = msgspec.json.Encoder(decimal_format="number", enc_hook=_encode_odd).encode


def _one_value_each(members: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(members)
    if len(value) < len(members) and any(encode_exact(item) != encode_exact(value[key]) for key, item in members):
        raise ValueError(TOLD_TWICE)
    return value


_lenient = json.JSONDecoder(
    strict=False, parse_float=LenientNumber, parse_constant=LenientNumber, object_pairs_hook=_one_value_each
)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    if not isfinite(number := float(text)):
        raise ValueError("a number is out of range")
    return number


_exact = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


def decode(data: bytes | str | Raw) -> Json | Malformed:
    """Decode one JSON value, strictly (RFC 8259)."""
    try:
        return _decode_any(data)
    except _UNREADABLE as problem:
        return Malformed(_say(problem))


def is_json(data: bytes | str) -> bool:
    """Return whether this is one JSON value. A quarter of the cost of `decode`; bad UTF-8 in strings goes unnoticed."""
    try:
        _skim(data)
    except _UNREADABLE:
        return False
    return True


def typed_decoder(kind: type[T]) -> Callable[[bytes | str | Raw], T | Malformed]:
    """Return a decoder of one Struct. Its result is `Malformed` if the text is not JSON or does not fit the Struct."""
    run: Callable[[bytes | str | Raw], T]

    def run_first(data: bytes | str | Raw) -> T:
        nonlocal run
        run = msgspec.json.Decoder(kind).decode  # at the first use: of many decoders a program needs few
        return run(data)

    run = run_first

    def decode_typed(data: bytes | str | Raw) -> T | Malformed:
        try:
            return run(data)
        except _UNREADABLE as problem:
            return Malformed(_say(problem))

    return decode_typed


def fields_decoder(kind: type[S]) -> Callable[[bytes], tuple[S, dict[str, Raw]] | Malformed]:
    """Return a decoder of some fields of an object, as a Struct, and of all as their JSON texts."""
    names = frozenset([field.encode_name for field in msgspec.structs.fields(kind)])
    run = msgspec.json.Decoder(kind).decode

    def decode_fields(data: bytes) -> tuple[S, dict[str, Raw]] | Malformed:
        try:
            fields = _decode_fields(data)
            own = data if len(data) < 2048 else _encode({name: fields[name] for name in names.intersection(fields)})
            return run(own), fields
        except _UNREADABLE as problem:
            return Malformed(_say(problem))

    return decode_fields


def lines_decoder(kind: type[T]) -> Callable[..., list[T] | None]:
    """Return a decoder of many Structs at once, one from each line; None if any is not JSON or does not fit.

    Each line begins with `{` and ends with `}`: two broken ones never make a whole one. `joined`: the same as one text.
    """
    run = msgspec.json.Decoder(kind).decode_lines

    def decode_lines(lines: list[bytes], joined: bytes = b"") -> list[T] | None:
        try:
            values = run(lines[-1])  # the last line is the one that most often is of another kind
            if len(lines) > 1:
                values = run(joined or b"\n".join(lines))
        except _UNREADABLE:
            return None
        return values if len(values) == len(lines) else None  # a line may hold two

    return decode_lines


def decode_lenient(data: bytes) -> Json | Malformed:
    """Decode what servers send by mistake: bad UTF-8, raw control characters in strings, lone surrogates.

    An object that has a key twice with two values is refused, because readers differ in which counts. NaN and Infinity
    become `LenientNumber`: encoded they are words again, and every JSON reader refuses them.
    """
    if data[:1] not in _FIRST:  # most of what is no JSON, for a tenth of the time
        return _NO_VALUE
    try:
        return _lenient.decode(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as problem:
        return Malformed(_say(problem))


def decode_object(text: str) -> dict[str, Json] | Malformed:
    """Decode the JSON object that arguments must be. Reads half surrogate pairs too; NaN and Infinity are refused."""
    value = decode(text)
    if type(value) is Malformed:
        try:
            value = _exact.decode(text)
        except (ValueError, RecursionError) as problem:
            return Malformed(_say(problem))
    return value if isinstance(value, dict) else Malformed(f"expected a JSON object, got {_json_type(value)}")


def indented(value: Json, *, is_sorted: bool = True) -> str:
    """Return the value over several lines, its keys sorted. Raises as msgspec for what is no JSON."""
    return msgspec.json.format(msgspec.json.encode(value, order="sorted" if is_sorted else None), indent=1).decode()


def is_object(text: str) -> bool:
    """Return whether `decode_object` reads a text."""
    return type(decode(text)) is dict or not isinstance(decode_object(text), Malformed)


def repeats_key(text: str) -> bool:
    """Return whether an object in a JSON text, at any depth, has a key twice with different values.

    Readers differ in which of the two counts (RFC 8259, section 4). `codec.repeated_keys` has a cheaper first look.
    """
    try:
        _told_once.decode(text)
    except _UNREADABLE as problem:
        return str(problem) == TOLD_TWICE  # else it is no JSON: another's to say
    return False


def holds_all(value: Json, text: bytes) -> bool:
    """Return whether a value has every member of the JSON text that was read into it. Then no object has a key twice.

    It has when what is written of it has as many quotes as the text, whatever spaces, escapes and forms of numbers the
    text has. False says nothing about a text that tells quotes as numbers.
    """
    try:
        written = _encode(value)
    except (RecursionError, UnicodeEncodeError):
        return False
    return written == text or _has_as_many_quotes(written, text)


def is_told_once(text: bytes) -> bool:
    """Return whether a JSON text has no object with a key twice, by what `holds_all` sees. False says nothing."""
    try:
        written = _encode(_decode_any(text))
    except _UNREADABLE:
        return False
    return written == text or _has_as_many_quotes(written, text)


def _has_as_many_quotes(written: bytes, text: bytes) -> bool:
    # few quotes are found as memory is searched
    counts = [it.count(b'"') if len(text) < 1024 else len(it) - len(it.replace(b'"', b"")) for it in (written, text)]
    return counts[0] == counts[1] and (text.find(b"\\") < 0 or text.rfind(rb"\u0022") < 0)


class Number(str):
    """A JSON number as its own text."""

    __slots__ = ()
    text = property(str.__str__)

    def is_integer(self) -> bool:
        """Return whether it has no fraction (5.0 has none)."""
        return "e" not in self.lower() and ("." not in self or not self.partition(".")[2].strip("0"))

    def equals(self, other: float) -> bool:
        """Return whether it is this number."""
        return bool(_decode_any(str(self)) == other)


_TOLD_AS_TEXT: Final = (LenientNumber, Number)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


def read_number(text: str) -> Number | None:
    """Return the text as a number if it is one in JSON, else None."""
    return Number(text) if _NUMBER.fullmatch(text) else None


_told_once = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=_one_value_each
)
_numbers_as_text = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=_refuse_constant)


def decode_exact(text: str) -> Json | Malformed:
    """Decode with every number as its own text (`Number`), so that `encode_exact` writes the same number."""
    try:
        return _numbers_as_text.decode(text)
    except (ValueError, RecursionError) as problem:
        return Malformed(_say(problem))


def encode_exact(value: Json, quote: Callable[[str], str] | None = None) -> str:
    """Encode a result of `decode_exact` or `decode_lenient`, or any other JSON value. `quote`: encodes a text."""
    quote = quote or quoted
    if isinstance(value, _TOLD_AS_TEXT):
        return value.text
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{quote(key)}:{encode_exact(item, quote)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(encode_exact(item, quote) for item in value) + "]"
    if isinstance(value, str):
        return quote(value)
    return "null" if value is None else "true" if value else "false"


def split_values(text: str, problem: str) -> list[str] | Malformed:
    """Split concatenated JSON values (`{..}{..}`, white space between) into their texts, none lost.

    Args:
        problem: why `decode_lenient` refused the text. Unless it is that more follows, the first value is no JSON.
    """
    if not problem.startswith(_MORE_FOLLOWS):
        return Malformed(problem)
    values: list[str] = []
    position, end = 0, len(text)
    while True:
        while position < end and text[position] in " \t\r\n":
            position += 1
        if position == end:
            return values
        try:
            _, stop = _lenient.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            return Malformed(_say(error))
        if text[stop - 1] not in '}]"' and text[stop : stop + 1].strip():
            return Malformed("a number or a word goes on behind its end")
        values.append(text[position:stop])
        position = stop


def encode(value: object) -> bytes:
    """Encode Python values, Structs and `Raw` as JSON on one line, compact but for a `Raw`'s own white space.

    Lone surrogates become U+FFFD. A frame of a stream is one line: nothing encoded here can break it.
    """
    try:
        return _on_one_line(_encode_ordered(value))
    except UnicodeEncodeError:
        return _on_one_line(_encode_ordered(mended(value)))


def _on_one_line(data: bytes) -> bytes:
    """Escape every character that ends a line somewhere. A bare line end stands between values only, inside a `Raw`."""
    if _LF in data or _CR in data:
        data = data.replace(b"\n", b" ").replace(b"\r", b" ")
    if 0xE2 in data or 0xC2 in data:  # as those ends begin; a search for one byte is faster than `isascii`
        for seen, escaped in _LINE_ENDS:
            if seen[:1] in data and seen in data:
                data = data.replace(seen, escaped)
    return data


def mended(value: Json) -> Json:
    """Return the value with U+FFFD in place of every lone surrogate; a `Raw` in it stays."""
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, msgspec.Struct):
        value = msgspec.structs.asdict(value)
    if isinstance(value, dict):
        return {mended(key): mended(inner) for key, inner in value.items()}
    return [mended(inner) for inner in value] if isinstance(value, list | tuple) else value


def encode_text(text: str) -> bytes:
    """Encode one string as a JSON string on one line, quotes included."""
    try:
        data = _encode(text)
    except UnicodeEncodeError:
        data = _encode(_joined_halves(text))
    return data if text.isascii() else _on_one_line(data)


def quoted(text: str) -> str:
    """Return a text as a JSON string."""
    return encode_text(text).decode()


def to_text(value: object) -> str:
    """Encode as compact JSON text."""
    return encode(value).decode()


def to_lenient_text(value: Json) -> str:
    """Encode a result of `decode_lenient`. NaN and Infinity stay words, so that a JSON reader refuses the text."""
    try:
        return encode_exact(value, json.dumps)
    except RecursionError:
        return "(nested too deeply)"


def raw(value: object) -> Raw:
    """Return the encoded value as `Raw`, to be embedded as it is."""
    return Raw(encode(value))


def embed(text: str) -> Raw:
    """Return JSON text as `Raw`, on one line, to be embedded as it is. Lone surrogates become U+FFFD."""
    line = text.replace("\n", " ").replace("\r", " ") if "\n" in text or "\r" in text else text
    try:
        data = line.encode()
    except UnicodeEncodeError:
        data = _joined_halves(line).encode()
    return Raw(_on_one_line(data))


def compact(value: bytes | Raw) -> Raw:
    """Copy JSON text out of its frame, without white space between its values; numbers keep their form."""
    data = bytes(value)
    if data.isalnum() or (data[:1] == data[-1:] == b'"' and data.isascii() and _LF not in data and _CR not in data):
        return Raw(data)  # a whole number, a word or a text
    return embed(without_spaces(data).decode("utf-8", "replace"))


def without_spaces(data: bytes) -> bytes:
    """Return JSON text without white space between its values; unchanged if it is nested too deeply."""
    try:
        return msgspec.json.format(data, indent=-1)
    except _UNREADABLE:
        return data


def raw_text(value: Raw) -> str:
    """Return the JSON text of a `Raw`, copied out of its frame; "" if unset. Bad UTF-8 becomes U+FFFD."""
    return str(value, "utf-8", "replace")


def has_whole_characters(text: str) -> bool:
    """Return whether a text has no lone surrogate, and so can be encoded."""
    try:
        return text.isascii() or bool(text.encode())  # four times as fast as a search
    except UnicodeEncodeError:
        return False


def whole_characters(text: str) -> str:
    """Return the text with U+FFFD in place of every lone surrogate, which could not be encoded."""
    return text if text.isascii() or has_whole_characters(text) else _joined_halves(text)


def _joined_halves(text: str) -> str:
    """Return the text with each pair of surrogates as its character, and U+FFFD in place of a lone one."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _json_type(value: Json) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "a boolean"
    return "a string" if isinstance(value, str) else "a list" if isinstance(value, list) else "a number"


def _say(problem: Exception) -> str:
    """Return one clipped line. msgspec names paths and kinds, never values, and Python a setting for long numbers."""
    told = str(problem)[:160].partition("\n")[0] or type(problem).__name__
    return "a number has too many digits" if told.startswith("Exceeds the limit") else told
