"""`dragoman budget`: quotas that hold in a gateway that runs, and how they stand."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

import pytest

from conversations import reply
from dragoman.cli.main import main
from gateway.recording import recording
from gateway.running import Running, stream_of
from gateway.test_quotas import CHAT, KEY, NANO, PRICES, ask

DIGEST = hashlib.sha256(KEY.encode()).hexdigest()
MORE = f'[keys.ci]\ndigests = ["sha256:{DIGEST}"]\nteam = "research"\n' + PRICES


ODD_NUMBERS = [
    "x",
    "",
    "-1",
    "-.5",
    "+5",
    " 5",
    "1_000",
    "١٠",
    "1e3",
    "1e99999999",
    "1e-99999999",
    "sNaN",
    "inf",
    "9" * 21,
]


class Budget:
    """The command, with the configuration of a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = folder / "commands.toml"
        self.file.write_text(f'[server]\nstate = "{folder / "state"}"\n')
        self.capsys = capsys

    def __call__(self, *words: str, status: int = 0) -> str:
        assert main(["budget", *words, "--config", str(self.file)]) == status
        found = self.capsys.readouterr()
        return found.out if not status else found.err


def soon(running: Running, status: int) -> None:
    """The gateway answers so within some seconds."""
    until = time.monotonic() + 20
    while (found := ask(running, key=KEY)[0]) != status:
        assert time.monotonic() < until, f"expected {status}, got {found}"
        time.sleep(0.05)


def test_a_budget_is_set_raised_shown_and_removed_while_the_gateway_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget(tmp_path, capsys)
    with recording(tmp_path, MORE) as (running, _, _):
        running.answer(stream_of(CHAT, reply("text")))
        assert ask(running, key=KEY)[0] == 200
        budget("set", "key:ci", "0/month")
        soon(running, 429)
        budget("set", "key:ci", "0.1/month")
        soon(running, 200)
        until = time.monotonic() + 20
        while json.loads(budget("show", "key:ci", "--json"))["used"] != f"{NANO / 1e9:.9f}".rstrip("0"):
            assert time.monotonic() < until
        assert budget("show", "key:ci").startswith("0.1/month usd: 0.00064 used, 0.09936 left, until ")
        _, _, page = running.request("GET", "/v1/key", b"", {"authorization": f"Bearer {KEY}"})
        data = json.loads(page)["data"]
        assert (data["limit"], data["limit_remaining"]) == (0.1, 0.09936)
        budget("set", "key:ci", "0", "--unit", "concurrent")
        soon(running, 429)
        assert "several" in budget("remove", "key:ci", status=2)
        budget("remove", "key:ci", "--unit", "concurrent")
        soon(running, 200)
        lines = [json.loads(line) for line in budget("list", "--json").splitlines()]
        assert [(line["scope"], line["amount"], line["from"]) for line in lines] == [("key:ci", "0.1", "ledger")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["set", "key:ci", "5"], "500/month"),
        (["set", "key:ci", "5/year"], "500/month"),
        *[(["set", "key:ci", f"{number}/month"], "a number of usd in digits, like 500") for number in ODD_NUMBERS],
        *[(["set", "key:ci", f"{number}/day", "--unit", "tokens"], "a number of tokens") for number in ODD_NUMBERS],
        (["set", "key:ci", "1.5/day", "--unit", "tokens"], "a number of tokens"),
        *[(["set", scope, "5/day"], "a scope like") for scope in ("key:**", "key:c*", "label:*=b", "label:a=**")],
        *[(["set", "all", "5/day", "--zone", zone], "time zone") for zone in ("localtime", "posixrules", "right/UTC")],
        (["set", "key:ci", "5/day", "--unit", "concurrent"], "a number alone"),
        (["set", "everyone", "5/day"], "a scope"),
        (["set", "all", "5/day", "--zone", "Nowhere"], "time zone"),
        (["set", "all", "5/day", "--on-outage", "serve"], "overdraft: missing: how many usd may be served"),
        (["set", "all", "5/day", "--on-outage", "serve", "--overdraft", "-1"], "a number of usd in digits"),
        (["set", "all", "5/day", "--overdraft", "1"], 'overdraft: expected only beside on_outage = "serve"'),
        (["set"], "a scope"),
        (["show", "key:*"], "one of them"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str) -> None:
    assert told in Budget(tmp_path, capsys)(*words, status=2)


@pytest.mark.parametrize("zones", [("UTC", "Europe/Berlin"), ("Asia/Tokyo", "Europe/Berlin", "UTC")])
def test_one_of_several_zones_is_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], zones: tuple[str, ...]
) -> None:
    budget = Budget(tmp_path, capsys)
    for zone in zones:
        budget("set", "all", "5/day", "--zone", zone)
    assert "--zone" in budget("remove", "all", status=2)
    assert "there is none" in budget("remove", "all", "--zone", "America/Lima", status=2)
    for number, zone in enumerate(zones):
        budget("remove", "all", "--zone", zone)
        left = {json.loads(line)["zone"] for line in budget("list", "--json").splitlines()}
        assert left == set(zones[number + 1 :])


def test_what_is_served_without_counters_stands_in_the_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    budget = Budget(tmp_path, capsys)
    budget("set", "all", "5/day", "--on-outage", "serve", "--overdraft", "0.25")
    [line] = budget("list", "--json").splitlines()
    assert (json.loads(line)["on_outage"], json.loads(line)["overdraft"]) == ("serve", "0.25")


def test_the_files_quota_stands_over_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    budget = Budget(tmp_path, capsys)
    budget.file.write_text(budget.file.read_text() + '[[quotas]]\nscope = "all"\nusd = 5\nper = "day"\n')
    assert "stands over" in budget("set", "all", "9/day", status=2)
    assert budget("list") == "all  5/day usd  bound  (file)\n"
    assert budget("show", "all").startswith("5/day usd: 0 used, 5 left")
    assert "there is none" in budget("remove", "all", status=2)
