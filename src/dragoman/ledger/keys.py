"""Virtual keys: their owner and what they may ask for. A key is known by the SHA-256 of its 256 random bits.

Keys stand in the configuration file or in the store. A name in the file hides the same name in the store.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any, Final, final

import msgspec

from dragoman import _json
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Missing, Refused
from dragoman.ledger.stores.managing import Change, open_managed

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_BYTES: Final = 32
_PREFIX: Final = "dragoman-"  # so that a key that leaked is found by those who look for keys
_MOST_LABELS: Final = 32
_MOST_PATTERNS: Final = 256
_LONGEST_LABEL: Final = 200
_LAST_SECOND: Final = 253_402_300_799
#: Columns of a key.
KEY_FIELDS: Final = "name, owner, team, labels, models, routes, expires, disabled, created"
_ALL: Final = f"SELECT {KEY_FIELDS} FROM virtual_key ORDER BY name"
_ENDS: Final = "UPDATE key_digest SET until = ? WHERE key = ? AND coalesce(until > ?, true)"
_ONE: Final = f"SELECT {KEY_FIELDS} FROM virtual_key WHERE name = ?"


@final
class VirtualKey(msgspec.Struct, frozen=True, kw_only=True):
    """A client's key.

    Attributes:
        name: the key's unique name, which the ledger's rows carry.
        owner, team, labels: of the key.
        models: patterns of `provider/model` that it may ask for (`*` is any text).
        routes: patterns of names of routes that it may ask for.
        expires, disabled: Unix seconds from which the key is refused, or None.
        created: Unix seconds; 0 for a key of the file.
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
        """Return whether the key admits its client at this time."""
        return (self.expires is None or now < self.expires) and (self.disabled is None or now < self.disabled)

    def permits(self, name: str) -> bool:
        """Return whether the key may ask for a route or for `provider/model`."""
        patterns = self.models if "/" in name else self.routes
        return any(pattern == "*" or fnmatchcase(name, pattern) for pattern in patterns)


def check_key(key: VirtualKey) -> VirtualKey:
    """Return the key if it may be created.

    Raises:
        ValueError: a field has the wrong form; the message names the field and what was expected.
    """
    check_name(key.name)
    for field, name in (("owner", key.owner), ("team", key.team)):
        if name:
            check_name(name, f"{field}: ")
    if len(key.labels) > _MOST_LABELS:
        raise ValueError(f"labels: expected {_MOST_LABELS} at most, got {len(key.labels)}")
    for name, value in key.labels.items():
        if not name or not value or len(name + value) > _LONGEST_LABEL or not (name + value).isprintable():
            raise ValueError(
                f"labels: expected NAME=VALUE of {_LONGEST_LABEL} characters at most, got {name[:40]!r}={value[:40]!r}"
            )
        if "=" in name or "," in name + value:
            raise ValueError(f"labels: expected no comma, and no = in a name, got {name[:40]!r}={value[:40]!r}")
    for field, patterns in (("models", key.models), ("routes", key.routes)):
        wrong = [each for each in patterns if not each or len(each) > _LONGEST_LABEL or not each.isprintable()]
        if wrong or len(patterns) > _MOST_PATTERNS:
            shown = repr(wrong[0][:40]) if wrong else f"{len(patterns)} of them"
            expected = f"{_MOST_PATTERNS} patterns at most, of 1 to {_LONGEST_LABEL} characters"
            raise ValueError(f"{field}: expected {expected}, got {shown}")
    if key.expires is not None and not 0 <= key.expires <= _LAST_SECOND:
        raise ValueError(f"expires: expected Unix seconds before the year 10000, got {key.expires}")
    return key


def new_secret() -> tuple[str, bytes]:
    """Return a new key's secret, which is shown once, and its SHA-256."""
    secret = _PREFIX + secrets.token_urlsafe(_BYTES)
    return secret, hashlib.sha256(secret.encode()).digest()


def check_name(name: str, where: str = "") -> str:
    """Return the text if it can name a key, an owner or a team. Raises `ValueError`: it cannot."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{where}expected a name of letters, digits and . _ @ -, 64 at most, got {name[:80]!r}")
    return name


class KeyBook:
    """Manages the store's keys. Every change stands in the audit.

    Beside PostgreSQL there may be keys of this machine alone, created while its ledger was in files. They stay valid
    and are changed here until the store has a key of their name.
    """

    __slots__ = ("_actor", "_machine", "_may", "_now", "_store")

    def __init__(
        self,
        folder: LedgerFolder,
        *,
        actor: str,
        may: Callable[[VirtualKey], None] = lambda key: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Create it.

        Args:
            actor: who makes the changes, for the audit.
            may: raises if the actor may not change a key; called inside the transaction.
        """
        self._may = may
        self._store = open_managed(folder, now=now)
        self._machine = None if folder.store is None else open_managed(LedgerFolder(folder.root), now=now)
        self._actor = actor
        self._now = now

    def add(self, key: VirtualKey, digest: bytes) -> None:
        """Add a key.

        Raises:
            Refused: the name is taken.
            StoreAway: the store cannot be written.
        """
        if self._machine is not None and self._machine.select(_ONE, key.name):
            raise Refused(f"there is a key {key.name} already, on this machine")
        with self._store.changing() as change:
            if change.select(_ONE, key.name):
                raise Refused(f"there is a key {key.name} already")
            key = msgspec.structs.replace(key, created=int(self._now()))
            change.execute(f"INSERT INTO virtual_key({KEY_FIELDS}) VALUES(?,?,?,?,?,?,?,?,?)", key.name, *_values(key))
            change.execute("INSERT INTO key_digest VALUES(?,?,NULL)", digest, key.name)
            change.note(self._actor, "key new", key.name, {"key": msgspec.to_builtins(key)})

    def list(self) -> list[VirtualKey]:
        """Return the store's keys by name. Raises `StoreAway`: the store cannot be read."""
        return [read_key(row) for row in self._store.select(_ALL)]

    def of_machine(self) -> Sequence[VirtualKey]:
        """Return the keys of this machine alone by name. Raises as `list`."""
        if self._machine is None:
            return []
        names = {key.name for key in self.list()}
        return [key for row in self._machine.select(_ALL) if (key := read_key(row)).name not in names]

    def alter(self, name: str, edit: Callable[[VirtualKey], VirtualKey]) -> VirtualKey:
        """Change a key with `edit`, in one transaction, so that no concurrent change is lost. Return the changed key.

        Its name and creation time stay.

        Raises:
            Refused, StoreAway: as `disable`. An exception of `edit` is raised too, and nothing has changed then.
        """
        with self._changing(name) as (change, before):
            key = msgspec.structs.replace(edit(before), name=before.name, created=before.created)
            change.execute(
                "UPDATE virtual_key SET owner = ?, team = ?, labels = ?, models = ?, routes = ?, expires = ?, "
                "disabled = ?, created = ? WHERE name = ?", *_values(key), name,
            )  # fmt: skip
            both = {"before": msgspec.to_builtins(before), "after": msgspec.to_builtins(key)}
            change.note(self._actor, "key alter", name, both)
        return key

    def disable(self, name: str, *, at: int | None) -> None:
        """Disable a key from a time on, or enable it (`at` None).

        Raises:
            Refused: there is no such key, or `may` refuses it.
            StoreAway: the store cannot be written.
        """
        with self._changing(name) as (change, _):
            change.execute("UPDATE virtual_key SET disabled = ? WHERE name = ?", at, name)
            change.note(self._actor, "key enable" if at is None else "key disable", name, {"disabled": at})

    def rotate(self, name: str, digest: bytes, *, keep_seconds: int) -> None:
        """Give a key another secret. Earlier secrets stay valid for `keep_seconds`.

        Raises:
            Refused, StoreAway: as `disable`.
        """
        until = int(self._now()) + keep_seconds
        with self._changing(name) as (change, _):
            change.execute(_ENDS, until, name, until)
            change.execute("INSERT INTO key_digest VALUES(?,?,NULL)", digest, name)
            change.note(self._actor, "key rotate", name, {"before_until": until})

    def close(self) -> None:
        """Close the store. No further change is made."""
        self._store.close()
        if self._machine is not None:
            self._machine.close()

    @contextmanager
    def _changing(self, name: str) -> Iterator[tuple[Change, VirtualKey]]:
        """Yield the store's transaction and the key. Raises Refused, StoreAway."""
        with self._store.changing() as change:
            if found := change.select(_ONE, name):
                self._may(key := read_key(found[0]))
                yield change, key
                return
        if self._machine is None or not self._machine.select(_ONE, name):
            raise Missing(f"there is no key {name}")
        with self._machine.changing() as change:
            self._may(key := read_key(change.select(_ONE, name)[0]))
            yield change, key


def read_key(row: Sequence[Any]) -> VirtualKey:
    """Return the key of a row of `KEY_FIELDS`."""
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


def _values(key: VirtualKey) -> tuple[object, ...]:
    """Return a key's values in the order of `KEY_FIELDS`, without the name."""
    texts = (_text(key.labels), _text(key.models), _text(key.routes))
    return key.owner, key.team, *texts, key.expires, key.disabled, key.created


def _decoded(text: str, kind: type) -> Any:
    value = _json.decode(text.encode())
    return value if isinstance(value, kind) else kind()


def _text(value: object) -> str:
    return _json.encode(msgspec.to_builtins(value)).decode()
