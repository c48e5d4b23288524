"""`make package`: wheel and source archive, the same bytes in every build, with a bill of materials.

    python scripts/package.py [--folder dist] [--install]

Times in the archives are that of the last commit (SOURCE_DATE_EPOCH, where it is set). With --install the wheel goes
into an empty environment, as `pip install` and `uvx` would put it there, and asks a model: that needs a package index.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
#: What an installed wheel is asked: a model on a port of this machine, by a program that the wheel alone serves.
TRIED = """
import dragoman
from dragoman.testing import FakeModel
with FakeModel("It works.").serve() as served:
    print(dragoman.Client(base_url=served.url + "/v1", protocol="openai-chat").reply("m", "hi"))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=PROJECT / "dist")
    parser.add_argument("--install", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as other:
        first, second = build(options.folder), build(Path(other))
        different = [name for name in first if second.get(name) != first[name]]
    if different or first.keys() != second.keys():
        print(f"two builds differ: {', '.join(different) or 'other files'}", file=sys.stderr)
        return 1
    for name, digest in first.items():
        print(f"{digest}  {name}")
    bill = options.folder / f"dragoman-{version()}.cdx.json"
    bill.write_text(json.dumps(bill_of_materials(), indent=1) + "\n", encoding="utf-8")
    print(f"{len(bill_of_materials()['components'])} components  {bill.name}")
    return try_wheel(next(options.folder.glob("*.whl"))) if options.install else 0


def version() -> str:
    return str(tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def epoch() -> str:
    """Seconds since 1970 of the last commit; where there is none, the day on which ZIP's calendar begins."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    if told:
        return told
    run = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=PROJECT, capture_output=True, text=True, check=False)
    return run.stdout.strip() or "315532800"


def build(folder: Path) -> dict[str, str]:
    """Build both archives there; gives the SHA-256 of each."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("dragoman-*.whl"), *folder.glob("dragoman-*.tar.gz")):
        old.unlink()
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(folder)],
        cwd=PROJECT, check=True, capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH": epoch()},
    )  # fmt: skip
    made = sorted((*folder.glob("dragoman-*.whl"), *folder.glob("dragoman-*.tar.gz")))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}


def bill_of_materials() -> dict[str, object]:
    """What the extra `all` installs, pinned, in CycloneDX 1.6 (ECMA-424), without a time or a number of its own: the
    same lock gives the same bill."""
    lock = (PROJECT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    components = []
    for entry in re.split(r"^(?=[\w.-]+==)", lock, flags=re.MULTILINE)[1:]:
        name, pinned = re.match(r"([\w.-]+)==([^\s;]+)", entry).groups()  # type: ignore[union-attr]
        plain = re.sub(r"[-_.]+", "-", name).lower()
        components.append(
            {
                "type": "library",
                "bom-ref": f"pkg:pypi/{plain}@{pinned}",
                "name": plain,
                "version": pinned,
                "purl": f"pkg:pypi/{plain}@{pinned}",
                "externalReferences": [
                    {
                        "type": "distribution",
                        "url": f"pkg:pypi/{plain}@{pinned}",
                        "hashes": [
                            {"alg": "SHA-256", "content": found}
                            for found in re.findall(r"sha256:([0-9a-f]{64})", entry)
                        ],
                    }
                ],
            }
        )
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library", "bom-ref": f"pkg:pypi/dragoman@{version()}", "name": "dragoman",
                "version": version(), "purl": f"pkg:pypi/dragoman@{version()}",
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": [
            {"ref": f"pkg:pypi/dragoman@{version()}", "dependsOn": [each["bom-ref"] for each in components]}
        ],
    }  # fmt: skip


def try_wheel(wheel: Path) -> int:
    """Install the wheel alone, as somebody would who has nothing yet, and ask a model with it."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if os.name == "nt" else "bin") / "python"
        quiet = ["-qq", "--disable-pip-version-check"]
        subprocess.run([str(python), "-m", "pip", "install", *quiet, str(wheel)], check=True)
        listed = subprocess.run(
            [str(python), "-m", "pip", "list", "--format=json", "--exclude=pip", "--exclude=setuptools"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        print("pip install dragoman brings", ", ".join(each["name"] for each in json.loads(listed.stdout)))
        run = subprocess.run([str(python), "-I", "-c", TRIED], capture_output=True, text=True, check=False, timeout=60)
        print(f"asked a model: {run.stdout.strip() or run.stderr.strip()}")
        if run.stdout != "It works.\n":
            return 1
        if uvx := shutil.which("uvx", path=f"{PROJECT / '.venv-lock' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"):
            # A cache of its own: uv would else take another wheel of this version for this one.
            environment = {**os.environ, "UV_CACHE_DIR": str(Path(folder) / "uv")}
            run = subprocess.run(
                [uvx, "--from", str(wheel), "dragoman", "--version"], capture_output=True, text=True, check=False,
                env=environment, timeout=300,
            )  # fmt: skip
            print(f"uvx: {run.stdout.strip() or run.stderr.strip()}")
            return int(run.stdout != f"dragoman {version()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
