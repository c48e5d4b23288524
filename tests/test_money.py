"""Money is whole numbers: exact sums, one rounding an attempt, and unknown is not 0."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dragoman.money import MOST_NANO, NANO, make_rates, nano_from_usd, render_usd
from dragoman.types import Usage

prices = st.decimals(min_value=0, max_value=1, places=12)
counts = st.integers(0, 10_000_000)


def test_a_price_list_in_dollars_a_million_tokens() -> None:
    rates = make_rates(Decimal("2.5") / 1_000_000, Decimal(10) / 1_000_000, Decimal("1.25") / 1_000_000)
    assert rates is not None
    assert rates.cost(Usage(input=1_000, output=100, cache_read=400)) == 600 * 2_500 + 400 * 1_250 + 100 * 10_000


@given(prices, prices, prices, prices, counts, counts, counts)
def test_a_cost_is_the_exact_one_rounded_once(
    plain: Decimal, output: Decimal, read: Decimal, write: Decimal, sent: int, made: int, cached: int
) -> None:
    rates = make_rates(plain, output, read, write)
    assert rates is not None
    cached = min(cached, sent)
    exact = Fraction(plain) * (sent - cached) + Fraction(read) * cached + Fraction(output) * made
    found = rates.cost(Usage(input=sent, output=made, cache_read=cached))
    assert found is not None
    assert abs(found - exact * NANO) <= Fraction(1, 2)


@given(prices, prices, prices, prices, counts | st.none(), counts | st.none())
def test_the_most_is_that_of_a_cache_read_whole_or_written_whole_or_not_at_all(
    plain: Decimal, output: Decimal, read: Decimal, write: Decimal, sent: int | None, made: int | None
) -> None:
    rates = make_rates(plain, output, read, write)
    assert rates is not None
    used = Usage(sent, made), Usage(sent, made, cache_read=sent), Usage(sent, made, cache_write=sent)
    found = [rates.cost(usage) for usage in used]
    assert rates.most(Usage(sent, made)) == (None if None in found else max(cost for cost in found if cost is not None))


@given(prices, prices)
def test_unknown_tokens_have_no_cost(plain: Decimal, output: Decimal) -> None:
    rates = make_rates(plain, output)
    assert rates is not None
    assert rates.cost(Usage(input=1)) is None
    assert rates.cost(Usage(output=1)) is None
    assert rates.cost(Usage(input=0, output=0)) == 0


@given(st.integers(-(10**19), 10**19))
def test_an_amount_is_written_exactly(nano: int) -> None:
    text = render_usd(nano)
    assert Decimal(text) * NANO == nano
    assert "e" not in text.lower()


@given(st.integers(0, MOST_NANO - 1))
def test_dollars_and_back(nano: int) -> None:
    assert nano_from_usd(Decimal(render_usd(nano))) == nano


def test_what_is_no_amount_is_unknown() -> None:
    for odd in ("NaN", "Infinity", "-1", "1e400", "-1e-400"):
        assert nano_from_usd(Decimal(odd)) is None
        assert make_rates(Decimal(odd), Decimal(0)) is None or odd == "1e-400"
    assert nano_from_usd(Decimal("1e-400")) == 0
    assert nano_from_usd(Decimal("-0")) == 0
    assert nano_from_usd(Decimal("0.0000000005")) == 1  # half up


def test_rates_of_quotients_and_of_silly_prices() -> None:
    third = make_rates(Decimal(1) / 3_000_000, Decimal(0))
    assert third is not None
    assert third.cost(Usage(input=3_000_000, output=0)) == NANO
    dear = make_rates(Decimal(999_999), Decimal(0))
    assert dear is not None
    assert dear.cost(Usage(input=2**40, output=0)) is None  # more than any ledger holds
    assert make_rates(Decimal(1_000_000), Decimal(0)) is None
