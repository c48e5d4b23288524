"""One request of the Responses protocol whose conversation, or whose answer, is stored here.

The stored conversation is put in front of its input, so that any provider can be asked. The answer is stored before its
last bytes leave, so that the next request finds it, whichever worker it reaches. Providers are asked to store nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from dragoman import _json
from dragoman._json import Json, Malformed, Raw
from dragoman.client.offload import run_sized, weight_of
from dragoman.codec.json_fields import Fields, read, read_body, read_text
from dragoman.errors import WireError
from dragoman.events import Deviation, Failure, Reply
from dragoman.gateway.endpoint import Refused
from dragoman.gateway.messages import Answer, ResponseWriter
from dragoman.gateway.server.body_memory import Charge
from dragoman.gateway.server.request_heads import BrokenRequest
from dragoman.gateway.storage.responses import LONGEST, Kept, NotKept, ResponseStore, TooLong
from dragoman.gateway.storage.sqlite import StoreFailed, StoreUnreachable
from dragoman.protocol import Encoder, NewId, Parsed, Protocol, ReplyStyle, no_glance

_LOG: Final = logging.getLogger("dragoman.gateway")
_TRUE: Final = Raw(b"true")
_FALSE: Final = Raw(b"false")
#: Names an item of an earlier answer in place of the item.
_REFERENCE: Final = "item_reference"
#: When a client may ask again, of a database that is away.
_AGAIN_SECONDS: Final = 2.0
_KEPT_STATUSES: Final = ("completed", "incomplete")
_PLAIN: Final = ReplyStyle()

_decode_items = _json.typed_decoder(list[Raw])


async def begin(responses: ResponseStore, owner: str, body: bytes, charge: Charge) -> StoredTurn | None:
    """Prepare a request. Return None if it neither continues a stored conversation nor is to be stored.

    `charge`: takes memory for the stored part that is sent.

    Raises:
        WireError: the conversation is too long, or cannot be read now.
        Refused: what it continues does not exist, or there is no memory for it now.
    """
    fields = await run_sized(weight_of(body), partial(_read, body))
    is_kept = read(fields.get("store")) is not False
    previous = _previous(fields)
    if not is_kept and previous is None and _REFERENCE.encode() not in bytes(fields.get("input", b"")):
        return None
    before: list[Raw] = []
    said = await run_sized(weight_of(body), partial(_items, fields))
    try:
        said = await _resolved(responses, owner, said)
        if previous is not None:
            before = await responses.conversation(owner, previous)
    except NotKept as problem:
        raise Refused(_missing(problem.id, is_item=problem.is_item)) from None
    except StoreUnreachable:
        raise Refused(unreachable()) from None
    except StoreFailed:
        raise WireError("stored responses cannot be read now", status=503) from None
    except TooLong:
        message = f"expected a conversation of at most {LONGEST} bytes"
        raise WireError(message, status=413, path="input" if previous is None else "previous_response_id") from None
    size = sum(memoryview(item).nbytes for item in (*before, *said))  # a copy of each would hold the loop
    try:
        charge.cover(max(size - len(body), 0))
    except BrokenRequest as problem:
        raise Refused(problem.failure) from None
    make = partial(
        StoredTurn, responses, owner, fields, said=said, before=before, is_kept=is_kept, charge=charge
    )  # fmt: skip
    return await run_sized(size + len(body), make)


def _previous(fields: Fields) -> str | None:
    """Return the id of the response that a request continues."""
    return read_text(fields.get("previous_response_id")) or None


def _missing(id: str, *, is_item: bool) -> Failure:
    """Return the failure of a request that continues what is not there, is another key's, or lost its beginning."""
    if is_item:
        return Failure("not_found", f"input: item {id[:120]!r} not found", 404, code="item_not_found")
    message = f"previous_response_id: response {id[:120]!r} not found"
    return Failure("not_found", message, 404, code="previous_response_not_found")


def unreachable() -> Failure:
    """Return the failure for a stored response that may exist where it cannot be looked for now."""
    return Failure("overloaded", "stored responses cannot be reached now", 503, _AGAIN_SECONDS, code="store_away")


def _read(body: bytes) -> Fields:
    """Return the fields of a request.

    Raises:
        WireError: the body is not a request, or wants what is not supported here.
    """
    fields = read_body(body)
    if "conversation" in fields:
        raise WireError("expected previous_response_id: conversations are not kept here", path="conversation")
    refuse_background(fields)
    return fields


def refuse_background(fields: Fields) -> None:
    """Refuse a background response: it would have to run here, and be restricted to its client.

    Raises:
        WireError: the request wants one.
    """
    if read(fields.get("background")) is True:
        raise WireError("expected no background: responses are answered at once here", path="background")


async def _resolved(responses: ResponseStore, owner: str, items: list[Raw]) -> list[Raw]:
    """Return the items, with referenced ones in place of their references."""
    names = [_named(item) for item in items]
    wanted = [name for name in names if name]
    if not wanted:
        return items
    found = await responses.items(owner, wanted)
    return [found[name] if name else item for name, item in zip(names, items, strict=True)]


def _named(item: Raw) -> str:
    if _REFERENCE.encode() not in bytes(item):
        return ""
    value = _json.decode(bytes(item))
    if not isinstance(value, dict) or value.get("type") != _REFERENCE:
        return ""
    id = value.get("id")
    return id if isinstance(id, str) else ""


def _items(fields: Fields) -> list[Raw]:
    """Return the input as a list of items; [] if there is none, or none that can be read (the parser reports it)."""
    raw = bytes(fields.get("input", b"")).strip()
    if raw[:1] == b'"':
        return [_json.raw({"type": "message", "role": "user", "content": Raw(raw)})]
    if raw[:1] == b"{":
        return [Raw(raw)]
    items = _decode_items(raw)
    return [] if isinstance(items, Malformed) else [Raw(bytes(item)) for item in items]


class StoredTurn:
    """A prepared request, and its answer as it is written. `release` it at its end."""

    __slots__ = (
        "_body", "_charge", "_echo", "_encoder", "_id", "_is_kept", "_owner", "_previous", "_responses", "_said",
        "_whole",
    )  # fmt: skip

    def __init__(
        self,
        responses: ResponseStore,
        owner: str,
        fields: Fields,
        *,
        said: list[Raw],
        before: list[Raw],
        is_kept: bool,
        charge: Charge,
    ) -> None:
        self._charge = charge
        self._responses = responses
        self._owner = owner
        self._said = tuple(said)
        self._previous = previous = _previous(fields)
        self._is_kept = is_kept
        self._id = responses.new_id()
        self._encoder: Encoder | None = None
        self._whole = b""
        echo: dict[str, Raw] = {"store": _TRUE if is_kept else _FALSE}
        if previous is not None:
            echo["previous_response_id"] = _json.raw(previous)
        self._echo = echo
        asked: dict[str, Json] = {key: value for key, value in fields.items() if key != "previous_response_id"}
        if said or before:
            asked["input"] = [*before, *said]
        self._body = _json.encode({**asked, "store": False})

    def take(self) -> bytes:
        """Return what to relay, once, so that it is not held longer than necessary."""
        body, self._body = self._body, b""
        return body

    def release(self) -> None:
        """Release the memory of the stored conversation, once the answer has begun or there is none."""
        self._charge.release()

    def over(self, protocol: Protocol) -> Protocol:
        """Return the protocol for this request: its answers have our id, and their final form is captured here."""

        def parse_request(body: bytes, *, path: str = "", fields: dict[str, Raw] | None = None) -> Parsed:
            parsed = protocol.parse_request(body, path=path, fields=fields)
            style = msgspec.structs.replace(parsed.style, id=self._id, echo={**parsed.style.echo, **self._echo})
            return msgspec.structs.replace(parsed, style=style)

        def encoder(*, new_id: NewId, model: str, created: int, style: ReplyStyle = _PLAIN) -> Encoder:
            self._encoder = protocol.encoder(new_id=new_id, model=model, created=created, style=style)
            return self._encoder

        def render_response(
            reply: Reply,
            *,
            new_id: NewId,
            model: str,
            created: int,
            style: ReplyStyle = _PLAIN,
            lost: list[Deviation] | None = None,
        ) -> bytes:
            self._whole = protocol.render_response(
                reply, new_id=new_id, model=model, created=created, style=style, lost=lost
            )
            return self._whole

        return msgspec.structs.replace(
            protocol, parse_request=parse_request, encoder=encoder, render_response=render_response, peek=no_glance
        )

    @property
    def response(self) -> bytes:
        """Return the final response object; b"" while there is none."""
        streamed: bytes = getattr(self._encoder, "response", b"")  # of this protocol's encoder alone
        return self._whole or streamed

    async def keep(self) -> bool:
        """Store the response if it is to be stored and complete. False: the store failed, and the answer says so."""
        response = self.response
        if not self._is_kept or not response:
            return True
        if not await run_sized(len(response), partial(_is_worth_keeping, response)):
            return True
        try:
            await self._responses.keep(self._owner, Kept(self._id, self._previous, self._said, response))
        except StoreFailed as problem:
            if self._responses.works:
                _LOG.warning("responses cannot be stored, and say so, until they can be again: %s", problem)
            self._responses.works = False
            return False
        if not self._responses.works:
            _LOG.warning("responses are stored again")
        self._responses.works = True
        return True


def _is_worth_keeping(response: bytes) -> bool:
    value = _json.decode(response)
    return isinstance(value, dict) and value.get("status") in _KEPT_STATUSES


def _not_stored(response: bytes) -> bytes:
    """Return the response object with `store` false."""
    fields = read_body(response)
    return _json.encode({**fields, "store": False})


class HeldResponseWriter:
    """A response writer that holds the end of an answer back until it is stored."""

    __slots__ = ("_ends", "_held", "_outlet", "_turn", "_whole", "headers")

    def __init__(self, response_writer: ResponseWriter, turn: StoredTurn) -> None:
        self.headers = response_writer.headers
        self._outlet = response_writer
        self._turn = turn
        self._held: list[bytes] = []
        self._whole: Answer | None = None
        self._ends = False

    async def settle(self) -> None:
        """Store the answer, then send its end."""
        if self._whole is None and not self._ends:
            return
        response = self._turn.response
        told = response if await self._turn.keep() else _not_stored(response)
        if self._whole is not None:
            self._outlet.send(msgspec.structs.replace(self._whole, body=self._whole.body.replace(response, told, 1)))
            return
        self._outlet.end(b"".join(self._held).replace(response, told, 1))

    def send(self, answer: Answer) -> None:
        """Send a whole response; refusals leave at once."""
        if self._turn.response:
            self._whole = answer
        else:
            self._outlet.send(answer)

    def start(self, status: int, content_type: str, first: bytes = b"") -> None:
        """As the inner writer's."""
        self._turn.release()
        if self._turn.response:
            self._outlet.start(status, content_type)
            self._held.append(first)
        else:
            self._outlet.start(status, content_type, first)

    def write(self, data: bytes) -> None:
        """As the inner writer's, but the end waits."""
        if self._turn.response:
            self._held.append(data)
        else:
            self._outlet.write(data)

    def end(self, last: bytes = b"") -> None:
        """End the body once the answer is stored."""
        self.write(last)
        self._ends = True

    def cut(self) -> None:
        """Send what is held and close the connection. A broken answer is not stored."""
        for data in self._held:
            self._outlet.write(data)
        self._held = []
        self._outlet.cut()

    @property
    def is_full(self) -> bool:
        """As the inner writer's."""
        return self._outlet.is_full

    async def drained(self) -> None:
        """As the inner writer's."""
        await self._outlet.drained()

    def when_drained(self, go_on: Callable[[], None]) -> None:
        """As the inner writer's."""
        self._outlet.when_drained(go_on)
