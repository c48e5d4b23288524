"""Ways out of the sandbox: the quick ones of `make security` (row S18, which tries all of them as several users)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from reliability.escapes import attempt, home_is_refused

from dragoman.agent.sandbox.bubblewrap import check_work_folder, find_bubblewrap
from dragoman.agent.sandbox.guarded_paths import protect
from dragoman.agent.sandbox.process_secrecy import hide_environment
from dragoman.agent.sandbox.sandbox import Sandbox
from dragoman.agent.sandbox.standing_files import restore
from dragoman.errors import UsageError

BUBBLEWRAP = find_bubblewrap()
QUICK = [
    "C3 capabilities", "H1 socket in the file system", "H3 commondir", "H3 git init", "M14 .git as a file",
    "M14 what programs obey, new", "M16 private files", "core_pattern", "anything of the kernel", "i386",
    "a link for the message", "a rebase with orders", "a strategy of a rebase", "a folder that a live link names",
    "a nameless file that runs as its owner", "what programs obey where they start", "a repository in two halves",
    "a descriptor opened again for writing",
]  # fmt: skip


@pytest.fixture
def base() -> Iterator[Path]:
    """A folder that a sandbox does not hide, unlike those below `/tmp`."""
    places = [place for place in ("/var/opt", str(Path.home())) if os.access(place, os.W_OK)]
    with tempfile.TemporaryDirectory(dir=places[0]) as folder:
        yield Path(folder)


if BUBBLEWRAP is not None:

    @pytest.mark.parametrize("name", QUICK)
    def test_no_quick_way_out_of_what_is_called_a_sandbox(name: str, base: Path) -> None:
        found = attempt(name, base / "x")
        assert found["is_whole"]
        if found["is_confined"]:
            assert found["out"] == "", found
        else:
            assert found["is_asked"]

    def test_home_and_what_lies_above_it_are_refused(base: Path) -> None:
        assert home_is_refused(base) == []

    def test_commits_work_in_the_sandbox(base: Path) -> None:
        import asyncio

        work = base / "work"
        work.mkdir()
        subprocess.run(["git", "init", "-q", str(work)], check=True)
        before = sorted(os.listdir(work / ".git"))
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(base / "home")}
        sandbox = Sandbox(work, environ=environ, home=base / "home", bubblewrap=BUBBLEWRAP)
        commit = "echo x > a && git add a && git -c user.name=a -c user.email=a@b commit -qm one && git log --oneline"
        done = asyncio.run(sandbox.run(["/bin/sh", "-c", commit], seconds=20))
        assert done.status == 0 and done.output.endswith(" one\n"), done.output
        assert set(os.listdir(work / ".git")) - set(before) <= {"index", "logs", "COMMIT_EDITMSG"}


@pytest.mark.parametrize("name", ["/", "/etc", "/tmp", "/proc/self", "/sys", "/usr"])
def test_the_systems_folders_are_no_work_folders(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="work folder"):
        check_work_folder(Path(name), tmp_path / "home")


def test_what_is_put_for_a_mount_goes_again(tmp_path: Path) -> None:
    """Also what an agent that was killed left: Git works with it meanwhile."""
    work = tmp_path / "work"
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    before = sorted(os.listdir(work / ".git"))
    protect(str(work))
    assert subprocess.run(["git", "status"], cwd=work, capture_output=True, check=False).returncode == 0
    _, known = protect(str(work))
    assert restore(str(work), known) == []
    assert "commondir" not in os.listdir(work / ".git") and set(before) <= set(os.listdir(work / ".git"))


def test_the_environment_is_not_in_proc() -> None:
    code = "import os,sys\nfrom dragoman.agent.sandbox.process_secrecy import hide_environment\n"
    code += "assert hide_environment()\n"
    code += "assert b'canary' not in open('/proc/self/environ','rb').read()\nassert os.environ['KEY'] == 'canary'\n"
    code += (
        "import subprocess\nprint(subprocess.run(['/bin/sh','-c','echo $KEY'],capture_output=True,text=True).stdout)"
    )
    if sys.platform != "linux":
        assert not hide_environment()
        return
    environ = {**os.environ, "KEY": "canary"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "canary"), done.stderr
