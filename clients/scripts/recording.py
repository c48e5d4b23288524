"""The tool that the drivers give their clients, and how a driver ends. Its proof is the one that plan.py expects."""

import hashlib
import sys

QUESTION = "Record the texts with the tool, then say that all is recorded."
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "count": {"type": "integer"},
    },
    "required": ["text", "tags", "count"],
}


def record(text: str, tags: list[str], count: int) -> str:
    """Record a text.

    Args:
        text: what to record.
        tags: words to file it under.
        count: how many of it there are.
    """
    return "proof " + hashlib.sha256("\n".join([text, *tags, str(count)]).encode()).hexdigest()


def finish(text: str) -> None:
    """Print the model's last words for the runner to compare."""
    sys.stdout.buffer.write(text.encode())
