"""The admin API as somebody uses it: keys, quotas, sums, corrections, the audit."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import AdminKey
from dragoman.gateway.administration.admin_keys import Granters
from dragoman.gateway.administration.api import AdminApi
from dragoman.gateway.administration.ledger_access import Desk
from dragoman.ledger.key_ring import KeyRing
from dragoman.ledger.reports.checking import check
from dragoman.secret import Secret
from gateway.administration.desks import ALL, FILE_QUOTA, READ, TEAM, Office, files


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return files(tmp_path)


def made(office: Office, key: str = ALL, **fields: Any) -> tuple[dict[str, Any], str]:
    told = office.ask("POST", "/keys", fields, key=key)
    assert told.status == 201, told
    return told.value["key"], told.value["secret"]


def test_a_key_is_made_changed_disabled_and_rotated(office: Office) -> None:
    key, secret = made(
        office, name="ci", team="web", labels={"cost": "4711"}, models=["ollama/*"], expires_at=4_000_000_000
    )
    assert key == {
        "name": "ci", "owner": "", "team": "web", "labels": {"cost": "4711"}, "models": ["ollama/*"], "routes": ["*"],
        "expires_at": 4_000_000_000, "disabled_at": None, "created_at": key["created_at"], "from": "ledger",
    }  # fmt: skip
    ring = KeyRing(office.folder)
    digest = hashlib.sha256(secret.encode()).digest()
    found = ring.find(digest)
    assert found is not None and found.models == ("ollama/*",)
    told = office.ask("PATCH", "/keys/ci", {"owner": "anna", "expires_at": None})
    assert told.status == 200 and told.value["key"] == key | {"owner": "anna", "expires_at": None}
    told = office.ask("DELETE", "/keys/ci")
    assert told.value["key"]["disabled_at"] > 1_700_000_000
    ring.close()
    assert KeyRing(office.folder).find(digest) is None
    assert office.ask("PATCH", "/keys/ci", {"disabled": False}).value["key"]["disabled_at"] is None
    told = office.ask("POST", "/keys/ci/rotate", {"keep_seconds": 0})
    assert told.status == 200 and told.value["secret"] != secret
    assert KeyRing(office.folder).find(digest) is None
    assert KeyRing(office.folder).find(hashlib.sha256(told.value["secret"].encode()).digest()) is not None
    actions = [entry["action"] for entry in office.ask("GET", "/audit").value["entries"]]
    assert actions == ["key rotate", "key alter", "key disable", "key alter", "key new"]
    entries = office.ask("GET", "/audit").value["entries"]
    assert {entry["actor"] for entry in entries} == {"all (admin key)"}
    assert secret not in str(entries) and told.value["secret"] not in str(entries)
    assert check(office.folder).is_sound


def test_what_stands_in_the_file_is_shown_and_not_changed(office: Office) -> None:
    assert [key["name"] for key in office.ask("GET", "/keys").value["keys"]] == ["of-file"]
    for method, path, body in (
        ("POST", "/keys", {"name": "of-file"}),
        ("PATCH", "/keys/of-file", {"team": "web"}),
        ("DELETE", "/keys/of-file", None),
        ("POST", "/keys/of-file/rotate", None),
        ("PUT", "/quotas", {"scope": "team:research", "usd": 9, "per": "month"}),
        ("DELETE", "/quotas/team:research%20usd%20per%20month", None),
    ):
        told = office.ask(method, path, body)
        assert (told.status, told.value["error"]["code"]) == (409, "in_file"), (method, path)


def test_nobodys_change_is_lost(office: Office) -> None:
    made(office, name="ci")
    tag = office.ask("GET", "/keys/ci").headers["etag"]
    told = office.ask("PATCH", "/keys/ci", {"owner": "anna"}, if_match=tag)
    assert told.status == 200 and told.headers["etag"] != tag
    assert office.ask("PATCH", "/keys/ci", {"team": "web"}, if_match=tag).status == 412
    told = office.ask("PATCH", "/keys/ci", {"team": "web"})
    assert (told.value["key"]["owner"], told.value["key"]["team"]) == ("anna", "web")


def test_quotas_and_how_they_stand(office: Office) -> None:
    body = {"scope": "key:ci", "usd": "0.25", "per": "day", "zone": "Europe/Berlin", "alerts": [0.5]}
    told = office.ask("PUT", "/quotas", body)
    assert told.status == 201 and told.value["quota"]["name"] == "key:ci usd per day Europe/Berlin"
    assert office.ask("PUT", "/quotas", body | {"usd": 0.5}).status == 200
    listed = office.ask("GET", "/quotas").value["quotas"]
    assert [(quota["amount"], quota["from"]) for quota in listed] == [("5", "file"), ("0.5", "ledger")]
    [balance] = office.ask("GET", "/balances?scope=key:ci").value["balances"]
    assert (balance["used"], balance["left"]) == ("0", "0.5")
    assert office.ask("DELETE", "/quotas/key:ci%20usd%20per%20day%20Europe%2FBerlin").status == 200
    assert office.ask("DELETE", "/quotas/key:ci%20usd%20per%20day%20Europe%2FBerlin").status == 404
    for wrong in ({"scope": "key:ci", "usd": -1, "per": "day"}, {"scope": "nobody", "usd": 1, "per": "day"}):
        assert office.ask("PUT", "/quotas", wrong).status == 422


def test_rows_come_by_pages_and_are_corrected_once(office: Office) -> None:
    delivered = office.deliver(["research", "web"] * 3 + ["research"])
    ids: list[str] = []
    cursor = ""
    while True:
        page = office.ask("GET", f"/attempts?limit=3{cursor}").value
        ids += [attempt["id"] for attempt in page["attempts"]]
        if page["cursor"] is None:
            break
        cursor = f"&cursor={page['cursor']}"
    assert ids == delivered
    assert {row["team"] for row in office.ask("GET", "/attempts?team=web").value["attempts"]} == {"web"}
    body = {"attempt": ids[0], "usd": "-0.000000001", "reason": "invoice 7"}
    assert office.ask("POST", "/adjustments", body).status == 400  # no key
    assert office.ask("POST", "/adjustments", body, idempotency_key="a").status == 201
    assert office.ask("POST", "/adjustments", body, idempotency_key="a").status == 200
    assert office.ask("POST", "/adjustments", body | {"usd": "1"}, idempotency_key="a").status == 409
    assert office.ask("POST", "/adjustments", body, idempotency_key="b").status == 201
    beyond = office.ask("POST", "/adjustments", body | {"usd": "-1"}, idempotency_key="c")
    assert beyond.status >= 400 and "expected a credit of no more" in str(beyond.value)
    for odd in ("1e999999999", "-1e999999999", "1e-999999999", "NaN", "0", "1.0000000001", "-0.0000000019"):
        assert office.ask("POST", "/adjustments", body | {"usd": odd}, idempotency_key="c").status == 422
    [first, *_] = office.ask("GET", "/attempts?limit=1").value["attempts"]
    assert first["adjusted"] == -2
    usage = office.ask("GET", "/usage?group=team").value["usage"]
    assert [(each["team"], each["attempts"]) for each in usage] == [("research", 4), ("web", 3)]
    text = office.ask("GET", "/usage?group=team&format=csv").value
    assert text.splitlines()[0].startswith("team,nano,") and len(text.splitlines()) == 3
    assert check(office.folder).is_sound
    ledger = office.ask("GET", "/ledger").value
    assert ledger["store"] == "sqlite" and ledger["waiting"] == 0 and len(ledger["months"]) == 1


def test_an_admin_key_of_a_team_has_its_own_alone(office: Office) -> None:
    made(office, name="theirs", team="web")
    made(office, name="wide", team="research")
    mine, _ = made(office, TEAM, name="mine")
    assert (mine["team"], mine["models"], mine["routes"]) == ("research", ["ollama/*", "openai/gpt-5-mini"], ["fast"])
    names = [key["name"] for key in office.ask("GET", "/keys", key=TEAM).value["keys"]]
    assert names == ["mine", "of-file", "wide"]
    for method, path, body in (
        ("GET", "/keys/theirs", None), ("PATCH", "/keys/theirs", {"team": "research"}),
        ("DELETE", "/keys/theirs", None), ("POST", "/keys/theirs/rotate", None),
        ("GET", "/balances?scope=team:web", None), ("GET", "/balances?scope=all", None),
        ("GET", "/balances?scope=key:theirs", None),
    ):  # fmt: skip
        assert office.ask(method, path, body, key=TEAM).status == 404, (method, path)
    for method, path, body in (
        ("POST", "/keys", {"name": "x", "team": "web"}), ("POST", "/keys", {"name": "x", "models": ["*"]}),
        ("PATCH", "/keys/mine", {"team": ""}), ("PATCH", "/keys/mine", {"routes": ["*"]}),
        ("PATCH", "/keys/wide", {"owner": "me"}), ("POST", "/keys/wide/rotate", None), ("DELETE", "/keys/wide", None),
        ("PUT", "/quotas", {"scope": "key:mine", "usd": 1, "per": "day"}), ("GET", "/audit", None),
        ("GET", "/ledger", None),
    ):  # fmt: skip
        told = office.ask(method, path, body, key=TEAM)
        assert (told.status, told.value["error"]["code"]) == (403, "beyond_bounds"), (method, path)
    [theirs] = set(office.deliver(["web", "research"])) & {
        row["id"] for row in office.ask("GET", "/attempts?team=web").value["attempts"]
    }
    assert [row["team"] for row in office.ask("GET", "/attempts", key=TEAM).value["attempts"]] == ["research"]
    assert office.ask("GET", "/attempts?team=web", key=TEAM).value["attempts"] == []
    assert [each["team"] for each in office.ask("GET", "/usage?group=team", key=TEAM).value["usage"]] == ["research"]
    body = {"attempt": theirs, "usd": 1, "reason": "x"}
    assert office.ask("POST", "/adjustments", body, key=TEAM, idempotency_key="a").status == 404
    assert [team["name"] for team in office.ask("GET", "/teams", key=READ).value["teams"]] == ["research", "web"]
    assert [team["name"] for team in office.ask("GET", "/teams", key=TEAM).value["teams"]] == ["research"]


def test_an_admin_key_with_bounds_moves_nobody_under_another_limit(office: Office) -> None:
    """A quota may count by a key's owner or label: what draws on another's budget, or leaves a limit, is beyond."""
    for scope in ("owner:anna", "owner:*", "label:cost=4711", "label:stage=*"):
        assert office.ask("PUT", "/quotas", {"scope": scope, "usd": 9, "per": "day"}).status == 201
    lead = {"models": ["ollama/*"], "routes": ["fast"], "team": "research"}
    made(office, name="hers", owner="anna", labels={"cost": "4711", "free": "x"}, **lead)
    made(office, TEAM, name="mine", labels={"free": "x", "cost": "12"})
    refused = (
        ("POST", "/keys", {"name": "x", "owner": "anna"}),
        ("POST", "/keys", {"name": "x", "owner": "eve"}),
        ("POST", "/keys", {"name": "x", "labels": {"cost": "4711"}}),
        ("POST", "/keys", {"name": "x", "labels": {"stage": "new"}}),
        ("PATCH", "/keys/mine", {"owner": "anna"}),
        ("PATCH", "/keys/mine", {"labels": {"cost": "4711"}}),
        ("PATCH", "/keys/hers", {"owner": "eve"}),
        ("PATCH", "/keys/hers", {"owner": ""}),
        ("PATCH", "/keys/hers", {"labels": {}}),
    )
    for method, path, body in refused:
        told = office.ask(method, path, body, key=TEAM)
        assert (told.status, told.value["error"]["code"]) == (403, "beyond_bounds"), (method, path, body, told)
    assert office.ask("PATCH", "/keys/mine", {"labels": {"free": "y"}}, key=TEAM).status == 200
    assert office.ask("PATCH", "/keys/hers", {"labels": {"cost": "4711"}}, key=TEAM).status == 200
    assert office.ask("POST", "/keys/hers/rotate", {}, key=TEAM).status == 200
    assert office.ask("PATCH", "/keys/hers", {"owner": "eve", "labels": {}}).status == 200  # who has no bounds may


def test_an_admin_key_with_bounds_but_no_team_moves_nobody_under_another_teams_limit(office: Office) -> None:
    made(office, name="hers", team="research", models=["ollama/*"])
    made(office, name="free", models=["ollama/*"])
    shown = "some-5f0e1d2c3b4a5968778"
    granters = Granters((AdminKey("env:A", ("read", "keys"), "some", models=("ollama/*",)),), (Secret(shown),))
    office.api = AdminApi(Desk(office.folder, list, lambda: [FILE_QUOTA]), granters, is_open=lambda: True)
    for method, path, team in (
        ("POST", "/keys", "research"),
        ("PATCH", "/keys/free", "research"),
        ("PATCH", "/keys/hers", ""),
        ("PATCH", "/keys/hers", "web"),
    ):
        body = {"team": team} | ({"name": "x"} if method == "POST" else {})
        told = office.ask(method, path, body, key=shown)
        assert (told.status, told.value["error"]["code"]) == (403, "beyond_bounds"), (method, path, team, told)
    assert office.ask("PATCH", "/keys/free", {"team": "web"}, key=shown).status == 200
    assert office.ask("PATCH", "/keys/hers", {"labels": {"a": "b"}}, key=shown).status == 200
