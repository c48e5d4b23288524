"""The mounts over a work folder that keep a sandboxed command from changing files that programs obey."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, final

from dragoman.agent.sandbox.git_settings import Named, named_by, of_person, pointed, settings_of, work_tree_of
from dragoman.agent.sandbox.standing_files import (
    SETTINGS,
    WRITTEN,
    Known,
    TooMuch,
    aim_of,
    digest_of,
    entries_of,
    folded,
    identity_of_place,
    links_in,
    orders_of,
    places_below,
    put_setting,
)

MOST_MOUNTS: Final = 400
_MOST_NAMED: Final = 20_000
#: Repositories in which commands can commit; further ones are read-only as a whole.
_WRITABLE: Final = 24


class Mount(NamedTuple):
    """A path that is mounted on itself."""

    place: str
    is_writable: bool


def protect(folder: str, *, home: str = "", environ: Mapping[str, str] | None = None) -> tuple[list[Mount], Known]:
    """Return the mounts that a command cannot change, parents first, and the known state for `restore`.

    Settings that a repository lacks are created empty, because only an existing file can be mounted; `restore` removes
    them. `home` and `environ` belong to the user who runs Git later, whose settings name places too.

    Raises:
        TooMuch: there is more than can be watched.
    """
    guard = _Guard(folder, home)
    guard.find()
    guard.name(environ or {})
    return guard.mounts, guard.known()


@final
class _Guard:
    """What was found so far."""

    __slots__ = (
        "_bases",
        "_folder",
        "_home",
        "_links",
        "_live",
        "_named",
        "_orders",
        "_places",
        "_put",
        "_repositories",
        "mounts",
    )

    def __init__(self, folder: str, home: str) -> None:
        self.mounts: list[Mount] = []
        self._folder = folder
        self._home = home
        self._places: set[tuple[int, int]] = set()
        self._put: set[tuple[int, int]] = set()
        self._links: set[tuple[str, str]] = set()
        self._live: list[str] = []  # symbolic links that programs obey, or that lie among what they obey
        self._orders: set[tuple[str, str]] = set()
        self._named: set[tuple[str, bool]] = set()
        self._bases: dict[str, str] = {}  # work trees, each with its repository
        self._repositories = 0

    def known(self) -> Known:
        """Return the state before the command, for `restore`."""
        return Known(
            frozenset(self._places),
            frozenset(self._put),
            frozenset(self._links),
            frozenset(self._named),
            frozenset(self._orders),
        )

    def find(self) -> None:
        """Find all live files below the folder."""
        for place in places_below(self._folder, is_after=False):
            parent = os.path.dirname(place.path)
            if place.kind == "link":
                self._note_links([place.path])
            else:
                self._places.add(identity_of_place(place.path))
            if place.kind == "repository":
                self._repositories += 1
                is_inner = folded(os.path.basename(place.path)) == ".git"
                self._bases[work_tree_of(place.path) or (parent if is_inner else place.path)] = place.path
                self._add(self._of_repository(place.path))
            elif place.kind != "link":
                self._note_links(links_in(place.path, is_after=False, is_repository=False))
                self._add([Mount(place.path, False)])
            if folded(os.path.basename(place.path)) == ".git" and place.kind != "repository":
                repository = pointed(place.path)
                if repository is not None:
                    self._bases[parent] = repository

    def _note_links(self, links: Iterable[str]) -> None:
        """Record links that programs obey: their targets must stay as they are."""
        for link in links:
            self._links.add((link, aim_of(link)))
            self._live.append(link)

    def _add(self, mounts: Iterable[Mount]) -> None:
        self.mounts += mounts
        if len(self.mounts) > MOST_MOUNTS:
            raise TooMuch(f"more than {MOST_MOUNTS} repositories and settings")

    def _of_repository(self, place: str) -> Iterator[Mount]:
        entries = {entry.name: entry for entry in entries_of(place, is_after=False)}
        self._links.update((link, aim_of(link)) for link in links_in(place, is_after=False))
        self._orders.update((path, digest_of(text)) for path, text in orders_of(place))
        steering = [name for name in entries if name.startswith("config") or folded(name) in SETTINGS]
        has_links = any(entries[name].is_symlink() for name in (*steering, *WRITTEN) if name in entries)
        if place != self._folder and (has_links or self._repositories > _WRITABLE):
            yield Mount(place, False)
            return
        if place != self._folder:
            yield Mount(place, True)
        for name, content in SETTINGS.items():
            if name not in entries and put_setting(os.path.join(place, name), content):
                self._put.add(identity_of_place(os.path.join(place, name)))
                steering.append(name)
        for name in WRITTEN:
            if name in entries and entries[name].is_dir(follow_symlinks=False):
                yield Mount(os.path.join(place, name), True)
        for name in steering:
            yield Mount(os.path.join(place, name), False)

    def name(self, environ: Mapping[str, str]) -> None:
        """Record what settings and live links name in the folder. Existing places are mounted, others are watched."""
        files, words = of_person(self._home, environ) if self._home else ([], [])
        bases = {**self._bases, self._folder: self._bases.get(self._folder, "")}
        found = list(named_by(files, bases, self._home))
        found += [Named(os.path.realpath(os.path.join(base, word)), False) for word in words for base in bases]
        for base, repository in bases.items():
            if repository:
                found += named_by(settings_of(repository), {base, repository}, self._home)
        for path, is_folder in found:
            if is_folder and path.startswith(f"{self._folder}/") and os.path.isdir(path):
                self._note_links(links_in(path, is_after=False, is_repository=False))
        found += [Named(os.path.realpath(link), True) for link in self._live]
        repositories = sorted(set(self._bases.values()))
        for path, is_folder in dict.fromkeys(found):
            if not path.startswith(f"{self._folder}/") or _is_of(path, repositories) or (path, True) in self._named:
                continue
            self._named.add((path, is_folder))
            if len(self._named) > _MOST_NAMED:
                raise TooMuch(f"settings that name more than {_MOST_NAMED:,} places")
            if os.path.isfile(path) or (is_folder and os.path.isdir(path)):
                self._places.add(identity_of_place(path))
                self._add([Mount(path, False)])


def _is_of(path: str, repositories: Iterable[str]) -> bool:
    """Return whether a path lies in a repository, which is protected as one, or contains one."""
    return any(f"{path}/".startswith(f"{each}/") or each.startswith(f"{path}/") for each in repositories)
