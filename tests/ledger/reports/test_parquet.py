"""Attempts as Parquet: what is read there is what stands in the store. DuckDB runs in processes of its own, as it tells
at its end what a test run still knows of it."""

from __future__ import annotations

import ast
import csv
import io
import subprocess
import sys
from pathlib import Path

import pytest

import warm_programs
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.journal.records import AttemptIds, Row
from dragoman.ledger.reports.exporting import HEAD, export_csv, export_rows
from dragoman.ledger.stores.sqlite import SqliteStore
from ledger.engines import KINDS, Engines
from ledger.histories import HOLDER, START, intent, settlement
from ledger.test_stores import ENDS, MONTH, row

ODD = (
    "", "\\N", "null", "=1+1", "+1", "-1", "@x", "é☃𝄞", 'a "quoted", text', "a\nb", "'; DROP TABLE x; --", "{}", "1e5",
)  # fmt: skip
_READ = """
import duckdb, sys
print(ascii(duckdb.connect().execute("SELECT * FROM read_parquet(?)", sys.argv[1:]).fetchall()))
"""
_WITHOUT = "import sys; sys.modules['duckdb'] = None; from dragoman.cli.main import main; sys.exit(main(sys.argv[1:]))"


def rows() -> list[Row]:
    ids = AttemptIds(1)
    found = [
        row(intent(ids, number, started=START + number * MONTH // 7, accounts=(4, 9)[: number % 3]), *end)
        for number, end in enumerate(ENDS)
    ]
    for number, text in enumerate(ODD):
        opened = intent(ids, number, owner=text, route=text, size=2**63 - 1)
        found.append(Row(HOLDER, opened, settlement(opened, provider_request=text, input=2**62 if not number else 1)))
    return found


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return warm_programs.run([sys.executable, *words], text=True)


def read(file: Path) -> list[dict[str, object]]:
    done = run("-c", _READ, str(file))
    assert not done.returncode, done.stderr
    return [dict(zip(HEAD, found, strict=True)) for found in ast.literal_eval(done.stdout)]


def config_of(root: Path, folder: LedgerFolder) -> list[str]:
    file = root / "dragoman.toml"
    store = "sqlite" if folder.store is None else folder.store.reveal()
    file.write_text(f'[server]\nstate = "{folder.root.parent}"\n[ledger]\nstore = "{store}"\n')
    return ["--config", str(file)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_is_what_stands_in_the_store(engines: Engines, tmp_path: Path, kind: str) -> None:
    with engines.open(kind, tmp_path / "ledger") as (folder, store):
        given = rows()
        store.deliver(given)
        store.adjust(given[3].intent.id, -3, reason="credit", actor="me")
        out = tmp_path / "out"
        out.mkdir()
        file, where = out / "it's.parquet", config_of(tmp_path, folder)
        done = run("-m", "dragoman", "ledger", "export", str(file), *where)
        assert (done.returncode, done.stderr) == (0, f"{len(given)} attempts\n")
        expected = [dict(zip(HEAD, found, strict=True)) for found in export_rows(folder)]
        for fields in expected:
            assert isinstance(fields["id"], bytes)
            fields["id"] = fields["id"].hex()
            fields["reported"] = bool(fields["reported"])
        assert read(file) == expected
        assert {fields["owner"] for fields in expected} == set(ODD)
        run("-m", "dragoman", "ledger", "export", str(file), "--since", "2026-12-10", *where)
        assert 0 < len(read(file)) == len(list(export_rows(folder, since=1_796_860_800))) < len(given)
    assert [path.name for path in out.iterdir()] == ["it's.parquet"]  # nothing is left beside it


def test_tables_of_text_hold_no_formulas(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    ids = AttemptIds(1)
    for number, text in enumerate(("=1", "+1", "-1", "@x", "\tx", "\rx", "plain")):
        opened = intent(ids, number, owner=text, team="x")
        store.deliver([Row(HOLDER, opened, settlement(opened))])
    store.close()
    lines = list(csv.DictReader(io.StringIO("".join(export_csv(LedgerFolder(tmp_path))), newline="")))
    assert [line["owner"] for line in lines] == ["'=1", "'+1", "'-1", "'@x", "'\tx", "'\rx", "plain"]
    assert all(not value.startswith(("=", "+", "-", "@")) for line in lines for value in line.values())


def test_without_the_extra_the_command_says_how_to_install_it(tmp_path: Path) -> None:
    folder = LedgerFolder.of(tmp_path)
    file = tmp_path / "rows.parquet"
    file.write_bytes(b"of before")
    done = run("-c", _WITHOUT, "ledger", "export", str(file), *config_of(tmp_path, folder))
    assert done.returncode == 1 and 'pip install "dragoman[export]"' in done.stderr
    done = run("-m", "dragoman", "ledger", "export", str(tmp_path / "none" / "x.parquet"), *config_of(tmp_path, folder))
    assert done.returncode == 2 and "there is no folder" in done.stderr
    assert file.read_bytes() == b"of before"
