"""Several processes on one port, and the parent that keeps them alive.

Each worker has its own listening socket (SO_REUSEPORT: the kernel spreads connections evenly). The parent creates it
and keeps it open, so that connections waiting for a worker that died reach its replacement. Without SO_REUSEPORT they
share one socket. The parent serves nothing; it passes signals on, and ends a worker whose event loop stands still, so
that another replaces it (where the system has `sigwaitinfo`).
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman.gateway.process.listening import BACKLOG, drains
from dragoman.gateway.process.terminal import terminal_watch
from dragoman.gateway.process.watchdog import STANDING_SECONDS, Pulse, Watchdog, stack_of, tell_stack
from dragoman.gateway.telemetry.siblings import begin_draining, end_draining

#: After a worker that lived for less seconds than this the next is begun after a pause. It doubles with each in a row
#: that ended before it served.
_EARLY: Final = 5.0
_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 10.0
#: Between two beats of a worker, and two looks at them.
_BEAT_SECONDS: Final = 1.0
#: As soon as a timer can be.
_SOON_SECONDS: Final = 0.000_1
#: Seconds that the shipper may take for what is left.
_LAST_ROUND: Final = 5.0
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
#: In place of a worker's slot.
_SHIPPER: Final = -1


@final
class Worker(msgspec.Struct, frozen=True):
    """What a worker is given: its number, its sockets, the shared folder, and two pipes.

    `ready`: it writes a byte when it serves; `lifeline`: reads as closed when the parent is gone.
    """

    slot: int
    listener: socket.socket
    admin_listener: socket.socket | None
    folder: Path
    ready: int
    lifeline: int
    pulse: Pulse

    def begin(self, stop: Callable[[], None]) -> None:
        """Report that the worker serves, and hear orders to end, one that came before too: who waited for it is
        answered. `stop` is called when the parent is gone.
        """
        loop = asyncio.get_running_loop()

        def gone() -> None:
            loop.remove_reader(self.lifeline)
            stop()

        def beat() -> None:
            self.pulse.beat(self.slot)
            loop.call_later(_BEAT_SECONDS, beat)

        loop.add_reader(self.lifeline, gone)
        tell_stack(_stack_file(self.folder, self.slot))
        beat()
        os.write(self.ready, b".")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def bind(host: str, port: int, count: int) -> list[socket.socket]:
    """Return a listening socket for each worker, all at one address.

    Raises:
        OSError: the port is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    can_share = hasattr(socket, "SO_REUSEPORT") and sys.platform == "linux"  # elsewhere it does not spread
    # A port that another gateway of this user shares would be shared with it: the first one asks for it alone.
    try:
        first = _listening(family, host, port, shares=False)
    except OSError as problem:
        if problem.errno != errno.EADDRINUSE or not can_share or not asyncio.run(drains(host, port)):
            raise
    else:
        if not can_share:
            return [first, *(first.dup() for _ in range(count - 1))]
        port = first.getsockname()[1]
        first.close()
    return [_listening(family, host, port, shares=True) for _ in range(count)]


def _listening(family: int, host: str, port: int, *, shares: bool) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


class Supervisor:
    """Starts, restarts and ends workers."""

    __slots__ = (
        "_admin_sockets", "_buried", "_due", "_early", "_folder", "_is_ending", "_lifeline", "_pulse", "_ready",
        "_running", "_said", "_ship", "_shipper", "_sockets", "_tell_standing", "_watchdog", "_work",
    )  # fmt: skip

    def __init__(
        self,
        sockets: list[socket.socket],
        work: Callable[[Worker], None],
        *,
        admin_sockets: list[socket.socket] | None = None,
        ready: Callable[[], None],
        tell: Callable[[str], None],
        ship: Callable[[Path, int], None] | None = None,
        buried: Callable[[], None] = lambda: None,
    ) -> None:
        """Create it.

        Args:
            work: serves in its own process until it is told to stop.
            ready: called once, when all serve.
            tell: called with a message about a worker that is ended.
            ship: delivers the ledger in its own process, until the descriptor that it is given (after the shared
                folder) reads as closed.
            buried: called when a worker has ended.
        """
        self._ship = ship
        self._shipper = 0  # its process id; 0: there is none
        self._buried = buried
        self._tell_standing = tell
        self._pulse = Pulse(len(sockets))
        self._watchdog = Watchdog(self._pulse)
        self._sockets = sockets
        self._admin_sockets = admin_sockets
        self._work = work
        self._said = ready
        self._running: dict[int, tuple[int, float]] = {}  # by process id: its slot, when it began
        self._due: dict[int, float] = {}  # by slot: when it is begun again; `_SHIPPER`: the shipper
        self._early = 0  # how many in a row ended before they served
        self._is_ending = False
        self._folder = Path(tempfile.mkdtemp(prefix="dragoman-"))  # its owner's alone
        self._ready = os.pipe()
        self._lifeline = os.pipe()

    def run(self) -> None:
        """Run until all have ended. Raises `ChildProcessError`: a worker could not start at all."""
        awaited = (*_SIGNALS, signal.SIGCHLD, signal.SIGHUP)
        signal.pthread_sigmask(signal.SIG_BLOCK, (*awaited, signal.SIGALRM))
        is_terminal_gone = terminal_watch()
        try:
            for slot in range(len(self._sockets)):
                self._start(slot)
            self._await_all()
            self._start_shipper()
            while self._running or self._due.keys() - {_SHIPPER}:
                number = _next_signal(awaited, self._due_in())
                self._end_standing()
                if number == signal.SIGCHLD:
                    self._bury()
                elif number in _SIGNALS:
                    self._end()
                elif number == signal.SIGHUP and is_terminal_gone():
                    if not self._is_ending:  # its shell may say so a second time
                        self._end()
                elif number:
                    self._tell(number)
                self._start_due()
        finally:
            self._tell(signal.SIGTERM)
            self._end_shipper()
            _end_alarm()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (*awaited, signal.SIGALRM))
            shutil.rmtree(self._folder, ignore_errors=True)

    def _end_standing(self) -> None:
        """End workers whose loop stands still; others replace them."""
        by_slot = {slot: process for process, (slot, _) in self._running.items()}
        for slot in self._watchdog.look(by_slot, time.monotonic()):
            where = stack_of(by_slot[slot], _stack_file(self._folder, slot))
            os.kill(by_slot[slot], signal.SIGKILL)
            self._tell_standing(
                f"worker {slot} stood still for {STANDING_SECONDS:g} s and is replaced; it stood at {where}"
            )

    def _due_in(self) -> float:
        """Return the seconds until a process is due to be restarted, or the workers are due to be checked."""
        return max(0.0, min(self._due.values(), default=float("inf")) - time.monotonic())

    def _start_due(self) -> None:
        """Restart the processes that are due. None waits for another's pause."""
        now = time.monotonic()
        for slot in [slot for slot, due in self._due.items() if due <= now]:
            del self._due[slot]
            if slot == _SHIPPER:
                self._start_shipper()
            else:
                self._start(slot)

    def _start(self, slot: int) -> None:
        self._pulse.begin(slot)
        sys.stdout.flush()
        sys.stderr.flush()
        process = os.fork()
        if process:
            self._running[process] = (slot, time.monotonic())
            return
        status = 1
        try:
            os.close(self._ready[0])
            os.close(self._lifeline[1])
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD, signal.SIGHUP, signal.SIGALRM))
            own = self._sockets[slot]
            admin = self._admin_sockets[slot] if self._admin_sockets is not None else None
            for listener in self._listeners():  # else those of a worker that is gone would go on taking connections
                if listener not in (own, admin):
                    listener.close()
            pipes = self._ready[1], self._lifeline[0]
            self._work(Worker(slot, own, admin, self._folder, *pipes, self._pulse))
            status = 0
        except BaseException as problem:  # a traceback could quote a prompt
            sys.stderr.write(f"dragoman: worker {slot}: {type(problem).__name__}: {problem}\n")
        finally:
            sys.stderr.flush()
            os._exit(status)  # nothing of the parent's is cleaned up here

    def _await_all(self) -> None:
        """Read a byte of each worker. One that ends instead has failed to start."""
        waiting = len(self._sockets)
        os.set_blocking(self._ready[0], False)
        while waiting:
            try:
                waiting -= len(os.read(self._ready[0], waiting))
            except BlockingIOError:
                pending = signal.sigpending()
                if not pending.isdisjoint(_SIGNALS):
                    return
                if signal.SIGCHLD in pending:
                    raise ChildProcessError("a worker could not begin") from None
                time.sleep(0.01)
        self._said()

    def _start_shipper(self) -> None:
        if self._ship is None or self._is_ending:
            return
        self._shipper = os.fork()
        if self._shipper:
            return
        status = 1
        try:
            os.close(self._lifeline[1])
            for number in (*_SIGNALS, signal.SIGHUP):  # it ends after the workers, by its pipe
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (*_SIGNALS, signal.SIGCHLD, signal.SIGHUP, signal.SIGALRM))
            for listener in self._listeners():
                listener.close()
            self._ship(self._folder, self._lifeline[0])
            status = 0
        except BaseException as problem:
            sys.stderr.write(f"dragoman: shipper: {type(problem).__name__}: {problem}\n")
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _end_shipper(self) -> None:
        """Let it deliver the rest and end."""
        os.close(self._lifeline[1])
        until = time.monotonic() + _LAST_ROUND
        while self._shipper and os.waitpid(self._shipper, os.WNOHANG)[0] == 0 and time.monotonic() < until:
            time.sleep(0.01)

    def _bury(self) -> None:
        """Reap workers that ended, and schedule their replacements unless all are to end. The same for the shipper."""
        now = time.monotonic()
        if self._shipper and os.waitpid(self._shipper, os.WNOHANG)[0] == self._shipper:
            self._shipper = 0
            self._due[_SHIPPER] = now + _PAUSE
        for process, (slot, began) in tuple(self._running.items()):
            if os.waitpid(process, os.WNOHANG)[0] != process:
                continue
            del self._running[process]
            end_draining(self._folder, slot)
            self._buried()
            if self._is_ending:
                continue
            self._early = 0 if self._pulse.count(slot) else self._early + 1
            if self._early > 2 * len(self._sockets):
                self._end()
                raise ChildProcessError("workers end as soon as they begin")
            self._due[slot] = now + (min(_PAUSE * 2**self._early, _LONGEST_PAUSE) if now - began < _EARLY else 0.0)

    def _listeners(self) -> list[socket.socket]:
        return [*self._sockets, *(self._admin_sockets or ())]

    def _end(self) -> None:
        if not self._is_ending:
            begin_draining(self._folder, (slot for slot, _ in self._running.values()))
            for listener in self._listeners():  # nobody is begun any more: what waits there would wait for nobody
                listener.close()
        self._is_ending = True
        self._due.clear()
        self._tell(signal.SIGTERM)

    def _tell(self, number: int) -> None:
        for process in self._running:
            os.kill(process, number)


def _next_signal(awaited: tuple[signal.Signals, ...], seconds: float) -> int:
    """Return the next of these signals; 0 if none came within the time."""
    if not hasattr(signal, "sigwaitinfo"):  # macOS
        if seconds < float("inf"):
            time.sleep(seconds)  # what comes meanwhile waits
            return 0
        return signal.sigwait(awaited)
    # Of a process that was stopped until the time was over, `sigtimedwait` gives a number that nobody sent.
    signal.setitimer(signal.ITIMER_REAL, max(min(seconds, _BEAT_SECONDS), _SOON_SECONDS))
    number = signal.sigwaitinfo((*awaited, signal.SIGALRM)).si_signo
    return 0 if number == signal.SIGALRM else number


def _end_alarm() -> None:
    """Cancel the alarm, and discard a pending one."""
    if hasattr(signal, "sigwaitinfo"):
        signal.setitimer(signal.ITIMER_REAL, 0)
        if signal.SIGALRM in signal.sigpending():
            signal.sigwaitinfo((signal.SIGALRM,))


def _stack_file(folder: Path, slot: int) -> Path:
    return folder / f"stack-{slot}"
