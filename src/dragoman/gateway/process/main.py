"""The process of `dragoman serve`: signals, the watched configuration, one event loop or several workers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

import msgspec

from dragoman.config import Config, split_address
from dragoman.errors import ConfigError, DragomanError
from dragoman.gateway.accounting import Ledger, tell_shipped
from dragoman.gateway.process.garbage import look_seldom, look_when_few
from dragoman.gateway.process.gateway import Gateway, Look, new_event_loop
from dragoman.gateway.process.heap import settle, share_one_heap
from dragoman.gateway.process.listener_keys import check_reach, read_keys
from dragoman.gateway.process.reload import Reload, state_of
from dragoman.gateway.process.sharing import sharing
from dragoman.gateway.process.terminal import terminal_watch
from dragoman.gateway.telemetry.log import Log, Render, Sink, Warnings, place_of
from dragoman.gateway.telemetry.metrics import Metrics
from dragoman.gateway.telemetry.opentelemetry import load_telemetry
from dragoman.gateway.telemetry.record import Observer
from dragoman.gateway.telemetry.siblings import Siblings
from dragoman.ledger.counting import fold_ended, open_counters
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.interfaces import Refused, StoreAway, StoreDamaged
from dragoman.ledger.shipper import Shipper
from dragoman.ledger.stores.opening import open_store
from dragoman.ledger.stores.sqlite import SqliteStore
from dragoman.ledger.waking import Ringer
from dragoman.protocols import PROTOCOLS
from dragoman.types import ProtocolName

if TYPE_CHECKING:
    from dragoman.gateway.process.workers import Worker

#: Rows that the shipper gives to the store at once, where it is a process of its own.
_BATCH: Final = 2_048
#: How long a thread that works on a large request may keep the event loop waiting. The loop lets go of the interpreter
#: after each callback and asks for it again, so beside 200 streams it waits so long a hundred times over.
_SWITCH_SECONDS: Final = 0.000_05


@final
class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """How to serve.

    Attributes:
        load: reads the configuration again; it was read once already.
        file: its path, which is watched whether it exists or not.
        render: another form of log lines than JSON.
        ready: called with the address.
        workers: the number of processes that share the port.
        allow_open: a changed file may remove the client keys.
    """

    config: Config
    load: Callable[[], Config]
    file: Path
    host: str
    port: int
    protocols: tuple[ProtocolName, ...]
    only_routes: bool
    look: Look
    ready: Callable[[str], None]
    render: Render | None = None
    workers: int = 1
    allow_open: bool = False


def run(serving: Serving) -> None:
    """Serve until SIGTERM or SIGINT; a second signal ends at once.

    Raises:
        ConfigError, OSError: as `Gateway.open`, or the log cannot be written.
    """
    share_one_heap()
    store = serving.config.ledger.store if serving.config.ledger.enabled else None
    if store is not None:
        _check_store(serving.config)
    if serving.workers == 1 and store is None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_serve(serving, None))
        return
    if not hasattr(os, "fork"):
        words = "expected 1" if store is None else "expected ledger.store = sqlite"
        raise ConfigError(f"--workers: this system has no fork; {words}")

    from dragoman.gateway.process.workers import Supervisor, bind

    sockets = bind(serving.host, serving.port, serving.workers)
    admin = serving.config.admin.address
    admin_sockets = bind(*split_address(admin), serving.workers) if admin is not None else None
    port = sockets[0].getsockname()[1]
    read = state_of(serving.file)

    def work(worker: Worker) -> None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_serve(serving, worker, read))

    host = f"[{serving.host}]" if ":" in serving.host else serving.host

    def tell(text: str) -> None:
        log = Log(_sink(serving.config), render=serving.render)
        log.write({"time": log.now(), "kind": "watchdog", "text": text})
        log.close()

    def ready() -> None:
        serving.ready(f"http://{host}:{port}")

    folder = _ledger_folder(serving.config)
    ship = None
    if folder is not None:
        config = serving.config
        ship = partial(_ship, folder, config.ledger.keep_attempts_days, config.validate.store)
    ring = (lambda: None) if folder is None else Ringer(folder).ring
    _load(serving.protocols)
    settle(is_alone=False)
    Supervisor(sockets, work, admin_sockets=admin_sockets, ready=ready, tell=tell, ship=ship, buried=ring).run()


def _load(protocols: Iterable[ProtocolName]) -> None:
    """Load the protocols once for all workers, which share the memory."""
    for name in protocols:
        PROTOCOLS[name]


def _current(serving: Serving, read: object) -> tuple[Config, object]:
    """Return the configuration for a worker, and the state of its file.

    A replacement worker uses the file as it is now. If that is invalid, it is reported as usual, and the gateway's
    first configuration applies.
    """
    state = state_of(serving.file)
    if read is None or state == read:
        return serving.config, state
    try:
        config = serving.load()
        before, after = read_keys(serving.config), read_keys(config)
        check_reach(serving.host, after.of_clients())
    except DragomanError:
        return serving.config, read
    is_opened = before.of_clients() and not after.of_clients() and not serving.allow_open
    return (serving.config, read) if is_opened or (before.admins and not after.admins) else (config, state)


async def _serve(serving: Serving, worker: Worker | None, read: object = None) -> None:
    # `read`: the state of the file from which `serving.config` is; None: as it is now.
    config, read = _current(serving, read)
    siblings = Siblings(worker.folder, worker.slot) if worker is not None else None
    log = Log(_sink(config), render=serving.render)
    metrics = Metrics(siblings.metrics_file if siblings is not None else None)
    metrics.reset_gauges()
    observer = Observer(metrics, log, telemetry=load_telemetry(address=serving.host, port=serving.port))
    gateway = await Gateway.open(
        config,
        host=serving.host,
        port=serving.port,
        protocols=serving.protocols,
        only_routes=serving.only_routes,
        look=serving.look,
        observer=observer,
        siblings=siblings,
        listener=worker.listener if worker is not None else None,
        admin_listener=worker.admin_listener if worker is not None else None,
        ledger=_ledger(config, observer, ships=worker is None),
    )
    _hear(log)

    def prepare() -> Callable[[], None]:
        config = serving.load()
        return partial(gateway.take, config, read_keys(config), allow_open=serving.allow_open)

    reload = Reload(serving.file, prepare=prepare, observer=observer, read=read)
    stop, hurry = asyncio.Event(), asyncio.Event()

    def told() -> None:
        (hurry if stop.is_set() else stop).set()

    _hear_signals(told, reload.again, leave=stop.set if worker is None else lambda: None)
    watching = asyncio.create_task(reload.watch())
    look_seldom()
    looking = asyncio.create_task(look_when_few())
    sys.setswitchinterval(_SWITCH_SECONDS)
    if worker is None:
        settle(is_alone=True)
        serving.ready(gateway.url)
    else:
        worker.begin(told)
    await stop.wait()
    watching.cancel()
    looking.cancel()
    server = config.server
    await _first_of(gateway.drain(server.drain_seconds, notice=server.notice_seconds), hurry.wait())
    await gateway.close()
    log.close()


def _hear_signals(told: Callable[[], None], reload: Callable[[], None], *, leave: Callable[[], object]) -> None:
    """Install signal handlers. `told`: at each order to end; `leave`: when the terminal closes, which may repeat."""
    is_terminal_gone = terminal_watch()

    def hung_up() -> None:
        (leave if is_terminal_gone() else reload)()

    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # Windows
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, told)
        loop.add_signal_handler(signal.SIGHUP, hung_up)


def _ledger_folder(config: Config) -> LedgerFolder | None:
    """Return the ledger's place, or None."""
    state = config.server.state
    if state is None or not config.ledger.enabled:
        return None
    return LedgerFolder.of(state, config.ledger.store, config.ledger.counters)


def _check_store(config: Config) -> None:
    """Check whether requests can be recorded for PostgreSQL, which need not be reachable now.

    Raises:
        ConfigError: there is no state folder for the journals, or it cannot be read.
        MissingExtra: the driver is not installed.
    """
    folder = _ledger_folder(config)
    if folder is None:
        raise ConfigError("ledger.store: expected server.state, the folder in which records wait for it")
    _look_here(folder)
    open_store(folder).close()
    open_counters(folder).close()
    _copy_first(folder)


def _look_here(folder: LedgerFolder) -> None:
    """Read the folder's own file, which may have keys and quotas of this machine, and repair it if it is damaged.

    Raises:
        ConfigError: it cannot be read.
    """
    own = SqliteStore(folder.root)
    try:
        with contextlib.suppress(StoreDamaged):  # it is mended
            own.look()
    except StoreAway as problem:
        raise ConfigError(f"{folder.root}: {problem}") from None
    finally:
        own.close()


def _copy_first(folder: LedgerFolder) -> None:
    """Fetch the store's keys before the first client comes, if this machine has no copy yet.

    If the store is away, the shipper tries again.
    """
    from dragoman.ledger.replica.refreshing import ReplicaKeeper

    keeper = ReplicaKeeper(folder)
    try:
        if not keeper.has_heard():
            keeper.refresh()
    except (StoreAway, Refused, OSError):
        pass
    finally:
        keeper.close()


def _ledger(config: Config, observer: Observer, *, ships: bool) -> Ledger | None:
    """Return the ledger of this worker. `ships`: it also delivers."""
    folder = _ledger_folder(config)
    if folder is None:
        return None
    syncs = config.ledger.durability == "power"
    days, most = config.ledger.keep_attempts_days, config.ledger.journals_mib * 1024 * 1024
    # The parent begins another worker in its place, under another name.
    ended = None if ships else partial(os.kill, os.getpid(), signal.SIGTERM)
    return Ledger(folder, observer, ships=ships, keep_days=days, syncs=syncs, most=most, ended=ended)


def _ship(folder: LedgerFolder, keep_days: int, proofs: Path | None, shared: Path, parent: int) -> None:
    """Deliver the ledger of several workers. `proofs`: their file; `shared`: the folder of the workers' metrics."""
    metrics = Metrics(shared / "metrics-shipper")
    tell = partial(tell_shipped, metrics=metrics)
    fold = partial(fold_ended, folder)
    store = open_store(folder, ships=True)
    with sharing(folder, proofs):
        Shipper(folder, store, batch=_BATCH, keep_days=keep_days, tell=tell, fold=fold).run(parent=parent)


def _hear(log: Log) -> None:
    """Log failures outside of a request too. No traceback with values in it is logged."""

    def on_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        place = place_of(problem) if isinstance(problem, BaseException) else ""
        logging.getLogger("dragoman.gateway").error("%s: %s", context.get("message", "in the event loop"), place)

    logger = logging.getLogger("dragoman")
    logger.addHandler(Warnings(log))
    logger.propagate = False
    asyncio.get_running_loop().set_exception_handler(on_exception)


async def _first_of(*coroutines: Coroutine[object, object, object]) -> None:
    """Wait until one of them ends; cancel the others."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _sink(config: Config) -> Sink | None:
    if config.server.log == "off":
        return None
    return Sink(None if config.server.log == "stderr" else Path(config.server.log))
