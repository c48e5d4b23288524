"""The folder of sessions: where it is, and which sessions it has."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import final

import msgspec

from dragoman.agent.session.records import Named, Opened, Prompted, Switched, parse_record
from dragoman.errors import UsageError
from dragoman.inputs.saved_messages import message_of


@final
class Saved(msgspec.Struct, frozen=True):
    """A stored session for a list. `at`: Unix seconds of its beginning; `first`: the beginning of its task."""

    path: Path
    id: str
    folder: str
    target: str
    name: str
    at: int
    first: str


def default_store(*, environ: Mapping[str, str], home: Path) -> Path:
    """Return the folder of sessions: below the user's state folder, never in the current one."""
    named = environ.get("XDG_STATE_HOME", "")
    base = Path(named) if Path(named).is_absolute() else home / ".local" / "state"
    return base.absolute() / "dragoman" / "sessions"


def make_store(store: Path) -> None:
    """Create the folder of sessions for the user alone."""
    store.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        store.chmod(0o700)


def list_sessions(store: Path, *, folder: Path | None = None, limit: int = 20) -> list[Saved]:
    """Return the newest sessions, of one work folder or of all; those without a word are left out."""
    found: list[Saved] = []
    for path in sorted(store.glob("*.jsonl"), reverse=True) if store.is_dir() else ():
        saved = _saved(path)
        if saved is not None and folder in (None, Path(saved.folder)):
            found.append(saved)
        if len(found) == limit:
            break
    return found


def find_session(store: Path, wanted: str, *, folder: Path | None = None) -> Path:
    """Return the session of that name, id or beginning of an id; "" is the newest of the folder.

    Raises:
        UsageError: there is none.
    """
    for saved in list_sessions(store, folder=None if wanted else folder, limit=1 if not wanted else 1000):
        if not wanted or wanted == saved.name or saved.id.startswith(wanted):
            return saved.path
    raise UsageError(f"no session {wanted[:80]!r}" if wanted else "no session of this folder to resume")


def _saved(path: Path) -> Saved | None:
    opened, first, target, name = None, "", "", ""
    with contextlib.suppress(OSError), path.open("rb") as file:
        for line in file:
            record = parse_record(line)
            if isinstance(record, Opened):
                opened, target = record, record.target
            elif isinstance(record, Prompted) and not first:
                with contextlib.suppress(ValueError):
                    first = message_of(record.message).text
            elif isinstance(record, Named):
                name = record.name
            elif isinstance(record, Switched):
                target = record.target
    if opened is None or not first:
        return None
    return Saved(path, opened.id, opened.folder, target, name, opened.at, first)
