"""A server's address where a command takes a provider, a target or an address: alike everywhere, with the way out."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman import Client, ConfigError, UsageError
from dragoman.cli.complete import COMMANDS
from dragoman.cli.main import load_command, main
from for_each import for_each

BARE = ("127.0.0.1:1", "localhost:8000/v1", "[::1]:8080", "gpu-box:11434")
#: What the words before and behind it must be, for each argument that names a server.
PLACES = {
    ("call", "TARGET"): ([], ["hello"]),
    ("chat", "TARGET"): ([], ["-p", "hello"]),
    ("explain", "--to"): (["--from", "openai-chat", "--to"], ["/dev/null"]),
    ("env", "--url"): (["codex", "--url"], []),
    ("models", "TARGET|WORD"): ([], []),
    ("models", "--provider"): (["--provider"], []),
    ("record", "SERVER"): ([], []),
    ("serve", "--host"): (["--host"], []),
    ("serve", "--provider"): (["--model", "m", "--provider"], []),
    ("tail", "--url"): (["--url"], []),
    ("validate", "TARGET"): ([], []),
}
#: Arguments that are called alike and name something else.
OTHERS = {"--model", "--app", "--owner", "--team", "NAME"}


def places() -> Iterator[tuple[str, str]]:
    """Each argument of a command that is called as servers are."""
    for command in COMMANDS:
        parser = argparse.ArgumentParser()
        load_command(command).add_arguments(parser)
        for action in parser._actions:
            if action.metavar in ("NAME", "SERVER", "TARGET", "TARGET|WORD", "URL", "H"):
                yield command, (action.option_strings or [str(action.metavar)])[0]


def test_each_argument_that_names_a_server_is_tried() -> None:
    assert {place for place in places() if place[1] not in OTHERS} == PLACES.keys()


@pytest.fixture(autouse=True)
def _no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_CONFIG", str(tmp_path / "dragoman.toml"))
    (tmp_path / "dragoman.toml").write_text("", encoding="utf-8")


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of a command line that is wrong; nothing is asked for it."""
    try:
        status: object = main(words)
    except SystemExit as ended:
        status = ended.code
    assert status == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("place", PLACES, ids=" ".join)
@pytest.mark.parametrize("address", BARE)
def test_an_address_without_its_scheme_is_answered_with_the_whole_one(
    place: tuple[str, str], address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before, behind = PLACES[place]
    err = refusal([place[0], *before, address, *behind], capsys)
    assert repr(address) in err or repr(address.partition("/")[0]) in err  # the half that names the provider
    if place == ("serve", "--host"):
        assert "--port" in err
    else:
        assert f"http://{address.partition('/')[0]}" in err


@pytest.mark.parametrize("place", [one for one in PLACES if one[1] in ("TARGET", "--provider", "--to")], ids=" ".join)
@pytest.mark.parametrize("word", ["127.0.0.1:1/m", "http://127.0.0.1:1", "http://127.0.0.1:1/v1/m", "https://h/v1"])
def test_an_address_is_no_provider(place: tuple[str, str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    before, behind = PLACES[place]
    err = refusal([place[0], *before, word, *behind], capsys)
    assert "expected a provider's name, got an address" in err
    assert "[providers.NAME] with base_url = " in err


def test_a_password_or_a_query_in_an_address_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("http://me:word@host/v1/m", "http://host/v1?key=word", "me:word@host:80/m"):
        assert "word" not in refusal(["call", word, "hello"], capsys)


@pytest.mark.parametrize("address", BARE)
def test_the_library_and_the_file_say_the_same(address: str, tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    for table in ("[providers.lab]\nprotocol = 'openai-chat'\nbase_url", "[agent.mcp.x]\nurl", "[http]\nproxy"):
        file.write_text(f"{table} = '{address}'\n", encoding="utf-8")
        with pytest.raises(ConfigError, match="expected http://") as raised:
            Client(file)
        assert f"; write http://{address}" in str(raised.value)
    with pytest.raises(UsageError) as refused:
        Client(base_url=address)
    assert f"; write http://{address}" in str(refused.value)
    whole = f"http://{address.rstrip('/')}/chat/completions"
    with pytest.raises(UsageError, match="expected the address before /chat/completions"):
        Client(base_url=whole)
    file.write_text(f"[providers.lab]\nprotocol = 'openai-chat'\nbase_url = '{whole}/'\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"lab\.base_url: expected the address before /chat/completions"):
        Client(file)
    with Client({}) as client, pytest.raises(UsageError, match=r"got an address .*\[providers\.NAME\]"):
        client.reply(f"{address}/m", "hello")


#: By what is said of each, addresses that are no base URL.
_NO_BASE = {
    "expected the address before /": [
        "/v1/chat/completions", "/v1/Chat/Completions//", "/v1/completions", "/v1/embeddings", "/openai/responses/",
        "/v1/messages/count_tokens", "/v1/models", "/v1beta/models/", "/api/chat", "/api/generate", "/api/tags",
    ],
    "expected the address before :": ["/v1/models/m:generateContent", "/v1/models/m:streamRawPredict", "/m:predict/"],
    "expected no blank, line end or invisible": [
        "/v1 ", "/v1\n", "/v1\r\nX-A: b", "/v1\0", "/a b", "/v1\tb", "/v1\u200b", "/v1\u00a0", "/\x7f",
        "/v1/responses ",
    ],
    "expected no query in it; set ": ["/v1?", "/v1?api-version=1", "/v1#part", "/v1/responses?a=b"],
}  # fmt: skip


@for_each("said, path", [(said, path) for said, paths in _NO_BASE.items() for path in paths])
def test_an_address_that_is_no_base_url_is_refused(said: str, path: str) -> None:
    """Blanks, line ends and paths of other requests were sent within the path, and the 404 did not say why."""
    with pytest.raises(UsageError, match=f"^base_url: {said}"):
        Client(base_url=f"http://host{path}")
    with pytest.raises(ConfigError, match=f"^providers.lab.base_url: {said}"):
        Client(providers={"lab": {"base_url": f"http://host{path}", "protocol": "openai-chat"}})


@for_each("path", ["", "/", "/v1/", "/openai/deployments/gpt-4", "/models", "/api", "/v1/chat", "/é", "/inference"])
def test_an_address_that_may_be_a_base_url_is_taken(path: str) -> None:
    Client(base_url=f"http://host:8000{path}").close()


@pytest.mark.parametrize("word", ["granite4:3b", "qwen3:latest", "a:b", "ollama/x", "localhost", "::1", "x:70000"])
def test_a_name_with_a_colon_is_no_address(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "address" not in refusal(["call", word.replace("/x", "x/x"), "hello"], capsys)
