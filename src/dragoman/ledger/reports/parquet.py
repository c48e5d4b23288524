"""Export attempts as Parquet with DuckDB in this process: it reads JSON lines and writes the file.

Only this file imports DuckDB. It uses no network: extensions that are not built in are neither loaded nor fetched.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from dragoman import _json
from dragoman.errors import MissingExtra
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.reports.exporting import HEAD, export_rows

try:
    import duckdb
except ImportError:
    raise MissingExtra('a file of Parquet needs the extra "export": pip install "dragoman[export]"') from None

_SETTINGS: Final = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "threads": "1"}
_TEXTS: Final = frozenset(
    ("id", "request", "holder", "key", "owner", "team", "route", "target", "accounts", "client_request", "state",
     "reason", "provider_request")
)  # fmt: skip
_COLUMNS: Final = ", ".join(
    f"{name}: '{'VARCHAR' if name in _TEXTS else 'BOOLEAN' if name == 'reported' else 'BIGINT'}'" for name in HEAD
)


def export_parquet(folder: LedgerFolder, file: Path, *, since: float = 0.0) -> int:
    """Write a Parquet file with the columns of `export_csv`. Return the number of rows.

    An existing file is replaced when all is written. Texts are written as they are.

    Args:
        since: Unix seconds.

    Raises:
        StoreAway: the store cannot be read.
        OSError: the file cannot be written.
    """
    count = 0
    with tempfile.TemporaryDirectory(prefix=".dragoman-", dir=file.absolute().parent) as name:
        lines, whole = Path(name) / "rows", Path(name) / "parquet"
        with lines.open("wb") as out:
            for row in export_rows(folder, since=since):
                out.write(_json.encode(_fields(row)) + b"\n")
                count += 1
        try:
            _convert(lines, whole)
        except duckdb.Error as problem:  # its words may quote a row
            raise OSError(f"{file.name}: {type(problem).__name__} of DuckDB") from None
        os.replace(whole, file)
    return count


def _fields(row: tuple[object, ...]) -> dict[str, object]:
    fields = dict(zip(HEAD, row, strict=True))
    fields["reported"] = bool(fields["reported"])
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in fields.items()}


def _convert(lines: Path, file: Path) -> None:
    with duckdb.connect(":memory:", config={**_SETTINGS}) as connection:
        rows = f"read_json({_quoted(lines)}, format = 'newline_delimited', columns = {{{_COLUMNS}}})"
        connection.execute(f"COPY (SELECT * FROM {rows}) TO {_quoted(file)} (FORMAT parquet, COMPRESSION zstd)")


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
