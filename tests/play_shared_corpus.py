"""Play the corpus of real deviations that stands beside the checkout, when it does, through the installed command.

`shared_corpus_pending.txt` names the cases that are known not to pass yet, one id a line, `#` begins a comment.
Exits 1 when a case fails that is not named there, and when a named case passes or does not exist, so that the
list only shrinks.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
SHARED = PROJECT.parent / "shared"
CHECKER = SHARED / "tools" / "check_corpus.py"
CORPUS = SHARED / "corpus" / "quirks.jsonl"
PENDING = PROJECT / "tests" / "shared_corpus_pending.txt"
OUTCOME = re.compile(r"^(FAIL|pass) (\S+) \(")


def load_pending(text: str) -> set[str]:
    """The case ids of a pending list."""
    return {line.split("#")[0].strip() for line in text.splitlines()} - {""}


def parse_outcomes(report: str) -> dict[str, bool]:
    """Case id → passed, from the checker's lines."""
    matches = filter(None, map(OUTCOME.match, report.splitlines()))
    return {match[2]: match[1] == "pass" for match in matches}


def render_differences(outcomes: dict[str, bool], pending: set[str], report: str) -> list[str]:
    """One line for each case whose outcome the pending list does not foresee."""
    problems = [
        line
        for line in report.splitlines()
        if (match := OUTCOME.match(line)) and match[1] == "FAIL" and match[2] not in pending
    ]
    problems += [f"passes, remove it from {PENDING.name}: {case}" for case in sorted(pending) if outcomes.get(case)]
    problems += [f"no such case, remove it from {PENDING.name}: {case}" for case in sorted(pending - outcomes.keys())]
    return problems


def main() -> int:
    """Play and compare."""
    if not (CHECKER.exists() and CORPUS.exists()):
        print("corpus of real deviations: not beside this checkout, not played")
        return 0
    command = [sys.executable, str(CHECKER), str(CORPUS), "--list", "--jobs", "2"]
    command += ["--command", str(PROJECT / ".venv" / "bin" / "dragoman")]
    # One process a case: without its compiled files the package would be compiled anew in each.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    report = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    outcomes = parse_outcomes(report.stdout)
    if not outcomes:
        print(f"the corpus checker named no case: {report.stdout[-500:]} {report.stderr[-500:]}")
        return 1
    pending = load_pending(PENDING.read_text(encoding="utf-8")) if PENDING.exists() else set()
    problems = render_differences(outcomes, pending, report.stdout)
    print(*problems, sep="\n", end="\n" if problems else "")
    passed = sum(outcomes.values())
    print(f"corpus of real deviations: {passed} of {len(outcomes)} cases pass, {len(pending)} are pending")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
