"""The command line in this process: for what it reads and says, a process of its own adds only imports."""

from __future__ import annotations

import io
import os
import subprocess
import tempfile
from unittest.mock import patch

from dragoman.cli.main import main


def run_here(*words: str, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess[bytes]:
    """What `dragoman` with these words gives, as `subprocess.run` has it."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        given = io.TextIOWrapper(file, encoding="utf-8")
        with (
            patch("sys.stdin", given),
            patch("sys.stdout", out),
            patch("sys.stderr", err),
            patch.dict(os.environ, {"NO_COLOR": "1", **environ}),
        ):
            try:
                status = main(words)
            except SystemExit as ended:
                status = int(ended.code or 0)
    for stream in (out, err):
        stream.flush()
    return subprocess.CompletedProcess(words, status, out.buffer.getvalue(), err.buffer.getvalue())  # type: ignore[attr-defined]
