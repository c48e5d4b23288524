"""Play the corpora of real deviations that stand beside the checkout, when they do: every `*.jsonl` in one process over
`dragoman.decode`'s own way, and a sample of each through the installed command.

`shared_corpus_pending.txt` names the cases that are known not to pass yet, one id a line, `#` begins a comment.
Exits 1 when a case fails that is not named there, and when a named case passes or does not exist, so that the
list only shrinks.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import dragoman
from dragoman.cli.body_input import render_result

PROJECT = Path(__file__).resolve().parent.parent
SHARED = PROJECT.parent / "shared"
CHECKER = SHARED / "tools" / "check_corpus.py"
CORPORA = SHARED / "corpus"
PENDING = PROJECT / "tests" / "shared_corpus_pending.txt"
OUTCOME = re.compile(r"^(FAIL|pass) (\S+) \(")
#: Every so many cases one goes through the installed command too.
SAMPLE = 12


def load_pending(text: str) -> set[str]:
    """The case ids of a pending list."""
    return {line.split("#")[0].strip() for line in text.splitlines()} - {""}


def parse_outcomes(report: str) -> dict[str, bool]:
    """Case id → passed, from the lines of a report."""
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


def load_checker() -> Any:
    """The corpus' own checker, as a module: it says what of a result is not as its case expects."""
    spec = importlib.util.spec_from_file_location("check_corpus", CHECKER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def play(case: dict[str, Any], checker: Any) -> list[str]:
    """What differs, in this process; nothing when the case passes."""
    body = case["wire"].encode("utf-8", "surrogatepass")
    tools = case.get("tools") or []
    try:
        reply = dragoman.decode(body, case["protocol"], tools=tools, status=case.get("status", 200))
        result = json.loads(render_result(reply))
        if any(not checker.differences(other, result) for other in case.get("accept", [])):
            return []
        found: list[str] = checker.differences(case["expect"], result)
    except Exception as problem:  # a case that raises is one that fails
        return [f"raised {type(problem).__name__}: {problem}"]
    return found


def play_all(corpus: Path, checker: Any) -> str:
    """The report of every case of a corpus."""
    lines = []
    for case in map(json.loads, corpus.read_text(encoding="utf-8").splitlines()):
        problems = play(case, checker)
        kind = case.get("kind", "?")
        lines.append(
            f"FAIL {case['id']} ({kind}): {'; '.join(problems)}" if problems else f"pass {case['id']} ({kind})"
        )
    return "\n".join(lines)


def play_sample(corpus: Path) -> str:
    """The report of some cases of a corpus, each through the installed command in a process of its own."""
    lines = corpus.read_text(encoding="utf-8").splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder) / corpus.name
        sample.write_text("".join(lines[::SAMPLE]), encoding="utf-8")
        command = [sys.executable, str(CHECKER), str(sample), "--list", "--jobs", "2"]
        command += ["--command", str(Path(sys.executable).parent / "dragoman")]
        # One process a case: without its compiled files the package would be compiled anew in each.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return run.stdout + run.stderr


def main() -> int:
    """Play and compare."""
    corpora = sorted(CORPORA.glob("*.jsonl"))
    if not (CHECKER.exists() and corpora):
        print("corpus of real deviations: not beside this checkout, not played")
        return 0
    checker = load_checker()
    pending = load_pending(PENDING.read_text(encoding="utf-8")) if PENDING.exists() else set()
    report = "\n".join(play_all(corpus, checker) for corpus in corpora)
    outcomes = parse_outcomes(report)
    problems = render_differences(outcomes, pending, report)
    sampled = {}
    for corpus in corpora:
        sample = play_sample(corpus)
        found = parse_outcomes(sample)
        if not found:
            problems.append(f"the checker named no case of {corpus.name}: {sample[-500:]}")
        problems += [
            f"by the command otherwise than in process: {case}" for case in found if found[case] != outcomes[case]
        ]
        sampled |= found
    print(*problems, sep="\n", end="\n" if problems else "")
    passed = sum(outcomes.values())
    print(
        f"corpora of real deviations: {passed} of {len(outcomes)} cases pass, {len(pending)} are pending, "
        f"{len(sampled)} played by the command too"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
