"""Quotas at the gateway: what is refused and how it is told, what is set apart, what an attempt costs in the end."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reliability.caller import spoken

from conversations import reply
from dragoman._json import Raw, encode_members
from dragoman.gateway import admission
from dragoman.gateway.attempt_bounds import bound_of
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.limits.accounts import Scopes
from dragoman.ledger.reports.checking import check
from dragoman.protocols import PROTOCOLS
from dragoman.types import Usage
from gateway.recording import recording, rows
from gateway.running import Running, stream_of, whole_of, wire
from scripted import chunk, head, whole

CHAT = "openai-chat"
PRICES = "".join(f'[prices."{name}/model-1"]\ninput = 2.5\noutput = 10\n' for name in PROTOCOLS)
NANO = 120 * 2_500 + 34 * 10_000  # of one answer
KEY = "a-key-of-some-length-and-chance-0123456789"
DIGEST = hashlib.sha256(KEY.encode()).hexdigest()


def quota(**fields: object) -> str:
    return "[[quotas]]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())


def ask(
    running: Running, client: str = CHAT, model: str = "", *, stream: bool = True, key: str = "", most: int | None = 100
) -> tuple[int, dict[str, str], bytes]:
    """One request; `most`: tokens of its answer, None: it does not say."""
    path, body = spoken(client, model or f"{CHAT}/model-1", stream=stream)
    fields = json.loads(body)
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig", "options"):
        fields.pop(name, None)
    if most is not None:
        if client == "gemini-generate":
            fields["generationConfig"] = {"maxOutputTokens": most}
        elif client == "ollama-chat":
            fields["options"] = {"num_predict": most}
        else:
            fields["max_output_tokens" if client == "openai-responses" else "max_tokens"] = most
    body = json.dumps(fields).encode()
    return running.request("POST", path, body, {"authorization": f"Bearer {key}"} if key else {})


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def settled(folder: LedgerFolder, count: int) -> list[dict[str, Any]]:
    until(lambda: len(rows(folder)) >= count and all(row["state"] != "reserved" for row in rows(folder)))
    assert check(folder).differences == []
    return rows(folder)


def leased(running: Running, scopes: Scopes) -> list[int]:
    """What is leased and spent of the accounts of a request, in the quotas' order."""
    ledger = running.gateway._ledger
    assert ledger is not None and ledger.admission is not None and ledger._budgets is not None
    accounts = [charge.account for charge in ledger.admission.accounts.charges(scopes, time.time())]
    totals = ledger._budgets._counters.totals(accounts)  # type: ignore[attr-defined]
    return [totals.get(account, 0) for account in accounts]


@pytest.mark.parametrize("client", PROTOCOLS)
def test_a_budget_that_is_spent_is_told_in_the_clients_form_and_nobody_is_asked(tmp_path: Path, client: str) -> None:
    with recording(tmp_path, quota(scope="all", usd=0.02, per="month") + PRICES) as (running, folder, _):
        running.answer(whole_of(CHAT, reply("text")))
        answered = 0
        while (found := ask(running, client, stream=False))[0] == 200:
            answered += 1
        status, headers, body = found
        assert 1 <= answered <= 0.02 * 1e9 / NANO
        assert len(running.provider.requests) == answered
        assert status == (429 if client in (CHAT, "openai-responses") else 402)
        assert headers["x-should-retry"] == "false" and b"budget" in body and "retry-after" not in headers
        assert b"http://" not in body and b"needs credit" not in body, "the provider has nothing to do with it"
        found_rows = settled(folder, answered)
        assert len(found_rows) == answered
        assert [row["nano"] for row in found_rows] == [NANO] * answered
        assert all(row["reserved"] >= row["nano"] and row["accounts"] for row in found_rows)
        # T5: what was set apart is back, and what is left is less than one request may cost.
        until(lambda: leased(running, Scopes(target=f"{CHAT}/model-1")) == [NANO * answered])
        assert NANO * answered + found_rows[0]["reserved"] > 0.02 * 1e9


@pytest.mark.parametrize("client", PROTOCOLS)
def test_a_limit_of_requests_says_when_to_come_again(tmp_path: Path, client: str) -> None:
    with recording(tmp_path, quota(scope="all", requests=2, per="hour")) as (running, _, _):
        running.answer(whole_of(CHAT, reply("text")))
        assert [ask(running, client, stream=False)[0] for _ in range(2)] == [200, 200]
        status, headers, body = ask(running, client, stream=False)
        assert status == 429 and b"limit" in body
        assert 0 < int(headers["retry-after"]) <= 3_600
        assert b"http://" not in body, "the provider has nothing to do with it"


def test_a_request_counts_once_however_often_it_is_tried(tmp_path: Path) -> None:
    """T4, T21: requests are a client's, not attempts; rows are attempts."""
    more = "[http]\nretries = 1\n" + quota(scope="all", requests=1, per="hour")
    with recording(tmp_path, more) as (running, folder, _):
        running.answer(whole(b"{}", 503, "application/json", "retry-after: 0"), stream_of(CHAT, reply("text")))
        assert ask(running)[0] == 200
        assert len(settled(folder, 2)) == 2
        assert ask(running)[0] == 429


def test_a_request_counts_in_the_period_in_which_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its second try is in the next hour, of which it takes nothing. Each try looks for its quotas once."""
    looks: list[float] = []

    class Clock:
        @staticmethod
        def time() -> float:
            looks.append(time.time() + 3_600 * bool(looks))
            return looks[-1]

    monkeypatch.setattr(admission, "time", Clock)
    with recording(tmp_path, "[http]\nretries = 1\n" + quota(scope="all", requests=1, per="hour")) as (running, _, _):
        answers = [whole(b"{}", 503, "application/json", "retry-after: 0"), stream_of(CHAT, reply("text"))]
        running.answer(*answers, stream_of(CHAT, reply("text")))
        assert [ask(running)[0] for _ in range(2)] == [200, 200]
        assert len(looks) == 3


def test_what_is_wrong_or_unknown_takes_nothing_of_a_quota(tmp_path: Path) -> None:
    """T22: a quota is taken after the request was read and its target found."""
    with recording(tmp_path, quota(scope="all", requests=1, per="hour")) as (running, _, _):
        running.answer(stream_of(CHAT, reply("text")))
        assert running.request("POST", "/v1/chat/completions", b"{no json")[0] == 400
        assert ask(running, model="nobody/knows-it")[0] == 404
        assert running.request("GET", "/v1/models")[0] == 200
        assert ask(running)[0] == 200


def test_at_a_time(tmp_path: Path) -> None:
    """T20: a place is free again when its request ends, whoever ended it."""
    with recording(tmp_path, quota(scope="all", concurrent=1) + PRICES) as (running, _, _):
        data = wire(CHAT, reply("text"))
        running.answer([head(200, "text/event-stream"), chunk(data[:80]), "hold"])
        thread = threading.Thread(target=lambda: _left(running), daemon=True)
        thread.start()
        until(lambda: len(running.provider.requests) == 1)
        status, headers, _ = ask(running)
        assert (status, headers["retry-after"]) == (429, "1")
        thread.join(20)
        running.answer(stream_of(CHAT, reply("text")))
        until(lambda: ask(running)[0] == 200)


def _left(running: Running) -> None:
    """A client that goes after a second."""
    import socket

    from reliability.caller import rendered

    path, body = spoken(CHAT, f"{CHAT}/model-1", stream=True)
    with socket.create_connection(("127.0.0.1", running.gateway.port)) as connection:
        connection.sendall(rendered(path, body))
        connection.settimeout(1.0)
        try:
            while connection.recv(4_096):
                pass
        except TimeoutError:
            return


def test_who_goes_under_a_budget_leaves_the_bound(tmp_path: Path) -> None:
    """T10, T11, T17: the provider may go on to the end that it was allowed."""
    with recording(tmp_path, quota(scope="all", usd=1, per="month") + PRICES) as (running, folder, _):
        data = wire(CHAT, reply("text"))
        running.answer([head(200, "text/event-stream"), chunk(data[:80]), "hold"])
        _left(running)
        [row] = settled(folder, 1)
        assert (row["state"], row["reason"], row["nano"]) == ("estimated", "cancelled", row["reserved"])
        until(lambda: leased(running, Scopes(target=f"{CHAT}/model-1")) == [row["nano"]])


def test_who_got_nothing_pays_nothing(tmp_path: Path) -> None:
    """T17: a refusal and a failure of the provider give back what was set apart."""
    with recording(tmp_path, quota(scope="all", usd=1, per="month") + PRICES) as (running, folder, _):
        for status in (400, 429, 500, 503):
            running.answer(whole(b'{"error":{"message":"no"}}', status))
            ask(running)
        settled(folder, 4)
        until(lambda: leased(running, Scopes(target=f"{CHAT}/model-1")) == [0])


def test_a_target_without_a_price_is_refused_where_dollars_count(tmp_path: Path) -> None:
    """T13."""
    with recording(tmp_path, quota(scope="all", usd=1, per="month")) as (running, folder, _):
        running.answer(stream_of(CHAT, reply("text")))
        path, body = spoken(CHAT, "far/model-1", stream=True)
        status, _, told = running.request("POST", path, body)
        assert status == 404 or b"price" in told
        assert rows(folder) == []


def test_the_next_target_of_a_route_is_asked_where_one_has_spent_its_own_budget(tmp_path: Path) -> None:
    route = f'[routes.both]\ntargets = ["{CHAT}/model-1", "anthropic-messages/model-1"]\n'
    limit = quota(scope=f"target:{CHAT}/model-1", requests=1, per="hour")
    with recording(tmp_path, limit + route + PRICES) as (running, folder, _):
        running.answer(stream_of(CHAT, reply("text")), stream_of("anthropic-messages", reply("text")))
        assert [ask(running, model="both")[0] for _ in range(2)] == [200, 200]
        assert [row["target"].partition("/")[0] for row in settled(folder, 2)] == [CHAT, "anthropic-messages"]
        health = running.gateway._client.target_states.health_table
        assert not health.is_open(f"{CHAT}/model-1")


def test_our_own_refusals_open_no_circuit_breaker_and_are_not_tried_again(tmp_path: Path) -> None:
    more = "[http]\nretries = 2\n" + quota(scope="all", requests=0, per="minute")
    with recording(tmp_path, more) as (running, folder, _):
        for _ in range(12):
            assert ask(running)[0] == 429
        assert running.provider.requests == [] and rows(folder) == []
        assert not running.gateway._client.target_states.health_table.is_open(f"{CHAT}/model-1")


def test_each_key_has_its_own_and_the_team_has_one(tmp_path: Path) -> None:
    """T7, T14: every path that reaches a provider falls under a quota."""
    other = "another-key-of-some-length-and-chance-987654"
    digests = [hashlib.sha256(each.encode()).hexdigest() for each in (KEY, other)]
    more = "".join(
        f'[keys.k{number}]\ndigests = ["sha256:{digest}"]\nteam = "research"\n' for number, digest in enumerate(digests)
    )
    more += quota(scope="key:*", requests=2, per="hour") + quota(scope="team:research", requests=3, per="hour")
    with recording(tmp_path, more) as (running, _, _):
        running.answer(whole_of(CHAT, reply("text")))
        assert [ask(running, stream=False, key=KEY)[0] for _ in range(3)] == [200, 200, 429]
        running.answer(whole(json.dumps({"object": "list", "model": "m", "data": [], "usage": {}}).encode()))
        vectors = json.dumps({"model": f"{CHAT}/model-1", "input": "words"}).encode()
        found = [running.request("POST", "/v1/embeddings", vectors, {"authorization": f"Bearer {other}"})[0]
                 for _ in range(2)]  # fmt: skip
        assert found[1] == 429


def test_an_explicit_limit_of_the_request_is_what_is_set_apart(tmp_path: Path) -> None:
    """T15, T16."""
    with recording(tmp_path, quota(scope="all", usd=100, per="month") + PRICES) as (running, folder, _):
        running.answer(stream_of(CHAT, reply("text")))
        for most in (10, 1_010, None):
            assert ask(running, most=most)[0] == 200
        short, long, unsaid = (row["reserved"] for row in settled(folder, 3))
        assert 1_000 * 10_000 <= long - short <= 1_000 * 10_000 + 20 * 2_500
        assert unsaid - short > 100_000 * 10_000


def test_what_is_bounded_by_its_fields_is_written_from_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where bytes pass, but for the model's name; what is translated has no fields."""
    seen: list[tuple[bytes, dict[str, Raw] | None]] = []

    def watched(body: bytes, *args: Any, fields: dict[str, Raw] | None, **more: Any) -> Usage:
        seen.append((body, fields))
        return bound_of(body, *args, fields=fields, **more)

    monkeypatch.setattr(admission, "bound_of", watched)
    more = quota(scope="all", usd=100, per="month") + PRICES + f'[models."{CHAT}/clean-*"]\nclean = true\n'
    with recording(tmp_path, more + f'[prices."{CHAT}/clean-1"]\ninput = 2.5\noutput = 10\n') as (running, _, _):
        running.answer(whole_of(CHAT, reply("text")))
        for client, model in ((CHAT, "clean-1"), (CHAT, "model-1"), ("anthropic-messages", "model-1")):
            assert ask(running, client, f"{CHAT}/{model}", stream=False)[0] == 200
    assert [fields is not None for _, fields in seen] == [True, False, False]
    assert all(fields is None or encode_members(fields) == body for body, fields in seen)


def test_alerts_are_told_once_a_share(tmp_path: Path) -> None:
    with recording(tmp_path, quota(scope="all", requests=4, per="hour", alerts=[0.5, 1.0])) as (running, _, _):
        told: list[str] = []
        ledger = running.gateway._ledger
        assert ledger is not None and ledger.admission is not None
        ledger.admission._tell = told.append
        running.answer(stream_of(CHAT, reply("text")))
        assert [ask(running)[0] for _ in range(5)] == [200] * 4 + [429]
        assert [line.partition("%")[0] for line in told] == ["50", "100"]


def test_nothing_is_asked_for_without_a_quota(tmp_path: Path) -> None:
    with recording(tmp_path) as (running, folder, _):
        running.answer(stream_of(CHAT, reply("text")))
        assert ask(running)[0] == 200
        assert running.gateway._ledger is not None and running.gateway._ledger.admission is None
        [row] = settled(folder, 1)
        assert (row["accounts"], row["reserved"], row["expected"]) == ("", None, None)
        assert not (folder.root / "counters.sqlite").exists()


def told(usage: dict[str, Any] | None, **more: Any) -> list[Any]:
    message = {"role": "assistant", "content": "Hello you there, and so on"}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}
    answer |= more
    return whole(json.dumps(answer).encode())


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": -5, "completion_tokens": -7},
        {"prompt_tokens": 5, "completion_tokens": 2**62},
        {"prompt_tokens": 2**70, "completion_tokens": 3},
        {"prompt_tokens": 2**40, "completion_tokens": 2**40},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": 5, "completion_tokens": 7, "cost": -1},
        {"prompt_tokens": 5, "completion_tokens": 7, "cost": 1e300},
    ],
)
def test_a_usage_that_nobody_can_mean_is_no_free_answer(tmp_path: Path, usage: dict[str, Any]) -> None:
    limits = quota(scope="all", usd=1, per="month") + quota(scope="all", tokens=1_000_000, per="month")
    with recording(tmp_path, limits + PRICES) as (running, folder, _):
        running.answer(told(usage))
        assert ask(running, stream=False)[0] == 200
        [row] = settled(folder, 1)
        assert 0 < row["nano"] <= row["reserved"]
        assert 0 < row["input"] + row["output"] <= row["reserved_tokens"]
        tokens = row["input"] + row["output"] if row["charged_tokens"] is None else row["charged_tokens"]
        until(lambda: leased(running, Scopes(target=f"{CHAT}/model-1")) == [row["nano"], tokens])


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 0, "completion_tokens": 0}])
def test_an_answer_whose_usage_nobody_says_costs_what_a_quota_bounds(tmp_path: Path, usage: Any) -> None:
    limits = quota(scope="all", usd=1, per="month") + quota(scope="all", tokens=1_000_000, per="month")
    with recording(tmp_path, limits + PRICES) as (running, folder, _):
        running.answer(told(usage))
        assert ask(running, stream=False)[0] == 200
        [row] = settled(folder, 1)
        assert (row["state"], row["reason"]) == ("estimated", "no_usage")
        assert (row["nano"], row["charged_tokens"]) == (row["reserved"], row["reserved_tokens"])


def test_an_unknown_cost_that_a_quota_allows_is_not_0(tmp_path: Path) -> None:
    with recording(tmp_path, quota(scope="all", usd=1, per="month", unpriced="allow")) as (running, folder, _):
        data = wire(CHAT, reply("text"))
        cut = [head(200, "text/event-stream"), chunk(data[: data.index(b"Hello") + 20])]
        for steps, stream in ((told(None), False), (cut, True)):
            running.answer(steps)
            ask(running, stream=stream)
        assert [(row["state"], row["nano"]) for row in settled(folder, 2)] == [("estimated", None)] * 2


def test_an_answer_of_unknown_cost_leaves_the_most_that_its_usage_may_cost_and_says_so(tmp_path: Path) -> None:
    """A tier without a price that is known to cost no more than the standard one, then one of which nobody knows it."""
    with recording(tmp_path, quota(scope="all", usd=1, per="month") + PRICES) as (running, folder, _):
        for tier in ("default", "flex", "turbo"):
            running.answer(told({"prompt_tokens": 120, "completion_tokens": 34}, service_tier=tier))
            assert ask(running, stream=False)[0] == 200
        default, flex, turbo = settled(folder, 3)
        status, _, refused = ask(running, stream=False)
    assert status == 402
    assert default["state"] == "settled"
    assert default["nano"] <= flex["nano"] < turbo["nano"] == turbo["reserved"]
    assert (flex["state"], turbo["state"]) == ("estimated", "estimated")
    assert b'set [prices.\\"openai-chat/model-1\\".tiers.\\"turbo\\"]' in refused


@pytest.mark.parametrize("body", [{}, {"candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 3}]}])
def test_a_tier_in_the_head_of_an_answer_counts_beside_all_that_its_body_says(
    tmp_path: Path, body: dict[str, Any]
) -> None:
    protocol, more = "gemini-generate", ""
    for name, factor in (("", 1), (".tiers.priority", 2)):
        more += f'[prices."{protocol}/model-1"{name}]\ninput = {factor}\noutput = {factor}\noutput_audio = {factor}\n'
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 7, **body}
    content = {"role": "model", "parts": [{"text": "Hi"}]}
    answer = {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage}
    with recording(tmp_path, more) as (running, folder, _):
        running.answer(whole(json.dumps(answer).encode(), 200, "application/json", "x-gemini-service-tier: priority"))
        path, asked = spoken(protocol, f"{protocol}/model-1", stream=False)
        assert running.request("POST", path, asked)[0] == 200
        [row] = settled(folder, 1)
    assert row["nano"] == 24 * 1_000


def test_who_goes_leaves_the_bound_of_its_tokens_too(tmp_path: Path) -> None:
    with recording(tmp_path, quota(scope="all", tokens=1_000_000, per="month")) as (running, folder, _):
        data = wire(CHAT, reply("text"))
        running.answer([head(200, "text/event-stream"), chunk(data[:80]), "hold"])
        _left(running)
        [row] = settled(folder, 1)
        assert row["charged_tokens"] == row["reserved_tokens"] > row["input"] + row["output"]
        until(lambda: leased(running, Scopes(target=f"{CHAT}/model-1")) == [row["charged_tokens"]])


@pytest.mark.parametrize("cost", [1.3, 90, 9e6, 9e8])
@pytest.mark.parametrize("is_limited", [True, False])
def test_no_cost_that_a_provider_says_ends_the_budget_of_all(tmp_path: Path, cost: float, is_limited: bool) -> None:
    limits = quota(scope="all", usd=1, per="month") if is_limited else ""
    with recording(tmp_path, limits + PRICES) as (running, folder, _):
        running.answer(
            told({"prompt_tokens": 120, "completion_tokens": 34, "cost": cost}), whole_of(CHAT, reply("text"))
        )
        assert [ask(running, stream=False)[0] for _ in range(2)] == [200, 200]
        row, _ = settled(folder, 2)
    assert (row["state"], row["reason"], row["nano"]) == ("estimated", "not_believed", NANO)


@pytest.mark.parametrize("cost", [0, 0.000_003, 0.9])
def test_a_cost_that_a_provider_says_is_what_an_attempt_cost(tmp_path: Path, cost: float) -> None:
    with recording(tmp_path, quota(scope="all", usd=1, per="month") + PRICES) as (running, folder, _):
        running.answer(told({"prompt_tokens": 120, "completion_tokens": 34, "cost": cost}))
        assert ask(running, stream=False)[0] == 200
        [row] = settled(folder, 1)
    assert (row["state"], row["reason"], row["nano"]) == ("settled", "", round(cost * 1e9))


@pytest.mark.parametrize("tokens", [10**6, 2**30, 2**40 - 1])
def test_tokens_far_beyond_the_bound_cost_the_bound(tmp_path: Path, tokens: int) -> None:
    limits = quota(scope="all", usd=1, per="month") + quota(scope="all", tokens=100_000, per="month")
    with recording(tmp_path, limits + PRICES) as (running, folder, _):
        running.answer(told({"prompt_tokens": tokens, "completion_tokens": 34}))
        assert ask(running, stream=False)[0] == 200
        [row] = settled(folder, 1)
    assert (row["state"], row["reason"], row["reported"]) == ("estimated", "not_believed", 0)
    assert (row["nano"], row["charged_tokens"]) == (row["reserved"], row["reserved_tokens"])
