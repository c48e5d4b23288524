"""What somebody who knows the documents alone guesses wrongly: the message says what is taken, and nothing is sent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic
import pytest

import dragoman
from dragoman.errors import McpFailed
from dragoman.testing import FakeModel, call

PAIR = r"a role goes into a dict: \{'role': 'user', 'content': '…'\}"


@pytest.mark.parametrize(
    ("guess", "words"),
    [
        (lambda: dragoman.reply("a/m", ("user", "hi")), PAIR),
        (lambda: dragoman.reply("a/m", [("user", "hi")]), PAIR),
        (lambda: dragoman.reply("a/m", ["What?", Path("cat.png")]), r"Message\.user\('…', Path\('cat\.png'\)\)"),
        (lambda: dragoman.reply("a/m", Path("cat.png")), r"Message\.user\('…', Path\('cat\.png'\)\)"),
        (lambda: dragoman.reply("a/m", "hi", output_type=5), "got an int"),
        *(
            (lambda said=said: dragoman.reply("a/m", said), "messages: expected something in every message of the user")
            for said in (
                "",
                " \n",
                [""],
                ["hi", dragoman.Message.user(""), "there"],
                {"role": "user", "content": ""},
                [{"role": "user", "content": []}],
                [{"role": "user", "parts": [{"text": " "}]}],
                [{"role": "user", "content": [{"type": "text", "text": ""}]}],
            )
        ),
        (lambda: dragoman.embed("ollama/m", []), "got an empty list"),
        (lambda: dragoman.embed("ollama/m", ""), "got an empty string"),
        (
            lambda: dragoman.embed("anthropic/claude", "hi"),
            r"target: expected .* embeddings .*, got 'anthropic/claude'$",
        ),
        (lambda: dragoman.decode(b"{}", "openai"), "protocol: .* got 'openai'; nearest: openai-chat"),
        (lambda: dragoman.Media.of(b"png"), r"Media\.of: expected the path of a file, got bytes"),
        (lambda: dragoman.run("a/m", "hi", mcp={"c": {"command": "python x.py"}}), r"mcp\.c\.command: expected a list"),
        (lambda: dragoman.run("a/m", "hi", mcp={"c": {"comand": ["x"]}}), r"mcp\.c\.comand: unknown key; nearest"),
        (lambda: dragoman.run("a/m", "hi", mcp={"c": {}}), r"mcp\.c: expected either command or url"),
    ],
)
def test_a_wrong_guess_is_told_what_is_taken(guess: Callable[[], Any], words: str) -> None:
    with FakeModel("never said") as fake, pytest.raises(dragoman.UsageError, match=words):
        guess()
    assert fake.requests == []


@pytest.mark.parametrize("address", ["http://[::1", "http://h:port/v1", "localhost:8000", "http://"])
def test_a_broken_address_is_refused_when_the_client_is_made(address: str) -> None:
    with pytest.raises(dragoman.DragomanError, match=r"base_url: expected http://… or https://…, got "):
        dragoman.Client(base_url=address)
    with pytest.raises(dragoman.UsageError, match=r"^base_url: expected http://… or https://…, got something else"):
        dragoman.Client(base_url="localhost:8000/v1")
    with pytest.raises(dragoman.UsageError, match=r"^routes\.a: expected a list of targets, or a table, got a str"):
        dragoman.Client(routes={"a": "ollama/m"})
    with pytest.raises(dragoman.DragomanError, match=r"providers\.lab\.base_url: expected http://… or https://…, got "):
        dragoman.Client(providers={"lab": {"base_url": address, "protocol": "openai-chat"}})


def test_a_file_is_named_by_its_path_as_text_too(tmp_path: Path) -> None:
    file = tmp_path / "cat.png"
    file.write_bytes(b"png")
    assert dragoman.Media.of(str(file)) == dragoman.Media.of(file)


def test_a_file_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.types._LARGEST_FILE", 1 << 20)
    endless = tmp_path / "zero.png"
    endless.symlink_to("/dev/zero")
    with pytest.raises(dragoman.UsageError, match=r"expected a file of at most 1 MiB, got more: '.*zero\.png'"):
        dragoman.Media.of(endless)


@pytest.mark.parametrize("name", ["google", "Claude", "gpt", "grok", "kimi", "glm"])
def test_another_name_of_a_provider_leads_to_ours(name: str) -> None:
    with pytest.raises(dragoman.UsageError, match=f"unknown provider '{name}'; it is called [a-z]+ here"):
        dragoman.Client({}).reply(f"{name}/m", "hi")


def test_the_one_server_of_a_client_is_corrected_in_code() -> None:
    client = dragoman.Client(base_url="http://127.0.0.1:9/v1", retries=0)
    with pytest.raises(dragoman.CallFailed, match=r"start the server, or correct base_url\)"):
        client.reply("m", "hi")


def test_the_models_of_the_one_server_can_be_asked_as_they_are_listed() -> None:
    fake = FakeModel("hello")
    with fake.serve() as served, dragoman.Client(base_url=f"{served.url}/v1") as client:
        [model] = client.models()
        assert str(client.reply(model.target, "hi")) == "hello"
    assert [request.model for request in fake.requests] == [model.target.partition("/")[2]]


def test_an_address_without_its_version_is_told_so() -> None:
    with FakeModel("hello").serve() as served:
        client = dragoman.Client(base_url=served.url, protocol="gemini-generate", api_key="k", retries=0)
        with pytest.raises(dragoman.CallFailed, match=r"does base_url end in /v1beta\?"):
            client.reply("m", "hi")


def test_a_fake_model_has_vectors_of_the_size_that_was_asked() -> None:
    with FakeModel():
        sizes = [len(dragoman.embed("openai/m", "one", dimensions=size).vectors[0]) for size in (4, 8, 300)]
        usual = dragoman.embed("openai/m", ["one", "two"]).vectors
    assert sizes == [4, 8, 300]
    assert usual[0] != usual[1]


def test_an_mcp_server_that_ends_is_heard(capfd: pytest.CaptureFixture[str]) -> None:
    words = "import sys; print('no JSON'); sys.exit('the file of settings is missing')"
    with FakeModel("never said"), pytest.raises(dragoman.McpFailed, match=r"nosuch: No such file or directory$"):
        dragoman.run("a/m", "hi", mcp={"c": {"command": ["nosuch"]}})
    with FakeModel("never said") as fake, pytest.raises(McpFailed, match="it wrote: the file of settings is missing"):
        dragoman.run("a/m", "hi", mcp={"c": {"command": [sys.executable, "-c", words]}})
    assert fake.requests == []
    assert capfd.readouterr() == ("", "")  # nothing of the package's log either


def test_the_model_is_told_the_names_of_tools_of_mcp_servers(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "from mcp.server import MCPServer\nserver = MCPServer('calc')\n"
        "@server.tool()\ndef add(a: int, b: int) -> int:\n    'Add.'\n    return a + b\nserver.run()\n"
    )
    with FakeModel(call("add", a=1, b=2), "sorry") as fake:
        dragoman.run("a/m", "1 + 2?", mcp={"calc": {"command": [sys.executable, str(server)]}})
    [result] = fake.requests[1].messages[-1].parts
    assert isinstance(result, dragoman.ToolResult)
    assert "there are: calc_add" in result.text


def test_what_another_library_says_and_what_there_is_reaches_the_message(tmp_path: Path) -> None:
    """Only the name of pydantic's exception was told, of several files none, and no route."""

    class Strange(pydantic.BaseModel):
        value: Callable[[], int]

    client = dragoman.Client(routes={"fast": ["ollama/a"], "good": ["ollama/b"]})
    (tmp_path / "a.png").write_bytes(b"x")
    guesses: list[tuple[Callable[[], object], str]] = [
        (lambda: client.reply("ollama/a", "x", output_type=list[Strange]), "Cannot generate a JsonSchema"),
        (lambda: client.reply("ollama/a", "x", output_type=Strange), "Cannot generate a JsonSchema"),
        (lambda: client.reply("zzz", "x"), "got 'zzz'; there are the routes fast, good"),
        (lambda: dragoman.Message.user("Look", tmp_path / "a.png", tmp_path / "b.xyz"), "b.xyz"),
    ]
    for guess, words in guesses:
        with pytest.raises(dragoman.UsageError, match=words):
            guess()
