"""`provider/model` → all that is needed to ask it."""

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

    `dialect` is the provider's, with the model's own differences over it. `policy` is how answers are treated, from
    the route, the provider's table and the model's. `options`: parameters, by their names in `Params`, where a request
    names none of its own.
    `tools`: the way to ask for them; `tools_required` False: rather no tools than no answer; `refuses_tools`: they
    are known to be refused natively. `thinking`: what of the thinking of earlier answers it gets. `client_login`: a
    client of its protocol may bring its own login in place of `key`. `tool_policy`: what becomes of tools that it does
    not know. `digest` names the weights, where the server has told; a proof of other weights does not count. `bounds`:
    of its answers. `name` (`provider/model`) and `keeps_bytes` follow from the others: nothing of a request in its
    protocol, or of an answer, need be changed.
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
        """What is sent to this provider and is nobody else's business: its key, and what its table adds to requests."""
        key = () if self.key is None else (self.key.reveal(),)
        return (*key, *self.provider.headers.values(), *self.provider.query.values())


@final
class Chain(msgspec.Struct, frozen=True):
    """What answers to a name: a target, or a route's targets in the order that its configuration has.

    `unusable`: targets of the route that cannot be asked, each with the reason. `retries`: how often one target is
    asked again at most.
    """

    name: str
    targets: tuple[Target, ...]
    unusable: tuple[tuple[str, str], ...] = ()
    order: Order = "declared"
    only_validated: bool = False
    allow_one_unvalidated: bool = False
    retries: int = 0
