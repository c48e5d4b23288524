"""`/admin/v1/quotas` and `/admin/v1/balances`: limits, and how they stand."""

from __future__ import annotations

import time
from typing import Any, final

import msgspec

from dragoman.config import Quota, QuotaConfig
from dragoman.config.ledger import check_amounts
from dragoman.config.quotas import quota_fields, read_quota, read_scope
from dragoman.errors import ConfigError
from dragoman.gateway.administration.keys import seen_names
from dragoman.gateway.administration.ledger_access import Desk, no_such, told
from dragoman.gateway.administration.requests import AdminRefusal, Asked, NoFields, answer
from dragoman.gateway.messages import Answer
from dragoman.ledger.standing import read_scope_standings, standing_fields


@final
class BalancesQuery(msgspec.Struct, forbid_unknown_fields=True):
    """A query for balances. `scope`: as in a quota, for one value: `team:research`, `key:ci`, `all`."""

    scope: str


def list_quotas(desk: Desk, asked: Asked, _: NoFields) -> Answer:
    """List the quotas; for an admin key with a team, those of the team and of its keys."""
    names = seen_names(desk, asked) if asked.granter.team else set()
    return answer(
        {"quotas": [_fields(desk, quota) for quota in desk.all_quotas(asked) if _is_seen(asked, quota.place, names)]}
    )


def set_quota(desk: Desk, asked: Asked, table: QuotaConfig) -> Answer:
    """Set a quota, in place of the one of its name."""
    _refuse_bounded(asked)
    try:
        quota = read_quota(table, "quota")
        if desk.folder.counters is not None:
            check_amounts([quota])
    except ConfigError as problem:
        raise AdminRefusal(422, "bad_quota", str(problem)) from None
    _refuse_file(desk, quota.name)
    with desk.quotas(asked) as book:
        before = book.set(quota)
    return answer({"quota": _fields(desk, quota)}, status=201 if before is None else 200)


def remove_quota(desk: Desk, asked: Asked, _: NoFields) -> Answer:
    """Remove a quota. What was spent stands."""
    _refuse_bounded(asked)
    _refuse_file(desk, asked.name)
    with desk.quotas(asked) as book:
        found = next((quota for quota in (*book.list(), *book.of_machine()) if quota.name == asked.name), None)
        if found is None:
            raise no_such("quota", asked.name)
        book.remove(found)
    return answer({"removed": found.name})


def show_balances(desk: Desk, asked: Asked, query: BalancesQuery) -> Answer:
    """Show how the quotas of a scope stand: what is used and set apart, what is left, until when."""
    scope = query.scope
    try:
        read_scope(scope, "scope")
        if asked.granter.team and not _is_seen(asked, scope, seen_names(desk, asked)):
            raise no_such("scope", scope)
        quotas = desk.all_quotas(asked)
        with told():
            found = read_scope_standings(desk.folder, quotas, scope, now=time.time())
    except ConfigError as problem:
        raise AdminRefusal(400, "bad_query", f"query: {problem}") from None
    return answer({"balances": [standing_fields(standing) for standing in found]})


# ---------------------------------------------------------------- inside


def _is_seen(asked: Asked, scope: str, names: set[str]) -> bool:
    kind, _, value = scope.partition(":")
    team = asked.granter.team
    return not team or (kind == "team" and value == team) or (kind == "key" and value in names)


def _refuse_bounded(asked: Asked) -> None:
    if asked.granter.is_bounded:
        words = "quotas: an admin key with bounds changes none, what limits it may be among them"
        raise AdminRefusal(403, "beyond_bounds", words)


def _refuse_file(desk: Desk, name: str) -> None:
    if any(quota.name == name for quota in desk.file_quotas()):
        raise AdminRefusal(409, "in_file", f"quota {name} stands in the configuration's file: change it there")


def _fields(desk: Desk, quota: Quota) -> dict[str, Any]:
    is_of_file = any(each.name == quota.name for each in desk.file_quotas())
    return {"name": quota.name, **quota_fields(quota), "from": "file" if is_of_file else "ledger"}
