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

import dragoman
import dragoman.testing

DATA = Path(__file__).parents[1] / "data"
BIN = Path(sys.executable).parent


def pyright(folder: Path, *arguments: str) -> dict[str, Any]:
    """Its report, on this environment's packages."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    command = [str(BIN / "basedpyright"), "--outputjson", *arguments]
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    report: dict[str, Any] = json.loads(run.stdout)
    return report


def said(report: dict[str, Any], severity: str) -> list[str]:
    return [each["message"] for each in report["generalDiagnostics"] if each["severity"] == severity]


def public_names() -> list[str]:
    """As pyright has them: by the module that defines each."""
    return [
        f"{getattr(value, '__module__', None) or module.__name__}.{name}"
        for module in (dragoman, dragoman.testing)
        for name, value in ((each, getattr(module, each)) for each in module.__all__)
    ]


def test_it_is_content_with_the_documented_programs_and_infers_their_outputs(tmp_path: Path) -> None:
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "pythonVersion": "3.11"}')
    shutil.copy(DATA / "interface_programs.txt", tmp_path / "interface_programs.py")
    shutil.copy(DATA / "typed_outputs.py", tmp_path)
    report = pyright(tmp_path)
    assert report["summary"]["filesAnalyzed"] == 2
    assert said(report, "error") == [] and said(report, "warning") == []
    assert [message.rpartition(" is ")[2].strip('"') for message in said(report, "information")] == [
        "City", "City", "str", "City", "list[City]", "None", "City", "City", "Answer[None]",
    ]  # fmt: skip


def test_it_is_content_with_programs_that_were_written_from_the_documents_alone(tmp_path: Path) -> None:
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard", "pythonVersion": "3.11"}')
    shutil.copytree(
        DATA / "written_programs", tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    report = pyright(tmp_path)
    assert report["summary"]["filesAnalyzed"] == 8
    assert said(report, "error") == [] and said(report, "warning") == []


def test_it_is_not_content_with_everything(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text('import dragoman\n\nnumber: int = dragoman.reply("a/b", "c").output\n')
    assert len(said(pyright(tmp_path), "error")) == 1


def test_it_knows_the_type_of_every_public_name_and_of_what_it_has(tmp_path: Path) -> None:
    symbols = pyright(tmp_path, "--verifytypes", "dragoman", "--ignoreexternal")["typeCompleteness"]["symbols"]
    known = {each["name"]: each["isTypeKnown"] and not each["isTypeAmbiguous"] for each in symbols}
    classes = [name for name in public_names() if name in known]
    assert "dragoman.client.synchronous.Client" in classes and "dragoman.client.synchronous.Client.run" in known
    unknown = [name for name, is_known in known.items() if not is_known]
    assert [name for name in unknown if name.startswith(tuple(f"{each}." for each in classes)) or name in classes] == []
