"""Compute what a response costs: by the provider's own report (in the stream), the user's prices, the price
catalogue.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlsplit

from dragoman.config import Config, Price
from dragoman.providers.catalog import Provider, load_catalog, split_target
from dragoman.types import BilledApart, Cost, Usage

_MILLION: Final = Decimal(1_000_000)
_MOST_UNPRICED: Final = 1_024
_PROBE: Final = 1_000  # tokens: below all steps of prices
_PLAIN: Final = BilledApart()
#: How the catalogue calls what we call a tier.
_KINDS_OF_TIERS: Final = ("service_tier", "speed")
#: Service tiers that cost no more than the standard one.
_CHEAPER: Final = frozenset({"batch", "flex"})
#: Our price → the catalogue's.
_NAMES: Final = {
    "input": "input_mtok", "output": "output_mtok", "cache_read": "cache_read_mtok", "cache_write": "cache_write_mtok",
    "cache_write_long": "cache_write_1h_mtok", "input_audio": "input_audio_mtok", "output_audio": "output_audio_mtok",
    "output_image": "output_image_mtok", "cache_read_audio": "cache_audio_read_mtok",
}  # fmt: skip


class Prices:
    """Looks prices up. The catalogue is the extra `prices` (`genai-prices`); without it the user's prices apply."""

    __slots__ = ("_calculate", "_config", "_unpriced")

    def __init__(self, config: Config) -> None:
        self._config = config
        self._unpriced: set[str] = set()  # targets that the catalogue does not know
        self._calculate: Callable[..., Any] | bool | None = False  # False: not looked for yet

    def cost(self, target: str, usage: Usage) -> Cost | None:
        """Return the US dollars of a usage, or None if no price is known or the tokens were not reported."""
        if usage.input is None or usage.output is None:
            return None
        own = self._config.prices.get(target) if usage.apart is None else None
        if own is not None and (dollars := _at(own, usage)) is not None:  # as most often
            return Cost(dollars, "user")
        tier = "" if usage.apart is None else usage.apart.tier
        price = self.price(target, usage.input, tier)
        usd = None if price is None else _at(price, usage)
        return None if usd is None else Cost(usd, "user" if target in self._config.prices else "catalogue")

    def most(self, target: str, usage: Usage, tiers: Iterable[str] = ()) -> Decimal | None:
        """Return the most US dollars that a usage may cost, or None if a price is not known.

        Its input may be written to the provider's cache, or read from it. `usage.apart` says what else may come, and
        the service tier that is asked for, in place of which a provider may take its standard one; `tiers` are others
        that it may take.
        """
        found: list[Decimal] = []
        asked = "" if usage.apart is None else usage.apart.tier
        for tier in {"", asked, *tiers}:
            price = self.price(target, usage.input or 0, tier)
            usd = None if price is None else _most_at(price, usage)
            if usd is not None:
                found.append(usd)
            elif tier not in _CHEAPER:
                return None
        return max(found, default=None)

    def lacking(self, target: str, usage: Usage, tiers: Iterable[str] = ()) -> str:
        """Return which prices are missing where `most` knows none: as they stand in the configuration."""
        for tier in dict.fromkeys(("", "" if usage.apart is None else usage.apart.tier, *tiers)):
            price = self.price(target, usage.input or 0, tier)
            if tier not in _CHEAPER and (price is None or _most_at(price, usage) is None):
                place = f'[prices."{target}"' + (f'.tiers."{tier}"]' if tier else "]")
                return place if price is None else f"those of sound in {place}"
        return f'[prices."{target}"]'

    def price(self, target: str, input: int, tier: str = "") -> Price | None:
        """Return the prices of a target for so many tokens of input, or None if they are not known."""
        price = self._config.prices.get(target)
        if price is None:
            return self._from_catalogue(target, input, tier)
        return price.tiers.get(tier) if tier else price

    def load(self) -> None:
        """Load the catalogue if it is not loaded yet. This takes half a second."""
        if self._calculate is False:
            self._calculate = _load()

    def per_million(self, target: str) -> tuple[Decimal, Decimal] | None:
        """Return the US dollars per million tokens of input and output for a short request, or None if unknown."""
        price = self.price(target, _PROBE)
        return None if price is None else (price.input, price.output)

    def may_know(self, target: str) -> bool:
        """Return whether the catalogue could know a target.

        It has no self-hosted servers, except those through which a catalogued provider's requests go.
        """
        name, _ = split_target(target)
        provider = self._config.catalog.providers.get(name)
        if provider is None or provider.local:
            return False
        return name in load_catalog().providers or _is_public(provider.base_url)

    def _from_catalogue(self, target: str, input: int, tier: str) -> Price | None:
        if target in self._unpriced or not self.may_know(target):
            return None
        name, model = split_target(target)
        provider = self._config.catalog.providers[name]
        self.load()
        if not callable(self._calculate):
            return None
        from genai_prices import Usage as CatalogueUsage

        for url in _addresses(provider):
            with contextlib.suppress(LookupError, ValueError):
                found = self._calculate(CatalogueUsage(), model_ref=model, provider_api_url=url)
                prices = _variant(found.model, tier) if tier else found.model_price
                return _price_in(prices, input, found.model_price if provider.lists_media else None)
        if len(self._unpriced) < _MOST_UNPRICED:
            self._unpriced.add(target)
        return None


def _variant(model: Any, tier: str) -> Any:
    """Return the catalogue's prices of a model's service tier, or None."""
    for variant in getattr(model, "price_variants", None) or ():
        is_asked = variant.when in [{kind: tier} for kind in _KINDS_OF_TIERS]
        if is_asked and (variant.constraint is None or variant.constraint.active(datetime.now(UTC))):
            return variant.prices
    return None


def _price_in(prices: Any, input: int, standard: Any) -> Price | None:
    """Return the catalogue's prices for so many tokens of input, or None if they are not those of tokens.

    `standard`: those of the standard tier, if sound and pictures that they do not name cost as text.
    """
    told: dict[str, Any] = {}
    if prices is not None:
        told = {ours: _step(prices.__dict__.get(key), input) for ours, key in _NAMES.items()}
    plain, output = told.get("input"), told.get("output") or Decimal(0)
    if plain is None:
        return None
    if standard is not None:
        media = {"input_audio": plain, "output_audio": output, "output_image": output}
        told |= {name: price for name, price in media.items() if standard.__dict__.get(_NAMES[name]) is None}
    return Price(**{**told, "input": plain, "output": output})


def _step(price: Any, input: int) -> Decimal | None:
    """Return a price for so many tokens of input: beyond a step, all tokens cost as there."""
    for step in reversed(getattr(price, "tiers", ())):
        if input > step.start:
            return Decimal(step.price)
    price = getattr(price, "base", price)
    return None if price is None else Decimal(price)


def _addresses(provider: Provider) -> list[str]:
    """Return the addresses under which the catalogue may know a provider.

    These are its own, then the standard one of a provider of its name, because a user's address is usually a proxy.
    """
    named = load_catalog().providers.get(provider.name)
    return list(dict.fromkeys(one.base_url for one in (provider, named) if one is not None and one.base_url))


def _is_public(url: str) -> bool:
    """Return whether an address may belong to a public server; `localhost` and `10.0.0.5` do not."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return "." in host


def _at(price: Price, usage: Usage) -> Decimal | None:
    """Return what a usage costs, or None if the price of a part of it is not known."""
    input, output, read, write = usage.input or 0, usage.output or 0, usage.cache_read or 0, usage.cache_write or 0
    apart = usage.apart
    if apart is None:  # as most often
        dollars = max(input - read - write, 0) * price.input + output * price.output
        dollars += read * (price.input if price.cache_read is None else price.cache_read)
        dollars += write * (price.input if price.cache_write is None else price.cache_write)
        return dollars / _MILLION
    long, heard = min(apart.cache_write_long, write), min(apart.input_audio, input)
    said = min(apart.output_audio, output)
    drawn = min(apart.output_image, output - said)
    if heard and read and apart.cache_read_audio is None:
        return None  # how much of both is one, nobody says
    heard_again = min(apart.cache_read_audio or 0, heard, read)
    read_price = price.input if price.cache_read is None else price.cache_read
    costs = (
        (max(input - read - write - heard + heard_again, 0), price.input),
        (output - said - drawn, price.output),
        (read - heard_again, read_price),
        (write - long, price.input if price.cache_write is None else price.cache_write),
        (long, _long_price(price)),
        (heard - heard_again, price.input_audio),
        (heard_again, price.input_audio if price.cache_read_audio is None else price.cache_read_audio),
        (said, price.output_audio),
        (drawn, price.output_image),
    )
    dollars = Decimal(0)
    for count, each in costs:
        if count and each is None:
            return None
        if count and each is not None:
            dollars += count * each
    return dollars / _MILLION


def _most_at(price: Price, usage: Usage) -> Decimal | None:
    """As `Prices.most`, at these prices."""
    apart = _PLAIN if usage.apart is None else usage.apart
    inputs, outputs = [price.input, price.cache_read, price.cache_write], [price.output, price.output_image]
    if apart.cache_write_long:
        inputs.append(_long_price(price))
    if apart.input_audio:
        inputs += [price.input_audio, price.cache_read_audio]
    if apart.output_audio:
        outputs.append(price.output_audio)
    named = ((apart.input_audio, price.input_audio), (apart.output_audio, price.output_audio))
    if any(count and each is None for count, each in (*named, (apart.output_image, price.output_image))):
        return None
    dearest = [max([each for each in prices if each is not None]) for prices in (inputs, outputs)]
    return ((usage.input or 0) * dearest[0] + (usage.output or 0) * dearest[1]) / _MILLION


def _long_price(price: Price) -> Decimal:
    """Return the price of what is kept for an hour.

    Anthropic, which alone reports it, takes twice the price of input
    (https://platform.claude.com/docs/en/build-with-claude/prompt-caching, read 2026-11-28).
    """
    if price.cache_write_long is not None:
        return price.cache_write_long
    return max(2 * price.input, price.cache_write or price.input)


def _load() -> Callable[..., Any] | None:
    try:
        from genai_prices import calc_price
    except ModuleNotFoundError:
        return None
    return calc_price
