"""Costs as the price catalogue has them, without asking it each time."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest

from dragoman.config import Config, load_config
from dragoman.gateway.telemetry.pricing import Pricing
from dragoman.routing.prices import Prices
from dragoman.types import Cost, Usage

USAGES = (
    Usage(input=12, output=5),
    Usage(input=0, output=0),
    Usage(input=90_000, output=1_234),
    Usage(input=250_000, output=1_234),
    Usage(input=2_000, output=10, cache_read=1_500),
    Usage(input=2_000, output=10, cache_read=500, cache_write=1_000),
)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    file = tmp_path / "dragoman.toml"
    lines = [
        '[providers.lab]\nprotocol = "openai-chat"\nbase_url = "http://10.0.0.5:8000/v1"',
        '[prices."lab/mine"]\ninput = 0.5\noutput = 1.5',
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    return load_config(file, environ={}, home=tmp_path)


async def prepared(pricing: Pricing, target: str) -> None:
    pricing.prepare(target)
    async with asyncio.timeout(30):
        while target in pricing._wanted:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("target", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-pro"])
def test_costs_are_those_of_the_catalogue(config: Config, target: str) -> None:
    exact = Prices(config)

    async def ask() -> list[Cost | None]:
        pricing = Pricing(config)
        assert pricing.cost(target, USAGES[0]) is None  # not yet
        await prepared(pricing, target)
        return [pricing.cost(target, usage) for usage in USAGES]

    found = asyncio.run(ask())
    assert found == [exact.cost(target, usage) for usage in USAGES]
    assert all(cost is not None and cost.source == "catalogue" for cost in found)


def test_ones_own_prices_and_servers_are_not_looked_up(config: Config) -> None:
    async def ask() -> None:
        pricing = Pricing(config)
        for target in ("lab/mine", "lab/other", "ollama/granite4", "no-such/model"):
            pricing.prepare(target)
        assert not pricing._wanted
        assert pricing.cost("lab/mine", Usage(input=1_000_000, output=0)) == Cost(Decimal("0.5"), "user")
        assert pricing.cost("lab/other", USAGES[0]) is None
        assert pricing.cost("openai/gpt-4o", Usage(input=5)) is None

    asyncio.run(ask())


def test_a_model_that_the_catalogue_does_not_know_costs_nothing_known(config: Config) -> None:
    async def ask() -> None:
        pricing = Pricing(config)
        await prepared(pricing, "openai/no-such-model")
        assert pricing.cost("openai/no-such-model", USAGES[0]) is None
        assert not pricing._wanted

    asyncio.run(ask())


def test_a_catalogued_provider_behind_an_address_of_this_machine_has_its_prices(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text('[providers.openai]\nbase_url = "http://127.0.0.1:9/v1"', encoding="utf-8")
    config = load_config(file, environ={}, home=tmp_path)

    async def ask() -> Cost | None:
        pricing = Pricing(config)
        await prepared(pricing, "openai/gpt-4o")
        return pricing.cost("openai/gpt-4o", USAGES[0])

    found = asyncio.run(ask())
    assert found is not None and found == Prices(config).cost("openai/gpt-4o", USAGES[0])
