"""Virtual keys: what a client shows, who it belongs to, what it may ask. Known by the SHA-256 of 256 random bits.

Keys stand in the configuration's file or in the store; a name of the file stands over the same one of the store.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, final

import msgspec

from dragoman import _json
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Refused, StoreAway
from dragoman.ledger.stores.files import MAIN_FILE, read_file, serial_of
from dragoman.ledger.stores.sqlite import SqliteStore, write_audit

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
#: Seconds for which a look at the store holds.
_LOOK: Final = 0.25
#: Keys that are remembered, those that are none of ours among them.
_MOST_REMEMBERED: Final = 10_000
_FIELDS: Final = "name, owner, team, labels, models, routes, expires, disabled, created"


@final
class VirtualKey(msgspec.Struct, frozen=True, kw_only=True):
    """A client's key.

    Attributes:
        name: of the key, unique; rows of the ledger have it.
        owner, team, labels: who it belongs to.
        models: patterns (`*` is any text) of `provider/model` that it may ask for; `routes`: of names of routes.
        expires, disabled: Unix seconds from which it is none; None: it does not end, it is not.
        created: Unix seconds; 0 for one of the file.
    """

    name: str
    owner: str = ""
    team: str = ""
    labels: dict[str, str] = {}
    models: tuple[str, ...] = ("*",)
    routes: tuple[str, ...] = ("*",)
    expires: int | None = None
    disabled: int | None = None
    created: int = 0

    def holds_at(self, now: float) -> bool:
        """Whether it lets its client in."""
        return (self.expires is None or now < self.expires) and (self.disabled is None or now < self.disabled)

    def permits(self, name: str) -> bool:
        """Whether it may ask for a route or for `provider/model`."""
        patterns = self.models if "/" in name else self.routes
        return any(pattern == "*" or fnmatchcase(name, pattern) for pattern in patterns)


def check_name(name: str) -> str:
    """A name for a key, an owner or a team.

    Raises:
        ValueError: it is none.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"expected a name of letters, digits and . _ @ -, 64 at most, got {name[:80]!r}")
    return name


class KeyRing:
    """Finds keys by their digest. For one thread; the store is looked at again a quarter of a second after a look."""

    __slots__ = (
        "_connection", "_file", "_has_any", "_is_known", "_looked", "_now", "_of_file", "_remembered", "_serial",
        "_version",
    )  # fmt: skip

    def __init__(
        self,
        folder: LedgerFolder | None,
        of_file: Mapping[bytes, VirtualKey] = {},
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`folder` None: there is no store. `of_file`: by digest."""
        self._file = None if folder is None else folder.root / MAIN_FILE
        self._now = now
        self._connection: sqlite3.Connection | None = None
        self._version = -1
        self._serial = (0, 0)  # of the file that is open
        self._looked = 0.0
        self._has_any = self._is_known = False
        self._remembered: dict[bytes, VirtualKey | None] = {}
        self.take(of_file)

    def take(self, of_file: Mapping[bytes, VirtualKey]) -> None:
        """Go by these keys of the configuration's file from now on."""
        self._of_file = dict(of_file)

    @property
    def has_any(self) -> bool:
        """Whether there is a key at all, so that clients need one."""
        if self._of_file:
            return True
        self._look()
        return self._has_any

    def find(self, digest: bytes) -> VirtualKey | None:
        """The key with this SHA-256; None: none of ours, expired or disabled."""
        key = self._of_file.get(digest)
        if key is None:
            self._look()
            key = self._known(digest) if self._has_any else None
        return key if key is not None and key.holds_at(self._now()) else None

    def close(self) -> None:
        """The next look opens the store anew."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()
        self._remembered.clear()

    def _known(self, digest: bytes) -> VirtualKey | None:
        if digest in self._remembered:
            return self._remembered[digest]
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        try:
            found = None if self._connection is None else _find(self._connection, digest)
        except sqlite3.Error:
            return None  # a key that cannot be looked up lets nobody in
        if found is None or found.name not in {key.name for key in self._of_file.values()}:
            self._remembered[digest] = found
            return found
        return None

    def _look(self) -> None:
        """See whether the store's keys have changed."""
        now = time.monotonic()
        if now - self._looked < _LOOK or self._file is None:
            return
        self._looked = now
        try:
            if self._connection is None or serial_of(self._file) != self._serial:
                self.close()  # somebody removed it, or put another in its place
                self._serial = serial_of(self._file)
                self._connection, self._version = read_file(self._file), -1
            if self._connection is None:
                self._has_any, self._is_known = False, True
                return
            [version] = self._connection.execute("PRAGMA data_version").fetchone()
            if version != self._version:
                self._version = version
                self._remembered.clear()
                found = self._connection.execute("SELECT 1 FROM virtual_key LIMIT 1").fetchone()
                self._has_any, self._is_known = found is not None, True
        except (sqlite3.Error, StoreAway):
            self.close()  # what was known stays: where clients needed a key they need one still
            if not self._is_known:
                self._has_any = True  # whether there are keys nobody can say until the file can be read


def _find(connection: sqlite3.Connection, digest: bytes) -> VirtualKey | None:
    found = connection.execute(
        f"SELECT {_FIELDS}, until FROM key_digest JOIN virtual_key ON name = key WHERE digest = ?", (digest,)
    ).fetchone()
    if found is None:
        return None
    key, until = _read(found[:-1]), found[-1]
    if until is None or (key.expires is not None and key.expires <= until):
        return key
    return msgspec.structs.replace(key, expires=until)  # a secret that was rotated away


def _read(row: tuple[Any, ...]) -> VirtualKey:
    name, owner, team, labels, models, routes, expires, disabled, created = row
    return VirtualKey(
        name=name,
        owner=owner,
        team=team,
        labels=_decoded(labels, dict),
        models=tuple(_decoded(models, list)),
        routes=tuple(_decoded(routes, list)),
        expires=expires,
        disabled=disabled,
        created=created,
    )


def _decoded(text: str, kind: type) -> Any:
    value = _json.decode(text.encode())
    return value if isinstance(value, kind) else kind()


# ---------------------------------------------------------------- changing them


class KeyBook:
    """The store's keys, for those who manage them. The audit has every change."""

    __slots__ = ("_actor", "_folder", "_now", "_store")

    def __init__(self, folder: LedgerFolder, *, actor: str, now: Callable[[], float] = time.time) -> None:
        """`actor`: who changes, for the audit."""
        self._folder = folder
        self._store = SqliteStore(folder.root, now=now)
        self._actor = actor
        self._now = now

    def add(self, key: VirtualKey, digest: bytes) -> None:
        """A new key.

        Raises:
            Refused: there is one of this name.
            StoreAway: the store cannot be written.
        """
        created = int(self._now())
        with self._store.changing() as main:
            if main.execute("SELECT 1 FROM virtual_key WHERE name = ?", (key.name,)).fetchone():
                raise Refused(f"there is a key {key.name} already")
            values = (
                key.name, key.owner, key.team, _text(key.labels), _text(key.models), _text(key.routes), key.expires,
                key.disabled, created,
            )  # fmt: skip
            main.execute(f"INSERT INTO virtual_key({_FIELDS}) VALUES(?,?,?,?,?,?,?,?,?)", values)
            main.execute("INSERT INTO key_digest VALUES(?,?,NULL)", (digest, key.name))
            self._note(main, "new", key.name, {"key": msgspec.to_builtins(key)})

    def list(self) -> list[VirtualKey]:
        """All of them, by name.

        Raises:
            StoreAway: the store cannot be read.
        """
        main = read_file(self._folder.root / MAIN_FILE)
        if main is None:
            return []
        with closing(main):
            return [_read(row) for row in main.execute(f"SELECT {_FIELDS} FROM virtual_key ORDER BY name")]

    def disable(self, name: str, *, at: int | None) -> None:
        """Disable a key from now on, or enable it (`at` None).

        Raises:
            Refused: there is none of this name.
            StoreAway: as `add`.
        """
        with self._store.changing() as main:
            if not main.execute("UPDATE virtual_key SET disabled = ? WHERE name = ?", (at, name)).rowcount:
                raise Refused(f"there is no key {name}")
            self._note(main, "enable" if at is None else "disable", name, {"disabled": at})

    def rotate(self, name: str, digest: bytes, *, keep_seconds: int) -> None:
        """Give a key another secret; the ones before hold for so many seconds more.

        Raises:
            Refused, StoreAway: as `disable`.
        """
        until = int(self._now()) + keep_seconds
        with self._store.changing() as main:
            if main.execute("SELECT 1 FROM virtual_key WHERE name = ?", (name,)).fetchone() is None:
                raise Refused(f"there is no key {name}")
            main.execute("UPDATE key_digest SET until = min(coalesce(until, ?), ?) WHERE key = ?", (until, until, name))
            main.execute("INSERT INTO key_digest VALUES(?,?,NULL)", (digest, name))
            self._note(main, "rotate", name, {"before_until": until})

    def close(self) -> None:
        """Nothing more is changed."""
        self._store.close()

    def _note(self, main: sqlite3.Connection, action: str, name: str, change: dict[str, Any]) -> None:
        write_audit(main, int(self._now() * 1_000_000), self._actor, f"key {action}", name, change)


def _text(value: object) -> str:
    return _json.encode(msgspec.to_builtins(value)).decode()


def folder_of(state: Path | None) -> LedgerFolder | None:
    """The ledger's folder of a gateway's state folder."""
    return None if state is None else LedgerFolder.of(state)
