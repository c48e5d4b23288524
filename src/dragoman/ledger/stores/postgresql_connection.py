"""PostgreSQL over asyncpg: one blocking connection for one thread. Only this file imports the driver.

Every error becomes one of the interface's exceptions, whose message contains neither a row's value nor the password. A
connection that gave no answer in time is dropped. Its statement may have taken effect, so the caller repeats it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import select
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple, NoReturn
from urllib.parse import unquote, urlsplit

from dragoman.errors import MissingExtra
from dragoman.ledger.folder import place_of
from dragoman.ledger.interfaces import Refused, StoreAway
from dragoman.ledger.stores.postgresql_asking import Answer, render_question
from dragoman.ledger.stores.postgresql_schema import SCHEMA
from dragoman.secret import Secret, masked

try:
    import asyncpg
except ImportError:
    raise MissingExtra('a ledger in PostgreSQL needs the extra "fleet": pip install "dragoman[fleet]"') from None

#: Seconds until a connection stands, and until a statement is done. The server ends what takes longer, too: nothing of
#: a machine that is gone holds others up.
CONNECT_SECONDS: Final = 3.0
STATEMENT_SECONDS: Final = 10.0
_GRACE: Final = 2.0
_ID_SIZE: Final = 16
_THIS_MACHINE: Final = (None, "localhost", "127.0.0.1", "::1")
_SETTINGS: Final = """
SET search_path = {schema};
SET client_min_messages = warning;
SET statement_timeout = {patience};
SET idle_in_transaction_session_timeout = {patience};
"""
#: Rows that are fetched at once of those that are read one by one.
_AT_ONCE: Final = 1_000
_READ_SIZE: Final = 65_536
#: Of SQLSTATE: rules that a row breaks; transactions that waited for each other; values that fit
#: no column, or no index.
_RULE, _COLLIDED = "23", "40"
_VALUES: Final = ("22", "54")


class StoreCollided(StoreAway):
    """A deadlock ended this transaction. The caller may repeat it at once."""


class _Prepared(NamedTuple):
    """A prepared statement. `kept` is the driver's object; the driver closes the statement when the object is freed."""

    name: str
    descriptor: int
    poll: select.poll
    kept: Any

    def hear(self, answer: Answer, seconds: float) -> bool:
        """Return whether all of an answer came in time. Raises OSError, ValueError if the connection is lost."""
        until = time.monotonic() + seconds
        while self.poll.poll(seconds * 1_000):
            piece = os.read(self.descriptor, _READ_SIZE)
            if not piece:
                raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
            if answer.take(piece):
                return True
            seconds = max(until - time.monotonic(), 0.0)
        return False


class Connection:
    """A connection that is opened when it is needed, and again after it was lost."""

    __slots__ = ("_address", "_connection", "_loop", "_password", "_patience", "_prepared", "name")

    def __init__(self, address: Secret, *, patience: float = STATEMENT_SECONDS) -> None:
        """Create it.

        Args:
            address: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`.
            patience: seconds for a statement.
        """
        self._patience = patience
        parts = urlsplit(address.reveal())
        self.name = place_of(address)
        self._password = unquote(parts.password or "")
        self._address = address
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: asyncpg.Connection | None = None
        self._prepared: dict[str, _Prepared] = {}  # of this connection

    @property
    def is_open(self) -> bool:
        """Whether there is an open connection."""
        return self._connection is not None and not self._connection.is_closed()

    def execute(self, statement: str, *values: object) -> int:
        """Run a statement, or several if there are no values. Return the number of rows that it changed.

        Raises:
            StoreAway, Refused: as `Store.deliver`.
        """
        status: str = self._do(self._opened().execute(statement, *values))
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    def execute_many(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Run a statement once for each row of values. Raises as `execute`."""
        self._do(self._opened().executemany(statement, rows))

    def fetch(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Return all rows. Raises as `execute`."""
        return [tuple(row) for row in self._do(self._opened().fetch(statement, *values))]

    def ask(self, statement: str, *values: object) -> str:
        """Return the single text of a statement. Raises as `execute`."""
        [(text,)] = self.fetch(statement, *values)
        return str(text)

    def ask_at_once(self, seconds: float, statement: str, *values: object) -> tuple[str] | Callable[[], str]:
        """As `ask`, from a thread whose event loop stands still meanwhile, without the driver: for what is run often.

        If the answer does not come within `seconds`, or is an error, return a function that gets it. Call that in
        another thread.
        """
        if (prepared := self._prepared.get(statement)) is None:
            return partial(self._ask_first, statement, values)
        question, answer = render_question(prepared.name, values), Answer()
        try:
            if os.write(prepared.descriptor, question) < len(question):
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            if not prepared.hear(answer, seconds):
                return partial(self._hear_on, prepared, answer, statement, values)
        except (OSError, ValueError) as problem:
            return partial(self._lose, problem)
        return (answer.text,) if answer.is_plain and answer.text is not None else partial(self.ask, statement, *values)

    def fetch_each(self, statement: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """Yield rows one by one, inside a transaction. Raises as `execute`."""
        cursor = self._do(self._opened().cursor(statement, *values))
        while rows := self._do(cursor.fetch(_AT_ONCE)):
            yield from map(tuple, rows)

    @contextmanager
    def transaction(self, *, is_reading: bool = False) -> Iterator[None]:
        """Run a transaction. `is_reading`: all statements see one snapshot.

        Raises:
            StoreAway, Refused: as `Store.deliver`; nothing was done, or it is unknown whether it was.
        """
        self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if is_reading else "BEGIN")
        try:
            yield
            if self._do(self._opened().execute("COMMIT")) != "COMMIT":
                raise StoreAway(f"{self.name}: the transaction was not committed")
        except BaseException:
            if self.is_open:
                with contextlib.suppress(StoreAway, Refused):
                    self.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        connection, self._connection = self._connection, None
        loop, self._loop = self._loop, None
        self._prepared.clear()
        if loop is None:
            return
        if connection is not None and not connection.is_closed():
            with contextlib.suppress(Exception):
                loop.run_until_complete(asyncio.wait_for(connection.close(timeout=1.0), 1.5))
            connection.terminate()
        with contextlib.suppress(Exception):
            loop.run_until_complete(_end_tasks())
        loop.close()

    # ------------------------------------------------------------ inside

    def _opened(self) -> asyncpg.Connection:
        if self._connection is not None and not self._connection.is_closed():
            return self._connection
        self.close()
        try:
            self._loop = asyncio.new_event_loop()
            self._connection = self._loop.run_until_complete(asyncio.wait_for(self._connect(), CONNECT_SECONDS))
        except Exception as problem:  # the driver lets through what a server that dies makes of its own protocol
            self._fail(problem)
        return self._connection

    async def _connect(self) -> asyncpg.Connection:
        address = self._address.reveal()
        parts = urlsplit(address)
        # Elsewhere than on this machine the server must show a certificate, unless the address says otherwise.
        is_near = parts.hostname in _THIS_MACHINE or "sslmode=" in parts.query
        tls = None if is_near else ssl.create_default_context()
        connection = await asyncpg.connect(address, timeout=CONNECT_SECONDS, ssl=tls)
        try:
            await connection.execute(_SETTINGS.format(schema=SCHEMA, patience=int(self._patience * 1000)))
            await connection.set_type_codec(
                "uuid", schema="pg_catalog", format="binary", encoder=_encode_id, decoder=bytes
            )
        except BaseException:  # nobody else knows of it
            connection.terminate()
            raise
        return connection

    def _do(self, work: Any) -> Any:
        assert self._loop is not None
        try:
            return self._loop.run_until_complete(self._in_time(work))
        except Exception as problem:
            self._fail(problem)

    async def _in_time(self, work: Any) -> Any:
        """Await work within the patience. Drop the connection if it takes longer, without sending a cancel request."""
        task = asyncio.get_running_loop().create_task(_awaited(work))
        await asyncio.wait((task,), timeout=self._patience + _GRACE)
        if not task.done():
            assert self._connection is not None
            self._connection.terminate()
            with contextlib.suppress(Exception):
                await task
            raise TimeoutError
        return task.result()

    def _ask_first(self, statement: str, values: tuple[object, ...]) -> str:
        connection = self._opened()
        transport = connection._transport
        if transport.get_extra_info("sslcontext") is None:  # else what is read is not what was said
            number = len(self._prepared)
            kept = self._do(connection.prepare(statement, name=f"dragoman_{number}"))
            descriptor = transport.get_extra_info("socket").fileno()
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            self._prepared[statement] = _Prepared(kept.get_name(), descriptor, poll, kept)
        return self.ask(statement, *values)

    def _hear_on(self, prepared: _Prepared, answer: Answer, statement: str, values: tuple[object, ...]) -> str:
        """Wait for the rest of what `ask_at_once` began."""
        try:
            if not prepared.hear(answer, self._patience + _GRACE):
                raise TimeoutError
        except (OSError, ValueError) as problem:
            self._lose(problem)
        return answer.text if answer.is_plain and answer.text is not None else self.ask(statement, *values)

    def _lose(self, problem: Exception) -> NoReturn:
        """Drop the connection, because its state is unknown. Raises StoreAway."""
        if self._connection is not None:
            self._connection.terminate()
        self._fail(problem)

    def _fail(self, problem: Exception) -> NoReturn:
        """Translate an exception. Raises StoreAway, Refused."""
        state = getattr(problem, "sqlstate", None) or ""
        if isinstance(problem, asyncpg.PostgresError):
            if state[:2] == _RULE:
                # The first line names tables and rules; the others show the row.
                raise Refused(str(problem).partition("\n")[0]) from None
            if state[:2] == _COLLIDED:
                raise StoreCollided(f"{self.name}: {self._words(problem)}") from None
            if state[:2] in _VALUES:
                raise Refused("a value does not fit its column") from None
        if not isinstance(problem, asyncpg.PostgresError) or isinstance(problem, asyncpg.PostgresConnectionError):
            self.close()
        raise StoreAway(f"{self.name}: {self._words(problem)}") from None

    def _words(self, problem: Exception) -> str:
        if isinstance(problem, TimeoutError):
            return "no answer in time"
        if isinstance(problem, OSError):
            return problem.strerror or "it cannot be reached"
        if not isinstance(problem, asyncpg.PostgresError | asyncpg.InterfaceError):
            return type(problem).__name__  # its words may quote anything
        return masked(str(problem).partition("\n")[0][:200], (self._password,)) or type(problem).__name__


def numbered(statement: str) -> str:
    """Return the statement with `$1`, `$2` in place of each `?`."""
    first, *rest = statement.split("?")
    return first + "".join([f"${place}{text}" for place, text in enumerate(rest, 1)])


async def _awaited(work: Any) -> Any:
    """Await one of the driver's awaitables that is not a coroutine."""
    return await work


async def _end_tasks() -> None:
    """End what the driver began and nobody awaits, such as the cancel request of a statement that took too long."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, asyncio.sleep(0), return_exceptions=True)  # the end of the connection is heard, too


def _encode_id(id: bytes) -> bytes:
    """Encode an id. The driver turns a ValueError into its own exception."""
    if len(id) != _ID_SIZE:
        raise ValueError("expected 16 bytes")
    return id
