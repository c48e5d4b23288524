"""The admin API without sockets: a desk, admin keys of every kind, and what a request to them comes to."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.config import AdminKey, Quota
from dragoman.gateway.administration.admin_keys import Granters
from dragoman.gateway.administration.api import PREFIX, AdminApi
from dragoman.gateway.administration.ledger_access import Desk
from dragoman.gateway.messages import Head
from dragoman.ledger.folder import LedgerFolder
from dragoman.ledger.journal.records import AttemptIds, Row
from dragoman.ledger.keys import VirtualKey
from dragoman.ledger.stores.opening import open_store
from dragoman.secret import Secret
from ledger.histories import HOLDER, intent, settlement

FILE_KEY = VirtualKey(name="of-file", team="research")
FILE_QUOTA = Quota("team", "research", "usd", 5_000_000, "month")
#: Admin keys by their secrets.
ADMINS = {
    "all-5f0e1d2c3b4a59687786": AdminKey("env:A", ("read", "keys", "adjust"), "all"),
    "read-5f0e1d2c3b4a5968778": AdminKey("env:B", ("read",), "reader"),
    "keys-5f0e1d2c3b4a5968778": AdminKey("env:C", ("keys",), "keeper"),
    "adjust-5f0e1d2c3b4a59687": AdminKey("env:D", ("adjust",), "clerk"),
    "nothing-5f0e1d2c3b4a5968": AdminKey("env:E", (), "nothing"),
    "team-5f0e1d2c3b4a5968778": AdminKey(
        "env:F", ("read", "keys", "adjust"), "lead", "research", ("ollama/*", "openai/gpt-5-mini"), ("fast",)
    ),
}
ALL, READ, KEYS, ADJUST, NOTHING, TEAM = ADMINS


class Told(NamedTuple):
    """What came back."""

    status: int
    value: Any
    headers: dict[str, str]


class Office:
    """The API over one ledger."""

    def __init__(self, folder: LedgerFolder, *, is_open: bool = True) -> None:
        self.folder = folder
        desk = Desk(folder, lambda: [FILE_KEY], lambda: [FILE_QUOTA])
        granters = Granters(tuple(ADMINS.values()), tuple(Secret(key) for key in ADMINS))
        self.api = AdminApi(desk, granters, is_open=lambda: is_open)

    def deliver(self, teams: list[str]) -> list[str]:
        """An attempt that has ended for each of these teams; gives their ids, the newest first."""
        ids = AttemptIds(7)
        intents = [intent(ids, number, team=team) for number, team in enumerate(teams)]
        store = open_store(self.folder)
        store.deliver([Row(HOLDER, each, settlement(each)) for each in intents])
        store.close()
        return sorted((each.id.hex() for each in intents), reverse=True)

    def send(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> Told:
        """One request, as it is."""
        head = Head(method, target, {"host": "localhost", **headers})
        answer = asyncio.run(self.api.respond(head, body))
        is_json = answer.content_type == "application/json"
        return Told(answer.status, json.loads(answer.body) if is_json else answer.body.decode(), answer.headers)

    def ask(self, method: str, path: str, body: Any = None, *, key: str = ALL, **headers: str) -> Told:
        """One request of whom the key belongs to; names of headers with `_` for `-`."""
        sent = {"authorization": f"Bearer {key}"} | {name.replace("_", "-"): value for name, value in headers.items()}
        data = b""
        if body is not None:
            sent, data = {"content-type": "application/json"} | sent, json.dumps(body).encode()
        return self.send(method, PREFIX + path, data, sent)


def files(folder: Path) -> Office:
    """Over files."""
    return Office(LedgerFolder.of(folder / "state"))
