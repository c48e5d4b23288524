"""Every row of what newcomers met is held by a test that exists, or says why it is not."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path

from for_each import for_each

TESTS = Path(__file__).resolve().parent
TABLE = tomllib.loads((TESTS / "first_hour.toml").read_text(encoding="utf-8"))
ROWS = [(row, held) for part, rows in TABLE.items() if part not in ("open", "pages") for row, held in rows.items()]
DOCUMENTS = TESTS.parent / "docs"


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_bytes())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@for_each(("row", "held"), ROWS, ids=[row for row, _ in ROWS])
def test_a_row_is_held_by_a_test(row: str, held: str) -> None:
    file, mark, name = held.partition("::")
    if mark:
        assert name.startswith("test_") and name in functions(file)
    else:
        assert (TESTS / held / "case.json").is_file() and file.startswith("corpus/")


@for_each("row", TABLE["pages"])
def test_a_page_has_the_words(row: str) -> None:
    page, words = TABLE["pages"][row]
    assert words in (DOCUMENTS / page).read_text(encoding="utf-8")


def test_what_is_open_says_why() -> None:
    assert all(len(why) > 5 for why in TABLE["open"].values())
