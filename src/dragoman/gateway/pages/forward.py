"""Forward requests to a provider as they are: what only its own protocol can express, and what is no chat request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeAlias, TypeVar

import msgspec

from dragoman._json import Malformed
from dragoman.client.failure_words import explained
from dragoman.client.offload import run_sized, weight_of
from dragoman.client.requester import Requester
from dragoman.client.target_state import LOG
from dragoman.codec.embeddings import too_large
from dragoman.codec.json_fields import no_object
from dragoman.codec.splicing import splice
from dragoman.errors import WireError
from dragoman.events import Event, Failure, Finish, UsageUpdate
from dragoman.gateway.endpoint import Call, Refused
from dragoman.gateway.model_names import ModelNames
from dragoman.gateway.relay import check_permission, note_attempts
from dragoman.gathered import Gathered
from dragoman.http.transport import Response, TransportFailed
from dragoman.ids import new_id
from dragoman.pipe import Reader
from dragoman.protocol import HttpRequest
from dragoman.protocols import PROTOCOLS
from dragoman.providers.catalog import Provider
from dragoman.routing.attempts import Attempts
from dragoman.routing.metering import Meter
from dragoman.routing.target import Chain, Target
from dragoman.types import ProtocolName, Usage

#: Seconds without a byte of it.
_SILENCE: Final = 120.0

T = TypeVar("T")
#: The request for a target, in its protocol and with its name of the model.
MakeRequest: TypeAlias = Callable[[Target], HttpRequest]
#: What an answer's body says, and what it took. Raises `WireError` or `Refused`: it is no such answer.
Read: TypeAlias = Callable[[Target, bytes], tuple[T, Usage]]


class Forwarder:
    """Sends requests to providers. Of answers that pass, the usage alone is read."""

    __slots__ = ("_client", "_names")

    def __init__(self, client: Requester, names: ModelNames) -> None:
        self._client = client
        self._names = names

    def find(self, name: str, protocols: Iterable[ProtocolName], call: Call) -> Chain | None:
        """Return the targets behind a name whose providers speak one of the protocols, in that protocol, or None.

        Raises:
            UnknownModel: nothing answers to the name.
        """
        check_permission(call.record, name)
        found = []
        route, chain = self._names.answering(name)
        for target in chain.targets:
            for protocol in (target.provider.protocol, *target.provider.also):
                if protocol in protocols:
                    found.append(_speaking(target, target.provider.speaking(protocol)))
                    break
        if not found:
            return None
        call.record.route, call.record.target = route, found[0].name
        return Chain(name, tuple(found))

    async def whole(self, call: Call, chain: Chain, make: MakeRequest, read: Read[T], most: int) -> T:
        """Return what `read` makes of an answer's body, of at most so many bytes.

        Raises:
            Refused: there is none, it reports a failure, or `read` does not take it.
        """

        async def ask(target: Target) -> tuple[T, Usage]:
            http = await run_sized(weight_of(call.body), partial(make, target))
            response = await self._open(target, http, call.record.meter)
            try:
                body = await self._read(response, most)
            finally:
                response.close()
            try:
                return await run_sized(len(body), partial(read, target, body))
            except WireError as problem:
                raise Refused(Failure("wire", str(problem))) from None

        async with self._course(call, chain) as course:
            found, usage = await _along(course, ask)
            course.ended(Finish("stop", usage=usage), _now())
            return found

    async def pass_on(self, call: Call, chain: Chain, make: MakeRequest) -> None:
        """Send an answer to the client while it comes, byte for byte.

        Raises:
            Refused: there is none, or it reports a failure.
        """
        response_writer, record, meter = call.response_writer, call.record, call.record.meter

        async def ask(target: Target) -> Response:
            return await self._open(target, await run_sized(weight_of(call.body), partial(make, target)), meter)

        async with self._course(call, chain) as course:
            response = await _along(course, ask)
            target, told = course.target, Finish("stop")
            reader = Reader(target.protocol.decoder(new_id=new_id, dialect=target.dialect, bounds=target.bounds))
            record.passed, record.status = True, 200
            try:
                response_writer.start(200, response.headers.get("content-type", "application/json"))
                while data := await _next(response):
                    response_writer.write(data)
                    if meter is not None:
                        meter.grown += len(data)
                        told = _counted(told, reader.feed(data))
                        meter.usage = told.usage
                    if response_writer.is_full:
                        await response_writer.drained()
                if meter is not None:
                    told = _counted(told, await run_sized(meter.grown, reader.close))
                response_writer.end()
                record.outcome = "done"
                course.ended(told, _now())
            except TransportFailed as problem:
                course.ended(problem.failure, _now())
                record.outcome, record.error = "cut", problem.failure.kind
                response_writer.cut()
            finally:
                response.close()

    @asynccontextmanager
    async def _course(self, call: Call, chain: Chain) -> AsyncIterator[Attempts]:
        """Yield the attempts along the targets, as for a chat request, but without retries."""
        health_table = self._client.target_states.health_table
        course = Attempts(chain, health_table, log=LOG.info, meter=call.record.meter)
        course.begin(_now())
        try:
            yield course
        finally:
            course.abandoned(_now())
            note_attempts(course.attempts, call.record)

    async def _open(self, target: Target, http: HttpRequest, meter: Meter | None) -> Response:
        try:
            response = await self._client.send(target, http, None if meter is None else meter.send)
        except TransportFailed as problem:
            raise Refused(problem.failure) from None
        if meter is not None:
            meter.headers = response.headers
        if 200 <= response.status < 300:
            return response
        try:
            body = await self._read(response, target.bounds.embeddings)
        finally:
            response.close()
        failure = target.protocol.parse_error(response.status, body, headers=response.headers)
        told = explained(failure, target, target.provider.base_url.rstrip("/") + http.path)  # without a key it quotes
        raise Refused(msgspec.structs.replace(told, code=None))

    async def _read(self, response: Response, most: int) -> bytes:
        kept = Gathered()
        try:
            while data := await _next(response):
                kept.add(data)
                if kept.size > most:
                    raise Refused(too_large(most, kept.size))
        except TransportFailed as problem:
            raise Refused(problem.failure) from None
        return kept.take()


async def _along(course: Attempts, ask: Callable[[Target], Awaitable[T]]) -> T:
    """Return the result of the first target that does not fail.

    Raises:
        Refused: the last one failed, or no other one would help.
    """
    while True:
        course.sent(_now())
        try:
            return await ask(course.target)
        except Refused as problem:
            if course.failed(problem.failure, now=_now(), random=0.0, most_wait=0.0) is None:
                raise


def _counted(told: Finish, events: Iterable[Event]) -> Finish:
    """Return the end of an answer with what these events say of its usage and cost."""
    for event in events:
        if isinstance(event, UsageUpdate | Finish | Failure):
            told = Finish("stop", usage=told.usage.merged(event.usage), cost=event.cost or told.cost)
    return told


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _next(response: Response) -> bytes:
    try:
        async with asyncio.timeout(_SILENCE):
            return await response.read()
    except TimeoutError:
        raise TransportFailed(Failure("timeout", f"nothing came for {_SILENCE:g} seconds")) from None


def _speaking(target: Target, provider: Provider) -> Target:
    if provider is target.provider:
        return target
    return msgspec.structs.replace(target, provider=provider, protocol=PROTOCOLS[provider.protocol])


def with_model(body: bytes, model: str) -> bytes:
    """Return a body with another model's name, otherwise unchanged. Raises `WireError`: it is no JSON object."""
    changed = splice(body, {"model": model})
    if isinstance(changed, Malformed):
        raise no_object(body, changed)
    return changed
