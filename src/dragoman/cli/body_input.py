"""Read response bodies and offered tools from the command line, and print events."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from dragoman import _json
from dragoman._json import Raw
from dragoman.cli.terminal import clip, harmless_json, hint
from dragoman.errors import UsageError
from dragoman.events import Event, Failure, Finish, Reply, ToolCallFailed, UsageUpdate
from dragoman.events.event_lines import event_object
from dragoman.protocol import Protocol
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.recognize import SHORT_NAMES, recognize
from dragoman.types import TOKEN_KINDS, Cost, ProtocolName, Tool, ToolCall

_CHUNK: Final = 65_536  # bytes
_LARGEST: Final = 128 << 20  # bytes of a file that an option names; a device may have no end
_SEEN: Final = 200  # bytes of a body that are quoted


def add_file(parser: argparse.ArgumentParser) -> None:
    """Declare FILE, the body to read."""
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="the body; - or nothing: standard input")


def add_tools(parser: argparse.ArgumentParser) -> None:
    """Declare --tools."""
    parser.add_argument(
        "--tools",
        type=Path,
        metavar="FILE",
        help='the tools of the request: a JSON array of {"name", "description", "parameters"}',
    )


def add_protocol(parser: argparse.ArgumentParser, option: str, *, is_output: bool = False) -> None:
    """Declare an option that names a protocol. For the input it is optional."""
    told = "" if is_output else " (default: told from its bytes)"
    parser.add_argument(
        option,
        dest="target" if is_output else "protocol",
        required=is_output,
        metavar="P",
        type=read_protocol,
        help=f"the protocol of the {'output' if is_output else 'body'}{told}: {', '.join(PROTOCOLS)}, or in short "
        f"{', '.join(SHORT_NAMES)}",
    )


def read_protocol(word: str) -> ProtocolName:
    """Return a protocol by its name or short name. Raises ArgumentTypeError."""
    for name in SHORT_NAMES.values():
        if word in (name, *(short for short, long in SHORT_NAMES.items() if long == name)):
            return name
    raise argparse.ArgumentTypeError(f"expected one of {', '.join(SHORT_NAMES)}, got {word[:40]!r}")


def open_body(file: str, named: ProtocolName | None) -> tuple[Protocol, Iterator[bytes]]:
    """Return the protocol of a body and its bytes. Without a named protocol the whole body is read to detect it.

    Raises:
        UsageError: the bytes do not tell the protocol.
    """
    if named is not None:
        return PROTOCOLS[named], read_chunks(file)
    body = read_whole(file)
    found = recognize(body)
    if not body.strip():
        raise UsageError(f"{name_of(file)}: expected the body of a response, got nothing")
    if found is None:
        seen = clip(body[:_SEEN].decode("utf-8", "replace"), 60)
        raise UsageError(f"cannot tell the protocol of the body ({seen}); name it: --protocol {'|'.join(SHORT_NAMES)}")
    return PROTOCOLS[found], iter([body])


def explain_protocol(reply: Reply, body: bytes, protocol: Protocol) -> str:
    """Return what to add to a failure if the body belongs to another protocol, or to none; else ""."""
    if reply.error is None or reply.error.kind != "wire":
        return ""
    found = recognize(body)
    return f"; this looks like {found}" if found is not None and found != protocol.name else ""


def read_chunks(file: str) -> Iterator[bytes]:
    """Yield the body's bytes as they come; `-` is standard input. Raises `UsageError`: the file cannot be read."""
    with contextlib.ExitStack() as stack:
        with reading(file):
            source: BinaryIO = sys.stdin.buffer if file == "-" else stack.enter_context(Path(file).open("rb"))
        number = source.fileno()
        # Straight from the descriptor: a pipe's bytes are passed on when they come, not when a buffer is full.
        while chunk := os.read(number, _CHUNK):
            yield chunk


def read_whole(file: str) -> bytes:
    """Return all bytes of a file; `-` is standard input. Raises `UsageError`: it cannot be read, or never ends."""
    kept = bytearray()
    for chunk in read_chunks(file):
        kept += chunk
        if len(kept) > _LARGEST:
            raise _too_large(name_of(file))
    return bytes(kept)


def name_of(file: str) -> str:
    """Return what a message calls a file."""
    return "standard input" if file == "-" else file


@contextlib.contextmanager
def reading(file: str | Path, option: str = "") -> Iterator[None]:
    """Turn an error in reading a file of the command line into wrong usage.

    Raises:
        UsageError: it cannot be read; the message names `option`, if there is one, and the file.
    """
    try:
        yield
    except OSError as problem:
        is_missing = isinstance(problem, FileNotFoundError)
        reason = "there is no such file" if is_missing else problem.strerror or type(problem).__name__
        raise UsageError(f"{option} {file}: {reason}".lstrip()) from None


def load_tools(path: Path | None) -> tuple[Tool, ...]:
    """Return the tools in a file; none without a file.

    A tool may also have the form of a request: `{"type": "function", "function": {…}}`, or with `input_schema`.

    Raises:
        UsageError: the file is not such an array; the message says where.
    """
    if path is None:
        return ()
    value = _json.decode(read_option_file(path, "--tools"))
    if isinstance(value, _json.Malformed):
        raise UsageError(f"--tools {path}: expected a JSON array of tools: {value.problem}")
    if not isinstance(value, list):
        raise UsageError(f"--tools {path}: expected a JSON array of tools, got {type(value).__name__}")
    return tuple(_read_tool(item, f"--tools {path}: $[{position}]") for position, item in enumerate(value))


def read_option_file(path: Path, option: str) -> bytes:
    """Return the bytes of a file that an option names. Raises `UsageError`: it cannot be read, or never ends."""
    with reading(path, option), path.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise _too_large(f"{option} {path}")
    return data


def read_prompt(word: str) -> str:
    """Return the prompt: the word, or all of standard input for `-`. Raises `UsageError`: that never ends."""
    if word != "-":
        return word
    data = read_whole(word)
    try:
        return data.decode()
    except UnicodeDecodeError:
        hint("standard input: what is no UTF-8 goes as \ufffd\n")
        return data.decode(errors="replace")


def _too_large(where: str) -> UsageError:
    return UsageError(f"{where}: expected at most {_LARGEST >> 20} MiB")


def check_folder(file: str, option: str) -> None:
    """Check, before any work is done, that the folder of an output file exists. `-` is standard output.

    Raises:
        UsageError: there is no such folder.
    """
    if file != "-" and not Path(file).absolute().parent.is_dir():
        raise UsageError(f"{option} {file}: there is no folder {Path(file).parent}")


def _read_tool(item: Any, where: str) -> Tool:
    if isinstance(item, dict) and isinstance(item.get("function"), dict):
        item, where = item["function"], f"{where}.function"
    if not isinstance(item, dict):
        raise UsageError(f"{where}: expected an object, got {type(item).__name__}")
    name, description = item.get("name"), item.get("description") or ""
    if not isinstance(name, str) or not name:
        raise UsageError(f"{where}.name: expected a name, got {str(name)[:80]!r}")
    if not isinstance(description, str):
        raise UsageError(f"{where}.description: expected text, got {type(description).__name__}")
    key = next((key for key in ("parameters", "input_schema", "inputSchema") if key in item), "parameters")
    schema = item.get(key)
    if schema is not None and not isinstance(schema, dict):
        raise UsageError(f"{where}.{key}: expected a JSON schema, got {type(schema).__name__}")
    return Tool(name, description, None if schema is None else _json.raw(schema))


def write(data: bytes) -> None:
    """Write bytes to standard output at once. JSON on a terminal cannot steer the terminal."""
    if data:
        sys.stdout.buffer.write(harmless_json(data) if sys.stdout.isatty() else data)
        sys.stdout.buffer.flush()


def write_json(value: object) -> None:
    """Write a value to standard output as a line of JSON."""
    write(_json.encode(value) + b"\n")


def render_events(events: list[Event]) -> bytes:
    """Return JSON lines, one event each."""
    return b"".join(_json.encode(_plain(event)) + b"\n" for event in events)


def _plain(event: Event) -> dict[str, Any]:
    fields = event_object(event)
    if isinstance(event, UsageUpdate | Finish | Failure) and event.cost is not None:
        fields["cost"] = _cost_object(event.cost)
    return fields


def render_result(reply: Reply) -> bytes:
    """Return the sum of a response as one JSON object, in the form that `dragoman decode --result` prints."""
    usage = reply.usage
    return _json.encode(
        {
            "tool_calls": [_call_object(call) for call in reply.tool_calls],
            "text": reply.text,
            "thinking": reply.thinking,
            "stop_reason": reply.stop_reason,
            "usage": {name: getattr(usage, name) for name in TOKEN_KINDS},
            "cost": None if reply.cost is None else _cost_object(reply.cost),
            "model": reply.model,
            "error": error_object(reply.error),
            "deviations": [
                {
                    "code": deviation.code,
                    "where": deviation.where,
                    "seen": deviation.seen,
                    "severity": deviation.severity,
                }
                for deviation in reply.deviations
            ],
        }
    )


def error_object(error: Failure | ToolCallFailed | None) -> dict[str, Any] | None:
    """Return an error as plain values; a failed call is of kind `tool_call`."""
    if error is None:
        return None
    if isinstance(error, ToolCallFailed):
        return {"kind": "tool_call", "message": error.message, "status": None}
    return {"kind": error.kind, "message": error.message, "status": error.status}


def _call_object(call: ToolCall) -> dict[str, Any]:
    """Return a call as plain values.

    Arguments are always an object in their own text, so 1.0 and big integers stay what they are. The free text of a
    custom tool stands under `input`, as on the wire.
    """
    arguments: Any = Raw(call.arguments.encode()) if call.kind == "function" else {"input": call.arguments}
    return {"id": call.id, "name": call.name, "arguments": arguments}


def _cost_object(cost: Cost) -> dict[str, str]:
    return {"usd": format(cost.usd, "f"), "source": cost.source}
