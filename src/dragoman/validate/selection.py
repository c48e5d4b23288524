"""Select the targets of a run: routes in full, what is due, what is left, what may cost money."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

from dragoman.client.started_servers import check_target
from dragoman.config import Config
from dragoman.errors import DragomanError, UsageError
from dragoman.proofs import DAY_SECONDS, ProofStore, Suite
from dragoman.routing.resolve import refuse_name, resolve
from dragoman.types import Usage
from dragoman.validate.ask import Asker
from dragoman.validate.model_identity import identify

#: A proof is made again when less than this share of its life is left.
_MARGIN: Final = 0.1
_THOUSAND: Final = Usage(input=1_000, output=1_000)


def expanded(names: Iterable[str], config: Config) -> list[str]:
    """Return targets, with every route replaced by its targets; each once.

    Raises:
        UsageError: a name is neither, or there is no such provider or embedded model.
    """
    targets: dict[str, None] = {}
    for name in names:
        if "/" in name:
            check_target(name, config)
            targets[name] = None
            continue
        route = config.routes.get(name)
        if route is None:
            refuse_name(name, config)
        targets |= dict.fromkeys(route.targets)
    return list(targets)


def unfinished(targets: Iterable[str], store: ProofStore, *, suite: Suite, now: float) -> list[str]:
    """Return the targets that this suite has not proven within the last day, which an interrupted run has left."""
    done = {proof.target for proof in store.all() if proof.suite == suite and now - proof.at < DAY_SECONDS}
    return [target for target in targets if target not in done]


async def due_targets(
    targets: Sequence[str], asker: Asker, store: ProofStore, *, allow_paid: bool, now: float
) -> list[str]:
    """Return the targets without a proof, with one that expires soon, or whose model has changed.

    Args:
        targets: which to look at; none: those of every route, and all that were ever proven.
        allow_paid: False leaves out what costs money.
    """
    config = asker.config
    if not targets:
        routed = [target for route in config.routes.values() for target in route.targets]
        targets = [*dict.fromkeys([*routed, *(proof.target for proof in store.all())])]
    allowed = [target for target in targets if allow_paid or not is_paid(target, asker)]
    due = await asyncio.gather(*(_is_due(target, asker, store, now) for target in allowed))
    return [target for target, is_due in zip(allowed, due, strict=True) if is_due]


async def _is_due(target: str, asker: Asker, store: ProofStore, now: float) -> bool:
    days = asker.config.validate.expires_days
    try:
        found = resolve(target, asker.config)
        claims = await identify(asker, found)
    except DragomanError:
        return True  # the run tells what is wrong with it
    proof = store.get(target, claims.digest, protocol=found.protocol.name, endpoint=found.provider.base_url)
    return proof is None or now - proof.at > (1 - _MARGIN) * days * DAY_SECONDS


def is_paid(target: str, asker: Asker) -> bool:
    """Return whether a target costs money: by its configuration, else if a price is known for it."""
    model = asker.config.model(target)
    if model is not None and model.paid is not None:
        return model.paid
    price = asker.price(target, _THOUSAND)
    return price is not None and price.usd > 0


def check_paid(targets: Iterable[str], asker: Asker, *, allow_paid: bool, max_cost: Decimal | None) -> None:
    """Refuse targets that would cost money without permission, or that have no price while there is a cap.

    Raises:
        UsageError: it names the target.
    """
    for target in targets:
        if not is_paid(target, asker):
            continue
        if not allow_paid:
            raise UsageError(f"{target} costs money; say --allow-paid, and --max-cost USD to bound it")
        if max_cost is not None and asker.price(target, _THOUSAND) is None:
            raise UsageError(f"{target}: no price is known, so --max-cost cannot hold; set [prices] for it")
