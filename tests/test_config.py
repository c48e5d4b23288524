"""Configuration: where it is read from, what is refused and how, keys by reference, what is in force."""

import copy
import pickle
from decimal import Decimal
from pathlib import Path

import pytest

from dragoman import _json
from dragoman.config import Config, default_path, load_config
from dragoman.errors import ConfigError
from dragoman.secret import Secret


def load(tmp_path: Path, text: str, **environ: str) -> Config:
    file = tmp_path / "dragoman.toml"
    file.write_text(text, encoding="utf-8")
    return load_config(file, environ=environ, home=tmp_path)


def refusal(tmp_path: Path, text: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text, **environ)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'dragoman.toml'}: ")
    return message.removeprefix(f"{tmp_path / 'dragoman.toml'}: ")


# ---------------------------------------------------------------- where


def test_without_a_file_the_catalogue_and_usual_variables_serve(tmp_path: Path) -> None:
    config = load_config(environ={"ANTHROPIC_API_KEY": " key-of-mine\n"}, home=tmp_path)
    assert config.path is None
    assert config.catalog.provider("ollama").base_url == "http://127.0.0.1:11434"
    assert config.key("anthropic") == Secret("key-of-mine")
    assert config.key("openai") is None
    assert (config.http.connect_seconds, config.http.first_event_seconds, config.http.total_seconds) == (10, 120, 3600)
    assert config.http.proxy is None
    assert config.server.address == "127.0.0.1:4141"


def test_a_given_path_goes_before_the_variable_and_that_before_the_users_folder(tmp_path: Path) -> None:
    files = {}
    for name in ("given", "variable", ".config/dragoman"):
        files[name] = tmp_path / name / "dragoman.toml"
        files[name].parent.mkdir(parents=True)
        files[name].write_text(f'[routes."{name.replace("/", "-")}"]\ntargets = ["ollama/granite4"]\n')
    environ = {"DRAGOMAN_CONFIG": str(files["variable"])}
    assert load_config(files["given"], environ=environ, home=tmp_path).path == files["given"]
    assert load_config(environ=environ, home=tmp_path).path == files["variable"]
    if default_path(environ={}, home=tmp_path) == files[".config/dragoman"]:  # elsewhere on macOS and Windows
        assert set(load_config(environ={}, home=tmp_path).routes) == {".config-dragoman"}


def test_the_current_folder_is_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dragoman").mkdir()
    for file in (tmp_path / "dragoman.toml", tmp_path / "dragoman" / "dragoman.toml"):
        file.write_text("not toml at all")
    monkeypatch.chdir(tmp_path)
    for named in ("", ".", "dragoman"):
        environ = {"XDG_CONFIG_HOME": named, "APPDATA": named}
        assert load_config(environ=environ, home=tmp_path / "home").path is None


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {}, ".config/dragoman/dragoman.toml"),
        ("linux", {"XDG_CONFIG_HOME": "/settings"}, "/settings/dragoman/dragoman.toml"),
        ("darwin", {}, "Library/Application Support/dragoman/dragoman.toml"),
        ("win32", {}, "AppData/Roaming/dragoman/dragoman.toml"),
    ],
)
def test_the_users_folder_is_the_platforms(
    tmp_path: Path, platform: str, environ: dict[str, str], expected: str
) -> None:
    assert default_path(environ=environ, home=tmp_path, platform=platform) == tmp_path / expected


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    missing = tmp_path / "no.toml"
    with pytest.raises(ConfigError, match=r"no\.toml: expected a configuration file"):
        load_config(missing, environ={}, home=tmp_path)
    with pytest.raises(ConfigError, match=r"no\.toml: expected a configuration file"):
        load_config(environ={"DRAGOMAN_CONFIG": str(missing)}, home=tmp_path)


# ---------------------------------------------------------------- what


FULL = """
[server]
address = "127.0.0.1:0"
protocols = ["openai-chat", "anthropic-messages"]
keys = ["env:DRAGOMAN_KEY", "sha256:%s"]
allowed_hosts = ["lab.example"]
[providers.ollama]
base_url = "http://127.0.0.1:11435"
[providers.zhipu]
api_key = "env:ZHIPU_API_KEY"
[providers.lab]
protocol = "openai-chat"
base_url = "http://10.0.0.5:8000/v1"
dialect = { usage_in_stream = true }
clean = true
[routes.coder]
targets = ["zhipu/glm-4.6", "ollama/qwen3-coder", "lab/some/model"]
arguments = "whole"
cache = "long"
[routes."*"]
targets = ["ollama/granite4"]
[models."ollama/granite4"]
options = { temperature = 0.3, num_ctx = 8192, reasoning = { effort = "low" } }
dialect = { supports_top_k = true }
[validate]
store = "results"
[http]
proxy = "env:HTTPS_PROXY"
ca_file = "lab.pem"
connect_seconds = 3
silence_seconds = 30.5
[prices."zhipu/glm-4.6"]
input = 0.6
output = 2.2
cache_read = 0.11
"""


def test_everything_that_may_stand_in_it(tmp_path: Path) -> None:
    (tmp_path / "lab.pem").write_text("certificates")
    config = load(
        tmp_path, FULL % ("0f" * 32), ZHIPU_API_KEY="secret-of-zhipu", HTTPS_PROXY="http://me:word@proxy:3128"
    )
    assert config.server.protocols == ("openai-chat", "anthropic-messages")
    assert config.catalog.provider("ollama").base_url == "http://127.0.0.1:11435"
    assert config.catalog.provider("lab").protocol == "openai-chat"
    assert config.providers["lab"].clean is True
    assert config.providers["ollama"].clean is None
    assert config.key("zhipu") == Secret("secret-of-zhipu")
    assert config.routes["coder"].targets == ("zhipu/glm-4.6", "ollama/qwen3-coder", "lab/some/model")
    assert (config.routes["coder"].arguments, config.routes["coder"].tools) == ("whole", "native")
    assert config.routes["*"].cache == "short"
    model = config.models["ollama/granite4"]
    assert (model.options.temperature, model.options.num_ctx, model.options.max_tokens) == (0.3, 8192, None)
    assert model.options.reasoning is not None and model.options.reasoning.effort == "low"
    assert model.dialect == {"supports_top_k": True}
    assert config.validate.store == tmp_path / "results"
    assert config.http.ca_file == tmp_path / "lab.pem"
    assert config.http.proxy is not None and config.http.proxy.reveal() == "http://me:word@proxy:3128"
    assert (config.http.connect_seconds, config.http.silence_seconds) == (3.0, 30.5)
    price = config.prices["zhipu/glm-4.6"]
    assert (price.input, price.output, price.cache_read) == (Decimal("0.6"), Decimal("2.2"), Decimal("0.11"))
    assert price.cache_write is None


def test_no_secret_shows_in_the_repr(tmp_path: Path) -> None:
    (tmp_path / "lab.pem").write_text("certificates")
    config = load(
        tmp_path, FULL % ("0f" * 32), ZHIPU_API_KEY="secret-of-zhipu", HTTPS_PROXY="http://me:word@proxy:3128"
    )
    assert "secret-of-zhipu" not in repr(config)
    assert "word" not in repr(config.http)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[sever]\n", "sever: unknown key; nearest: server"),
        ("[server]\nadress = '1'\n", "server.adress: unknown key; nearest: address"),
        ("[providers.ollama]\nbase_ulr = 'http://x'\n", "providers.ollama.base_ulr: unknown key; nearest: base_url"),
        (
            "[providers.ollama.dialect]\nusage_in_steam = true\n",
            "providers.ollama.dialect.usage_in_steam: unknown key; nearest: usage_in_stream",
        ),
        ("[routes.a]\ntarget = []\n", "routes.a.target: unknown key; nearest: targets"),
        (
            '[models."ollama/a.b".options]\ntemprature = 1\n',
            'models."ollama/a.b".options.temprature: unknown key; nearest: temperature',
        ),
        ("[http]\nconnect_second = 1\n", "http.connect_second: unknown key; nearest: connect_seconds"),
        ("[http]\nconnect_seconds = 'long'\n", "http.connect_seconds: expected a number, got a string"),
        ("[http]\nsilence_seconds = 0\n", "http.silence_seconds: expected more than 0 seconds, got 0"),
        ("[http]\nsilence_seconds = nan\n", "http.silence_seconds: expected more than 0 seconds, got nan"),
        ("[http]\nca_file = 7\n", "http.ca_file: expected a string, got a whole number"),
        ("http = 3\n", "http: expected a table, got int"),
        ("[routes]\na = 3\n", "routes.a: expected a table, got int"),
        ("[routes.a]\n", "routes.a.targets: missing"),
        ("[routes.a]\ntargets = []\n", "routes.a.targets: expected at least one provider/model, got none"),
        ("[routes.a]\ntargets = ['x']\n", "routes.a.targets[0]: expected a target provider/model, got 'x'"),
        ("[routes.a]\ntargets = ['olama/x']\n", "routes.a.targets[0]: unknown provider 'olama'; nearest: ollama"),
        ("[routes.a]\ntargets = [1]\n", "routes.a.targets[0]: expected a string, got a whole number"),
        (
            "[routes.a]\ntargets = ['ollama/x']\narguments = 'dead'\n",
            "routes.a.arguments: expected one of live, raw, whole, got 'dead'",
        ),
        (
            "[routes.a]\ntargets = ['ollama/x']\n[routes.a.tool_policy]\nbash = 'drop'\nmcp = 'deny'\n",
            "routes.a.tool_policy.mcp: expected one of drop, refuse, translate",
        ),
        (
            "[agent.mcp.a]\ncommand = ['x']\n[agent.mcp.'b.c']\nurl = 'http://x'\nheaders = { x = 1 }\n",
            'agent.mcp."b.c".headers.x: expected a string, got a whole number',
        ),
        ("[routes.'a/b']\ntargets = ['ollama/x']\n", 'routes."a/b": expected a name without'),
        ("[prices.'ollama/x']\ninput = 1\n", 'prices."ollama/x".output: missing'),
        (
            "[prices.'ollama/*']\ninput = 1\noutput = 1\n",
            'prices."ollama/*": expected one provider/model, got a pattern',
        ),
        ("[prices.'ollama/x']\ninput = -1\noutput = 1\n", 'prices."ollama/x".input: expected US dollars'),
        ("[prices.'ollama/x']\ninput = 1\noutput = '1e999999999'\n", 'prices."ollama/x".output: expected US dollars'),
        ("[server]\naddress = '4141'\n", "server.address: expected HOST:PORT, got '4141'"),
        ("[server]\naddress = 'localhost:70000'\n", "server.address: expected HOST:PORT"),
        ("[server]\nkeys = ['sha256:12']\n", "server.keys[0]: expected sha256: and 64 hexadecimal digits"),
        ("[validate]\nexpires_days = 0\n", "validate.expires_days: expected at least 1, got 0"),
        ("[server\n", "expected TOML: "),
    ],
)
def test_what_is_wrong_is_named_by_its_path(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text)


@pytest.mark.parametrize("address", ["0.0.0.0:4141", "10.0.0.5:80", "[::]:4141", "lab:1", "127.0.0.1.evil.example:1"])
def test_an_address_that_others_reach_needs_keys(tmp_path: Path, address: str) -> None:
    text = f'[server]\naddress = "{address}"\n'
    assert "set server.keys first: dragoman keys new" in refusal(tmp_path, text)
    assert load(tmp_path, text + 'keys = ["env:KEY"]\n').server.address == address


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:4141", "[::1]:4141", "127.1.2.3:80"])
def test_loopback_needs_none(tmp_path: Path, address: str) -> None:
    assert load(tmp_path, f'[server]\naddress = "{address}"\n').server.keys == ()


# ---------------------------------------------------------------- secrets


@pytest.mark.parametrize("key", ["sk-live-0123456789", "env:", "environment:NAME", "file:"])
def test_a_key_written_out_is_refused_and_not_shown(tmp_path: Path, key: str) -> None:
    message = refusal(tmp_path, f'[providers.openai]\napi_key = "{key}"\n')
    assert message == "providers.openai.api_key: expected env:NAME or file:PATH, got something else (not shown)"
    assert "not shown" in refusal(tmp_path, f'[server]\nkeys = ["{key}"]\n')


def test_a_key_that_is_not_there_fails_only_when_it_is_used(tmp_path: Path) -> None:
    config = load(tmp_path, '[providers.openai]\napi_key = "env:MINE"\n', OPENAI_API_KEY="the usual one")
    assert config.key("anthropic") is None
    with pytest.raises(ConfigError, match=r"providers\.openai\.api_key: the environment variable MINE is not set"):
        config.key("openai")


def test_a_key_in_a_file_is_read_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("of-the-file\n")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for reference in ("file:key", f"file:{tmp_path / 'key'}", "file:~/key"):
        config = load(tmp_path, f"[providers.openai]\napi_key = '{reference}'\n")
        assert config.key("openai") == Secret("of-the-file")
    for name, reason in (("empty", "is empty"), ("no", "cannot read no"), ("binary", "not UTF-8")):
        config = load(tmp_path, f'[providers.openai]\napi_key = "file:{name}"\n')
        with pytest.raises(ConfigError, match=reason):
            config.key("openai")


def test_a_proxy_is_off_unless_named_and_set(tmp_path: Path) -> None:
    assert load(tmp_path, "", HTTPS_PROXY="http://proxy:1").http.proxy is None
    assert load(tmp_path, '[http]\nproxy = "env:HTTPS_PROXY"\n').http.proxy is None
    assert load(tmp_path, '[http]\nproxy = "http://proxy:1"\n').http.proxy == Secret("http://proxy:1")
    message = refusal(tmp_path, '[http]\nproxy = "me:word@proxy"\n')
    assert "expected http://HOST:PORT" in message and "word" not in message
    assert "expected http://HOST:PORT" in refusal(tmp_path, '[http]\nproxy = "http://proxy:port"\n')


def test_every_address_is_checked_when_the_file_is_read(tmp_path: Path) -> None:
    lab = '[providers.lab]\nprotocol = "openai-chat"\nbase_url = "http://[::1"\n'
    assert refusal(tmp_path, lab).startswith(
        "providers.lab.base_url: expected http://… or https://…, got 'http://[::1'"
    )
    vendor = '[providers.anthropic]\nclient_login = true\nbase_url = "http://[::1"\n'
    assert refusal(tmp_path, vendor).startswith("providers.anthropic.base_url: expected ")
    tools = '[agent.mcp.files]\nurl = "localhost:80"\n'
    assert refusal(tmp_path, tools).startswith("agent.mcp.files.url: expected http://… or https://…")
    for ledger in ('store = "postgresql://[::1"', 'store = "postgresql://u:p@h:port/d"', 'counters = "valkey://[::1"'):
        assert refusal(tmp_path, f"[ledger]\n{ledger}\n").startswith(f"ledger.{ledger.partition(' ')[0]}: expected ")
    for section in ("server", "admin"):
        for address in ("[::1", "::1:80", "a b:80", "u@h:80", "h/p:80"):
            message = refusal(tmp_path, f'[{section}]\naddress = "{address}"\n')
            assert message == f"{section}.address: expected HOST:PORT, got {address!r}"


def test_a_secret_masks_itself() -> None:
    secret = Secret("hidden word")
    shown = [repr(secret), str(secret), f"{secret}", f"{secret:>20}", "%s %r" % (secret, secret), repr([secret])]
    assert not any("hidden" in text for text in shown)
    assert secret.reveal() == "hidden word"
    assert not Secret("") and secret


def test_a_secret_is_compared_by_value_and_never_leaves_by_accident() -> None:
    assert Secret("one") == Secret("one")
    assert Secret("one") != Secret("two")
    assert Secret("one") != "one"
    assert copy.deepcopy(Secret("one")) == Secret("one")
    for leave in (pickle.dumps, hash, _json.encode):
        with pytest.raises(TypeError):
            leave(Secret("hidden word"))


# ---------------------------------------------------------------- aliases


def test_a_route_may_have_further_names(tmp_path: Path) -> None:
    text = '[routes.coder]\ntargets = ["ollama/qwen3"]\naliases = ["gpt-4o", "openai/gpt-4o"]\n'
    assert load(tmp_path, text).aliases == {"gpt-4o": "coder", "openai/gpt-4o": "coder"}
    second = '[routes.other]\ntargets = ["ollama/granite4"]\naliases = ["{}"]\n'
    for taken, owner in (("coder", "coder"), ("gpt-4o", "coder"), ("other", "other")):
        said = refusal(tmp_path, text + second.format(taken))
        assert said == f"routes.other.aliases[0]: {taken!r} names routes.{owner} already"
    for wrong in ("*", ""):
        assert refusal(tmp_path, text + second.format(wrong)) == "routes.other.aliases[0]: expected a name"


def test_a_file_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "x = " + "[" * 100_000) == "expected TOML that is nested less deeply"


@pytest.mark.parametrize(
    ("store", "words"),
    [
        ("mysql://u:pw-canary@h/d", "expected sqlite, or postgresql://"), ("pw-canary", "expected sqlite, or"),
        ("postgresql://u:pw-canary@/d", "without a host or a database"), ("", "expected sqlite, or"),
        ("postgresql://u:pw-canary@h", "without a host or a database"),
        ("postgresql://u:pw-canary@h:x/d", "cannot be read"), ("postgresql://[u:pw-canary/d", "cannot be read"),
        ("env:PW_CANARY_NONE", "the environment variable PW_CANARY_NONE is not set"),
    ],
)  # fmt: skip
def test_the_address_of_a_ledger_is_read_and_not_shown(tmp_path: Path, store: str, words: str) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[ledger]\nstore = "{store}"\n')
    with pytest.raises(ConfigError, match=words) as refused:
        load_config(file, environ={}, home=tmp_path)
    assert "pw-canary" not in str(refused.value)


def test_a_ledger_is_in_postgresql_by_reference_and_has_limits_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text('[ledger]\nstore = "env:STORE"\n')
    environ = {"STORE": "postgresql://u:pw-canary@h/d"}
    config = load_config(file, environ=environ, home=tmp_path)
    assert config.ledger.store is not None and config.ledger.store.reveal() == environ["STORE"]
    assert "pw-canary" not in repr(config)
    file.write_text('[ledger]\nstore = "env:STORE"\n[[quotas]]\nscope = "all"\nrequests = 5\nper = "minute"\n')
    assert len(load_config(file, environ=environ, home=tmp_path).quotas) == 1
    file.write_text("[ledger]\nstore = 5\n")
    with pytest.raises(ConfigError, match=r"ledger\.store: expected text"):
        load_config(file, environ=environ, home=tmp_path)


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        ("mysql://u:pw-canary@h", "something else"),
        ("valkeys://:pw-canary@", "without a host"),
        ("valkeys://:pw-canary@h/name", "more than a number"),
        ("valkeys://:pw-canary@h:99999", "cannot be read"),
        ("valkeys://:pw-canary@h/0?ssl_cert_reqs=none", "other words than"),
        ("valkey://:pw-canary@h", "without TLS"),
    ],
)
def test_the_address_of_counters_is_read_and_not_shown(tmp_path: Path, counters: str, words: str) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(f'[ledger]\nstore = "postgresql://u@h/d"\ncounters = "{counters}"\n')
    with pytest.raises(ConfigError, match=words) as refused:
        load_config(file, environ={}, home=tmp_path)
    assert "pw-canary" not in str(refused.value)


def test_counters_stand_beside_a_postgresql_and_count_what_they_have_exactly(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text('[ledger]\ncounters = "valkey://127.0.0.1"\n')
    with pytest.raises(ConfigError, match="beside them"):
        load_config(file, environ={}, home=tmp_path)
    for address in ("valkey://127.0.0.1:6379/1", "valkeys://h", "redis://h?tls=off", "store"):
        file.write_text(f'[ledger]\nstore = "postgresql://u@h/d"\ncounters = "{address}"\n')
        found = load_config(file, environ={}, home=tmp_path).ledger.counters
        assert (None if found is None else found.reveal()) == (None if address == "store" else address)
    large = '[ledger]\nstore = "postgresql://u@h/d"\ncounters = "valkeys://h"\n[[quotas]]\nscope = "all"\nper = "day"\n'
    file.write_text(large + "usd = 9_000_000\n")
    assert len(load_config(file, environ={}, home=tmp_path).quotas) == 1
    file.write_text(large + "usd = 9_100_000\n")
    with pytest.raises(ConfigError, match="9 million"):
        load_config(file, environ={}, home=tmp_path)
