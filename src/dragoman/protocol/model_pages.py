"""The interface of a protocol's pages beside the chat: what clients ask of models, and the length of a prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, final
from typing import Protocol as Interface

import msgspec

from dragoman.errors import WireError

READ: Final = ("GET", "HEAD")
_DIGITS: Final = 9
JSON: Final = "application/json; charset=utf-8"


class ModelFacts(Interface):
    """What is known of a model. None is "not known"."""

    @property
    def provider(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def context(self) -> int | None: ...
    @property
    def max_output(self) -> int | None: ...
    @property
    def input_modalities(self) -> Sequence[str] | None: ...
    @property
    def tools(self) -> bool | None: ...
    @property
    def thinking(self) -> bool | None: ...


class ListedModel(Interface):
    """A name that clients see, and the model that answers to it."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> ModelFacts: ...


class ModelQuestion(Interface):
    """A question to one of the pages."""

    @property
    def path(self) -> str:
        """The request's path, without its query."""
        ...

    @property
    def body(self) -> bytes: ...

    @property
    def name(self) -> str:
        """The text of `{model}` in the path, or ""."""
        ...

    def parameter(self, name: str) -> str:
        """Return the first value of a field of the query, "" without one."""
        ...

    @property
    def since(self) -> int:
        """When the gateway started, in Unix seconds: the date of every model in a list."""
        ...

    @property
    def server_version(self) -> str:
        """The version of Ollama that clients are told."""
        ...

    def listed(self) -> Sequence[ListedModel]:
        """Return the names that the client sees."""
        ...

    def find(self, name: str) -> ListedModel:
        """Return the model that answers to a name, or raise what the gateway answers with 404."""
        ...

    def count_tokens(self, body: bytes, path: str = "") -> int:
        """Estimate the tokens of a request of this protocol to a model that there is.

        Raises:
            WireError: it is no request of this protocol.
        """
        ...


def read_size(text: str, name: str, most: int) -> int | None:
    """Return how many models a client asks for at once; None: it does not say.

    Raises:
        WireError: it is no whole number above 0.
    """
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS or int(text) == 0:
        raise WireError(f"expected a number from 1 to {most}", path=name)
    return min(int(text), most)


#: Whether a page is for the client with these headers (names in lower case) and this query.
Applies: TypeAlias = Callable[[Mapping[str, str], str], bool]


def to_all(headers: Mapping[str, str], query: str) -> bool:
    """Return True, for a page that every client may get. An `Applies`."""
    return True


class Precedence:
    """Which page answers where several protocols have one at the same path: the first that applies."""

    MARKED: Final = 0  # its clients show what they are
    USUAL: Final = 1
    BORROWED: Final = 2  # the form is another protocol's
    UNMARKED: Final = 3  # its clients usually show what they are, and this one does not


@final
class ModelPage(msgspec.Struct, frozen=True):
    """A path and its answer. `{model}` in the pattern stands for any text.

    `respond` returns the body, and may raise `WireError`.
    """

    pattern: str
    respond: Callable[[ModelQuestion], bytes]
    methods: tuple[str, ...] = READ
    applies: Applies = to_all
    precedence: int = Precedence.USUAL
    content_type: str = JSON


#: Loads the pages of a protocol, for the gateway alone.
LoadModelPages: TypeAlias = Callable[[], tuple[ModelPage, ...]]
