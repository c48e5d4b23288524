"""Send the questions of an examination: paced, within the budget, repeated if the fault is not the model's."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Final

import msgspec

from dragoman.events import Failure
from dragoman.routing.target import Target
from dragoman.token_estimate import estimate_tokens
from dragoman.types import Cost, Request, Usage
from dragoman.validate.ask import Asked, Asker
from dragoman.validate.limits import Budget, Pace
from dragoman.validate.probe import Turn

_MORE_ROOM: Final = 8  # times as many tokens for a model that was cut while it was thinking
_MOST_WAITING: Final = 3  # times that a busy provider is waited for
_LONGEST_WAIT: Final = 90.0  # seconds
_USUAL_WAIT: Final = 5.0  # seconds, where the provider names none


class Sender:
    """Sends the requests to one target, and counts them.

    Attributes:
        requests: how many were sent.
        takes_temperature: False once the target has refused one.
    """

    __slots__ = ("_asker", "_budget", "_costs", "_is_cost_known", "_pace", "requests", "takes_temperature")

    def __init__(self, asker: Asker, budget: Budget, pace: Pace) -> None:
        self._asker = asker
        self._budget = budget
        self._pace = pace
        self._costs: list[Cost] = []
        self._is_cost_known = True
        self.requests = 0
        self.takes_temperature = True

    @property
    def cost(self) -> Cost | None:
        """The cost of all requests, or None if it is unknown."""
        if not self._costs or not self._is_cost_known:
            return None
        return Cost(sum((cost.usd for cost in self._costs), Decimal(0)), self._costs[-1].source)

    async def ask(self, target: Target, request: Request, turn: Turn) -> Asked:
        """Return one answer. Wait for a busy provider, leave out a refused temperature, give cut thinking more room.

        Raises:
            CapReached: it might have cost more than is left.
            DragomanError: it cannot be sent at all.
        """
        answer = await self._paced(target, request, turn)
        for _ in range(_MOST_WAITING):
            failure = answer.reply.error
            if not isinstance(failure, Failure) or failure.kind not in ("rate", "overloaded"):
                break
            await asyncio.sleep(min(failure.retry_after or _USUAL_WAIT, _LONGEST_WAIT))
            answer = await self._paced(target, request, turn)
        params = request.params
        if params.temperature is not None and _refuses_temperature(answer.reply.error):
            self.takes_temperature = False
            params = msgspec.structs.replace(params, temperature=None)
            answer = await self._paced(target, msgspec.structs.replace(request, params=params), turn)
        thought = answer.reply.thinking or answer.reply.usage.reasoning
        if answer.reply.stop_reason == "length" and turn.expect.stop != "length" and thought and params.max_tokens:
            params = msgspec.structs.replace(params, max_tokens=params.max_tokens * _MORE_ROOM)
            answer = await self._paced(target, msgspec.structs.replace(request, params=params), turn)
        return answer

    async def _paced(self, target: Target, request: Request, turn: Turn) -> Asked:
        price = self._price(target, request)
        with self._budget.hold(price):
            async with self._pace.turn(target.provider.name, local=target.provider.local):
                answer = await self._asker.ask(target, request, abort_after=turn.abort_after)
            self.requests += 1
            cost = answer.reply.cost
            if cost is None and price is not None and not isinstance(answer.reply.error, Failure):
                cost = Cost(price, "catalogue")  # it told no tokens: the most that it can have cost
            if cost is not None:
                self._budget.spend(cost.usd)
                self._costs.append(cost)
            elif not isinstance(answer.reply.error, Failure):
                self._is_cost_known = False
        return answer

    def _price(self, target: Target, request: Request) -> Decimal | None:
        """Return what a request may cost at most, or None."""
        usage = Usage(input=estimate_tokens(request), output=request.params.max_tokens)
        cost = self._asker.price(target.name, usage)
        return cost.usd if cost is not None else None


def _refuses_temperature(error: object) -> bool:
    """Return whether the error refuses a temperature. Some thinking models accept only their own."""
    return isinstance(error, Failure) and error.kind == "bad_request" and "temperature" in error.message.lower()
