"""`dragoman doctor`: what it finds, what it calls a fault, and the one fix it names for each."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from answering import answering
from dragoman.cli.commands.doctor import render_finding
from dragoman.cli.doctor_checks import Finding, examine, fix_for
from dragoman.cli.main import main
from dragoman.cli.terminal import Paint
from dragoman.config import load_config
from dragoman.events import Failure

SERVERS = ("ollama", "lmstudio", "llamacpp", "vllm", "sglang")


def unused_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def settings(tmp_path: Path, text: str, **urls: str) -> Path:
    """A configuration: the servers of this machine as named, all others where nothing listens."""
    file = tmp_path / "dragoman.toml"
    nowhere = unused_url()
    file.write_text(
        text + "".join(f'\n[providers.{name}]\nbase_url = "{urls.get(name, nowhere)}"\n' for name in SERVERS)
    )
    return file


def findings(tmp_path: Path, text: str = "", environ: dict[str, str] | None = None, **urls: str) -> list[Finding]:
    file = settings(tmp_path, text, **urls)
    return asyncio.run(examine(load_config(file, environ=environ or {}, home=tmp_path)))


def about(found: list[Finding], subject: str) -> list[Finding]:
    return [finding for finding in found if finding.subject.startswith(subject)]


def test_a_server_that_the_file_names_and_that_is_not_there(tmp_path: Path) -> None:
    (finding,) = about(findings(tmp_path), "vllm")
    assert finding.level == "bad"
    assert "no connection to http://127.0.0.1:" in finding.text
    assert finding.fix == "start the server, or set base_url under [providers.vllm]"


def test_a_key_file_that_every_user_may_read(tmp_path: Path) -> None:
    text = '[server]\nkeys = ["file:mine", "file:theirs", "file:./theirs", "file:none"]\n'
    text += '[providers.x]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:1"\napi_key = "file:theirs"\n'
    for name, mode in (("mine", 0o600), ("theirs", 0o644)):
        (tmp_path / name).write_text("a key of this gateway")
        (tmp_path / name).chmod(mode)
    (finding,) = about(findings(tmp_path, text), "key file")
    assert finding.text.startswith(f"{tmp_path / 'theirs'}: ") and finding.text.endswith("expected mode 600, got 644")


def test_a_good_server_with_a_deaf_and_a_short_model(tmp_path: Path) -> None:
    answers: dict[str, Any] = {
        "/api/tags": {"models": [{"name": "granite4"}, {"name": "tiny"}]},
        "/api/show": lambda body: (
            {"capabilities": ["tools"], "model_info": {"a.context_length": 131072}}
            if body["model"] == "granite4"
            else {"capabilities": [], "model_info": {"b.context_length": 2048}}
        ),
    }
    with answering(answers) as url:
        good, deaf, short = about(findings(tmp_path, ollama=url), "ollama")
    assert (good.level, good.text) == ("good", "2 models: granite4, tiny; 1 with tools")
    assert (deaf.level, deaf.text) == ("note", "no tools: tiny")
    assert (short.level, short.text) == ("note", "small context: tiny (2,048 tokens)")
    assert short.fix


def test_a_server_whose_every_model_drops_tools_silently(tmp_path: Path) -> None:
    answers = {"/v1/models": {"data": [{"id": "m"}]}, "/props": {"chat_template_caps": {"supports_tool_calls": False}}}
    with answering(answers) as url:
        good, bad = about(findings(tmp_path, llamacpp=f"{url}/v1"), "llamacpp")
    assert (good.level, bad.level, bad.text) == ("good", "bad", "no tools: m")
    assert "chat template" in bad.fix


def test_a_server_without_a_model(tmp_path: Path) -> None:
    with answering({"/api/tags": {"models": []}}) as url:
        (finding,) = about(findings(tmp_path, ollama=url), "ollama")
    assert (finding.level, finding.fix) == ("bad", "ollama pull granite4")


def test_a_key_that_is_refused_and_one_that_is_good(tmp_path: Path) -> None:
    with answering({"/v1/models": {"data": [{"id": "a"}, {"id": "b"}]}}, key="right") as url:
        text = f'[providers.openai]\nbase_url = "{url}/v1"\n[providers.groq]\nbase_url = "{url}/v1"\n'
        found = findings(tmp_path, text, {"OPENAI_API_KEY": "right", "GROQ_API_KEY": "wrong-0123456789"})
    (good,), (bad,) = about(found, "openai"), about(found, "groq")
    assert (good.subject, good.level, good.text) == (f"openai at {url}/v1 (OPENAI_API_KEY)", "good", "2 models")
    assert (bad.level, bad.text, bad.fix) == ("bad", "invalid key", "set a valid key: GROQ_API_KEY")
    assert not any("right" in repr(finding) or "wrong" in repr(finding) for finding in found)


def test_a_provider_that_keeps_no_list_is_good(tmp_path: Path) -> None:
    with answering({}) as url:
        text = f'[providers.openai]\nbase_url = "{url}/v1"\n'
        (finding,) = about(findings(tmp_path, text, {"OPENAI_API_KEY": "k"}), "openai")
    assert finding.level == "good" and "lists no models" in finding.text


def test_a_host_that_is_not_known(tmp_path: Path) -> None:
    text = '[providers.lab]\nprotocol = "openai-chat"\nbase_url = "http://nothing.invalid/v1"\n'
    (finding,) = about(findings(tmp_path, text), "lab")
    assert finding.level == "bad" and "is not known" in finding.text
    assert finding.fix.startswith("check the host in http://nothing.invalid/v1")


def test_a_server_without_trusted_tls(tmp_path: Path) -> None:
    with answering({}) as url:  # it speaks no TLS at all
        text = f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{url.replace("http:", "https:")}/v1"\n'
        (finding,) = about(findings(tmp_path, text), "lab")
    assert finding.level == "bad" and "TLS" in finding.text
    assert finding.fix.startswith("set [http] ca_file")


def test_a_key_that_cannot_be_read(tmp_path: Path) -> None:
    (finding,) = about(findings(tmp_path, '[providers.zhipu]\napi_key = "env:NOT_SET"\n'), "key of zhipu")
    assert finding.level == "bad" and "NOT_SET is not set" in finding.text and finding.fix


def test_something_else_on_a_usual_port(tmp_path: Path) -> None:
    config = load_config(settings(tmp_path, ""), environ={}, home=tmp_path)
    provider = config.catalog.provider("vllm")
    for code, words in (
        ("tls", "[http] ca_file"),
        ("proxy", "[http] proxy"),
        ("refused", "start the server"),
        ("unknown_host", "check the host"),
        (None, "check base_url under [providers.vllm]"),
    ):
        assert words in fix_for(Failure("connection", "words", code=code), provider, config)
    assert "VLLM_API_KEY" in fix_for(Failure("auth", "words", 401), provider, config)
    assert "credit" in fix_for(Failure("quota", "words", 402), provider, config)
    assert "proxy" in fix_for(Failure("timeout", "words"), provider, config)


def test_nothing_at_all_is_a_fault_with_a_way_out(tmp_path: Path) -> None:
    (finding,) = about(findings(tmp_path), "models")
    assert finding.level == "bad" and "dragoman demo" in finding.fix


def test_local_says_whom_it_did_not_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = '[providers.lab]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n'
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(settings(tmp_path, table)))
    main(["doctor", "--local"])
    assert "– lab: not asked" in capsys.readouterr().out


def test_the_command_prints_findings_and_fails_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(settings(tmp_path, "")))
    assert main(["doctor", "--local"]) == 1
    out = capsys.readouterr()
    assert f"✓ configuration: {tmp_path / 'dragoman.toml'}\n" in out.out
    assert "✗ ollama: " in out.out and "    fix start the server" in out.out
    assert out.err.count("\n") == 1
    assert main(["doctor", "--local", "--json"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["level"] for row in rows if row["subject"] != "chat's commands"} == {"good", "bad"}
    assert all(row["fix"] for row in rows if row["level"] == "bad")


def test_a_broken_configuration_is_the_first_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dragoman.toml").write_text("[sever]\n")
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(tmp_path / "dragoman.toml"))
    assert main(["doctor"]) == 1
    assert "sever: unknown key; nearest: server" in capsys.readouterr().out


def test_a_server_that_gives_no_list_is_told_with_path_and_status(tmp_path: Path) -> None:
    with answering({"/v1/models": (501, {"error": {"message": "Not here"}})}) as url:
        found = findings(tmp_path, f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{url}/v1"\n', {})
    (bad,) = about(found, "lab")
    assert (bad.level, bad.text) == ("bad", "Not here (/models answered 501)")


@pytest.mark.parametrize("columns", [1, 30, 80, 200])
def test_a_fix_goes_on_below_itself_between_words(columns: int) -> None:
    fix = "run `ollama pull granite4`, or set a key such as ANTHROPIC_API_KEY; embedded models need none"
    first, *lines = render_finding(Finding("bad", "models", "none", fix), Paint(colourful=False), columns).splitlines()
    assert first == "✗ models: none"
    assert " ".join(line.strip() for line in lines) == f"fix {fix}"
    assert all(len(line) <= max(columns, 29) for line in lines)
    assert [line[:8] for line in lines[1:]] == [" " * 8] * (len(lines) - 1)
