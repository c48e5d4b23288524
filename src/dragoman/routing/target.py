"""The target of a request: everything that is needed to ask `provider/model`."""

from __future__ import annotations

from typing import Any, Final, final

import msgspec

from dragoman.bounds import USUAL_BOUNDS, AnswerBounds
from dragoman.config import Order, ToolsMode
from dragoman.history import ThinkingPolicy
from dragoman.offering import Policies
from dragoman.protocol import Dialect, ModelLimits, Protocol
from dragoman.providers.catalog import Provider
from dragoman.response_stages import Policy
from dragoman.secret import Secret

#: Options that are the client's to ask for.
_THE_CLIENTS: Final = frozenset({"cache"})


@final
class Target(msgspec.Struct, frozen=True):
    """A provider, a model and a key.

    Attributes:
        dialect: the provider's, overridden by the model's own differences.
        policy: how answers are treated, from the route, the provider's table and the model's.
        options: parameters, by their names in `Params`, used where a request sets none of its own.
        tools: how tools are requested.
        tools_required: False: an answer without tools is better than none.
        refuses_tools: the target is known to refuse native tools.
        thinking: which thinking of earlier answers it gets.
        client_login: a client of its protocol may use its own login in place of `key`.
        tool_policy: what happens to tools that it does not support.
        digest: identifies the weights, if the server reports it; a proof of other weights does not count.
        bounds: of its answers.
        name: `provider/model`.
        keeps_bytes: requests and answers in its protocol need no change.
    """

    provider: Provider
    protocol: Protocol
    model: str
    dialect: Dialect
    limits: ModelLimits
    key: Secret | None = None
    policy: Policy = Policy()
    options: dict[str, Any] = {}
    tools: ToolsMode = "native"
    tools_required: bool = True
    refuses_tools: bool = False
    thinking: ThinkingPolicy = "same"
    client_login: bool = False
    tool_policy: Policies = {}
    digest: str | None = None
    bounds: AnswerBounds = USUAL_BOUNDS
    name: str = ""
    keeps_bytes: bool = False

    def __post_init__(self) -> None:
        keeps = (
            self.tools in ("native", "auto")
            and not self.refuses_tools
            and not self.policy.strict
            and not self.tool_policy
            and self.policy.arguments != "whole"
            and self.options.keys() <= _THE_CLIENTS
        )
        msgspec.structs.force_setattr(self, "name", f"{self.provider.name}/{self.model}")
        msgspec.structs.force_setattr(self, "keeps_bytes", keeps)

    def secrets(self) -> tuple[str, ...]:
        """Return the values that only this provider may see: its key, and secrets that its table adds to requests."""
        key = () if self.key is None else (self.key.reveal(),)
        return (*key, *self.provider.headers.values(), *self.provider.query.values())


@final
class Chain(msgspec.Struct, frozen=True):
    """The targets that answer to a name: one, or a route's in the configured order.

    Attributes:
        unusable: targets of the route that cannot be asked, each with the reason.
        retries: the most retries of one target.
    """

    name: str
    targets: tuple[Target, ...]
    unusable: tuple[tuple[str, str], ...] = ()
    order: Order = "declared"
    only_validated: bool = False
    allow_one_unvalidated: bool = False
    retries: int = 0
