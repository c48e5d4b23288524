"""The pipes of an MCP server that this process starts, with bounds that the package's own reader lacks.

Protocol: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio (read 2026-11-25).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias

if TYPE_CHECKING:
    from anyio.abc import Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    Streams: TypeAlias = tuple[MemoryObjectReceiveStream[Any], MemoryObjectSendStream[Any]]

_MIB: Final = 1024 * 1024
#: Bytes of one message, with a picture in it.
MOST_MESSAGE = 16 * _MIB
_READ: Final = 64 * 1024
#: Seconds that a server has to end by itself, and again after it was asked to.
_GRACE: Final = 2.0
_LOOK: Final = 0.01


@contextlib.asynccontextmanager
async def started(
    command: Sequence[str],
    environ: Mapping[str, str],
    folder: Path | None,
    errors: TextIO,
    broken: Callable[[str], None],
) -> AsyncIterator[Streams]:
    """Start a server and yield its message streams. The server ends with the block.

    A line of more than `MOST_MESSAGE` bytes ends the server: `broken` is called, and every waiting call sees a closed
    connection.

    Raises:
        OSError: it cannot be started.
    """
    import anyio

    process = await anyio.open_process(
        command, env=environ, stderr=errors, cwd=folder, start_new_session=sys.platform != "win32"
    )
    inward_writer, inward = anyio.create_memory_object_stream[Any](0)
    outward, outward_reader = anyio.create_memory_object_stream[Any](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, process, inward_writer, broken)
        tasks.start_soon(_write, process, outward_reader, inward_writer)
        try:
            yield inward, outward
        finally:
            with anyio.CancelScope(shield=True):
                inward.close()
                outward.close()
                await _end(process)
            tasks.cancel_scope.cancel()


async def _read(process: Process, messages: MemoryObjectSendStream[Any], broken: Callable[[str], None]) -> None:
    import anyio

    line = bytearray()
    gone = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, ConnectionError)
    assert process.stdout is not None
    async with messages:
        with contextlib.suppress(*gone):
            while True:
                seen = len(line)
                line += await process.stdout.receive(_READ)
                while (end := line.find(b"\n", seen)) >= 0:
                    message = _parse(bytes(line[:end]))
                    del line[: end + 1]
                    seen = 0
                    await messages.send(message)
                if len(line) > MOST_MESSAGE:
                    broken(f"the server wrote a line of more than {MOST_MESSAGE // _MIB} MiB")
                    _signal(process, by_force=True)
                    return
        with contextlib.suppress(*gone):
            while messages.statistics().open_receive_streams == 0:  # what it still says must not keep it from its end
                await process.stdout.receive(_READ)


def _parse(line: bytes) -> SessionMessage | Exception:
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as problem:  # the session passes over what is no message
        return problem


async def _write(
    process: Process, messages: MemoryObjectReceiveStream[Any], inward: MemoryObjectSendStream[Any]
) -> None:
    import anyio

    assert process.stdin is not None
    try:
        async with messages:
            async for each in messages:
                said = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(said.encode() + b"\n")
    except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
        inward.close()  # everyone who waits for an answer sees a closed connection


async def _end(process: Process) -> None:
    """Close its input, and kill it with its children if it does not end by that."""
    import anyio

    assert process.stdin is not None
    with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    if not await _has_ended(process):
        _signal(process, by_force=False)
        if not await _has_ended(process):
            _signal(process, by_force=True)
            await _has_ended(process)
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if callable(close := getattr(transport, "close", None)):  # a child of its own may hold the pipes
        with contextlib.suppress(PermissionError):
            close()


async def _has_ended(process: Process) -> bool:
    import anyio

    with anyio.move_on_after(_GRACE):
        while process.returncode is None:
            await anyio.sleep(_LOOK)
    return process.returncode is not None


def _signal(process: Process, *, by_force: bool) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL if by_force else signal.SIGTERM)
