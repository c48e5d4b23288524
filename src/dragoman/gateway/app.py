"""The front door: who may ask, which endpoint serves a path, and errors in the client's form."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TypeAlias
from urllib.parse import unquote

import msgspec

from dragoman.client.offload import LARGE, run_sized
from dragoman.errors import DragomanError, WireError, failure_kind
from dragoman.events import Deviation, Failure
from dragoman.gateway.accounting import Ledger
from dragoman.gateway.auth import Guard, nobodys_owner
from dragoman.gateway.endpoint import Call, Endpoint, Refused
from dragoman.gateway.hosted_paths import HostedPaths
from dragoman.gateway.messages import Answer, Head, Limits, ResponseWriter
from dragoman.gateway.model_names import ModelNames, UnknownModel
from dragoman.gateway.pages.health import HEALTH, PATHS, Operations
from dragoman.gateway.pages.models_and_tokens import Asked, Page, pages_of
from dragoman.gateway.relay import Relay, refusal
from dragoman.gateway.request_bodies import check_shape, unpacked, whole_characters
from dragoman.gateway.server.client_addresses import ClientAddresses
from dragoman.gateway.telemetry.record import Observer, Record
from dragoman.protocol import Protocol
from dragoman.protocols import PROTOCOLS
from dragoman.protocols.recognize import protocol_of_client
from dragoman.types import ProtocolName

#: Who answers a path: a protocol through the relay, a page at once, an endpoint when it is ready.
Handler: TypeAlias = Protocol | Page | Endpoint

#: OpenAI's word for a path that is not served: without it, its form would say that the model is not found.
_NO_SUCH_PATH = "unknown_url"
_WRONG_METHOD = 405
#: What `{model}` in a pattern stands for.
_ANY_TEXT = "(.+)"


class App:
    """The gateway as an `Application`."""

    __slots__ = (
        "_addresses", "_exact", "_guard", "_hosted", "_ledger", "_limits", "_names", "_observer", "_operations",
        "_patterns", "_relay", "_since",
    )  # fmt: skip

    def __init__(
        self,
        *,
        protocols: Iterable[ProtocolName],
        names: ModelNames,
        relay: Relay,
        guard: Guard,
        addresses: ClientAddresses,
        limits: Limits,
        observer: Observer,
        operations: Operations,
        endpoints: Iterable[Endpoint] = (),
        ledger: Ledger | None = None,
    ) -> None:
        """Create it. `endpoints` take precedence over the protocols' own routes. `ledger`: records what is sent."""
        self._ledger = ledger
        self._names = names
        self._relay = relay
        self._guard = guard
        self._addresses = addresses
        self._limits = limits
        self._observer = observer
        self._operations = operations
        self._since = int(time.time())
        self._exact: dict[str, list[tuple[tuple[str, ...], Handler]]] = {}
        self._patterns: list[tuple[re.Pattern[str], tuple[str, ...], Handler]] = []
        served = tuple(protocols)
        self._hosted = HostedPaths(path for name in served for path in PROTOCOLS[name].hosted_paths)
        for endpoint in endpoints:
            if endpoint.protocol in served:
                self._add(endpoint.methods, endpoint.pattern, endpoint)
        for name in served:
            for method, pattern in PROTOCOLS[name].routes:
                self._add((method,), pattern, PROTOCOLS[name])
        for page in pages_of(served):
            self._add(page.methods, page.pattern, page)

    def routes(self) -> Iterator[tuple[str, str]]:
        """Yield every method and path that is served; `{model}` stands for a client's text."""
        for path, handlers in self._exact.items():
            yield from ((method, path) for methods, _ in handlers for method in methods)
        for pattern, methods, _ in self._patterns:
            path = re.sub(r"\\(.)", r"\1", pattern.pattern).replace("(.+)", "{model}")
            yield from ((method, path) for method in methods)
        yield from (("POST", path.pattern) for path in self._hosted)
        yield from (("GET", path) for path in sorted(PATHS))

    def _add(self, methods: tuple[str, ...], pattern: str, handler: Handler) -> None:
        if "{" not in pattern:
            self._exact.setdefault(pattern, []).append((methods, handler))
            return
        before, _, after = pattern.partition("{model}")
        self._patterns.append((re.compile(f"{re.escape(before)}{_ANY_TEXT}{re.escape(after)}"), methods, handler))

    # ------------------------------------------------------------ the three questions of the edge

    def admit(self, head: Head) -> Answer | None:
        """Check Host, Origin and key, on every method and path."""
        needs_key = head.path not in HEALTH and not self._guard.cross_origin.is_preflight(head)
        failure = self._guard.judge(head, needs_key=needs_key)
        if failure is None:
            return None
        return self._addresses.slowed(self.refuse(head, failure), head, failure)

    @property
    def is_draining(self) -> bool:
        """Whether the process ends."""
        return self._operations.is_draining

    def refuse(self, head: Head, failure: Failure) -> Answer:
        """Return a failure in the form of the protocol that is served there, else of the one that the path or the
        headers indicate. It has no record of its own.
        """
        answer = self._refusal(head, failure)
        self._observer.refused(failure, answer.status)
        return answer

    def _refusal(self, head: Head, failure: Failure) -> Answer:
        found = self._find(head)
        if isinstance(found, Failure):  # who reads there expects the same form where it does anything else
            found = self._find(msgspec.structs.replace(head, method="GET"))
        if isinstance(found, Failure):
            own = {_protocol(handler).name for _, handler in self._own(_path(head))}
            name = own.pop() if len(own) == 1 else protocol_of_client(head.path, head.headers)
        else:
            name = _protocol(found[0]).name
        answer = refusal(PROTOCOLS[name], failure)
        headers = {**answer.headers, **self._guard.cross_origin.headers(head)}
        if failure.status == _WRONG_METHOD and (taken := self._methods(_path(head))):
            headers = {**headers, "allow": ", ".join(taken)}
        return Answer(failure.status or answer.status, answer.body, answer.content_type, headers)

    async def respond(self, head: Head, body: bytes, response_writer: ResponseWriter) -> None:
        """Answer one request that was admitted."""
        guard = self._guard
        has_keys = guard.has_keys
        if guard.cross_origin.origins:
            if guard.cross_origin.is_preflight(head):
                response_writer.send(guard.cross_origin.answer(head))
                return
            response_writer.headers.update(guard.cross_origin.headers(head))
        if head.path in PATHS:
            # Where clients have keys, each sees what tells of itself; all of it is at the admin listener.
            await self._operations.respond(head, response_writer, only=guard.owner(head) if has_keys else None)
            return
        owner = guard.owner(head) if has_keys else nobodys_owner(head)
        record = self._observer.start(head, bytes_in=len(body), owner=owner)
        if has_keys:
            record.virtual_key = guard.virtual_key(head)
        if self._ledger is not None:
            record.meter = self._ledger.meter(record, has_keys=has_keys)
        if has_keys:
            head = guard.without_keys(head)
        response_writer.headers.update(record.headers)
        try:
            answering = self._respond(head, body, response_writer, record)
            del body  # the answer holds it for as long as it needs it
            await answering
        except (asyncio.CancelledError, ConnectionAbortedError):  # it is gone, or reads no more
            record.outcome = record.outcome or "cancelled"
            raise
        except Exception:
            record.refuse("internal", 500)
            raise
        finally:
            meter, record.meter = record.meter, None  # they hold each other, which the collector would have to find
            if meter is not None and meter.is_limited:
                meter.close()
            self._observer.finish(record)

    async def _respond(self, head: Head, body: bytes, response_writer: ResponseWriter, record: Record) -> None:
        found, hosted = self._find(head), None
        if isinstance(found, Failure):
            hosted = self._hosted.find(head)
            if hosted is not None:
                found = self._find(head := hosted.head(head))
            if isinstance(found, Failure):
                return self._send_refusal(self._refusal(head, found), found, response_writer, record)
        handler, name = found
        protocol = _protocol(handler)
        record.client = protocol.name
        if protocol.id_header is not None:
            response_writer.headers[protocol.id_header] = record.request_id
        try:
            if encoding := head.headers.get("content-encoding", ""):
                body = await run_sized(LARGE + 1, partial(unpacked, body, encoding, self._limits.body))
            if len(body) <= LARGE:
                body, is_light = self._checked(body, record)
            else:
                body, is_light = await run_sized(len(body), partial(self._checked, body, record))
            if hosted is not None:
                head, body = hosted.own(head, body)
            if self._ledger is not None and not isinstance(handler, Page):
                self._ledger.check()
            if isinstance(handler, Endpoint):
                await handler.serve(Call(head, body, name, handler.pattern, record.owner, response_writer, record))
                return
            if isinstance(handler, Page):
                asked = Asked(protocol.name, head, body, name, self._names, self._since, record.virtual_key)
                answer = handler.respond(asked)
                response_writer.send(answer)
                record.outcome, record.status, record.page = "done", answer.status, handler.pattern
                return
        except WireError as problem:
            failure = Failure(failure_kind(problem.status), str(problem), problem.status)
            self._send_refusal(self._refusal(head, failure), failure, response_writer, record)
            return
        except (UnknownModel, Refused) as problem:
            answer = refusal(protocol, problem.failure)
            self._send_refusal(answer, problem.failure, response_writer, record)
            if record.attempts:  # a provider was asked, and this is what it came to
                record.end(problem.failure, answer.status)
            return
        except DragomanError as problem:  # a setting or an extra is missing
            failure = Failure("bad_request", str(problem), 400)
            self._send_refusal(refusal(protocol, failure), failure, response_writer, record)
            return
        answering = self._relay.respond(protocol, head, body, response_writer, record, is_light=is_light)
        del body
        await answering

    def _checked(self, body: bytes, record: Record) -> tuple[bytes, bool]:
        """Check a body's bounds. Return it with whole characters, and whether it has few objects and lists."""
        is_light = check_shape(body, self._limits.shape)
        whole = whole_characters(body)
        if whole is not body:
            record.note([Deviation("lone-surrogate", "body")])
        return whole, is_light

    def _send_refusal(self, answer: Answer, failure: Failure, response_writer: ResponseWriter, record: Record) -> None:
        response_writer.send(answer)
        record.refuse(failure.kind, answer.status)

    def _find(self, head: Head) -> tuple[Handler, str] | Failure:
        """Return the handler of a request, and the text of `{model}` in the path."""
        path = _path(head)
        for methods, handler in self._exact.get(path, ()):
            if _takes(handler, methods, head):
                return handler, ""
        for pattern, methods, handler in self._patterns:
            found = pattern.fullmatch(path)
            if found is not None and _takes(handler, methods, head):
                if _is_open(pattern) and self._own(path):
                    continue  # X:verb or X/verb, not a model or a response of that name
                return handler, found[1]
        shown = f"{head.method} {path[:120]}"
        if taken := self._methods(path):
            words = f"{shown} is not served: expected {' or '.join(taken)}"
            return Failure("not_found", words, _WRONG_METHOD, code=_NO_SUCH_PATH)
        near = next((one for one in (f"/v1{path}", path.replace("/v1/v1/", "/v1/")) if one in self._exact), "")
        told = f"; did you mean {near}?" if near else ""
        return Failure("not_found", f"{shown} is not served{told}", 404, code=_NO_SUCH_PATH)

    def _methods(self, path: str) -> list[str]:
        """Return the methods that a path takes."""
        return sorted({method for methods, _ in self._own(path) for method in methods})

    def _own(self, path: str) -> list[tuple[tuple[str, ...], Handler]]:
        """Return who serves a path, by methods. A pattern that ends in any text stands for no path of its own."""
        return [
            *self._exact.get(path, ()),
            *((methods, handler) for pattern, methods, handler in self._patterns
              if not _is_open(pattern) and pattern.fullmatch(path)),
        ]  # fmt: skip


def _path(head: Head) -> str:
    return unquote(head.path) if "%" in head.path else head.path


def _is_open(pattern: re.Pattern[str]) -> bool:
    return pattern.pattern.endswith(_ANY_TEXT)


def _protocol(handler: Handler) -> Protocol:
    return handler if isinstance(handler, Protocol) else PROTOCOLS[handler.protocol]


def _takes(handler: Handler, methods: tuple[str, ...], head: Head) -> bool:
    return head.method in methods and (not isinstance(handler, Page) or handler.applies(head))
