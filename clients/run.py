"""`make clients`: real client programs, unmodified, through `dragoman serve` to a scripted provider of each protocol.

    make clients                                       all of them
    make clients ONLY=codex,litellm PROVIDERS=gemini   some of them
    .venv/bin/python clients/run.py --keep FOLDER      with all that was said kept in FOLDER

docs/reference/clients.md is written from the latest run of each.

Each client is offered tools, gets one call, runs it, sends the result, gets two calls at once (one with 20 kB of
arguments), runs them, sends the results and gets a text. The provider checks that calls and results come back exactly.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from driver import INSTALLED, ROOT, Driver
from install import NotInstalled, install, version
from play import PASSED
from report import write_page
from roster import DRIVERS
from wire import WIRES

SHORT_NAMES = {
    "ollama": "ollama-chat", "openai": "openai-chat", "responses": "openai-responses",
    "anthropic": "anthropic-messages", "gemini": "gemini-generate",
}  # fmt: skip
_START_SECONDS = 60
#: The latest row of each client and provider.
ROWS = INSTALLED / "rows.json"


def chosen(only: str) -> list[Driver]:
    """The drivers whose name, or the start of it, is in the list."""
    words = [word.strip() for word in only.split(",") if word.strip()]
    unknown = [word for word in words if not any(_fits(driver, word) for driver in DRIVERS)]
    if unknown:
        raise SystemExit(
            f"no client is called {', '.join(unknown)}; there are {', '.join(one.name for one in DRIVERS)}"
        )
    return [driver for driver in DRIVERS if not words or any(_fits(driver, word) for word in words)]


def _fits(driver: Driver, word: str) -> bool:
    return driver.name == word or driver.lock == word or driver.name.startswith(f"{word}-")


def play(driver: Driver, providers: list[str], keep: str) -> list[dict[str, Any]]:
    """The rows of one driver; a provider without a row is one that was not reached."""
    command = [sys.executable, str(Path(__file__).parent / "play.py"), driver.name, ",".join(providers), keep]
    limit = (driver.seconds + _START_SECONDS) * len(providers)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
        output, problem = done.stdout, done.stderr.strip()
    except subprocess.TimeoutExpired as late:
        output, problem = (late.stdout or b"").decode(), "did not end"
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if problem:
        print(f"{driver.name}: {problem[-300:]}", file=sys.stderr)
    missing = [name for name in providers if name not in [row["provider"] for row in rows]]
    return rows + [
        {"driver": driver.name, "provider": name, "seconds": 0.0, "faults": ["the run broke off"]} for name in missing
    ]


def run(driver: Driver, names: list[str], keep: str) -> list[dict[str, Any]]:
    """Install and play a driver, print what came of it; the rows, each with the client's version and the day."""
    try:
        shown = version(install(driver.lock), driver.package)
    except NotInstalled as problem:
        print(f"{driver.name:28} NOT INSTALLED: {problem}", flush=True)
        fault = f"not installed: {problem}"
        return [{"driver": driver.name, "provider": name, "seconds": 0.0, "faults": [fault]} for name in names]
    began = time.monotonic()
    rows = play(driver, names, keep)
    good = sum(not row["faults"] for row in rows)
    print(f"{driver.name:28} {good}/{len(rows)}  {time.monotonic() - began:5.1f} s", flush=True)
    for row in rows:
        for fault in row["faults"]:
            print(f"    {row['provider']}: {fault[:600]}", flush=True)
    today = datetime.date.today().isoformat()
    return [row | {"version": shown, "day": today} for row in rows]


def remember(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put rows in place of those before them; gives all."""
    ROWS.parent.mkdir(exist_ok=True)
    old = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else []
    known = {(row["driver"], row["provider"]): row for row in [*old, *rows]}
    ROWS.write_text(json.dumps(list(known.values())), encoding="utf-8")
    return list(known.values())


def main() -> int:
    """Run, remember the rows, write the page when every client has all of its own."""
    parser = argparse.ArgumentParser(description="Real clients through the gateway.")
    parser.add_argument("--only", default="", help="names of clients, by commas")
    parser.add_argument("--providers", default="", help="protocols of the provider, by commas")
    parser.add_argument("--keep", default="", help="a folder for what was said in each run")
    options = parser.parse_args()
    wanted = [SHORT_NAMES.get(name, name) for name in options.providers.split(",") if name] or list(WIRES)
    passed = failed = 0
    for driver in chosen(options.only):
        names = wanted + ([driver.speaks + PASSED] if driver.passes and driver.speaks in wanted else [])
        rows = run(driver, names, options.keep)
        passed += sum(not row["faults"] for row in rows)
        failed += sum(bool(row["faults"]) for row in rows)
        remember(rows)
    print(f"{passed} passed, {failed} failed")
    missing = write_page(ROOT / "docs/reference/clients.md", DRIVERS, remember([]))
    if missing:
        print(f"docs/reference/clients.md is left as it is: {missing} runs were never made")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
