"""What is known of one request: filled in on its way, told once when it is over.

Nothing here is called for a chunk. Prompts, arguments, keys and the text of errors have no place in a `Record`.
"""

from __future__ import annotations

import re
import time
from typing import Final, Literal, TypeAlias, final

import msgspec

from dragoman.events import Deviation, Event, Failure, Finish
from dragoman.gateway.http import Head
from dragoman.identifiers import new_id
from dragoman.types import Cost, Usage

#: How a request ended. `done`: the client has a whole answer; `failed`: it was told of a failure, by status or in the
#: stream; `cut`: its connection was closed within a call; `cancelled`: the client went; `refused`: nothing was asked.
Outcome: TypeAlias = Literal["done", "failed", "cut", "cancelled", "refused"]
#: How one try of one target ended.
AttemptOutcome: TypeAlias = Literal["done", "failed", "cancelled"]

#: What of a client's own request id is taken; others would put what they like into our log.
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")


@final
class Attempt(msgspec.Struct, frozen=True):
    """One try of one target. `reason`: the kind of its failure, "" without one; `status`: the provider's."""

    target: str
    outcome: AttemptOutcome
    reason: str = ""
    status: int | None = None


@final
class Record:
    """One request. Who knows something writes it into the attribute; times are `time.perf_counter()` seconds.

    Attributes:
        request_id: ours; `client_request_id`: the client's, "" without one; `provider_request_id`: the last target's.
        key: which client key, as the first 8 digits of its SHA-256; "" without client keys.
        client: the protocol that the client speaks; "" for pages of the gateway itself.
        route: the name in the configuration that answered, "*" included; "" for a target that was named itself.
        target: `provider/model`, the last one that was asked.
        attempts: what was tried, in order.
        status: of the answer's head.
        error: the kind of the failure that the client was told of, "" without one.
        usage, cost, stop: of the answer; None and "" where nobody said.
        deviations: how often each code came.
        first_event: when something of the answer came; None when nothing did.
        bytes_in, bytes_out: of the bodies, on the client's side; None when not counted.
        passed: the answer's bytes went through untouched.
        headers: go with the head of the answer.
    """

    __slots__ = (
        "attempts", "bytes_in", "bytes_out", "client", "client_request_id", "cost", "deviations", "error",
        "first_event", "headers", "key", "method", "outcome", "passed", "provider_request_id", "request_id", "route",
        "started", "status", "stop", "stream", "target", "trace_parent", "usage",
    )  # fmt: skip

    def __init__(self, head: Head, *, bytes_in: int = 0, key: str = "") -> None:
        headers = head.headers
        self.request_id = new_id()
        named = headers.get("x-client-request-id") or headers.get("x-request-id") or ""
        self.client_request_id = named if _ID.fullmatch(named) else ""
        self.provider_request_id = ""
        self.trace_parent = headers.get("traceparent", "")
        self.key = key
        self.method = head.method
        self.client = self.route = self.target = self.error = self.stop = ""
        self.attempts: list[Attempt] = []
        self.status = 0
        self.outcome: Outcome | None = None
        self.usage: Usage | None = None
        self.cost: Cost | None = None
        self.deviations: dict[str, int] = {}
        self.started = time.perf_counter()
        self.first_event: float | None = None
        self.bytes_in = bytes_in
        self.bytes_out: int | None = None
        self.stream = self.passed = False
        self.headers: dict[str, str] = {"x-request-id": self.request_id}
        if self.client_request_id:
            self.headers["x-client-request-id"] = self.client_request_id

    def attempt(self, target: str, outcome: AttemptOutcome, reason: str = "", status: int | None = None) -> None:
        """A try of a target is over."""
        self.target = target
        self.attempts.append(Attempt(target, outcome, reason, status))

    def deviate(self, target: str, deviation: Deviation) -> None:
        """Count a deviation. Has the form of `OnDeviation`."""
        self.deviations[deviation.code] = self.deviations.get(deviation.code, 0) + 1

    def begin(self) -> None:
        """Something of the answer came."""
        if self.first_event is None:
            self.first_event = time.perf_counter()

    def end(self, event: Event, status: int = 200) -> None:
        """The answer's last event; anything else there means that it was cut. `status`: of the head that was sent."""
        self.status = status
        if type(event) is Finish:
            self.outcome, self.stop, self.usage, self.cost = "done", event.reason, event.usage, event.cost
        elif type(event) is Failure:
            self.outcome, self.error, self.usage, self.cost = "failed", event.kind, event.usage, event.cost
        else:
            self.outcome = "cut"

    def refuse(self, kind: str, status: int) -> None:
        """No target was asked."""
        self.outcome, self.error, self.status = "refused", kind, status


class Observer:
    """Is told of each request when it is over."""

    __slots__ = ()

    def finish(self, record: Record) -> None:
        """The request is over, whatever became of it."""
