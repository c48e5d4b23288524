"""Commands of the ledger say in one line what is wrong: with what they were given, and with the files."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dragoman.cli.main import main
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.journal.records import AttemptIds, Row
from dragoman.ledger.stores.files import MAIN_FILE, month_file, month_of
from dragoman.ledger.stores.sqlite import SqliteStore
from ledger.histories import HOLDER, intent, settlement


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LedgerFolder:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return LedgerFolder.of(tmp_path / "state" / "dragoman")


@pytest.fixture
def attempt(folder: LedgerFolder) -> bytes:
    """One that cost a dollar."""
    opened = intent(AttemptIds(1), started=int(time.time() * 1_000_000))
    store = SqliteStore(folder.root)
    store.deliver([Row(HOLDER, opened, settlement(opened, nano=1_000_000_000))])
    store.close()
    return opened.id


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    try:
        status = main(words)
    except SystemExit as end:
        status = int(end.code or 0)
    return status, capsys.readouterr().err


@pytest.mark.parametrize(
    ("usd", "reason", "expected"),
    [
        ("0.0000000001", "x", "--usd"), ("1.0000000001", "x", "--usd"), ("NaN", "x", "--usd"), ("1e400", "x", "--usd"),
        ("-inf", "x", "--usd"), ("1", " ", "--reason"), ("1", "a\x1b[2Jb", "--reason"), ("1", "x" * 1_000, "--reason"),
        ("-1.000000001", "x", "cost 1 US dollars"), ("-99999", "x", "cost 1 US dollars"),
    ],
)  # fmt: skip
def test_a_correction_is_exact_and_no_gift(
    attempt: bytes, capsys: pytest.CaptureFixture[str], usd: str, reason: str, expected: str
) -> None:
    status, words = said(["ledger", "adjust", attempt.hex(), f"--usd={usd}", "--reason", reason], capsys)
    assert status != 0 and expected in words and len(words.splitlines()) == 1, words


def test_what_was_paid_is_given_back_once(attempt: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ledger", "adjust", attempt.hex(), "--usd=-1", "--reason", "credit"]
    assert said(words, capsys) == (0, "it is corrected\n")
    assert said(words, capsys) == (0, "the same correction stands there already\n")


@pytest.mark.parametrize("what", ["all", "month"])
@pytest.mark.parametrize(
    "words",
    [
        ["spend"], ["spend", "--json"], ["ledger", "check"], ["ledger", "status"], ["ledger", "export", "-"],
        ["ledger", "migrate"], ["ledger", "adjust", "ID", "--usd=1", "--reason", "x"], ["keys", "list"],
        ["keys", "show", "ci"], ["budget", "list"], ["budget", "show", "all"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_damage_is_said_in_one_line(
    folder: LedgerFolder, attempt: bytes, capsys: pytest.CaptureFixture[str], words: list[str], what: str
) -> None:
    file = folder.root / MAIN_FILE if what == "all" else month_file(folder.root, month_of(attempt))
    for suffix in ("-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    file.write_bytes(b"no database at all" * 300)
    status, told = said([attempt.hex() if word == "ID" else word for word in words], capsys)
    assert "Traceback" not in told and len(told.splitlines()) <= 1, told
    assert status == 0 or file.name in told or "no key" in told, told
