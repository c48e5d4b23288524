"""`make bench-peers`: the bench with further libraries, each in an environment of its own (they pin each other away).

    .venv/bin/python bench/peers.py [--folder .venv-bench] [--only S2]

What cannot be installed is said in one line and left out.
"""

import argparse
import subprocess
import sys
import venv
from pathlib import Path

PACKAGES = {
    "pi-ai-python": ["pi-ai-python", "openai", "anthropic"],
    "langchain": ["langchain-openai", "langchain-anthropic", "langchain-ollama"],
    "pydantic-ai": ["pydantic-ai-slim[openai,anthropic]"],
}


def install(folder: Path, client: str) -> str:
    """Make the environment of a library, unless it is there; gives what went wrong, or ""."""
    place = folder / client
    done = place / ".installed"
    if done.exists():
        return ""
    venv.create(place, with_pip=True)
    command = [str(place / "bin/python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    result = subprocess.run([*command, *PACKAGES[client]], capture_output=True, text=True, check=False)
    if result.returncode:
        return (result.stderr.strip().splitlines() or ["pip failed"])[-1][:200]
    done.touch()
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description="The bench with further libraries.")
    parser.add_argument("--folder", type=Path, default=Path(".venv-bench"))
    parser.add_argument("--only", default="S2,S3,M1")
    options = parser.parse_args()
    for client in PACKAGES:
        problem = install(options.folder, client)
        if problem:
            print(f"{client} is left out: {problem}", file=sys.stderr)
    run = [sys.executable, str(Path(__file__).parent / "run.py"), "--only", options.only]
    return subprocess.run([*run, "--environments", str(options.folder)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
