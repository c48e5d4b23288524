"""The child process of the embedded model: llama.cpp's own HTTP server, in a process of its own.

    python -m dragoman.embedded.child --model FILE.gguf --alias NAME [--context TOKENS]

It serves `/v1/chat/completions`, `/v1/messages` and `/v1/responses` on a free port of 127.0.0.1. When it is ready to
serve it prints one line of JSON, `{"url": …, "pid": …, "model_sha256": …}`, or `{"error": …}` when it cannot. It ends
when its standard input ends, so it does not outlive the process that started it.

A process of its own, because the native server cannot be stopped and a crash in it would take the caller along.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NoReturn, Protocol

from dragoman import _json
from dragoman.embedded.handshake import INSTALL_LINE, KEY_VARIABLE, NotReady, Ready
from dragoman.embedded.weights import sha256_of

TEMPLATE: Final = Path(__file__).with_name("chatml_tools.jinja")

_NEEDED_CPU_FLAGS: Final = frozenset({"avx2", "fma"})
_MAX_OUTPUT_TOKENS: Final = 1024  # a request without its own limit must not write until the context is full
_PARENT_CHECK_SECONDS: Final = 1.0


class Server(Protocol):
    """The used part of `xllamacpp.Server`, which has no types."""

    @property
    def listening_address(self) -> str: ...


def main() -> None:
    """Serve until standard input ends; exit 1 when the server cannot start."""
    parser = argparse.ArgumentParser(
        prog="python -m dragoman.embedded.child", description="Serve one GGUF file on 127.0.0.1."
    )
    parser.add_argument("--model", type=Path, required=True, help="a GGUF file")
    parser.add_argument("--alias", default="embedded", help="the model's name in responses")
    parser.add_argument("--context", type=int, default=2048, metavar="TOKENS", help="context window (default: 2048)")
    options = parser.parse_args()
    say = _take_stdout()
    parent = os.getppid()
    threading.Thread(target=_exit_at_end_of_input, daemon=True).start()
    try:
        server = load_server(
            options.model, alias=options.alias, context=options.context, api_key=os.environ.pop(KEY_VARIABLE, None)
        )
    except (OSError, RuntimeError, ImportError) as error:
        say(NotReady(str(error)))
        _exit(1)
    say(Ready(server.listening_address, os.getpid(), sha256_of(options.model)))
    # Belt and braces: a process forked by the parent may hold our input open after the parent has died.
    # (Not PR_SET_PDEATHSIG: it fires when the *thread* that started us ends, and callers start us from worker threads.)
    while os.name == "nt" or os.getppid() == parent:
        time.sleep(_PARENT_CHECK_SECONDS)
    _exit(0)


def load_server(model: Path, *, alias: str, context: int, api_key: str | None) -> Server:
    """Load `model` and serve it on a free port of 127.0.0.1 for as long as the returned object is kept.

    Args:
        model: a GGUF file; its own chat template is not used, since most small models' templates drop tools silently.
        alias: the name that responses carry.
        context: context window in tokens.
        api_key: the key that requests must carry; None serves without one.

    Returns:
        The native server; `listening_address` is its base URL, `http://127.0.0.1:PORT`. Never drop it: its destructor
        waits for a main loop that nothing can stop.

    Raises:
        ImportError: xllamacpp is not installed.
        OSError: the file is missing, or this processor lacks AVX2 or FMA.
        RuntimeError: the file is no model that llama.cpp can load.
    """
    if not model.is_file():
        raise FileNotFoundError(f"expected a GGUF file at {model}, found none")
    if missing := missing_cpu_flags():
        raise OSError(
            f"the embedded model needs a processor with AVX2 and FMA; this one has no {' and no '.join(missing)}"
        )
    try:
        import xllamacpp
    except ImportError as error:
        raise ImportError(f"the embedded model needs an extra: {INSTALL_LINE} ({error})") from error
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.model_alias = {alias}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = context
    parameters.n_predict = min(_MAX_OUTPUT_TOKENS, context)
    parameters.n_parallel = 1
    parameters.warmup = False
    parameters.ui = False
    parameters.use_jinja = True
    parameters.chat_template = TEMPLATE.read_text(encoding="utf-8")
    # One thread: with more on busy cores the OpenMP spin makes it 20 times slower.
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    if api_key is not None:
        parameters.api_keys = [api_key]
    server: Server = xllamacpp.Server(parameters)
    return server


def missing_cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Return the processor features that the native wheel needs and this machine lacks; none if that cannot be told."""
    if platform.machine().lower() not in ("x86_64", "amd64") or not cpuinfo.is_file():
        return []
    for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, flags = line.partition(":")
        if name.strip() == "flags":
            return sorted(flag.upper() for flag in _NEEDED_CPU_FLAGS - set(flags.split()))
    return []


def _take_stdout() -> Callable[[Ready | NotReady], None]:
    """Reserve standard output for our one line, and redirect what native code prints there to standard error."""
    line_out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def say(line: Ready | NotReady) -> None:
        line_out.write(_json.encode(line) + b"\n")
        line_out.close()

    return say


def _exit_at_end_of_input() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    _exit(0)


def _exit(status: int) -> NoReturn:
    # Not sys.exit: the native server has threads that a normal exit would tear down in the middle of their work.
    os._exit(status)


if __name__ == "__main__":
    main()
