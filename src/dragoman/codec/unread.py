"""Name the fields of fully read objects that are not kept: unknown ones, and those whose place another field took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from dragoman import _json
from dragoman._json import Json, Raw, raw_text
from dragoman.codec.json_fields import read_string
from dragoman.deviations import clip
from dragoman.errors import WireError
from dragoman.events import Deviation

Kind: TypeAlias = Literal[
    "a list", "an object", "a text", "true or false", "a text or an object", "a text or a list",
    "a text, true or false", "an object, true or false", "a number",
]  # fmt: skip
#: How a value of a kind begins.
_BEGINS: Final[dict[Kind, bytes]] = {
    "a list": b"[", "an object": b"{", "a text": b'"', "true or false": b"tf", "a text or an object": b'"{',
    "a text or a list": b'"[', "a text, true or false": b'"tf', "an object, true or false": b"{tf",
    "a number": b"-0123456789",
}  # fmt: skip
#: Of a JSON schema: true allows everything.
SCHEMA: Final[Kind] = "an object, true or false"
_NULL: Final = b"n"[0]
_SEEN: Final = {b"[": "a list", b"{": "an object", b"t": "true", b"f": "false", b'"': "a text", b"n": "null"}


def refuse_other_kinds(fields: Mapping[str, Raw], kinds: Mapping[str, Kind], where: str = "") -> None:
    """Refuse fields of another kind than they are of: nobody could read what they ask for.

    Raises:
        WireError: one is; null is nothing.
    """
    for key, kind in kinds.items():
        if key not in fields:
            continue
        first = memoryview(fields[key])[0]
        if first not in _BEGINS[kind] and first != _NULL:
            seen = _SEEN.get(first.to_bytes(), "a number")
            raise WireError(f"expected {kind}, got {seen}", path=f"{where}{key}")


def wanted_text(fields: Mapping[str, Raw], key: str, where: str) -> str:
    """Return the text of a field; "" without one. Raises `WireError`: it is of another kind."""
    value = fields.get(key)
    if value is None:
        return ""
    text = read_string(value)
    if text is None:
        first = bytes(memoryview(value)[:1])
        raise WireError(f"expected a text, got {_SEEN.get(first, 'a number')}", path=f"{where}.{key}")
    return text


def refuse_no_text(value: Json, where: str) -> None:
    """Refuse a decoded value that is no text; null is nothing. Raises `WireError`: it is of another kind."""
    if value is not None and not isinstance(value, str):
        raise WireError(f"expected a text, got {_SEEN.get(_json.encode(value)[:1], 'a number')}", path=where)


def holds_parts(value: Json) -> bool:
    """Return whether the content of a result is a list of texts and parts, and not a value of the tool's own."""
    return isinstance(value, list) and all(
        isinstance(item, str) or (isinstance(item, dict) and not {"type", "text"}.isdisjoint(item)) for item in value
    )


def read_allowed(value: Json, where: str) -> list[dict[str, Any]]:
    """Return the entries of a decoded list of allowed tools.

    Raises:
        WireError: it is no list of objects: nobody could tell which tools are allowed.
    """
    if not isinstance(value, list):
        raise WireError("expected a list of tools", path=where)
    for place, entry in enumerate(value):
        if not isinstance(entry, dict):
            raise WireError("expected a tool", path=f"{where}[{place}]")
    return value


def with_schema(tool: Mapping[str, Raw], key: str, where: str, deviations: list[Deviation]) -> dict[str, Raw]:
    """Return a client's tool with its schema under `key`, where it may be under another protocol's key."""
    other = "input_schema" if key == "parameters" else "parameters"
    if key in tool or other not in tool:
        return dict(tool)
    deviations.append(Deviation("sibling-key", f"{where}.{other}"))
    return {key if name == other else name: value for name, value in tool.items()}


def name_unread(fields: Mapping[str, object], where: str, deviations: list[Deviation], *known: str) -> None:
    """Note each unknown field; null is nothing."""
    for key, value in fields.items():
        if key not in known and value is not None:
            deviations.append(Deviation("dropped", f"{where}.{clip(key)}", "a field that is not known here", "note"))


def name_unreadable(
    fields: Mapping[str, Raw], said: Mapping[str, object], where: str, deviations: list[Deviation]
) -> None:
    """Name each field in which nothing valid was found."""
    for key, value in said.items():
        if value is None:
            deviations.append(Deviation("wrong-type", f"{where}{clip(key)}", clip(raw_text(fields[key]))))


def name_passed_over(fields: Mapping[str, object], where: str, deviations: list[Deviation], *rivals: str) -> None:
    """Note each field that is not read because an earlier one among `rivals` says the same differently."""
    read, *others = [key for key in rivals if key in fields] or [""]
    for key in others:
        if fields[key] != fields[read]:
            deviations.append(Deviation("dropped", f"{where}{key}", f"{read} says it", "note"))
