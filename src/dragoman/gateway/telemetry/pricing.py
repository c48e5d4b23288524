"""Compute the cost of answers without a catalogue look-up for each.

The catalogue takes half a millisecond per look-up and half a second to load, for which no stream should wait. A
target's unit prices are looked up once, in a thread, at its first request. The user's own prices and a provider's
report need no look-up.
"""

from __future__ import annotations

import asyncio
import time
from decimal import Decimal
from typing import Final, final

import msgspec

from dragoman.config import Config, Price
from dragoman.ledger.journal.records import PriceSnapshot
from dragoman.ledger.prices import Priced, make_priced
from dragoman.money import nano_from_usd
from dragoman.routing.prices import Prices
from dragoman.types import Cost, Usage

#: Catalogue prices may depend on the hour.
_HOLDS_SECONDS: Final = 600.0
#: From so many input tokens on, prices have steps: then the catalogue is asked itself.
_STEPS: Final = 100_000
_PROBE: Final = 1_000
_MILLION: Final = Decimal(1_000_000)
_TARGETS: Final = 1_000
#: Service tiers of one target that are remembered.
_TIERS: Final = 8


@final
class _Units(msgspec.Struct, frozen=True):
    """US dollars per token. `plain` None: the catalogue has no price. `until`: on the monotonic clock.

    `dearest`, `dearest_output`: those of a request that asks for nothing apart.
    """

    until: float
    plain: Decimal | None = None
    output: Decimal = Decimal()
    read: Decimal = Decimal()
    write: Decimal = Decimal()
    priced: Priced | None = None
    dearest: Decimal = Decimal()
    dearest_output: Decimal = Decimal()


class Pricing:
    """The costs of a gateway's answers. Used in one event loop."""

    __slots__ = ("_config", "_free", "_of_user", "_prices", "_tiers", "_units", "_wanted")

    def __init__(self, config: Config) -> None:
        self.take(config)

    def take(self, config: Config) -> None:
        """Use this configuration's prices from now on."""
        self._config = config
        self._prices = Prices(config)
        self._units: dict[str, _Units] = {}
        self._of_user = {
            target: priced for target, price in config.prices.items() if (priced := _of_user(target, price)) is not None
        }
        self._wanted: set[str] = set()
        self._free: set[str] = set()  # on servers of one's own
        self._tiers: dict[str, tuple[str, ...]] = {}  # in which targets answered unasked

    def prepare(self, target: str) -> None:
        """Look a target's price up at the beginning of a request, so that it is known at its end."""
        if target in self._wanted or target in self._free or target in self._config.prices:
            return
        if not self._prices.may_know(target):
            if len(self._free) >= _TARGETS:
                self._free.clear()
            self._free.add(target)
            return
        units = self._units.get(target)
        if units is not None and time.monotonic() < units.until:
            return
        if len(self._units) >= _TARGETS:
            self._units.clear()
        self._wanted.add(target)
        looking = asyncio.get_running_loop().run_in_executor(None, _look, self._prices, target)
        looking.add_done_callback(lambda found: self._found(target, found))

    def cost(self, target: str, usage: Usage) -> Cost | None:
        """Return the US dollars of a usage, or None if no price is known, or not yet."""
        if usage.input is None or usage.output is None:
            return None
        if target in self._config.prices:
            return self._prices.cost(target, usage)
        units = self._units.get(target)
        if units is None or time.monotonic() >= units.until:
            self.prepare(target)
        if units is None or units.plain is None:
            return None
        if usage.input >= _STEPS or usage.apart is not None:
            return self._prices.cost(target, usage)
        read, write = usage.cache_read or 0, usage.cache_write or 0
        dollars = max(usage.input - read - write, 0) * units.plain + usage.output * units.output
        return Cost(dollars + read * units.read + write * units.write, "catalogue")

    def nano(self, target: str, usage: Usage) -> tuple[int | None, PriceSnapshot | None]:
        """As `cost` in nano-dollars, with the price snapshot, or None if no snapshot has these prices."""
        if usage.input is None or usage.output is None:
            return None, None
        priced = self._of_user.get(target) if usage.apart is None else None
        if priced is None:
            units = self._units.get(target)
            if usage.apart is not None or units is None or usage.input >= _STEPS or time.monotonic() >= units.until:
                cost = self.cost(target, usage)
                return (None if cost is None else nano_from_usd(cost.usd)), None
            priced = units.priced
        return (None, None) if priced is None else (priced.rates.cost(usage), priced.snapshot)

    def load(self) -> None:
        """Load the price catalogue now."""
        self._prices.load()

    def most(self, target: str, usage: Usage) -> int | None:
        """Return the most that a usage may cost in nano-dollars, or None; see `Prices.most`.

        Price steps count. A price that is not known yet is looked up inline.
        """
        tiers = self._tiers.get(target, ())
        if usage.apart is None and not tiers:
            priced = self._of_user.get(target)
            if priced is not None and self._config.prices[target].output_image is None:  # these have no steps
                return priced.rates.most(usage)
            units = self._units.get(target)
            if units is not None and units.plain is not None and (usage.input or 0) < _STEPS:
                return nano_from_usd((usage.input or 0) * units.dearest + (usage.output or 0) * units.dearest_output)
        usd = self._prices.most(target, usage, tiers)
        return None if usd is None else nano_from_usd(usd)

    def lacking(self, target: str, usage: Usage) -> str:
        """Return which prices are missing where `most` knows none: as they stand in the configuration."""
        return self._prices.lacking(target, usage, self._tiers.get(target, ()))

    def note_tier(self, target: str, tier: str) -> None:
        """Remember that a target answered in a service tier that nobody asked for: it may do so again."""
        tiers = self._tiers.get(target, ())
        if tier not in tiers and len(tiers) < _TIERS and len(self._tiers) < _TARGETS:
            self._tiers[target] = (*tiers, tier)

    def _found(self, target: str, found: asyncio.Future[_Units]) -> None:
        self._wanted.discard(target)
        if not found.cancelled() and found.exception() is None:
            self._units[target] = found.result()


def _look(prices: Prices, target: str) -> _Units:
    """Look a target's unit prices up, in a thread."""
    until = time.monotonic() + _HOLDS_SECONDS
    price = prices.price(target, _PROBE)
    if price is None:
        return _Units(until)
    cached = (price.cache_read, price.cache_write)
    plain, output, dearest = price.input / _MILLION, price.output / _MILLION, max(price.output, price.output_image or 0)
    read, write = [plain if each is None else each / _MILLION for each in cached]
    priced = make_priced(target, "catalogue", plain, output, read, write)
    return _Units(until, plain, output, read, write, priced, max(plain, read, write), Decimal(dearest) / _MILLION)


def _of_user(target: str, price: Price) -> Priced | None:
    """Return the user's own prices of a target."""
    cached = [None if each is None else each / _MILLION for each in (price.cache_read, price.cache_write)]
    return make_priced(target, "user", price.input / _MILLION, price.output / _MILLION, *cached)
