"""What settings of Git name in a work folder: it is read-only when it is there, and made inert when it comes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.agent.sandbox.git_settings import content_of, named_by
from dragoman.agent.sandbox.guarded_paths import protect
from dragoman.agent.sandbox.sandbox import Sandbox
from dragoman.agent.sandbox.standing_files import folded, is_live, restore
from dragoman.agent.sandbox.supervise_command import _descendants
from for_each import for_each


def named(folder: Path, settings: str, *, base: str = "", home: Path | None = None) -> set[tuple[str, bool]]:
    file = folder / "settings"
    file.write_text(settings, encoding="utf-8")
    found = named_by([str(file)], [str(folder / base)], str(home or folder / "home"))
    return {(os.path.relpath(path, folder), is_folder) for path, is_folder in found}


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ("[core]\n\thooksPath = hooks", {("hooks", True)}),
        ("[core] hookspath=my hooks", {("my hooks", True)}),
        ('[CORE]\nHOOKSPATH = "a/b c"', {("a/b c", True)}),
        ("[core]\n hooksPath = a\\\nb", {("ab", True)}),
        ("[a]\n[core] hooksPath = x", {("x", True)}),
        ("[init] templateDir = ~/t", {("home/t", True)}),
        ("[include]\n\tpath = more", {("more", False)}),
        ('[includeIf "gitdir:~/work/"] path = ~/team', {("home/team", False)}),
        ('[includeIf "hasconfig:remote.*.url:x\\"]y"]\npath = q', {("q", False)}),
        ("[core]\n\tfsmonitor = ./watch", {("watch", False)}),
        ("[core]\n\tfsmonitor = sh -c 'tools/watch' || true", {("tools/watch", False)}),
        ('[filter "x"]\n\tclean = python conv.py %f', {("conv.py", False)}),
        ("[alias]\n\ts = !./run", {("run", False)}),
        ("[alias]\n\ts = status --short\n t = !make test.all", set()),
        ('[remote "o"]\n\turl = ../a/b\n\tfetch = +refs/heads/*:refs/remotes/o/*', set()),
        ("[user]\n\tname = a/b\n\temail = a.b", set()),
        ("[core]\n\tbare = false\n\tworktree = ../x\n# hooksPath = y", set()),
    ],
)
def test_what_settings_name(settings: str, wanted: set[tuple[str, bool]], tmp_path: Path) -> None:
    assert named(tmp_path, settings) == wanted


def test_what_settings_include_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("[include]\npath = sub/b\n[include]\npath = a")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b").write_text("[core]\nhooksPath = h\n[include]\npath = c")
    found = named(tmp_path, "[include]\npath = a", base="tree")
    assert found == {("a", False), ("sub/b", False), ("sub/c", False), ("tree/h", True)}


@given(st.text(alphabet="[]\"'\\=;# \n\tab./~!\r", max_size=80))
def test_no_settings_break_the_reader(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        named(Path(folder), text)


def test_a_pipe_in_the_place_of_settings_stops_nothing(tmp_path: Path) -> None:
    """A repository from an archive may hold one; opening it would wait for ever."""
    work = tmp_path / "work"
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    for name in ("config", "config.worktree", "commondir"):
        (work / ".git" / name).unlink(missing_ok=True)
        os.mkfifo(work / ".git" / name)
    (work / "sub").mkdir()
    os.mkfifo(work / "sub" / ".git")
    done: list[object] = []
    thread = threading.Thread(target=lambda: done.append(protect(str(work), home=str(tmp_path))), daemon=True)
    thread.start()
    thread.join(20)
    assert done, "it waits"
    assert restore(str(work), done[0][1]) == []  # type: ignore[index]
    assert content_of(str(work / ".git" / "config")) == ""


def steered(place: Path) -> Path:
    """A work folder whose settings name places that are not there."""
    work = place / "work"
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    subprocess.run(["git", "config", "core.hooksPath", "made/hooks"], cwd=work, check=True)
    (place / ".gitconfig").write_text(f"[include]\n\tpath = {work}/team\n[core]\n\thooksPath = everywhere\n")
    return work


def test_what_comes_to_stand_where_settings_look_is_put_aside(tmp_path: Path) -> None:
    work = steered(tmp_path)
    _, known = protect(str(work), home=str(tmp_path), environ={"GIT_SSH_COMMAND": f"sh {work}/bin/ssh"})
    for name in ("made/hooks/pre-commit", "everywhere/pre-commit", "team", "bin/ssh", "made/other", "bin/other"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("evil")
    assert sorted(restore(str(work), known)) == ["bin/ssh", "everywhere", "made/hooks", "team"]
    assert (work / "made" / "other").exists() and (work / "bin" / "other").exists()
    assert (work / "team.inert").read_text() == "evil"


def test_no_link_on_the_way_leads_what_is_put_aside_out_of_the_folder(tmp_path: Path) -> None:
    work, outside = steered(tmp_path), tmp_path / "outside"
    (outside / "hooks").mkdir(parents=True)
    _, known = protect(str(work), home=str(tmp_path))
    (work / "made").symlink_to(outside)
    assert restore(str(work), known) == ["made"]
    assert os.listdir(outside) == ["hooks"] and (work / "made.inert").is_symlink()


def test_what_was_there_stays(tmp_path: Path) -> None:
    """Also links within a repository, and what a rebase of the user's own has still to do."""
    work = steered(tmp_path)
    (work / "made" / "hooks").mkdir(parents=True)
    (work / ".git" / "rebase-merge").mkdir()
    (work / ".git" / "rebase-merge" / "git-rebase-todo").write_text("exec make test\n")
    (work / ".git" / "annex").symlink_to(tmp_path)
    mounts, known = protect(str(work), home=str(tmp_path))
    assert str(work / "made" / "hooks") in {mount.place for mount in mounts if not mount.is_writable}
    assert restore(str(work), known) == []
    assert (work / ".git" / "rebase-merge" / "git-rebase-todo").read_text() == "exec make test\n"
    (work / ".git" / "rebase-merge" / "git-rebase-todo").write_text("exec make test\nx touch evil\n")
    (work / ".git" / "refs" / "heads" / "evil").symlink_to(tmp_path)
    (work / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (work / ".git" / "objects" / "info" / "alternates").symlink_to(tmp_path / "x")
    changed = [".git/objects/info/alternates", ".git/rebase-merge/git-rebase-todo"]
    assert sorted(restore(str(work), known)) == changed
    assert not (work / ".git" / "refs" / "heads" / "evil").is_symlink()
    assert "exec" not in (work / ".git" / "rebase-merge" / "git-rebase-todo").read_text().replace("inert: exec", "")


@pytest.mark.parametrize(
    ("name", "text", "is_plain"),
    [
        ("rebase-merge/strategy", "ort", True),
        ("rebase-merge/strategy", "\n", True),
        ("rebase-merge/strategy", "x/y", False),
        ("rebase-merge/strategy", "ort\nx/y", False),
        ("rebase-apply/strategy", "evil", False),
        ("sequencer/opts", "[options]\n\tstrategy = recursive\n\tsignoff = true\n\tstrategy-option = theirs\n", True),
        ("sequencer/opts", "[options]\n\tstrategy = x/y\n", False),
        ("sequencer/opts", "[options] strategy = x/y\n", False),
        ("sequencer/opts", '[options]\n\tStrategy = "x"/y\n', False),
        ("sequencer/opts", "[options]\n\tsignoff = a\\\n\tb\n", False),
        ("sequencer/opts", "[options]\r[include]\n\tpath = x\n", False),
    ],
)
def test_a_rebase_goes_on_with_no_program_of_a_commands(name: str, text: str, is_plain: bool, tmp_path: Path) -> None:
    """Git starts `git-merge-NAME` for a way to merge that is none of its own, and a name may be a path."""
    work = tmp_path / "work"
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    _, known = protect(str(work), home=str(tmp_path))
    file = work / ".git" / name
    file.parent.mkdir()
    file.write_bytes(text.encode())
    assert restore(str(work), known) == ([] if is_plain else [f".git/{name}"])
    assert file.exists() == is_plain
    assert restore(str(work), protect(str(work), home=str(tmp_path))[1]) == []


@pytest.mark.parametrize("is_inner", [False, True])
def test_where_live_links_lead_is_live(is_inner: bool, tmp_path: Path) -> None:
    """`.vscode` may be a link into the folder, and `.husky/pre-commit` one to a script, over a further link."""
    work = tmp_path / "work"
    (work / "a" / ".husky").mkdir(parents=True)
    (work / "conf").mkdir()
    (work / "conf" / "script").write_text("fine")
    (work / "hop").symlink_to("conf")
    link = work / "a" / ".husky" / "pre-commit" if is_inner else work / "a" / ".envrc"
    link.symlink_to(os.path.relpath(work / "hop" / "script", link.parent))
    (work / "a" / ".vscode").symlink_to("../later")
    mounts, known = protect(str(work), home=str(tmp_path))
    assert str(work / "conf" / "script") in {mount.place for mount in mounts if not mount.is_writable}
    assert restore(str(work), known) == []
    (work / "other").mkdir()
    (work / "other" / "script").write_text("evil")
    (work / "hop").unlink()
    (work / "hop").symlink_to("other")
    (work / "later").mkdir()
    assert sorted(restore(str(work), known)) == sorted([os.path.relpath(link, work), "later"])


def test_a_pipe_in_a_repository_keeps_nobody_waiting(tmp_path: Path) -> None:
    work = tmp_path / "work"
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    _, known = protect(str(work), home=str(tmp_path))
    (work / "new" / ".git").mkdir(parents=True)
    for name in ("new/.git/HEAD", "new/.git/config", ".git/MERGE_HEAD", "new/.envrc"):
        os.mkfifo(work / name)
    told = restore(str(work), known)
    assert {".git/MERGE_HEAD", "new/.git", "new/.envrc"} <= set(told)
    assert (
        subprocess.run(["git", "status"], cwd=work / "new", capture_output=True, timeout=20, check=False).returncode
        == 0
    )


@for_each("name", [".GIT", ".g\u200cit", ".gi\u200dt\ufeff", "\uff0egit", ".git .", "GIT~1", ".Git::$DATA"])
def test_names_that_some_file_system_takes_for_gits(name: str) -> None:
    assert folded(name) == ".git"
    assert is_live(("a", name, "config"))


def test_threads_are_counted() -> None:
    if not Path("/proc/self").exists():
        return
    code = (
        "import threading,time\nfor n in range(7): threading.Thread(target=time.sleep,args=(9,),daemon=True).start()\n"
    )
    with subprocess.Popen(
        ["python3", "-c", code + "print(flush=True)\ntime.sleep(9)"], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert _descendants()[child.pid] == 8
        child.kill()


def test_so_many_files_at_once_end_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the disk counts files; after it everything that is there is looked through, however much."""
    monkeypatch.setattr("dragoman.agent.sandbox.sandbox._NEW_FILES", 2_000)
    code = "import os,time\nfor n in range(60_000): os.mkdir(str(n))\ntime.sleep(5)"
    sandbox = Sandbox(tmp_path, environ={"PATH": "/usr/local/bin:/usr/bin:/bin"}, home=tmp_path / "home")
    if os.statvfs(tmp_path).f_files:
        done = asyncio.run(sandbox.run(["python3", "-c", code], seconds=20))
        assert done.ending == "disk", done
