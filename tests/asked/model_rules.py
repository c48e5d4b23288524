"""What the vendors' pages and error messages say of a model's version: `refused` gives each rule that a body breaks.

https://platform.claude.com/docs/en/about-claude/models/migration-guide, …/build-with-claude/effort,
…/extended-thinking and …/models/opus-5-5/whats-new-opus-5-5, as of Sonnet, Haiku and Fable;
https://developers.openai.com/api/docs/guides/latest-model; https://ai.google.dev/gemini-api/docs/thinking
(read 2026-11-26). By model, not by a rule for many: so a table that is wrong for one is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from dragoman.types import ProtocolName


class Claude(NamedTuple):
    """What a model takes. `samplers`: how many of temperature and top_p. `off`: what turns thinking off, if that can
    be. `forced`: whether a call can be forced.
    """

    efforts: str
    budget: bool
    adaptive: bool
    samplers: int
    prefill: bool
    off: str = "disabled"
    forced: bool = True


class Gpt(NamedTuple):
    """What a model takes. `unasked`: the effort without one. `tools_in_chat`: beside thinking, as `stops`."""

    efforts: str
    unasked: str
    tools_in_chat: bool = True
    stops: bool = False


CLAUDES: Final = {
    "claude-3-7-sonnet-latest": Claude("", True, False, 2, True),
    "claude-haiku-4-5": Claude("", True, False, 1, True),
    "claude-sonnet-4-5-20250929": Claude("", True, False, 1, True),
    "claude-opus-4-5": Claude("low medium high", True, False, 1, True),
    "claude-opus-4-6": Claude("low medium high max", True, True, 1, False),
    "claude-sonnet-4-6": Claude("low medium high max", True, True, 1, False),
    "claude-opus-4-7": Claude("low medium high xhigh max", False, True, 0, False),
    "claude-opus-4-8": Claude("low medium high xhigh max", False, True, 0, False),
    "claude-opus-5": Claude("low medium high xhigh max", False, True, 0, False),
    "claude-opus-5-5": Claude("low medium high xhigh max", False, True, 0, False, "", False),
    "claude-sonnet-5-5": Claude("low medium high xhigh max", False, True, 0, False, "between_tools", False),
    "claude-haiku-5-5": Claude("low medium high xhigh max", False, True, 0, False),
    "claude-fable-5": Claude("low medium high xhigh max", False, True, 0, False, ""),
    "claude-fable-5-1": Claude("low medium high xhigh max", False, True, 0, False, "", False),
}  # fmt: skip
GPTS: Final = {
    "gpt-4.1": Gpt("", "none"),
    "gpt-4o-mini": Gpt("", "none"),
    "gpt-5-chat-latest": Gpt("", "none"),
    "gpt-5.1-chat-latest": Gpt("medium", "medium"),
    "gpt-5.3-chat-latest": Gpt("medium", "medium"),
    "o1": Gpt("low medium high", "medium", stops=True),
    "o3-mini": Gpt("low medium high", "medium", stops=True),
    "o3": Gpt("low medium high", "medium"),
    "gpt-5": Gpt("minimal low medium high", "medium"),
    "gpt-5-mini": Gpt("minimal low medium high", "medium"),
    "gpt-5-codex": Gpt("low medium high", "medium"),
    "gpt-5.1": Gpt("none low medium high", "none"),
    "gpt-5.1-codex-max": Gpt("low medium high xhigh", "medium"),
    "gpt-5.2": Gpt("none low medium high xhigh", "none"),
    "gpt-5.4": Gpt("none low medium high xhigh", "none", False),
    "gpt-5.5": Gpt("none low medium high xhigh", "medium", False),
    "gpt-5.6-terra": Gpt("none low medium high xhigh max", "medium", False),
    "gpt-6-sol": Gpt("none low medium high xhigh max", "medium", False),
    "gpt-6-astra": Gpt("low medium high xhigh max", "medium"),
}
#: Levels, or the least and the most of a budget, and whether thinking can be turned off by it.
GEMINIS: Final[dict[str, tuple[str, int, int, bool]]] = {
    "gemini-2.5-pro": ("", 128, 32_768, False),
    "gemini-2.5-flash": ("", 1, 24_576, True),
    "gemini-2.5-flash-lite": ("", 512, 24_576, True),
    "gemini-3-pro-preview": ("low high", 128, 32_768, False),
    "gemini-3.1-pro-preview": ("low medium high", 128, 32_768, False),
    "gemini-3.6-flash": ("minimal low medium high", 1, 32_768, False),
    "gemini-3.8-flash": ("low medium high", 1, 32_768, False),
    "gemini-3.1-flash-lite": ("minimal low medium high", 512, 32_768, False),
    "gemini-3-flash": ("minimal low medium high", 1, 32_768, False),
}
MODELS: Final[dict[ProtocolName, tuple[tuple[str, str], ...]]] = {
    "anthropic-messages": tuple(("anthropic", model) for model in CLAUDES),
    "openai-chat": tuple(("openai-chat", model) for model in GPTS),
    "openai-responses": tuple(("openai", model) for model in GPTS),
    "gemini-generate": tuple(("gemini", model) for model in GEMINIS),
}
_SAMPLING: Final = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}


def refused(protocol: ProtocolName, body: dict[str, Any], model: str) -> list[str]:
    """The rules of a model that a body breaks, in words."""
    if protocol == "anthropic-messages":
        return [*_claude(body, CLAUDES[model])]
    if protocol == "gemini-generate":
        return [*_gemini(body, *GEMINIS[model])]
    return [*_gpt(body, GPTS[model], is_old=model[0] == "o")]


def _claude(body: dict[str, Any], rules: Claude) -> Iterator[str]:
    thinking = body.get("thinking") or {"type": "disabled"}
    effort = (body.get("output_config") or {}).get("effort")
    is_thinking = thinking["type"] != "disabled"
    if thinking["type"] == "enabled":
        if not rules.budget:
            yield "thinking.type.enabled is not supported for this model"
        if not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
            yield f"budget_tokens {thinking['budget_tokens']} of max_tokens {body['max_tokens']}"
    if "thinking" in body and thinking["type"] not in ("enabled", "adaptive", rules.off):
        yield f"thinking.type.{thinking['type']} is not supported for this model"
    if not rules.forced and body.get("tool_choice", {}).get("type") in ("any", "tool"):
        yield "tool_choice forces tool use, which this model does not support"
    if thinking["type"] == "adaptive" and not rules.adaptive:
        yield "adaptive thinking is not supported on this model"
    if effort is not None and effort not in rules.efforts.split():
        yield f"effort {effort} is not supported by this model"
    if is_thinking and body.get("tool_choice", {}).get("type") in ("any", "tool"):
        yield "thinking may not be enabled when tool_choice forces tool use"
    if is_thinking and (body.get("temperature", 1) != 1 or "top_k" in body or body.get("top_p", 1) < 0.95):
        yield "sampling beside thinking"
    told = [name for name in ("temperature", "top_p") if name in body]
    if rules.samplers == 0 and (body.get("temperature", 1) != 1 or {"top_p", "top_k"} & body.keys()):
        yield "temperature, top_p or top_k is deprecated for this model"
    if len(told) > max(rules.samplers, 1):
        yield "temperature and top_p cannot both be specified"
    if not 0 <= body.get("temperature", 0) <= 1 or not 0 <= body.get("top_p", 0) <= 1:
        yield "temperature or top_p out of range"
    if "tool_choice" in body and not body.get("tools"):
        yield "tool_choice without tools"


def _gpt(body: dict[str, Any], rules: Gpt, *, is_old: bool) -> Iterator[str]:
    effort = body.get("reasoning_effort", body.get("reasoning", {}).get("effort"))
    if effort is not None and effort not in rules.efforts.split():
        yield f"unsupported value: {effort}"
    if "messages" in body and effort == "max":
        yield "unsupported value: max, in chat completions"
    is_thinking = (effort or rules.unasked) != "none"
    if is_thinking:
        for name, usual in _SAMPLING.items():
            if body.get(name, usual) != usual:
                yield f"unsupported parameter: {name}"
        yield from (f"unsupported parameter: {name}" for name in ("logprobs", "top_logprobs") if body.get(name))
        yield from (f"unsupported: {name}" for name in body.get("include", ()) if name.endswith("logprobs"))
    if rules.efforts and not rules.stops and body.get("stop") and effort != "none":
        yield "unsupported parameter: stop"
    if "messages" in body and body.get("tools") and is_thinking and not rules.tools_in_chat:
        yield "function tools with reasoning_effort are not supported"
    if is_old and "parallel_tool_calls" in body:
        yield "unsupported parameter: parallel_tool_calls"
    if "max_tokens" in body:
        yield "unsupported parameter: max_tokens"


def _gemini(body: dict[str, Any], levels: str, least: int, most: int, is_switch: bool) -> Iterator[str]:
    thinking = body.get("generationConfig", {}).get("thinkingConfig", {})
    level, budget = thinking.get("thinkingLevel"), thinking.get("thinkingBudget")
    if level is not None and budget is not None:
        yield "thinking_budget and thinking_level are not supported together"
    if level is not None and level.lower() not in levels.split():
        yield f"thinking level {level} is not supported for this model"
    if budget is not None and budget != -1 and not (budget == 0 and is_switch) and not least <= budget <= most:
        yield f"thinking budget {budget}: expected {least} to {most}"
