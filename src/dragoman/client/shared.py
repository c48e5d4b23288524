"""`dragoman.reply` and similar functions: methods of one `Client`, created at the first use and closed at exit."""

from __future__ import annotations

from functools import cache
from types import MethodType
from typing import Any, final

from dragoman.client.synchronous import Client


@cache
def shared_client() -> Client:
    """Return the client that all of them share."""
    return Client()


@final
class _Unmade:
    """Stands in for the client until a method needs it."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(shared_client(), name)


def shared_method(name: str) -> MethodType:
    """Return one of `SHARED` as a function, with its method's signature and docstring, without creating a client."""
    return MethodType(getattr(Client, name), _Unmade())
