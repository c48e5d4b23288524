"""Files of a work folder that programs obey later: settings of repositories, editors, agents, shells and CI.

Before a sandboxed command these places are found, so that they can be mounted read-only (`guarding`). After it, new
ones are made inert: they are renamed, no file is deleted. The supervisor loads this file alone, so nothing of dragoman
is imported here.

What Git takes for a repository: https://git-scm.com/docs/gitrepository-layout (`HEAD`, `objects` and `refs`, or
`commondir` in place of the two).
"""

from __future__ import annotations

import contextlib
import hashlib
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
        ".sl", ".pijul", "_darcs", ".helix", ".lapce", ".theia", ".nova", ".qwen", ".amazonq", ".kilocode", ".trae",
        ".factory", ".junie", ".augment", ".crush", ".mise", ".cargo", ".mvn", ".woodpecker", ".semaphore", ".teamcity",
        ".builds", ".tekton", ".harness",
    }
)  # fmt: skip
#: Files of that kind.
LIVE_FILES = frozenset(
    {
        ".git", ".envrc", ".mcp.json", ".gitmodules", ".gitconfig", ".gitlab-ci.yml", ".gitlab-ci.yaml", ".travis.yml",
        ".cirrus.yml", ".drone.yml", ".gitpod.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "jenkinsfile",
        ".pre-commit-config.yaml", ".devcontainer.json", ".bashrc", ".bash_profile",
        ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
        ".kshrc", ".cshrc", ".tcshrc", ".xprofile", ".xinitrc", ".inputrc", ".tmux.conf", ".screenrc", ".vimrc",
        ".nvimrc", ".exrc", ".nvim.lua", ".dir-locals.el", ".gdbinit", ".lldbinit", ".pdbrc", ".mise.toml", "mise.toml",
        ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".hgrc", ".claude.json", "opencode.json",
        ".aider.conf.yml", ".crush.json", "crush.json", "mise.local.toml", ".mise.local.toml", ".rtx.toml", ".autoenv",
        ".autoenv.zsh", ".lvimrc", ".irbrc", ".pryrc", ".iex.exs", ".rprofile", ".renviron", ".ghci", ".ocamlinit",
        ".octaverc", ".erlang", ".perldb", ".bazelrc", ".pnp.cjs", ".pylintrc", ".rubocop.yml", ".tool-versions",
        ".overcommit.yml", ".woodpecker.yml", ".woodpecker.yaml", ".build.yml", "appveyor.yml", ".appveyor.yml",
        "cloudbuild.yaml", "cloudbuild.yml", "buildspec.yml", "buildspec.yaml",
        *(f"{dot}lefthook{local}.{kind}" for dot in ("", ".") for local in ("", "-local")
          for kind in ("yml", "yaml", "toml", "json")),
    }
)  # fmt: skip
_FOLDERS_OF_OTHERS = frozenset({"node_modules", "site-packages", ".venv", "venv", ".tox", "vendor", "__pycache__"})
#: Of a repository: what steers programs; `None` is a folder, else what a file that is missing holds meanwhile.
SETTINGS: dict[str, bytes | None] = {
    "config": b"", "config.worktree": b"", "commondir": b".\n", "hooks": None, "info": None, "modules": None,
    "worktrees": None, "remotes": None, "branches": None,
}  # fmt: skip
#: Of it: what commands write, mounted on itself so that nothing else can take its place.
WRITTEN = ("objects", "refs", "logs")
#: Keys of settings whose values start nothing and name no file.
_PLAIN_KEYS = frozenset(
    {
        "repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode",
        "objectformat", "url", "fetch", "remote", "merge", "name", "email",
    }
)  # fmt: skip
_SAFE_KEY = re.compile(
    rb"\s*+(" + "|".join(sorted(_PLAIN_KEYS)).encode() + rb")\s*+=\s*+([A-Za-z0-9@:/._+*, -]{0,400}+)\s*+",
    re.ASCII | re.IGNORECASE,
)  # fmt: skip
_SAFE_SECTION = re.compile(rb'\[(core|extensions|user|remote "[\w./-]{1,80}"|branch "[\w./-]{1,80}")\]\s*', re.ASCII)
_ORDERS = re.compile(rb"^[ \t]*(?:x|exec)\b", re.MULTILINE | re.ASCII)
#: What a rebase or a sequence of picks that has stopped goes on with: orders, and how it merges. Each way to merge that
#: is none of Git's own is a program `git-merge-NAME`, and a name with a slash is looked for in the work tree.
_GOES_ON_WITH = (
    "rebase-merge/git-rebase-todo", "sequencer/todo", "rebase-merge/git-rebase-todo.backup", "rebase-merge/strategy",
    "rebase-apply/strategy", "sequencer/opts",
)  # fmt: skip
_STRATEGIES = rb"(?:ort|recursive|resolve|octopus|ours|subtree)"
_STRATEGY = re.compile(rb"\s*+" + _STRATEGIES + rb"?\s*+", re.ASCII)
_PICK_OPTION = re.compile(
    rb"\s*+(?:\[options\]|strategy\s*+=\s*+" + _STRATEGIES
    + rb"|(?!strategy\s*=)[a-z-]{1,40}+\s*+=\s*+[\w ./:+@=-]{0,200}+)?\s*+",
    re.ASCII | re.IGNORECASE,
)  # fmt: skip
#: Files that are looked through before a command; after it all that is there, of which a command makes a bounded part.
MOST_ENTRIES = 1_000_000
_ORDER_BYTES = 1024**2
_PATH_LIMIT = 3_500  # bytes: what lies deeper is closed


class TooMuch(Exception):
    """The folder contains more than can be watched."""


class Known(NamedTuple):
    """The state before a command.

    Attributes:
        places, put: identities (device, inode) of what is mounted, and of what was created for that.
        links: symbolic links with their targets (`aim_of`).
        named: places that settings name, existing or not; True if a folder is obeyed too.
        orders: digests of what a rebase has still to do.
    """

    places: frozenset[tuple[int, int]]
    put: frozenset[tuple[int, int]]
    links: frozenset[tuple[str, str]]
    named: frozenset[tuple[str, bool]] = frozenset()
    orders: frozenset[tuple[str, str]] = frozenset()


def is_live(parts: Sequence[str]) -> bool:
    """Return whether a program runs or obeys a file of that path later."""
    words = [folded(part) for part in parts]
    return bool(words) and (words[-1] in LIVE_FILES or not LIVE_FOLDERS.isdisjoint(words))


def folded(name: str) -> str:
    """Return a name as file systems compare it that ignore case, or drop trailing characters."""
    if not name.isascii():
        name = "".join(each for each in unicodedata.normalize("NFKC", name) if unicodedata.category(each) != "Cf")
    plain = name.casefold().partition(":")[0].rstrip(". ")
    return ".git" if plain == "git~1" else plain


class _Place(NamedTuple):
    path: str
    kind: str  # "repository", "pointer" (a file .git), "link" (a symbolic link that is live) or "live"


def places_below(folder: str, *, is_after: bool) -> Iterator[_Place]:
    """Yield the live places below a folder. No link is followed; nothing below a live place is looked at."""
    left, count = [(folder, False)], 0
    while left:
        place, is_of_others = left.pop()
        entries = entries_of(place, is_after=is_after)
        count += len(entries)
        if count > MOST_ENTRIES and not is_after:
            raise TooMuch(f"more than {MOST_ENTRIES:,} files")
        if _is_repository(entries):
            yield _Place(place, "repository")
            if folded(os.path.basename(place)) == ".git":
                continue
        for entry in entries:
            name = folded(entry.name)
            is_named = name in LIVE_FOLDERS or name in LIVE_FILES
            if is_of_others and name != ".git":
                is_named = False
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_named and entry.is_symlink():
                yield _Place(entry.path, "link")
            elif name == ".git" and is_folder:
                yield _Place(entry.path, "repository")
            elif is_named and (is_folder or name in LIVE_FILES):
                yield _Place(entry.path, "pointer" if name == ".git" else "live")
            elif is_folder:
                left.append((entry.path, is_of_others or name in _FOLDERS_OF_OTHERS))


def entries_of(place: str, *, is_after: bool) -> list[os.DirEntry[str]]:
    """Return a folder's entries. After a run, an unlistable one is made listable first, and one too deep is closed."""
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


def _is_repository(entries: Sequence[os.DirEntry[str]]) -> bool:
    names = {folded(entry.name) for entry in entries}
    return "head" in names and ("commondir" in names or {"objects", "refs"} <= names)


def put_setting(path: str, content: bytes | None) -> bool:
    """Create an empty setting. Return False if that is impossible: then no command can do it either."""
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
    """Return the first bytes of a file, or None if it is not a regular file, but a pipe for example."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return file.read(64)


def identity_of_place(path: str) -> tuple[int, int]:
    """Return device and inode, which stay when a file or folder is moved."""
    state = os.lstat(path)
    return state.st_dev, state.st_ino


# ---------------------------------------------------------------- after it


def restore(folder: str, known: Known) -> list[str]:
    """Make new live places inert, and remove what `protect` created.

    Return the paths below the folder that were renamed; one that begins with "!" could not be.
    """
    told: list[str] = []
    for place in list(places_below(folder, is_after=True)):
        try:
            if place.kind == "link":
                is_known = (place.path, aim_of(place.path)) in known.links
            else:
                is_known = identity_of_place(place.path) in known.places
            if place.kind == "repository" and is_known:
                changed = _clean(place.path, known)
            else:
                changed = [] if is_known else _make_inert(place)
        except OSError:
            changed = [f"!{place.path}"]
        told += [_shown(path, folder) for path in changed]
    for path, aim in sorted(known.links):  # those of live folders, whose way led over what a command could change
        if os.path.islink(path) and aim_of(path) != aim:
            told.append(_shown(_put_aside(path), folder))
    for path, is_folder in sorted(known.named):
        try:
            changed = _arrived(path, folder, known, is_folder=is_folder)
        except OSError:
            changed = [f"!{path}"]
        told += [_shown(path, folder) for path in changed]
    return told


def _arrived(path: str, folder: str, known: Known, *, is_folder: bool) -> list[str]:
    """Rename what has appeared where settings name something. No link is followed: there was none."""
    place = folder
    for part in os.path.relpath(path, folder).split(os.sep):
        place = os.path.join(place, part)
        if not os.path.lexists(place):
            return []
        if os.path.islink(place):
            return [_put_aside(place)]
    is_obeyed = is_folder or not os.path.isdir(place)
    return [_put_aside(place)] if is_obeyed and identity_of_place(place) not in known.places else []


def _shown(path: str, folder: str) -> str:
    mark = "!" if path.startswith("!") else ""
    return mark + os.path.relpath(path.removeprefix("!"), folder)


def _clean(place: str, known: Known) -> list[str]:
    """Clean an older repository: remove the settings that we created, and links and orders that a command left."""
    changed = []
    for name, content in SETTINGS.items():
        path = os.path.join(place, name)
        with contextlib.suppress(OSError):
            if identity_of_place(path) in known.put or (name == "commondir" and _content(path) == content):
                os.rmdir(path) if content is None else os.unlink(path)
    for link in links_in(place, is_after=True):
        if (link, aim_of(link)) in known.links:
            continue
        if os.path.relpath(link, place).startswith(("refs/", "logs/")):  # what stands there is a ref, whatever its name
            os.unlink(link)
        else:
            changed.append(_put_aside(link))
    return [*changed, *_without_orders(place, known)]


def links_in(place: str, *, is_after: bool, is_repository: bool = True) -> list[str]:
    """Return a repository's symbolic links, through which Git would write elsewhere, and pipes, at which it would
    block.

    Loose objects and its settings are excepted. For another folder, return all of them.
    """
    found, left = [], [place]
    while left:
        folder = left.pop()
        for entry in entries_of(folder, is_after=is_after):
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not entry.is_file(follow_symlinks=False):
                found.append(entry.path)
            elif is_folder:
                is_of_objects = os.path.basename(folder) == "objects" and len(entry.name) == 2
                is_setting = folder == place and folded(entry.name) in SETTINGS
                if not (is_repository and (is_of_objects or is_setting)):
                    left.append(entry.path)
    return found


def aim_of(link: str) -> str:
    """Return a symbolic link's text and where it finally leads; "" if it is not a link."""
    return f"{os.readlink(link)}\0{os.path.realpath(link)}" if os.path.islink(link) else ""


def orders_of(place: str) -> Iterator[tuple[str, bytes]]:
    """Yield what a rebase or a sequence of picks in a repository has still to do: files and their content."""
    for name in _GOES_ON_WITH:
        path = os.path.join(place, name)
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                yield path, file.read(_ORDER_BYTES)


def digest_of(text: bytes) -> str:
    """Return the digest of a text."""
    return hashlib.sha256(text).hexdigest()


def _without_orders(place: str, known: Known) -> list[str]:
    """Remove the commands from a rebase that a sandboxed command began or changed, so that to continue it runs none."""
    changed = []
    for path, text in orders_of(place):
        if (path, digest_of(text)) in known.orders:
            continue
        if len(text) == _ORDER_BYTES or not _merges_by_itself(path, text):
            changed.append(_put_aside(path))
        elif _ORDERS.search(text):
            with open(path, "wb") as file:
                file.write(_ORDERS.sub(b"# inert: exec", text))
            changed.append(path)
    return changed


def _merges_by_itself(path: str, text: bytes) -> bool:
    """Return whether these options start no program; orders are checked elsewhere."""
    name = os.path.basename(path)
    if name == "strategy":
        return _STRATEGY.fullmatch(text) is not None
    return name != "opts" or all(_PICK_OPTION.fullmatch(line) for line in text.splitlines())


def _make_inert(place: _Place) -> list[str]:
    if place.kind != "repository":
        return [_put_aside(place.path)]
    if folded(os.path.basename(place.path)) != ".git":  # without its head it is a folder like any other
        heads = [entry.path for entry in entries_of(place.path, is_after=True) if folded(entry.name) == "head"]
        return [_put_aside(path) for path in heads]
    changed = [place.path]
    for entry in entries_of(place.path, is_after=True):
        steers = entry.name.startswith("config") or folded(entry.name) in SETTINGS
        is_plain = entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
        if not is_plain or folded(entry.name).startswith(("rebase-", "sequencer")):
            _put_aside(entry.path)
        elif entry.name == "config" and entry.is_file(follow_symlinks=False):
            plain = _plain_settings(entry.path)
            _put_aside(entry.path)
            put_setting(os.path.join(place.path, "config"), plain)
        elif steers and not _is_harmless(entry):
            _put_aside(entry.path)
    return changed


def _is_harmless(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a sample hook, which never runs, or a list of ignored files (`git init` has both)."""
    if not entry.is_dir(follow_symlinks=False):
        return False
    below = entries_of(entry.path, is_after=True)
    ends = {"hooks": ".sample", "info": "exclude"}.get(entry.name)
    return not below or (
        ends is not None and all(each.name.endswith(ends) and each.is_file(follow_symlinks=False) for each in below)
    )


def _plain_settings(path: str) -> bytes:
    """Return a repository's settings without those that start programs."""
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
    """Rename a place within its folder."""
    parent = os.path.dirname(path)
    if not os.access(parent, os.W_OK):
        os.chmod(parent, stat.S_IMODE(os.stat(parent).st_mode) | 0o700)
    number = 0
    while os.path.lexists(to := f"{path}.inert{number or ''}"):
        number += 1
    os.rename(path, to)
    return path
