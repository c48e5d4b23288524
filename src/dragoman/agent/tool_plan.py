"""A `Plan`: what a tool call will do, fixed before it is approved and done. An `Outcome`: its result."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman.types import Text, ToolResult

#: What a plan touches. Reading in the work folder is the only kind that is done without a word.
Kind: TypeAlias = Literal["read", "write", "run", "network", "other"]


class ToolFailed(Exception):
    """A tool could not do what it was asked. The message is for the model."""


@final
class Change(msgspec.Struct, frozen=True):
    """A file before and after; None: it did not exist."""

    path: tuple[str, ...]
    before: bytes | None
    after: bytes | None


@final
class Outcome(msgspec.Struct, frozen=True):
    """A tool's result. `shown` is what the person sees, "" for the text itself.

    Attributes:
        is_foreign: others may have written the text (files, commands' output, pages), so that it may say anything.
            Actions that reach outside are then asked again, even if a rule allows them.
        is_from_outside: it comes from a page or another server. Then only rules that name the action apply.
    """

    text: str
    is_error: bool = False
    shown: str = ""
    is_foreign: bool = False
    is_from_outside: bool = False
    change: Change | None = None

    def result(self, call_id: str, name: str) -> ToolResult:
        """Return the tool result that answers a call."""
        return ToolResult(call_id, name, (Text(self.text),), is_error=self.is_error)


@final
class Plan(msgspec.Struct, frozen=True):
    """One action, ready to be done.

    Attributes:
        subject: the words that a rule's pattern is compared with: a path's components, a command's words.
        shown: exactly what will be done, as it is shown and approved: the `action`, then a line of `facts` if any.
        identity: distinguishes this action from every other one; an approval is bound to it.
        asks: "never" for reading; "unless-ruled"; "always": no rule and no earlier yes applies.
        is_idempotent: doing it twice is doing it once, so a lost outcome may be obtained again without asking.
    """

    tool: str
    kind: Kind
    subject: tuple[str, ...]
    shown: str
    identity: str
    do: Callable[[], Awaitable[Outcome]]
    asks: Literal["never", "unless-ruled", "always"] = "unless-ruled"
    diff: str = ""
    facts: str = ""
    is_idempotent: bool = False

    @property
    def action(self) -> str:
        """What is shown, without our own facts."""
        return self.shown.removesuffix(f"\n{self.facts}") if self.facts else self.shown

    @property
    def title(self) -> str:
        """The first line of what is shown, at most 160 characters."""
        return self.shown.partition("\n")[0][:160]


#: What has come since the user last spoke: nothing of others, text of files and commands, text from outside.
Taint: TypeAlias = Literal["none", "folder", "outside"]


def identity_of(tool: str, facts: Mapping[str, Any]) -> str:
    """Return the identity of an action: its tool and everything that decides what it does."""
    return hashlib.sha256(_json.encode([tool, sorted(facts.items())])).hexdigest()
