"""Conversations made up at random, from each protocol to each other: valid by the vendor's rules, and no word of them
is lost in silence."""

from __future__ import annotations

import json
from itertools import pairwise
from random import Random
from typing import Final

import pytest

from asked.asking import VENDORS, asked
from asked.made_talks import talk
from asked.vendor_rules import broken
from asked.writing import EVERYWHERE, chat, messages
from dragoman.types import ProtocolName
from profiles import IS_SOAK

TALKS: Final = 3_000 if IS_SOAK else 20
_SEED: Final = 14
#: Local models' templates: one system message first, then turns that alternate.
_LOCAL: Final = "vllm/qwen3.6"


def used(body: str, words: list[str]) -> list[str]:
    """The words that stand in what a client sends: some were made and not chosen."""
    return [word for word in words if word in body]


@pytest.mark.parametrize("client", EVERYWHERE)
@pytest.mark.parametrize("target", EVERYWHERE)
def test_a_conversation_is_valid_and_whole(client: ProtocolName, target: ProtocolName) -> None:
    dice = Random(_SEED)
    for _ in range(TALKS):
        body, words = talk(dice, client)
        sent = asked(client, body, VENDORS[target])
        assert not sent.refused, (json.dumps(body), sent.refused)
        if client != target:
            assert broken(target, sent.body) == [], (json.dumps(body), json.dumps(sent.body))
        text = json.dumps(sent.body)
        lost = [word for word in used(json.dumps(body), words) if word not in text]
        named = sum(said.code == "dropped" for said in sent.deviations)
        assert len(lost) <= named, (lost, sent.deviations, json.dumps(body))
        if client not in ("gemini-generate", "ollama-chat"):
            assert lost == [], (lost, sent.deviations, json.dumps(body))


@pytest.mark.parametrize("client", EVERYWHERE)
def test_turns_for_a_template_alternate(client: ProtocolName) -> None:
    dice = Random(_SEED)
    for _ in range(TALKS):
        body, words = talk(dice, client)
        sent = asked(client, body, _LOCAL)
        roles = [turn["role"] for turn in sent.body["messages"]]
        assert "system" not in roles[1:], json.dumps(body)
        pairs = [pair for pair in pairwise(roles) if pair[0] == pair[1] != "tool"]
        assert pairs == [], (json.dumps(body), json.dumps(sent.body))
        text = json.dumps(sent.body)
        assert [word for word in used(json.dumps(body), words) if word not in text] == []


@pytest.mark.parametrize("client", EVERYWHERE)
def test_a_host_that_wants_an_answer_after_results_gets_one(client: ProtocolName) -> None:
    dice = Random(_SEED)
    for _ in range(TALKS):
        body, _ = talk(dice, client)
        roles = [turn["role"] for turn in asked(client, body, "mistral/devstral").body["messages"]]
        assert ("tool", "user") not in list(pairwise(roles)), json.dumps(body)


def test_the_beginning_of_an_answer_is_named_where_claude_takes_none() -> None:
    asks = [{"role": "user", "content": "JSON, please."}, {"role": "assistant", "content": "{"}]
    for model, is_named in (("claude-opus-4-8", True), ("claude-sonnet-4-6", True), ("claude-sonnet-4-5", False)):
        for client, body in (("openai-chat", chat(messages=asks)), ("anthropic-messages", messages(messages=asks))):
            sent = asked(client, body, f"anthropic/{model}")  # type: ignore[arg-type]
            assert sent.body["messages"][-1]["role"] == "assistant", (client, model)
            found = [said.where for said in sent.deviations if said.code == "unwelcome"]
            assert found == (["messages[1]"] if is_named else []), (client, model, sent.deviations)
    assert not [said for said in asked("openai-chat", chat(messages=asks[:1]), VENDORS["anthropic-messages"]).deviations
                if said.code == "unwelcome"]  # fmt: skip


def test_a_turn_that_paused_is_no_beginning_of_an_answer() -> None:
    """The API asks for it as it came, to go on (`pause_turn`); a text would be a beginning."""
    paused = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    begun = {"type": "text", "text": "It"}
    cases: tuple[tuple[dict[str, object], list[str]], ...] = ((paused, []), (begun, ["messages[1]"]))
    for last, wanted in cases:
        talk = [{"role": "user", "content": "x"}, {"role": "assistant", "content": [last]}]
        body = {"model": "m", "max_tokens": 9, "messages": talk}
        sent = asked("anthropic-messages", body, VENDORS["anthropic-messages"])
        assert sent.body["messages"][1]["role"] == "assistant"
        assert [said.where for said in sent.deviations if said.code == "unwelcome"] == wanted
