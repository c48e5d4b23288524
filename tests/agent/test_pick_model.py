"""The model to begin with when nobody named one, and what is said of a model that cannot go on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from agent.playing import config_of, playing, say
from answering import answering
from dragoman.agent.pick_model import EMBEDDED, check_target, choose_target, full_name, known_facts
from dragoman.client import AsyncClient
from dragoman.config import Config
from dragoman.errors import UsageError

NOBODY = '[providers.ollama]\nbase_url = "http://127.0.0.1:9"\n'
OLLAMA = {
    "/api/tags": {"models": [{"name": "plain:latest"}, {"name": "granite4:latest"}]},
    "/api/show": lambda body: {
        "capabilities": ["completion", "tools"] if "granite" in str(body) else ["completion"],
        "model_info": {"granite.context_length": 131_072},
    },
}


def test_the_users_choice_comes_first(tmp_path: Path) -> None:
    config = config_of(tmp_path, NOBODY, '[agent]\ntarget = "openai/gpt-5"\n')
    assert asyncio.run(choose_target(config)).target == "openai/gpt-5"


def test_then_a_model_that_runs_here_and_takes_tools(tmp_path: Path) -> None:
    with answering(OLLAMA) as url:
        choice = asyncio.run(choose_target(config_of(tmp_path, f'[providers.ollama]\nbase_url = "{url}"\n')))
    assert choice.target == "ollama/granite4:latest"
    assert "runs here" in choice.why


def test_then_the_embedded_one(tmp_path: Path) -> None:
    choice = asyncio.run(choose_target(config_of(tmp_path, NOBODY)))
    assert choice.target == EMBEDDED
    with answering({"/api/tags": {"models": []}}) as url:
        choice = asyncio.run(choose_target(config_of(tmp_path, f'[providers.ollama]\nbase_url = "{url}"\n')))
    assert choice.target == EMBEDDED


def checked(config: Config, target: str) -> object:
    async def ask() -> object:
        async with AsyncClient(config) as client:
            return await check_target(client, target)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("target", "said"),
    [("ollama/none", "has no model 'none'"), ("ollama/plain", "takes no tools"), ("nowhere/m", "unknown provider")],
)
def test_a_model_that_cannot_go_on_is_refused_and_others_are_named(tmp_path: Path, target: str, said: str) -> None:
    with answering(OLLAMA) as url:
        config = config_of(tmp_path, f'[providers.ollama]\nbase_url = "{url}"\n')
        with pytest.raises(UsageError, match=said) as problem:
            checked(config, target)
        assert target.startswith("nowhere") or "ollama/granite4:latest" in str(problem.value)
        assert checked(config, "ollama/granite4") is not None


def named(config: Config, name: str) -> str:
    async def ask() -> str:
        async with AsyncClient(config) as client:
            return await full_name(client, name)

    return asyncio.run(ask())


def test_a_bare_name_is_enough_where_one_provider_has_the_model(tmp_path: Path) -> None:
    listed = {"/v1/models": {"data": [{"id": "plain:latest"}, {"id": "qwen/qwen3"}]}}
    with answering(OLLAMA) as url, answering(listed) as lab:
        text = (
            f'[providers.ollama]\nbase_url = "{url}"\n'
            f'[providers.lab]\nprotocol = "openai-chat"\nbase_url = "{lab}/v1"\n'
            '[routes.granite4]\ntargets = ["lab/qwen/qwen3"]\n'
        )
        config = config_of(tmp_path, text)
        assert named(config, "granite4:latest") == "ollama/granite4:latest"
        assert named(config, "granite4") == "granite4"  # a route goes first
        assert named(config, "qwen/qwen3") == "lab/qwen/qwen3"
        assert named(config, "ollama/whatever") == "ollama/whatever"
        with pytest.raises(
            UsageError, match="several providers have 'plain': say ollama/plain:latest or lab/plain:latest"
        ):
            named(config, "plain")
        with pytest.raises(UsageError, match="unknown provider 'qwen'"):
            named(config, "qwen/qwen4")
        with pytest.raises(UsageError, match="no provider that you can ask has the model 'granit5'; nearest: granite4"):
            named(config, "granit5")
        config = config_of(tmp_path, text.replace("granite4]", '"*"]'))
        assert named(config, "*") == "*"
        assert named(config, "granite4") == "ollama/granite4:latest"
        with pytest.raises(UsageError, match="has the model 'granit5'; nearest: granite4"):
            named(config, "granit5")


def test_a_window_that_only_the_server_knows_is_learnt(tmp_path: Path) -> None:
    async def ask(config: Config) -> int | None:
        async with AsyncClient(config) as client:
            facts = await known_facts(client, "ollama/granite4")
            return facts.context if facts is not None else None

    with answering(OLLAMA) as url:
        assert asyncio.run(ask(config_of(tmp_path, f'[providers.ollama]\nbase_url = "{url}"\n'))) == 131_072


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys\nclass Without:\n    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('rich', 'prompt_toolkit'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Without())\nfrom dragoman.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    )
    with playing(lambda request: say("hello")) as server:
        config = tmp_path / "dragoman.toml"
        config.write_text(server.table())
        work = tmp_path / "work"
        work.mkdir()
        command = [sys.executable, "-c", code, "chat", "lab/m", "--config", str(config), "--folder", str(work)]
        environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        chat = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
        assert chat.returncode == 1 and 'pip install "dragoman[agent]"' in chat.stderr
        task = subprocess.run([*command, "-p", "hi"], capture_output=True, text=True, check=False, env=environ)
        assert (task.returncode, task.stdout) == (0, "hello\n"), task.stderr
