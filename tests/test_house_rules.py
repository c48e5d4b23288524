"""Rules of CONTRIBUTING that no linter knows: size, and shared code that does not ask for a name."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from dragoman.types import ProtocolName

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "dragoman"
SOURCES = sorted(PACKAGE.rglob("*.py"))

FILE_LINES = 400
FUNCTION_LINES = 60

# What is over a limit, with its own: it may shrink, never grow, and nothing joins it without a reason beside it.
LARGER_FILES: dict[str, int] = {
    "gateway/server/connection.py": 404,  # one automaton between two timers
    "codec/parts/assembly.py": 700,  # one automaton; its states share every attribute
    "events.py": 480,  # the vocabulary and its fold stand or fall together
    "codec/framing/body.py": 614,  # two readers over one buffer
}
LARGER_FUNCTIONS: dict[str, int] = {}

UNWANTED_MODULES = {"utils", "helpers", "common", "manager", "base"}


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """(name, lines) of each function of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{relative(path)}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_files_stay_short() -> None:
    sizes = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: size for name, size in sizes.items() if size > LARGER_FILES.get(name, FILE_LINES)} == {}
    assert {name for name in LARGER_FILES if sizes.get(name, 0) <= FILE_LINES} == set(), "no longer an exception"


def test_functions_stay_short() -> None:
    sizes = dict(found for path in SOURCES for found in functions(path))
    assert {name: size for name, size in sizes.items() if size > LARGER_FUNCTIONS.get(name, FUNCTION_LINES)} == {}
    assert {name for name in LARGER_FUNCTIONS if sizes.get(name, 0) <= FUNCTION_LINES} == set(), (
        "no longer an exception"
    )


def test_no_module_is_a_drawer() -> None:
    assert [relative(path) for path in SOURCES if path.stem.strip("_") in UNWANTED_MODULES] == []


def test_shared_code_compares_no_protocol_name() -> None:
    """A protocol's name may be a key, a default or a value; code that asks "which one is it" belongs in its folder."""
    names = set(get_args(ProtocolName))
    found = [
        f"{relative(path)}:{node.lineno}"
        for path in SOURCES
        if "protocols" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare | ast.MatchValue)
        for leaf in ast.walk(node)
        if isinstance(leaf, ast.Constant) and leaf.value in names
    ]
    assert found == []


#: Whose keywords are the user's own words.
USERS_KEYWORDS = {"testing/turns.py:call"}  # the arguments of a tool


def test_no_function_takes_unnamed_keywords() -> None:
    found = [
        f"{relative(path)}:{node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.kwarg
    ]
    assert set(found) == USERS_KEYWORDS
