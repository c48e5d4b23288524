"""What `make fuzz` found of each reader, kept by the reader's name in `bench/FUZZ.md`."""

from __future__ import annotations

import fcntl
from dataclasses import astuple, dataclass, fields
from pathlib import Path

#: Where the rows are kept.
RECORD = Path(__file__).parent.parent / "bench" / "FUZZ.md"
_HEAD = """# Made-up texts for each reader

Written by `make fuzz` (`reliability/fuzz_time.py`), a row a reader. A run takes a row's place if it tried as many
texts or found a fault. "ns": median processor time of a byte. "worst": the dearest text, in medians of texts of its
size, the best of three; 20 where a second look found less. "slow": texts over 20 ×. "fault": those of them that grow
by more than their length or take over 4 µs a byte.

"""


@dataclass(frozen=True, slots=True)
class FuzzRow:
    """What one run found of one reader; the fields are the columns."""

    reader: str
    date: str
    commit: str
    texts: int
    characters: int
    ns: int
    worst: float
    slow: int
    fault: int

    @classmethod
    def read(cls, line: str) -> FuzzRow:
        """A row as `line` writes it."""
        reader, date, commit, *numbers = (cell.strip() for cell in line.strip().strip("|").split("|"))
        texts, characters, ns, worst, slow, fault = (number.replace(",", "") for number in numbers)
        return cls(
            reader.strip("`"), date, commit, int(texts), int(characters), int(ns), float(worst), int(slow), int(fault)
        )

    def __add__(self, other: FuzzRow) -> FuzzRow:
        """The row of these texts and of further ones."""
        texts = self.texts + other.texts
        return FuzzRow(
            self.reader,
            other.date,
            other.commit,
            texts,
            self.characters + other.characters,
            round((self.ns * self.texts + other.ns * other.texts) / texts),
            max(self.worst, other.worst),
            self.slow + other.slow,
            self.fault + other.fault,
        )

    def line(self) -> str:
        """The row of a table of Markdown."""
        reader, date, commit, *numbers = astuple(self)
        return f"| `{reader}` | {date} | {commit} | " + " | ".join(f"{number:,}" for number in numbers) + " |"


def keep_row(row: FuzzRow, path: Path = RECORD) -> None:
    """Put a reader's row into the record, unless one of more texts stands there and this one found no fault.

    Several runs may write at once: each takes a lock.
    """
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        rows = {each.reader: each for each in map(FuzzRow.read, _lines(file.read()))}
        standing = rows.get(row.reader)
        if standing is None or row.texts >= standing.texts or row.fault:
            rows[row.reader] = row
        file.seek(0)
        file.truncate()
        file.write(_HEAD + _table([rows[name] for name in sorted(rows)]))


def _lines(text: str) -> list[str]:
    """The lines of the rows."""
    return [line for line in text.splitlines() if line.startswith("| `")]


def _table(rows: list[FuzzRow]) -> str:
    names = [each.name for each in fields(FuzzRow)]
    marks = ["---"] * 3 + ["--:"] * (len(names) - 3)
    return "\n".join([f"| {' | '.join(names)} |", f"|{'|'.join(marks)}|", *(row.line() for row in rows)]) + "\n"
