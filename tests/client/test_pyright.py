"""What pyright, and with it an editor, knows of the public interface; from a wheel that brings Node.js along.

Left out where the platform has no such wheel: `tests/conftest.py` says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragoman
import dragoman.testing

DATA = Path(__file__).parents[1] / "data"
DOCUMENTED = (DATA / "interface_programs.txt", DATA / "typed_outputs.py")
WRITTEN = DATA / "written_programs"
BIN = Path(sys.executable).parent


def pyright(folder: Path, *arguments: str, packages: Path = Path(dragoman.__file__).parents[1]) -> dict[str, Any]:
    """Its report, on this environment's packages and those of a folder."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(packages)}
    command = [str(BIN / "basedpyright"), "--outputjson", *arguments]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads(run.stdout)
    return report


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of all programs in one run; the documented ones are held to its strictest."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard", "pythonVersion": "3.11"}')
    for file in DOCUMENTED:
        (folder / file.with_suffix(".py").name).write_text(f"# pyright: strict\n{file.read_text()}")
    shutil.copytree(WRITTEN, folder / WRITTEN.name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "wrong.py").write_text('import dragoman\n\nnumber: int = dragoman.reply("a/b", "c").output\n')
    found = pyright(folder)
    assert found["summary"]["filesAnalyzed"] == len(DOCUMENTED) + 8 + 1
    return found


def said(report: dict[str, Any], severity: str, *places: str) -> list[str]:
    """Its messages of files in whose path one of these stands."""
    return [
        each["message"]
        for each in report["generalDiagnostics"]
        if each["severity"] == severity and any(place in each["file"] for place in places)
    ]


def surface() -> list[tuple[str, str]]:
    """Module and public name."""
    return [(module.__name__, name) for module in (dragoman, dragoman.testing) for name in module.__all__]


def test_it_is_content_with_the_documented_programs_and_infers_their_outputs(report: dict[str, Any]) -> None:
    names = [file.stem for file in DOCUMENTED]
    assert said(report, "error", *names) == [] and said(report, "warning", *names) == []
    assert [message.rpartition(" is ")[2].strip('"') for message in said(report, "information", *names)] == [
        "City", "City", "str", "City", "list[City]", "None", "City", "City", "Answer[None]",
    ]  # fmt: skip


def test_it_is_content_with_programs_that_were_written_from_the_documents_alone(report: dict[str, Any]) -> None:
    assert said(report, "error", WRITTEN.name) == [] and said(report, "warning", WRITTEN.name) == []


def test_it_is_not_content_with_everything(report: dict[str, Any]) -> None:
    assert len(said(report, "error", "wrong.py")) == 1


def test_it_knows_the_type_of_every_public_name_and_of_what_it_has(tmp_path: Path) -> None:
    """Of a module with the public names alone: of the package it would look at every room."""
    copy = shutil.copytree(Path(dragoman.__file__).parent, tmp_path / "dragoman")
    (copy / "surface").mkdir()
    lines = [f"from {module} import {name} as {name}\n" for module, name in surface()]
    (copy / "surface" / "__init__.py").write_text("".join(lines))
    asked = ("--verifytypes", "dragoman.surface", "--ignoreexternal")
    symbols = pyright(tmp_path, *asked, packages=tmp_path)["typeCompleteness"]["symbols"]
    known = {each["name"]: each["isTypeKnown"] and not each["isTypeAmbiguous"] for each in symbols}
    names = {f"dragoman.surface.{name}" for _, name in surface()}
    assert "dragoman.client.synchronous.Client.run" in known and names <= known.keys()
    ours = [name for name in known if name.startswith("dragoman.")]
    # The functions of one shared client are methods of its class, which are known.
    shared = {f"dragoman.surface.{name}" for name in dragoman._SHARED}
    assert {name for name in ours if not known[name]} == shared
