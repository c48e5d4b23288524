"""Quotas as they are written, their periods in any zone, and what a request may use at most."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import load_config
from dragoman.config.quotas import Period, Quota, period_of, read_amount, render_amount
from dragoman.errors import ConfigError
from dragoman.gateway.attempt_bounds import bound_of, expected_of
from dragoman.gateway.telemetry.pricing import Pricing
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.limits.accounts import charge_of
from dragoman.ledger.limits.quotas import QuotaBook, QuotaWatch, merged, read_stored
from dragoman.types import Usage
from for_each import for_each

ZONES = ("UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Australia/Lord_Howe", "America/Santiago")
PERIODS: tuple[Period, ...] = ("minute", "hour", "day", "week", "month")


def moment(text: str, zone: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@given(st.sampled_from(PERIODS), st.sampled_from(ZONES), st.integers(1_600_000_000, 2_000_000_000))
def test_periods_lie_end_to_end(per: Period, zone: str, now: int) -> None:
    start, end = period_of(per, zone, now)
    assert start <= now < end
    assert period_of(per, zone, start) == period_of(per, zone, end - 1) == (start, end)
    assert period_of(per, zone, end)[0] == end
    assert period_of(per, zone, start - 1)[1] == start


def test_a_day_is_the_zones_and_may_have_23_or_25_hours() -> None:
    """T19: $100 a day are $100 a day, also where the clocks change."""
    zone = "Europe/Berlin"
    for day, hours in (("2026-03-29", 23), ("2026-10-25", 25), ("2026-11-22", 24)):
        start, end = period_of("day", zone, moment(f"{day}T12:00", zone))
        assert (start, (end - start) / 3_600) == (moment(f"{day}T00:00", zone), hours)
    quota = Quota("all", "", "usd", 100, "day", zone)
    before, after = (charge_of(quota, "", moment(f"2026-11-22T{clock}", zone)) for clock in ("23:59:59", "00:00"))
    assert before.account == after.account
    assert charge_of(quota, "", before.until).account != before.account  # another day, another account
    assert period_of("week", zone, moment("2026-11-22T12:00", zone))[0] == moment("2026-11-16T00:00", zone)
    assert period_of("total", zone, 5.0) == (0.0, float("inf"))


def read(folder: Path, text: str) -> tuple[Quota, ...]:
    file = folder / "dragoman.toml"
    file.write_text(text)
    return load_config(file, environ={}, home=folder).quotas


def test_quotas_of_a_file(tmp_path: Path) -> None:
    money, key, label = read(
        tmp_path,
        '[[quotas]]\nscope = "team:research"\nusd = 0.5\nper = "month"\nzone = "Europe/Berlin"\nreserve = "expected"\n'
        '[[quotas]]\nscope = "key:*"\nconcurrent = 8\n[[quotas]]\nscope = "label:cost=47"\ntokens = 10\nper = "hour"\n',
    )
    assert (money.scope, money.value, money.amount, money.shown) == ("team", "research", 500_000, "0.5/month")
    assert (key.place, key.shown, key.is_recorded) == ("key:*", "8", False)
    assert (label.place, label.is_recorded, money.is_recorded) == ("label:cost=47", False, True)
    assert money.generation > 1_600_000_000_000_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('scope = "all"\nper = "day"', "expected one of"),
        ('scope = "all"\nusd = 1\ntokens = 2\nper = "day"', "usd and tokens"),
        ('scope = "all"\nusd = 1', "per: missing"),
        ('scope = "all"\nconcurrent = 1\nper = "day"', "not beside"),
        ('scope = "everyone"\nusd = 1\nper = "day"', "expected a scope"),
        ('scope = "team:"\nusd = 1\nper = "day"', "expected a scope"),
        ('scope = "label:cost"\nusd = 1\nper = "day"', "expected a scope"),
        ('scope = "all"\nusd = -1\nper = "day"', "from 0"),
        ('scope = "all"\nusd = 0.0000001\nper = "day"', "6 decimal"),
        ('scope = "all"\nusd = 1\nper = "day"\nzone = "Mars/Olympus"', "time zone"),
        ('scope = "all"\nusd = 1\nper = "year"', "per"),
        ('scope = "all"\nusd = 1\nper = "day"\nlimit = 3', "unknown key"),
        ('scope = "all"\nusd = 1\nper = "day"\n[[quotas]]\nscope = "all"\nusd = 2\nper = "day"', "is for all usd"),
    ],
)
def test_what_is_no_quota_is_told(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(tmp_path, f"[[quotas]]\n{text}\n")


@for_each("number", ["NaN", "sNaN", "-NaN", "Infinity", "1e999999", "1e-999999", "-0.000001", "1e30"])
def test_odd_numbers_are_no_amounts(number: str) -> None:
    with pytest.raises(ConfigError, match="expected an amount"):
        read_amount("usd", Decimal(number), "here")


@given(st.integers(0, 2**52), st.integers(0, 30))
def test_an_amount_is_what_is_written_to_the_last_place(micro: int, zeros: int) -> None:
    text = f"{render_amount('usd', micro)}"
    padded = f"{text}{'' if '.' in text else '.'}{'0' * zeros}"
    assert read_amount("usd", Decimal(padded), "here") == micro
    with pytest.raises(ConfigError, match="expected an amount"):
        read_amount("usd", Decimal(f"{padded if '.' in padded else padded + '.'}{'0' * 7}1"), "here")


def test_quotas_need_a_ledger(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ledger\.enabled"):
        read(tmp_path, '[ledger]\nenabled = false\n[[quotas]]\nscope = "all"\nusd = 1\nper = "day"\n')


def test_quotas_of_the_store_are_seen_when_they_change(tmp_path: Path) -> None:
    folder = LedgerFolder(tmp_path)
    watch = QuotaWatch(folder)
    assert not watch.has_changed() and read_stored(folder) == []
    book = QuotaBook(folder, actor="test")
    quota = Quota("key", "ci", "usd", 5_000_000, "month")
    assert book.set(quota) is None
    assert watch.has_changed() and not watch.has_changed()
    [stored] = watch.quotas
    assert (stored.name, stored.amount) == (quota.name, quota.amount) and stored.generation > 0
    before = book.set(Quota("key", "ci", "usd", 7_000_000, "month"))
    assert before is not None and before.amount == 5_000_000
    assert [each.amount for each in book.list()] == [7_000_000]
    assert merged([quota], book.list()) == (quota,)
    book.remove(quota)
    assert watch.has_changed() and watch.quotas == []
    book.close()
    watch.close()


CHAT = (("max_tokens",), ("max_completion_tokens",))


@for_each(
    ("fields", "output"),
    [
        ({"max_tokens": 7}, 7),
        ({"max_tokens": 7, "max_completion_tokens": 9}, 9),
        ({"max_tokens": 7, "n": 3}, 21),
        ({}, 500),
        ({"n": 2}, 1_000),
        ({"max_tokens": 0}, 500),
        ({"max_tokens": -1}, 500),
        ({"max_tokens": "7"}, 500),
        ({"max_tokens": 7.5}, 500),
        ({"max_tokens": True}, 500),
        ({"max_output_tokens": 7}, 500),  # not this protocol's name: its servers do not read it
        ({"max_tokens": 7, "tools": [{"name": "f", "schema": {"max_tokens": 1, "n": 3}}]}, 7),
        ({"max_tokens": 7, "n": 3, "tools": [{"schema": {"n": {}}}]}, 21),
        ({"max_tokens": 7, "n": 3.0}, 7 * 1_024),  # some servers read it as 3, and some as none
        ({"max_tokens": 7, "n": "8"}, 7 * 1_024),
        ({"max_tokens": 7, "n": 0}, 7 * 1_024),
        ({"max_tokens": 7, "n": None}, 7),
        ({"max_tokens": 7, "messages": [{"content": '{"max_tokens": 1}'}]}, 7),
    ],
)
def test_the_longest_answer_of_a_request(fields: dict[str, object], output: int) -> None:
    body = json.dumps(fields).encode()
    assert bound_of(body, CHAT, max_output=500).output == output
    assert bound_of(body, CHAT, max_output=500, answers=False).output == 0


def test_the_bound_costs_what_the_dearest_way_to_use_it_costs(tmp_path: Path) -> None:
    """T16: writing to a provider's cache costs more than reading, and a long prompt may cost more a token."""
    file = tmp_path / "dragoman.toml"
    file.write_text('[prices."openai/m"]\ninput = 2\noutput = 10\ncache_read = 0.2\ncache_write = 5\n')
    pricing = Pricing(load_config(file, environ={}, home=tmp_path))
    assert pricing.most("openai/m", Usage(input=1_000, output=100)) == 1_000 * 5_000 + 100 * 10_000
    assert pricing.most("openai/no-such-model", Usage(input=1_000, output=100)) is None
    known = Pricing(load_config(None, environ={}, home=tmp_path))
    short, long = (known.most("gemini/gemini-2.5-pro", Usage(input=size, output=0)) for size in (100_000, 300_000))
    assert short is not None and long is not None and long > 3 * short


def test_a_name_that_is_told_twice_bounds_nothing() -> None:
    assert bound_of(b'{"max_tokens": 90000, "max_tokens": 1}', CHAT, max_output=500).output == 500
    assert bound_of(b'{"max_tokens": 7, "n": 9, "n": 1}', CHAT, max_output=500).output == 7 * 1_024
    for hidden in (b'{"max_tokens": 7, "max\\u005ftokens": 900}', b'{"max_tokens": 7, "\\u006e": 900}'):
        found = bound_of(hidden, CHAT, max_output=500, context=1_000)
        assert found.output is not None and found.output >= 7 * 900 and (found.input or 0) > 1_000
    assert bound_of(b"no json", CHAT, max_output=None).output > 100_000_000


SCHEMA = {"type": "string", "description": "a document"}
NAMES = ("prompt", "file", "document", "video", "file_id", "conversation", "previous_response_id", "type")


@for_each(
    "fields",
    [
        {"previous_response_id": "resp_1", "input": "go on"},
        {"conversation": "conv_1"},
        {"prompt": {"id": "pmpt_1"}},
        {"cachedContent": "cachedContents/1"},
        {"contents": [{"parts": [{"fileData": {"fileUri": "https://lab/film"}}]}]},
        {"messages": [{"content": [{"type": "document", "source": {"type": "url", "url": "https://lab/book"}}]}]},
        {"input": [{"content": [{"type": "input_file", "file_id": "file-1"}]}]},
        {"messages": [{"content": [{"type": "file", "file": {"file_id": "file-1"}}]}]},
        {"messages": [{"content": [{"type": "video_url", "video_url": {"url": "https://lab/film"}}]}]},
    ],
)
def test_an_input_that_stands_elsewhere_is_bounded_by_what_the_model_reads(fields: dict[str, object]) -> None:
    body = json.dumps(fields).encode()
    assert (bound_of(body, CHAT, max_output=1, context=200_000).input or 0) > 200_000
    assert (bound_of(body, CHAT, max_output=1).input or 0) > 2_000_000
    # A text about such a request is a text, and a tool may have parameters of such names.
    quoted = {"messages": [{"content": body.decode()}], "tools": [{"properties": dict.fromkeys(NAMES, SCHEMA)}]}
    assert (bound_of(json.dumps(quoted).encode(), CHAT, max_output=1, context=200_000).input or 0) < 10_000


@given(st.text(max_size=300))
def test_the_bound_of_input_is_at_least_its_bytes_and_what_is_expected_is_no_more(text: str) -> None:
    body = json.dumps({"messages": text}).encode()
    bound = bound_of(body, CHAT, max_output=None)
    usual = expected_of(body, bound)
    assert bound.input is not None and bound.input >= len(body)
    assert usual.input is not None and usual.output is not None and bound.output is not None
    assert usual.input <= bound.input and usual.output <= bound.output
