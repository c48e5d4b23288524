"""Plays one driver against a provider of each protocol, each through a gateway of its own, on loopback alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import isolated
from driver import INSTALLED, MODEL, NODE, ROOT, Driver, Place
from provider import Played, playing
from tap import tapped
from wire import MODEL as PROVIDERS_MODEL
from wire import WIRES

#: Marks, behind a protocol's name, a provider that is declared clean: bytes pass as they are.
PASSED = "+passed"
CONFIG = """
[providers.scripted]
protocol = "{protocol}"
base_url = "{url}{base}"
clean = {clean}
dialect = {{ hosted_tools = {hosted} }}

[routes.{model}]
targets = ["scripted/{theirs}"]
aliases = ["claude-{model}"]

[routes."*"]
targets = ["scripted/{theirs}"]
"""


def play(driver: Driver, provider: str, keep: Path | None) -> dict[str, Any]:
    """One run. Gives {"driver", "provider", "seconds", "faults": [...]}.

    `provider`: a protocol, with or without PASSED. `keep`: a folder for what the client printed, what the provider
    got and what the gateway said.
    """
    began = time.monotonic()
    protocol = provider.removesuffix(PASSED)
    with tempfile.TemporaryDirectory(prefix="clients-") as temporary:
        folder = Path(temporary)
        with playing(protocol, driver.plan, is_textual=driver.is_textual) as played:
            log = folder / "gateway.log"
            hosted = ["web_search"] if protocol in driver.searches else []
            with (
                serving(folder, played, log, clean=provider != protocol, hosted=hosted) as url,
                tapped(url, WIRES[driver.speaks].path) as sent,
            ):
                place = Place(sent.url, INSTALLED / driver.lock, folder / "home", folder / "work")
                place.home.mkdir()
                place.work.mkdir()
                outcome = _run(driver, place)
                faults = _faults(driver, place, played, outcome)
            said = log.read_text(encoding="utf-8")
            has_search = protocol in (driver.speaks, *driver.searches)
            faults += _faults_of_gateway(
                driver, said, lacks=bool(driver.searches) and not has_search, passed=provider != protocol
            )
            if driver.is_same and protocol == driver.speaks:
                faults += sent.differences(played.heads, played.bodies)
            if driver.searches and has_search and not played.searches:
                faults.append("the provider was not asked to search the web")
            if keep is not None:
                _keep(keep / f"{driver.name}.{provider}", played, outcome, said, faults)
    return {
        "driver": driver.name, "provider": provider, "seconds": round(time.monotonic() - began, 1), "faults": faults,
    }  # fmt: skip


@contextmanager
def serving(folder: Path, played: Played, log: Path, *, clean: bool, hosted: Sequence[str] = ()) -> Iterator[str]:
    """`dragoman serve` in front of the scripted provider; gives its URL and writes its log."""
    config = folder / "dragoman.toml"
    text = CONFIG.format(
        protocol=played.protocol,
        url=played.url,
        base=WIRES[played.protocol].base,
        clean=str(clean).lower(),
        hosted=json.dumps(hosted),
        model=MODEL,
        theirs=PROVIDERS_MODEL,
    )
    config.write_text(text, encoding="utf-8")
    source = os.environ.get("PYTHONPATH", str(ROOT / "src"))
    with log.open("wb") as errors:
        gateway = subprocess.Popen(
            [sys.executable, "-m", "dragoman", "serve", "--config", str(config), "--port", "0"],
            stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": source},
        )  # fmt: skip
        try:
            assert gateway.stdout is not None
            line = gateway.stdout.readline()
            if not line.startswith("listening on "):
                raise RuntimeError(f"the gateway did not start: {log.read_text(encoding='utf-8')[-500:]}")
            yield line.removeprefix("listening on ").strip()
        finally:
            gateway.terminate()
            try:
                gateway.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                gateway.kill()
                gateway.communicate()


def _run(driver: Driver, place: Place) -> isolated.Outcome:
    start = driver.start(place)
    environ = {
        "PATH": f"{NODE}/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(place.home),
        "TMPDIR": str(place.home),
        **start.environ,
    }
    return isolated.run(start.command, environ=environ, folder=place.work, seconds=driver.seconds, words=start.words)


def _faults(driver: Driver, place: Place, played: Played, outcome: isolated.Outcome) -> list[str]:
    faults = list(played.faults)
    if not played.ended:
        faults.append(f"stopped after {played.requests} requests of {len(played.plan.steps) + 1} turns")
    if outcome.status is None:
        faults.append(f"did not end within {driver.seconds:.0f} s")
    elif outcome.status:
        faults.append(f"ended with status {outcome.status}: {(outcome.errors or outcome.output).strip()[-300:]}")
    turns = (len(played.plan.texts) or len(played.plan.steps) + 1) + driver.repeats
    if played.requests > turns:
        faults.append(f"{played.requests} requests, expected at most {turns}")
    if driver.prints_text and played.plan.text not in outcome.output:
        faults.append(f"the last text is not in the output: …{outcome.output.strip()[-200:]!r}")
    problem = driver.check(place)
    told = driver.plan.recalled
    if told and not any(told.encode() in body for body in played.bodies):
        faults.append("the client's memory told the model nothing")
    return faults + ([problem] if problem else [])


def _faults_of_gateway(driver: Driver, log: str, *, lacks: bool, passed: bool) -> list[str]:
    """What the gateway's own record of the requests says against it. `lacks`: the provider cannot search the web."""
    refused = lacks and not driver.is_beside
    lines = (line for line in log.splitlines() if line.startswith("{"))
    records = [record for record in map(json.loads, lines) if record["kind"] == "request" and record.get("route")]
    faults = [f"the gateway's log: {line[:200]}" for line in log.splitlines() if "Traceback" in line]
    failed = [one for one in records if one["outcome"] != "done"]
    faults += [f"a request ended as {one['outcome']!r}" for one in failed if not refused or one.get("status") != 400]
    if refused and not failed:
        faults.append("no search was refused")
    if lacks and driver.is_beside and not all("dropped tools.web_search" in one.get("lost", ()) for one in records):
        faults.append("a search was left out without a word")
    faults += [f"it spoke {one.get('client')}" for one in records if one.get("client") != driver.speaks][:1]
    if not records:
        faults.append("the gateway's log tells of no request")
    if (not driver.searches or driver.is_beside) and not all(one["stream"] for one in records):
        faults.append("an answer was asked for as a whole")
    if passed and not all(one.get("passed") for one in records if one not in failed):
        faults.append("bytes were not passed through")
    return faults


def _keep(folder: Path, played: Played, outcome: isolated.Outcome, log: str, faults: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    (folder / "output").write_text(outcome.output, encoding="utf-8")
    (folder / "errors").write_text(outcome.errors, encoding="utf-8")
    (folder / "gateway.log").write_text(log, encoding="utf-8")
    (folder / "faults").write_text("\n".join(faults), encoding="utf-8")
    for number, body in enumerate(played.bodies, 1):
        (folder / f"request-{number}.json").write_bytes(body)
        (folder / f"head-{number}.json").write_text(json.dumps(played.heads[number - 1], indent=1), encoding="utf-8")


def main(name: str, providers: str, keep: str) -> int:
    """Play; one JSON object a line on standard output."""
    from roster import DRIVERS

    problem = isolated.leave_network()
    if problem:
        print(f"the network stays reachable ({problem}): clients are only asked to keep to loopback", file=sys.stderr)
    driver = next(driver for driver in DRIVERS if driver.name == name)
    for provider in providers.split(","):
        print(json.dumps(play(driver, provider, Path(keep) if keep else None)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
