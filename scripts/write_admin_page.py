# ruff: noqa: E501 - tables and words, which a line end would tear
"""The page of the admin API, from its table of routes and the Structs of what each takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from decimal import Decimal
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec

from dragoman.gateway.administration.api import MOST_BODY, PREFIX, ROUTES, Route

_WORDS: Final[dict[Any, str]] = {
    str: "text", int: "whole number", float: "number", bool: "`true` or `false`", Decimal: "number or text", NoneType: "null",
}  # fmt: skip

HEAD = """\
# Admin API

{note}

JSON over HTTP at the [admin listener](../how-to/watch-the-gateway.md#the-admin-listener), for programs that manage keys and
quotas and read what was spent. It is off until `[admin]` has an address and keys:

```toml
[admin]
address = "127.0.0.1:4142"
keys = [
  {{ key = "env:DRAGOMAN_ADMIN_KEY", name = "ops", roles = ["read", "keys", "adjust"] }},
  {{ key = "env:RESEARCH_ADMIN_KEY", name = "research-lead", roles = ["read", "keys"], team = "research", models = ["ollama/*"] }},
]
```

```sh
curl -H "Authorization: Bearer $DRAGOMAN_ADMIN_KEY" http://127.0.0.1:4142{prefix}/keys
```

- Only `Authorization: Bearer` counts: no cookie, no other header, no key in the query. There are no CORS headers.
- Each role gives its own rights alone: `keys` cannot read, and `read` cannot change anything.
- An admin key with a `team` sees and changes only the keys and sums of that team. For it, another team's key does not exist: 404.
- An admin key with `models` or `routes` (patterns) can only make, change, enable or rotate keys whose own models and routes are
  within these patterns.
- An admin key with any of these bounds can change no quotas, nor which quotas count by a key's owner, team and labels: 403. It sees
  neither the audit nor the state of the ledger.
- From other machines the API answers 403, unless `admin.behind_tls = true` says that the address is behind TLS.
- Bodies are `application/json`, {most} KiB at most. An unknown field, a repeated field and an unknown parameter are 400.
- The API shows what the configuration file defines (`"from": "file"`), and does not change it: 409.
- The audit records every change, with the name of the admin key. The API shows a secret once, in the answer to the request that
  makes it.
- Answers give money in nano-dollars (`nano`) or as decimal text. An unknown amount is null.

An error is `{{"error": {{"code", "message"}}}}`: 400 (malformed request), 401 (no admin key), 403 (role, bounds, TLS), 404, 405, 409
(it exists already, or the file defines it), 412 (`If-Match`), 413, 415, 422 (an invalid value), 503 (the store is away;
`Retry-After`).
"""


def admin_page(note: str, describe: Callable[[str], str]) -> str:
    """The page. `describe`: a docstring as Markdown."""
    parts = [HEAD.format(note=note, prefix=PREFIX, most=MOST_BODY // 1024), "| request | role | |", "|---|---|---|"]
    parts += [
        f"| [`{route.method} {PREFIX}{route.path}`](#{_anchor(route)}) | `{route.role}` | {_first(route)} |"
        for route in ROUTES
    ]
    for route in ROUTES:
        parts += ["", f"## {route.method} {route.path}", "", describe(inspect.getdoc(route.handler) or "")]
        parts += _fields(route, describe)
    return "\n".join(parts) + "\n"


def _first(route: Route) -> str:
    return (inspect.getdoc(route.handler) or "").partition("\n")[0]


def _anchor(route: Route) -> str:
    title = f"{route.method} {route.path}".lower()
    return "".join(letter for letter in title.replace(" ", "-") if letter.isalnum() or letter in "-_")


def _fields(route: Route, describe: Callable[[str], str]) -> list[str]:
    fields = msgspec.structs.fields(route.takes)
    if not fields:
        return []
    place = "parameter" if route.method == "GET" else "field"
    said = describe(inspect.getdoc(route.takes) or "")
    rows = ["", said, "", f"| {place} | value | default |", "|---|---|---|"]
    for field in fields:
        rows.append(f"| `{field.encode_name}` | {_kind(field.type)} | {_default(field)} |")
    return rows


def _kind(kind: Any) -> str:
    """A type in the words of JSON."""
    arguments = get_args(kind)
    if get_origin(kind) is Literal:
        return " or ".join(f"`{word}`" for word in arguments)
    if get_origin(kind) is Annotated:
        bounds = arguments[1]
        limits = [
            f"{word} {value}"
            for word, value in (("above", bounds.gt), ("from", bounds.ge), ("to", bounds.le))
            if value is not None
        ]
        return f"{_kind(arguments[0])} {' '.join(limits)}"
    if get_origin(kind) is tuple:
        return f"list of {_kind(arguments[0])}"
    if get_origin(kind) is dict:
        return "object of texts"
    if arguments:  # a union
        return " or ".join(dict.fromkeys(_kind(each) for each in arguments if each is not msgspec.UnsetType))
    return _WORDS[kind]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "must be given"
    value = field.default
    if value is msgspec.UNSET:
        return "left out"
    if value is msgspec.NODEFAULT:
        return "empty"
    return "none" if value is None or value == "" else f"`{value}`"
