"""The root of dragoman's exceptions, and the one for wrong use. Below everything else."""

from __future__ import annotations

from typing import Any, Final

_PLAIN_NAMES: Final[dict[type, str]] = {str: "string"}


class DragomanError(Exception):
    """The root of dragoman's exceptions."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Say how a copy is made: as Python does, without what `__init__` takes, which is not what `args` holds.

        An exception leaves a process of `concurrent.futures` pickled; one that cannot be read there breaks the pool.
        """
        return type(self).__new__, (type(self), *self.args), self.__dict__


class UsageError(DragomanError):
    """The caller broke the contract: the message names the argument, what was seen, and what is taken."""


def kind_of(value: object) -> str:
    """Describe a wrong value for a message, without the value: `a str`, `an int`, `bytes`, `None`, `an empty list`."""
    if isinstance(value, str | bytes | list | tuple | dict | set | frozenset) and not value:
        return f"an empty {_PLAIN_NAMES.get(type(value), type(value).__name__)}"
    if value is None or isinstance(value, bytes):
        return "None" if value is None else "bytes"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def first_line(problem: Exception) -> str:
    """Return the kind of another library's exception and the first line of its text, clipped."""
    told = str(problem).strip()
    return f"{type(problem).__name__}{': ' if told else ''}{told.partition(chr(10))[0][:160]}"


def reason(problem: Exception) -> str:
    """Return the last line of the text of an exception that Python or msgspec raised, or its kind with `first_line`."""
    if isinstance(problem, NameError | TypeError | ValueError) and (told := str(problem).strip()):
        return told.splitlines()[-1][:400]
    return first_line(problem)
