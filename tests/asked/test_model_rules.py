"""Settings of requests, made up at random, from each protocol to models of each version: what is sent is what the
model's page takes, and what is not sent as it was asked is told, or the request is refused with the place."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from asked.asking import asked
from asked.model_rules import GPTS, MODELS, refused
from asked.writing import CITY, EVERYWHERE, chat, function, gemini, messages, ollama, responses, tool
from dragoman.types import ProtocolName
from for_each import for_each
from profiles import IS_SOAK

REQUESTS: Final = 3_000 if IS_SOAK else 20
_SEED: Final = 15
_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_BUDGETS: Final = (-1, 0, 1, 64, 512, 1024, 9_000, 40_000, 200_000)


def body(dice: Random, client: ProtocolName) -> dict[str, Any]:
    """A request with settings that its protocol's page allows."""

    def some(**values: tuple[Any, ...]) -> dict[str, Any]:
        return {name: dice.choice(each) for name, each in values.items() if dice.random() < 0.4}

    user = {"role": "user", "content": "Hello."}
    has_tools = dice.random() < 0.5
    if client == "openai-chat":
        made = some(temperature=(0, 0.5, 1, 2), top_p=(0.1, 0.95), presence_penalty=(0, 1), frequency_penalty=(0, -1),
                    stop=("x", ["x", "y"]), max_tokens=(5, 900, 9_000), max_completion_tokens=(5, 9_000), seed=(1,),
                    reasoning_effort=_EFFORTS, logprobs=(True, False))  # fmt: skip
        made |= some(parallel_tool_calls=(True, False), tool_choice=("auto", "none", "required", {
            "type": "function", "function": {"name": "look"}}))  # fmt: skip
        return chat(user, **made, **({"tools": [function()]} if has_tools else {}))
    if client == "openai-responses":
        made = some(temperature=(0, 0.5, 1, 2), top_p=(0.1, 0.95, 1), max_output_tokens=(16, 900, 9_000),
                    reasoning=tuple({"effort": effort} for effort in _EFFORTS), top_logprobs=(3,),
                    parallel_tool_calls=(True, False))  # fmt: skip
        made |= some(tool_choice=("auto", "none", "required", {"type": "function", "name": "look"}))
        tools = {"tools": [{"type": "function", "name": "look", "parameters": CITY}]} if has_tools else {}
        return {**responses({"role": "user", "content": "Hello."}), **made, **tools}
    if client == "anthropic-messages":
        thinking = ({"type": "adaptive"}, {"type": "disabled"}, {"type": "adaptive", "display": "summarized"},
                    *({"type": "enabled", "budget_tokens": budget} for budget in _BUDGETS[5:]))  # fmt: skip
        made = some(temperature=(0, 0.5, 1), top_p=(0.1, 0.95, 1), top_k=(1, 40), stop_sequences=(["x"],),
                    thinking=thinking, output_config=tuple({"effort": effort} for effort in _EFFORTS[2:]))  # fmt: skip
        choices = (*({"type": kind} for kind in ("auto", "any", "none")), {"type": "tool", "name": "look"})
        return messages(user, **made, **some(tool_choice=choices, max_tokens=(5, 900, 9_000)),
                        **({"tools": [tool()]} if has_tools else {}))  # fmt: skip
    if client == "gemini-generate":
        thinking = (*({"thinkingBudget": budget} for budget in _BUDGETS), {"includeThoughts": True},
                    *({"thinkingLevel": level} for level in ("MINIMAL", "LOW", "medium", "high")))  # fmt: skip
        config = some(temperature=(0, 0.5, 1, 2), topP=(0.1, 0.95), topK=(1, 40), maxOutputTokens=(5, 9_000), seed=(1,),
                      stopSequences=(["x"],), presencePenalty=(0, 1), thinkingConfig=thinking)  # fmt: skip
        calling = some(toolConfig=tuple({"functionCallingConfig": {"mode": mode}} for mode in ("AUTO", "ANY", "NONE")))
        tools = {"tools": [{"functionDeclarations": [{"name": "look"}]}]} if has_tools else {}
        return gemini({"role": "user", "parts": [{"text": "Hello."}]}, generationConfig=config, **calling, **tools)
    odds = some(logprobs=(True,), top_logprobs=(3,))
    options = some(temperature=(0, 0.5, 1, 2), top_p=(0.1, 0.95), top_k=(1, 40), num_predict=(5, 9_000), seed=(1,),
                   stop=(["x"],), presence_penalty=(0, 1), num_ctx=(4096,))  # fmt: skip
    think = some(think=(True, False, "low", "medium", "high", "max"))
    return ollama(user, options=options, **think, **odds, **({"tools": [function()]} if has_tools else {}))


#: Settings, by their words in any protocol, in what is sent: one that is gone must be told of.
SAID: Final = {
    "temperature": ("temperature",), "top_p": ("top_p", "topP"), "stop": ("stop", "stop_sequences", "stopSequences"),
    "seed": ("seed",), "presence_penalty": ("presence_penalty", "presencePenalty"), "top_k": ("top_k", "topK"),
    "frequency_penalty": ("frequency_penalty", "frequencyPenalty"),
    "logprobs": ("logprobs", "top_logprobs", "responseLogprobs"),
    "tool_choice": ("tool_choice", "toolConfig"), "parallel_tool_calls": ("parallel", "disable_parallel_tool_use"),
}  # fmt: skip
#: What says nothing, or what is so anyway.
USUAL: Final = (None, False, 0, 1, "auto", {"type": "auto"}, {"functionCallingConfig": {"mode": "AUTO"}}, "none",
                {"type": "none"}, {"functionCallingConfig": {"mode": "NONE"}}, True)  # fmt: skip


@for_each("client", EVERYWHERE)
@for_each("target", list(MODELS))
def test_what_a_model_refuses_is_not_sent_and_a_setting_that_is_not_sent_is_told(
    client: ProtocolName, target: ProtocolName
) -> None:
    dice = Random(_SEED)
    for _ in range(REQUESTS):
        request = body(dice, client)
        given = {**request, **request.get("generationConfig", {}), **request.get("options", {})}
        for provider, model in MODELS[target]:
            sent = asked(client, request, f"{provider}/{model}")
            shown = (model, request, sent)
            assert not sent.refused, shown
            assert refused(target, sent.body, model) == [], shown
            text = json.dumps(sent.body)
            for name, words in SAID.items():
                value = next((given[word] for word in words if word in given), None)
                if value in USUAL or any(f'"{word}' in text for word in words):
                    continue
                told = [said.where for said in sent.deviations]
                assert any(word in where for word in (*words, name, "parallel_tools") for where in told), (name, *shown)


def test_stop_words_are_sent_to_every_model_that_takes_them() -> None:
    request = chat({"role": "user", "content": "Hello."}, stop=["x"])
    for model, rules in GPTS.items():
        sent = asked("openai-chat", request, f"openai-chat/{model}").body
        assert ("stop" in sent) == (rules.stops or not rules.efforts), model


def test_a_model_that_does_not_think_is_asked_for_no_sealed_thinking() -> None:
    for included in (["reasoning.encrypted_content"], ["reasoning.encrypted_content", "message.output_text.logprobs"]):
        sent = asked("openai-responses", responses(include=included), "openai/gpt-4.1")
        assert sent.body.get("include", []) == included[1:]


def test_the_effort_that_is_sent_is_told_once_and_is_the_one_that_is_told() -> None:
    for model in GPTS:
        for effort in _EFFORTS:
            for tools in ({}, {"tools": [function()]}):
                sent = asked("openai-chat", chat(reasoning_effort=effort, **tools), f"openai-chat/{model}")
                told = [said.seen for said in sent.deviations if said.where == "params.reasoning.effort"]
                assert len(told) <= 1, (model, effort, told)
                written = sent.body.get("reasoning_effort")
                assert written is None or [each.partition(":")[0] for each in told] == [written] * (written != effort)


def test_what_else_a_client_says_of_thinking_is_sent_or_told() -> None:
    for model in ("claude-3-7-sonnet-20250219", "claude-sonnet-4-5", "claude-opus-4-8", "claude-opus-5-5"):
        for kind in ({"type": "adaptive"}, {"type": "enabled", "budget_tokens": 2_000}, {"type": "disabled"}):
            request = messages(max_tokens=9_000, thinking={**kind, "display": "omitted"})
            sent = asked("anthropic-messages", request, f"anthropic/{model}")
            is_sent = sent.body.get("thinking", {}).get("display") == "omitted"
            assert is_sent != sent.says("thinking.display"), (model, kind, sent)
