"""`/v1/responses`: requests whose answer is stored, and queries of stored answers.

https://platform.openai.com/docs/api-reference/responses (read 2026-11-22).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from dragoman import _json
from dragoman._json import Json, Raw
from dragoman.client.offload import run_sized, weight_of
from dragoman.codec.json_fields import read_body
from dragoman.errors import WireError
from dragoman.gateway.endpoint import Call, Endpoint, Refused
from dragoman.gateway.messages import Answer, query_values
from dragoman.gateway.pages.stored_turn import HeldResponseWriter, begin, refuse_background, unreachable
from dragoman.gateway.relay import Relay
from dragoman.gateway.server.body_memory import BodyMemory, Charge
from dragoman.gateway.storage.responses import NotKept, ResponseStore, TooLong
from dragoman.gateway.storage.sqlite import StoreFailed, StoreUnreachable
from dragoman.protocol import Protocol
from dragoman.protocols import PROTOCOLS
from dragoman.token_estimate import estimate_tokens
from dragoman.types import ProtocolName

_NAME: Final[ProtocolName] = "openai-responses"
_PATH: Final = "/v1/responses"
_PAGE: Final = 20
_LONGEST_PAGE: Final = 100
_PREFIXES: Final = {"message": "msg", "function_call": "fc", "reasoning": "rs"}


class ResponsePages:
    """The endpoints of one gateway."""

    __slots__ = ("_memory", "_protocol", "_relay", "_responses")

    def __init__(self, relay: Relay, responses: ResponseStore | None, memory: BodyMemory) -> None:
        """Create it.

        Args:
            responses: None: nothing is stored, so only the protocol's own route is served.
            memory: of all current requests; the stored conversation of a short request may be long.
        """
        self._memory = memory
        self._relay = relay
        self._responses = responses
        self._protocol: Protocol = PROTOCOLS[_NAME]

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return all paths, the more specific ones first."""
        if self._responses is None:
            return (Endpoint(_NAME, ("POST",), _PATH, self._pass_on),)
        one = f"{_PATH}/{{model}}"
        return (
            Endpoint(_NAME, ("POST",), _PATH, self._turn),
            Endpoint(_NAME, ("POST",), f"{_PATH}/input_tokens", self._count),
            Endpoint(_NAME, ("GET",), f"{one}/input_items", _looking(self._input_items)),
            Endpoint(_NAME, ("POST",), f"{one}/cancel", _looking(self._cancel)),
            Endpoint(_NAME, ("GET",), one, _looking(self._get)),
            Endpoint(_NAME, ("DELETE",), one, _looking(self._delete)),
        )

    async def _pass_on(self, call: Call) -> None:
        """Serve a request of a gateway that stores nothing.

        Its providers store nothing either: any client of the gateway could ask for what they stored.
        """
        body = await run_sized(weight_of(call.body), partial(_not_kept, call.body))
        await self._relay.respond(self._protocol, call.head, body, call.response_writer, call.record)

    async def _turn(self, call: Call) -> None:
        turn = await begin(self._kept(), call.owner, call.body, Charge(self._memory, len(call.body)))
        if turn is None:
            await self._relay.respond(self._protocol, call.head, call.body, call.response_writer, call.record)
            return
        response_writer = HeldResponseWriter(call.response_writer, turn)
        try:
            await self._relay.respond(turn.over(self._protocol), call.head, turn.take(), response_writer, call.record)
            await response_writer.settle()
        finally:
            turn.release()

    def _kept(self) -> ResponseStore:
        assert self._responses is not None
        return self._responses

    async def _count(self, call: Call) -> None:
        turn = await begin(self._kept(), call.owner, call.body, Charge(self._memory, len(call.body)))
        body = call.body if turn is None else turn.take()
        try:
            tokens = await run_sized(len(body), lambda: estimate_tokens(self._protocol.parse_request(body).request))
        finally:
            if turn is not None:
                turn.release()
        call.answer(_json_answer({"object": "response.input_tokens", "input_tokens": tokens}))

    async def _get(self, call: Call) -> Answer:
        return Answer(200, (await self._kept().find(call.owner, call.name)).response)

    async def _delete(self, call: Call) -> Answer:
        await self._kept().delete(call.owner, call.name)
        return _json_answer({"id": call.name, "object": "response", "deleted": True})

    async def _cancel(self, call: Call) -> Answer:
        await self._kept().find(call.owner, call.name)
        raise WireError("only a background response can be cancelled, and this one is over")

    async def _input_items(self, call: Call) -> Answer:
        items = await self._kept().conversation(call.owner, call.name, with_answer=False)
        return await run_sized(sum(memoryview(item).nbytes for item in items), lambda: _page(items, call.head.query))


def _not_kept(body: bytes) -> bytes:
    """Return a request that neither continues a stored conversation nor is stored. Raises `WireError`: it wants to."""
    fields = read_body(body)
    for name in ("previous_response_id", "conversation"):
        if name in fields:
            raise WireError("responses are not stored here: send the whole conversation", path=name)
    refuse_background(fields)
    return _json.encode({**fields, "store": False})


def _page(items: list[Raw], query: str) -> Answer:
    """Return the part of a list that a query asks for.

    Raises:
        WireError: it names no item of the list, or no valid page size.
    """
    data = [_listed(raw, number) for number, raw in enumerate(items)]
    asked = {name: next(iter(query_values(query, name)), "") for name in ("order", "after", "limit")}
    if asked["order"] != "asc":
        data.reverse()
    if after := asked["after"]:
        place = next((number for number, item in enumerate(data) if item["id"] == after), None)
        if place is None:
            raise WireError("expected the id of an item of this list", path="after")
        data = data[place + 1 :]
    size = _page_size(asked["limit"] or str(_PAGE))
    page = data[:size]
    ids = [item["id"] for item in page] or [None]
    listed = {"object": "list", "data": page, "first_id": ids[0], "last_id": ids[-1]}
    return _json_answer({**listed, "has_more": len(data) > size})


def _looking(ask: Callable[[Call], Awaitable[Answer]]) -> Callable[[Call], Awaitable[None]]:
    """Return an endpoint that looks something up. What belongs to another key does not exist."""

    async def serve(call: Call) -> None:
        try:
            answer = await ask(call)
        except NotKept as problem:
            raise WireError(f"response {problem.id[:120]!r} not found", status=404) from None
        except StoreUnreachable:
            raise Refused(unreachable()) from None
        except StoreFailed:
            raise WireError("stored responses cannot be read now", status=503) from None
        except TooLong:
            raise WireError("the conversation is too long to be listed", status=413) from None
        call.answer(answer)

    return serve


def _page_size(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not 1 <= int(text) <= _LONGEST_PAGE:
        raise WireError(f"expected a number from 1 to {_LONGEST_PAGE}", path="limit")
    return int(text)


def _listed(raw: Raw, number: int) -> dict[str, Json]:
    """Return an item as lists show it: with a type, an id and its text as a part."""
    value = _json.decode(bytes(raw))
    item: dict[str, Json] = dict(value) if isinstance(value, dict) else {"content": value, "role": "user"}
    kind = item.setdefault("type", "message")
    item.setdefault("id", f"{_PREFIXES.get(str(kind), 'item')}_{number:024d}")
    content = item.get("content")
    if kind == "message" and isinstance(content, str):
        part = "output_text" if item.get("role") == "assistant" else "input_text"
        item["content"] = [{"type": part, "text": content}]
        item.setdefault("status", "completed")
    return item


def _json_answer(value: Json) -> Answer:
    return Answer(200, _json.encode(value))
