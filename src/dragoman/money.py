"""Tokens, and money as whole numbers: nano-dollars (10⁻⁹ USD) in the ledger, micro-dollars where a limit is compared.

Only the cost of one attempt is rounded, once, half up; sums of it are exact. Unknown is None, never 0.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from typing import Final, Literal, final

import msgspec

NANO: Final = 10**9
#: An amount (nine million dollars) or a count beyond it is nothing that a provider means for one attempt; sums have 64
#: bits.
MOST_NANO: Final = 2**53
MOST_TOKENS: Final = 2**40
#: Decimal places of a price a token: the catalogue's are quotients.
_PLACES: Final = 40
#: For amounts that others wrote. As a fraction, `1e-999999999` has a denominator of a thousand million digits.
_EXACT: Final = Context(prec=64, rounding=ROUND_HALF_UP, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


@final
class BilledApart(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """The part of a usage that has prices of its own.

    Attributes:
        tier: the service tier that answered, "" for the standard one.
        cache_write_long: those of `Usage.cache_write` that are kept for an hour.
        input_audio, output_audio: tokens of sound among `Usage.input` and `Usage.output`.
        output_image: tokens of pictures among `Usage.output`.
        cache_read_audio: those of `Usage.cache_read` that are sound; None is "not reported".
    """

    tier: str = ""
    cache_write_long: int = 0
    input_audio: int = 0
    output_audio: int = 0
    output_image: int = 0
    cache_read_audio: int | None = None


@final
class Usage(msgspec.Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """Tokens; None is "not reported", never 0. `input` includes cached ones, `output` includes reasoning.

    `apart` is None if all of it has the usual prices.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    apart: BilledApart | None = None

    def merged(self, later: Usage) -> Usage:
        """Return the usage with a later report merged: output only grows, 0 takes nothing back, later input counts."""
        if later == self:
            return self
        return Usage(
            later.input or (later.input if self.input is None else self.input),
            self.output if later.output is None else max(later.output, self.output or 0),
            later.cache_read or (later.cache_read if self.cache_read is None else self.cache_read),
            later.cache_write or (later.cache_write if self.cache_write is None else self.cache_write),
            self.reasoning if later.reasoning is None else max(later.reasoning, self.reasoning or 0),
            later.apart or self.apart,
        )


NO_USAGE: Final = Usage()
#: The counts of `Usage`, its first fields.
TOKEN_KINDS: Final = Usage.__struct_fields__[:-1]


@final
class Cost(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """US dollars, and their source: the provider's report, the user's own price list, or the price catalogue."""

    usd: Decimal
    source: Literal["provider", "user", "catalogue"]


def nano_from_usd(usd: Decimal) -> int | None:
    """Return US dollars as nano-dollars, rounded half up; None for no amount (negative, not finite, 2⁵³ and more)."""
    if not usd.is_finite() or (usd.is_signed() and usd) or usd.adjusted() > 18:
        return None
    nano = rounded_units(usd, 9)
    return nano if nano < MOST_NANO else None


def correction_from_usd(usd: Decimal) -> int | None:
    """Return US dollars, which may be negative, as nano-dollars; None for no amount, or one that is finer."""
    nano = nano_from_usd(usd.copy_abs())
    if nano is None or exact_units(usd.copy_abs(), 9) is None:
        return None
    return -nano if usd.is_signed() else nano


def bounded_usage(usage: Usage) -> Usage:
    """Return a usage in which impossible figures (negative, 2⁴⁰ tokens and more) are unknown."""
    bits = (usage.input or 0) | (usage.output or 0) | (usage.cache_read or 0) | (usage.cache_write or 0)
    if 0 <= bits | (usage.reasoning or 0) < MOST_TOKENS:  # a power of two, so each of them is
        return usage
    figures = {name: getattr(usage, name) for name in TOKEN_KINDS}
    known = {name: each for name, each in figures.items() if each is not None and 0 <= each < MOST_TOKENS}
    return msgspec.structs.replace(usage, **(dict.fromkeys(TOKEN_KINDS) | known))


def render_usd(nano: int) -> str:
    """Render nano-dollars as a plain decimal number of US dollars: `0.000123`, `-2`, all places that are not 0."""
    whole, rest = divmod(abs(nano), NANO)
    places = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if nano < 0 else ''}{whole}{places}"


@final
class Rates(msgspec.Struct, frozen=True):
    """The prices of one model as whole numbers: nano-dollars for `scale` tokens of each kind."""

    scale: int
    input: int
    output: int
    cache_read: int
    cache_write: int

    def cost(self, usage: Usage) -> int | None:
        """Return the nano-dollars of a usage, rounded half up once; None if its input or output is unknown.

        `usage.input` includes cached tokens, which have prices of their own.
        """
        input, output = usage.input, usage.output
        if input is None or output is None:
            return None
        nano = output * self.output
        if usage.cache_read or usage.cache_write:
            read, write = usage.cache_read or 0, usage.cache_write or 0
            input -= read + write
            nano += read * self.cache_read + write * self.cache_write
        if input > 0:
            nano += input * self.input
        if self.scale != 1:
            nano = _half_up(nano, self.scale)
        return nano if 0 <= nano < MOST_NANO else None

    def most(self, usage: Usage) -> int | None:
        """Return the most that a usage may cost in nano-dollars, however much of its input a cache reads or writes."""
        if usage.input is None or usage.output is None:
            return None
        price = self.input if self.input > self.cache_write else self.cache_write
        if self.cache_read > price:
            price = self.cache_read
        nano = usage.input * price + usage.output * self.output
        if self.scale != 1:
            nano = _half_up(nano, self.scale)
        return nano if 0 <= nano < MOST_NANO else None


def make_rates(
    input: Decimal, output: Decimal, cache_read: Decimal | None = None, cache_write: Decimal | None = None
) -> Rates | None:
    """Return rates from US dollars per token. Cached tokens without a price of their own cost as `input`.

    None if one is no price (negative, not finite, a million dollars and more per token).
    """
    prices = (input, output, input if cache_read is None else cache_read, input if cache_write is None else cache_write)
    if any(not price.is_finite() or price < 0 or price.adjusted() > 5 for price in prices):
        return None
    places = min(max((_places(price) for price in prices), default=0), _PLACES)
    scale = 10 ** max(places - 9, 0)
    return Rates(scale, *[rounded_units(price, max(places, 9)) for price in prices])


def rounded_units(amount: Decimal, places: int) -> int:
    """Return a finite amount ≥ 0 in units of a decimal place, rounded half up.

    It may have any number of digits after the point; those before it, with `places`, are at most 64.
    """
    return int(amount.quantize(_EXACT.scaleb(Decimal(1), -places), context=_EXACT).scaleb(places, context=_EXACT))


def exact_units(amount: Decimal, places: int) -> int | None:
    """As `rounded_units`, but None if something would be rounded."""
    units = rounded_units(amount, places)
    return units if _EXACT.scaleb(Decimal(units), -places) == amount else None


def _places(price: Decimal) -> int:
    exponent = price.as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def _half_up(numerator: int, denominator: int) -> int:
    """Return a quotient of whole numbers ≥ 0, rounded half up."""
    return (2 * numerator + denominator) // (2 * denominator)
