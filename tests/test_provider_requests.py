"""One request and one stream for every provider of the catalogue, as `tests/providers/NAME.toml` says.

Each file holds the address, the headers and the body fields that dragoman must send there (`has`, `lacks`), and a
stream in that provider's dialect with what must be read out of it. A new provider is a table in the catalogue and a
file there. The request is the same for all, so that the rows show the differences.
"""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from dragoman import _json
from dragoman.events import fold
from dragoman.protocols import PROTOCOLS
from dragoman.providers.catalog import Provider, load_catalog
from dragoman.providers.endpoint import Outgoing, endpoint, filled
from dragoman.types import (
    TOKEN_KINDS,
    Message,
    Params,
    ProtocolName,
    Reasoning,
    Request,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from for_each import for_each

FOLDER = Path(__file__).parent / "providers"
ROWS: dict[str, dict[str, Any]] = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in FOLDER.glob("*.toml")}
CATALOG = load_catalog({"embedded": {"base_url": "http://127.0.0.1:4999/v1"}})

each_row = for_each("name", sorted(ROWS))

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PLACEHOLDERS = {"AZURE_OPENAI_RESOURCE_NAME": "res"}


def question(model: str) -> Request:
    """A conversation with one answered call, and every parameter that providers differ about."""
    call = ToolCall("call_abcdefghijklmnopqrstuvwx", "get_weather", '{"city":"Rome"}')
    return Request(
        model=model,
        messages=(
            Message("system", (Text("Be brief."),)),
            Message("user", (Text("Weather in Rome?"),)),
            Message("assistant", (call,)),
            Message("tool", (ToolResult(call.id, call.name, (Text("rain"),)),)),
            Message("user", (Text("And in Paris?"),)),
        ),
        tools=(Tool("get_weather", "Current weather of a city.", _json.raw(SCHEMA)),),
        tool_choice="any",
        params=Params(
            max_tokens=100, temperature=1.7, top_k=40, reasoning=Reasoning("low"), parallel_tools=False, cache="long"
        ),
        session_id="session-1",
    )


def provider_of(name: str) -> Provider:
    return filled(CATALOG.provider(name), PLACEHOLDERS)


def sent(name: str) -> Outgoing:
    provider, model = provider_of(name), ROWS[name]["model"]
    rendered = PROTOCOLS[provider.protocol].render_request(question(model), dialect=provider.dialect)
    return endpoint(provider, rendered.http, model=model, key="test-key")


def test_every_provider_has_a_row() -> None:
    assert set(ROWS) == set(CATALOG.providers)


@each_row
def test_the_request_goes_where_the_vendor_says(name: str) -> None:
    out = sent(name)
    assert (out.method, out.url) == ("POST", ROWS[name]["url"])


@for_each(
    ("name", "protocol", "url"),
    [
        ("longcat", "anthropic-messages", "https://api.longcat.chat/anthropic/v1/messages"),
        ("fireworks", "anthropic-messages", "https://api.fireworks.ai/inference/v1/messages"),
        ("openrouter", "anthropic-messages", "https://openrouter.ai/api/v1/messages"),
        ("deepseek", "anthropic-messages", "https://api.deepseek.com/anthropic/v1/messages"),
        ("ollama", "anthropic-messages", "http://127.0.0.1:11434/v1/messages"),
        ("ollama", "openai-chat", "http://127.0.0.1:11434/v1/chat/completions"),
        ("groq", "openai-responses", "https://api.groq.com/openai/v1/responses"),
        ("openai", "openai-chat", "https://api.openai.com/v1/chat/completions"),
    ],
)
def test_another_protocol_of_a_vendor_has_its_own_address(name: str, protocol: ProtocolName, url: str) -> None:
    provider = provider_of(name).speaking(protocol)
    rendered = PROTOCOLS[protocol].render_request(question("m"), dialect=provider.dialect)
    assert endpoint(provider, rendered.http, model="m").url == url


@each_row
def test_its_headers_are_the_vendors(name: str) -> None:
    headers = sent(name).headers
    named: dict[str, str] = ROWS[name].get("headers", {})
    expected = {key.lower(): value for key, value in named.items()}
    assert headers["content-type"] == "application/json"
    assert {key: headers.get(key) for key in expected} == expected
    keys = [key for key, value in headers.items() if "test-key" in value]
    own = [key for key, value in expected.items() if value == "test-key"]
    assert keys == (own or ["authorization"])


@each_row
def test_its_body_is_in_the_providers_dialect(name: str) -> None:
    row, body = ROWS[name], json.loads(sent(name).body)
    assert {key: part(body.get(key), expected) for key, expected in row["has"].items()} == row["has"]
    assert [key for key in row["lacks"] if key in body] == []


def part(value: Any, expected: Any) -> Any:
    """Of an object only the keys that are expected, for what a provider may get besides."""
    if isinstance(value, dict) and isinstance(expected, dict):
        return {key: part(value.get(key), expected[key]) for key in expected}
    return value


@each_row
def test_no_tool_is_made_strict_unasked(name: str) -> None:
    """Strict hosts refuse any schema that does not forbid further properties, so most functions' schemas."""
    assert b'"strict":true' not in sent(name).body


@each_row
def test_a_long_cache_is_asked_of_the_vendors_own_host_only(name: str) -> None:
    body = sent(name).body
    asked = b'"ttl":"1h"' in body or b'"prompt_cache_retention":"24h"' in body
    assert asked == (name in ("openai", "anthropic"))


@each_row
def test_its_messages_name_roles_and_ids_as_it_wants(name: str) -> None:
    row, body = ROWS[name], json.loads(sent(name).body)
    messages = body.get("messages")
    if messages is None or provider_of(name).protocol != "openai-chat":
        assert "Be brief." in json.dumps(body)
        return
    assert messages[0]["role"] == row.get("system_role", "system")
    call, result = messages[2]["tool_calls"][0], messages[3]
    assert call["id"] == result["tool_call_id"]
    assert re.fullmatch(row.get("id_form", r"^call_[a-z]{24}$"), call["id"])
    assert ("name" in result) == provider_of(name).dialect.tool_name_in_result


def reply_of(name: str, pieces: list[bytes]) -> dict[str, Any]:
    """What a user gets out of the row's stream, in the form of the row's `reply`."""
    provider, numbers = provider_of(name), itertools.count()
    decoder = PROTOCOLS[provider.protocol].decoder(
        new_id=lambda: f"{next(numbers):024}", offered_names=frozenset({"get_weather"}), dialect=provider.dialect
    )
    events = [event for piece in pieces for event in decoder.feed(piece)] + decoder.close()
    reply = fold(events)
    assert reply.error is None
    assert [(call.name, call.values()) for call in reply.tool_calls] == [("get_weather", {"city": "Paris"})]
    usage = {field: getattr(reply.usage, field) for field in TOKEN_KINDS}
    return {
        "text": reply.text,
        "thinking": reply.thinking,
        "stop_reason": reply.stop_reason,
        "usage": {field: count for field, count in usage.items() if count is not None},
        "cost": str(reply.cost.usd) if reply.cost else None,
    }


@each_row
@for_each("size", [None, 1, 7])
def test_its_stream_is_read(name: str, size: int | None) -> None:
    wire = ROWS[name]["stream"].encode()
    pieces = [wire] if size is None else [wire[at : at + size] for at in range(0, len(wire), size)]
    expected = {"text": "", "thinking": "", "cost": None} | ROWS[name]["reply"]
    assert reply_of(name, pieces) == expected


@each_row
def test_a_provider_that_reports_costs_has_one_in_its_stream(name: str) -> None:
    assert ("cost" in ROWS[name]["reply"]) == provider_of(name).dialect.cost_in_usage
