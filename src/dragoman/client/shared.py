"""`dragoman.reply` and its like: methods of one `Client`, which is made at their first use and closes at exit."""

from __future__ import annotations

from functools import cache
from types import MethodType
from typing import Any, final

from dragoman.client.synchronous import Client


@cache
def shared_client() -> Client:
    """The client that all of them share."""
    return Client()


@final
class _Unmade:
    """In place of the client until a method needs something of it."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return getattr(shared_client(), name)


def shared_method(name: str) -> MethodType:
    """One of `SHARED` as a function, with its method's signature and words. Making it makes no client."""
    return MethodType(getattr(Client, name), _Unmade())
