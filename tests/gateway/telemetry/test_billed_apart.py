"""What has a price of its own: a service tier, an hour in the cache, sound, pictures. Its cost is exact, or unknown."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import genai_prices
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import decode
from dragoman.codec.cost import tier_of
from dragoman.config import Config, Price, load_config
from dragoman.gateway.attempt_bounds import bound_of
from dragoman.gateway.telemetry.pricing import Pricing
from dragoman.protocols import PROTOCOLS
from dragoman.routing.prices import Prices, _at, _most_at
from dragoman.types import BilledApart, ProtocolName, Usage
from for_each import for_each
from profiles import examples
from wires import body_of

TARGET = "lab/mine"
PRICES = {
    "input": "0.7", "output": "2.3", "cache_read": "0.07", "cache_write": "0.9", "cache_write_long": "1.31",
    "input_audio": "5.5", "output_audio": "11.7", "output_image": "31", "cache_read_audio": "0.55",
}  # fmt: skip


@pytest.fixture(scope="module")
def pricing(tmp_path_factory: pytest.TempPathFactory) -> Pricing:
    return Pricing(configured(tmp_path_factory.mktemp("prices")))


def configured(folder: Path) -> Config:
    own = {name: float(price) for name, price in PRICES.items()}
    lines = [
        '[providers.lab]\nprotocol = "openai-chat"\nbase_url = "http://10.0.0.5:8000/v1"',
        f'[prices."{TARGET}"]',
        *[f"{name} = {price}" for name, price in own.items()],
        f'[prices."{TARGET}".tiers.priority]',
        *[f"{name} = {price * 2}" for name, price in own.items()],
    ]
    (folder / "dragoman.toml").write_text("\n".join(lines), encoding="utf-8")
    return load_config(folder / "dragoman.toml", environ={}, home=folder)


class Sold(NamedTuple):
    """What a provider bills, in parts that have nothing in common."""

    text: int
    read: int
    written: int
    written_long: int
    heard: int
    heard_again: int
    said: int
    spoken: int
    drawn: int
    is_fast: bool

    def nano(self) -> int:
        """The nano-dollars of it, rounded half up."""
        names = ("input", "cache_read", "cache_write", "cache_write_long", "input_audio", "cache_read_audio", "output")
        cost = sum((count * Fraction(PRICES[name]) for name, count in zip(names, self[:7], strict=True)), Fraction(0))
        cost += self.spoken * Fraction(PRICES["output_audio"]) + self.drawn * Fraction(PRICES["output_image"])
        return int(cost * 1_000 * (2 if self.is_fast else 1) + Fraction(1, 2))


def chat(sold: Sold, *, is_whole: bool) -> list[dict[str, Any]]:
    sold_in = sold.text + sold.read + sold.written + sold.heard + sold.heard_again
    usage = {
        "prompt_tokens": sold_in,
        "completion_tokens": sold.said + sold.spoken + sold.drawn,
        "total_tokens": sold_in + sold.said + sold.spoken + sold.drawn,
        "prompt_tokens_details": {
            "cached_tokens": sold.read + sold.heard_again,
            "cache_write_tokens": sold.written,
            "audio_tokens": sold.heard + sold.heard_again,
            "cached_tokens_details": {"audio_tokens": sold.heard_again},
        },
        "completion_tokens_details": {"audio_tokens": sold.spoken, "image_tokens": sold.drawn, "reasoning_tokens": 0},
    }
    head = {"id": "c1", "created": 1, "model": "m", "service_tier": "priority" if sold.is_fast else "default"}
    if is_whole:
        choice = {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
        return [{**head, "object": "chat.completion", "choices": [choice], "usage": usage}]
    head["object"] = "chat.completion.chunk"
    delta = {"index": 0, "delta": {"role": "assistant", "content": "Hi"}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    return [{**head, "choices": [delta]}, {**head, "choices": [end]}, {**head, "choices": [], "usage": usage}]


def responses(sold: Sold, *, is_whole: bool) -> list[dict[str, Any]]:
    usage = {
        "input_tokens": sold.text + sold.read + sold.written,
        "input_tokens_details": {"cached_tokens": sold.read, "cache_write_tokens": sold.written},
        "output_tokens": sold.said + sold.spoken + sold.drawn,
        "output_tokens_details": {"reasoning_tokens": 0, "audio_tokens": sold.spoken, "image_tokens": sold.drawn},
        "total_tokens": 0,
    }
    text = {"type": "output_text", "text": "Hi", "annotations": []}
    item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [text]}
    whole = {
        "id": "r1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": [item],
        "usage": usage, "service_tier": "priority" if sold.is_fast else "default",
    }  # fmt: skip
    return [whole] if is_whole else [{"type": "response.completed", "response": whole}]


def messages(sold: Sold, *, is_whole: bool) -> list[dict[str, Any]]:
    usage = {
        "input_tokens": sold.text,
        "cache_read_input_tokens": sold.read,
        "cache_creation_input_tokens": sold.written + sold.written_long,
        "cache_creation": {
            "ephemeral_5m_input_tokens": sold.written,
            "ephemeral_1h_input_tokens": sold.written_long,
        },
        "output_tokens": sold.said,
        "service_tier": "priority" if sold.is_fast else "standard",
        "inference_geo": "global",
    }
    whole = {
        "id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn", "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    if is_whole:
        return [whole]
    return [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": sold.said}},
        {"type": "message_stop"},
    ]


def gemini(sold: Sold, *, is_whole: bool) -> list[dict[str, Any]]:
    def details(**counts: int) -> list[dict[str, Any]]:
        return [{"modality": name, "tokenCount": count} for name, count in counts.items() if count]

    usage = {
        "promptTokenCount": sold.text + sold.read + sold.heard + sold.heard_again,
        "candidatesTokenCount": sold.said + sold.spoken + sold.drawn,
        "cachedContentTokenCount": sold.read + sold.heard_again,
        "promptTokensDetails": details(TEXT=sold.text + sold.read, AUDIO=sold.heard + sold.heard_again),
        "cacheTokensDetails": details(TEXT=sold.read, AUDIO=sold.heard_again),
        "candidatesTokensDetails": details(TEXT=sold.said, AUDIO=sold.spoken, IMAGE=sold.drawn),
        "serviceTier": "priority" if sold.is_fast else "standard",
    }
    content = {"role": "model", "parts": [{"text": "Hi"}]}
    end = {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage}
    return [end] if is_whole else [{"candidates": [{"content": content}]}, end]


count = st.integers(0, 5_000)
sold = st.builds(Sold, *[count] * 9, st.booleans())
#: What each protocol has no words for.
UNSAID: dict[ProtocolName, dict[str, int]] = {
    "openai-chat": {"written_long": 0},
    "openai-responses": {"written_long": 0, "heard": 0, "heard_again": 0},
    "anthropic-messages": {"heard": 0, "heard_again": 0, "spoken": 0, "drawn": 0},
    "gemini-generate": {"written": 0, "written_long": 0},
}
ANSWERS = {
    "openai-chat": chat,
    "openai-responses": responses,
    "anthropic-messages": messages,
    "gemini-generate": gemini,
}


@settings(max_examples=examples(400), deadline=None)
@given(sold, st.sampled_from(sorted(ANSWERS)), st.booleans())
def test_what_an_answer_says_costs_what_a_provider_bills(
    pricing: Pricing, sold: Sold, protocol: ProtocolName, is_whole: bool
) -> None:
    sold = sold._replace(**UNSAID[protocol])
    body = body_of(protocol, ANSWERS[protocol](sold, is_whole=is_whole), is_whole=is_whole)
    reply = decode(body, protocol)
    assert reply.error is None, reply
    assert pricing.nano(TARGET, reply.usage)[0] == sold.nano(), reply.usage
    if is_whole and (finish := PROTOCOLS[protocol].check_whole(body)) is not None:
        assert finish.usage == reply.usage


@settings(max_examples=examples(400), deadline=None)
@given(
    st.dictionaries(st.sampled_from(sorted(set(PRICES) - {"input", "output"})), st.decimals(0, 50, places=2)),
    sold,
    st.booleans(),
)
def test_nothing_costs_more_than_the_most_that_it_may(own: dict[str, Decimal], sold: Sold, has_room: bool) -> None:
    price = Price(Decimal("1.5"), Decimal(3), **own)
    heard, read = sold.heard + sold.heard_again, sold.read + sold.heard_again
    apart = BilledApart("", sold.written_long, heard, sold.spoken, sold.drawn, sold.heard_again)
    input, output = (
        sold.text + read + sold.heard + sold.written + sold.written_long,
        sold.said + sold.spoken + sold.drawn,
    )
    cost = _at(price, Usage(input, output, read, sold.written + sold.written_long, apart=apart))
    asked = BilledApart("", sold.written_long, heard, sold.spoken)
    most = _most_at(price, Usage(input + has_room, output + has_room, apart=asked))
    if cost is None:
        assert most is None or sold.drawn
    else:
        assert most is not None
        assert most >= cost


CATALOGUE: list[tuple[str, Usage, dict[str, int]]] = [
    (
        "anthropic/claude-sonnet-4-5",
        Usage(900, 10, 100, 500, apart=BilledApart(cache_write_long=300)),
        {"cache_read_tokens": 100, "cache_write_tokens": 500, "cache_write_1h_tokens": 300},
    ),
    (
        "anthropic/claude-sonnet-4-5",
        Usage(250_000, 10, 100, 500, apart=BilledApart(cache_write_long=300)),
        {"cache_read_tokens": 100, "cache_write_tokens": 500, "cache_write_1h_tokens": 300},
    ),
    (
        "gemini/gemini-2.5-flash",
        Usage(900, 10, 100, apart=BilledApart(input_audio=400, cache_read_audio=30)),
        {"cache_read_tokens": 100, "input_audio_tokens": 400, "cache_audio_read_tokens": 30},
    ),
    ("gemini/gemini-2.5-pro", Usage(900, 10, apart=BilledApart(input_audio=400)), {}),
    (
        "openai/gpt-audio",
        Usage(900, 50, apart=BilledApart(input_audio=400, output_audio=20)),
        {"input_audio_tokens": 400, "output_audio_tokens": 20},
    ),
    ("gemini/gemini-2.5-flash-image", Usage(9, 50, apart=BilledApart(output_image=40)), {"output_image_tokens": 40}),
    ("openai/gpt-5.2", Usage(900, 50, 100, apart=BilledApart("priority")), {"cache_read_tokens": 100}),
    ("openai/gpt-5.2", Usage(900, 50, 100, apart=BilledApart("flex")), {"cache_read_tokens": 100}),
]
NAMES = {"gemini": "google"}


@for_each("target, usage, counts", CATALOGUE)
def test_the_catalogue_says_what_it_costs(target: str, usage: Usage, counts: dict[str, int], tmp_path: Path) -> None:
    cost = Prices(configured(tmp_path)).cost(target, usage)
    provider, _, model = target.partition("/")
    theirs = genai_prices.Usage(input_tokens=usage.input, output_tokens=usage.output, **counts)
    assert usage.apart is not None
    tier = {"service_tier": usage.apart.tier} if usage.apart.tier else None
    found = genai_prices.calc_price(theirs, model, provider_id=NAMES.get(provider, provider), price_context=tier)
    assert cost is not None
    assert cost.usd == found.total_price


@for_each(
    "target, apart",
    [
        ("openai/gpt-4o-audio-preview", BilledApart(input_audio=10)),
        ("openai/gpt-audio", BilledApart(output_image=10)),
        ("openai/gpt-5.2", BilledApart("scale")),
        ("anthropic/claude-sonnet-4-5", BilledApart("priority")),
        ("gemini/gemini-2.5-flash", BilledApart(input_audio=10)),  # beside cached tokens that may be sound
        (TARGET, BilledApart("ultra")),
    ],
)
def test_what_nobody_has_a_price_of_costs_something_unknown(target: str, apart: BilledApart, tmp_path: Path) -> None:
    assert Prices(configured(tmp_path)).cost(target, Usage(90, 50, 10, apart=apart)) is None


def test_an_hour_in_the_cache_costs_twice_the_input_where_no_price_says_more() -> None:
    usage = Usage(1_000_000, 0, None, 1_000_000, apart=BilledApart(cache_write_long=1_000_000))
    assert _at(Price(Decimal(3), Decimal(9), cache_write=Decimal("3.75")), usage) == 6


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}


@for_each(
    "protocol, request_body, apart",
    [
        ("openai-chat", {"service_tier": "priority"}, "BilledApart(tier='priority')"),
        ("openai-chat", {"service_tier": "auto"}, "None"),
        ("gemini-generate", {"serviceTier": "FLEX"}, "BilledApart(tier='flex')"),
        ("anthropic-messages", {"speed": "fast"}, "BilledApart(tier='fast')"),
        ("anthropic-messages", {"inference_geo": "us", "speed": "fast"}, "BilledApart(tier='fast+us')"),
        ("anthropic-messages", {"system": [{"cache_control": {"ttl": "1h"}}]}, "cache_write_long"),
        ("anthropic-messages", {"system": [{"cache_control": {"ttl": "5m"}}], "tools": [{"enum": ["1h"]}]}, "None"),
        ("openai-chat", {"messages": [{"content": [{"type": "input_audio", "input_audio": {}}]}]}, "input_audio"),
        ("openai-chat", {"messages": [{"role": "assistant", "audio": {"id": "a1"}}]}, "input_audio"),
        ("openai-chat", {"modalities": ["text", "audio"]}, "output_audio"),
        ("gemini-generate", {"generationConfig": {"responseModalities": ["AUDIO"]}}, "output_audio"),
        ("openai-chat", {"messages": [{"content": "the audio in modalities, 1h, service_tier"}]}, "None"),
        ("openai-chat", {"audio": None, "modalities": None}, "None"),
        ("openai-chat", {"tools": [{"name": "audio"}], "messages": [{"content": [PICTURE]}]}, "None"),
        ("openai-chat", {"messages": [{"content": [PICTURE, {"type": "text", "text": '"input_audio"'}]}]}, "None"),
        ("openai-responses", {"previous_response_id": "r1", "input": "audio"}, "None"),
        ("anthropic-messages", {"messages": [{"content": [{"file_id": "f1"}, {"text": "Audio"}]}]}, "None"),
        ("gemini-generate", {"contents": [{"fileData": {"mimeType": "audio/mp3", "fileUri": "u"}}]}, "input_audio"),
        ("openai-chat", {"messages": [{"audio_url": {"url": "data:Audio/wav;base64,AA"}}]}, "input_audio"),
    ],
)
def test_a_request_tells_what_may_be_billed_apart(protocol: str, request_body: dict[str, Any], apart: str) -> None:
    body = json.dumps(request_body).encode()
    found = bound_of(body, (), max_output=100, marks_cache=PROTOCOLS[protocol].marks_cache).apart
    assert apart in repr(found), found


def test_several_tiers_have_one_name_wherever_they_stand() -> None:
    assert tier_of("us", "fast", "Fast", "default") == tier_of("fast", None, "us") == "fast+us"


def test_a_tier_that_nobody_asked_for_counts_from_then_on(tmp_path: Path) -> None:
    pricing, usage = Pricing(configured(tmp_path)), Usage(1_000, 100)
    before = pricing.most(TARGET, usage)
    pricing.note_tier(TARGET, "priority")
    assert before is not None
    assert pricing.most(TARGET, usage) == 2 * before
    pricing.note_tier(TARGET, "ultra")
    assert pricing.most(TARGET, usage) is None


def test_tiers_without_a_price_are_bounded_where_they_cost_less(tmp_path: Path) -> None:
    pricing, usage = Pricing(configured(tmp_path)), Usage(1_000, 100)
    flex, ultra = [Usage(1_000, 100, apart=BilledApart(tier)) for tier in ("flex", "ultra")]
    assert pricing.most(TARGET, flex) == pricing.most(TARGET, usage)
    assert pricing.most(TARGET, ultra) is None
    assert pricing.lacking(TARGET, ultra) == f'[prices."{TARGET}".tiers."ultra"]'
    heard = Usage(1_000, 100, apart=BilledApart(input_audio=9))
    assert pricing.lacking("openai/gpt-4o", heard) == 'those of sound in [prices."openai/gpt-4o"]'
