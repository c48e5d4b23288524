"""An event loop in its own thread, for callers without one, and the client that lives in it."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Final, TypeVar, final

from dragoman.client.requester import Requester
from dragoman.errors import UsageError

T = TypeVar("T")
#: Seconds that the end of the program waits for connections and servers to close; a server's process gets 5 of its own.
_EXIT_SECONDS: Final = 8.0


@final
class Background:
    """A thread with the client that `make` creates. It closes itself when the program ends.

    The thread is a daemon, so that a program that forgets to close it still ends. Python freezes such threads after the
    functions of `atexit` have run: that is the last moment at which they can be joined.

    Attributes:
        client: lives in the thread; only coroutines passed to `run` may use it.
        pid: the process that this belongs to. A fork copies the object, not the thread.

    Raises:
        UsageError: the program is ending, and Python starts no further thread.
        Exception: whatever `make` raises.
    """

    __slots__ = ("_is_closing", "_is_exiting", "_lock", "_loop", "_thread", "client", "pid")

    def __init__(self, make: Callable[[], Requester]) -> None:
        self.pid: int = os.getpid()
        self._is_closing = self._is_exiting = False
        self._lock = threading.RLock()  # a signal's handler may close what its own thread is about to use
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_live, args=(self._loop,), name="dragoman", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the program is ending
            self._loop.close()
            raise UsageError(
                "a Client needs a thread, and Python starts none once the main thread has ended: "
                "make the Client earlier, or join the threads that use one"
            ) from None
        atexit.register(self._close_at_exit)
        try:
            self.client: Requester = self.run(_made(make))
        except BaseException:
            self._stop_soon(None)
            raise

    @property
    def is_closed(self) -> bool:
        """Return whether nothing can run in it any more, in this process."""
        return self._is_closing or self.pid != os.getpid()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread and wait for it.

        Raises:
            UsageError: called in the thread itself, after a fork, or the client is closed, or is closed meanwhile.
        """
        try:
            future = self._submit(coroutine)
        except UsageError:
            coroutine.close()
            self._stand_still_at_exit()
            raise
        try:
            return future.result()
        except CancelledError:
            self._stand_still_at_exit()
            raise UsageError("this Client was closed meanwhile") from None
        except BaseException:
            future.cancel()
            raise

    def run_soon(self, coroutine: Coroutine[Any, Any, object]) -> None:
        """Run a coroutine in the thread without waiting for it. Callable from any thread, also during `close`."""
        with self._lock:
            if self._is_closing or self.pid != os.getpid():
                coroutine.close()
            else:
                asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        """Close the client, end the thread, and wait for its end. A second call does nothing.

        Raises:
            UsageError: called in the thread itself.
        """
        if self.pid != os.getpid():
            return
        if threading.current_thread() is self._thread:
            raise UsageError("a Client cannot be closed in its own event loop; use Requester there")
        self.abandon()
        self._thread.join()

    def abandon(self) -> None:
        """Close the client and end the thread soon. It never waits: a garbage collector may call it, in any thread."""
        if self.pid == os.getpid():
            self._stop_soon(self.client)

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        if self.pid != os.getpid():
            raise UsageError("this was begun before a fork; begin it again in the new process")
        if threading.current_thread() is self._thread:
            raise UsageError("a Client cannot be used in its own event loop; use Requester there")
        # The lock keeps the order: what is submitted before the end is asked for is run, or cancelled by that end.
        with self._lock:
            if self._is_closing:
                raise UsageError("this Client is closed")
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _stop_soon(self, client: Requester | None) -> None:
        with self._lock:
            if self._is_closing:
                return
            self._is_closing = True
            self._loop.call_soon_threadsafe(lambda: self._loop.create_task(_stop(self._loop, client)))
        atexit.unregister(self._close_at_exit)

    def _stand_still_at_exit(self) -> None:
        """Block daemon threads at the program's end, when only they and the main thread are left.

        Python is about to freeze them. Until then they wait here, so that none reports that the client was closed.
        """
        if self._is_exiting and threading.current_thread() is not threading.main_thread():
            threading.Event().wait()

    def _close_at_exit(self) -> None:
        if self.pid == os.getpid():
            self._is_exiting = True
            self.abandon()
            self._thread.join(_EXIT_SECONDS)


async def _made(make: Callable[[], Requester]) -> Requester:
    return make()


async def _stop(loop: asyncio.AbstractEventLoop, client: Requester | None) -> None:
    """Cancel what runs, close the client, end the loop."""
    try:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if client is not None:
            await client.close()
        await loop.shutdown_asyncgens()
    finally:
        loop.stop()


def _live(loop: asyncio.AbstractEventLoop) -> None:
    """Run the thread. It refers to the loop alone, so that nothing in it keeps a forgotten client alive."""
    try:
        loop.run_forever()
    finally:
        loop.close()
