"""`FakeModel`: a scripted model for every client inside its `with` block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final, Self, final

import msgspec

from dragoman import _json
from dragoman.config import Config
from dragoman.errors import DragomanError, UsageError, WireError
from dragoman.events import Failure
from dragoman.http.response import Response, TransportFailed
from dragoman.http.transport import STAND_INS
from dragoman.inputs.keywords import read_word
from dragoman.protocol import UNKNOWN_MODEL
from dragoman.protocols import NAMES, PROTOCOLS
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.endpoint import Outgoing
from dragoman.recording.local_server import Served
from dragoman.routing.target import Chain, Target
from dragoman.secret import Secret
from dragoman.testing.known_response import KnownResponse
from dragoman.testing.server import serve
from dragoman.testing.turns import Turn, script_of
from dragoman.testing.wire import Played, is_embedding, play_embeddings, play_turn
from dragoman.token_estimate import estimate_tokens
from dragoman.types import DEFAULT_PROTOCOL, ProtocolName, Request, Usage

_HOST: Final = "http://fake-model.invalid"
_NO_KEY: Final = "fake"
_SHOWN: Final = 160  # characters of a request for which no turn is left
_PIECE: Final = 48  # bytes of an answer that come at once


@final
class FakeModel:
    """A model for tests. Inside its `with` block every client asks it, whatever the target; no request leaves the
    process.

    A turn is a text, `call(…)`, a list of both, `deviation("NAME")`, `cut(…)`, `error(429)`, `delay(0.1)`, or a
    function that takes the `Request` and returns one of these. Each request gets the next turn; one for which there is
    none left raises UsageError. A retry is a request too: after `cut(…)`, `error(429)` or `error(500)` it takes the
    next turn, unless the client has `retries=0`. So does the second question for an `output_type`. Embeddings take no
    turn.

    Args:
        turns: the turns in order.
        protocol: the protocol for targets whose provider is unknown; a known provider keeps its own.

    Attributes:
        requests: the requests in order, as `dragoman.Request`; the system prompt is the first message.

    Raises:
        UsageError: something is no turn.
    """

    def __init__(self, *turns: Turn, protocol: ProtocolName = DEFAULT_PROTOCOL) -> None:
        for position, turn in enumerate(turns):
            if isinstance(turn, type) or not callable(turn):
                script_of(turn, f"FakeModel: turn {position}")
        self.requests: list[Request] = []
        self._protocol: ProtocolName = read_word("protocol", protocol, tuple(PROTOCOLS))  # type: ignore[assignment]
        self._turns = list(turns)
        self._lock = threading.Lock()
        self._served: list[Served] = []

    def __enter__(self) -> Self:
        """Answer every client from now on."""
        STAND_INS.append(self)
        return self

    def __exit__(self, *problem: object) -> None:
        """Let clients ask their providers again."""
        STAND_INS.remove(self)
        for served in self._served:
            served.close()
        self._served.clear()

    def __repr__(self) -> str:
        return f"FakeModel({len(self._turns)} turns left, {len(self.requests)} requests)"

    def serve(self, port: int = 0) -> Served:
        """Start a server on this machine that answers all five protocols, for programs that do not use dragoman.

        It ends with its own `with` block, with that of the model, or with `close`.

        Args:
            port: 0 takes a free one.
        """
        served = serve(self.answer, port)
        self._served.append(served)
        return served

    def answer(self, protocol: ProtocolName, path: str, body: bytes) -> Played:
        """Return the answer to a request. Raises WireError if it is no request of the protocol."""
        if is_embedding(path):
            return play_embeddings(PROTOCOLS[protocol], path, body)
        parsed = PROTOCOLS[protocol].parse_request(body, path=path)
        request = parsed.request
        with self._lock:
            self.requests.append(request)
            if not self._turns:
                number, asked = len(self.requests), request.messages[-1].text if request.messages else ""
                raise UsageError(
                    f"FakeModel: request {number} came, and there is no turn left for it (a retry takes one too; "
                    f"retries=0 turns retries off); it ends with {asked[:_SHOWN]!r}"
                )
            turn = self._turns.pop(0)
        where = "FakeModel: what a function gave"
        script = script_of(turn(request) if callable(turn) else turn, where)
        tokens = sum(len(_json.encode(part)) for part in script.parts) // 4 + 1
        usage = Usage(estimate_tokens(request), tokens)
        return play_turn(PROTOCOLS[protocol], parsed, script, usage)

    # ------------------------------------------------------------ in place of providers

    def chain(
        self, target: str | tuple[str, ...], config: Config, resolve: Callable[[Config], Chain], retries: int
    ) -> Chain:
        """Return what answers to a name: the target itself if it is known, but here."""
        names = target if isinstance(target, tuple) else (target,)
        try:
            found = resolve(self._open_to(names, config))
        except DragomanError:
            return Chain(", ".join(names), tuple(self._target(name) for name in names), retries=retries)
        here = tuple(map(_here, found.targets))
        return msgspec.structs.replace(found, targets=here, only_validated=False, order="declared", unusable=())

    def _open_to(self, names: tuple[str, ...], config: Config) -> Config:
        """Return a configuration in which no key is missing, and in which those names have a provider."""
        known = config.catalog.providers
        wanted = {name.partition("/")[0] for name in names if "/" in name}
        added = {name: self._unknown(name) for name in wanted if name and name not in known}
        providers = known | added
        keys = {name: Secret(_NO_KEY) for name in providers}
        catalog = msgspec.structs.replace(config.catalog, providers=providers)
        return msgspec.structs.replace(config, catalog=catalog, keys=keys | config.keys, unread_keys={})

    def _unknown(self, name: str) -> Provider:
        return Provider(name=name, protocol=self._protocol, base_url="", auth="none")

    def _target(self, name: str) -> Target:
        provider, _, model = name.rpartition("/") if "/" not in name else name.partition("/")
        try:
            table = load_catalog().provider(provider)  # one whose key is missing: none is needed here
        except DragomanError:
            table = self._unknown(provider or "fake")
        return _here(Target(table, PROTOCOLS[table.protocol], model or name, table.dialect, UNKNOWN_MODEL))

    async def open(self, outgoing: Outgoing, forward: object = None) -> Response:
        """Act as a transport; nothing is forwarded. Raises TransportFailed if it is no request to a model."""
        place, _, rest = outgoing.url.removeprefix(_HOST + "/").partition("/")
        if not outgoing.url.startswith(_HOST) or place not in NAMES:
            raise TransportFailed(Failure("connection", "nothing goes out while a FakeModel answers"))
        try:
            played = self.answer(place, "/" + rest, outgoing.body)
        except WireError as problem:
            raise TransportFailed(Failure("wire", f"FakeModel: {problem}")) from None
        if played.delay:
            await asyncio.sleep(played.delay)
        cut = "the connection was cut, as the fake model was told" if played.is_cut else ""
        return KnownResponse(played.status, played.headers, played.body, piece=_PIECE, cut=cut)


def _here(target: Target) -> Target:
    """Return a target whose requests come to the fake model."""
    protocol = target.protocol
    provider = msgspec.structs.replace(
        target.provider,
        base_url=f"{_HOST}/{protocol.name}",
        also={name: f"{_HOST}/{name}" for name in target.provider.also},
        path="",
        query={},
        headers={},
        auth="none",
        placeholders={},
    )
    return msgspec.structs.replace(target, provider=provider, key=None)
