"""What clients can do to the pages beside the models: queries, and stored responses that make a short request long."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman._json import Raw
from dragoman.events import Reply
from dragoman.gateway.messages import Head, query_values
from dragoman.gateway.pages import key
from dragoman.gateway.pages import responses as pages
from dragoman.gateway.server import client_addresses
from dragoman.gateway.storage.responses import LONGEST, size_of
from dragoman.ledger.reports.usage import Used
from dragoman.types import NO_USAGE, Text
from gateway.recording import recording
from gateway.running import Running, gateway, whole_of
from growth import steps_of
from profiles import examples

KEYS = f'[server]\nkeys = ["sha256:{hashlib.sha256(b"x" * 40).hexdigest()}"]\n'
QUERIES = [
    "key=a&" * 70,
    "a&" * 100,
    "&" * 5_000,
    "key=%ff",
    "%" * 5_000,
    "k%65y=a&" * 70,
    "key=" * 70,
    "limit=9" + "9" * 999,
]


@pytest.mark.parametrize("table", ["", KEYS], ids=["open", "with keys"])
def test_no_query_breaks_a_page(tmp_path: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 64 fields and more the gateway said that it had an error; without a key, too."""
    monkeypatch.setattr(client_addresses, "LONGEST_PAUSE", 0.0)  # else wrong keys are answered ever later
    with gateway(tmp_path, table) as running:
        paths = ("/", "/v1/models", "/v1/responses/x/input_items", "/v1beta/models", "/v1/key", "/api/tags", "/metrics")
        statuses = {running.request("GET", f"{path}?{query}")[0] for path in paths for query in QUERIES}
    assert statuses <= ({401} if table else {200, 404})


@settings(max_examples=examples(200))
@given(
    st.lists(st.tuples(st.sampled_from(["key", "k%65y", "other"]), st.text(st.sampled_from("ab%&=+ é"), max_size=4)))
)
def test_a_query_says_what_it_says_to_others(fields: list[tuple[str, str]]) -> None:
    query = "&".join(f"{name}={quote_plus(value)}" for name, value in fields)
    assert query_values(query, "key") == parse_qs(query).get("key", [])[:8]
    assert query_values(Head("GET", f"/?{query}", {}).query, "key") == query_values(query, "key")


def answer(running: Running, *texts: str) -> Any:
    parts = tuple(Text(text) for text in texts)
    running.answer(whole_of("openai-responses", Reply("r", "m", 1, parts, "stop", None, NO_USAGE, None, None, (), ())))
    return post(running, {"model": "via-openai-responses", "input": "Hi"})


def post(running: Running, body: dict[str, Any], path: str = "/v1/responses") -> Any:
    status, _, said = running.request("POST", path, json.dumps(body).encode(), {"content-type": "application/json"})
    return status, json.loads(said)


def test_references_are_no_way_to_make_a_request_long(tmp_path: Path) -> None:
    """Each names an item again: 64 KB of them were 60 GB of a request."""
    with gateway(tmp_path) as running:
        status, stored = answer(running, "word " * 100_000)
        [item] = stored["output"]
        assert status == 200
        named = {"type": "item_reference", "id": item["id"]}
        few = {"model": "via-openai-responses", "input": [named, named, {"role": "user", "content": "And?"}]}
        running.answer(whole_of("openai-responses", Reply("r", "m", 1, (), "stop", None, NO_USAGE, None, None, (), ())))
        assert post(running, few)[0] == 200
        assert running.provider.requests[-1].body.count(b"word ") == 2 * 100_000
        many = {"model": "via-openai-responses", "input": [named] * (LONGEST // 500_000 + 1)}
        for path in ("/v1/responses", "/v1/responses/input_tokens"):
            status, said = post(running, many, path)
            assert status == 413 and str(LONGEST) in said["error"]["message"]


def test_an_item_that_is_named_again_and_again_is_measured_once() -> None:
    """A request of 2 MB named an item of 20 MB 40,000 times; each was copied before it was refused."""
    found = {"a": Raw(b"x" * 1_000), "b": Raw(b"y")}
    assert size_of(found, ["a", "b", "a"]) == 2_001
    assert steps_of(lambda: size_of(found, ["a", "b"] * 20_000)) == steps_of(lambda: size_of(found, ["a", "b"]))


def test_clients_that_look_at_their_keys_take_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look reads the ledger's files, in the threads in which large bodies of others are read."""
    active: list[int] = []
    seen: list[int] = []

    def slow(*words: Any, **more: Any) -> list[Used]:
        active.append(1)
        seen.append(len(active))
        time.sleep(0.02)
        active.pop()
        return []

    monkeypatch.setattr(key, "read_usage", slow)
    with recording(tmp_path) as (running, _, _), ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(lambda _: running.request("GET", "/v1/key")[0], range(12)))
    assert statuses == [200] * 12 and seen == [1] * 12


def test_what_is_gone_on_from_counts_as_memory_under_way(tmp_path: Path) -> None:
    """A request of 100 bytes that goes on from megabytes takes room for these, and gives it back."""
    with gateway(tmp_path, "[server]\nmemory_mib = 4\n") as running:
        memory = running.gateway._memory
        _, stored = answer(running, "word " * 500_000)  # 2.4 MiB, twice is more than all
        again = {"model": "via-openai-responses", "input": "And?", "previous_response_id": stored["id"]}
        assert memory.used == 0
        running.run(_take(memory, 1))
        status, said = post(running, again)
        assert status == 503 and "try again" in said["error"]["message"]
        running.run(_take(memory, -1))
        running.answer(whole_of("openai-responses", Reply("r", "m", 1, (), "stop", None, NO_USAGE, None, None, (), ())))
        assert post(running, again)[0] == 200  # one alone is always let in
        assert post(running, again, "/v1/responses/input_tokens")[0] == 200
        assert memory.used == 0


async def _take(memory: Any, size: int) -> None:
    memory.used += size


def test_what_is_long_is_counted_and_listed_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def noted(name: str) -> None:
        before = getattr(pages, name)

        def run(*words: Any, **more: Any) -> Any:
            seen.append(f"{name} in {threading.current_thread().name}")
            return before(*words, **more)

        monkeypatch.setattr(pages, name, run)

    for name in ("estimate_tokens", "_page"):
        noted(name)
    with gateway(tmp_path) as running:
        loop_thread = running.run(_name())
        long = "word " * 100_000
        status, _ = post(running, {"model": "via-openai-chat", "input": long}, "/v1/responses/input_tokens")
        assert status == 200
        running.answer(
            whole_of("openai-chat", Reply("r", "m", 1, (Text("x"),), "stop", None, NO_USAGE, None, None, (), ()))
        )
        status, stored = post(running, {"model": "via-openai-chat", "input": long})
        assert running.request("GET", f"/v1/responses/{stored['id']}/input_items")[0] == 200
    assert len(seen) == 2 and not any(loop_thread in one for one in seen)


async def _name() -> str:
    return threading.current_thread().name


@pytest.mark.parametrize("id", ["\ud800", "\x00", "x" * 100_000, "' OR 1=1 --", "%00", "../x", 7, None, [], {}])
def test_no_id_breaks_the_store(tmp_path: Path, id: object) -> None:
    with gateway(tmp_path) as running:
        for input in ("Hi", [{"type": "item_reference", "id": id}]):
            body = {"model": "via-openai-chat", "input": input, "previous_response_id": id if input == "Hi" else None}
            running.answer(whole_of("openai-chat", Reply("r", "m", 1, (), "stop", None, NO_USAGE, None, None, (), ())))
            status, said = post(running, body)
            assert status in (200, 400, 404), said
