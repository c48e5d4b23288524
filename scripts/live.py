"""The full suite and a tool loop against a server of your own: make live TARGET=ollama/granite3.2

Writes live.json, live.html and live.xml into the current folder. Exit status 1 when a probe failed or the loop did not
come to the right answer.
"""

import argparse
import random
import subprocess
import sys
from pathlib import Path

from dragoman.client import Client
from dragoman.errors import DragomanError

REPORTS = ("live.json", "live.html", "live.xml")


def run_suite(target: str, config: Path | None, more: list[str]) -> bool:
    """Whether every probe of the full suite passed."""
    words = [word for report in REPORTS for word in ("--report", report)]
    words += ["--config", str(config)] if config is not None else []
    command = [sys.executable, "-m", "dragoman", "validate", target, "--full-suite", *words, *more]
    return subprocess.run(command, check=False).returncode == 0


def run_loop(target: str, config: Path | None) -> bool:
    """Whether the model found a number that only two tools, one after the other, give."""
    stock = {f"part-{number}": random.randint(100, 999) for number in range(1, 4)}
    shelf = random.choice([*stock])
    wanted = stock[shelf] * 2
    used: list[str] = []

    def find_part(name: str) -> dict[str, str]:
        """Find the id of a part by its name."""
        used.append("find_part")
        return {"id": shelf, "name": name}

    def count_stock(part_id: str) -> dict[str, int]:
        """How many pieces of the part with this id are in stock."""
        used.append("count_stock")
        return {"pieces": stock[part_id]}

    def double(number: int) -> int:
        """Twice a number."""
        used.append("double")
        return number * 2

    prompt = (
        "How many pieces of the part called sprocket are in stock? Find its id, count them, double the count with the "
        "tool, and tell me the result."
    )
    try:
        with Client(config) as client:
            answer = client.run(target, prompt, tools=[find_part, count_stock, double])
    except DragomanError as problem:
        print(f"tool loop: {problem}")
        return False
    right = str(wanted) in answer.text.replace(",", "")
    verdict = "right" if right else "wrong"
    print(f"tool loop: {answer.steps} steps, tools {', '.join(used) or 'none'}: {verdict}: {answer.text}")
    return right


def main() -> int:
    """Both, in order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--config", type=Path)
    options, more = parser.parse_known_args()
    has_passed = run_suite(options.target, options.config, more)
    return 0 if run_loop(options.target, options.config) and has_passed else 1


if __name__ == "__main__":
    sys.exit(main())
