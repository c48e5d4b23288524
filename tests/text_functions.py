"""Every public function of the package that takes a text first, found in the syntax trees."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from patterns import ROOT

_TEXTS = frozenset({"str", "bytes", "bytearray", "Json", "Raw", "bytes | str", "str | bytes", "bytes | str | Raw"})


class TextFunction(NamedTuple):
    """A function: where it stands, and the names of what it needs beside the text."""

    place: str  # "gateway/messages.py query_values"
    needs: tuple[str, ...]
    takes: str

    @property
    def run(self) -> Callable[..., Any]:
        path, _, name = self.place.partition(" ")
        words = ("dragoman", *path.removesuffix(".py").split("/"))
        module = importlib.import_module(".".join(words).removesuffix(".__init__"))
        found: Callable[..., Any] = getattr(module, name)
        return found


def text_functions() -> Iterator[TextFunction]:
    """All of them, those that wait for something left out."""
    for path in sorted(ROOT.rglob("*.py")):
        yield from functions_in(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


def functions_in(path: str, source: str) -> Iterator[TextFunction]:
    """Those of one file."""
    for node in ast.parse(source).body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        words = [*node.args.posonlyargs, *node.args.args]
        takes = ast.unparse(words[0].annotation) if words and words[0].annotation is not None else ""
        if takes in _TEXTS:
            needed = words[1 : len(words) - len(node.args.defaults)]
            keywords = [
                word for word, usual in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if usual is None
            ]
            yield TextFunction(f"{path} {node.name}", tuple(word.arg for word in (*needed, *keywords)), takes)
