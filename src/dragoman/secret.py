"""Keys and other texts that must not be shown by accident."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final, NoReturn, Self, final

MASK: Final = "***"
#: Shorter texts stand in messages by chance, and are no secrets.
_SHORTEST: Final = 8


def name_alone(value: object) -> str:
    """Return the type's name: the `__repr__` of values that contain the words of people and models, or keys."""
    return f"<{type(value).__name__}>"


@final
class Secret:
    """A text that is shown only on request: `repr`, `str`, `format` and tracebacks have `***`.

    It cannot be pickled or encoded. Two are compared in constant time.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the text itself."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, specification: str) -> str:
        return format(MASK, specification)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        from hmac import compare_digest

        mine, theirs = (secret.reveal().encode("utf-8", "surrogatepass") for secret in (self, other))
        return compare_digest(mine, theirs)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # a hash of it would be a way to guess it

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memory: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")

    def __getstate__(self) -> NoReturn:
        raise TypeError("a Secret has no state to show")


def masked(text: str, secrets: Iterable[str]) -> str:
    """Return the text without these secrets in it, also where one is clipped at its end."""
    for secret in secrets:
        begin, rest = secret[:_SHORTEST], secret[_SHORTEST:]
        if len(begin) == _SHORTEST and begin in text:
            before, *pieces = text.split(begin)
            text = "".join([before, *(MASK + piece[_shared(piece, rest) :] for piece in pieces)])
    return text


def _shared(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    return next((place for place, (mine, theirs) in enumerate(zip(one, other, strict=False)) if mine != theirs),
                min(len(one), len(other)))  # fmt: skip
