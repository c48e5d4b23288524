"""The admin API says and does the same over each kind of store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dragoman.ledger.reports.checking import check
from gateway.administration.desks import ALL, TEAM, Office, Told
from ledger.engines import KINDS, Engines

#: What no two runs have in common.
_OWN = ("created", "created_at", "disabled", "disabled_at", "secret", "at", "before_until")


def shown(value: Any) -> Any:
    """An answer without what is of one run alone."""
    if isinstance(value, dict):
        return {name: shown(each) for name, each in value.items() if name not in _OWN}
    return [shown(each) for each in value] if isinstance(value, list) else value


def use_all(office: Office) -> list[Told]:
    ids = office.deliver(["research", "web", "", "research"])
    quota = {"scope": "team:web", "tokens": 500, "per": "month"}
    correction = {"attempt": ids[0], "usd": "0.5", "reason": "invoice"}
    calls: list[tuple[str, str, Any, str]] = [
        ("POST", "/keys", {"name": "b", "labels": {"a": "1"}}, ALL), ("POST", "/keys", {"name": "b"}, ALL),
        ("POST", "/keys", {"name": "a", "expires_at": 4_000_000_000}, TEAM), ("GET", "/keys", None, ALL),
        ("PATCH", "/keys/b", {"team": "web", "models": []}, ALL), ("PATCH", "/keys/b", {"team": "x"}, TEAM),
        ("DELETE", "/keys/a", None, TEAM), ("POST", "/keys/b/rotate", {"keep_seconds": 5}, ALL),
        ("GET", "/teams", None, ALL), ("PUT", "/quotas", quota, ALL), ("PUT", "/quotas", quota | {"tokens": 9}, ALL),
        ("GET", "/quotas", None, ALL), ("GET", "/quotas", None, TEAM), ("GET", "/balances?scope=team:web", None, ALL),
        ("DELETE", "/quotas/team:web%20tokens%20per%20month", None, ALL), ("GET", "/attempts?limit=3", None, ALL),
        ("GET", f"/attempts?cursor={ids[2]}", None, ALL), ("GET", "/attempts?key=ci", None, TEAM),
        ("POST", "/adjustments", correction, ALL), ("POST", "/adjustments", correction, ALL),
        ("POST", "/adjustments", correction | {"reason": "other"}, ALL), ("POST", "/adjustments", correction, TEAM),
        ("POST", "/adjustments", correction | {"attempt": "00" * 16}, ALL), ("GET", "/attempts?limit=1", None, ALL),
        ("GET", "/usage?group=team,state", None, ALL), ("GET", "/usage?format=csv&group=day", None, TEAM),
        ("GET", "/audit?limit=4", None, ALL), ("GET", "/audit?cursor=3", None, ALL),
    ]  # fmt: skip
    return [office.ask(method, path, body, key=key, idempotency_key="once") for method, path, body, key in calls]


def test_all_stores_have_one_api(engines: Engines, tmp_path: Path) -> None:
    found = []
    for kind in KINDS:
        with engines.open(kind, tmp_path / kind) as (folder, _):
            answers = use_all(Office(folder))
            assert check(folder).is_sound
            found.append([(answer.status, shown(answer.value)) for answer in answers])
    statuses = [status for status, _ in found[0]]
    assert statuses == [
        201, 409, 201, 200, 200, 404, 200, 200, 200, 201, 200, 200, 200, 200, 200, 200, 200, 200, 201, 200, 409, 201,
        404, 200, 200, 200, 200, 200,
    ]  # fmt: skip
    for other in found[1:]:
        assert other == found[0]
