"""Start and stop the embedded model's server process."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import secrets
import subprocess
import sys
import threading
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import IO, Final, Self, final

from dragoman import _json
from dragoman.embedded.handshake import INSTALL_LINE, KEY_VARIABLE, NotReady, Ready
from dragoman.embedded.weights import SMOLLM2, Progress, load_weights
from dragoman.errors import DragomanError, UsageError

_CLOSE_SECONDS: Final = 5.0
_LOG_LIMIT: Final = 2_000  # bytes at the end of the child's log to look for a reason in
_parse_ready_line: Final = _json.typed_decoder(Ready)
_parse_refusal: Final = _json.typed_decoder(NotReady)


class EmbeddedError(DragomanError):
    """The embedded model could not be started."""


@final
class EmbeddedServer:
    """A running embedded model. Close it, or use it as a context manager; it also ends with this process.

    Attributes:
        url: base URL, `http://127.0.0.1:PORT`; below it `/v1/chat/completions`, `/v1/messages`, `/v1/responses`.
        api_key: the key that every request must carry, new for each server; masked in the repr.
        model: the model's name in requests and responses.
        pid: process id of the server.
        sha256: SHA-256 of the model file, in hex, as the server's process read it.
    """

    __slots__ = ("_process", "api_key", "model", "pid", "sha256", "url")

    def __init__(
        self, process: subprocess.Popen[bytes], *, url: str, api_key: str, model: str, pid: int, sha256: str
    ) -> None:
        self._process = process
        self.url = url
        self.api_key = api_key
        self.model = model
        self.pid = pid
        self.sha256 = sha256

    def __repr__(self) -> str:
        return f"EmbeddedServer(url={self.url!r}, model={self.model!r}, pid={self.pid}, api_key=***)"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def is_running(self) -> bool:
        """Return whether the server's process is alive."""
        return self._process.poll() is None

    def close(self) -> None:
        """Stop the server's process. A second call does nothing."""
        _end(self._process)


def check_model(model: str | Path) -> None:
    """Raise UsageError for what `start` does not accept as a model."""
    if model != SMOLLM2.name and not Path(model).is_file():
        seen = repr(str(model)[:200])
        raise UsageError(f"unknown embedded model {seen}: it is {SMOLLM2.name}, or the path of a GGUF file")


def start(
    model: str | Path = "smollm2",
    *,
    alias: str | None = None,
    context: int = 2048,
    timeout: float = 120.0,
    cache: Path | None = None,
    on_progress: Progress | None = None,
) -> EmbeddedServer:
    """Start a model and wait until it serves. Blocking: in asyncio, `await asyncio.to_thread(start)`.

    Args:
        model: "smollm2", whose weights (93 MB) are fetched the first time, or the path of a GGUF file.
        alias: the model's name in requests; by default "smollm2", or the file's name without its ending.
        context: context window in tokens; memory grows with it (212 MB at 2048, 310 MB at 4096 for smollm2).
        timeout: seconds from the start of the process until it serves; fetching the weights does not count.
        cache: the folder for the weights, for other than the user's cache folder.
        on_progress: told (bytes so far, bytes in total) while weights are fetched.

    Raises:
        UsageError: there is no such model.
        EmbeddedError: the extra is missing, the processor or file is unfit, or it took longer than `timeout`.
        WeightsError: the weights could not be fetched.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise EmbeddedError(f"the embedded model needs an extra: {INSTALL_LINE}")
    check_model(model)
    path = load_weights(SMOLLM2, cache=cache, on_progress=on_progress) if model == SMOLLM2.name else Path(model)
    name = alias or (SMOLLM2.name if model == SMOLLM2.name else path.stem)
    api_key = secrets.token_urlsafe(24)
    import tempfile  # loads readers of archives; a gateway without such a server has no need of them

    arguments = [f"--model={path}", f"--alias={name}", f"--context={context}"]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            # -P: nothing is imported from the current folder.
            [sys.executable, "-P", "-m", "dragoman.embedded.child", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, KEY_VARIABLE: api_key},
            start_new_session=True,  # Ctrl-C in the terminal is for us; the child ends when we close its input
        )
        try:
            ready = _parse_ready(_first_line(process, timeout), process, log)
        except BaseException:
            _end(process)
            raise
    return EmbeddedServer(process, url=ready.url, api_key=api_key, model=name, pid=ready.pid, sha256=ready.model_sha256)


def _first_line(process: subprocess.Popen[bytes], timeout: float) -> bytes:
    assert process.stdout is not None
    lines: SimpleQueue[bytes] = SimpleQueue()
    # A thread, because a pipe cannot be read with a timeout on every platform.
    threading.Thread(target=lambda stream: lines.put(stream.readline()), args=(process.stdout,), daemon=True).start()
    try:
        return lines.get(timeout=timeout)
    except Empty:
        raise EmbeddedError(
            f"the embedded model was not ready after {timeout:g} s; give it more with timeout=…"
        ) from None


def _parse_ready(line: bytes, process: subprocess.Popen[bytes], log: IO[bytes]) -> Ready:
    """Return the child's message. Raises EmbeddedError if it reports an error or is missing."""
    ready = _parse_ready_line(line)
    if isinstance(ready, Ready):
        return ready
    refused = _parse_refusal(line)
    if isinstance(refused, NotReady):
        raise EmbeddedError(f"the embedded model could not start: {refused.error}{_reason(log)}")
    _end(process)
    raise EmbeddedError(f"the embedded model ended with status {process.returncode} before it served{_reason(log)}")


def _reason(log: IO[bytes]) -> str:
    """Return the first error line at the end of the child's log, ready to be appended; "" if there is none."""
    log.seek(0)
    lines = log.read()[-_LOG_LIMIT:].decode("utf-8", errors="replace").splitlines()
    errors = [line.strip() for line in lines if " E " in line or "Error" in line]
    return f" ({errors[0]})" if errors else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close the child's input, which ends it; kill it if that was not enough."""
    with contextlib.suppress(OSError):  # it may be gone already
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(_CLOSE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
