"""No Struct that carries a request, an answer or the state of one shows what is in it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import msgspec

import dragoman
from dragoman.gateway.messages import Answer

#: Fields that hold what people and models wrote, as bytes.
WORDS = {"body", "response", "_pieces"}
#: Packages whose Structs are for the tests of users, who want to see them.
SHOWN = ("dragoman.testing",)


def structs(of: type[msgspec.Struct] = msgspec.Struct) -> Iterator[type[msgspec.Struct]]:
    for each in of.__subclasses__():
        yield each
        yield from structs(each)


def carries_words(struct: type[msgspec.Struct]) -> bool:
    kinds = {field.name: str(field.type) for field in msgspec.structs.fields(struct)}
    is_state = any(name.startswith("_") for name in kinds)
    return is_state or any("bytes" in kinds[name] for name in WORDS & kinds.keys())


def test_what_carries_words_shows_none() -> None:
    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
        if not module.name.endswith(("__main__", "embedded.child")):  # programs of their own
            importlib.import_module(module.name)
    found = [each for each in structs() if each.__module__.startswith("dragoman") and carries_words(each)]
    assert len(found) > 10
    shown = [each for each in found if each.__repr__ is msgspec.Struct.__repr__]
    assert [each for each in shown if not each.__module__.startswith(SHOWN)] == []


def test_an_answer_is_not_shown() -> None:
    assert "canary" not in f"{Answer(200, b'canary')!r} {[Answer(200, b'canary')]}"
