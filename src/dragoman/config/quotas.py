"""Quotas: how much a scope may use in a period. Values, and their notation in a file or a command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, TypeAlias, final, get_args

import msgspec

from dragoman.errors import ConfigError
from dragoman.money import exact_units

ScopeKind: TypeAlias = Literal["all", "team", "key", "owner", "label", "route", "target"]
Unit: TypeAlias = Literal["usd", "tokens", "requests", "concurrent"]
Period: TypeAlias = Literal["minute", "hour", "day", "week", "month", "total"]
#: What stands for each one by itself.
EACH: Final = "*"
UTC_NAME: Final = "UTC"
_MICRO: Final = 1_000_000
#: Amounts beyond it have no room in 64 bits as nano-dollars.
_MOST: Final = 2**52
_VALUE: Final = re.compile(r"[^\s,][^,\r\n]{0,199}")
_UNITS: Final[tuple[Unit, ...]] = get_args(Unit)
#: Files and folders of the time zone database that are no zones, that say another thing on each machine, or whose
#: minutes have leap seconds.
_NO_ZONES: Final = frozenset(("localtime", "posixrules", "Factory", "posix", "right"))


@final
class Quota(msgspec.Struct, frozen=True):
    """A quota.

    Attributes:
        scope, value: what it applies to; the value is "" for `all`, and `*` for each one by itself.
        unit: `usd` counted in micro-dollars, `tokens` of input and output together, `requests` of clients, or
            `concurrent` requests.
        amount: in the unit, per period.
        per: the period, by the calendar of `zone`; `total`: for ever. `concurrent` has none, and `total` here.
        reserve: what is reserved for an attempt: its bound, or its expected cost.
        unpriced: what happens to requests to targets without a known price, if the unit is US dollars.
        on_outage: what happens to requests while the counters are away.
        overdraft: in the unit; what all holders together may then use beyond their leases.
        alerts: shares of the amount at which a line is logged.
        generation: microseconds since 1970 at which it was set; of two quotas of one name the later one applies.
    """

    scope: ScopeKind
    value: str
    unit: Unit
    amount: int
    per: Period = "total"
    zone: str = UTC_NAME
    reserve: Literal["bound", "expected"] = "bound"
    unpriced: Literal["refuse", "allow"] = "refuse"
    on_outage: Literal["refuse", "serve"] = "refuse"
    alerts: tuple[float, ...] = (0.8, 1.0)
    generation: int = 0
    overdraft: int = 0

    @property
    def place(self) -> str:
        """The scope as it is written: `team:research`, `all`."""
        return f"{self.scope}:{self.value}" if self.value else self.scope

    @property
    def name(self) -> str:
        """The quota's identity: another amount is the same quota."""
        per = "" if self.unit == "concurrent" else f" per {self.per}"
        return f"{self.place} {self.unit}{per}{'' if self.zone == UTC_NAME else f' {self.zone}'}"

    @property
    def shown(self) -> str:
        """The amount as it is written: `500/month`."""
        number = render_amount(self.unit, self.amount)
        return number if self.unit == "concurrent" else f"{number}/{self.per}"

    @property
    def is_recorded(self) -> bool:
        """Whether the ledger's rows say what was used of it. The other quotas live in the counters alone."""
        return self.unit in ("usd", "tokens") and self.per not in ("minute", "hour")


@final
class QuotaConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `[[quotas]]` table: a scope, one of the four units, and a period if the unit has one."""

    scope: str
    usd: Decimal | None = None
    tokens: int | None = None
    requests: int | None = None
    concurrent: int | None = None
    per: Period | None = None
    zone: str = UTC_NAME
    reserve: Literal["bound", "expected"] = "bound"
    unpriced: Literal["refuse", "allow"] = "refuse"
    on_outage: Literal["refuse", "serve"] = "refuse"
    overdraft: Decimal | int | None = None
    alerts: tuple[Annotated[float, msgspec.Meta(gt=0, le=1)], ...] = (0.8, 1.0)


def read_quota(table: QuotaConfig, where: str, *, generation: int = 0) -> Quota:
    """Return the quota of a table. Raises `ConfigError`: the table is not a quota."""
    given = [name for name in _UNITS if getattr(table, name) is not None]
    if len(given) != 1:
        raise ConfigError(f"{where}: expected one of {', '.join(_UNITS)}, got {' and '.join(given) or 'none'}")
    unit = given[0]
    number: Decimal | int = getattr(table, unit)
    if (table.per is None) != (unit == "concurrent"):
        raise ConfigError(f"{where}.per: " + ("not beside concurrent" if table.per else "missing"))
    scope, value = read_scope(table.scope, where)
    overdraft = 0
    if table.on_outage == "serve":
        if table.overdraft is None:
            raise ConfigError(f"{where}.overdraft: missing: how many {unit} may be served while nobody counts")
        overdraft = read_amount(unit, table.overdraft, f"{where}.overdraft")
    elif table.overdraft is not None:
        raise ConfigError(f'{where}.overdraft: expected only beside on_outage = "serve"')
    return Quota(
        scope,
        value,
        unit,
        read_amount(unit, number, where),
        table.per or "total",
        check_zone(table.zone, where),
        table.reserve,
        table.unpriced,
        table.on_outage,
        tuple(sorted(table.alerts)),
        generation,
        overdraft,
    )


def read_quotas(tables: Sequence[QuotaConfig], *, generation: int) -> tuple[Quota, ...]:
    """Return all quotas of a file. `generation` is the file's.

    Raises:
        ConfigError: a table is not a quota, or two quotas are the same.
    """
    quotas = tuple(read_quota(each, f"quotas[{number}]", generation=generation) for number, each in enumerate(tables))
    names = [quota.name for quota in quotas]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ConfigError(f"quotas[{number}]: quotas[{names.index(name)}] is for {name} too")
    return quotas


def read_scope(text: str, where: str) -> tuple[ScopeKind, str]:
    """Return the parts of a scope such as `team:research`. Raises `ConfigError`: it is no scope."""
    kind, _, value = text.partition(":")
    kinds: dict[str, ScopeKind] = {name: name for name in get_args(ScopeKind)}
    is_label = kind == "label" and "=" in value and not value.startswith("=")
    if kind == "all" and ":" not in text:
        return "all", ""
    one = value.partition("=")[2] if is_label else value
    is_plain = EACH not in value or (one == EACH and value.count(EACH) == 1)
    if kind in kinds and kind != "all" and _VALUE.fullmatch(value) and (kind != "label" or is_label) and is_plain:
        return kinds[kind], value
    raise ConfigError(
        f"{where}: expected a scope like all, team:NAME, key:NAME, key:*, owner:NAME, label:NAME=VALUE, route:NAME or "
        f"target:PROVIDER/MODEL, got {text[:80]!r}"
    )


def read_amount(unit: Unit, number: Decimal | int, where: str) -> int:
    """Return a number of US dollars, tokens or requests as micro-dollars, tokens or requests.

    Raises:
        ConfigError: it is no amount.
    """
    amount = _whole(Decimal(number), 6 if unit == "usd" else 0)
    if amount is None:
        places = "with at most 6 decimal places" if unit == "usd" else "that is whole"
        raise ConfigError(f"{where}: expected an amount of {unit} from 0, {places}, got {str(number)[:40]}")
    return amount


def _whole(number: Decimal, places: int) -> int | None:
    """Return a number in units of a decimal place, exactly, or None if it is negative, over `_MOST`, or not whole."""
    if not number.is_finite() or number < 0 or (number and not -20 < number.adjusted() < 20):
        return None
    whole = exact_units(number, places)
    return whole if whole is not None and whole <= _MOST else None


def render_amount(unit: Unit, amount: int) -> str:
    """Render an amount as it is written."""
    if unit != "usd":
        return str(amount)
    whole, rest = divmod(amount, _MICRO)
    return f"{whole}{f'.{rest:06d}'.rstrip('0') if rest else ''}"


def check_zone(name: str, where: str) -> str:
    """Return a time zone's name.

    Raises:
        ConfigError: this system does not know it, or other systems may know another one by it.
    """
    try:
        if name.partition("/")[0] in _NO_ZONES:
            raise ValueError(name)
        zone_of(name)
    except (OSError, ValueError, LookupError):
        raise ConfigError(f"{where}.zone: expected a time zone like Europe/Berlin, got {name[:40]!r}") from None
    return name


def zone_of(name: str) -> tzinfo:
    """Return a time zone. Raises OSError, ValueError, LookupError if there is none of the name."""
    if name == UTC_NAME:
        return UTC
    from zoneinfo import ZoneInfo  # loads `sysconfig`, which is nothing for who has no quota

    return ZoneInfo(name)


def period_of(per: Period, zone: str, now: float) -> tuple[float, float]:
    """Return the period that contains a moment, from and until, in Unix seconds.

    A day begins at midnight of the zone and may have 23 or 25 hours. A week begins on Monday.
    """
    if per == "total":
        return 0.0, float("inf")
    if per == "minute":
        return now // 60 * 60, now // 60 * 60 + 60
    local = datetime.fromtimestamp(now, zone_of(zone))
    if per == "hour":
        start = (now - local.minute * 60 - local.second) // 1
        return start, start + 3_600
    first = local.date()
    if per == "week":
        first -= timedelta(days=first.weekday())
    elif per == "month":
        first = first.replace(day=1)
    after = first + timedelta(days={"day": 1, "week": 7}.get(per, 32))
    if per == "month":
        after = after.replace(day=1)
    start, end = (datetime.combine(day, time.min, local.tzinfo).timestamp() for day in (first, after))
    return start, end


def quota_fields(quota: Quota) -> dict[str, Any]:
    """Return a quota as it is shown in JSON."""
    return {
        "scope": quota.place, "unit": quota.unit, "amount": render_amount(quota.unit, quota.amount),
        "per": None if quota.unit == "concurrent" else quota.per, "zone": quota.zone, "reserve": quota.reserve,
        "unpriced": quota.unpriced, "on_outage": quota.on_outage,
        "overdraft": render_amount(quota.unit, quota.overdraft), "alerts": list(quota.alerts),
    }  # fmt: skip
