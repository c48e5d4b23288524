"""Counters in Valkey, or in Redis 7 or newer. Only this file imports the driver.

The server need not persist anything. A restarted server, empty or from a snapshot, and a promoted replica are a new
life of the counters. A connection recognises it by the server's `run_id`, which it reads when it opens. Accounts are
spread over 64 buckets; all keys of one call share a hash tag, `{bNN}`.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Collection
from functools import cache, partial
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from dragoman.errors import MissingExtra
from dragoman.ledger.counters import valkey_scripts as scripts
from dragoman.ledger.counters.aside import Aside
from dragoman.ledger.counters.remote import Listing, Share
from dragoman.ledger.interfaces import Account, Claim, CountersAway, Lease
from dragoman.ledger.limits.accounts import is_recorded
from dragoman.secret import Secret, masked

try:
    import valkey
    from valkey.backoff import NoBackoff
    from valkey.retry import Retry
except ImportError:
    raise MissingExtra('counters in Valkey need the extra "fleet": pip install "dragoman[fleet]"') from None

_BUCKETS: Final = 64
#: Seconds until a connection has begun.
_CONNECT_SECONDS: Final = 3.0
#: Seconds between two tries of a server that did not answer, the first and the longest.
_PAUSE, _LONGEST_PAUSE = 0.5, 4.0
_REMEMBERED: Final = 2 * 86_400.0
_KEPT_AFTER: Final = 2 * 3_600.0
#: Numbers that a script has exactly.
_MOST: Final = 2**53
#: Accounts that are read at once.
_AT_ONCE: Final = 500
_READ_SIZE: Final = 65_536
_END: Final = b"\r\n"
_KINDS: Final = (b"$", b":", b"-", b"+")
#: In place of a word that there is not.
_NONE: Final = "-"
_NO_TLS: Final = "tls=off"
_WITH_TLS: Final = ("valkeys:", "rediss:")


class _Line(NamedTuple):
    """A driver's client with its single connection."""

    client: Any
    connection: Any

    def set_patience(self, seconds: float) -> None:
        """Set how many seconds each later call waits for an answer."""
        connection = self.connection
        connection.socket_timeout = seconds
        if connection._sock is not None:
            connection._sock.settimeout(seconds)
            connection._parser.on_connect(connection)  # which sets the connection's time again whenever it has looked


class ValkeyPlace:
    """Counters in Valkey; see `Place`. Safe for several threads."""

    __slots__ = (
        "_aside", "_away_until", "_begun", "_epoch", "_line", "_lives", "_lock", "_now", "_password", "_patience",
        "_pause", "_server", "_url", "name",
    )  # fmt: skip

    def __init__(self, address: Secret, *, patience: float, now: Callable[[], float] | None = None) -> None:
        """Create it; the first call connects.

        Args:
            address: `valkey://USER:PASSWORD@HOST:PORT/NUMBER`; `valkeys://` uses TLS.
            patience: seconds to wait for an answer.
            now: the seconds of a clock that all holders share, in place of the server's.
        """
        parts = urlsplit(address.reveal())
        words = [word for word in parts.query.split("&") if word and word != _NO_TLS]
        self._url = Secret(parts._replace(query="&".join(words)).geturl())
        self.name = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self._password = unquote(parts.password or "")
        self._aside = Aside(patience)
        self._patience = patience
        self._now = now
        self._lock = threading.RLock()
        self._line: _Line | None = None
        self._begun: _Line | None = None  # since somebody waited for it
        self._server = ""
        self._lives: list[str] = []
        self._epoch = ""
        self._away_until, self._pause = 0.0, _PAUSE

    def do(self, work: Callable[[Any], Any]) -> Any:
        """Run `work` with the driver's client, for other data in the same server. It may run twice. Raises
        CountersAway.
        """
        return self._do(work)

    def epoch(self) -> str:
        def read(client: Any) -> str:
            pipeline = client.pipeline(transaction=False)
            for bucket in range(_BUCKETS):
                pipeline.hmget(_keys(bucket)[0], "epoch", "server")
            found = pipeline.execute()
            if any(server != self._server or not epoch for epoch, server in found):
                return ""
            return self._know([epoch for epoch, _ in found])

        return cast(str, self._do(read))

    def begin(self, epoch: str, awaited: Collection[str]) -> str:
        lives = [
            str(self._run(scripts.BEGIN, bucket, None, ' '.join(awaited), known=epoch)) for bucket in range(_BUCKETS)
        ]  # fmt: skip
        return self._know(lives)

    def awaited(self) -> set[str]:
        return set().union(*self._for_all(lambda pipeline, keys: pipeline.smembers(keys[1])))

    def heard(self, *holders: str) -> None:
        self._for_all(lambda pipeline, keys: pipeline.srem(keys[1], *holders))

    def take(self, claim: Claim, *, announces: bool, filling: str | None = None) -> Lease | None:
        told = claim.facts.spent + claim.facts.reserved
        if max(told + claim.want, claim.limit) >= _MOST:
            raise CountersAway(f"{self.name}: expected numbers below 2^53")
        if claim.epoch != self._epoch or not self._lives:
            return Lease("lost", epoch=self._epoch)
        forget_at = _NONE if math.isinf(claim.until) else int((claim.until + _KEPT_AFTER) * 1_000)
        found = self._run(
            scripts.TAKE, _bucket(claim.account), claim.account,
            f"{claim.account} {claim.holder} {claim.number} {told} {claim.want} {claim.least} {claim.limit} "
            f"{claim.generation} {forget_at} {int(is_recorded(claim.account))} {int(announces)} {filling or ''}",
        )  # fmt: skip
        if found in ("lost", "stale"):
            return Lease(found, epoch=claim.epoch)
        if found == "cold":
            return None
        outcome, amount, is_tight, others, was_cold = found.split("|")
        return Lease(outcome, int(amount), is_tight == "1", claim.epoch, int(others), was_cold == "1")

    def fold(self, account: Account, holder: str, spent: int) -> None:
        self._run(scripts.FOLD, _bucket(account), account, f"{holder} {spent}")

    def expire(self, account: Account, holder: str, used: int, since: float | None = None) -> None:
        heard = _NONE if since is None else f"{since:.3f}"
        self._run(scripts.EXPIRE, _bucket(account), account, f"{holder} {used} {heard}")

    def correct(self, account: Account, adjusted: int) -> None:
        self._run(scripts.CORRECT, _bucket(account), account, f"{adjusted}")

    def close_at(self, account: Account, least: int) -> None:
        self._run(scripts.CLOSE_AT, _bucket(account), account, f"{least}")

    def listing(self) -> Listing:
        shares: list[Share] = []
        ended: list[tuple[Account, str]] = []
        adjusted: dict[Account, int] = {}
        closed: dict[Account, int] = {}
        now = self._clock()
        for account, fields in self._accounts():
            adjusted[account], closed[account] = int(fields["adjusted"]), int(fields["closed"])
            for holder, (amount, seen, told) in _shares(fields).items():
                if amount is None:
                    ended.append((account, holder))
                else:
                    shares.append(Share(account, holder, amount, seen, told))
        return Listing(shares, adjusted, now, ended, closed)

    def totals(self, accounts: Collection[Account]) -> dict[Account, int]:
        found = {}
        for account, fields in self._filled(self._read(accounts)):
            amounts = [amount for amount, _, _ in _shares(fields).values() if amount is not None]
            found[account] = int(fields["closed"]) + int(fields["adjusted"]) + sum(amounts)
        return found

    def tidy(self) -> None:
        now = self._clock()
        for account, fields in self._accounts():
            old = [
                f"h:{holder}" for holder, (amount, seen, _) in _shares(fields).items()
                if amount is None and seen <= now - _REMEMBERED
            ]  # fmt: skip
            if old:
                self._do(partial(_forget, key=_keys(_bucket(account), account)[2], fields=old))

    def set_patience(self, seconds: float) -> None:
        with self._lock:
            self._patience = self._aside.patience = seconds
            if self._line is not None:
                self._line.set_patience(seconds)

    def close(self) -> None:
        self._drop()
        self._aside.close(self._drop_begun)

    # ------------------------------------------------------------ inside

    def _know(self, lives: list[str]) -> str:
        """Return the epoch of these lives: the buckets of one server share a life, those of several servers a joint
        epoch.
        """
        self._lives = lives
        together = hashlib.sha256("\n".join(lives).encode()).hexdigest()[:16]
        self._epoch = lives[0] if len(set(lives)) == 1 else together
        return self._epoch

    def _run(self, script: str, bucket: int, account: Account | None, words: str, *, known: str = "") -> Any:
        """Return the result of a script. `words` are its arguments, with a space between them."""
        now = _NONE if self._now is None else self._now()
        key = _keys(bucket, account)[2]

        def run(line: _Line) -> Any:
            life = known or (self._lives[bucket] if self._lives else _NONE)
            given = f"{self._server} {life} {now} {words}"
            try:
                return _asked(line.connection, _beginning(script, bucket, is_known=True), key, given)
            except valkey.exceptions.NoScriptError:  # it knows it from now on
                return _asked(line.connection, _beginning(script, bucket, is_known=False), key, given)

        return self._on(run)

    def _for_all(self, add: Callable[[Any, list[str]], object]) -> list[Any]:
        def run(client: Any) -> Any:
            pipeline = client.pipeline(transaction=False)
            for bucket in range(_BUCKETS):
                add(pipeline, _keys(bucket))
            return pipeline.execute()

        return cast(list[Any], self._do(run))

    def _accounts(self) -> list[tuple[Account, dict[str, str]]]:
        """Return all filled accounts; remove the names of accounts that the server has forgotten."""
        listed = self._for_all(lambda pipeline, keys: pipeline.smembers(keys[3]))
        names = sorted(int(name) for names in listed for name in names)
        found = self._read(names)
        for account, fields in found:
            if not fields:
                self._do(partial(_unlist, account=account))
        return self._filled(found)

    def _read(self, accounts: Collection[Account]) -> list[tuple[Account, dict[str, str]]]:
        names = list(accounts)
        found: list[tuple[Account, dict[str, str]]] = []
        for first in range(0, len(names), _AT_ONCE):
            some = names[first : first + _AT_ONCE]

            def run(client: Any, some: list[Account] = some) -> Any:
                pipeline = client.pipeline(transaction=False)
                for account in some:
                    pipeline.hgetall(_keys(_bucket(account), account)[2])
                return pipeline.execute()

            found += zip(some, self._do(run), strict=True)
        return found

    def _filled(self, found: list[tuple[Account, dict[str, str]]]) -> list[tuple[Account, dict[str, str]]]:
        return [
            (account, fields) for account, fields in found
            if self._lives and fields.get("life") == self._lives[_bucket(account)] and fields["seeded"] == "1"
        ]  # fmt: skip

    def _clock(self) -> float:
        if self._now is not None:
            return self._now()
        seconds, micros = cast(tuple[int, int], self._do(lambda client: client.time()))
        return seconds + micros / 1_000_000

    def _do(self, work: Callable[[Any], Any]) -> Any:
        """Return the result of `work`, which is given the driver's client. Raises as `_on`."""
        return self._on(lambda line: work(line.client))

    def _on(self, work: Callable[[_Line], Any]) -> Any:
        """Run `work` on a connection. Raises CountersAway if it is not known whether it was done."""
        with self._lock:
            if time.monotonic() < self._away_until:
                raise CountersAway(f"{self.name}: it did not answer")
            try:
                found = self._done(work)
                self._pause = _PAUSE
                return found
            except (valkey.ConnectionError, valkey.TimeoutError, OSError) as problem:
                # Who waits for it stops the worker's event loop, so it is asked ever less.
                self._away_until, self._pause = time.monotonic() + self._pause, min(2 * self._pause, _LONGEST_PAUSE)
                self._fail(problem)
            except (valkey.ValkeyError, ValueError, KeyError, IndexError, TypeError) as problem:
                self._fail(problem)

    def _done(self, work: Callable[[_Line], Any]) -> Any:
        """Run `work`, and once more if the connection had closed meanwhile: each call may be repeated."""
        if self._line is not None:
            try:
                return work(self._line)
            except (valkey.ConnectionError, ConnectionError):
                self._drop()
        if self._begun is None:
            self._aside.do(self._begin_line)
        line, self._begun = self._begun, None
        if line is None:
            raise CountersAway(f"{self.name}: the connection was closed")
        self._line = line
        line.set_patience(self._patience)
        return work(line)

    def _begin_line(self) -> None:
        """Open a connection in its own thread, because connecting to a busy machine may take longer than a caller
        waits.
        """
        # The driver would take any host's certificate.
        tls = {"ssl_check_hostname": True} if self.name.startswith(_WITH_TLS) else {}
        client = valkey.Valkey.from_url(
            self._url.reveal(), max_connections=1, decode_responses=True, socket_timeout=_CONNECT_SECONDS,
            socket_connect_timeout=_CONNECT_SECONDS, retry=Retry(NoBackoff(), 0), valkey_connect_func=self._meet, **tls,
        )  # fmt: skip
        connection = client.connection_pool.get_connection("_")  # it has begun; all that is asked shares it
        client.connection_pool.release(connection)
        self._begun = _Line(client, connection)

    def _drop(self) -> None:
        with self._lock:
            line, self._line = self._line, None
            if line is not None:
                line.client.close()

    def _drop_begun(self) -> None:
        line, self._begun = self._begun, None
        if line is not None:
            line.client.close()

    def _meet(self, connection: Any) -> None:
        """Read the life of the server that this connection reaches, and refuse a server that evicts keys when it is
        full.

        The driver must not reconnect by itself: the new connection may reach another life than the one that a call is
        for.
        """
        if self._line is not None and connection is self._line.connection:
            raise valkey.ConnectionError("the connection has ended")
        connection.on_connect()
        found: dict[str, str] = {}
        for section in ("server", "memory"):
            connection.send_command("INFO", section)
            text = connection.read_response()
            text = text.decode() if isinstance(text, bytes) else str(text)
            found |= dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if found.get("maxmemory", "0") != "0" and found.get("maxmemory_policy") != "noeviction":
            raise valkey.ConnectionError("expected maxmemory-policy noeviction")
        self._server = found["run_id"]

    def _fail(self, problem: Exception) -> None:
        self._drop()
        words = masked(str(problem).partition("\n")[0][:200], (self._password,)) or type(problem).__name__
        raise CountersAway(f"{self.name}: {words}") from None


def _asked(connection: Any, beginning: str, key: str, given: str) -> Any:
    """Return the answer of a script.

    This does the driver's work by hand: the driver takes four times as long to encode a call, and three times as long
    to read a single answer.

    Raises:
        ConnectionError, TimeoutError, ResponseError: as the driver does; after the first two the connection is closed.
    """
    text = f"{beginning}${len(key)}\r\n{key}\r\n${len(given)}\r\n{given}\r\n"
    line = connection._sock
    if line is None:
        raise valkey.ConnectionError("the connection has ended")
    try:
        line.sendall(text.encode("ascii"))
        answer = line.recv(_READ_SIZE)
        while (size := _size_of(answer)) < 0:
            if not (piece := line.recv(_READ_SIZE)):
                raise ConnectionResetError
            answer += piece
        if size != len(answer):
            raise ConnectionResetError
    except TimeoutError:
        connection.disconnect()
        raise valkey.TimeoutError("no answer in time") from None
    except (OSError, ValueError):
        connection.disconnect()
        raise valkey.ConnectionError("the connection has ended") from None
    if answer[:1] == b"-":
        raise connection._parser.parse_error(answer[1:-2].decode("utf-8", "replace"))
    return answer[answer.index(_END) + 2 : -2].decode() if answer[:1] == b"$" else answer[1:-2].decode()


def _size_of(answer: bytes) -> int:
    """Return the bytes of a text, number or error reply with its line ends, or -1 if it is not complete yet.

    Raises:
        ValueError: it is another kind of reply.
    """
    end = answer.find(_END)
    if answer and answer[:1] not in _KINDS:
        raise ValueError("expected a text, a number or an error")
    if answer[:1] != b"$":
        return end + 2 if end >= 0 else -1
    whole = end + 4 + int(answer[1:end]) if end >= 0 else -1
    return whole if whole <= len(answer) else -1


@cache
def _beginning(script: str, bucket: int, *, is_known: bool) -> str:
    """Return the words of a call up to its account's key. `is_known`: the server has run the script before."""
    digest = hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
    life, awaited, _, listed = _keys(bucket)
    words = (
        ("EVALSHA", digest, "4", life, awaited, listed) if is_known else ("EVAL", script, "4", life, awaited, listed)
    )
    return f"*{len(words) + 2}\r\n" + "".join([f"${len(word)}\r\n{word}\r\n" for word in words])


def _bucket(account: Account) -> int:
    return (account >> 2) % _BUCKETS


def _keys(bucket: int, account: Account | None = None) -> list[str]:
    """Return the keys of a call, all in one cluster slot: the bucket's life, the awaited holders, the account, the
    names of all accounts.
    """
    tag = f"dragoman:{{b{bucket:02}}}"
    return [f"{tag}:life", f"{tag}:awaited", f"{tag}:account:{account}", f"{tag}:accounts"]


def _shares(fields: dict[str, str]) -> dict[str, tuple[int | None, float, int]]:
    """Return each holder's amount (None: it has ended), the time of its last call and what it reported."""
    found = {}
    for name, text in fields.items():
        if name.startswith("h:"):
            amount, _, seen, told = text.split("|")
            found[name[2:]] = (None if amount == "x" else int(amount), float(seen), int(told))
    return found


def _forget(client: Any, *, key: str, fields: list[str]) -> None:
    client.hdel(key, *fields)


def _unlist(client: Any, *, account: Account) -> None:
    client.srem(_keys(_bucket(account))[3], account)
