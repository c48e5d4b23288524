"""What a gateway loads and compiles at its start: each megabyte is there in every worker."""

import subprocess
import sys
from pathlib import Path

_SCRIPT = """
import asyncio, os, sys
import re._compiler as compiler

theirs = frozenset(sys.modules)  # what asyncio itself brings: Python 3.14's has dataclasses

compiled, compile = [], compiler.compile
compiler.compile = lambda *pattern: compiled.append(pattern) or compile(*pattern)

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
    print(len(compiled), *(sys.modules.keys() - theirs))
    await gateway.close()

asyncio.run(serve(Path(sys.argv[1])))
"""
_PLAIN = """
[providers.near]
protocol = "openai-chat"
base_url = "http://127.0.0.1:9/v1"
"""
#: A new one is a `rare_pattern`, unless every answer needs it.
_PATTERNS = 230
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


def loaded(folder: Path, config: str) -> tuple[int, set[str]]:
    """How many patterns a gateway has compiled that has started with this configuration, and its modules."""
    (folder / "dragoman.toml").write_text(config)
    command = [sys.executable, "-c", _SCRIPT, str(folder)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    count, *modules = said.split()
    return int(count), set(modules)


def test_a_plain_gateway_loads_little(tmp_path: Path) -> None:
    compiled, modules = loaded(tmp_path, _PLAIN)
    assert {"dragoman.gateway.relay", "dragoman.stages.rescue.families.hermes"} <= modules
    assert {what: rare & modules for what, rare in _RARE.items() if rare & modules} == {}
    assert compiled <= _PATTERNS


def test_what_is_configured_is_loaded_at_the_start(tmp_path: Path) -> None:
    """The first request must not wait for it."""
    _, modules = loaded(tmp_path, _PLAIN + '[admin]\naddress = "127.0.0.1:0"\n')
    assert "dragoman.gateway.administration.api" in modules
