"""Our own programs in processes that begin warm: each is forked from a parent that has imported them already.

To import is nine tenths of what a short process costs. `Popen` and `run` are those of `subprocess`; what they cannot
begin warm (another program, an option of Python, another system than Linux) begins as ever. A test of the start itself
(imports, memory, signals while it starts, what `/proc` tells of the command and its environment) has no use for them:
`test_main.py`, `test_misuse.py` and `test_decode.py` of `tests/cli`, those of hostile repositories, of workers, the
watchdog, the heap and loaded modules, `tests/test_packaging.py` and the blocks of the documents that a shell runs stay
with `subprocess`.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import types
import warnings
from pathlib import Path
from typing import Any

#: What the programs import when they run, besides each command and all that lies in these packages.
_MODULES = ("encodings.idna", "httptools", "tomllib", "uvloop", "dragoman.http.pool", "dragoman.client.synchronous")
_PACKAGES = ("dragoman.protocols", "dragoman.gateway.process", "dragoman.agent.ui", "dragoman.testing")
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_DRAGOMAN = str(Path(sys.executable).with_name("dragoman"))
_LOCK = threading.Lock()


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """`subprocess.Popen`. A new session whose standard input is a terminal has it as its own."""

    def _execute_child(self, args: Any, executable: Any, *further: Any) -> None:
        begins, _, pass_fds, folder, environ, _, _, shell, *streams = further[:14]
        session = further[19]
        environ = dict(os.environ if environ is None else environ)
        if executable or begins or pass_fds or shell or not _is_warm(args, environ):
            super()._execute_child(args, executable, begins or (_own_terminal if session else None), *further[1:])
            return
        theirs = [own if given == -1 else given for own, given in enumerate((streams[0], streams[3], streams[5]))]
        asked = {"words": args, "environ": environ, "folder": str(folder or os.getcwd()), "is_session": session}
        self.pid = _begun(asked, theirs)
        self._child_created = True
        self._close_pipe_fds(*streams)  # type: ignore[attr-defined]


def run(words: list[str], *, input: Any = None, timeout: float = 60, **options: Any) -> Any:
    """`subprocess.run` with the output captured."""
    stdin = None if input is None else subprocess.PIPE
    with Popen(words, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as program:
        try:
            out, errors = program.communicate(input, timeout)
        except BaseException:
            program.kill()
            raise
    return subprocess.CompletedProcess(words, program.returncode, out, errors)


def _is_warm(words: Any, environ: dict[str, str]) -> bool:
    if sys.platform != "linux" or not isinstance(words, list):
        return False
    own = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
    if any(name.startswith(("PYTHON", "COVERAGE", "LD_")) and name not in own for name in environ):
        return False
    if any(environ.get(name, "C").upper() not in ("", "C", "C.UTF-8") for name in ("LANG", "LC_ALL", "LC_CTYPE")):
        return False
    if words[0] != sys.executable:
        return bool(words[0] == _DRAGOMAN)
    first = words[3 if words[1] == "-W" else 1]
    return first in ("-c", "-m") or not first.startswith("-")


@functools.cache
def _parent() -> socket.socket:
    ours, theirs = socket.socketpair()
    ours.settimeout(60)
    environ = os.environ | {"LC_ALL": "C.UTF-8"}
    with theirs:
        words = [sys.executable, "-P", __file__, str(theirs.fileno())]  # -P: no folder of tests before the packages
        parent = subprocess.Popen(words, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environ)
    atexit.register(ours.close)  # the last that is registered comes first
    atexit.register(parent.wait)
    atexit.register(parent.kill)
    return ours


def _begun(asked: dict[str, Any], streams: list[int]) -> int:
    """The id of a process that the warm parent began. Its child ends at once, so that the grandchild becomes ours."""
    subreaper = ctypes.CDLL(None).prctl
    with _LOCK:
        assert not subreaper(_SUBREAPER, 1, 0, 0, 0), "else nobody would learn its exit status"
        try:
            socket.send_fds(_parent(), [b"!"], streams)
            _parent().sendall(json.dumps(asked).encode() + b"\n")
            said = b""
            while not said.endswith(b"\n"):
                said += _parent().recv(100) or b"0\n"
        finally:
            subreaper(_SUBREAPER, 0, 0, 0, 0)
    assert int(said), "the warm parent has ended"
    return int(said)


def _own_terminal() -> None:
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


# ---------------------------------------------------------------- in the parent, and in what is forked from it


def _serve(channel: socket.socket) -> None:
    """Fork for each request, until nobody is left who asks. What is forked returns into its own program."""
    from dragoman.cli.main import COMMANDS

    for name in (*_MODULES, *(f"dragoman.cli.commands.{command}" for command in COMMANDS)):
        importlib.import_module(name)
    for package in map(importlib.import_module, _PACKAGES):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    while handles := socket.recv_fds(channel, 1, 3)[1]:
        with channel.makefile("rb") as file:
            asked = json.loads(file.readline())
        middle = os.fork()
        if middle == 0:
            pid = os.fork()
            if pid == 0:
                channel.close()
                _become(asked, handles)
                return
            channel.send(str(pid).encode())
            os._exit(0)
        for handle in handles:
            os.close(handle)
        os.waitpid(middle, 0)
        channel.send(b"\n")
    os._exit(0)


def _become(asked: dict[str, Any], handles: list[int]) -> None:
    """Be as a process that Python has just begun, then run the program."""
    for at, handle in enumerate(handles):
        os.dup2(handle, at)
        os.close(handle)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(asked["folder"])
    if asked["is_session"]:
        os.setsid()
        _own_terminal()
    os.environ.clear()
    os.environ.update(asked["environ"])
    time.tzset()
    tempfile.tempdir = None
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    for at, name in enumerate(("stdin", "stdout", "stderr")):
        errors = "backslashreplace" if at == 2 else "surrogateescape"
        stream = os.fdopen(at, "w" if at else "r", 1 if at == 2 else -1, "utf-8", errors, closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    words = asked["words"]
    if words[0] == sys.executable:
        del words[0]
    if words[0] == "-W":
        warnings.resetwarnings()
        warnings.simplefilter(words[1])
        del words[:2]
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:0] = [{"-c": "", "-m": os.getcwd()}.get(words[0], os.path.dirname(words[0])), *paths]
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec"), module.__dict__)
        return
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = words
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as ended:
        if not isinstance(ended.code, int):
            raise
        # To take all modules apart costs as much as the rest: each page of them would be copied.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
