# ruff: noqa: E501 - tables of attacks, which a line end would tear
"""Commands: no key in their environment, ended with all they started, bounded, and in a sandbox where there is one."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
import time
from pathlib import Path

import pytest

from dragoman.agent.sandbox.bubblewrap import find_bubblewrap
from dragoman.agent.sandbox.sandbox import OUTPUT_LIMIT, Finished, Sandbox, clean_environment

CANARY = "canary-7d0f31"
#: Not the one of a virtual environment: that may lie in /tmp, which is empty in a sandbox.
PYTHON = os.path.realpath(sys.executable)
BUBBLEWRAP = find_bubblewrap()
#: With the sandbox only where bubblewrap works; what holds without it is tested everywhere.
KINDS = [None, *([BUBBLEWRAP] if BUBBLEWRAP else [])]
ENVIRON = {"PATH": f"{Path(PYTHON).parent}:/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}


@pytest.fixture(params=KINDS, ids=lambda path: "sandboxed" if path else "bare")
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    environ = {**ENVIRON, "OPENAI_API_KEY": CANARY, "AWS_SECRET": CANARY, "SSH_AUTH_SOCK": CANARY, "LD_PRELOAD": CANARY}
    return Sandbox(tmp_path, environ=environ, home=tmp_path.parent / "home", bubblewrap=request.param)


def run(sandbox: Sandbox, *argv: str, seconds: float = 20, network: bool = False) -> Finished:
    return asyncio.run(sandbox.run(argv, seconds=seconds, network=network))


def script(sandbox: Sandbox, text: str, *, seconds: float = 20, network: bool = False) -> Finished:
    return run(sandbox, "/bin/sh", "-c", text, seconds=seconds, network=network)


def left_overs(mark: str) -> list[str]:
    """Processes whose command line holds the mark."""
    found = []
    for entry in Path("/proc").iterdir() if Path("/proc/self").exists() else ():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in line and state != "Z":
                found.append(line.decode(errors="replace"))
    return found


def test_output_and_status_come_back(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    finished = script(sandbox, "echo out; echo err >&2; pwd; exit 3")
    assert (finished.status, finished.ending) == (3, None)
    assert finished.output.split("\n")[:3] == ["out", "err", str(tmp_path)]
    below = asyncio.run(sandbox.run(["pwd"], seconds=5, parts=("sub",)))
    assert below.output.strip() == str(tmp_path / "sub")


def test_no_key_is_in_the_environment(sandbox: Sandbox) -> None:
    finished = script(sandbox, "env; cat /proc/self/environ; cat /proc/$PPID/environ 2>/dev/null; true")
    assert "PATH=" in finished.output
    assert CANARY not in finished.output


def test_programs_of_the_work_folder_are_never_found_by_name(tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "git"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho evil")
    tool.chmod(0o755)
    environ = {"PATH": f"{tool.parent}:.::bin:/usr/bin:/bin"}
    assert clean_environment(environ, tmp_path)["PATH"] == "/usr/bin:/bin"
    assert Sandbox(tmp_path, environ=environ, home=tmp_path).found("git") != str(tool)


def test_a_program_that_cannot_start_is_said(sandbox: Sandbox) -> None:
    finished = run(sandbox, "/nonexistent/program")
    assert finished.ending == "not-started" or finished.status not in (0, None)


def test_time_is_up(sandbox: Sandbox) -> None:
    mark = f"31536{os.getpid()}"
    finished = script(sandbox, f"echo begun; sleep {mark} & sleep {mark}", seconds=3)
    assert finished.ending == "timeout"
    assert "begun" in finished.output
    assert left_overs(mark) == []


def test_what_a_command_leaves_behind_is_ended(sandbox: Sandbox) -> None:
    """Also what made itself a daemon: another session, another parent, output closed."""
    mark = f"31537{os.getpid()}"
    daemon = f"import os,time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nfor n in range(3): os.close(n)\ntime.sleep({mark})"
    finished = script(sandbox, f"{PYTHON} -c '{daemon}'; nohup sleep {mark} >/dev/null 2>&1 & echo left")
    assert (finished.status, finished.output.strip()) == (0, "left")
    if sys.platform == "linux":
        assert left_overs(mark) == []


def test_a_fork_bomb_is_ended(sandbox: Sandbox, tmp_path: Path) -> None:
    mark = f"bomb{os.getpid()}"
    # It stops at a thousand or so: a keeper that did not see it would fail this test, not take the machine along.
    again = f"{tmp_path / mark} x$1"
    (tmp_path / mark).write_text(f'#!/bin/sh\n[ "$1" = xxxxxxxxx ] || {{ {again} & {again} & }}\nsleep 20\n')
    (tmp_path / mark).chmod(0o755)
    begin = time.monotonic()
    finished = run(sandbox, str(tmp_path / mark), seconds=60)
    assert time.monotonic() - begin < 50
    if sys.platform == "linux":
        assert finished.ending == "processes"
        assert left_overs(mark) == []


def test_a_file_cannot_fill_the_disk(sandbox: Sandbox, tmp_path: Path) -> None:
    finished = run(sandbox, PYTHON, "-c", "f=open('big','wb')\nf.seek(1<<31)\nf.write(b'x')\nf.close()")
    assert finished.status != 0
    assert not (tmp_path / "big").exists() or (tmp_path / "big").stat().st_size <= 1 << 30


def test_of_endless_output_beginning_and_end_are_kept(sandbox: Sandbox) -> None:
    finished = run(sandbox, PYTHON, "-c", "print('first')\nfor n in range(600_000): print('line', n)\nprint('last')")
    assert finished.output.startswith("first\n")
    assert finished.output.endswith("last\n")
    assert len(finished.output) <= OUTPUT_LIMIT + 100
    assert finished.left_out > 5_000_000


def test_a_cancelled_command_ends_with_all_its_children(sandbox: Sandbox) -> None:
    mark = f"31538{os.getpid()}"

    async def play() -> None:
        task = asyncio.create_task(sandbox.run(["/bin/sh", "-c", f"sleep {mark} & sleep {mark}"], seconds=60))
        while not left_overs(f"sleep\0{mark}"):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    if sys.platform == "linux":
        asyncio.run(play())
        assert left_overs(mark) == []


def test_a_command_ends_when_the_agent_is_killed(sandbox: Sandbox, tmp_path: Path) -> None:
    """The keeper sees the end of its input, whatever ended us."""
    import subprocess

    mark = f"31539{os.getpid()}"
    code = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom dragoman.agent.sandbox.sandbox import Sandbox\n"
        f"box = Sandbox(Path({str(tmp_path)!r}), environ={ENVIRON!r}, home=Path('/nonexistent'), bubblewrap={sandbox.bubblewrap!r})\n"
        f"asyncio.run(box.run(['/bin/sh', '-c', 'sleep {mark} & sleep {mark}'], seconds=60))"
    )
    agent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL)
    end = time.monotonic() + 20
    while not left_overs(f"sleep\0{mark}") and time.monotonic() < end:
        time.sleep(0.02)
    agent.kill()
    agent.wait()
    while left_overs(f"sleep\0{mark}") and time.monotonic() < end:
        time.sleep(0.02)
    assert left_overs(f"sleep\0{mark}") == []


CONNECT = "import socket,sys\ns=socket.create_connection(('127.0.0.1',int(sys.argv[1])),2)\ns.sendall(b'out')"


def test_without_asking_for_it_there_is_no_network(sandbox: Sandbox) -> None:
    """Where there is a sandbox; without one nothing is promised, and the approval says so."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = str(server.getsockname()[1])
        finished = run(sandbox, PYTHON, "-c", CONNECT, port)
        assert (finished.status != 0) is (sandbox.bubblewrap is not None)
        allowed = run(sandbox, PYTHON, "-c", CONNECT, port, network=True)
        assert allowed.status == 0


def test_in_the_sandbox_the_machine_is_read_only_and_keys_are_hidden(tmp_path: Path) -> None:
    if BUBBLEWRAP is None:
        assert shutil.which("bwrap") is None or os.environ.get("CI") is not None
        return
    home, work = tmp_path / "home", tmp_path / "work"
    for place in (home / ".ssh", home / ".config" / "dragoman", work / ".git" / "hooks"):
        place.mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text(CANARY)
    (home / ".config" / "dragoman" / "dragoman.toml").write_text(CANARY)
    (home / ".netrc").write_text(CANARY)
    (work / ".git" / "config").write_text("[core]\n")
    sandbox = Sandbox(work, environ=ENVIRON, home=home, bubblewrap=BUBBLEWRAP)
    escapes = [
        home / "x",
        home / ".ssh" / "y",
        tmp_path / "x",
        Path("/etc/x-dragoman"),
        work / ".git/hooks/pre-commit",
        work / ".git/config",
    ]
    for place in escapes:
        script(sandbox, f"echo evil >> {place}")
    script(sandbox, "ln -s /etc link; echo evil > link/x-dragoman; rm -rf .git/hooks; mv .git .git2; kill -9 -1")
    assert [place for place in escapes if place.exists() and "evil" in place.read_text()] == []
    assert (work / ".git" / "hooks").is_dir()
    seen = script(
        sandbox, f"cat {home}/.ssh/id_rsa {home}/.config/dragoman/dragoman.toml {home}/.netrc; find {home} -type f"
    )
    assert CANARY not in seen.output
    assert script(sandbox, f"echo fine > inside; cat inside; echo x > /tmp/{CANARY}").output == "fine\n"
    assert (work / "inside").exists() and not Path("/tmp", CANARY).exists()
