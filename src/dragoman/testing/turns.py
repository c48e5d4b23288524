"""The turns of a fake model: texts, calls, and faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, final

import msgspec

from dragoman import _json
from dragoman.deviations import DEVIATIONS
from dragoman.errors import UsageError, failure_kind
from dragoman.events import Failure
from dragoman.inputs.keywords import read_word, seen
from dragoman.misuse import kind_of
from dragoman.testing.faults import FAULTS
from dragoman.types import Part, Request, Text, Thinking, ToolCall

_LONGEST: Final = 86_400.0


@final
class Cut(msgspec.Struct, frozen=True):
    """The connection breaks in the middle of `parts`."""

    parts: tuple[Part, ...]


@final
class Error(msgspec.Struct, frozen=True):
    """The provider refuses, with an HTTP status."""

    failure: Failure


@final
class Faulty(msgspec.Struct, frozen=True):
    """The wire leaves its protocol in this way, one of `dragoman.deviations`."""

    code: str


@final
class Delay(msgspec.Struct, frozen=True):
    """A pause in seconds before the answer."""

    seconds: float


Said: TypeAlias = str | Part | Cut | Error | Faulty | Delay
Turn: TypeAlias = Said | Sequence[Said] | Callable[[Request], Any]


@final
class Script(msgspec.Struct, frozen=True):
    """A turn as it is played."""

    parts: tuple[Part, ...] = ()
    faults: tuple[str, ...] = ()
    failure: Failure | None = None
    is_cut: bool = False
    delay: float = 0.0


def call(name: str, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> ToolCall:
    """Return a call of a tool: `call("get_weather", city="Paris")`, or `call("get_weather", {"city": "Paris"})`.

    Raises:
        UsageError: the name is not a text, the arguments are no mapping, or one of them is not a JSON value.
    """
    if not isinstance(name, str) or not name:
        raise UsageError(f"call: expected the name of a tool, got {kind_of(name)}")
    if not isinstance(arguments, Mapping | None):
        raise UsageError(f"call({name!r}): expected a dict of arguments, or keywords, got {kind_of(arguments)}")
    try:
        return ToolCall("", name, _json.to_text({**(arguments or {}), **more}))
    except (TypeError, ValueError, RecursionError):
        raise UsageError(f"call({name!r}): expected plain JSON values as arguments") from None


def thinking(text: str) -> Thinking:
    """Return the model's thinking before it answers. Raises UsageError if it is no text."""
    if not isinstance(text, str):
        raise UsageError(f"thinking: expected a string, got {kind_of(text)}")
    return Thinking(text)


def cut(*said: str | Part) -> Cut:
    """Return an answer that breaks off: these texts and calls begin, and in the last of them the connection is lost.

    Raises:
        UsageError: something is neither a text nor a call.
    """
    return Cut(tuple(_part(one, "cut") for one in said))


def error(status: int, message: str = "", *, retry_after: float | None = None) -> Error:
    """Return a refusal of the provider with this HTTP status, from 400 to 599.

    Raises:
        UsageError: it is no such status, or the message no text.
    """
    if not isinstance(status, int) or isinstance(status, bool) or not 400 <= status <= 599:
        raise UsageError(f"error: expected a status from 400 to 599, got {seen(status)}")
    if not isinstance(message, str):
        raise UsageError(f"error: expected a string as message, got {kind_of(message)}")
    if retry_after is not None:
        retry_after = delay(retry_after).seconds
    text = message or f"the fake model answers {status}"
    return Error(Failure(failure_kind(status), text, status=status, retry_after=retry_after))


def deviation(name: str) -> Faulty:
    """Return a wire fault by its name, such as `"missing-id"`. Alone it is a turn; in a list it affects its neighbours.

    The page of deviations says which names can be played.

    Raises:
        UsageError: there is none of that name, or none that can be played; the message lists those that can be.
    """
    if isinstance(name, str) and name in DEVIATIONS and name not in FAULTS:
        raise UsageError(f"deviation: {name} cannot be played; these can be: {', '.join(sorted(FAULTS))}")
    return Faulty(read_word("deviation", name, sorted(FAULTS)))


def delay(seconds: float) -> Delay:
    """Return a pause before the answer, wherever it stands in a turn. Raises UsageError: no number of seconds."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < _LONGEST:
        raise UsageError(f"delay: expected seconds, 0 or more, got {seen(seconds)}")
    return Delay(float(seconds))


def script_of(turn: object, where: str) -> Script:
    """Return a turn as it is played.

    Raises:
        UsageError: the value is not a turn.
    """
    items: Sequence[object] = turn if isinstance(turn, list | tuple) else (turn,)
    if not items:
        raise UsageError(f"{where}: expected a text, a call or a list of them, got an empty list")
    parts: list[Part] = []
    faults: list[str] = []
    failure: Failure | None = None
    is_cut, seconds = False, 0.0
    for item in items:
        if isinstance(item, Faulty):
            faults.append(item.code)
        elif isinstance(item, Error):
            failure = item.failure
        elif isinstance(item, Delay):
            seconds += item.seconds
        elif isinstance(item, Cut):
            is_cut = True
            parts += item.parts
        else:
            parts.append(_part(item, where))
    return Script(tuple(parts), tuple(faults), failure, is_cut, seconds)


def _part(item: object, where: str) -> Part:
    if isinstance(item, str):
        return Text(item)
    if isinstance(item, Part):
        return item
    hint = "; each turn is an argument of its own" if isinstance(item, list | tuple) else ""
    raise UsageError(f"{where}: expected a text, a call or a list of them, got {kind_of(item)}{hint}")
