"""`/admin/v1/keys`: clients' keys. A secret is shown once, to its creator."""

from __future__ import annotations

import hashlib
import time
from typing import Annotated, Any, Final, Literal, TypeAlias, final

import msgspec
from msgspec import UNSET, UnsetType

from dragoman import _json
from dragoman.config import Quota
from dragoman.gateway.administration.ledger_access import Desk, no_such, refuse_excess
from dragoman.gateway.administration.requests import AdminRefusal, Asked, NoFields, answer
from dragoman.gateway.messages import Answer
from dragoman.ledger.keys import VirtualKey, check_key, new_secret
from dragoman.ledger.limits.accounts import Scopes

Place: TypeAlias = Literal["file", "ledger", "machine"]
#: Seconds for which a secret that is rotated away may be kept: a year.
_LONGEST: Final = 366 * 86_400


@final
class NewKey(msgspec.Struct, forbid_unknown_fields=True):
    """A new key. An admin key with bounds fills in its own team, models and routes if they are left out."""

    name: str
    owner: str = ""
    team: str = ""
    labels: dict[str, str] = {}
    models: tuple[str, ...] | UnsetType = UNSET
    routes: tuple[str, ...] | UnsetType = UNSET
    expires_at: int | None = None


@final
class KeyChange(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A change of a key. Fields that are left out stay."""

    owner: str | UnsetType = UNSET
    team: str | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET
    models: tuple[str, ...] | UnsetType = UNSET
    routes: tuple[str, ...] | UnsetType = UNSET
    expires_at: int | UnsetType | None = UNSET
    disabled: bool | UnsetType = UNSET


@final
class Rotation(msgspec.Struct, forbid_unknown_fields=True):
    """A rotation. `keep_seconds`: how long the previous secret still works."""

    keep_seconds: Annotated[int, msgspec.Meta(ge=0, le=_LONGEST)] = 86_400


def list_keys(desk: Desk, asked: Asked, _: NoFields) -> Answer:
    """List the keys, by name."""
    return answer({"keys": [_fields(key, place) for key, place in _placed(desk, asked)]})


def show_key(desk: Desk, asked: Asked, _: NoFields) -> Answer:
    """Show one key, with an `ETag`."""
    return _shown(*_one(desk, asked))


def make_key(desk: Desk, asked: Asked, new: NewKey) -> Answer:
    """Make a key. The answer has its secret."""
    granter = asked.granter
    key = _checked(
        VirtualKey(
            name=new.name,
            owner=new.owner,
            team=new.team or granter.team,
            labels=new.labels,
            models=granter.models if new.models is UNSET else new.models,
            routes=granter.routes if new.routes is UNSET else new.routes,
            expires=new.expires_at,
        )
    )
    refuse_excess(asked, key)
    _refuse_moved(asked, _limited_by(desk, asked), VirtualKey(name=key.name, team=asked.granter.team), key)
    _refuse_file(desk, key.name)
    secret, digest = new_secret()
    with desk.keys(asked) as book:
        book.add(key, digest)
    made, place = _one(desk, asked, key.name)
    return answer({"key": _fields(made, place), "secret": secret}, status=201)


def change_key(desk: Desk, asked: Asked, new: KeyChange) -> Answer:
    """Change some fields of a key. With `If-Match`: only if nobody changed it since."""
    expected = asked.head.headers.get("if-match", "*").strip()
    _, place = _one(desk, asked)
    _refuse_file(desk, asked.name)
    quotas = _limited_by(desk, asked)

    def edit(key: VirtualKey) -> VirtualKey:
        if expected not in ("*", _tag(key, place)):
            raise AdminRefusal(412, "changed", f"if-match: expected {_tag(key, place)}, got {expected[:40]}")
        changes: dict[str, Any] = {
            name: value for name in KeyChange.__struct_fields__ if (value := getattr(new, name)) is not UNSET
        }
        if "expires_at" in changes:
            changes["expires"] = changes.pop("expires_at")
        if "disabled" in changes:
            is_disabled = changes.pop("disabled")
            changes["disabled"] = (key.disabled or int(time.time())) if is_disabled else None
        changed = _checked(msgspec.structs.replace(key, **changes))
        refuse_excess(asked, changed)
        _refuse_moved(asked, quotas, key, changed)
        return changed

    with desk.keys(asked) as book:
        key = book.alter(asked.name, edit)
    return _shown(key, place)


def disable_key(desk: Desk, asked: Asked, _: NoFields) -> Answer:
    """Disable a key. Its rows and its name stay."""
    _one(desk, asked)
    _refuse_file(desk, asked.name)
    with desk.keys(asked) as book:
        book.disable(asked.name, at=int(time.time()))
    return _shown(*_one(desk, asked))


def rotate_key(desk: Desk, asked: Asked, rotation: Rotation) -> Answer:
    """Give a key another secret. The answer has it."""
    _one(desk, asked)
    _refuse_file(desk, asked.name)
    secret, digest = new_secret()
    with desk.keys(asked) as book:
        book.rotate(asked.name, digest, keep_seconds=rotation.keep_seconds)
    key, place = _one(desk, asked)
    return answer({"key": _fields(key, place), "secret": secret})


def list_teams(desk: Desk, asked: Asked, _: NoFields) -> Answer:
    """List the teams that keys name, and how many keys each has."""
    counts: dict[str, int] = {}
    for key, _place in _placed(desk, asked):
        if key.team:
            counts[key.team] = counts.get(key.team, 0) + 1
    return answer({"teams": [{"name": name, "keys": count} for name, count in sorted(counts.items())]})


def seen_names(desk: Desk, asked: Asked) -> set[str]:
    """Return the names of the keys that the granter sees."""
    return {key.name for key, _ in _placed(desk, asked)}


# ---------------------------------------------------------------- inside


def _placed(desk: Desk, asked: Asked) -> list[tuple[VirtualKey, Place]]:
    """Return the keys that the granter sees, and where each stands. One of the file hides its name in the store."""
    with desk.keys(asked) as book:
        found: dict[str, tuple[VirtualKey, Place]] = {key.name: (key, "machine") for key in book.of_machine()}
        found |= {key.name: (key, "ledger") for key in book.list()}
    found |= {key.name: (key, "file") for key in desk.file_keys()}
    return [found[name] for name in sorted(found) if asked.granter.sees(found[name][0])]


def _one(desk: Desk, asked: Asked, name: str = "") -> tuple[VirtualKey, Place]:
    name = name or asked.name
    found = next(((key, place) for key, place in _placed(desk, asked) if key.name == name), None)
    if found is None:
        raise no_such("key", name)
    return found


def _refuse_file(desk: Desk, name: str) -> None:
    if any(key.name == name for key in desk.file_keys()):
        raise AdminRefusal(409, "in_file", f"key {name} stands in the configuration's file: change it there")


def _limited_by(desk: Desk, asked: Asked) -> list[Quota]:
    """Return the quotas that limit a bounded granter by what a key says of itself."""
    if not asked.granter.is_bounded:
        return []
    return [quota for quota in desk.all_quotas(asked) if quota.scope in ("owner", "team", "label")]


def _refuse_moved(asked: Asked, quotas: list[Quota], before: VirtualKey, after: VirtualKey) -> None:
    """Check that the same ones of these quotas count for a key as before."""
    seen = [Scopes(owner=key.owner, team=key.team, labels=key.labels) for key in (before, after)]
    old, new = ({f"{quota.scope}:{value}" for quota in quotas for value in each.values(quota)} for each in seen)
    if old != new:
        words = "a quota counts by it, and an admin key with bounds changes no limits"
        raise AdminRefusal(403, "beyond_bounds", f"key {after.name}: {', '.join(sorted(old ^ new))[:200]}: {words}")


def _checked(key: VirtualKey) -> VirtualKey:
    try:
        return check_key(key)
    except ValueError as problem:
        raise AdminRefusal(422, "bad_key", str(problem)) from None


def _shown(key: VirtualKey, place: Place) -> Answer:
    return answer({"key": _fields(key, place)}, headers={"etag": _tag(key, place)})


def _tag(key: VirtualKey, place: Place) -> str:
    return f'"{hashlib.sha256(_json.encode(_fields(key, place))).hexdigest()[:16]}"'


def _fields(key: VirtualKey, place: Place) -> dict[str, Any]:
    return {
        "name": key.name,
        "owner": key.owner,
        "team": key.team,
        "labels": dict(sorted(key.labels.items())),
        "models": key.models,
        "routes": key.routes,
        "expires_at": key.expires,
        "disabled_at": key.disabled,
        "created_at": key.created or None,
        "from": place,
    }
