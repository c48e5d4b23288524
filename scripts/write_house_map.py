"""The blocks of documents that show the house: its layers from pyproject, its map from the packages' docstrings."""

from __future__ import annotations

import ast
import re
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "src" / "dragoman"
_WIDTH = 118
_COLUMN = 20


def layers() -> list[list[str]]:
    """The layers of the whole package, the highest first: names of modules and packages."""
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    [whole] = [each for each in contracts if each["type"] == "layers" and each["containers"] == ["dragoman"]]
    return [re.findall(r"\w+", layer) for layer in whole["layers"]]


def layers_block() -> str:
    """One line a layer."""
    return "\n".join(["```", *(" · ".join(layer) for layer in layers()), "```"])


def map_block() -> str:
    """Each package and module, in the order of the layers, with what its docstring says first."""
    lines = ["```", "src/dragoman/"]
    for layer in layers():
        for name in layer:
            lines += _entry(name)
    return "\n".join([*lines, "```"])


def _entry(name: str) -> list[str]:
    folder = PACKAGE / name
    if not folder.is_dir():
        return _lines(f"  {name}", _says(folder.with_suffix(".py")))
    rooms = sorted(inner.name for inner in folder.iterdir() if (inner / "__init__.py").exists())
    said = _lines(f"  {name}/", _says(folder / "__init__.py"))
    return said + (_lines("", f"in it: {', '.join(rooms)}") if rooms else [])


def _lines(name: str, words: str) -> list[str]:
    name = f"{name:<{_COLUMN}} " if len(name) <= _COLUMN else f"{name} "
    return textwrap.wrap(words, _WIDTH, initial_indent=name, subsequent_indent=" " * (_COLUMN + 1))


def _says(file: Path) -> str:
    """The first sentence of a file's docstring."""
    words = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first = " ".join(words.partition("\n\n")[0].split())
    return re.split(r"(?<=[.])\s", first)[0].rstrip(".")


#: Document → its blocks by name; each stands between `<!-- NAME: generated -->` and `<!-- end of NAME -->`.
BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    "CONTRIBUTING.md": {"map": map_block},
    "docs/explanation/architecture.md": {"layers": layers_block},
}


def with_blocks(document: str) -> str:
    """The document's text with its blocks as they are now."""
    text = (PROJECT / document).read_text(encoding="utf-8")
    for name, render in BLOCKS[document].items():
        begin, end = f"<!-- {name}: generated -->\n", f"<!-- end of {name} -->"
        before, found, rest = text.partition(begin)
        _, ended, after = rest.partition(end)
        if not found or not ended:
            raise ValueError(f"{document}: expected the marks of the block {name}")
        text = f"{before}{begin}{render()}\n{end}{after}"
    return text
