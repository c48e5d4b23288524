"""What a configuration with a wrong value is told: its path, and what may stand there, in the words of TOML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import inspect

from dragoman.config import HttpConfig, ModelConfig, RouteConfig, ServerConfig, load_config
from dragoman.config.admin import AdminConfig
from dragoman.config.agent import AgentConfig, McpServer
from dragoman.config.ledger import KeyConfig, LedgerConfig
from dragoman.config.quotas import QuotaConfig
from dragoman.config.settings import Price, ValidateConfig
from dragoman.config.strict_tables import as_struct
from dragoman.errors import ConfigError
from dragoman.providers.catalog import load_catalog

KINDS: Final[tuple[Any, ...]] = (
    ServerConfig, RouteConfig, ModelConfig, HttpConfig, AdminConfig, AgentConfig, McpServer, KeyConfig, LedgerConfig,
    QuotaConfig, Price, ValidateConfig,
)  # fmt: skip
WRONG: Final[tuple[Any, ...]] = (
    7, -1, 0.5, True, "nonsense", [], ["nonsense"], [[1]], {}, {"nonsense": 1}, {"a": {"b": "c"}},
)  # fmt: skip


def tables(kind: Any) -> Iterator[dict[str, Any]]:
    """Tables with one wrong value each, at every depth."""
    required = {field.encode_name: "x" for field in inspect.type_info(kind).fields if field.required}
    for field in inspect.type_info(kind).fields:
        yield from ({**required, field.encode_name: value} for value in WRONG)
        for each in getattr(field.type, "types", (field.type,)):
            if isinstance(each, inspect.StructType):
                yield from ({**required, field.encode_name: inner} for inner in tables(each.cls))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_wrong_value_is_told_in_the_words_of_toml(kind: Any) -> None:
    refused = 0
    for table in tables(kind):
        try:
            as_struct(table, kind, "here")
        except ConfigError as problem:
            refused += 1
            words = str(problem)
            assert words.startswith("here") and "`" not in words and " enum" not in words and "one of ," not in words
            assert not any(word in words.split() for word in ("str", "str,", "int", "float", "bool", "array", "object"))
    assert refused


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[server]\nport = 1", "server.port: unknown key; there are: address, protocols, keys,"),
        (
            '[server]\nprotocols = ["openai"]',
            "server.protocols[0]: expected one of anthropic-messages,",
        ),
        ('[server]\nprotocols = "openai"', "server.protocols: expected one of all, or a list, got 'openai'"),
        ("[server]\nlimits = {body_mb = 1}", "server.limits.body_mb: unknown key; there are: body_mib,"),
        ('[providers.lab]\nprotocol = "openai"\nbase_url = "http://x"', "providers.lab.protocol: expected one of"),
        ('[providers.openai]\napi_key_env = "A"', "providers.openai.api_key_env: expected a list, got a string"),
        ('[routes.a]\ntargets = "ollama/x"', "routes.a.targets: expected a list, got a string"),
        (
            '[routes.a]\ntargets = ["ollama/x"]\ntool_policy = {web_search = "deny"}',
            "routes.a.tool_policy.web_search: expected one of drop, refuse, translate, got 'deny'",
        ),
        ("[http]\ntimeout = 1", "http.timeout: unknown key; there are: proxy,"),
    ],
)
def test_the_mistakes_of_beginners(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as problem:
        load_config(tmp_path / "dragoman.toml", environ={}, home=tmp_path)
    assert told in str(problem.value)


def refusal(table: dict[str, Any]) -> str:
    try:
        load_catalog({"openai": table})
    except ConfigError as problem:
        return str(problem)
    return ""


def test_a_provider_with_a_wrong_value_is_told_the_same_way() -> None:
    fields = (*load_catalog().providers["openai"].__struct_fields__, "region")
    told = [refusal({field: value}) for field in fields for value in WRONG]
    assert [words for words in told if words] and not [words for words in told if "`" in words or "one of ," in words]
