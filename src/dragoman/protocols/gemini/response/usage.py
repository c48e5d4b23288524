"""Token counts of a response: several reports, of which each may lack some, become one."""

from __future__ import annotations

from dragoman.money import MOST_TOKENS
from dragoman.protocols.gemini.wire import UsageMetadata
from dragoman.types import Usage


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


def read_usage(told: UsageMetadata) -> Usage:
    """Return token counts: what tools put into the prompt is input, and thoughts are output."""
    return Usage(
        input=_sum(told.promptTokenCount, told.toolUsePromptTokenCount),
        output=_sum(told.candidatesTokenCount, told.thoughtsTokenCount),
        cache_read=told.cachedContentTokenCount,
        reasoning=told.thoughtsTokenCount,
    )


def _sum(one: int | None, other: int | None) -> int | None:
    """Return the sum of two counts, each of which may be unknown."""
    if one is None or other is None:
        return one if other is None else other
    return one + other


def _larger(one: int | None, other: int | None) -> int | None:
    return other if other is not None and (one or 0) <= other < MOST_TOKENS else one


def _later(one: int | None, other: int | None) -> int | None:
    return other if other is not None and (one is not None) <= other < MOST_TOKENS else one
