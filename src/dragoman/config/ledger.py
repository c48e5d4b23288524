"""The ledger's settings, and virtual keys that stand in the configuration file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Annotated, Final, Literal, final
from urllib.parse import urlsplit

import msgspec

from dragoman.config.quotas import Quota
from dragoman.errors import ConfigError
from dragoman.secret import Secret

#: What a key, an owner and a team may be called, and what a key is known by.
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_SCHEMES: Final = ("postgresql", "postgres")
_COUNTERS: Final = ("valkey", "valkeys", "redis", "rediss")
_WITHOUT_TLS: Final = ("valkey", "redis")
_THIS_MACHINE: Final = ("localhost", "127.0.0.1", "::1")
#: Of a limit in Valkey, whose numbers are whole up to 2^53: micro-dollars, and tokens or requests.
_MOST_MICRO: Final = 2**53 // 1_000 - 1
_MOST_COUNT: Final = 2**53 - 1
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


@final
class LedgerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ledger in the state folder.

    Attributes:
        enabled: False: nothing is recorded.
        keep_attempts_days: how long attempts are kept, by whole months; hourly sums stay.
        durability: what the record before a request survives: the end of the process, or a power cut too. Then requests
            wait for the disk.
        journals_mib: the journals that may wait for the store. Beyond it requests are refused if clients have keys or
            quotas apply, and otherwise not recorded.
        store: `sqlite`, in the state folder, or the address of a PostgreSQL
            (`postgresql://USER:PASSWORD@HOST/DATABASE`) that several machines may share, by reference (`env:`, `file:`)
            or as it is.
        counters: `store`: limits are counted beside the rows; or the address of a Valkey or Redis
            (`valkey://USER:PASSWORD@HOST:PORT`) beside a PostgreSQL.
        replica_max_age_seconds: after so long without contact to PostgreSQL its keys admit no one.
    """

    enabled: bool = True
    durability: Literal["process", "power"] = "process"
    keep_attempts_days: Annotated[int, msgspec.Meta(ge=1)] = 400
    journals_mib: Annotated[int, msgspec.Meta(ge=4)] = 1_024
    store: Secret | None = None
    counters: Secret | None = None
    replica_max_age_seconds: Annotated[float, msgspec.Meta(gt=0)] = 86_400


@final
class KeyConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A virtual key.

    Attributes:
        digests: `sha256:HEX` of the client's secret; two while it is being replaced.
        expires: the first day, in UTC, on which it is no longer valid.
    """

    digests: tuple[str, ...]
    owner: str = ""
    team: str = ""
    labels: dict[str, str] = {}
    models: tuple[str, ...] = ("*",)
    routes: tuple[str, ...] = ("*",)
    expires: date | None = None
    disabled: bool = False


def check_keys(keys: dict[str, KeyConfig]) -> dict[str, KeyConfig]:
    """Return the keys of a file by name.

    Raises:
        ConfigError: a name or a digest has the wrong form, or two keys have one digest.
    """
    named: dict[str, str] = {}
    for name, key in keys.items():
        where = f"keys.{name[:80]}"
        for place, what in (("", name), (".owner", key.owner or name), (".team", key.team or name)):
            if not NAME.fullmatch(what):
                raise ConfigError(f"{where}{place}: expected a name of letters, digits and . _ @ -, got {what[:80]!r}")
        for position, digest in enumerate(key.digests):
            if not _DIGEST.fullmatch(digest):
                raise ConfigError(f"{where}.digests[{position}]: expected sha256:HEX, got something else (not shown)")
            if digest in named:
                raise ConfigError(f"{where}.digests[{position}]: keys.{named[digest]} has the same")
            named[digest] = name
    return keys


def check_store(address: Secret, where: str = "ledger.store") -> None:
    """Check the address of a PostgreSQL. `where` is its place in the configuration, for messages.

    Raises:
        ConfigError: the text is not an address; the text itself is not shown.
    """
    words = where + ": expected sqlite, or postgresql://USER:PASSWORD@HOST:PORT/DATABASE, got {} (not shown)"
    try:
        parts = urlsplit(address.reveal())
        port_is_wrong = parts.port == 0
    except ValueError:
        raise ConfigError(words.format("an address that cannot be read")) from None
    if parts.scheme not in _SCHEMES or port_is_wrong:
        raise ConfigError(words.format("something else"))
    has_host = parts.hostname or "host=" in parts.query  # of a socket in the file system
    if not has_host or not parts.path.strip("/"):
        raise ConfigError(words.format("one without a host or a database"))


def check_counters(address: Secret) -> None:
    """Check the address of a Valkey.

    Raises:
        ConfigError: the text is not an address, or reaches another machine without TLS; the text itself is not shown.
    """
    words = "ledger.counters: expected store, or valkeys://USER:PASSWORD@HOST:PORT/NUMBER, got {} (not shown)"
    try:
        parts = urlsplit(address.reveal())
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ConfigError(words.format("an address that cannot be read")) from None
    if parts.scheme not in _COUNTERS:
        raise ConfigError(words.format("something else"))
    number = parts.path.strip("/")
    if not has_host or not (number == "" or (number.isascii() and number.isdigit())):
        raise ConfigError(words.format("one without a host, or with more than a number after it"))
    if parts.query not in ("", "tls=off"):
        raise ConfigError(words.format("one with other words than ?tls=off"))
    if parts.scheme in _WITHOUT_TLS and parts.hostname not in _THIS_MACHINE and not parts.query:
        raise ConfigError(words.format("one without TLS beyond this machine; ?tls=off says that it is meant"))


def check_amounts(quotas: Iterable[Quota]) -> None:
    """Check that Valkey can count these limits exactly. Raises `ConfigError`: one is greater."""
    for quota in quotas:
        if quota.amount > (_MOST_MICRO if quota.unit == "usd" else _MOST_COUNT):
            raise ConfigError(f"quotas: {quota.name}: expected less than 9 million US dollars, or 2^53, in Valkey")
