"""What every drill of `make reliability` and `make security` imports is there: a name that moved ends none of them."""

from __future__ import annotations

import ast
import importlib.util
import re

import reliability
from reliability.run import RELIABILITY, SECURITY, WITH


def test_every_name_that_a_drill_imports_is_there() -> None:
    modules = sorted({*RELIABILITY.values(), *SECURITY.values()})
    missing = []
    for module in modules:
        source = reliability.PROJECT / "reliability" / f"{module}.py"
        for node in ast.parse(source.read_text("utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dragoman"):
                found = importlib.import_module(node.module or "")
                missing += [f"{module}: {each.name}" for each in node.names if not hasattr(found, each.name)
                            and importlib.util.find_spec(f"{node.module}.{each.name}") is None]  # fmt: skip
    assert len(modules) > 40 and not missing


def test_each_row_that_the_page_names_can_be_picked() -> None:
    rows = RELIABILITY | SECURITY
    page = (reliability.PROJECT / "docs/explanation/reliability.md").read_text("utf-8")
    named = set(re.findall(r"\b[RSHCLM]\d+\b", page))
    assert len(named) > 40 and {name for name in named if name not in rows and name not in WITH} == set()
    measured = {
        row: (reliability.PROJECT / "reliability" / f"{module}.py").read_text("utf-8") for row, module in rows.items()
    }
    assert [name for name, others in WITH.items() if not all(f'"{name}"' in measured[other] for other in others)] == []
