"""The page of every field of the vendors' request types, and what becomes of it in each protocol."""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from field_fates import fates
from vendor_types import LEAST

SDKS: Final = {
    "openai-chat": "openai", "openai-responses": "openai", "anthropic-messages": "anthropic",
    "gemini-generate": "google-genai", "ollama-chat": "ollama",
}  # fmt: skip
_WORDS: Final = {"named": "lost, named", "silent": "needs no word", "refused": "refused"}
_Row = tuple[str, ...]


def fields_page(note: str) -> str:
    """All fields; those within one are one row with it where the same becomes of all."""
    tables, total = [], 0
    for source in LEAST:
        rows = _rows(source)
        total += len(rows)
        tables += [f"## {source} ({len(rows)} fields, from `{SDKS[source]}`)", ""]
        tables += [f"| field | {' | '.join(LEAST)} |", "|---" * (len(LEAST) + 1) + "|"]
        tables += [f"| {name} | {' | '.join(row)} |" for name, row in collapsed(rows)]
        tables.append("")
    return "\n".join(
        [
            "# Fields of requests",
            "",
            note,
            "",
            f"This page shows what becomes of each of the {total} fields of the vendors' request types, at a provider",
            "of each protocol. The types are those of the SDKs in the lock file. A test tries each of the",
            f"{total * len(LEAST)} pairs of a field and a protocol.",
            "",
            "| word | what dragoman does with the field |",
            "|---|---|",
            "| `kept` | sends it under its own name |",
            "| `→ place` | says the same at this place, in the words of the provider's protocol |",
            "| `lost, named` | leaves it out, as the protocol has no place for it; a deviation names it |",
            "| `needs no word` | leaves it out: the provider does what it says anyway |",
            "| `refused` | refuses the request with an error |",
            "",
            "The deviation is `untranslated`, `dropped` or `changed`, with the field's path.",
            "",
            "`…` after a field stands for every field within it, and the number counts them. Two outcomes in one cell",
            "depend on the value.",
            "",
            "Hosts other than the vendors' own may take fewer fields. Their [dialect](providers.md) says so, and a",
            "deviation names what is left out.",
            "",
            *tables,
        ]
    )


def _rows(source: str) -> dict[str, _Row]:
    """Path → what becomes of it at each target; values of an enumeration are one field."""
    found: dict[str, list[set[str]]] = {}
    each_target = [fates(source, target) for target in LEAST]
    for at, (case, _) in enumerate(each_target[0]):
        outcomes = found.setdefault(case.path, [set() for _ in LEAST])
        for place, target in enumerate(LEAST):
            kind, words = each_target[place][at][1]
            if kind == "becomes" and source == target:
                outcomes[place].add("kept")
            elif kind == "becomes":
                outcomes[place].add(f"→ `{re.sub(r'mark[0-9]+', '…', words[-1])}`")
            else:
                outcomes[place].add(_WORDS.get(kind, kind))
    return {path: tuple("; ".join(sorted(words)) for words in outcomes) for path, outcomes in found.items()}


def collapsed(rows: dict[str, _Row]) -> list[tuple[str, _Row]]:
    """A row for each field that is not said by the row of what it stands in."""
    within: dict[str, Counter[_Row]] = {}
    for path, row in rows.items():
        for outer in _outers(path):
            within.setdefault(outer, Counter())[row] += 1
    shown: list[tuple[str, _Row]] = []
    told: set[str] = set()
    for path, row in rows.items():
        outer = next((each for each in _outers(path) if len(within[each]) == 1 and within[each][row] > 1), None)
        if outer is None:
            shown.append((f"`{path}`", row))
        elif outer not in told:
            told.add(outer)
            shown.append((f"`{outer}` … ({within[outer][row]})", row))
    return shown


def _outers(path: str) -> list[str]:
    """What a field stands in, from the outside, and the field."""
    ends = [found.start() for found in re.finditer(r"[.<\[]", path)]
    return [path[:end] for end in ends if end] + [path]
