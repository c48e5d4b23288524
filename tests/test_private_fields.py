"""What our records of wires hold besides the wire's own fields cannot be filled by a wire: a key of that name is one
that nobody knows."""

from __future__ import annotations

import importlib
import itertools
import json
import pkgutil
import types
from typing import Any

import msgspec
import pytest

from dragoman import protocols
from dragoman.decoding import decode
from test_unread_arguments import ARGUMENTS, PLACES, TOOLS

#: Fields of Structs that dragoman fills itself.
PRIVATE = ("unread", "rest", "content_parts")
VALUES = ("x", "", 3, True, None, {}, ARGUMENTS, [ARGUMENTS], ["a"], "{}", json.dumps(ARGUMENTS))
#: A key that nobody knows, as long as each of these.
OTHER = "neverHeardOf"


def all_structs() -> list[type[msgspec.Struct]]:
    for module in pkgutil.walk_packages(protocols.__path__, "dragoman.protocols."):
        importlib.import_module(module.name)
    found, waiting = [], [msgspec.Struct]
    while waiting:
        waiting += (further := waiting.pop().__subclasses__())
        found += [kind for kind in further if kind.__module__.startswith("dragoman.protocols.")]
    return found


def test_no_wire_fills_a_private_field():
    seen = set()
    for kind in all_structs():
        for field in msgspec.structs.fields(kind):
            if field.name in PRIVATE:
                seen.add(field.name)
                assert field.type is types.NoneType, f"{kind.__module__}.{kind.__name__}.{field.name}"
    assert seen == set(PRIVATE)


def told(protocol: str, body: bytes) -> tuple[Any, ...]:
    reply = decode(body, protocol, tools=TOOLS)  # type: ignore[arg-type]
    failed = [(call.name, call.kind, call.message) for call in reply.failed_calls]
    return [(call.name, call.arguments) for call in reply.tool_calls], failed, reply.text, reply.stop_reason


@pytest.mark.parametrize("place", PLACES)
def test_a_private_key_of_a_wire_is_one_that_nobody_knows(place: str):
    protocol, body = PLACES[place]
    for key, value, beside in itertools.product(PRIVATE, VALUES, ({}, {"arguments": json.dumps(ARGUMENTS), "id": 7})):
        expected = told(protocol, body({OTHER: value, **beside}))
        seen = told(protocol, body({key: value, **beside}))
        assert repr(seen).replace(f"{key}?", key) == repr(expected).replace(OTHER, key), (key, value, beside)
