"""What programs obey later when it stands in a work folder: repositories' settings, editors', agents', shells', CI's.

Before a sandboxed command these places are found, so that they can be mounted read-only; after it what has appeared is
made inert: it is put aside under another name, nothing is deleted. The keeper loads this file alone: nothing of
dragoman is imported here.

What Git takes for a repository: https://git-scm.com/docs/gitrepository-layout (`HEAD`, `objects` and `refs`, or
`commondir` in place of the two).
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

#: Folders whose files some program runs or obeys, in any depth and case.
LIVE_FOLDERS = frozenset(
    {
        ".git", ".hg", ".svn", ".jj", ".bzr", ".github", ".gitlab", ".gitea", ".forgejo", ".circleci", ".buildkite",
        ".vscode", ".vscode-server", ".idea", ".fleet", ".zed", ".husky", ".githooks", ".devcontainer", ".direnv",
        ".claude", ".cursor", ".codex", ".gemini", ".windsurf", ".continue", ".roo", ".kiro", ".opencode", ".ssh",
    }
)  # fmt: skip
#: Files of that kind.
LIVE_FILES = frozenset(
    {
        ".git", ".envrc", ".mcp.json", ".gitmodules", ".gitconfig", ".gitlab-ci.yml", ".gitlab-ci.yaml", ".travis.yml",
        ".cirrus.yml", ".drone.yml", ".gitpod.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "jenkinsfile",
        ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".devcontainer.json", ".bashrc", ".bash_profile",
        ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
        ".kshrc", ".cshrc", ".tcshrc", ".xprofile", ".xinitrc", ".inputrc", ".tmux.conf", ".screenrc", ".vimrc",
        ".nvimrc", ".exrc", ".nvim.lua", ".dir-locals.el", ".gdbinit", ".lldbinit", ".pdbrc", ".mise.toml", "mise.toml",
        ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".hgrc", ".claude.json", "opencode.json",
        ".aider.conf.yml",
    }
)  # fmt: skip
_FOLDERS_OF_OTHERS = frozenset({"node_modules", "site-packages", ".venv", "venv", ".tox", "vendor", "__pycache__"})
#: Of a repository: what steers programs; `None` is a folder, else what a file that is missing holds meanwhile.
_SETTINGS: dict[str, bytes | None] = {
    "config": b"", "config.worktree": b"", "commondir": b".\n", "hooks": None, "info": None, "modules": None,
    "worktrees": None,
}  # fmt: skip
#: Of it: what commands write, mounted on itself so that nothing else can take its place.
_WRITTEN = ("objects", "refs", "logs")
#: Keys of settings whose values start nothing and name no file.
_PLAIN_KEYS = frozenset(
    {
        "repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode",
        "objectformat", "url", "fetch", "remote", "merge", "name", "email",
    }
)  # fmt: skip
_SAFE_KEY = re.compile(
    rb"\s*(" + "|".join(sorted(_PLAIN_KEYS)).encode() + rb")\s*=\s*([A-Za-z0-9@:/._+*, -]{0,400})\s*",
    re.ASCII | re.IGNORECASE,
)  # fmt: skip
_SAFE_SECTION = re.compile(rb'\[(core|extensions|user|remote "[\w./-]{1,80}"|branch "[\w./-]{1,80}")\]\s*', re.ASCII)
_ORDERS = re.compile(rb"^[ \t]*(?:x|exec)\b", re.MULTILINE | re.ASCII)
MOST_ENTRIES = 1_000_000
MOST_MOUNTS = 400
#: Repositories in which commands can commit; further ones are read-only as a whole.
_WRITABLE = 24
_PATH_LIMIT = 3_500  # bytes: what lies deeper is closed


class TooMuch(Exception):
    """The folder holds more than can be watched."""


class Known(NamedTuple):
    """What stood there before: identities (device, inode) of what is mounted and of what was put there for it, and
    links with their targets."""

    places: frozenset[tuple[int, int]]
    put: frozenset[tuple[int, int]]
    links: frozenset[tuple[str, str]]


class Mount(NamedTuple):
    """A place that is mounted on itself."""

    place: str
    is_writable: bool


def is_live(parts: Sequence[str]) -> bool:
    """Whether a program runs or obeys a file of that path later."""
    words = [_folded(part) for part in parts]
    return bool(words) and (words[-1] in LIVE_FILES or not LIVE_FOLDERS.isdisjoint(words))


def _folded(name: str) -> str:
    """A name as file systems compare it that know no case, or drop what ends it."""
    folded = unicodedata.normalize("NFKC", name).casefold().partition(":")[0].rstrip(". ")
    return ".git" if folded == "git~1" else folded


class _Place(NamedTuple):
    path: str
    kind: str  # "repository", "pointer" (a file .git), "link" (a symbolic link that is live) or "live"


def _places(folder: str, *, is_after: bool) -> Iterator[_Place]:
    """What is live below a folder. No link is followed; below what is live nothing is looked at."""
    left, count = [(folder, False)], 0
    while left:
        place, is_of_others = left.pop()
        entries = _entries(place, is_after=is_after)
        count += len(entries)
        if count > MOST_ENTRIES:
            raise TooMuch(f"more than {MOST_ENTRIES:,} files")
        if _is_repository(place, entries):
            yield _Place(place, "repository")
            if _folded(os.path.basename(place)) == ".git":
                continue
        for entry in entries:
            folded = _folded(entry.name)
            is_named = folded in LIVE_FOLDERS or folded in LIVE_FILES
            if is_of_others and folded != ".git":
                is_named = False
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_named and entry.is_symlink():
                yield _Place(entry.path, "link")
            elif folded == ".git" and is_folder:
                yield _Place(entry.path, "repository")
            elif is_named and (is_folder or folded in LIVE_FILES):
                yield _Place(entry.path, "pointer" if folded == ".git" else "live")
            elif is_folder:
                left.append((entry.path, is_of_others or folded in _FOLDERS_OF_OTHERS))


def _entries(place: str, *, is_after: bool) -> list[os.DirEntry[str]]:
    """What a folder holds. After a run a folder that cannot be listed is opened first, one too deep is closed."""
    if is_after and len(os.fsencode(place)) > _PATH_LIMIT:
        with contextlib.suppress(OSError):
            os.chmod(place, 0)
        return []
    for _ in range(2):
        try:
            with os.scandir(place) as found:
                return list(found)
        except PermissionError:
            if not is_after:
                return []
            with contextlib.suppress(OSError):
                os.chmod(place, stat.S_IMODE(os.lstat(place).st_mode) | 0o700)
        except OSError:
            return []
    return []


def _is_repository(place: str, entries: Sequence[os.DirEntry[str]]) -> bool:
    names = {_folded(entry.name) for entry in entries}
    return "head" in names and ("commondir" in names or {"objects", "refs"} <= names)


# ---------------------------------------------------------------- before a command


def protect(folder: str) -> tuple[list[Mount], Known]:
    """What is mounted so that a command cannot change it, parents first, and what is known from now on. Settings that a
    repository lacks are put there, empty, since only what exists can be mounted; `restore` takes them away again.

    Raises:
        TooMuch: there is more than can be watched.
    """
    mounts: list[Mount] = []
    places: set[tuple[int, int]] = set()
    put: set[tuple[int, int]] = set()
    links: set[tuple[str, str]] = set()
    repositories = 0
    for place in _places(folder, is_after=False):
        if place.kind == "link":
            links.add((place.path, os.readlink(place.path)))
            continue
        places.add(_identity(place.path))
        if place.kind != "repository":
            mounts.append(Mount(place.path, False))
        else:
            repositories += 1
            mounts += _of_repository(place.path, folder, (put, links), is_writable=repositories <= _WRITABLE)
        if len(mounts) > MOST_MOUNTS:
            raise TooMuch(f"more than {MOST_MOUNTS} repositories and settings")
    return mounts, Known(frozenset(places), frozenset(put), frozenset(links))


def _of_repository(
    place: str, folder: str, noted: tuple[set[tuple[int, int]], set[tuple[str, str]]], *, is_writable: bool
) -> Iterator[Mount]:
    put, links = noted
    entries = {entry.name: entry for entry in _entries(place, is_after=False)}
    links.update((entry.path, os.readlink(entry.path)) for entry in entries.values() if entry.is_symlink())
    steering = [name for name in entries if name.startswith("config") or _folded(name) in _SETTINGS]
    has_links = any(entries[name].is_symlink() for name in (*steering, *_WRITTEN) if name in entries)
    if place != folder and (has_links or not is_writable):
        yield Mount(place, False)
        return
    if place != folder:
        yield Mount(place, True)
    for name, content in _SETTINGS.items():
        if name not in entries and _put(os.path.join(place, name), content):
            put.add(_identity(os.path.join(place, name)))
            steering.append(name)
    for name in _WRITTEN:
        if name in entries and entries[name].is_dir(follow_symlinks=False):
            yield Mount(os.path.join(place, name), True)
    for name in steering:
        yield Mount(os.path.join(place, name), False)
    for path in _named_in(os.path.join(place, "config"), place, folder):
        yield Mount(path, False)


def _named_in(config: str, place: str, folder: str) -> Iterator[str]:
    """What a repository's settings name of the work folder: hooks' folders, programs, further settings."""
    try:
        with open(config, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.partition("=") for line in file.read(65_536).splitlines()]
    except OSError:
        return
    values = [value for key, _, value in lines if key.strip().lower() not in _PLAIN_KEYS]
    for word in {word for value in values for word in re.split(r"[\s\"'!;|&=]+", value) if word}:
        for base in (place, os.path.dirname(place)):
            path = os.path.realpath(os.path.join(base, word))
            is_of_work = path.startswith(f"{folder}/") and not f"{path}/".startswith(f"{place}/")
            if is_of_work and not place.startswith(f"{path}/") and os.path.exists(path):
                yield path


def _put(path: str, content: bytes | None) -> bool:
    """Put a setting there that says nothing; False where that cannot be: then no command can do it either."""
    try:
        if content is None:
            os.mkdir(path)
        else:
            with open(path, "xb") as file:
                file.write(content)
    except OSError:
        return False
    return True


def _content(path: str) -> bytes | None:
    """The first bytes of a file; None for what is none."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return file.read(64)


def _identity(path: str) -> tuple[int, int]:
    state = os.lstat(path)
    return state.st_dev, state.st_ino


# ---------------------------------------------------------------- after it


def restore(folder: str, known: Known) -> list[str]:
    """Make inert what has appeared, and take away what `protect` put there.

    Gives the paths, below the folder, that were put aside; one that begins with "!" could not be.
    """
    told: list[str] = []
    try:
        found = list(_places(folder, is_after=True))
    except TooMuch as problem:
        return [f"!{problem}"]
    for place in found:
        try:
            if place.kind == "link":
                is_known = (place.path, os.readlink(place.path)) in known.links
            else:
                is_known = _identity(place.path) in known.places
            if place.kind == "repository" and is_known:
                changed = _clean(place.path, known)
            else:
                changed = [] if is_known else _make_inert(place)
        except OSError:
            changed = [f"!{place.path}"]
        told += [_shown(path, folder) for path in changed]
    return told


def _shown(path: str, folder: str) -> str:
    mark = "!" if path.startswith("!") else ""
    return mark + os.path.relpath(path.removeprefix("!"), folder)


def _clean(place: str, known: Known) -> list[str]:
    """A repository that stood there: settings that we put there go, and so do links and orders that a command left."""
    changed = []
    for name, content in _SETTINGS.items():
        path = os.path.join(place, name)
        with contextlib.suppress(OSError):
            if _identity(path) in known.put or (name == "commondir" and _content(path) == content):
                os.rmdir(path) if content is None else os.unlink(path)
    for entry in _entries(place, is_after=True):
        if entry.is_symlink() and (entry.path, os.readlink(entry.path)) not in known.links:
            changed.append(_put_aside(entry.path))
        elif entry.name in ("refs", "logs") and entry.is_dir(follow_symlinks=False):
            for base, folders, files in os.walk(entry.path):
                for name in (*folders, *files):
                    if os.path.islink(os.path.join(base, name)):
                        os.unlink(os.path.join(base, name))
    return [*changed, *_without_orders(place)]


def _without_orders(place: str) -> list[str]:
    """A rebase that was begun runs no command when it is gone on with."""
    changed = []
    for name in ("rebase-merge/git-rebase-todo", "sequencer/todo", "rebase-merge/git-rebase-todo.backup"):
        path = os.path.join(place, name)
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                text = file.read()
            if _ORDERS.search(text):
                with open(path, "wb") as file:
                    file.write(_ORDERS.sub(b"# inert: exec", text))
                changed.append(path)
    return changed


def _make_inert(place: _Place) -> list[str]:
    if place.kind != "repository":
        return [_put_aside(place.path)]
    if _folded(os.path.basename(place.path)) != ".git":  # without its head it is a folder like any other
        heads = [entry.path for entry in _entries(place.path, is_after=True) if _folded(entry.name) == "head"]
        return [_put_aside(path) for path in heads]
    changed = [place.path]
    for entry in _entries(place.path, is_after=True):
        steers = entry.name.startswith("config") or _folded(entry.name) in _SETTINGS
        if entry.is_symlink() or _folded(entry.name).startswith(("rebase-", "sequencer")):
            _put_aside(entry.path)
        elif entry.name == "config" and entry.is_file(follow_symlinks=False):
            plain = _plain_settings(entry.path)
            _put_aside(entry.path)
            _put(os.path.join(place.path, "config"), plain)
        elif steers and not _is_harmless(entry):
            _put_aside(entry.path)
    return changed


def _is_harmless(entry: os.DirEntry[str]) -> bool:
    """Samples of hooks, which do not run, and a list of files that are left out: `git init` makes both."""
    if not entry.is_dir(follow_symlinks=False):
        return False
    below = _entries(entry.path, is_after=True)
    ends = {"hooks": ".sample", "info": "exclude"}.get(entry.name)
    return not below or (
        ends is not None and all(each.name.endswith(ends) and each.is_file(follow_symlinks=False) for each in below)
    )


def _plain_settings(path: str) -> bytes:
    """Of a repository's settings those that start nothing, written anew."""
    with open(path, "rb") as file:
        lines = file.read(65_536).split(b"\n")
    kept, is_safe = [], False
    for line in lines:
        if line.lstrip().startswith(b"["):
            is_safe = _SAFE_SECTION.fullmatch(line) is not None
            kept += [line.strip()] if is_safe else []
        elif is_safe and (found := _SAFE_KEY.fullmatch(line)) is not None and b"::" not in found[2]:
            kept.append(b"\t" + found[1] + b" = " + found[2].strip())
    return b"".join(line + b"\n" for line in kept)


def _put_aside(path: str) -> str:
    """Give it another name, in the folder where it is."""
    parent = os.path.dirname(path)
    if not os.access(parent, os.W_OK):
        os.chmod(parent, stat.S_IMODE(os.stat(parent).st_mode) | 0o700)
    number = 0
    while os.path.lexists(to := f"{path}.inert{number or ''}"):
        number += 1
    os.rename(path, to)
    return path
