"""The provider catalogue: its data, its look-ups, and the user's tables over it."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import sys
import tarfile
import zipfile
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from dragoman.errors import ConfigError, UsageError
from dragoman.protocol import PLAIN, UNKNOWN_MODEL, HttpRequest, ModelLimits
from dragoman.providers.catalog import Catalog, Modality, Provider, load_catalog, load_model_sources, nearest
from dragoman.providers.endpoint import endpoint, filled
from dragoman.types import ProtocolName
from for_each import for_each

REPOSITORY = Path(__file__).parent.parent
CATALOG = load_catalog()

LOCAL = {"ollama", "lmstudio", "llamacpp", "vllm", "sglang", "embedded"}
REMOTE = {
    "openai", "azure", "anthropic", "gemini", "zhipu", "aliyun", "volcengine", "tencent", "longcat", "moonshot",
    "minimax", "deepseek", "mistral", "groq", "together", "fireworks", "openrouter", "xai", "cerebras", "nvidia",
    "huggingface", "github", "perplexity", "cohere",
}  # fmt: skip
PROTOCOLS: tuple[str, ...] = get_args(ProtocolName)
HTTP = HttpRequest("/chat/completions", b'{"model":"m"}')

each_provider = for_each("provider", CATALOG.providers.values(), ids=lambda provider: provider.name)


def urls(provider: Provider) -> list[str]:
    sites = [url for site in provider.regions.values() for url in site.values()]
    return [url for url in (provider.base_url, *provider.also.values(), *sites) if url]


# ---------------------------------------------------------------- the data


def test_every_promised_provider_is_there() -> None:
    assert (LOCAL | REMOTE) - set(CATALOG.providers) == set()
    assert {name for name, provider in CATALOG.providers.items() if provider.local} == LOCAL


@each_provider
def test_its_protocols_are_ours(provider: Provider) -> None:
    spoken = [provider.protocol, *provider.also, *(protocol for site in provider.regions.values() for protocol in site)]
    assert set(spoken) <= set(PROTOCOLS)
    assert provider.protocol not in provider.also


@each_provider
def test_its_addresses_are_encrypted_or_on_this_machine(provider: Provider) -> None:
    own = [url for url in (provider.base_url, *provider.also.values()) if url]
    if provider.local:
        assert all(url.startswith("http://127.0.0.1:") for url in own)
    else:
        assert own
        assert all(url.startswith("https://") for url in own)
    for url in urls(provider):
        assert url.startswith("https://") or provider.local
        assert not url.endswith("/")


@each_provider
def test_its_placeholders_are_declared(provider: Provider) -> None:
    used = {name for url in urls(provider) for name in re.findall(r"\{(\w+)\}", url)}
    assert used == set(provider.placeholders)


@each_provider
def test_its_regions_are_other_sites(provider: Provider) -> None:
    for site in provider.regions.values():
        assert provider.protocol in site
        assert provider.base_url not in site.values()


@each_provider
def test_it_names_its_key(provider: Provider) -> None:
    assert provider.local or provider.api_key_env
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]+", name) for name in provider.api_key_env)
    assert len(set(provider.api_key_env)) == len(provider.api_key_env)


@each_provider
def test_it_names_its_source_with_the_day(provider: Provider) -> None:
    found = re.fullmatch(r"https://\S+ \(read (\d{4}-\d\d-\d\d)\)", provider.source)
    assert found
    assert date.fromisoformat(found[1]) >= date(2026, 1, 1)


def test_the_page_links_vendors_alone() -> None:
    """A link of a name leads to those who make the service, not to somebody who quotes them."""
    page = (Path(__file__).resolve().parent.parent / "docs" / "reference" / "providers.md").read_text(encoding="utf-8")
    links = re.findall(r"^\| \[[\w-]+\]\((https://[^)]+)\)", page, re.MULTILINE)
    assert len(links) > 30
    others = re.compile(
        r"developersdigest|mintlify\.com|agentscope|ai-sdk\.dev|github\.io|/orgs/community/|/(?:hu-hu|zh-cn)/"
    )
    assert [link for link in links if others.search(link)] == []


def test_no_two_providers_share_an_address() -> None:
    seen = [provider.base_url for name, provider in CATALOG.providers.items() if provider.base_url and name != "azure"]
    assert len(set(seen)) == len(seen)


def test_only_a_closed_service_is_marked_retired() -> None:
    assert {name for name, provider in CATALOG.providers.items() if provider.retired} == {"github"}


# ---------------------------------------------------------------- models


def test_there_are_enough_models_and_of_most_providers() -> None:
    counts = {name: len(CATALOG.models(name)) for name in CATALOG.providers}
    assert sum(counts.values()) >= 150
    assert {name for name in REMOTE if not counts[name] and not CATALOG.provider(name).retired} == set()


@each_provider
def test_its_models_are_plausible(provider: Provider) -> None:
    models = CATALOG.models(provider.name)
    assert len({model.id for model in models}) == len(models)
    for model in models:
        assert model.id == model.id.strip() != ""
        assert model.context is None or 1_000 <= model.context <= 20_000_000
        assert model.max_output is None or 256 <= model.max_output <= 20_000_000
        if model.input_modalities is not None:
            assert "text" in model.input_modalities
            assert set(model.input_modalities) <= set(get_args(Modality))
            assert len(set(model.input_modalities)) == len(model.input_modalities)


def test_every_list_of_models_belongs_to_a_provider_and_a_dated_source() -> None:
    sources = load_model_sources()
    listed = {name for name in CATALOG.providers if CATALOG.models(name)}
    assert listed == {name for source in sources for name in source.providers}
    for source in sources:
        assert source.name
        assert date.fromisoformat(source.read) >= date(2026, 1, 1)
        assert source.licence == "MIT" or source.name.startswith("https://")


def test_what_no_source_says_is_null() -> None:
    model = CATALOG.model("perplexity/anthropic/claude-sonnet-5")
    assert model == CATALOG.known_model("perplexity/anthropic/claude-sonnet-5")
    assert (model.context, model.max_output, model.input_modalities, model.thinking) == (None, None, None, None)
    assert model.tools is True


def test_a_listed_model() -> None:
    model = CATALOG.known_model("zhipu/glm-4.6")
    assert (model.target, model.context, model.max_output, model.tools) == ("zhipu/glm-4.6", 200_000, 128_000, True)
    assert model.limits() == ModelLimits(200_000, 128_000)


def test_everything_after_the_first_slash_is_the_model() -> None:
    assert CATALOG.known_model("openrouter/deepseek/deepseek-v4-pro").id == "deepseek/deepseek-v4-pro"


def test_an_unlisted_model_is_unknown_not_refused() -> None:
    model = CATALOG.model("ollama/granite4")
    assert (model.provider, model.id, model.context, model.tools) == ("ollama", "granite4", None, None)
    assert model.limits() == UNKNOWN_MODEL


# ---------------------------------------------------------------- wrong names


@for_each(
    ("target", "message"),
    [
        ("opnai/gpt-5", "unknown provider 'opnai'; nearest: openai"),
        ("zhipu/glm-46", "unknown model 'glm-46' of provider zhipu; nearest: glm-4.6"),
        ("coder", "expected a target provider/model, got 'coder'"),
        ("zhipu/", "expected a target provider/model, got 'zhipu/'"),
    ],
)
def test_a_wrong_target_names_the_nearest(target: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        CATALOG.known_model(target)


def test_nothing_near_is_named_when_nothing_is_near() -> None:
    with pytest.raises(
        UsageError, match=r"unknown provider 'qqqq'; `dragoman models --all` lists them, \[providers\.NAME\] adds one$"
    ):
        CATALOG.provider("qqqq")


# ---------------------------------------------------------------- the user's tables


def overlaid(name: str, **table: object) -> Provider:
    return load_catalog({name: table}).provider(name)


def test_a_users_provider_needs_protocol_and_address_only() -> None:
    lab = overlaid(
        "lab", protocol="openai-chat", base_url="http://10.0.0.5:8000/v1", dialect={"usage_in_stream": False}
    )
    assert (lab.protocol, lab.base_url, lab.auth, lab.local) == (
        "openai-chat",
        "http://10.0.0.5:8000/v1",
        "bearer",
        False,
    )
    assert lab.dialect.usage_in_stream is False


def test_tables_merge_key_by_key() -> None:
    github = overlaid("github", headers={"X-Mine": "1"}, dialect={"system_role": "developer"})
    assert github.headers == {"X-GitHub-Api-Version": "2022-11-28", "X-Mine": "1"}
    mistral = overlaid("mistral", dialect={"strict_tools": False})
    assert (mistral.dialect.id_form, mistral.dialect.strict_tools) == ("alphanumeric-9", False)


def test_an_overlay_leaves_the_catalogue_alone() -> None:
    overlaid("mistral", dialect={"id_form": "any"}, headers={"X-Mine": "1"})
    assert load_catalog().provider("mistral") == CATALOG.provider("mistral")


def test_what_no_overlay_changes_is_made_once() -> None:
    """The prices look it up for each answer."""
    changed = load_catalog({"mistral": {"headers": {"X-Mine": "1"}}}).providers
    assert {name for name in CATALOG.providers if changed[name] is not CATALOG.providers[name]} == {"mistral"}


def test_the_configurations_own_keys_are_left_to_it() -> None:
    assert overlaid("zhipu", api_key="env:ZHIPU_API_KEY", clean=True) == CATALOG.provider("zhipu")


def test_a_region_changes_every_address() -> None:
    zhipu = overlaid("zhipu", region="international")
    assert zhipu.base_url == "https://api.z.ai/api/paas/v4"
    assert zhipu.also == {"anthropic-messages": "https://api.z.ai/api/anthropic"}
    assert zhipu.body == {"tool_stream": True}


def test_another_protocol_brings_its_address() -> None:
    zhipu = overlaid("zhipu", protocol="anthropic-messages")
    assert zhipu.base_url == "https://open.bigmodel.cn/api/anthropic"
    assert (zhipu.path, zhipu.query, zhipu.body) == ("", {}, {})
    assert zhipu == CATALOG.provider("zhipu").speaking("anthropic-messages")


def test_another_protocol_of_a_region() -> None:
    kimi = overlaid("moonshot", region="china", protocol="anthropic-messages")
    assert kimi.base_url == "https://api.moonshot.cn/anthropic"
    assert kimi.also == {"openai-chat": "https://api.moonshot.cn/v1"}


def test_an_address_of_the_user_stands_alone() -> None:
    """Else a key meant for the user's own proxy would go to the vendor in another protocol."""
    proxied = overlaid("deepseek", base_url="https://proxy.example/v1")
    assert (proxied.base_url, proxied.also) == ("https://proxy.example/v1", {})


def test_there_and_back_is_the_same_provider() -> None:
    ollama = CATALOG.provider("ollama")
    assert ollama.speaking("openai-chat").speaking("ollama-chat") == ollama
    assert ollama.speaking("ollama-chat") is ollama


def test_a_protocol_that_is_not_offered_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"cohere: expected one of its protocols \(openai-chat\), got gemini-generate"
    ):
        CATALOG.provider("cohere").speaking("gemini-generate")


@for_each(
    ("name", "table", "message"),
    [
        ("zhipu", {"regin": "x"}, "providers.zhipu.regin: unknown key; nearest: region"),
        ("zhipu", {"region": "mars"}, "providers.zhipu.region: expected one of its regions (international, coding"),
        ("cohere", {"region": "mars"}, "(none)"),
        (
            "zhipu",
            {"protocol": "ollama-chat"},
            "expected one of the protocols it has there (openai-chat, anthropic-messag",
        ),
        ("lab", {"protocol": "openai-chat"}, "providers.lab.base_url: missing"),
        ("lab", {"base_url": "http://x/v1"}, "providers.lab.protocol: missing"),
        (
            "lab",
            {"protocol": "openai-cat", "base_url": "http://x"},
            "providers.lab.protocol: expected one of anthropic-messages,",
        ),
        ("lab", {"protocol": "openai-chat", "base_url": "x:80"}, "expected http://… or https://…, got 'x:80'"),
        ("lab", {"protocol": "openai-chat", "base_url": "http://x/v1?key=1"}, "expected no query"),
        ("mistral", {"dialect": {"id_pattern": "any"}}, "providers.mistral.dialect.id_pattern: unknown key"),
        (
            "mistral",
            {"dialect": {"strict_tools": "yes"}},
            "providers.mistral.dialect.strict_tools: expected true or false, got a string",
        ),
        ("mistral", {"dialect": "strict"}, "providers.mistral.dialect: expected a table, got a string"),
        ("a/b", {"protocol": "openai-chat", "base_url": "http://x"}, "expected a name without '/'"),
    ],
)
def test_a_wrong_table_is_refused_with_its_path(name: str, table: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_catalog({name: table})


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        overlaid("lab", protocol="openai-chat", base_url="https://me:hunter2@x/v1")
    assert "hunter2" not in str(caught.value)


# ---------------------------------------------------------------- addresses, headers, fixed fields


def test_the_path_follows_the_base_url() -> None:
    out = endpoint(CATALOG.provider("groq"), HTTP, model="m", key="k")
    assert (out.method, out.url, out.body) == ("POST", "https://api.groq.com/openai/v1/chat/completions", HTTP.body)
    assert out.headers == {"content-type": "application/json", "authorization": "Bearer k"}


@for_each("base_url", ["https://h", "https://h/", "https://h/v1", "https://h/v1/"])
def test_a_version_stands_once_in_the_address(base_url: str) -> None:
    lab = overlaid("lab", protocol="anthropic-messages", base_url=base_url)
    assert endpoint(lab, HttpRequest("/v1/messages", b"{}"), model="m").url == "https://h/v1/messages"


@for_each(
    ("name", "header", "value"),
    [
        ("deepseek", "authorization", "Bearer k"),
        ("anthropic", "x-api-key", "k"),
        ("gemini", "x-goog-api-key", "k"),
        ("azure-deployments", "api-key", "k"),
    ],
)
def test_the_key_stands_in_the_vendors_header(name: str, header: str, value: str) -> None:
    provider = filled(CATALOG.provider(name), {"AZURE_OPENAI_RESOURCE_NAME": "res"})
    out = endpoint(provider, HTTP, model="m", key=" k\n")
    assert out.headers == {"content-type": "application/json", header: value}


@for_each("key", [None, "", "\n"])
def test_without_a_key_no_header_is_sent(key: str | None) -> None:
    assert "authorization" not in endpoint(CATALOG.provider("ollama"), HTTP, model="m", key=key).headers


@for_each("key", ["a\r\nx-evil: 1", "schlüssel", "a\x00b"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        endpoint(CATALOG.provider("openai"), HTTP, model="m", key=key)
    assert key not in str(caught.value)


def test_repr_shows_neither_key_nor_prompt() -> None:
    out = endpoint(CATALOG.provider("openai"), HttpRequest("/responses", b'{"input":"secret"}'), model="m", key="sk-1")
    assert "sk-1" not in repr(out)
    assert "secret" not in repr(out)


def test_azure_puts_the_resource_into_the_host() -> None:
    azure = filled(CATALOG.provider("azure"), {"AZURE_OPENAI_RESOURCE_NAME": "my-res"})
    out = endpoint(azure, HttpRequest("/responses", b"{}"), model="gpt-6", key="k")
    assert out.url == "https://my-res.openai.azure.com/openai/v1/responses"
    assert azure.also["openai-chat"] == "https://my-res.openai.azure.com/openai/v1"


def test_azures_dated_api_puts_the_deployment_into_the_path() -> None:
    azure = filled(CATALOG.provider("azure-deployments"), {"AZURE_OPENAI_RESOURCE_NAME": "my-res"})
    out = endpoint(azure, HTTP, model="my model/1", key="k")
    assert out.url == (
        "https://my-res.openai.azure.com/openai/deployments/my%20model%2F1/chat/completions?api-version=2024-10-21"
    )


@for_each("resource", [{}, {"AZURE_OPENAI_RESOURCE_NAME": ""}])
def test_an_incomplete_address_says_what_is_missing(resource: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="set AZURE_OPENAI_RESOURCE_NAME or base_url"):
        endpoint(filled(CATALOG.provider("azure"), resource), HTTP, model="m")


def test_a_placeholder_cannot_change_the_host() -> None:
    azure = filled(CATALOG.provider("azure"), {"AZURE_OPENAI_RESOURCE_NAME": "evil.example/x#"})
    assert azure.base_url == "https://evil.example%2Fx%23.openai.azure.com/openai/v1"


def test_the_embedded_servers_address_comes_at_run_time() -> None:
    with pytest.raises(ConfigError, match="embedded: its address is not known"):
        endpoint(CATALOG.provider("embedded"), HTTP, model="smollm2")
    running = overlaid("embedded", base_url="http://127.0.0.1:4999/v1")
    assert endpoint(running, HTTP, model="smollm2", key="k").url == "http://127.0.0.1:4999/v1/chat/completions"
    assert running.dialect.force_call_by_prefill


def test_a_query_of_the_protocol_is_kept() -> None:
    lab = overlaid("lab", protocol="gemini-generate", base_url="https://h/v1beta", query={"a": "b c"})
    out = endpoint(lab, HttpRequest("/models/m:streamGenerateContent?alt=sse", b"{}"), model="m")
    assert out.url == "https://h/v1beta/models/m:streamGenerateContent?alt=sse&a=b+c"


def test_fixed_fields_join_the_body_and_never_replace_the_requests_own() -> None:
    zhipu = CATALOG.provider("zhipu")
    assert endpoint(zhipu, HTTP, model="m").body == b'{"model":"m","tool_stream":true}'
    own = HttpRequest("/chat/completions", b'{"tool_stream":false}')
    assert endpoint(zhipu, own, model="m").body == b'{"tool_stream":false}'
    assert endpoint(zhipu.speaking("anthropic-messages"), HTTP, model="m").body == HTTP.body


def test_a_body_that_is_no_object_is_left_alone() -> None:
    assert endpoint(CATALOG.provider("zhipu"), HttpRequest("/x", b"[1"), model="m").body == b"[1"


def test_the_protocols_headers_and_the_providers_are_both_sent() -> None:
    http = HttpRequest("/v1/messages", b"{}", {"anthropic-version": "2023-06-01"})
    lab = overlaid("lab", protocol="anthropic-messages", base_url="https://h", auth="none", headers={"X-Mine": "1"})
    assert endpoint(lab, http, model="m", key="k").headers == {
        "content-type": "application/json",
        "anthropic-version": "2023-06-01",
        "x-mine": "1",
    }


def test_a_provider_without_oddities_has_the_plain_dialect() -> None:
    assert CATALOG.provider("github").dialect == PLAIN


# ---------------------------------------------------------------- the scripts


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "scripts" / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_about_providers_is_what_its_script_writes() -> None:
    catalog: Catalog = CATALOG
    written = (REPOSITORY / "docs" / "reference" / "providers.md").read_text(encoding="utf-8")
    assert written == script("write_provider_page").page(catalog)


def packed_pi_ai(path: Path, *, chat: dict[str, object]) -> None:
    """A package of the first source's form, in which every file lists the same chat model, and an image model."""
    model = {"type": "chat", "input": ["text"], "reasoning": False, **chat}
    data = {"some-api": {"chat:m": model, "image:i": {"type": "image", "id": "i"}}}
    names = {name for files in script("update_models").FROM_PI_AI.values() for name in files}
    files: dict[str, object] = {
        "package.json": {"name": "pi", "version": "9.9.9", "license": "MIT"},
        "dist/providers/data/.manifest.json": {"generatedAt": "2026-11-10T12:05:37Z"},
        **{f"dist/providers/data/{name}.json": data for name in names},
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            text = json.dumps(content).encode()
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))


def test_the_model_list_is_made_from_the_two_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed_pi_ai(tmp_path / "pi.tgz", chat={"id": "m", "contextWindow": 4096, "maxTokens": 8192})
    chat = {"mode": "chat", "max_input_tokens": 32_000, "supports_function_calling": True}
    with zipfile.ZipFile(tmp_path / "litellm-9.9-py3.whl", "w") as archive:
        prices = {
            "gemini/m": {**chat, "litellm_provider": "gemini", "supports_vision": True, "supports_audio_input": True},
            "gemini/other": {**chat, "litellm_provider": "gemini"},
            "dashscope/qwen": {**chat, "litellm_provider": "dashscope"},
            "dashscope/gone": {**chat, "litellm_provider": "dashscope", "deprecation_date": "2026-01-01"},
            "dashscope/embed": {**chat, "litellm_provider": "dashscope", "mode": "embedding"},
            "perplexity/sonar": {**chat, "litellm_provider": "perplexity"},
        }
        archive.writestr("litellm/model_prices_and_context_window_backup.json", json.dumps(prices))
    out = tmp_path / "models.json"
    arguments = [
        "--pi-ai",
        "pi.tgz",
        "--litellm",
        "litellm-9.9-py3.whl",
        "--read",
        "2026-11-21",
        "--out",
        "models.json",
    ]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["update_models.py", *arguments])
    script("update_models").main()
    written = json.loads(out.read_bytes())
    assert written["models"]["openai"] == [["m", None, 8192, ["text"], True, False]]
    assert written["models"]["gemini"] == [["m", None, 8192, ["text", "image", "audio"], True, False]]
    assert written["models"]["aliyun"] == [["qwen", 32_000, None, None, True, None]]
    assert written["models"]["perplexity"] == []
    first = written["sources"][0]
    assert (first["version"], first["date"], first["read"], first["licence"]) == (
        "9.9.9",
        "2026-11-10",
        "2026-11-21",
        "MIT",
    )


@for_each(
    ("word", "known", "near"),
    [
        ("nope", ["openai", "ollama"], ""),
        ("x", ["xai"], ""),
        ("claude", ["azure", "anthropic"], ""),
        ("sonnet", ["volcengine", "claude-sonnet-5"], "claude-sonnet-5"),
        ("olama", ["llamacpp", "ollama"], "ollama"),
        ("gorq", ["google", "groq"], "groq"),
        ("granit5", ["granite4:latest", "qwen3"], "granite4:latest"),
        ("router", ["openrouter"], "openrouter"),
        ("", ["ollama"], ""),
    ],
)
def test_what_is_named_as_nearest_is_near(word: str, known: list[str], near: str) -> None:
    assert nearest(word, known) == (f"; nearest: {near}" if near else "")


@for_each(
    "address",
    [
        "http://[::1", "http://::1]/v1", "http://host:port/v1", "http://host:99999/v1", "http://host:0/v1", "http:///v1",
        "http://", "http:/host/v1", "https//host", "host:80", "ftp://host", "http://a..b/v1", "http://a b/v1",
        "http://" + "a" * 64 + "/v1", "http://host<>/v1", "http://{nobody}/v1", "http://host/{nobody}",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_when_it_is_read(address: str) -> None:
    with pytest.raises(ConfigError, match=re.escape("providers.lab.base_url: expected http://… or https://…, got ")):
        load_catalog({"lab": {"protocol": "openai-chat", "base_url": address}})


@for_each(
    "address",
    [
        "http://[::1]:8000/v1",
        "http://[fe80::1%25eth0]/v1",
        "http://under_score:1/",
        "https://bücher.example/v1",
        "HTTP://H",
    ],
)
def test_what_is_an_address_is_taken(address: str) -> None:
    assert load_catalog({"lab": {"protocol": "openai-chat", "base_url": address}}).provider("lab").base_url == address
