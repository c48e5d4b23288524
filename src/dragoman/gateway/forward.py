"""Requests that go to a provider as they are: what only its own protocol can say, and what is no turn of a model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec

from dragoman import _json
from dragoman._json import Malformed
from dragoman.client import AsyncClient
from dragoman.client.target import Target
from dragoman.client.transport import Response, TransportFailed
from dragoman.contract import HttpRequest
from dragoman.errors import WireError
from dragoman.events import Failure
from dragoman.gateway.endpoint import Call, Refused
from dragoman.gateway.names import Names
from dragoman.protocols import PROTOCOLS
from dragoman.providers import Provider
from dragoman.secret import masked
from dragoman.types import ProtocolName

#: Bytes of an answer that is read whole.
_LARGEST: Final = 64 * 1024 * 1024
#: Seconds without a byte of it.
_SILENCE: Final = 120.0


class Forwarder:
    """Asks providers past the events."""

    __slots__ = ("_client", "_names")

    def __init__(self, client: AsyncClient, names: Names) -> None:
        self._client = client
        self._names = names

    def find(self, name: str, protocols: Iterable[ProtocolName], call: Call) -> Target | None:
        """The first target behind a name whose provider speaks one of the protocols, in that protocol; None when none
        does.

        Raises:
            UnknownModel: nothing answers to the name.
        """
        for target in self._names.chain(name).targets:
            for protocol in (target.provider.protocol, *target.provider.also):
                if protocol in protocols:
                    call.record.route, call.record.target = self._names.route(name), target.name
                    return _speaking(target, target.provider.speaking(protocol))
        return None

    async def whole(self, call: Call, target: Target, http: HttpRequest) -> bytes:
        """The body of a target's answer.

        Raises:
            Refused: there is none, or it says that the request failed.
        """
        try:
            response = await self._open(target, http)
            try:
                body = await self._read(response)
            finally:
                response.close()
        except Refused as problem:
            call.record.attempt(target.name, "failed", problem.failure.kind, problem.failure.status)
            raise
        call.record.attempt(target.name, "done", status=response.status)
        return body

    async def pass_on(self, call: Call, target: Target, http: HttpRequest) -> None:
        """Send a target's answer to the client while it comes, byte for byte."""
        outlet, record = call.outlet, call.record
        try:
            response = await self._open(target, http)
        except Refused as problem:
            record.attempt(target.name, "failed", problem.failure.kind, problem.failure.status)
            raise
        record.passed = True
        try:
            outlet.start(200, response.headers.get("content-type", "application/json"))
            record.status = 200
            try:
                while data := await _next(response):
                    outlet.write(data)
                    if outlet.is_full:
                        await outlet.drained()
            except TransportFailed as problem:
                record.outcome, record.error = "cut", problem.failure.kind
                record.attempt(target.name, "failed", problem.failure.kind)
                outlet.cut()
                return
            outlet.end()
            record.outcome = "done"
            record.attempt(target.name, "done", status=response.status)
        finally:
            response.close()

    async def _open(self, target: Target, http: HttpRequest) -> Response:
        try:
            response = await self._client.send(target, http)
        except TransportFailed as problem:
            raise Refused(problem.failure) from None
        if 200 <= response.status < 300:
            return response
        try:
            body = await self._read(response)
        finally:
            response.close()
        failure = target.protocol.parse_error(response.status, body, headers=response.headers)
        # Some quote the key that they refuse.
        raise Refused(msgspec.structs.replace(failure, message=masked(failure.message, target.secrets()), code=None))

    async def _read(self, response: Response) -> bytes:
        pieces: list[bytes] = []
        size = 0
        try:
            while data := await _next(response):
                pieces.append(data)
                size += len(data)
                if size > _LARGEST:
                    raise Refused(Failure("too_large", f"expected an answer of at most {_LARGEST} bytes", 502))
        except TransportFailed as problem:
            raise Refused(problem.failure) from None
        return b"".join(pieces)


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
    """A body that asks for another model, all else as it is.

    Raises:
        WireError: it is no JSON object.
    """
    changed = _json.splice(body, {"model": model})
    if isinstance(changed, Malformed):
        raise WireError(f"expected a JSON object: {changed.problem}")
    return changed
