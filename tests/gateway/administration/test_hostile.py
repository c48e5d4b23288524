"""Whoever may not, does not: every route, every role, odd values in every place, and grants in any order.

What is sent is made from the table of routes and from the Structs of their bodies: a route or a field that is new is
tried too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import pytest

from dragoman.gateway.administration.api import MOST_BODY, PREFIX, ROUTES, Route
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.keys import KeyBook, VirtualKey
from dragoman.ledger.limits.quotas import QuotaBook
from dragoman.ledger.reports.checking import check
from gateway.administration.desks import ADJUST, ADMINS, ALL, FILE_KEY, KEYS, NOTHING, READ, TEAM, Office, files
from profiles import IS_SOAK

#: A body that each route takes which takes one.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/keys"): {"name": "fresh"},
    ("PATCH", "/keys/{name}"): {"owner": "eve"},
    ("POST", "/keys/{name}/rotate"): {"keep_seconds": 0},
    ("PUT", "/quotas"): {"scope": "key:eve", "usd": 1, "per": "day"},
    ("POST", "/adjustments"): {"attempt": "00" * 16, "usd": 1, "reason": "x"},
}
#: What each route needs in its query.
QUERIES = {"/balances": "?scope=all"}
ODD: tuple[Any, ...] = (
    "", " ", "a" * 5_000, "é", "\u0430dmin", "a\nb", "a\x00b", "\u202eci", "../ci", "=1+1", "+x", "-x", "@x", "ci,x",
    "'; DROP TABLE virtual_key; --", "{{7*7}}", "%00", "$1", "?", "\ufeffci", "all", "*", "key:*", "[", "[]", None,
    True, 0, -1, 1.5, 1e308, 2**63, 2**70, [], {}, ["*"], [""], ["a" * 5_000], ["*"] * 5_000, [None], {"a": 1},
    {"": ""}, {"a": "b\n"}, {"a": {"b": "c"}}, {"__proto__": "x"}, [["*"]], "NaN", "Infinity", "1e400", "９", "१",
)  # fmt: skip


class Standing(NamedTuple):
    """What the API could change."""

    keys: list[VirtualKey]
    quotas: list[str]
    audit: int


def standing(folder: LedgerFolder) -> Standing:
    keys, quotas = KeyBook(folder, actor="t"), QuotaBook(folder, actor="t")
    try:
        return Standing(keys.list(), [quota.name for quota in quotas.list()], check(folder).adjustments)
    finally:
        keys.close()
        quotas.close()


@pytest.fixture
def office(tmp_path: Path) -> Office:
    office = files(tmp_path)
    assert office.ask("POST", "/keys", {"name": "ci", "team": "web"}).status == 201
    return office


def path_of(route: Route, name: str = "ci") -> str:
    return route.path.replace("{name}", quote(name, safe="")) + QUERIES.get(route.path, "")


def body_of(route: Route) -> dict[str, Any] | None:
    return BODIES.get((route.method, route.path))


def test_each_route_with_a_body_is_tried() -> None:
    assert {(route.method, route.path) for route in ROUTES if route.method in ("POST", "PUT", "PATCH")} == set(BODIES)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_role_gives_nothing_else(office: Office, route: Route) -> None:
    before = standing(office.folder)
    body = body_of(route)
    for key in (READ, KEYS, ADJUST, NOTHING):
        if route.role in ADMINS[key].roles:
            continue
        told = office.ask(route.method, path_of(route), body, key=key, idempotency_key="a")
        assert (told.status, told.value["error"]["code"]) == (403, "role")
    data = b"" if body is None else json.dumps(body).encode()
    for headers in (
        {}, {"authorization": "Bearer wrong"}, {"authorization": "Bearer "}, {"authorization": f"Basic {ALL}"},
        {"authorization": ALL}, {"x-api-key": ALL}, {"api-key": ALL}, {"x-goog-api-key": ALL},
        {"cookie": f"authorization=Bearer {ALL}"}, {"authorization": f"Bearer {ALL[:-1]}"},
        {"authorization": f"Bearer {ALL}, Bearer x"}, {"authorization": f"Bearer {ALL.upper()}"},
    ):  # fmt: skip
        sent = {"content-type": "application/json", "idempotency-key": "a", **headers}
        for target in (path_of(route), f"{path_of(route)}{'&' if '?' in path_of(route) else '?'}key={ALL}"):
            told = office.send(route.method, PREFIX + target, data, sent)
            assert (told.status, told.value["error"]["code"]) == (401, "no_admin_key")
            assert ALL not in str(told)
    assert standing(office.folder) == before


def forms(kind: type[msgspec.Struct], usual: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A usual body with an odd value in each field, one at a time; without each; with one that nobody knows."""
    for field in msgspec.structs.fields(kind):
        for value in ODD:
            yield usual | {field.encode_name: value}
        yield {name: value for name, value in usual.items() if name != field.encode_name}
    for name in ("disabled", "role", "roles", "digest", "secret", "created", "created_at", "id", "__class__", "from"):
        if name not in {field.encode_name for field in msgspec.structs.fields(kind)}:
            yield usual | {name: "x"}


@pytest.mark.parametrize("route", [route for route in ROUTES if (route.method, route.path) in BODIES],
                         ids=lambda route: f"{route.method} {route.path}")  # fmt: skip
@pytest.mark.parametrize("key", [ALL, TEAM], ids=["all", "team"])
def test_odd_values_are_refused_or_kept_as_they_are(office: Office, route: Route, key: str) -> None:
    [theirs] = standing(office.folder).keys
    usual = BODIES[route.method, route.path]
    for number, body in enumerate(forms(route.takes, usual)):
        told = office.ask(route.method, path_of(route), body, key=key, idempotency_key=str(number))
        assert told.status in (200, 201, 400, 403, 404, 409, 413, 422), (told, body)
        if told.status < 300 and "key" in told.value:
            kept = told.value["key"]
            assert all(kept[name] == value for name, value in body.items() if name in kept and value != ""), body
    found = standing(office.folder)
    assert all(key.name.isascii() and key.owner.isascii() and key.team.isascii() for key in found.keys)
    if key == TEAM:  # the key of another team is as it was
        assert theirs in found.keys
        assert found.quotas == []
    assert check(office.folder).is_sound


def test_bodies_are_json_told_once_and_small(office: Office) -> None:
    before = standing(office.folder)
    usual = {"authorization": f"Bearer {ALL}", "content-type": "application/json"}
    for data, headers, status in (
        (b'{"name":"x"}', {"content-type": "text/plain"}, 415),
        (b'{"name":"x"}', {"content-type": "application/x-www-form-urlencoded"}, 415),
        (b'{"name":"x"}', {"content-type": "multipart/form-data"}, 415),
        (b'{"name":"x"}', {"content-type": "application/json; charset=utf-16"}, 415),
        (b'{"name":"x"}', {"content-type": ""}, 415),
        (b'{"name":"x"}', {"content-encoding": "gzip"}, 415),
        (b'{"name":"x","team":"a","team":"b"}', {}, 400),
        (b'{"name":"x","labels":{"a":"b","a":"c"}}', {}, 400),
        (b'{"name":"x"} {"name":"y"}', {}, 400), (b"", {}, 400), (b"[]", {}, 400), (b"null", {}, 400),
        (b'{"name":"x"', {}, 400), (b'{"name":"\xff"}', {}, 400), (b"[" * 60_000, {}, 400),
        (b'{"name":NaN}', {}, 400), (b"\xef\xbb\xbf{}", {}, 400), (b" " * (MOST_BODY + 1), {}, 413),
    ):  # fmt: skip
        told = office.send("POST", f"{PREFIX}/keys", data, usual | headers)
        assert told.status == status, (data[:40], headers, told)
    for route in ROUTES:
        if route.method in ("GET", "DELETE"):
            told = office.send(route.method, PREFIX + path_of(route), b"{}", usual)
            assert told.status in (400, 404), route
    assert standing(office.folder) == before


def test_paths_methods_and_queries_are_exact(office: Office) -> None:
    before = standing(office.folder)
    for path in (
        "", "/", "/keys/", "/Keys", "/keys//ci", "/keys/ci/", "/keys/ci/rotate/x", "/keys/..", "/keys/%2e%2e/ci/x",
        "/../v1/keys", "//keys", "/keys;x=1", "/key", "/keys.json", "/v1/keys", "/%6beys",
    ):  # fmt: skip
        assert office.ask("GET", path).status == 404, path
    for name in ("%00", "%ff", "%0a", "a" * 2_000, "%e2%80%ae"):
        assert office.ask("GET", f"/keys/{name}").status in (400, 404)
    taken = {(route.method, route.path) for route in ROUTES}
    for route in ROUTES:
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", "CONNECT", "PROPFIND"):
            if (method, route.path) not in taken:
                assert office.ask(method, path_of(route)).status == 405, (method, route)
        joint = "&" if route.path in QUERIES else "?"
        for query in ("admin=1", "_method=DELETE", "callback=x", "x", "limit=1&limit=2", "a=1&" * 40, "%ff=%ff"):
            told = office.ask(route.method, f"{path_of(route)}{joint}{query}", body_of(route), idempotency_key="q")
            assert told.status == 400, (route, query)
    for query in ("limit=0", "limit=1001", "limit=x", "limit=-1", "cursor=zz", "from=yesterday", "to=9999999d"):
        assert office.ask("GET", f"/attempts?{query}").status in (400, 200 if query.startswith("to") else 400), query
    assert standing(office.folder) == before


def test_tables_hold_no_formulas(office: Office) -> None:
    office.deliver(["=cmd|'/c calc'!A1", "+1", "-1", "@x", "plain"])
    lines = office.ask("GET", "/usage?group=team&format=csv").value.splitlines()[1:]
    assert sorted(line.lstrip('"')[0] for line in lines) == ["'", "'", "'", "'", "p"]


MODELS = ("ollama/granite4", "ollama/qwen3", "openai/gpt-5", "openai/gpt-5-mini", "anthropic/claude-x", "ollama/")
PIECES = ("*", "ollama/*", "ollama/gr*", "o*", "?*", "[o]*", "openai/gpt-5-mini", "openai/gpt-5*", "openai/gpt-5-min?",
          "ollama*", "", "**", "*/*", "ollama/*b[", "!ollama/*")  # fmt: skip
TEAMS = ("research", "web", "", "Research", "research ")
STEPS = 1_500 if IS_SOAK else 150


def test_grants_never_widen(office: Office) -> None:
    """Somebody with bounds, who does whatever comes to mind step after step: no key of another team is touched, and
    none that it made or changed permits what its bounds do not."""
    dice = random.Random(20_261_123)
    office.ask("POST", "/keys", {"name": "wide", "team": "research"})
    bounds = ADMINS[TEAM]
    apart = {key.name: key for key in standing(office.folder).keys}
    names = ["ci", "wide", "of-file", *(f"k{number}" for number in range(12))]
    done = 0
    for step in range(STEPS):
        fields: dict[str, Any] = {}
        for field in ("models", "routes"):
            if dice.random() < 0.7:
                pool = PIECES if field == "models" else ("*", "fast", "slow", "f*", "fas?", "")
                fields[field] = [dice.choice(pool) for _ in range(dice.randint(0, 3))]
        if dice.random() < 0.5:
            fields["team"] = dice.choice(TEAMS)
        name = dice.choice(names)
        method, path, body = dice.choice([
            ("POST", "/keys", {"name": name} | fields), ("PATCH", f"/keys/{name}", fields),
            ("PATCH", f"/keys/{name}", {"disabled": dice.random() < 0.5}), ("DELETE", f"/keys/{name}", None),
            ("POST", f"/keys/{name}/rotate", {}), ("PUT", "/quotas", {"scope": f"key:{name}", "usd": 9, "per": "day"}),
        ])  # fmt: skip
        told = office.ask(method, path, body, key=TEAM)
        assert told.status < 500
        done += told.status < 300
        if told.status < 300 or step % 100 == 0:
            found = standing(office.folder)
            assert found.quotas == []
            for key in found.keys:
                if key.name in apart:
                    assert key == apart[key.name]
                    continue
                assert key.team == bounds.team
                permitted = [model for model in MODELS if key.permits(model)]
                assert all(any(fnmatchcase(model, bound) for bound in bounds.models) for model in permitted), key
                assert not key.permits("slow") and key.name != FILE_KEY.name
    assert done > STEPS // 25
