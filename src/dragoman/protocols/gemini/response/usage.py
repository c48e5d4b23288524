"""Token counts of a response: several reports, of which each may lack some, become one."""

from __future__ import annotations

from typing import Final

from dragoman import _json
from dragoman._json import Json
from dragoman.codec.cost import apart_of, count_of, tier_of
from dragoman.money import MOST_TOKENS
from dragoman.protocols.gemini.wire import UsageMetadata, camel
from dragoman.types import BilledApart, Usage

_WORDS: Final = (b"AUDIO", b"IMAGE", b"Tier", b"_tier", b"raffic")
_NEAR: Final = 4096


def merged(told: UsageMetadata, later: UsageMetadata) -> UsageMetadata:
    """Merge a later report, as `Usage.merged`: an omitted or 0 count stays, and so does one before an impossible one.

    The prompt is estimated first, and the later count applies.
    """
    return UsageMetadata(
        _later(told.promptTokenCount, later.promptTokenCount),
        _larger(told.candidatesTokenCount, later.candidatesTokenCount),
        None,
        _later(told.cachedContentTokenCount, later.cachedContentTokenCount),
        _larger(told.thoughtsTokenCount, later.thoughtsTokenCount),
        _later(told.toolUsePromptTokenCount, later.toolUsePromptTokenCount),
    )


def read_usage(told: UsageMetadata, apart: BilledApart | None) -> Usage:
    """Return token counts: what tools put into the prompt is input, and thoughts are output."""
    return Usage(
        input=_sum(told.promptTokenCount, told.toolUsePromptTokenCount),
        output=_sum(told.candidatesTokenCount, told.thoughtsTokenCount),
        cache_read=told.cachedContentTokenCount,
        reasoning=told.thoughtsTokenCount,
        apart=apart,
    )


def read_apart(frame: bytes) -> BilledApart | None:
    """Return what a frame's counts say of prices: which are tokens of sound or pictures, and the service tier.

    Nearly none says it, so the counts, which stand near the end, are searched for the words before the frame is read
    once more.
    """
    at = max(frame.rfind(b'"usageMetadata"'), frame.rfind(b'"usage_metadata"', -_NEAR))
    end = frame[max(at, 0) :]
    if not any(word in end for word in _WORDS):
        return None
    fields = _json.decode_lenient(frame)
    fields = fields[0] if isinstance(fields, list) and fields else fields
    counts = fields.get("usageMetadata", fields.get("usage_metadata")) if isinstance(fields, dict) else None
    if not isinstance(counts, dict):
        return None
    told = camel(counts)
    return apart_of(
        tier_of(told.get("serviceTier") or told.get("trafficType")),
        input_audio=_of_kind("AUDIO", told, "promptTokensDetails", "toolUsePromptTokensDetails"),
        output_audio=_of_kind("AUDIO", told, "candidatesTokensDetails"),
        output_image=_of_kind("IMAGE", told, "candidatesTokensDetails"),
        cache_read_audio=_of_kind("AUDIO", told, "cacheTokensDetails") if "cacheTokensDetails" in told else None,
    )


def _of_kind(modality: str, told: dict[str, Json], *names: str) -> int:
    lists = [details for name in names if isinstance(details := told.get(name), list)]
    parts = [camel(each) for details in lists for each in details if isinstance(each, dict)]
    return sum(count_of(part.get("tokenCount")) for part in parts if part.get("modality") == modality)


def _sum(one: int | None, other: int | None) -> int | None:
    """Return the sum of two counts, each of which may be unknown."""
    if one is None or other is None:
        return one if other is None else other
    return one + other


def _larger(one: int | None, other: int | None) -> int | None:
    return other if other is not None and (one or 0) <= other < MOST_TOKENS else one


def _later(one: int | None, other: int | None) -> int | None:
    return other if other is not None and (one is not None) <= other < MOST_TOKENS else one
