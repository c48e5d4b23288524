"""The page of every field of the vendors' answers and of the events of their streams, and what becomes of it."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Final

from write_fields_page import SDKS, collapsed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from answer_fates import fates
from field_fates import Fate
from vendor_answers import LEAST
from vendor_types import Case

_RULES: Final = Path(__file__).resolve().parent.parent / "tests" / "fields.toml"
_TITLES: Final = {"whole": "Whole answers", "stream": "Events of streams"}
_Row = tuple[str, ...]


def answers_page(note: str) -> str:
    """All fields; those within one are one row with it where the same becomes of all."""
    reasons = _Reasons()
    tables, total = [], 0
    for form, title in _TITLES.items():
        tables += [f"## {title}", ""]
        for source in LEAST:
            rows = _rows(source, form, reasons)
            total += len(rows)
            tables += [f"### {source}, {title.lower()} ({len(rows)} fields, from `{SDKS[source]}`)", ""]
            tables += [f"| field | {' | '.join(LEAST)} |", "|---" * (len(LEAST) + 1) + "|"]
            tables += [f"| {name} | {' | '.join(row)} |" for name, row in collapsed(rows)]
            tables.append("")
    return "\n".join(
        [
            "# Fields of answers",
            "",
            note,
            "",
            f"This page shows what becomes of each of the {total} fields of providers' answers and of the events of",
            "streams, for a client of each protocol. The types are those of the SDKs in the lock file. A test tries",
            "every field, and tries each whole answer as a stream too.",
            "",
            "| word | what dragoman does with the field |",
            "|---|---|",
            "| `kept` | sends it under its own name |",
            "| `→ place` | says the same at this place, in the words of the client's protocol |",
            "| `lost, named` | leaves it out, as the protocol has no place for it; `untranslated` names it |",
            "| `no word (…)` | leaves it out, for the reason under [Without a word](#without-a-word) |",
            "",
            "Words of an enumeration share a row with their field. An event of a stream may hold a whole item, block",
            "or response: its fields are those of a whole answer. Gemini's and Ollama's chunks have the type of whole",
            "answers. Errors are not here, because each protocol has its own form for them. If bytes pass through",
            "unchanged, nothing is lost.",
            "",
            *tables,
            "## Without a word",
            "",
            *(f"- ({number}) {why}" for why, number in reasons.numbers.items()),
            "",
        ]
    )


class _Reasons:
    """Why a field is neither written nor named, each with a number."""

    def __init__(self) -> None:
        self._rules = tomllib.loads(_RULES.read_text(encoding="utf-8"))
        self.numbers: dict[str, int] = {}

    def of(self, case: Case, source: str, form: str) -> int:
        """The number of the first rule that holds for a field."""
        for rule in self._rules["stream" if form == "stream" else "answer"]:
            is_meant = source in rule["protocols"] and re.fullmatch(rule["path"], case.path)
            if is_meant and case.values[0] in rule.get("values", case.values):
                return self.numbers.setdefault(rule["why"], len(self.numbers) + 1)
        raise ValueError(f"{source}: {case.path} is lost without a word and without a reason")


def _rows(source: str, form: str, reasons: _Reasons) -> dict[str, _Row]:
    """Path → what becomes of it for each client."""
    found: dict[str, list[set[str]]] = {}
    for place, target in enumerate(LEAST):
        for case, told in fates(source, target, form):
            outcomes = found.setdefault(case.path, [set() for _ in LEAST])
            outcomes[place].add(_said(told) or f"no word ({reasons.of(case, source, form)})")
    return {path: tuple("; ".join(sorted(words)) for words in outcomes) for path, outcomes in found.items()}


def _said(told: Fate) -> str:
    """What becomes of a field; "" where that is said by a rule."""
    if told.kind == "becomes":
        return f"→ `{re.sub(r'(mark|grown)[0-9]+', '…', told.words[-1])}`"
    return {"kept": "kept", "named": "lost, named"}.get(told.kind, "")
