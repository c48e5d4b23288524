"""What Claude models take of sampling, thinking, efforts and forced calls, by their version.

Spec: https://platform.claude.com/docs/en/about-claude/models/migration-guide and …/models/opus-5-5/whats-new-opus-5-5,
as of Sonnet, Haiku and Fable (read 2026-11-26). The API refuses a whole request for one setting that its model does not
take. A model of an unknown name takes everything.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from dragoman._json import Json
from dragoman.types import Effort

Version: TypeAlias = tuple[int, int]

_VERSION: Final = re.compile(r"claude-(?:[a-z]+-)?([0-9]{1,2})(?:[-.]([0-9]{1,2}))?(?![0-9])")
#: The first versions that take one of temperature and top_p; an effort, and no beginning of an answer; neither samplers
#: nor a budget.
_ONE_SAMPLER: Final = (4, 1)
_ADAPTIVE: Final = (4, 6)
_NO_SAMPLER: Final = (4, 7)
#: Of the models before, the one that takes an effort beside a budget.
_EARLY_EFFORT: Final = re.compile(r"opus-4[-.]5|4[-.]5-opus")
#: Models that think always, those that can be told to think between calls alone, and those that cannot be made to call.
_ALWAYS_THINKS: Final = re.compile(r"(?:fable|mythos)-5|opus-5[-.]5(?![0-9])")
_THINKS_BETWEEN: Final = re.compile(r"sonnet-5[-.]5(?![0-9])")
_NEVER_FORCED: Final = re.compile(r"(?:(?:fable|mythos)-5[-.][1-9]|(?:opus|sonnet)-5[-.]5)(?![0-9])")


def version_of(model: str) -> Version | None:
    """Return the version in a model's name, such as (4, 8) of `claude-opus-4-8`; None if it names none."""
    found = _VERSION.search(model)
    return None if found is None else (int(found[1]), int(found[2] or 0))


def refused_samplers(
    version: Version | None, temperature: float | None, top_p: float | None, top_k: int | None, *, is_thinking: bool
) -> dict[str, str]:
    """Return the names of the settings that the model refuses in this request, and why."""
    refused: dict[str, str] = {}
    if version is None and not is_thinking:
        return refused
    if is_thinking:
        beside = {"temperature": temperature not in (None, 1), "top_p": top_p is not None and top_p < 0.95}
        beside["top_k"] = top_k is not None
        refused = {name: "not beside thinking" for name, is_refused in beside.items() if is_refused}
    if version is not None and version >= _NO_SAMPLER:
        asked = {"temperature": temperature not in (None, 1), "top_p": top_p is not None, "top_k": top_k is not None}
        refused = {name: "this model samples in its own way" for name, is_asked in asked.items() if is_asked} | refused
        return refused
    told = [name for name, value in (("temperature", temperature), ("top_p", top_p)) if value is not None]
    if version is not None and version >= _ONE_SAMPLER and len(told) > 1 and refused.keys().isdisjoint(told):
        refused["temperature" if temperature == 1 else "top_p"] = "this model takes one of temperature and top_p"
    return refused


def takes_beginning(version: Version | None) -> bool:
    """Return whether the model goes on with an answer that the request begins."""
    return version is None or version < _ADAPTIVE


def takes_budget(version: Version | None) -> bool:
    """Return whether the model can be told how many tokens to think."""
    return version is None or version < _NO_SAMPLER


def takes_effort(version: Version | None) -> bool:
    """Return whether the model can be told to think as much as it likes, or with an effort."""
    return version is None or version >= _ADAPTIVE


def nearest_effort(model: str, effort: Effort) -> Effort | None:
    """Return the effort that a model takes in place of another; None: it takes none."""
    version = version_of(model)
    if version is None or version >= _NO_SAMPLER:
        return effort
    if version >= _ADAPTIVE:
        return "high" if effort == "xhigh" else effort
    if _EARLY_EFFORT.search(model) is None:
        return None
    return "high" if effort in ("xhigh", "max") else effort


def takes_thinking(model: str, thinking: Json) -> bool:
    """Return whether the model takes a client's own `thinking`."""
    version = version_of(model)
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if kind == "disabled":
        return thinking_off(model) == "disabled"
    return takes_budget(version) if kind == "enabled" else takes_effort(version) if kind == "adaptive" else True


def thinking_off(model: str) -> str:
    """Return the type of `thinking` with which the model thinks least; "" where it cannot be told."""
    if _ALWAYS_THINKS.search(model) is not None:
        return ""
    return "disabled" if _THINKS_BETWEEN.search(model) is None else "between_tools"


def takes_forced_call(model: str) -> bool:
    """Return whether the model can be made to call a tool."""
    return _NEVER_FORCED.search(model) is None
