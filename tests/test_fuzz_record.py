"""The record of `make fuzz`: a row a reader, which a run of fewer texts takes away only with a fault."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reliability.fuzz_record import RECORD, FuzzRow, keep_row

from places import PLACES

ROW = FuzzRow("openai-chat sends 'data: '", "2026-11-26", "5186d803", 100_000, 158_000_000, 123, 19.5, 0, 0)


def rows(path: Path) -> list[FuzzRow]:
    return [FuzzRow.read(line) for line in path.read_text("utf-8").splitlines() if line.startswith("| `")]


def test_rows_are_kept_by_their_readers(tmp_path: Path) -> None:
    path = tmp_path / "FUZZ.md"
    other = replace(ROW, reader="json", worst=1234.5)
    keep_row(ROW, path)
    keep_row(other, path)
    assert rows(path) == [other, ROW]
    keep_row(replace(ROW, texts=1), path)
    assert rows(path) == [other, ROW]
    keep_row(newer := replace(ROW, date="2026-11-27"), path)
    assert rows(path) == [other, newer]
    keep_row(wrong := replace(ROW, texts=1, slow=2, fault=1), path)
    assert rows(path) == [other, wrong]


def test_rounds_are_one_row() -> None:
    second = FuzzRow(ROW.reader, "2026-11-27", "01e8e0df", 300_000, 2, 223, 40.0, 3, 1)
    assert ROW + second == FuzzRow(ROW.reader, "2026-11-27", "01e8e0df", 400_000, 158_000_002, 198, 40.0, 3, 1)


def test_the_record_names_readers_that_are_there() -> None:
    kept = rows(RECORD)
    assert kept and {row.reader for row in kept} <= set(PLACES)
