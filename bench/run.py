"""`make bench`: speed and memory beside other libraries, both sides of every ratio in this run.

    .venv/bin/python bench/run.py [--only S1,S4] [--environments FOLDER]

Every row has its target, what was measured, and a verdict. A missed target does not fail the run: figures depend on
the machine and on what else it does.
"""

import argparse
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

import memory
import sockets
from measuring import Row, print_header, print_row

GOALS = {
    "S1": memory.against_orjson,
    "S4": memory.growth,
    "S5": memory.looking,
    "S6": memory.parallel,
    "S7": memory.extremes,
}


def environments(folder: Path | None) -> dict[str, str]:
    """Client → the Python of its environment, of those that `make bench-peers` made."""
    if folder is None:
        return {}
    return {made.parent.name: str(made.parent / "bin/python") for made in sorted(folder.glob("*/.installed"))}


def rows(only: set[str], pythons: Mapping[str, str]) -> Iterator[Row | str]:
    for goal, measure in GOALS.items():
        if not only or goal in only:
            yield from measure()
    if not only or only & {"S2", "S3"}:
        yield from sockets.over_sockets(pythons)
    if not only or "M1" in only:
        yield from sockets.imports(pythons)


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed and memory beside other libraries.")
    parser.add_argument("--only", default="", help="goals, such as S1,M1")
    parser.add_argument("--environments", type=Path, help="folder with an environment for each further library")
    options = parser.parse_args()
    machine = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    print(f"{machine}; CPU seconds, the least of samples that take turns\n")
    print_header()
    said: list[str] = []
    missed = []
    for row in rows(set(filter(None, options.only.split(","))), environments(options.environments)):
        if isinstance(row, str):
            said.append(row)
            continue
        print_row(row)
        if row.verdict() == "NOT ok":
            missed.append(row.what)
    print("\n" + "\n".join([*said, f"{len(missed)} targets missed" if missed else "every target met"]))


if __name__ == "__main__":
    main()
