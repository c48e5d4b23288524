"""Compute what a response costs: by the provider's own report (in the stream), the user's prices, the price
catalogue.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlsplit

from dragoman.config import Config, Price
from dragoman.providers.catalog import Provider, load_catalog, split_target
from dragoman.types import Cost, Usage

_MILLION: Final = Decimal(1_000_000)
_MOST_UNPRICED: Final = 1_024
_PROBE: Final = 1_000  # tokens: below all steps of prices


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
        price = self._config.prices.get(target)
        if price is not None:
            return Cost(_at(price, usage), "user")
        return self._from_catalogue(target, usage)

    def load(self) -> None:
        """Load the catalogue if it is not loaded yet. This takes half a second."""
        if self._calculate is False:
            self._calculate = _load()

    def per_million(self, target: str) -> tuple[Decimal, Decimal] | None:
        """Return the US dollars per million tokens of input and output for a short request, or None if unknown."""
        read = self.cost(target, Usage(input=_PROBE, output=0))
        written = self.cost(target, Usage(input=0, output=_PROBE))
        if read is None or written is None:
            return None
        return read.usd * _MILLION / _PROBE, written.usd * _MILLION / _PROBE

    def may_know(self, target: str) -> bool:
        """Return whether the catalogue could know a target.

        It has no self-hosted servers, except those through which a catalogued provider's requests go.
        """
        name, _ = split_target(target)
        provider = self._config.catalog.providers.get(name)
        if provider is None or provider.local:
            return False
        return name in load_catalog().providers or _is_public(provider.base_url)

    def _from_catalogue(self, target: str, usage: Usage) -> Cost | None:
        if target in self._unpriced or not self.may_know(target):
            return None
        name, model = split_target(target)
        provider = self._config.catalog.providers[name]
        self.load()
        if not callable(self._calculate):
            return None
        from genai_prices import Usage as CatalogueUsage

        tokens = CatalogueUsage(
            input_tokens=usage.input,
            output_tokens=usage.output,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
        )
        for url in _addresses(provider):
            with contextlib.suppress(LookupError, ValueError):
                found = self._calculate(tokens, model_ref=model, provider_api_url=url)
                return Cost(found.total_price, "catalogue")
        if len(self._unpriced) < _MOST_UNPRICED:
            self._unpriced.add(target)
        return None


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


def _at(price: Price, usage: Usage) -> Decimal:
    read, write = usage.cache_read or 0, usage.cache_write or 0
    plain = max((usage.input or 0) - read - write, 0)
    dollars = plain * price.input + (usage.output or 0) * price.output
    dollars += read * (price.input if price.cache_read is None else price.cache_read)
    dollars += write * (price.input if price.cache_write is None else price.cache_write)
    return dollars / _MILLION


def _load() -> Callable[..., Any] | None:
    try:
        from genai_prices import calc_price
    except ModuleNotFoundError:
        return None
    return calc_price
