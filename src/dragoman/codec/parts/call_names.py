"""The name of a call: told late, again or in pieces. Pieces may have been taken for calls of their own."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from dragoman.codec.parts.assembly import Assembly
from dragoman.codec.parts.open_parts import OpenCall

#: What some servers write as text where there is no id or name.
NOTHING: Final = ("null", "None", "undefined", "nil")


def without_words(id: str, name: str, where: str, assembly: Assembly) -> tuple[str, str]:
    """Return an id and a name; one that is a word for nothing in some language becomes ""."""
    # quirk: null-as-a-word
    if name in NOTHING and name not in assembly.calls.offered_names:
        assembly.deviate("mangled-name", where, name)
        name = ""
    if id in NOTHING:
        assembly.deviate("changing-id" if assembly.opened_calls else "missing-id", where, id)
        id = ""
    return id, name


def extends(call: OpenCall, piece: str, offered: Collection[str]) -> bool:
    """Return whether a piece of name, joined to the name so far, still begins (or is) an offered name."""
    joined = call.name + piece
    return call.state == "waiting" and piece != call.name and any(one.startswith(joined) for one in offered)


def completes(call: OpenCall, name: str, offered: Collection[str]) -> bool:
    """Return whether a name is that of a tool, and the name so far only its beginning."""
    is_longer = call.name not in offered and name in offered and name.startswith(call.name)
    return is_longer and call.state == "waiting" and not call.text.is_started()


def join_name(call: OpenCall, name: str, where: str, assembly: Assembly) -> None:
    """Take a name for a call that has begun."""
    offered = assembly.calls.offered_names
    if not name:
        return
    if not call.name:
        call.name = name
        call.is_doubtful = call.text.is_closed()
        assembly.deviate("late-name", where)
    elif extends(call, name, offered) and not (call.text.is_whole() and call.name in offered):
        call.name += name
        assembly.deviate("split-name", where)
    elif completes(call, name, offered):
        call.name = name
        assembly.deviate("split-name", where)
    elif name == call.name:
        assembly.deviate("repeated-name", where, name)
    else:
        assembly.contradict(call, where)
