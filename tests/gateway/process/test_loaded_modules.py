"""What a gateway loads at its start: each megabyte is there in every worker."""

import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = """
import asyncio, os, sys
from pathlib import Path
import dragoman.gateway.process.main
from dragoman.cli.main import load_command, make_parser
from dragoman.config import load_config
from dragoman.gateway.accounting import Ledger
from dragoman.gateway.process.gateway import Gateway
from dragoman.gateway.telemetry.record import Observer
from dragoman.ledger.folder import LedgerFolder

make_parser("serve", load_command("serve"))

async def serve(folder):
    config = load_config(folder / "dragoman.toml", environ={}, home=folder)
    observer = Observer()
    ledger = Ledger(LedgerFolder.of(folder / "ledger"), observer)
    gateway = await Gateway.open(config, host="127.0.0.1", port=0, observer=observer, ledger=ledger)
    print(*sys.modules)
    await gateway.close()

asyncio.run(serve(Path(sys.argv[1])))
"""
_PLAIN = """
[providers.near]
protocol = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
"""
_RARE = {
    "of the library": {"dragoman.client.asynchronous", "dragoman.client.runs.run", "dragoman.inputs", "dataclasses"},
    "of the admin API": {"dragoman.gateway.admin", "dragoman.gateway.administration", "csv"},
    "of several workers": {"dragoman.gateway.process.workers"},
    "of unusual answers and names": {"html", "difflib"},
    "of pages, archives and mail": {
        "importlib.resources",
        "tempfile",
        "zipfile",
        "http.client",
        "shutil",
        "bz2",
        "email.utils",
        "calendar",
    },
}


def loaded(folder: Path, config: str) -> set[str]:
    """The modules of a gateway that has started with this configuration."""
    (folder / "dragoman.toml").write_text(config)
    command = [sys.executable, "-c", _SCRIPT, str(folder)]
    return set(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout.split())


@pytest.mark.parametrize("rare", _RARE.values(), ids=_RARE)
def test_a_plain_gateway_does_not_load(tmp_path: Path, rare: set[str]) -> None:
    modules = loaded(tmp_path, _PLAIN)
    assert "dragoman.gateway.relay" in modules
    assert not rare & modules


def test_what_is_configured_is_loaded_at_the_start(tmp_path: Path) -> None:
    """The first request must not wait for it."""
    assert "dragoman.gateway.administration.api" in loaded(tmp_path, _PLAIN + '[admin]\naddress = "127.0.0.1:0"\n')
