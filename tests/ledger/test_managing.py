"""Keys and quotas in each store: the same commands, the same answers, the same audit."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.config.quotas import Quota
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Refused
from dragoman.ledger.keys import KeyBook, VirtualKey
from dragoman.ledger.limits.quotas import QuotaBook
from dragoman.ledger.reports.checking import check
from dragoman.ledger.stores.opening import open_reading
from ledger.engines import KINDS, Engines, alike, dump, now

CI = VirtualKey(name="ci", owner="anna", team="research", labels={"cost": "4711"}, models=("a/*",), expires=2**40)


def change_all(folder: LedgerFolder) -> tuple[list[VirtualKey], list[Quota], list[str]]:
    """Every change once; what stands then, and what was refused."""
    keys, quotas = KeyBook(folder, actor="me", now=now), QuotaBook(folder, actor="me", now=now)
    refused = []
    keys.add(CI, b"1" * 32)
    keys.add(VirtualKey(name="b"), b"2" * 32)
    for attempt in (
        lambda: keys.add(CI, b"3" * 32),
        lambda: keys.add(VirtualKey(name="c"), b"2" * 32),  # another's secret
        lambda: keys.disable("nobody", at=1),
        lambda: keys.rotate("nobody", b"4" * 32, keep_seconds=1),
        lambda: quotas.remove(Quota("all", "", "usd", 1)),
    ):
        with pytest.raises(Refused) as problem:
            attempt()
        refused.append(type(problem.value).__name__)
    keys.rotate("ci", b"5" * 32, keep_seconds=100)
    keys.rotate("ci", b"6" * 32, keep_seconds=50)
    keys.disable("b", at=7)
    keys.alter("b", lambda key: VirtualKey(name="other", owner="ben", disabled=key.disabled))
    assert quotas.set(Quota("all", "", "usd", 5, "month")) is None
    before = quotas.set(Quota("all", "", "usd", 6, "month"))
    assert before is not None and before.amount == 5
    quotas.set(Quota("key", "ci", "concurrent", 2))
    quotas.remove(Quota("key", "ci", "concurrent", 2))
    found = keys.list(), quotas.list(), refused
    keys.close()
    quotas.close()
    return found


def test_all_stores_have_the_same_keys_quotas_and_audit(engines: Engines, tmp_path: Path) -> None:
    found = []
    for kind in KINDS:
        with engines.open(kind, tmp_path / kind) as (folder, _):
            found.append((change_all(folder), dump(folder)["audit"]))
            assert check(folder).is_sound
    (keys, quotas, _), audit = found[0]
    assert [(key.name, key.owner, key.disabled) for key in keys] == [("b", "ben", 7), ("ci", "anna", None)]
    assert [(quota.name, quota.amount) for quota in quotas] == [("all usd per month", 6)]
    assert [row[3] for row in audit] == [
        "key new", "key new", "key rotate", "key rotate", "key disable", "key alter", "quota set", "quota set",
        "quota set", "quota remove",
    ]  # fmt: skip
    assert all(each == found[0] for each in found)


# ---------------------------------------------------------------- random histories

_names = st.sampled_from(["a", "b", "c"])
_texts = st.sampled_from(["", "anna", "x" * 60, "é☃", "'; DROP TABLE quota; --"])
_acts = st.one_of(
    st.tuples(st.just("add"), _names, _texts, st.integers(0, 3)),
    st.tuples(st.just("alter"), _names, _texts, st.none() | st.integers(0, 2**40)),
    st.tuples(st.just("disable"), _names, st.none() | st.integers(0, 2**40)),
    st.tuples(st.just("rotate"), _names, st.integers(0, 5), st.integers(0, 1_000)),
    st.tuples(st.just("set"), _names, st.sampled_from(["usd", "tokens", "requests"]), st.integers(0, 2**50)),
    st.tuples(st.just("remove"), _names, st.sampled_from(["usd", "tokens", "requests"]), st.just(0)),
)


def change(keys: KeyBook, quotas: QuotaBook, act: tuple[Any, ...]) -> object:
    """One change, and what is answered."""
    kind, name, *what = act
    match kind:
        case "add":
            keys.add(VirtualKey(name=name, owner=what[0], labels={"l": what[0]}), _digest(what[1]))
        case "alter":
            return keys.alter(name, lambda key: msgspec.structs.replace(key, team=what[0], expires=what[1]))
        case "disable":
            keys.disable(name, at=what[0])
        case "rotate":
            keys.rotate(name, _digest(what[0]), keep_seconds=what[1])
        case "set":
            return quotas.set(Quota("key", name, what[0], what[1], "month"))
        case _:
            quotas.remove(Quota("key", name, what[0], 0, "month"))
    return None


def _digest(number: int) -> bytes:
    return hashlib.sha256(bytes([number])).digest()


@settings(max_examples=8)
@given(st.lists(_acts, min_size=3, max_size=14))
def test_random_changes_make_the_same_of_every_store(
    engines: Engines, tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[Any, ...]]
) -> None:
    found = []
    for kind in KINDS:
        with engines.open(kind, tmp_path_factory.mktemp("managing")) as (folder, _):
            keys, quotas = KeyBook(folder, actor="me", now=now), QuotaBook(folder, actor="me", now=now)
            answers = [alike(partial(change, keys, quotas, act)) for act in acts]
            with open_reading(folder) as reading:
                tables = [sorted(reading.select(None, f"SELECT * FROM {name}")) for name in ("key_digest", "quota")]
            found.append((answers, keys.list(), tables, dump(folder)["audit"]))
            assert check(folder).is_sound
            keys.close()
            quotas.close()
    assert all(each == found[0] for each in found)
