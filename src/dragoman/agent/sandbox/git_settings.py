"""Find what Git's settings name in a work folder: folders of hooks, further settings, programs. Git obeys those too.

Settings come from the repository, from the user who runs Git (`~/.gitconfig` and similar files, variables), and from
all files that these include, whatever the condition of an `includeIf`. A place is named even if it does not exist yet.

References: https://git-scm.com/docs/git-config#_syntax, https://git-scm.com/docs/gitrepository-layout
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

#: Keys whose values start nothing and name no file; of `core.worktree` it is the base that matters.
PLAIN_KEYS: Final = frozenset(
    {
        "repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode",
        "objectformat", "url", "fetch", "push", "remote", "merge", "name", "email", "worktree", "active",
    }
)  # fmt: skip
#: Keys whose values are a folder, or a file of settings.
_FOLDERS: Final = frozenset({"hookspath", "templatedir"})
_SECTION: Final = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"(?:[^"\\]|\\.)*+")?\s*\]')
_SPLIT: Final = re.compile(r"""[\s"'!;|&=()<>`$]+""")
_FILES: Final = 64
_FILE_BYTES: Final = 65_536
_WORDS: Final = 400


class Named(NamedTuple):
    """A place that settings name. `is_folder`: Git obeys a folder there too, else only a file."""

    path: str
    is_folder: bool


class _Setting(NamedTuple):
    section: str
    key: str
    value: str
    file: str


def content_of(path: str, most: int = _FILE_BYTES) -> str:
    """Return the first bytes of a regular file, "" for anything else: a pipe would block."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return os.read(handle, most).decode("utf-8", "surrogateescape") if _is_regular(handle) else ""
        finally:
            os.close(handle)
    except OSError:
        return ""


def _is_regular(handle: int) -> bool:
    return stat.S_ISREG(os.fstat(handle).st_mode)


def of_person(home: str, environ: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the settings files that apply to every repository, and the variables that Git obeys."""
    places = [environ.get(name, "") for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG")]
    folder = environ.get("XDG_CONFIG_HOME", "") or f"{home}/.config"
    files = [f"{home}/.gitconfig", f"{folder}/git/config", "/etc/gitconfig", *(each for each in places if each)]
    words = [value for name, value in environ.items() if name.startswith("GIT_")]
    return files, [word for value in words for word in _SPLIT.split(value) if "/" in word]


def settings_of(repository: str) -> list[str]:
    """Return a repository's settings files, with those of the repository that it shares."""
    shared = content_of(os.path.join(repository, "commondir"), 4_096).strip("\n")
    places = [repository, *([os.path.normpath(os.path.join(repository, shared))] if shared else [])]
    return [os.path.join(place, name) for place in places for name in ("config", "config.worktree")]


def pointed(pointer: str) -> str | None:
    """Return the repository that a file or link named `.git` leads to."""
    if os.path.islink(pointer):
        return os.path.realpath(pointer)
    first = content_of(pointer, 4_096).partition("\n")[0]
    if not first.startswith("gitdir:"):
        return None
    return os.path.realpath(os.path.join(os.path.dirname(pointer), first.removeprefix("gitdir:").strip()))


def named_by(files: Iterable[str], bases: Iterable[str], home: str) -> Iterator[Named]:
    """Yield what settings name, as real paths. Relative ones are resolved against each base, which are work trees."""
    places = list(bases)
    for setting in _read(files, home):
        if setting.key in PLAIN_KEYS:
            continue
        if setting.section.startswith("include") and setting.key == "path":
            yield Named(_resolved(setting.value, os.path.dirname(setting.file), home), False)
            continue
        is_folder = setting.key in _FOLDERS
        words = [setting.value] if is_folder else _SPLIT.split(setting.value)[:_WORDS]
        for word in words:
            # A bare word is a program of the machine, or, in what Git starts by itself, a script of the work tree.
            if is_folder or "/" in word or ("." in word and setting.section != "alias"):
                for base in places if not word.startswith(("/", "~")) else ["/"]:
                    yield Named(_resolved(word, base, home), is_folder)


def work_tree_of(repository: str) -> str | None:
    """Return the work tree that a repository's settings name."""
    for setting in _read([os.path.join(repository, "config"), os.path.join(repository, "config.worktree")], ""):
        if (setting.section, setting.key) == ("core", "worktree"):
            return os.path.realpath(os.path.join(repository, setting.value))
    return None


def _resolved(word: str, base: str, home: str) -> str:
    if word.startswith("~/") and home:
        return os.path.realpath(os.path.join(home, word[2:]))
    return os.path.realpath(os.path.join(base, word))


def _read(files: Iterable[str], home: str) -> Iterator[_Setting]:
    """Yield the settings of files and of all that they include."""
    left, seen = list(files), set[str]()
    while left and len(seen) < _FILES:
        file = os.path.realpath(left.pop(0))
        if file in seen:
            continue
        seen.add(file)
        section = ""
        for line in content_of(file).replace("\\\r\n", "").replace("\\\n", "").splitlines():
            rest = line
            while (found := _SECTION.match(rest)) is not None:
                section, rest = found[1].lower().partition(".")[0], rest[found.end() :]
            key, mark, value = rest.partition("=")
            if mark and not key.lstrip().startswith(("#", ";")):
                setting = _Setting(section, key.strip().lower(), _value_of(value), file)
                yield setting
                if section.startswith("include") and setting.key == "path":
                    left.append(_resolved(setting.value, os.path.dirname(file), home))


def _value_of(text: str) -> str:
    """Return a value without its quotes and escapes. Possible comments stay."""
    return re.sub(r'\\(.)|"', r"\1", text).strip()
