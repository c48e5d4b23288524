"""Proofs: what they are bound to, when they are void, how the store stands bad files."""

import os
import sqlite3
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.config import load_config
from dragoman.errors import UsageError
from dragoman.proofs import ProbeResult, Proof, ProofStore, is_clean, is_proven, parse_export, render_export
from dragoman.types import Cost

DAY = 86_400
PASSED = ProbeResult("passed", "1 call, arguments exact", passes=1, passes_at_zero=1)
PROOF = Proof(
    target="ollama/granite4",
    protocol="ollama-chat",
    endpoint="http://127.0.0.1:11434",
    digest="sha256:aa",
    suite="quick",
    suite_version=1,
    dragoman="0.1.0",
    at=1_000_000,
    probes={"toolCall": PASSED, "result-round-trip": PASSED},
    cost=Cost(Decimal("0.0012"), "user"),
)


def changed(**fields: Any) -> Proof:
    return msgspec.structs.replace(PROOF, **fields)


class Clock:
    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def store_at(path: Path | None, clock: Clock | None = None) -> tuple[ProofStore, list[str]]:
    said: list[str] = []
    return ProofStore(path, clock=clock or Clock(), say=said.append), said


# ---------------------------------------------------------------- judgments


@pytest.mark.parametrize(
    ("proof", "proven", "clean"),
    [
        (None, False, False),
        (PROOF, True, True),
        (changed(deviations={"missing-id": 1}), True, False),
        (changed(deviations={"dropped": 4, "tools-way": 1}), True, True),
        (changed(probes={"toolCall": PASSED}), False, False),
        (changed(probes={**PROOF.probes, "toolCall": ProbeResult("not-used", "no call")}), False, False),
        (changed(probes={**PROOF.probes, "stop": ProbeResult("failed", "ran on")}), True, True),
    ],
)
def test_what_counts_as_proven_and_as_clean(proof: Proof | None, proven: bool, clean: bool) -> None:
    assert (is_proven(proof), is_clean(proof)) == (proven, clean)


# ---------------------------------------------------------------- what a proof is bound to


def test_a_proof_comes_back_whole(tmp_path: Path) -> None:
    store, said = store_at(tmp_path / "new" / "proofs.db")
    assert store.get("ollama/granite4") is None
    assert store.put(PROOF)
    assert (store.get("ollama/granite4"), store.all(), said) == (PROOF, (PROOF,), [])
    again, _ = store_at(tmp_path / "new" / "proofs.db")
    assert again.get("ollama/granite4") == PROOF


@pytest.mark.parametrize(
    ("now", "asked", "holds"),
    [
        (1_000_000, {}, True),
        (1_000_000 + 30 * DAY - 1, {}, True),
        (1_000_000 + 30 * DAY, {}, False),
        (1_000_000, {"digest": "sha256:aa"}, True),
        (1_000_000, {"digest": "sha256:bb"}, False),
        (1_000_000, {"endpoint": "http://127.0.0.1:11434", "protocol": "ollama-chat"}, True),
        (1_000_000, {"endpoint": "http://10.0.0.5:11434"}, False),
        (1_000_000, {"protocol": "openai-chat"}, False),
    ],
)
def test_a_proof_is_void_when_what_it_is_bound_to_changes(
    tmp_path: Path, now: float, asked: dict[str, Any], holds: bool
) -> None:
    store, _ = store_at(tmp_path / "proofs.db", Clock(now))
    store.put(PROOF)
    assert (store.get("ollama/granite4", **asked) is not None) is holds


def test_a_changed_digest_that_was_told_once_voids_the_proof_for_all_who_ask(tmp_path: Path) -> None:
    store, _ = store_at(tmp_path / "proofs.db")
    store.put(PROOF, changed(target="ollama/other"))
    assert store.get("ollama/granite4") == PROOF
    assert store.get("ollama/granite4", "sha256:bb") is None
    assert store.get("ollama/granite4") is None
    assert store.get("ollama/other") is not None
    store.put(changed(digest="sha256:bb", at=1_000_001))
    assert store.get("ollama/granite4") is not None


def test_the_newest_result_stands(tmp_path: Path) -> None:
    store, _ = store_at(tmp_path / "proofs.db")
    newer, older = changed(at=1_000_005, requests=5), changed(at=999_000, requests=9)
    full = changed(at=999_999, suite="full")
    store.put(newer, older, full)
    assert store.get("ollama/granite4") == newer
    assert store.all() == (full, newer)


def test_what_another_process_puts_in_is_seen_after_a_second(tmp_path: Path) -> None:
    clock = Clock()
    reader, _ = store_at(tmp_path / "proofs.db", clock)
    assert reader.get("ollama/granite4") is None
    store_at(tmp_path / "proofs.db")[0].put(PROOF)
    assert reader.get("ollama/granite4") is None
    clock.now += 1
    assert reader.get("ollama/granite4") == PROOF


# ---------------------------------------------------------------- bad places


@pytest.mark.parametrize(
    "content", [b"not a database at all, but longer than a header " * 40, b"SQLite format 3\0" * 99]
)
def test_a_damaged_file_is_set_aside_and_said(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "proofs.db"
    path.write_bytes(content)
    store, said = store_at(path)
    assert store.get("ollama/granite4") is None
    assert (tmp_path / "proofs.db.damaged-1000000").read_bytes() == content
    assert len(said) == 1 and "damaged" in said[0]
    assert store.put(PROOF) and store.all() == (PROOF,)


def test_a_file_damaged_behind_our_back_is_set_aside_at_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "proofs.db"
    path.write_bytes(b"rubbish" * 500)
    store, said = store_at(path)
    assert store.put(PROOF)
    assert (store.all(), len(said)) == ((PROOF,), 1)


def test_an_empty_file_is_an_empty_store(tmp_path: Path) -> None:
    (tmp_path / "proofs.db").touch()
    store, said = store_at(tmp_path / "proofs.db")
    assert (store.all(), said) == ((), [])
    assert store.put(PROOF) and store.all() == (PROOF,)


def test_results_that_cannot_be_read_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "proofs.db"
    store, said = store_at(path)
    store.put(PROOF, changed(target="ollama/other"))
    with sqlite3.connect(path) as database:
        database.execute("UPDATE proofs SET proof = '{}' WHERE target = 'ollama/other'")
    database.close()
    store, said = store_at(path)
    assert store.all() == (PROOF,)
    assert said == [f"{path}: 1 results cannot be read and do not count"]


def test_a_file_of_a_newer_dragoman_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "proofs.db"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 7")
    database.close()
    before = path.read_bytes()
    store, said = store_at(path)
    assert (store.all(), store.put(PROOF)) == ((), False)
    assert path.read_bytes() == before
    assert len(said) == 2 and all("newer dragoman" in line for line in said)


def test_a_place_that_cannot_be_written_costs_the_proofs_only(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store, said = store_at(tmp_path / "file" / "proofs.db")
    assert (store.get("ollama/granite4"), store.put(PROOF), len(said)) == (None, False, 1)
    store, said = store_at(tmp_path)  # a folder where the file should be
    assert (store.all(), store.put(PROOF)) == ((), False)
    assert said
    store, said = store_at(None)
    assert (store.all(), store.put(PROOF), said) == ((), False, [])


def test_a_locked_file_is_not_taken_for_a_damaged_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.proofs.store._LOCK_SECONDS", 0.05)
    path = tmp_path / "proofs.db"
    store, said = store_at(path)
    store.put(PROOF)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert not store.put(changed(at=1_000_001))
    other.execute("ROLLBACK")
    other.close()
    assert "locked" in said[0] and os.listdir(tmp_path) == ["proofs.db"]
    assert store.all() == (PROOF,)


def test_many_threads_may_put(tmp_path: Path) -> None:
    store, said = store_at(tmp_path / "proofs.db")
    threads = [
        threading.Thread(target=store.put, args=(changed(target=f"ollama/model{number}"),)) for number in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(store.all()), said) == (12, [])


# ---------------------------------------------------------------- export


def test_an_export_is_read_again() -> None:
    proofs = (PROOF, changed(target="lab/a", ways=("native", "schema"), skipped={"cache": "not reported"}))
    assert parse_export(render_export(proofs), where="file") == proofs


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"format": "other", "version": 1, "proofs": []}', render_export([PROOF])[:-4]]
)
def test_what_is_no_export_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(UsageError, match=r"^results\.json: expected "):
        parse_export(data, where="results.json")


def test_the_store_is_in_the_users_data_folder(tmp_path: Path) -> None:
    config = load_config(environ={}, home=tmp_path)
    assert config.validate.store is not None and tmp_path in config.validate.store.parents
    elsewhere = load_config(environ={"XDG_DATA_HOME": str(tmp_path / "data")}, home=tmp_path)
    assert elsewhere.validate.store == tmp_path / "data" / "dragoman" / "proofs.db"
