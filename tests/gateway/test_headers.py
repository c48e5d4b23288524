"""Headers of a client: its vendor's words go to a provider of its protocol, what is secret to nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import reply
from dragoman.client.request.forwarding import ClientHead, as_client, may_pass
from dragoman.config import load_config
from dragoman.errors import ConfigError
from dragoman.gateway.auth import Guard
from dragoman.gateway.messages import Head
from dragoman.protocols import PROTOCOLS
from dragoman.routing.resolve import resolve
from dragoman.types import ProtocolName
from for_each import for_each
from gateway.running import Running, gateway, stream_of, whole_of
from gateway.test_matrix import read
from gateway.test_relay import spoken

#: What a coding agent sends to its vendor's API, beside what belongs to the connection and its key.
AGENT = {
    "accept": "application/json",
    "anthropic-beta": "claude-code-20250219,context-management-2025-06-27,lab-beta-2026-01-01",
    "anthropic-version": "2026-10-21",
    "anthropic-dangerous-direct-browser-access": "true",
    "user-agent": "some-agent/2.1.330 (external, cli)",
    "x-app": "cli",
    "x-agent-session-id": "0f0e0d0c",
    "x-stainless-lang": "js",
    "x-stainless-retry-count": "0",
}
SECRETS = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "proxy-authorization", "x-lab-token",
           "x-lab-auth", "x-amz-security-token", "x-session-cookie", "x-lab-key", "x-client-secret")  # fmt: skip
OF_THE_CONNECTION = ("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "proxy-connection",
                     "expect", "x-forwarded-for", "forwarded", "via", "x-remote-user", "x-ssl-client-verify",
                     "x-original-url", "x-client-cert", "b3", "openai-organization", "x-litellm-api-base")  # fmt: skip
LOGIN = "sk-lab-oat01-5f0c7d21b64e49b0"
CLEAN = '[models."anthropic-messages/model-1"]\nclean = true\n[models."openai-responses/model-1"]\nclean = true\n'


@pytest.fixture(scope="module", params=["read", "passed"])
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway that reads what it is sent, and one through which it passes."""
    more = CLEAN if request.param == "passed" else ""
    with gateway(tmp_path_factory.mktemp("gateway"), more) as found:
        yield found


@for_each("stream", [True, False], ids=["streamed", "whole"])
def test_a_providers_own_protocol_gets_the_clients_headers(either: Running, stream: bool) -> None:
    either.answer((stream_of if stream else whole_of)("anthropic-messages", reply("text")))
    path, body = spoken("anthropic-messages", "anthropic-messages", stream=stream)
    status, _, _ = either.request("POST", f"{path}?beta=true", body, {**AGENT, "content-type": "application/json"})
    [seen] = either.provider.requests
    assert status == 200
    assert seen.path == "/v1/messages?beta=true"
    ours = {"host", "content-length", "accept-encoding"}
    assert {name: value for name, value in seen.headers.items() if name not in ours} == {
        **AGENT, "content-type": "application/json",
    }  # fmt: skip


def test_a_body_that_passes_is_the_clients_byte_for_byte(tmp_path: Path) -> None:
    with gateway(tmp_path, CLEAN) as running:
        running.answer(stream_of("anthropic-messages", reply("text")))
        body = json.dumps(
            {
                "model": "anthropic-messages/model-1", "max_tokens": 5, "stream": True, "lab_field": {"b": 1.0},
                "messages": [{"role": "user", "content": "Hi"}], "context_management": {"edits": []},
            },
            separators=(",", ":"),
        ).encode()  # fmt: skip
        running.request("POST", "/v1/messages", body, AGENT)
        [seen] = running.provider.requests
        assert seen.body == body.replace(b"anthropic-messages/model-1", b"model-1")


@pytest.mark.parametrize("provider", [name for name in PROTOCOLS if name != "anthropic-messages"])
def test_another_protocol_gets_none_and_what_they_switch_on_is_named(tmp_path: Path, provider: str) -> None:
    with gateway(tmp_path) as running:
        running.answer(stream_of(provider, reply("text")))
        path, body = spoken("anthropic-messages", provider, stream=True)
        running.request("POST", path, body, AGENT)
        [seen] = running.provider.requests
        assert not set(AGENT) - {"accept", "user-agent"} & set(seen.headers)
        assert seen.headers["user-agent"] == "dragoman"
        _, _, text = running.request("GET", "/metrics")
    assert b"untranslated" in text


@for_each("name", [*SECRETS, *OF_THE_CONNECTION])
def test_a_secret_or_a_header_of_the_connection_goes_nowhere(name: str) -> None:
    assert not may_pass(name)
    assert not may_pass(name.replace("-", "_"))  # which many servers take for the same


WORDS = st.sampled_from(["x", "lab", "anthropic", "openai", "beta", "version", "id", "session", "app", "trace", "org"])
NAMES = st.one_of(
    st.lists(WORDS, min_size=1, max_size=4).map("-".join),
    st.tuples(WORDS, st.sampled_from(SECRETS)).map("-".join),
    st.sampled_from([*SECRETS, *OF_THE_CONNECTION, *AGENT]),
)


@given(st.dictionaries(NAMES, st.text("abc123", min_size=1), max_size=12), st.lists(NAMES, max_size=3))
def test_no_generated_head_lets_out_what_is_secret_or_the_connections(
    headers: dict[str, str], options: list[str]
) -> None:
    headers["connection"] = ", ".join(["close", *options]).title()
    passing = ClientHead("anthropic-messages", headers).passing()
    assert not passing.keys() & {*SECRETS, *OF_THE_CONNECTION, *options}
    assert not [name for name in passing if name.endswith(SECRETS)]
    assert all(headers[name] == value for name, value in passing.items())
    vendors = {name for name in AGENT if name in headers} - set(options)
    assert vendors <= passing.keys()


def test_a_value_that_cannot_be_sent_is_mended() -> None:
    told = {"x-app": "caf\xc3\xa9", "x-odd": "a\x01b", "x-both": "\x01\xc3\xa9\xe9"}
    assert ClientHead("ollama-chat", told).passing() == {"x-app": "caf\u00e9", "x-both": "?\u00e9\udce9"}


@pytest.mark.parametrize("more", ["", CLEAN])
def test_a_value_beyond_ascii_arrives_byte_for_byte(tmp_path: Path, more: str) -> None:
    with gateway(tmp_path, more) as running:
        running.answer(stream_of("anthropic-messages", reply("text")))
        path, body = spoken("anthropic-messages", "anthropic-messages", stream=True)
        told = {"x-old": b"caf\xe9 \x80\xff", "x-app": "caf\u00e9 \u4f60".encode()}
        running.request("POST", path, body, {**AGENT, **told})  # type: ignore[dict-item]
        [seen] = running.provider.requests
    assert {name: seen.headers[name].encode("latin-1") for name in told} == told


# ---------------------------------------------------------------- a client's own login


def login_config(folder: Path, url: str, more: str = "client_login = true") -> Path:
    file = folder / "login.toml"
    (folder / "key").write_text("sk-lab-operators-own-key", encoding="utf-8")
    file.write_text(
        f'[http]\nretries = 0\n[providers.anthropic]\nbase_url = "{url}"\napi_key = "file:key"\n{more}\n'
        f'[providers.other]\nprotocol = "anthropic-messages"\nbase_url = "{url}"\napi_key = "file:key"\n'
        f'[providers.openai]\nbase_url = "{url}/v1"\nclient_login = true\n'
        '[routes.mine]\ntargets = ["anthropic/model-1"]\n[routes.others]\ntargets = ["other/model-1"]\n'
        '[routes.foreign]\ntargets = ["openai/model-1"]\n',
        encoding="utf-8",
    )
    return file


@pytest.mark.parametrize("clean", [False, True], ids=["read", "passed"])
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_a_clients_login_goes_to_its_vendor_alone(tmp_path: Path, clean: bool, stream: bool) -> None:
    answered = stream_of if stream else whole_of
    with gateway(tmp_path) as plain:
        more = "client_login = true" + ("\nclean = true" if clean else "")
        config = load_config(login_config(tmp_path, plain.provider.url, more), environ={}, home=tmp_path)
        with gateway(tmp_path, config=config) as running:
            running = running._replace(provider=plain.provider)
            sent: dict[str, dict[str, str]] = {}
            for route, protocol in (("mine", "anthropic-messages"), ("others", "anthropic-messages"),
                                    ("foreign", "openai-responses"), ("mine", "anthropic-messages")):  # fmt: skip
                running.answer(answered(protocol, reply("text")))
                path, body = spoken("anthropic-messages", "x", stream=stream)
                body = body.replace(b"via-x", route.encode())
                login = {"authorization": f"Bearer {LOGIN}"} if route not in sent else {}
                status, _, answer = running.request("POST", path, body, login)
                assert status == 200, answer
                [seen] = running.provider.requests
                sent[route if route not in sent else "again"] = seen.headers
    assert sent["mine"]["authorization"] == f"Bearer {LOGIN}"
    assert "x-api-key" not in sent["mine"]
    assert LOGIN not in str([sent["others"], sent["foreign"], sent["again"]])
    assert sent["again"]["x-api-key"] == "sk-lab-operators-own-key"


def test_a_key_of_the_gateway_is_no_login(tmp_path: Path) -> None:
    guard = Guard(allowed_hosts=(), keys=["sha256:" + "0" * 64])
    head = Head("POST", "/v1/messages", {"authorization": f"Bearer {LOGIN}", "x-api-key": "ours", "x-app": "cli"})
    assert guard.without_keys(head).headers == {"authorization": f"Bearer {LOGIN}", "x-app": "cli"}
    import hashlib

    guard.take(allowed_hosts=(), keys=["sha256:" + hashlib.sha256(LOGIN.encode()).hexdigest()])
    assert guard.without_keys(head).headers == {"x-app": "cli"}


@for_each("shown", ["Basic abc", "Bearer", "Bearer one, Bearer two", "Bearer a b", "bearer \x01", "Token abc"])
def test_what_is_no_bearer_is_no_login(shown: str) -> None:
    assert ClientHead("anthropic-messages", {"authorization": shown}).login is None


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_login_is_taken_by_the_clients_own_protocol_alone(tmp_path: Path, protocol: ProtocolName) -> None:
    config = load_config(login_config(tmp_path, "http://127.0.0.1:9"), environ={}, home=tmp_path)
    target = resolve("anthropic/model-1", config)
    asked = as_client(target, ClientHead(protocol, {"authorization": f"Bearer {LOGIN}"}))
    assert (asked is not target) == (protocol == "anthropic-messages")
    assert LOGIN not in repr(asked)


LAB = '[providers.lab]\nprotocol = "anthropic-messages"\nbase_url = "https://lab.example"\n'


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (LAB, "only for the vendor"),
        (LAB + "has_logins = true\n", "only for the vendor"),
        ('[providers.anthropic]\nbase_url = "https://lab.example"\n', "the vendor's own address"),
        ("[providers.gemini]\n", "only for the vendor"),
    ],
)
def test_a_login_is_let_nowhere_else(tmp_path: Path, table: str, problem: str) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(table + "client_login = true\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=problem):
        load_config(file, environ={}, home=tmp_path)


def test_the_answer_is_read_all_the_same(either: Running) -> None:
    either.answer(stream_of("anthropic-messages", reply("text")))
    path, body = spoken("anthropic-messages", "anthropic-messages", stream=True)
    _, _, answer = either.request("POST", path, body, AGENT)
    assert read("anthropic-messages", answer).text == reply("text").text


# ---------------------------------------------------------------- a body of which nothing is changed


def agents_body(**fields: object) -> bytes:
    """What a coding agent asks, in its own order and with its own blanks."""
    body = {
        "max_tokens": 1000, "lab_field": {"b": 1.0}, "context_management": {"edits": []},
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi \u00e9"}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "toolu_01", "name": "look", "input": {"z": 1.0}},
            ]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "done"}]},
        ],
        "tools": [{"name": "look", "input_schema": {"type": "object"}, "defer_loading": True}],
        "stream": True, "model": "model-1", **fields,
    }  # fmt: skip
    return json.dumps(body, indent=1).encode()


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A gateway that reads every answer; `model-1` is what the provider calls its model too."""
    targets = 'targets = ["anthropic-messages/model-1"]\n'
    more = f"[routes.model-1]\n{targets}[routes.lab]\n{targets}"
    with gateway(tmp_path_factory.mktemp("gateway"), more) as found:
        yield found


def sent(running: Running, body: bytes) -> bytes:
    running.answer(stream_of("anthropic-messages", reply("text")))
    status, _, _ = running.request(
        "POST", "/v1/messages?beta=true", body, {**AGENT, "content-type": "application/json"}
    )
    assert status == 200
    return running.provider.requests[-1].body


def test_a_request_of_which_nothing_is_changed_is_sent_byte_for_byte(reading: Running) -> None:
    assert sent(reading, agents_body()) == agents_body()


def test_a_tool_without_arguments_changes_nothing(reading: Running) -> None:
    tools = [{"name": "look", "input_schema": {"type": "object", "properties": {}}},
             {"name": "hold", "input_schema": {"properties": {}, "type": "object"}, "defer_loading": True}]  # fmt: skip
    body = agents_body(tools=tools)
    assert sent(reading, body) == body


def test_of_a_renamed_model_the_name_alone_changes(reading: Running) -> None:
    assert json.loads(sent(reading, agents_body(model="lab"))) == json.loads(agents_body())
    assert list(json.loads(sent(reading, agents_body(model="lab")))) == list(json.loads(agents_body()))


@for_each(
    "fields",
    [
        {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_01", "name": "look", "input": {}}]}, {"role": "user", "content": "no"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "Hi"}]}]},
        {"max_tokens": None},
        {"system": "Be brief."},
        {"tools": [{"name": "look", "input_schema": {"type": "object"}}] * 2},
        {"tools": [{"name": "look"}]},
        {"tools": [{"name": "look", "input_schema": None}]},
        {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": ""}, {"type": "text", "text": "Yes."}]},
            {"role": "user", "content": "More"}]},
    ],
    ids=[
        "a call without a result", "an empty text", "no number of tokens", "no breakpoints",
        "a name twice", "a tool without a schema", "a tool whose schema is null", "thinking without a seal",
    ],
)  # fmt: skip
def test_what_must_be_mended_is_written_anew(reading: Running, fields: dict[str, object]) -> None:
    body = agents_body(**fields)
    assert sent(reading, body) != body
