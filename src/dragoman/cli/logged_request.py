"""Explain a logged request by its id: where it went, and what of it was not passed on."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from dragoman import _json
from dragoman._json import Json
from dragoman.cli.body_input import reading, write_json
from dragoman.cli.log_lines import render_line
from dragoman.cli.main import DONE
from dragoman.cli.terminal import clip, harmless, paint_for, say
from dragoman.errors import UsageError

#: Fields of a line in which an id may stand.
_IDS: Final = ("id", "client_id", "provider_id")
_LONGEST: Final = 1 << 20  # bytes of a line; the gateway's own are far shorter


def explain_logged(id: str, log: str, *, as_json: bool) -> int:
    """Print what the log has of a request. `log` is a file, or "-". Return the exit status.

    Raises:
        UsageError: there is no log to read, or no such request in it.
    """
    if log in ("stderr", "off"):
        raise UsageError(
            f"server.log is {log!r}: name the file that holds the gateway's lines with --log, or - for standard input"
        )
    if log == "-":
        entry = find_request(id, lines_of(sys.stdin.buffer))
    else:
        with reading(clip(log, 200), "--log"), Path(log).open("rb") as file:
            entry = find_request(id, lines_of(file))
    if entry is None:
        raise UsageError(f"no request with the id {clip(id, 60)!r} stands in {clip(log, 200)}")
    if as_json:
        write_json(entry)
    else:
        say(_told(entry))
    return DONE


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a log without those that are too long, which are never held whole."""
    is_rest = False
    while piece := file.readline(_LONGEST):
        is_ended = piece.endswith(b"\n")
        if not is_rest and (is_ended or len(piece) < _LONGEST):
            yield piece
        is_rest = not is_ended


def find_request(id: str, lines: Iterable[bytes]) -> Mapping[str, Json] | None:
    """Return the last request of a log with this id. Other lines and invalid JSON are skipped.

    A request whose id dragoman made takes precedence over those whose clients or providers chose the same id.
    """
    found: Mapping[str, Json] | None = None
    sought = id.encode("utf-8", "replace")  # an argument may be no UTF-8
    for line in lines:
        if sought not in line:
            continue
        entry = _json.decode(line)
        if not isinstance(entry, dict) or entry.get("kind") != "request":
            continue
        is_ours = entry.get("id") == id
        if is_ours or (id in [entry.get(name) for name in _IDS] and (found is None or found.get("id") != id)):
            found = entry
    return found


def _told(entry: Mapping[str, Json]) -> str:
    lines = [render_line(entry, paint_for(sys.stdout))]
    lines += [
        f"  tried {_word(each.get('target'))}: {_word(each.get('outcome'))} {_word(each.get('reason'))}".rstrip() + "\n"
        for each in _list(entry.get("attempts"))
        if isinstance(each, dict)
    ]
    if entry.get("passed"):
        lines.append("  the provider's bytes went through untouched\n")
    lost = _list(entry.get("lost"))
    lines += [f"  {_word(each)}\n" for each in lost]
    if not lost:
        is_older = _has_losses(entry)  # its line tells codes alone
        lines.append(f"  {'what was not passed on is not told' if is_older else 'nothing was left out or changed'}\n")
    # A client chooses its model's name, and this line is there to be copied into a shell.
    client = shlex.quote(_word(entry.get("client")) or "PROTOCOL")
    target = shlex.quote(_word(entry.get("target")) or "TARGET")
    lines.append("The log keeps no bodies. Field by field, with the request's body in a file:\n")
    lines.append(f"  dragoman explain --from {client} --to {target} body.json\n")
    lines.append("`dragoman record` with the gateway's address keeps what a client sends from now on.\n")
    return "".join(lines)


def _has_losses(entry: Mapping[str, Json]) -> bool:
    codes = entry.get("deviations")
    return isinstance(codes, dict) and not codes.keys().isdisjoint(("changed", "dropped", "moved", "untranslated"))


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _word(value: Json) -> str:
    return harmless(clip(str(value or ""), 300))
