"""Installs the clients: each in a folder of its own under .clients/, pinned by the files in locks/."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from driver import INSTALLED, NODE, ROOT

LOCKS = Path(__file__).resolve().parent / "locks"
_SECONDS = 1200


class NotInstalled(Exception):
    """What could not be installed, in one line."""


def install(name: str) -> Path:
    """Install what `locks/` names so, unless it is there and of this lock.

    Raises:
        NotInstalled: the installer failed; its last words are in the message.
    """
    place = INSTALLED / name
    file = LOCKS / name / "package-lock.json"
    is_npm = file.exists()
    file = file if is_npm else LOCKS / f"{name}.txt"
    mark = place / ".installed"
    seen = hashlib.sha256(file.read_bytes()).hexdigest()
    if mark.exists() and mark.read_text() == seen:
        return place
    shutil.rmtree(place, ignore_errors=True)
    (_install_npm if is_npm else _install_pypi)(name, place)
    mark.write_text(seen)
    return place


def version(place: Path, package: str) -> str:
    """The installed version of a package."""
    manifest = place / "node_modules" / package / "package.json"
    if manifest.exists():
        return str(json.loads(manifest.read_text(encoding="utf-8"))["version"])
    wanted = package.replace("-", "_").lower()
    for found in place.glob("lib/python3*/site-packages/*.dist-info"):
        name, _, number = found.name.removesuffix(".dist-info").partition("-")
        if name.lower() == wanted:
            return number
    raise NotInstalled(f"{package} is not in {place.name}")


def _install_pypi(name: str, place: Path) -> None:
    tool = _uv()
    _call([tool, "venv", "--quiet", "--no-config", "--python", sys.executable, str(place)])
    sync = [tool, "pip", "sync", "--quiet", "--no-config", "--require-hashes", "--python", str(place / "bin/python")]
    _call([*sync, str(LOCKS / f"{name}.txt")])


def _uv() -> str:
    """The installer, locked by hash like the project's own tools."""
    place = INSTALLED / "uv"
    if not (place / "bin/uv").exists():
        _call([sys.executable, "-m", "venv", str(place)])
        pip = [str(place / "bin/python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        _call([*pip, "--no-deps", "--require-hashes", "-r", str(ROOT / "requirements/uv.txt")])
    return str(place / "bin/uv")


def _install_npm(name: str, place: Path) -> None:
    """With npm's lock: exact versions, no addresses. Only the client's own install script runs, if it has one."""
    install("node")
    place.mkdir(parents=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copy(LOCKS / name / file, place / file)
    npm = [str(NODE / "bin/node"), str(NODE / "lib/node_modules/npm/bin/npm-cli.js")]
    # `npm ci` refuses locks that lack the packages of other platforms; this takes the same versions.
    command = [*npm, "install", "--no-save", "--ignore-scripts", "--no-fund", "--no-audit", "--loglevel=error"]
    path = f"{NODE}/bin:{os.environ['PATH']}"
    _call(command, folder=place, path=path)
    packages = json.loads((place / "package.json").read_text(encoding="utf-8"))["dependencies"]
    _call([*npm, "rebuild", "--loglevel=error", *packages], folder=place, path=path)


def _call(command: Sequence[str], *, folder: Path = ROOT, path: str = "") -> None:
    environ = {**os.environ, "PATH": path} if path else None
    try:
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NotInstalled(str(problem)[:200]) from None
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).strip().splitlines() if line.strip()]
        raise NotInstalled((lines or ["no word of why"])[0][:200])
