"""What clients ask before they chat: versions, models, capabilities, the length of a prompt.

Each protocol has the forms of its own clients (`model_pages.py` in its folder). Answers come from the routes and the
catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias, final

import msgspec

from dragoman.gateway.messages import Answer, Head, query_values
from dragoman.gateway.model_names import Listed, ModelNames, UnknownModel
from dragoman.gateway.pages.start import render_start, wants_html
from dragoman.ledger.keys import VirtualKey
from dragoman.protocol.model_pages import READ, ModelPage
from dragoman.protocols import PROTOCOLS
from dragoman.secret import name_alone
from dragoman.token_estimate import estimate_tokens
from dragoman.types import ProtocolName


@final
class Asked(msgspec.Struct, frozen=True):
    """A question. It is a `ModelQuestion` of the protocols.

    Attributes:
        protocol: whose page is asked.
        name: the text of `{model}` in the path, or "".
        since: Unix seconds, for lists.
        key: the client's, which restricts what it sees; None: it sees everything.
    """

    __repr__ = name_alone

    protocol: ProtocolName
    head: Head
    body: bytes
    name: str
    names: ModelNames
    since: int
    key: VirtualKey | None = None

    @property
    def path(self) -> str:
        """Return the request's path, without its query."""
        return self.head.path

    def parameter(self, name: str) -> str:
        """Return the first value of a field of the query, "" without one."""
        return next(iter(query_values(self.head.query, name)), "")

    @property
    def server_version(self) -> str:
        """Return the version of Ollama that clients are told."""
        return self.names.ollama_version

    def listed(self) -> Sequence[Listed]:
        """Return the names that the client sees."""
        found = self.names.listed()
        return found if self.key is None else [listed for listed in found if self.key.permits(listed.name)]

    def find(self, name: str) -> Listed:
        """Return the model that answers to a name.

        Raises:
            UnknownModel: none does, or none that the client's key may ask for.
        """
        if self.key is not None and not self.key.permits(name):
            raise UnknownModel(name, tuple(listed.name for listed in self.listed()))
        return self.names.find(name)

    def count_tokens(self, body: bytes, path: str = "") -> int:
        """Estimate the tokens of a request of this protocol to a model that there is.

        Raises:
            WireError: it is no request of this protocol.
            UnknownModel: there is no such model.
        """
        request = PROTOCOLS[self.protocol].parse_request(body, path=path).request
        self.find(request.model)
        return estimate_tokens(request)


Respond: TypeAlias = Callable[[Asked], Answer]


@final
class Page(msgspec.Struct, frozen=True):
    """A path and its answer. `{model}` in the pattern stands for any text. `applies` selects the clients of a path that
    several protocols share.
    """

    protocol: ProtocolName
    methods: tuple[str, ...]
    pattern: str
    respond: Respond
    applies: Callable[[Head], bool]


def pages_of(served: Iterable[ProtocolName]) -> Iterator[Page]:
    """Yield the pages of these protocols in the order in which they are matched; the page for browsers is the first."""
    names = tuple(served)
    for name in names:
        yield Page(name, READ, "/", partial(_start, names), wants_html)
    found = [(page, name) for name in names for page in PROTOCOLS[name].model_pages()]
    for page, name in sorted(found, key=lambda each: each[0].precedence):
        yield Page(name, page.methods, page.pattern, partial(_respond, page), partial(_applies, page))


def _start(served: tuple[ProtocolName, ...], asked: Asked) -> Answer:
    """Return the page that a browser shows."""
    return render_start(asked.head, served, asked.listed())


def _respond(page: ModelPage, asked: Asked) -> Answer:
    return Answer(200, page.respond(asked), page.content_type)


def _applies(page: ModelPage, head: Head) -> bool:
    return page.applies(head.headers, head.query)
