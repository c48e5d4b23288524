"""One client's knowledge of its targets: proofs, prices, health, observed facts; and the order that follows."""

from __future__ import annotations

import logging
import time
from decimal import Decimal
from typing import Final, TypeVar

import msgspec

from dragoman.client.passthrough.exchange import RawRequest
from dragoman.config import Config, ToolsMode
from dragoman.errors import ConfigError
from dragoman.events import Deviation
from dragoman.proofs import Proof, ProofStore, is_clean, is_of_the_wire, proof_of
from dragoman.providers.catalog import Model
from dragoman.routing.prices import Prices
from dragoman.routing.target import Chain, Target
from dragoman.routing.target_health import HealthTable
from dragoman.routing.target_order import Facts, line_up
from dragoman.types import Usage

T = TypeVar("T")
LOG: Final = logging.getLogger("dragoman.routing")
#: Names of targets that are remembered of a kind; a client of a gateway may make names up.
_KEPT: Final = 1_024
#: A usual request, to compare prices by.
_USUAL: Final = Usage(input=3_000, output=500)


class TargetStates:
    """The states of one client's targets.

    Attributes:
        prices: what answers cost.
        proofs: validation results.
        health_table: circuit breakers and retry budgets.
    """

    __slots__ = ("_config", "_deviating", "_refusing", "_said_clean", "prices", "proofs", "health_table")

    def __init__(self, config: Config) -> None:
        self._refusing: dict[str, None] = {}  # targets that have refused tools
        self._deviating: dict[str, None] = {}  # targets whose wire has broken its protocol
        self.health_table: HealthTable = HealthTable()
        self.take(config)

    def take(self, config: Config) -> None:
        """Use another configuration from now on. What targets have shown stays."""
        self._config = config
        self._said_clean: dict[str, bool | None] = {}
        self.prices: Prices = Prices(config)
        validate = config.validate
        self.proofs: ProofStore = ProofStore(
            validate.store, clock=time.time, expires_days=validate.expires_days, say=LOG.info
        )

    # ------------------------------------------------------------ which targets

    def line_up(self, chain: Chain) -> tuple[Chain, tuple[Deviation, ...]]:
        """Return the chain in the order in which it is asked, and notes for the caller.

        Raises:
            ConfigError: none of its targets may be asked.
        """
        if not chain.only_validated and (chain.order == "declared" or len(chain.targets) == 1):
            return chain, ()
        lineup = line_up(chain, {target.name: self._facts(target) for target in chain.targets})
        if not lineup.chain.targets:
            names = " ".join(name for name, _ in lineup.passed_over)
            raise ConfigError(f"route {chain.name}: none of its targets is validated; say: dragoman validate {names}")
        ready = msgspec.structs.replace(lineup.chain, unusable=(*lineup.chain.unusable, *lineup.passed_over))
        for name, reason in lineup.passed_over:
            LOG.info("%s: %s: passed over: %s", chain.name, name, reason)
        if not lineup.is_unproven:
            return ready, ()
        LOG.info("%s: no target is validated: asked all the same", chain.name)
        return ready, (Deviation("unvalidated", f"routes.{chain.name}", "no target of it is validated"),)

    def _facts(self, target: Target) -> Facts:
        cost = self.prices.cost(target.name, _USUAL)
        price = cost.usd if cost is not None else Decimal(0) if target.provider.local else None
        return Facts(self.proof(target), price)

    # ------------------------------------------------------------ how they are asked

    def in_proven_way(self, target: Target) -> Target:
        """Return the target with the way of requesting tools that is known to work, if any way is allowed."""
        if target.tools == "auto":
            proof = self.proof(target)
            if proof is not None and proof.ways:
                way = proof.ways[0]
                # "auto" begins with the native way, and still finds another should that be refused one day.
                mode: ToolsMode = "auto" if way == "native" else way
                return msgspec.structs.replace(target, tools=mode, refuses_tools=False)
        if target.name in self._refusing:
            return msgspec.structs.replace(target, refuses_tools=True)
        return target

    def is_clean(self, target: Target) -> bool:
        """Return whether the target's bytes may pass unchanged.

        The configuration says so, or validation has shown it, and no answer has shown otherwise since.
        """
        if target.name in self._deviating:
            return False
        try:
            said = self._said_clean[target.name]
        except KeyError:
            said = self._configured_clean(target)
            _remember(self._said_clean, target.name, said)
        return is_clean(self.proof(target)) if said is None else said

    def _configured_clean(self, target: Target) -> bool | None:
        """Return what the configuration says of that, or None."""
        model, provider = self._config.model(target.name), self._config.providers.get(target.provider.name)
        if model is not None and model.clean is not None:
            return model.clean
        return None if provider is None else provider.clean

    def passes(self, target: Target, original: RawRequest) -> bool:
        """Return whether a request's bytes may go to this target unchanged, and its answer's back."""
        return original.suits(target) and self.is_clean(target)

    # ------------------------------------------------------------ what is known

    def proof(self, target: Target) -> Proof | None:
        """Return the valid proof of a target, or None."""
        return self.proofs.get(
            target.name, target.digest, protocol=target.protocol.name, endpoint=target.provider.base_url
        )

    def model_proof(self, model: Model) -> Proof | None:
        """Return the valid proof of a model that its server reported, or None."""
        return proof_of(model, self._config.catalog.provider(model.provider), self.proofs)

    def refused_tools(self, target: str) -> None:
        """Record that a target has refused tools: later requests begin with another way."""
        _remember(self._refusing, target, None)

    def withdraw(self, target: str, deviation: Deviation) -> None:
        """Record that a target's wire broke its protocol: its bytes do not pass from now on."""
        if deviation.severity != "note" and is_of_the_wire(deviation.code) and target not in self._deviating:
            _remember(self._deviating, target, None)
            LOG.info("%s: no longer taken for clean: %s at %s", target, deviation.code, deviation.where)


def _remember(names: dict[str, T], name: str, what: T) -> None:
    """Add a name; drop the oldest if there are too many."""
    if name not in names and len(names) >= _KEPT:
        del names[next(iter(names))]
    names[name] = what
