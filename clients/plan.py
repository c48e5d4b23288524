"""What a scripted model does: one call, two calls at once, a text; and how each call proves that it ran."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: What the driver's tool is named when the client has none of its own.
TOOL = "record"
LONG = 20_000
#: Characters that a broken writer mangles: quotes, escapes, line ends, controls, letters of two to four bytes.
_UNICODE = "naïve “quotes” 'a' \\ / \t 東京 – مرحبا – 👩‍👩‍👧 \u2028 <x> {\"k\": [1]} $HOME `ls` %s"
_LETTERS = string.ascii_letters + 'äß中文字🙂\\"\n'
SHORT_TEXT = f"{_UNICODE}\nsecond line"
LONG_TEXT = (_LETTERS * (LONG // len(_LETTERS.encode()) + 1)).encode()[:LONG].decode(errors="ignore")
FINAL_TEXT = "All is recorded: naïve 東京 done-7f3a"


@dataclass(frozen=True)
class Call:
    """A call that the model makes. `proof`: what its result holds when the tool saw exactly these arguments.

    `namespace`: of Responses, in which the function stands; other protocols have only the name that both make. `kind`:
    what it is in Responses: "function", "custom" (free text, the argument `input`) or "tool_search". `refusal`: what
    its result holds where it needs a search of the web and the provider has none.
    """

    name: str
    arguments: dict[str, Any]
    proof: str
    namespace: str = ""
    kind: str = "function"
    refusal: str = ""

    def is_proven(self, result: str) -> bool:
        """Whether a result is this call's."""
        return self.proof in result or (self.refusal != "" and self.refusal in result)

    @property
    def own_name(self) -> str:
        """The name within the namespace."""
        return self.name.removeprefix(f"{self.namespace}__")


@dataclass(frozen=True)
class Page:
    """What a search of the web finds that the provider runs, and what the model says of it."""

    url: str = "https://example.test/sandbox-notes"
    title: str = "Notes of the sandbox"
    query: str = "newest sandbox"
    text: str = "The newest sandbox is number 7f3a."


@dataclass(frozen=True)
class Plan:
    """The turns of the model: calls, calls, …, then a text, or a call that ends the client's work (`ending`).

    `texts`: the turns of a model that is asked without tools. `page`: what it finds on the
    web where it is asked to search there; `is_searching`: before its last text it searches there, if it may.
    `recalled`: what only the client's memory can tell the model, once it was kept there.
    """

    steps: tuple[tuple[Call, ...], ...]
    text: str = FINAL_TEXT
    ending: Call | None = None
    texts: tuple[str, ...] = ()
    page: Page = Page()
    is_searching: bool = False
    recalled: str = ""


def record(text: str, tags: list[str], count: int, name: str = TOOL) -> Call:
    """A call of the drivers' own tool; each driver computes the same proof in its own language."""
    proof = hashlib.sha256("\n".join([text, *tags, str(count)]).encode()).hexdigest()
    return Call(name, {"text": text, "tags": tags, "count": count}, proof)


def plan_of_records(name: str = TOOL) -> Plan:
    """For clients that bring no tools. `name`: what the model knows the drivers' tool as."""
    return Plan(
        (
            (record(SHORT_TEXT, ["größer", ""], 3, name),),
            (record(LONG_TEXT, [], -1, name), record("two", ["b"], 0, name)),
        )
    )


def plan_of_commands(tool: str, arguments: Callable[[str], dict[str, Any]], *, ending: Call | None = None) -> Plan:
    """For programs with a shell of their own: the hash of a text, computed by the command that they run.

    `arguments`: the shell tool's arguments for a command.
    """

    def hashed(text: str) -> Call:
        command = f"printf %s {_quoted(text)} | sha256sum"
        return Call(tool, arguments(command), hashlib.sha256(text.encode()).hexdigest())

    return Plan(((hashed(SHORT_TEXT),), (hashed(LONG_TEXT), hashed("two"))), ending=ending)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def search_of(server: str, query: str, limit: int) -> Call:
    """A call of the tool that each server of scripts/mcp_server.py has."""
    proof = hashlib.sha256("\n".join([server, query, repr(limit)]).encode()).hexdigest()
    return Call(f"mcp__{server}__search", {"query": query, "limit": limit}, proof, f"mcp__{server}")


SEARCHES = (search_of("alpha", SHORT_TEXT, 3), search_of("beta", SHORT_TEXT, 4))
