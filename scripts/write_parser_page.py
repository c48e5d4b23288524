"""The page of docs/reference that sets the tool parsers of the common servers beside our families."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.stages.rescue.families import FAMILIES

DATA = Path(__file__).resolve().parent / "tool_parsers.toml"


def load_parsers() -> dict[str, Any]:
    """The servers' registries and the rows, as the file says them."""
    return tomllib.loads(DATA.read_text(encoding="utf-8"))


def find_faults(data: dict[str, Any], families: Sequence[str]) -> list[str]:
    """What does not fit: a registered name or a family without a row, a row of no family, a name that is unknown."""
    servers, rows = data["servers"], data["families"]
    faults = [f"{name}: no such family" for name in rows if name not in families]
    faults += [f"{name}: the family has no row" for name in families if name not in rows]
    told = {*data["none"], *data["gaps"]}
    for key, server in servers.items():
        named = {name for row in rows.values() for name in row.get(key, ())} | told
        faults += [f"{server['title']}: {name} has no row" for name in server["names"] if name not in named]
    for name, row in rows.items():
        faults += [f"{name}: no server {key}" for key in row if key != "note" and key not in servers]
        faults += [f"{name}: {wrong} is not registered" for wrong in _unregistered(servers, row)]
    registered = {name for server in servers.values() for name in server["names"]}
    return faults + [f"{name} is registered nowhere" for name in told if name not in registered]


def _unregistered(servers: dict[str, Any], row: dict[str, Any]) -> list[str]:
    return [name for key, server in servers.items() for name in row.get(key, ()) if name not in server["names"]]


def parsers_page(note: str) -> str:
    """The table, and what needs no row in it."""
    data = load_parsers()
    servers = data["servers"]
    lines = [
        "# Tool parsers of the servers",
        "",
        note,
        "",
        "A server that runs a model takes the calls out of the model's text with a parser. You choose the parser by",
        "name when you start the server. If you choose the wrong one, or none, the calls arrive",
        "[as text](rescue.md). dragoman then reads them with the family in the first column.",
        "",
        "The names come from these sources, read on 2026-11-26:",
        "",
        *(f"- **{server['title']}**: {server['source']}." for server in servers.values()),
        "",
        f"| family | {' | '.join(server['title'] for server in servers.values())} | |",
        "|---|" + "---|" * len(servers) + "---|",
    ]
    for family in FAMILIES:
        row = data["families"][family.name]
        cells = [", ".join(f"`{name}`" for name in row.get(key, ())) for key in servers]
        note_of_row = row.get("note", "").replace("|", "\\|")
        lines.append(f"| [{family.name}](rescue.md#{family.name}) | {' | '.join(cells)} | {note_of_row} |")
    lines += ["", "## Names without a family", "", "| name | why |", "|---|---|"]
    lines += [f"| `{name}` | {why} |" for name, why in data["none"].items()]
    lines += [f"| `{name}` | **not read**: {form} |" for name, form in data["gaps"].items()]
    return "\n".join([*lines, ""])
